from __future__ import annotations

from dataclasses import replace

import pytest

from castle.errors import EmbedderIdentityMismatchError, NotFoundError, UsageError
from castle.novelty import backfill, info_score, prune_suggest, update
from castle.novelty.asking import band_of
from castle.store.catchup import catch_up_vectors
from castle.store.filing import Filing, Place, Version
from castle.store.palace import Palace
from castle.store.places import forget
from castle.text.secrets import find_secrets
from tests.novelty.oracle import ids
from tests.store.filer import chunks, file


@pytest.mark.parametrize(
    ("novelty", "band"), [(0.0, "low"), (0.0999, "low"), (0.1, "medium"), (0.4999, "medium"), (0.5, "high")]
)
def test_bands(novelty: float, band: str) -> None:
    assert band_of(novelty) == band


def test_in_an_empty_palace_everything_is_new(palace: Palace) -> None:
    found = info_score(palace, "the ferry leaves")
    assert (found.novelty, found.band, found.neighbours, found.behind) == (1.0, "high", (), 0)
    nothing = prune_suggest(palace)
    assert (nothing.drawers, nothing.examined, nothing.unscored, nothing.suggestions) == (0, 0, 0, ())


def test_neighbours_come_nearest_first_within_the_wing(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves at nine\n", "gulls\n"], path="a.md", wing="sea")
    file(palace.ledger, ["the ferry leaves at nine today\n"], path="b.md", wing="land")
    whole = info_score(palace, "the ferry leaves at nine")
    assert whole.novelty == 0.0
    assert [n.text for n in whole.neighbours][:2] == [
        "the ferry leaves at nine\n",
        "the ferry leaves at nine today\n",
    ]
    assert whole.neighbours[0].cosine >= whole.neighbours[1].cosine >= whole.neighbours[2].cosine
    land = info_score(palace, "the ferry leaves at nine", wing="land", top_k=1)
    assert [n.wing for n in land.neighbours] == ["land"]
    assert land.novelty == pytest.approx(1 - land.neighbours[0].cosine, abs=1e-6)
    quoted = "la'nd\" OR 1=1 --"
    with pytest.raises(NotFoundError, match="no drawers in wing la'nd"):
        info_score(palace, "the ferry", wing=quoted)


def test_secrets_in_the_question_are_compared_masked(palace: Palace) -> None:
    text = f"the ferry needs {'AKIA' + 'Q3EGRIV7XM2LT5ZB'} today"
    (new,) = chunks([text])
    sealed = find_secrets(text, palace.salt)
    assert sealed
    filing = Filing(palace.ledger, Place("file:a", "file", "a", "a", "w", "r"), 0)
    with palace.ledger.write() as cx:
        filing.stage(cx, [replace(new, chunk=replace(new.chunk, sealed=tuple(sealed)))], "test")
        filing.complete(cx, Version(b"", 0, "", "", "utf-8", 0, "test"))
    (neighbour,) = info_score(palace, text.replace("the ferry", "the  ferry")).neighbours
    assert neighbour.cosine == pytest.approx(1.0, abs=1e-5)
    assert "AKIA" not in neighbour.text


def test_a_forgotten_drawer_is_no_neighbour_and_has_no_novelty(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n", "gulls\n"])
    backfill(palace)
    (id_,) = ids(palace, "the ferry leaves\n")
    forget(palace.ledger, id_=id_, actor="anna")
    assert [n.text for n in info_score(palace, "the ferry leaves").neighbours] == ["gulls\n"]
    with pytest.raises(NotFoundError, match="is forgotten"):
        info_score(palace, id_=id_)


def test_a_drawer_without_a_score_is_compared_at_once(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"], path="a.md")
    file(palace.ledger, ["the ferry leaves\n"], path="b.md")
    catch_up_vectors(palace)
    first, later = ids(palace, "the ferry leaves\n")
    before = [info_score(palace, id_=id_) for id_ in (first, later)]
    update(palace)
    assert [info_score(palace, id_=id_) for id_ in (first, later)] == before
    assert [found.novelty for found in before] == [1.0, 0.0]
    assert [[n.id for n in found.neighbours] for found in before] == [[], [first]]


def test_what_has_no_vector_is_counted(palace: Palace, monkeypatch: pytest.MonkeyPatch) -> None:
    file(palace.ledger, ["the ferry leaves\n"])
    monkeypatch.setattr("castle.novelty.asking.CATCH_UP_SECONDS", -1.0)
    assert info_score(palace, "gulls").behind == 1
    with pytest.raises(NotFoundError, match="no vector yet"):
        info_score(palace, id_=ids(palace, "the ferry leaves\n")[0])


@pytest.mark.parametrize("text", ["", " \n"])
def test_an_empty_text_is_refused(palace: Palace, text: str) -> None:
    with pytest.raises(UsageError, match="the text is empty"):
        info_score(palace, text)


def test_another_embedder_is_refused_in_its_own_words(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves\n"])
    catch_up_vectors(palace)
    other = Palace(palace.root, embedder="builtin")
    with pytest.raises(EmbedderIdentityMismatchError, match="fake-hashing"):
        info_score(other, "gulls")
    other.close()


def test_suggestions_come_least_novel_first_with_what_they_repeat(palace: Palace) -> None:
    file(palace.ledger, ["the ferry leaves at nine\n", "gulls\n"], path="a.md", wing="sea")
    file(palace.ledger, ["the ferry leaves at nine today\n"], path="b.md", wing="land")
    file(palace.ledger, ["the ferry leaves at nine\n"], path="c.md", wing="land")
    assert prune_suggest(palace).unscored == 4
    backfill(palace)
    found = prune_suggest(palace, threshold=0.3)
    first, copy = ids(palace, "the ferry leaves at nine\n")
    assert (found.drawers, found.examined, found.unscored) == (4, 4, 0)
    assert [(s.id, s.nearest, s.source, s.nearest_source) for s in found.suggestions] == [
        (copy, first, "c.md", "a.md"),
        (ids(palace, "the ferry leaves at nine today\n")[0], first, "b.md", "a.md"),
    ]
    assert found.suggestions[0].nearest_text == "the ferry leaves at nine\n"
    assert [s.id for s in prune_suggest(palace, threshold=0.05).suggestions] == [copy]
    sea = prune_suggest(palace, threshold=0.3, wing="sea")
    assert (sea.drawers, sea.suggestions) == (2, ())


def test_a_sample_is_the_same_for_the_same_seed(palace: Palace) -> None:
    file(palace.ledger, [f"gull {n}\n" for n in range(30)])
    backfill(palace)
    samples = [prune_suggest(palace, threshold=1, sample=5, seed=seed) for seed in (1, 1, 2)]
    assert samples[0] == samples[1] != samples[2]
    assert samples[0].examined == 5


@pytest.mark.parametrize("arguments", [{"threshold": -0.1}, {"threshold": float("nan")}, {"sample": -1}])
def test_what_cannot_be_asked(palace: Palace, arguments: dict[str, float]) -> None:
    with pytest.raises(UsageError):
        prune_suggest(palace, **arguments)  # type: ignore[arg-type]

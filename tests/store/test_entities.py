from __future__ import annotations

import pytest
from sqlalchemy import select

from castle.errors import ConfigError, NotFoundError, RefusedError, UsageError
from castle.records import Scope
from castle.store import mentions as mentions_module
from castle.store.entities import (
    Entities,
    Registration,
    drawers_mentioning,
    entities_in,
    register,
)
from castle.store.entity_tables import mentions, name_backlog
from castle.store.filing import Filing, NewDrawer, Place, Version
from castle.store.graph import Graph
from castle.store.ledger import Ledger
from castle.store.mentions import matcher_of
from castle.store.palace import Palace
from castle.store.places import forget, restore
from castle.store.schema import drawers
from tests.store.filer import chunks, file


@pytest.fixture
def ledger(palace: Palace) -> Ledger:
    return palace.ledger


@pytest.fixture
def known(ledger: Ledger) -> Entities:
    return Entities(ledger, actor="anna")


def links(ledger: Ledger) -> list[tuple[str, str]]:
    """Return entity and text of every link."""
    query = select(mentions.c.entity, drawers.c.text).join(drawers, drawers.c.rid == mentions.c.drawer)
    with ledger.read() as cx:
        return sorted((entity, text) for entity, text in cx.execute(query))


def found(
    ledger: Ledger, *ids: str, scope: Scope | None = None, limit: int = 10, offset: int = 0
) -> list[str]:
    """Return the texts of the drawers that mention entities."""
    with ledger.read() as cx:
        texts = {id_: text for id_, text in cx.execute(select(drawers.c.id, drawers.c.text))}
        return [texts[id_] for id_ in drawers_mentioning(cx, ids, limit, offset, scope=scope)]


def learned(ledger: Ledger, name: str, **more: object) -> str:
    values = {"kind": "person", "source": "learned", "confidence": 0.8, **more}
    with ledger.write() as cx:
        return register(cx, Registration(name, **values), ledger.clock(), "castle")  # type: ignore[arg-type]


def test_without_names_nothing_is_linked_or_read(ledger: Ledger, known: Entities) -> None:
    file(ledger, ["Marta came."])
    assert links(ledger) == []
    assert known.in_text("Marta") == []
    assert found(ledger, "marta") == []
    assert known.list().total == 0


def test_filing_links_what_it_files_in_the_same_transaction(ledger: Ledger, known: Entities) -> None:
    known.add("Marta Ruiz", "person", aliases=["Marta"])
    known.add("garden-shop", "project")
    file(ledger, ["Marta came.\n", "Nobody.\n", "The garden shop of Marta Ruiz.\n"])
    assert links(ledger) == [
        ("garden-shop", "The garden shop of Marta Ruiz.\n"),
        ("marta_ruiz", "Marta came.\n"),
        ("marta_ruiz", "The garden shop of Marta Ruiz.\n"),
    ]


def test_a_filing_that_fails_links_nothing(ledger: Ledger, known: Entities) -> None:
    known.add("Marta", "person")
    filing = Filing(ledger, Place("file:a", "file", "a", "a", "w", "r"), 0)
    with pytest.raises(ZeroDivisionError), ledger.write() as cx:
        filing.stage(cx, chunks(["Marta."]), "test")
        filing.complete(cx, Version(b"", 0, "", "", "", 0, "test"))
        assert len(cx.execute(select(mentions)).all()) == 1
        raise ZeroDivisionError
    assert links(ledger) == []


def test_what_is_only_staged_is_linked_when_it_is_complete(ledger: Ledger, known: Entities) -> None:
    filing = Filing(ledger, Place("file:a", "file", "a", "a", "w", "r"), 0)
    with ledger.write() as cx:
        filing.stage(cx, chunks(["Marta."]), "test")
    known.add("Marta", "person")
    assert links(ledger) == []
    with ledger.write() as cx:
        filing.complete(cx, Version(b"", 0, "", "", "", 0, "test"))
    assert links(ledger) == [("marta", "Marta.")]


def test_only_new_drawers_are_read_again(
    ledger: Ledger, known: Entities, monkeypatch: pytest.MonkeyPatch
) -> None:
    known.add("Marta", "person")
    file(ledger, ["Marta one.\n", "Marta two.\n"])
    read: list[int] = []
    real = mentions_module.link_mentions

    def spy(cx: object, rids: list[int]) -> int:
        read.extend(rids)
        return real(cx, rids)  # type: ignore[arg-type]

    monkeypatch.setattr("castle.store.drawer_rows.link_mentions", spy)
    file(ledger, ["Marta one.\n", "Marta two.\n", "Marta three.\n"], base=1)
    assert len(read) == 1
    assert len(links(ledger)) == 3


def test_the_speaker_of_a_message_is_mentioned_by_it(ledger: Ledger, known: Entities) -> None:
    known.add("Will", "person")
    (drawer,) = chunks(["I am late."])
    message = NewDrawer(drawer.chunk, None, "general", "message", "", 0, role="user", speaker="Will")
    filing = Filing(ledger, Place("session:a", "session", "a", "a", "w", "r"), 0)
    with ledger.write() as cx:
        filing.stage(cx, [message], "test")
        filing.complete(cx, Version(b"", 0, "", "", "", 0, "test"))
    assert links(ledger) == [("will", "I am late.")]


def test_a_new_name_is_looked_for_in_earlier_drawers(ledger: Ledger, known: Entities) -> None:
    file(ledger, ["Marta came.\n", "Nobody.\n", "Micheal, too.\n"])
    assert known.add("Marta", "person").mentions == 1
    assert known.add("Michael", "person").mentions == 1
    assert known.relink().read == 0


def test_linking_before_and_after_registering_comes_to_the_same(ledger: Ledger, known: Entities) -> None:
    texts = ["Marta.\n", "Will said.\n", "Will you?\n", "Marta Ruiz and Micheal\n", "no\n", "lantern v2\n"]
    file(ledger, texts, path="before.md")
    for name in ("Marta", "Will", "Michael", "Marta Ruiz"):
        known.add(name, "person")
    known.add("Lantern", "project")
    file(ledger, texts, path="after.md")
    linked = links(ledger)
    assert linked == sorted([*linked[::2], *linked[::2]])
    assert [entity for entity, _ in linked[::2]] == [
        "lantern",
        "marta",
        "marta",
        "marta_ruiz",
        "michael",
        "will",
    ]


def test_looking_back_goes_in_steps_and_goes_on(ledger: Ledger, known: Entities) -> None:
    file(ledger, [f"Marta {n}.\n" for n in range(50)])
    assert learned(ledger, "Marta") == "added"
    assert known.list().left == 50
    with ledger.write() as cx:
        assert mentions_module.link_mentions(cx, []) == 0
    step = mentions_module.relink(ledger, 15, batch=10)
    assert (step.read, step.found, step.left) == (20, 20, 30)
    learned(ledger, "Nobody Else")
    step = mentions_module.relink(ledger, batch=10)
    assert (step.found, step.left) == (30, 0)
    assert len(links(ledger)) == 50
    with ledger.read() as cx:
        assert cx.execute(select(name_backlog)).all() == []


def test_a_name_that_comes_meanwhile_is_not_passed_over(
    ledger: Ledger, known: Entities, monkeypatch: pytest.MonkeyPatch
) -> None:
    file(ledger, ["Marta and Tita.\n"])
    learned(ledger, "Marta")
    real = mentions_module._links
    done: list[int] = []

    def slow(*arguments: object) -> list[dict[str, object]]:
        links = list(real(*arguments))  # type: ignore[arg-type]
        if not done:
            done.append(1)
            with ledger.write() as cx:
                given = Registration("Marta", "person", "learned", 0.8, ("Tita",))
                register(cx, given, ledger.clock(), "other process")
        return links

    monkeypatch.setattr(mentions_module, "_links", slow)
    assert mentions_module.relink(ledger).found == 1
    assert links(ledger) == [("marta", "Marta and Tita.\n")]


def test_forgotten_and_superseded_drawers(ledger: Ledger, known: Entities) -> None:
    known.add("Marta", "person")
    file(ledger, ["Marta old.\n", "Marta stays.\n"])
    file(ledger, ["Marta stays.\n", "Marta new.\n"], base=1)
    assert sorted(found(ledger, "marta")) == ["Marta new.\n", "Marta old.\n", "Marta stays.\n"]
    assert sorted(found(ledger, "marta", scope=Scope())) == ["Marta new.\n", "Marta stays.\n"]
    assert known.get("Marta").mentions == 3
    with ledger.read() as cx:
        id_ = cx.execute(select(drawers.c.id).where(drawers.c.text == "Marta new.\n")).scalar_one()
    forget(ledger, id_=id_, actor="anna")
    assert known.get("Marta").mentions == 2
    assert found(ledger, "marta", scope=Scope()) == ["Marta stays.\n"]
    restore(ledger, id_=id_)
    assert known.get("Marta").mentions == 3


def test_drawers_are_ranked_and_paged(ledger: Ledger, known: Entities) -> None:
    known.add("Marta", "person")
    known.add("Lantern", "project")
    file(ledger, ["Marta alone, old.\n"], path="a", authored_at=1)
    file(ledger, ["Marta alone, new.\n"], path="b", authored_at=9)
    file(ledger, ["Marta on Lantern.\n"], path="c", authored_at=5, wing="other")
    ranked = ["Marta on Lantern.\n", "Marta alone, new.\n", "Marta alone, old.\n"]
    assert found(ledger, "marta", "lantern") == ranked
    assert found(ledger, "marta", "lantern", limit=1, offset=1) == ranked[1:2]
    assert found(ledger, "marta", "lantern", scope=Scope(wing="wing")) == ranked[1:]
    assert found(ledger, "marta", "lantern", scope=Scope(wing="other"), limit=1) == ranked[:1]


def test_queries_name_entities_in_any_case_and_with_slips(ledger: Ledger, known: Entities) -> None:
    known.add("Marta Ruiz", "person", aliases=["Marta"])
    known.add("Michael", "person")
    known.add("Will", "person")
    assert known.in_text("what did marta tell micheal, and marta ruiz?") == [
        ("marta_ruiz", "marta"),
        ("michael", "micheal"),
    ]
    assert known.in_text("what will be") == []
    with ledger.read() as cx:
        assert entities_in(cx, "When did Will say it? I asked Will") == [("will", "Will")]


def test_listing(ledger: Ledger, known: Entities) -> None:
    file(ledger, ["Marta.\n"], path="a", authored_at=5)
    file(ledger, ["Marta and May said so.\n"], path="b", authored_at=7)
    known.add("Lantern", "project")
    known.add("May", "person", aliases=["Mayflower"])
    known.add("Marta", "person")
    page = known.list()
    assert [(e.name, e.kind, e.mentions) for e in page.entities] == [
        ("Marta", "person", 2),
        ("May", "person", 1),
        ("Lantern", "project", 0),
    ]
    assert (page.total, page.left) == (3, 0)
    marta, may, lantern = page.entities
    assert (marta.first_seen_at, marta.last_seen_at) == (5, 7)
    assert (lantern.first_seen_at, lantern.last_seen_at) == (None, None)
    assert (may.ambiguous, may.aliases, may.source, may.added_by) == (True, ("Mayflower",), "user", "anna")
    assert [e.name for e in known.list(kind="project").entities] == ["Lantern"]
    assert [e.name for e in known.list(limit=1, offset=1).entities] == ["May"]


def test_forgetting_hides_and_nothing_but_a_user_brings_it_back(ledger: Ledger, known: Entities) -> None:
    known.add("Marta", "person", aliases=["Tita"])
    file(ledger, ["Marta.\n"], path="a")
    assert known.forget("tita").forgotten_at is not None
    file(ledger, ["Marta again.\n"], path="b")
    assert found(ledger, "marta") == []
    assert known.in_text("Marta Tita") == []
    assert known.list().total == 0
    assert [e.name for e in known.list(forgotten=True).entities] == ["Marta"]
    assert learned(ledger, "Marta", source="git", confidence=0.99) == "forgotten"
    assert known.get("Marta").forgotten_at is not None
    with pytest.raises(RefusedError, match="castle entities add"):
        known.alias("Marta", "Em")
    back = known.add("Marta", "person")
    assert (back.forgotten_at, back.mentions, back.aliases) == (None, 2, ("Tita",))


def test_what_is_better_founded_counts(ledger: Ledger, known: Entities) -> None:
    assert learned(ledger, "Lantern", kind="person") == "added"
    assert learned(ledger, "Lantern", kind="project", confidence=0.7) == "known"
    assert known.get("Lantern").kind == "person"
    assert learned(ledger, "lantern", kind="project", source="manifest", confidence=0.85) == "changed"
    assert learned(ledger, "Lantern", kind="person", confidence=0.99) == "known"
    entity = known.get("Lantern")
    assert (entity.name, entity.kind, entity.source, entity.confidence) == (
        "Lantern",
        "project",
        "manifest",
        0.85,
    )
    known.add("Lantern", "topic")
    assert learned(ledger, "Lantern", kind="project", source="git", confidence=0.99) == "known"
    assert (known.get("Lantern").kind, known.get("Lantern").source) == ("topic", "user")


def test_the_same_again_changes_nothing(ledger: Ledger, known: Entities) -> None:
    learned(ledger, "Marta", source="git", aliases=("mruiz",))
    with ledger.read() as cx:
        before = [
            cx.exec_driver_sql(f"SELECT * FROM {t}").all() for t in ("meta", "registry", "name_backlog")
        ]
    assert learned(ledger, "Marta", source="git", aliases=("mruiz",)) == "known"
    with ledger.read() as cx:
        after = [cx.exec_driver_sql(f"SELECT * FROM {t}").all() for t in ("meta", "registry", "name_backlog")]
    assert before == after


def test_an_alias_joins_what_was_only_noticed(ledger: Ledger, known: Entities) -> None:
    file(ledger, ["Marta came.\n"])
    learned(ledger, "Marta")
    mentions_module.relink(ledger)
    known.add("Marta Ruiz", "person")
    joined = known.alias("Marta Ruiz", "Marta")
    assert (joined.mentions, joined.aliases) == (1, ("Marta",))
    assert known.list().total == 1
    assert known.get("marta").name == "Marta Ruiz"


def test_an_alias_does_not_take_what_somebody_stated(ledger: Ledger, known: Entities) -> None:
    known.add("Marta Ruiz", "person")
    known.add("Max", "person")
    learned(ledger, "Anna")
    Graph(ledger, actor="anna").add("Anna", "knows", "Bo")
    for taken in ("Max", "Anna"):
        with pytest.raises(RefusedError, match=f"{taken} already stands for another entity"):
            known.alias("Marta Ruiz", taken)
    with pytest.raises(RefusedError):
        known.add("Tom", "person", aliases=["Max"])
    with pytest.raises(NotFoundError):
        known.get("Tom")
    known.forget("Max")
    assert known.alias("Marta Ruiz", "Max").aliases == ("Max",)


def test_entities_are_those_of_the_graph(ledger: Ledger, known: Entities) -> None:
    graph = Graph(ledger, actor="anna")
    graph.add("Marta Ruiz", "works_at", "Acme")
    graph.add_alias("Marta Ruiz", "Marta")
    entity = known.add("marta", "person")
    assert (entity.id, entity.name, entity.aliases) == ("marta_ruiz", "Marta Ruiz", ("Marta",))
    assert graph.query("Marta").total == 1
    file(ledger, ["Marta came.\n"])
    assert links(ledger) == [("marta_ruiz", "Marta came.\n")]


def test_names_that_cannot_be_looked_for(known: Entities) -> None:
    for name in ("", "x", "-", "'", "a" * 200, "a\0b"):
        with pytest.raises(UsageError):
            known.add(name, "person")
    with pytest.raises(UsageError, match="none of person, project, topic"):
        known.add("Marta", "robot")  # type: ignore[arg-type]
    with pytest.raises(NotFoundError, match="castle entities list"):
        known.forget("Nobody")
    assert known.list().total == 0


def test_languages_decide_what_is_doubtful(ledger: Ledger, known: Entities) -> None:
    assert known.add("Will", "person").ambiguous is True
    assert known.add("Luz", "person").ambiguous is False
    spanish = Entities(ledger, languages=["es"])
    spanish.add("Marta", "person")
    assert [(e.name, e.ambiguous) for e in sorted(spanish.list().entities, key=lambda e: e.id)] == [
        ("Luz", True),
        ("Marta", False),
        ("Will", False),
    ]
    with pytest.raises(ConfigError):
        Entities(ledger, languages=["xx"]).add("Marta", "person")


def test_other_processes_see_new_names_and_rolled_back_ones_leave_nothing(
    ledger: Ledger, known: Entities
) -> None:
    with pytest.raises(ZeroDivisionError), ledger.write() as cx:
        register(cx, Registration("Marta", "person", "user", 1.0), 0, "anna")
        matcher = matcher_of(cx)
        assert matcher is not None and matcher.find("Marta")
        raise ZeroDivisionError
    with ledger.read() as cx:
        assert matcher_of(cx) is None
    other = Ledger(ledger.root)
    try:
        Entities(other).add("Tom", "person")
        file(ledger, ["Marta and Tom.\n"])
        assert links(ledger) == [("tom", "Marta and Tom.\n")]
    finally:
        other.close()


def test_secrets_are_not_read_for_names(ledger: Ledger, known: Entities) -> None:
    from dataclasses import replace

    from castle.records import SealedSpan

    known.add("Marta", "person")
    (item,) = chunks(["key: Marta-secret\n"])
    sealed = replace(item, chunk=replace(item.chunk, sealed=(SealedSpan(5, 17, "password", "tag"),)))
    filing = Filing(ledger, Place("file:a", "file", "a", "a", "w", "r"), 0)
    with ledger.write() as cx:
        filing.stage(cx, [sealed], "test")
        filing.complete(cx, Version(b"", 0, "", "", "", 0, "test"))
    assert links(ledger) == []

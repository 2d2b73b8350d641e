from __future__ import annotations

import pytest
from sqlalchemy import func, select

from castle.errors import NotFoundError
from castle.records import Chunk, Scope, SealedSpan
from castle.store.closet_tables import aaak, closet_drawers, closet_lines
from castle.store.closets import Closet, aaak_lines, compress, read_closets
from castle.store.filing import Filing, NewDrawer, Place, Version, end_source
from castle.store.ledger import Ledger
from castle.store.palace import Palace
from castle.store.places import forget, rename_wing, restore
from castle.store.reading import listed
from castle.text.aaak import Dialect
from tests.store.filer import file

OLD = "# The plan\n\nToday Alice decided to keep MySQL, and Alice wrote it down.\n"
NEW = "# The plan\n\nToday Alice decided to move to Postgres, and Alice wrote it down.\n"
MORE = "Later Bob deployed the gateway service.\n"


@pytest.fixture
def ledger(palace: Palace) -> Ledger:
    return palace.ledger


def pages(ledger: Ledger) -> str:
    return "\n".join(page.text for page in read_closets(ledger))


def ids(ledger: Ledger, history: bool = False) -> dict[str, str]:
    with ledger.read() as cx:
        return {d.text: d.id for d in listed(cx, Scope(history=history), 100, 0)[1]}


def test_a_wing_is_compressed_into_lines_that_point_at_its_drawers(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    done = compress(ledger)
    assert (done.sources, done.built, done.unchanged, done.drawers) == (1, 1, 0, 2)
    assert done.lines == 4
    # Of texts as short as these the AAAK line is the longer one, and the count says so.
    assert done.tokens > done.original_tokens > 0
    assert done.ratio == done.original_tokens / done.tokens
    (page,) = read_closets(ledger)
    first, second = ids(ledger)[OLD], ids(ledger)[MORE]
    assert page == Closet(
        "notes_01",
        "file:notes.md",
        "wing",
        "general",
        f"the plan|Alice|→{first}\n"
        f"decided to keep mysql|Alice|→{first}\n"
        f"wrote it down|Alice|→{first}\n"
        f"deployed the gateway service||→{second}",
        (first, second),
        True,
    )


def test_compressing_again_changes_nothing(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    first = compress(ledger)
    before = read_closets(ledger)
    again = compress(ledger)
    assert (again.built, again.unchanged) == (0, 1)
    assert (again.lines, again.closets, again.tokens, again.original_tokens) == (
        first.lines,
        first.closets,
        first.tokens,
        first.original_tokens,
    )
    assert read_closets(ledger) == before


def test_a_dry_run_says_what_it_comes_to_and_writes_nothing(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    dry = compress(ledger, dry_run=True)
    assert read_closets(ledger) == []
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(aaak)).scalar() == 0
    wet = compress(ledger)
    assert (dry.lines, dry.tokens, dry.built, dry.dry_run) == (wet.lines, wet.tokens, wet.built, True)


def test_an_update_never_leaves_a_closet_quoting_old_text(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    compress(ledger)
    file(ledger, [NEW, MORE], base=1)
    assert "mysql" not in pages(ledger)
    assert "gateway" in pages(ledger)
    assert [page.fresh for page in read_closets(ledger)] == [False]
    assert compress(ledger).built == 1
    assert "postgres" in pages(ledger)
    assert "mysql" not in pages(ledger)


def test_a_forgotten_drawer_is_not_quoted_and_a_restored_one_is_again(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    compress(ledger)
    secret = ids(ledger)[OLD]
    forget(ledger, id_=secret, actor="test")
    assert "mysql" not in pages(ledger)
    assert "Alice" not in pages(ledger)
    assert aaak_lines(ledger, [secret]) == {}
    compress(ledger)
    assert "mysql" not in pages(ledger)
    restore(ledger, id_=secret)
    assert "mysql" not in pages(ledger)
    assert compress(ledger).built == 1
    assert "mysql" in pages(ledger)


def test_nothing_of_a_retracted_text_stays_in_the_tables(ledger: Ledger) -> None:
    file(ledger, [OLD, MORE])
    compress(ledger)
    file(ledger, [NEW, MORE], base=1)
    compress(ledger)
    with ledger.read() as cx:
        stored = [line for (line,) in cx.execute(select(closet_lines.c.line))]
        stored += [line for (line,) in cx.execute(select(aaak.c.line))]
    assert not any("mysql" in line.lower() for line in stored)


def test_a_line_goes_when_any_of_the_drawers_it_points_at_does(ledger: Ledger) -> None:
    file(ledger, ["fixed the login page.\n", "x\n", "fixed the login page.\n"])
    compress(ledger)
    assert pages(ledger).count("→") == 1
    with ledger.read() as cx:
        last = listed(cx, Scope(), 10, 0)[1][-1]
    forget(ledger, id_=last.id, actor="test")
    assert read_closets(ledger) == []
    compress(ledger)
    assert last.id not in pages(ledger)
    assert "fixed the login page" in pages(ledger)


def test_a_wing_that_was_renamed_has_closets_again_when_it_is_compressed(ledger: Ledger) -> None:
    file(ledger, [OLD])
    compress(ledger)
    rename_wing(ledger, "wing", "other")
    assert read_closets(ledger) == []
    assert compress(ledger, "other").built == 1
    assert [page.wing for page in read_closets(ledger, wing="other")] == ["other"]


def test_a_source_that_is_gone_has_no_closets(ledger: Ledger) -> None:
    file(ledger, [OLD])
    compress(ledger)
    with ledger.write() as cx:
        end_source(cx, ledger, 1, "test")
    assert read_closets(ledger) == []
    done = compress(ledger)
    assert (done.sources, done.lines) == (0, 0)
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(closet_drawers)).scalar() == 0


def test_only_the_wing_that_is_named_is_compressed(ledger: Ledger) -> None:
    file(ledger, [OLD], path="a.md", wing="one")
    file(ledger, [MORE], path="b.md", wing="two")
    assert compress(ledger, "two").sources == 1
    assert [page.wing for page in read_closets(ledger)] == ["two"]
    assert compress(ledger).built == 1
    with pytest.raises(NotFoundError, match="status"):
        compress(ledger, "three")


def test_secrets_are_masked_in_lines(ledger: Ledger) -> None:
    text = 'He wrote "the password is hunter2hunter2" and configured the hunter2hunter2 token.'
    start = text.index("hunter2hunter2")
    second = text.rindex("hunter2hunter2")
    spans = tuple(SealedSpan(at, at + 14, "password", "ab12") for at in (start, second))
    chunk = Chunk(text, 0, len(text), 1, 1, sealed=spans)
    filing = Filing(ledger, Place("k", "file", "k.md", "k.md", "wing", "general"), 0, append=True)
    with ledger.write() as cx:
        filing.stage(cx, [NewDrawer(chunk, None, "general", "file", "", 0)], "test")
        filing.complete(cx, Version(b"", 0, "", "t", "utf-8", 0, "test"))
    compress(ledger)
    shown = pages(ledger) + "".join(aaak_lines(ledger, list(ids(ledger).values())).values())
    assert "hunter2" not in shown
    assert "«secret:password#ab12»" in shown


def test_a_dialect_gives_names_their_codes_and_another_one_makes_everything_anew(ledger: Ledger) -> None:
    file(ledger, [OLD])
    compress(ledger)
    done = compress(ledger, dialect=Dialect({"Alice": "ALX"}))
    assert done.built == 1
    (line,) = aaak_lines(ledger, list(ids(ledger).values())).values()
    assert line.startswith("0:ALX|")


def test_hidden_kinds_have_no_lines(ledger: Ledger) -> None:
    file(ledger, ["# Some tool output\n"], kind="tool")
    assert compress(ledger).drawers == 0


def test_a_source_with_many_drawers_is_read_to_its_end(ledger: Ledger) -> None:
    file(ledger, [f"# Chapter number {n}\n" for n in range(1300)])
    done = compress(ledger)
    assert (done.drawers, done.lines) == (1300, 12)
    assert "chapter number 1191" in pages(ledger)
    with ledger.read() as cx:
        assert cx.execute(select(func.count()).select_from(aaak)).scalar() == 1300

"""How the hits of a search are printed. A search that a running server answers needs no more than this."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from castle.cli.output import note, say, say_table
from castle.clock import to_iso

if TYPE_CHECKING:
    from castle.answers import Found
    from castle.records import Hit, SearchResult

_ALWAYS = ("opening", "catch-up", "question", "recency")


def where(item: Hit | Found) -> str:
    """Return file and lines, or file, session and message: lines of a message are not those of its file."""
    place = item.address
    if item.source.startswith("session:"):
        return f"{place.path}  session {item.source.split(':', 2)[2]}  message {item.message_id}"
    lines = (
        f"{place.first_line}"
        if place.first_line == place.last_line
        else f"{place.first_line}-{place.last_line}"
    )
    return f"{place.path}:{lines}"


def second(moment: int) -> str:
    """Return a time without its microseconds."""
    return to_iso(moment // 1_000_000 * 1_000_000).replace(".000000", "")


def indented(text: str) -> str:
    """Return a text set in by four spaces."""
    return "\n".join(f"    {line}" for line in text.rstrip("\n").split("\n"))


def say_hits(result: SearchResult, explain: bool) -> None:
    """Print what a search has found, and how."""
    for number, hit in enumerate(result.hits, start=1):
        say(headline(number, hit))
        say(f"    {where(hit)}")
        say(f"    written {second(hit.authored_at)}, filed {second(hit.filed_at)}")
        for line in _audit(hit):
            say(f"    {line}")
        if explain:
            say()
            say_way(hit)
        say()
        say(indented(hit.text))
        say()
    say_end(result, explain)


def say_end(result: SearchResult, explain: bool) -> None:
    """Print what there is to say about a search beside its hits."""
    if not result.hits:
        note("nothing found")
    elif not result.confident:
        note("no confident match: what is shown shares words or sense with the question, no more")
    status = result.judge_status
    if status is not None and status.reordered:
        note(f"JUDGE: reordered {status.n} hits ({status.model}, {status.elapsed_s:.1f} s)")
    if explain and result.read_as:
        note(f"read as {'; '.join(result.read_as)}")
    if result.hidden:
        note(f"left out: {', '.join(f'{count} {why}' for why, count in sorted(result.hidden.items()))}")
    note(stages_line(result, explain))
    if result.cursor is not None:
        note(f"{len(result.hits)} of {result.ranked:,}; the next page: --cursor {result.cursor}")
    for reason in result.degraded:
        note(f"degraded: {reason}")


def stages_line(result: SearchResult, explain: bool = False) -> str:
    """Return one line that says what ran and what did not; explaining, in what time, and why not.

    A long page goes through the later stages in several blocks, which are told as one.
    """
    ran = [r for r in result.stages if r.status == "ran"]
    if explain:
        spent: dict[str, float] = {}
        for report in ran:
            spent[report.name] = spent.get(report.name, 0.0) + 1000 * report.seconds
        took = ", ms: " + " · ".join(f"{name} {ms:.0f}" for name, ms in spent.items())
    else:
        took = f": {', '.join(dict.fromkeys(r.name for r in ran if r.name not in _ALWAYS))}"
        missing = ", ".join(dict.fromkeys(r.name for r in result.stages if r.status != "ran"))
        return f"mode {result.mode}{took}{f'; without {missing}' if missing else ''}"
    skipped: dict[str, dict[str, None]] = {}
    for report in result.stages:
        if report.status != "ran":
            skipped.setdefault(report.status.removeprefix("skipped: "), {})[report.name] = None
    left_out = "".join(f"; without {', '.join(names)} ({reason})" for reason, names in skipped.items())
    return f"mode {result.mode}{took}{left_out}"


def headline(number: int, hit: Hit) -> str:
    """Return one line that says which hit this is."""
    marks = [f"score {hit.score:.3f}", f"{hit.wing} / {hit.room}"]
    if hit.speaker or hit.role:
        marks.append(hit.speaker or hit.role)
    if hit.state != "current":
        marks.append(hit.state)
    if hit.copies:
        marks.append(f"+{len(hit.copies)} cop{'y' if len(hit.copies) == 1 else 'ies'}")
    if hit.parts:
        marks.append(f"+{len(hit.parts)} more of it")
    return f"{number:>2}. {hit.id}  {'  '.join(marks)}"


def _audit(hit: Hit) -> Sequence[str]:
    lines = []
    if hit.soar_tags:
        before = f", {hit.score_pre_soar:.3f} before" if hit.score_pre_soar is not None else ""
        lines.append(f"SOAR: {', '.join(hit.soar_tags)} (×{hit.soar_boost:.3f}{before})")
    if hit.quality_tier is not None:
        lines.append(f"QUALITY: {hit.quality_tier} (×{hit.quality_boost:.3f}, {hit.quality_score:.2f})")
    return lines


def say_way(hit: Hit) -> None:
    """Print the rank and score that a hit had in each list and after each stage."""
    rows: list[Sequence[Any]] = [
        (name, stage.rank, f"{stage.score:.4f}", _factors(hit, name)) for name, stage in hit.stages.items()
    ]
    say_table(("stage", "rank", "score", "factors"), rows)
    if hit.matched:
        say(f"matched words: {' '.join(hit.matched)}")


def _factors(hit: Hit, stage: str) -> str:
    parts = [
        f"{name} ×{factor:.3f}" for name, factor in hit.boosts.items() if name.partition(":")[0] == stage
    ]
    return ", ".join(parts)

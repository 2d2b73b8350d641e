"""Erasing drawers in the ledger: a stub for each, and nothing of what was derived from its text.

Everything happens in the caller's write transaction. What belongs to other drawers and quotes a purged one,
such as the question in the context of its answer, is rewritten without it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence

from sqlalchemy import Connection, and_, delete, exists, insert, or_, select, update

from castle.store.appending import APPENDED
from castle.store.closet_tables import aaak, closets
from castle.store.drawer_rows import touch
from castle.store.entity_tables import mentions, registry
from castle.store.graph_tables import entities, entity_aliases, evidence, triples
from castle.store.ledger import batches
from castle.store.mind_purge import purge_mind
from castle.store.novelty_tables import novelty
from castle.store.proofs import Grown, appended, whole
from castle.store.purge_files import Finder
from castle.store.purge_guard import Quotes, marks_of
from castle.store.purge_tables import purge_inputs, purged, purges
from castle.store.purged import STUB, keyed, nothing_of
from castle.store.schema import drawers, revisions, sources, tombstones, vectors
from castle.store.sealing import COLUMNS, shown
from castle.store.session_tables import attachments, blobs, messages, readings, sessions
from castle.store.sessions import message_of
from castle.store.tunnel_tables import tunnels
from castle.store.use_tables import pins, uses
from castle.text.secrets import DETECTOR_VERSION

_PIECES = 40
"""Pieces of each text by which an attached file is searched."""
_MOST_COMPARED = 500
"""Purged drawers up to which names and labels beyond their sources are compared with their texts."""


def erase(cx: Connection, rids: Sequence[int], purge: int, salt: bytes) -> None:
    """Make stubs of drawers, and erase or rewrite everything that repeats their text."""
    cx.exec_driver_sql("PRAGMA secure_delete=ON")
    going = _by_source(cx, rids)
    proven = {source: _proven(cx, source) for source in going}
    spoken = {source: _messages_of(cx, source, of) for source, of in going.items()}
    quotes = {source: Quotes(_texts(cx, of)) for source, of in going.items() if _survives(cx, source, of)}
    finders = {
        source: Finder(_texts(cx, of), _PIECES) for source, of in going.items() if _has_files(cx, source)
    }
    named = Quotes(_texts(cx, rids)) if len(rids) <= _MOST_COMPARED else Quotes(())
    contexts = _contexts(cx, quotes, set(rids))
    hashes = _hashes(cx, [*rids, *contexts])
    keys = _inputs(cx, [*rids, *contexts])
    purge_mind(cx, rids, _made_at(cx, purge))
    for part in batches(rids):
        _stub(cx, part, purge, salt)
        _forget_derived(cx, part)
    for rid, context in contexts.items():
        cx.execute(update(drawers).where(drawers.c.rid == rid).values(context=context))
    for source in going:
        _scrub_source(cx, source, quotes.get(source))
        _scrub_messages(cx, source, spoken[source], finders.get(source), salt)
    _scrub_graph(cx, rids, named)
    _scrub_tunnels(cx, rids, named)
    touch(cx, _filed(cx, [*rids, *contexts]))
    _note_inputs(cx, purge, keys - _inputs(cx, _live_with(cx, hashes)))
    forget_inputs(cx, purge)
    for source, numbers in proven.items():
        _prove_again(cx, source, numbers)


def _made_at(cx: Connection, purge: int) -> int:
    return int(cx.execute(select(purges.c.at).where(purges.c.id == purge)).scalar_one())


def forget_inputs(cx: Connection, purge: int) -> None:
    """Delete the cached vectors whose keys a purge has noted, those of every embedder."""
    keys = select(purge_inputs.c.input).where(purge_inputs.c.purge == purge)
    for embedder in list(cx.execute(select(vectors.c.embedder).distinct()).scalars()):
        cx.execute(delete(vectors).where(vectors.c.embedder == embedder, vectors.c.input.in_(keys)))


# What goes, and what quotes it


def _by_source(cx: Connection, rids: Sequence[int]) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for part in batches(rids):
        query = select(drawers.c.source, drawers.c.rid).where(drawers.c.rid.in_(part))
        for source, rid in cx.execute(query.order_by(drawers.c.rid)):
            found.setdefault(source, []).append(rid)
    return found


def _texts(cx: Connection, rids: Sequence[int]) -> Iterator[str]:
    for part in batches(rids):
        yield from cx.execute(select(drawers.c.text).where(drawers.c.rid.in_(part))).scalars()


def _hashes(cx: Connection, rids: Sequence[int]) -> set[bytes]:
    found: set[bytes] = set()
    for part in batches(rids):
        found.update(cx.execute(select(drawers.c.sha256).where(drawers.c.rid.in_(part))).scalars())
    return found


def _has_files(cx: Connection, source: int) -> bool:
    """Whether files are attached to messages of a source."""
    query = select(attachments.c.ordinal).where(attachments.c.source == source).limit(1)
    return cx.execute(query).first() is not None


def _survives(cx: Connection, source: int, rids: Sequence[int]) -> bool:
    """Whether a source keeps drawers."""
    gone = set(rids)
    query = select(drawers.c.rid).where(drawers.c.source == source, ~STUB)
    return any(rid not in gone for rid in cx.execute(query).scalars())


def _contexts(cx: Connection, quotes: Mapping[int, Quotes], gone: set[int]) -> dict[int, str]:
    """Return the contexts of other drawers of the sources that quote, as they are to be."""
    found: dict[int, str] = {}
    for source, quoted in quotes.items():
        known: dict[str, str] = {}
        query = select(drawers.c.rid, drawers.c.context).where(
            drawers.c.source == source, drawers.c.context != ""
        )
        for rid, context in cx.execute(query):
            if rid not in gone:
                if context not in known:
                    known[context] = quoted.without(context)
                if known[context] != context:
                    found[rid] = known[context]
    return found


def _inputs(cx: Connection, rids: Sequence[int]) -> set[bytes]:
    """Return the keys of the cached vectors of drawers."""
    found: set[bytes] = set()
    for part in batches(list(dict.fromkeys(rids))):
        query = select(*COLUMNS, drawers.c.context).where(drawers.c.rid.in_(part), ~STUB)
        for row in cx.execute(query).all():
            text = shown(cx, row)
            embedded = f"{row.context}\n{text}" if row.context else text
            found.add(hashlib.sha256(embedded.encode("utf-8")).digest())
    return found


def _live_with(cx: Connection, hashes: set[bytes]) -> list[int]:
    found: list[int] = []
    for part in batches(sorted(hashes)):
        query = select(drawers.c.rid).where(drawers.c.sha256.in_(part), drawers.c.seq.is_not(None), ~STUB)
        found += cx.execute(query).scalars()
    return found


def _note_inputs(cx: Connection, purge: int, keys: set[bytes]) -> None:
    for part in batches(sorted(keys)):
        rows = [{"purge": purge, "input": key} for key in part]
        cx.execute(insert(purge_inputs).prefix_with("OR IGNORE"), rows)


def _filed(cx: Connection, rids: Sequence[int]) -> list[int]:
    """Return those drawers that were filed; a staged one gets its number when its revision is complete."""
    found: list[int] = []
    for part in batches(rids):
        query = select(drawers.c.rid).where(drawers.c.rid.in_(part), drawers.c.seq.is_not(None))
        found += cx.execute(query.order_by(drawers.c.rid)).scalars()
    return found


# Erasing


def _stub(cx: Connection, rids: Sequence[int], purge: int, salt: bytes) -> None:
    query = select(drawers.c.rid, drawers.c.text, drawers.c.raw, drawers.c.sha256)
    for row in cx.execute(query.where(drawers.c.rid.in_(rids))).all():
        size = len(row.text.encode("utf-8") if row.raw is None else row.raw)
        marks = marks_of(salt, row.text)
        noted = {"size": size, "tag": marks.tag, "length": marks.length, "anchor": marks.anchor}
        cx.execute(update(purged).where(purged.c.drawer == row.rid).values(**noted, purge=purge))
        values = {**nothing_of(salt, row.sha256), "detector_version": DETECTOR_VERSION}
        cx.execute(update(drawers).where(drawers.c.rid == row.rid).values(**values))


def _forget_derived(cx: Connection, rids: Sequence[int]) -> None:
    for table in (aaak, mentions, novelty, pins, uses, tombstones):
        if table is novelty:
            waits = {"score": None, "nearest": None}
            cx.execute(update(novelty).where(novelty.c.nearest.in_(rids)).values(**waits))
        cx.execute(delete(table).where(table.c.drawer.in_(rids)))


def _scrub_source(cx: Connection, source: int, quotes: Quotes | None) -> None:
    """Erase what was made of a source and of its title; without ``quotes`` nothing of it is left to name."""
    cx.execute(delete(closets).where(closets.c.source == source))
    path = select(sources.c.path).where(sources.c.id == source)
    cx.execute(delete(readings).where(readings.c.address.in_(path)))
    session = cx.execute(select(sessions).where(sessions.c.source == source)).first()
    if session is None:
        return
    if quotes is None or session.title in quotes:
        cx.execute(update(sessions).where(sessions.c.source == source).values(title=""))
        cx.execute(update(sources).where(sources.c.id == source).values(title=session.session))
    if quotes is None or (session.metadata or "") in quotes:
        cx.execute(update(sessions).where(sessions.c.source == source).values(metadata=None))


def _messages_of(cx: Connection, source: int, rids: Sequence[int]) -> dict[str, bool]:
    """Return the messages that the drawers are of, and whether anything of each was purged before."""
    found: dict[str, bool] = {}
    for part in batches(rids):
        query = select(drawers.c.message_id).where(drawers.c.rid.in_(part), drawers.c.message_id != "")
        found.update((message_of(key)[0], False) for key in cx.execute(query.distinct()).scalars())
    before = select(drawers.c.message_id).where(drawers.c.source == source, drawers.c.message_id != "", STUB)
    for key in cx.execute(before.distinct()).scalars():
        if message_of(key)[0] in found:
            found[message_of(key)[0]] = True
    return found


def _scrub_messages(
    cx: Connection, source: int, spoken: Mapping[str, bool], finder: Finder | None, salt: bytes
) -> None:
    """Key the hashes of messages, and erase what else they hold: notes of the host, and attached files."""
    for id_, before in spoken.items():
        own = and_(messages.c.source == source, messages.c.id == id_)
        if not before:
            for version, digest in cx.execute(select(messages.c.version, messages.c.sha256).where(own)).all():
                values = {"sha256": keyed(salt, digest), "metadata": None}
                cx.execute(update(messages).where(own, messages.c.version == version).values(**values))
        files = and_(attachments.c.source == source, attachments.c.message == id_)
        rows = cx.execute(
            select(attachments.c.ordinal, blobs.c.data)
            .join(blobs, blobs.c.sha256 == attachments.c.blob)
            .where(files)
        ).all()
        alone = not _speaks(cx, source, id_)
        for ordinal, data in rows:
            if alone or (finder is not None and finder.look(data).part):
                cx.execute(
                    update(attachments).where(files, attachments.c.ordinal == ordinal).values(blob=None)
                )
    used = exists().where(attachments.c.blob == blobs.c.sha256)
    if spoken:
        cx.execute(delete(blobs).where(~used))


def _speaks(cx: Connection, source: int, id_: str) -> bool:
    """Whether a message has drawers left."""
    own = drawers.c.message_id.startswith(id_, autoescape=True)
    keys = select(drawers.c.message_id).where(drawers.c.source == source, own, ~STUB)
    return any(message_of(key)[0] == id_ for key in cx.execute(keys).scalars())


def _scrub_graph(cx: Connection, rids: Sequence[int], quotes: Quotes) -> None:
    """Delete the evidence that drawers were, the facts that nothing else bears, and their names."""
    bare: set[str] = set()
    for part in batches(rids):
        of_these = evidence.c.drawer.in_(part)
        bare.update(cx.execute(select(evidence.c.triple).distinct().where(of_these)).scalars())
        cx.execute(delete(evidence).where(of_these))
    for row in cx.execute(select(evidence.c.rid, evidence.c.source).where(evidence.c.source != "")).all():
        if row.source in quotes:
            cx.execute(update(evidence).where(evidence.c.rid == row.rid).values(source=""))
    names: set[str] = set()
    for batch in batches(sorted(bare)):
        unborne = and_(triples.c.id.in_(batch), ~exists().where(evidence.c.triple == triples.c.id))
        for subject, object_ in cx.execute(select(triples.c.subject, triples.c.object).where(unborne)):
            names |= {subject, object_}
        cx.execute(delete(triples).where(unborne))
    for batch in batches(sorted(names)):
        used = or_(
            exists().where(or_(triples.c.subject == entities.c.id, triples.c.object == entities.c.id)),
            exists().where(registry.c.entity == entities.c.id),
        )
        query = select(entities.c.id).where(entities.c.id.in_(batch), ~used)
        alone = list(cx.execute(query).scalars())
        cx.execute(delete(entity_aliases).where(entity_aliases.c.entity.in_(alone)))
        cx.execute(delete(entities).where(entities.c.id.in_(alone)))


def _scrub_tunnels(cx: Connection, rids: Sequence[int], quotes: Quotes) -> None:
    for part in batches(rids):
        for column in (tunnels.c.source_drawer, tunnels.c.target_drawer):
            cx.execute(update(tunnels).where(column.in_(part)).values({column: None}))
    for row in cx.execute(select(tunnels.c.rid, tunnels.c.label).where(tunnels.c.label != "")).all():
        if row.label in quotes:
            cx.execute(update(tunnels).where(tunnels.c.rid == row.rid).values(label=""))


# Proofs


def _proven(cx: Connection, source: int) -> list[int]:
    """Return the revisions of a source that its drawers give back; what is wrong before stays wrong."""
    return [number for number, digest, filed in _computed(cx, source) if digest == filed]


def _prove_again(cx: Connection, source: int, numbers: Sequence[int]) -> None:
    """Give revisions the hashes that follow from what is left of them."""
    held = set(numbers)
    for number, digest, filed in list(_computed(cx, source)):
        if number in held and digest != filed:
            which = and_(revisions.c.source == source, revisions.c.number == number)
            cx.execute(update(revisions).where(which).values(sha256=digest))


def _computed(cx: Connection, source: int) -> Iterator[tuple[int, bytes, bytes]]:
    query = select(revisions).where(revisions.c.source == source).order_by(revisions.c.number)
    grown: Grown | None = None
    for row in cx.execute(query).all():
        if row.state == APPENDED:
            grown = appended(cx, source, row.number, grown)
            yield row.number, grown.digest, row.sha256
        else:
            yield row.number, whole(cx, source, row.number)[0], row.sha256

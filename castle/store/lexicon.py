"""The index of words: a Tantivy directory that answers by BM25.

Text is cut into words by ``castle.text.words`` at both ends; Tantivy splits at the spaces put between them
and stems each word as English. Stems of other languages (``castle.text.stems``) follow a text's words as
terms of their own; a word of a query counts by the best of its terms, so that no language counts more than
another. Queries are built from terms, so no text of a user is ever read as query syntax.
"""

from __future__ import annotations

import math
import os
import secrets
import shutil
import tempfile
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from castle.records import HIDDEN_KINDS, Scope
from castle.store.lexicon_document import ANALYZER, FORMAT, NEVER, document_of, schema, words_of
from castle.store.lexicon_mark import NAME as MARK_FILE
from castle.store.lexicon_mark import read_mark, write_mark
from castle.store.native import native_edge
from castle.store.projection import (
    ProjectionRow,
    ProjectionUnavailable,
    Watermark,
    disk_bytes,
    legal_text,
)
from castle.store.segments import Seen, abandoned_deletions, damaged_files, live_files
from castle.store.sums import Sums
from castle.text.stems import stems_anywhere
from castle.text.words import phrases

if TYPE_CHECKING:
    import tantivy

MAX_WORDS = 1000
"""Distinct words of a query that are looked up; of more, the rarest."""
MAX_PHRASES = 16
TITLE_WEIGHT = 0.4
PHRASE_WEIGHT = 2.0

_META = "meta.json"
Place = tuple[int, int]
"""Where a drawer is in an index: its segment, and its number there."""
Commit = tuple[int, int, int]
"""A commit, by its file's number, time and size."""
_HEAP_BYTES = 64_000_000
# Hits beyond the limit that are read so that equal scores at its edge come in the order of their ids.
_SLACK = 32
# As many where more than those are equal.
_MUCH_SLACK = 1000
# A float32 score adds up this many distinct powers of two without rounding.
_BITS = 23
SPREAD_WORDS = _BITS
SPREAD_DRAWERS = 5000
_IDS_AT_ONCE = 10_000


@dataclass(frozen=True, slots=True)
class LexicalMatch:
    """A drawer that shares words with a query; ``matched`` are those words as the query has them."""

    id: str
    score: float
    sha256: str
    matched: tuple[str, ...]


class LexicalMatches(list[LexicalMatch]):
    """Matches, best first; ``truncated`` says that the query had more words than were looked up."""

    truncated: bool = False


class Lexicon:
    """The projection of drawers onto their words, in the directory ``path``; in memory when it is None.

    Readers see every commit of other processes at their next call. Writers hold the projection's FileLock;
    Tantivy's own lock is a kernel lock as well and outlives nobody. Every method but ``watermark`` raises
    ProjectionUnavailable when the directory is missing or damaged.
    """

    name = "lexicon"

    def __init__(self, path: Path | None) -> None:
        self.path = path
        self._index: tantivy.Index | None = None
        self._stems: tantivy.TextAnalyzer | None = None
        self._whole: Seen = set()
        self._mark: Watermark | None = None
        self._seen: Commit | None = None
        self._copied: tuple[tuple[int, int], tempfile.TemporaryDirectory[str]] | None = None

    def watermark(self) -> Watermark | None:
        """Return what it has reached, None when it is empty, missing or unreadable."""
        try:
            with self._edge():
                self._open()
                return self._mark if self.path is None else read_mark(self.path, FORMAT)
        except ProjectionUnavailable:
            return None

    def apply(self, rows: Sequence[ProjectionRow], reached: Watermark) -> None:
        """Bring the rows in, in one commit, and record the watermark; applying twice changes nothing.

        Raises ProjectionBusy when another process is writing.
        """
        latest = {row.id: row for row in rows}
        with self._edge():
            index = self._open_for_writing()
            writer = index.writer(_HEAP_BYTES, 1)
            self._discard_leftovers()
            if damaged := self.damaged_files():
                raise ProjectionUnavailable(f"{self.path}/{damaged[0]} is damaged: run castle repair")
            index.reload()
            held = self._seqs(index, list(latest))
            for id_, row in latest.items():
                if held.get(id_) == row.seq and row.state != "forgotten":
                    continue  # a writer that was killed before it could say so has brought it in
                if id_ in held:
                    writer.delete_documents_by_term("id", id_)
                if row.state != "forgotten":
                    writer.add_document(document_of(row))
            writer.commit()
            # Merging is what keeps the number of segments small; leaving earlier would abandon it.
            writer.wait_merging_threads()
            if self.path is not None:
                write_mark(self.path, FORMAT, reached)
                self._sums().note()
            self._mark = reached
            self._index = index

    def search(self, text: str, scope: Scope, limit: int, *, quoted: bool = False) -> LexicalMatches:
        """Return the drawers in scope that share words with ``text``, best BM25 score first.

        Any text is a legal query; one without words matches nothing. Text in quotation marks counts again as
        a phrase; with ``quoted`` only drawers that hold one of these phrases match. ``scope.source`` is a
        source key. ``scope.as_of`` may let through drawers that were away at that time and came back later:
        the ledger knows.
        """
        matches = LexicalMatches()
        text = legal_text(text)
        if limit <= 0:
            return matches
        with self._edge():
            index = self._open()
            searcher = index.searcher()
            asked = self._asked(text)
            if len(asked) > MAX_WORDS:
                matches.truncated = True
                rarity = {stem: searcher.doc_freq("body", stem) or 2**31 for stem in asked}
                asked = {stem: asked[stem] for stem in sorted(asked, key=rarity.__getitem__)[:MAX_WORDS]}
            if not asked:
                return matches
            terms = {stem: _terms(searcher, stem, word) for stem, word in asked.items()}
            exact = [phrase for part in phrases(text) if (phrase := self._analyze(part))]
            if quoted and not exact:
                return matches
            matches.truncated |= len(exact) > MAX_PHRASES
            query = self._query(index, terms, exact[:MAX_PHRASES], scope, quoted)
            hits = searcher.search(query, limit + _SLACK, False).hits
            if len(hits) == limit + _SLACK and hits[-1][0] == hits[limit - 1][0]:
                hits = searcher.search(query, limit + _MUCH_SLACK, False).hits
            documents = [(float(score), searcher.doc(address), _place(address)) for score, address in hits]
            found = [(score, str(d.get_first("id")), d.get_first("sha256"), at) for score, d, at in documents]
            found = sorted(found, key=lambda item: (-item[0], item[1]))[:limit]
            spelled = {asked[stem]: list(terms[stem]) for stem in asked}
            matched = self._matched(index, searcher, spelled, {at: id_ for _, id_, _, at in found})
        matches += [
            LexicalMatch(id_, score, bytes(digest or b"").hex(), matched[at])
            for score, id_, digest, at in found
        ]
        return matches

    def spread(self, text: str, scope: Scope, sources: Sequence[str]) -> dict[int, int]:
        """Return which words of ``text`` each drawer of the sources has: by its change number, as bits.

        Of more than SPREAD_WORDS words the rarest are looked for, of more than SPREAD_DRAWERS drawers those
        that have most.
        """
        import tantivy

        query, should, must = tantivy.Query, tantivy.Occur.Should, tantivy.Occur.Must
        with self._edge():
            index = self._open()
            searcher, schema = index.searcher(), index.schema
            asked = self._asked(legal_text(text))
            rarest = sorted(asked, key=lambda stem: searcher.doc_freq("body", stem) or NEVER)
            inside = query.term_set_query(schema, "source", [legal_text(source) for source in sources])
            clauses = [*self._filters(index, scope), (must, query.const_score_query(inside, 0.0))]
            for bit, stem in enumerate(rarest[:SPREAD_WORDS]):
                fields = [("title", stem), *(("body", term) for term in _terms(searcher, stem, asked[stem]))]
                any_of = [(should, query.term_query(schema, field, term)) for field, term in fields]
                worth = query.const_score_query(query.boolean_query(any_of), float(1 << bit))
                clauses.append((should, worth))
            hits = searcher.search(query.boolean_query(clauses), SPREAD_DRAWERS, False).hits
            numbers = searcher.fast_field_values("seq", [address for _, address in hits])
        return {int(seq or 0): int(score) for seq, (score, _) in zip(numbers, hits, strict=True)}

    def count(self) -> int:
        """Return the number of drawers it holds."""
        with self._edge():
            return int(self._open().searcher().num_docs)

    def ids_present(self, ids: Collection[str]) -> set[str]:
        """Return those of the ids that it holds."""
        with self._edge():
            return set(self._seqs(self._open(), list(ids)))

    def _seqs(self, index: tantivy.Index, ids: Sequence[str]) -> dict[str, int]:
        """Return the change numbers with which it holds drawers."""
        import tantivy

        wanted = [legal_text(id_) for id_ in ids]
        searcher = index.searcher()
        found: dict[str, int] = {}
        for start in range(0, len(wanted) if searcher.num_docs else 0, _IDS_AT_ONCE):
            part = wanted[start : start + _IDS_AT_ONCE]
            query = tantivy.Query.term_set_query(index.schema, "id", part)
            for _, address in searcher.search(query, len(part), False).hits:
                document = searcher.doc(address)
                found[str(document.get_first("id"))] = int(document.get_first("seq") or 0)
        return found

    def _sums(self) -> Sums:
        return Sums(self.path or Path("memory"), changing=(_META,), passed_over=(MARK_FILE,))

    def _check(self, directory: Path) -> None:
        """Raise ProjectionUnavailable for files that have changed since they were written.

        The list of segments is another after each commit. A writer that was killed before it could note that
        has added files which nobody has noted either.
        """
        sums = Sums(directory, changing=(_META,), passed_over=(MARK_FILE,))
        damaged = sums.damaged()
        if damaged == [_META] and not live_files(directory) <= sums.names():
            return
        if damaged:
            raise ProjectionUnavailable(f"{directory / damaged[0]} is damaged: run castle repair")

    def damaged_files(self) -> list[str]:
        """Return the names of files that are not as they were written; whole ones are not read again."""
        if self.path is None or not (self.path / "meta.json").exists():
            return []
        return damaged_files(self.path, self._whole)

    def disk_bytes(self) -> int:
        """Return the size of its files, 0 when there are none."""
        return disk_bytes(self.path) if self.path is not None else 0

    def reset(self) -> None:
        """Throw everything away."""
        self.close()
        if self.path is None:
            return
        # Renamed first, so that no reader ever sees half a directory.
        if self.path.exists():
            self.path.rename(self.path.with_name(f"{self.path.name}.discarded-{secrets.token_hex(4)}"))
        for old in self.path.parent.glob(f"{self.path.name}.discarded-*"):
            shutil.rmtree(old, ignore_errors=True)

    def close(self) -> None:
        """Let go of its files; the next call opens them again."""
        self._index = None
        if self._copied is not None:
            self._copied[1].cleanup()
            self._copied = None

    # Opening

    def _edge(self) -> Any:
        return native_edge("index of words", self.path or Path("memory"))

    def _open(self) -> tantivy.Index:
        """Return the index as of the last commit of any process."""
        if self._index is not None and self._copied is None:
            commit = self._commit()
            try:
                if commit is None or commit != self._seen:
                    self._index.reload()
                    self._seen = commit
            except ValueError:
                # Another process threw the directory away; what is there now is opened below.
                if self.path is None:
                    raise
                self._index = None
        if self.path is None:
            if self._index is None:
                raise ProjectionUnavailable("nothing was put into the index of words yet")
            return self._index
        if self._index is None or self._copied is not None:
            if not (self.path / "meta.json").exists():
                self._index = None
                raise ProjectionUnavailable(f"there is no index of words at {self.path}: run castle repair")
            if os.access(self.path, os.W_OK):
                self._index = self._opened(self.path)
            else:
                self._open_copy(self.path)
        if self._index is None:
            raise ProjectionUnavailable(f"there is no index of words at {self.path}: run castle repair")
        return self._index

    def _commit(self) -> Commit | None:
        """Return the file of the last commit, which each one replaces; None in memory, or where none is."""
        try:
            status = (self.path / _META).stat() if self.path is not None else None
        except OSError:
            return None
        return (status.st_ino, status.st_mtime_ns, status.st_size) if status else None

    def _opened(self, directory: Path) -> tantivy.Index:
        import tantivy

        self._check(directory)
        index = tantivy.Index(schema(), path=str(directory), reuse=True)
        index.config_reader("manual")
        # Analyzers are not stored in the directory: each opening registers its own.
        index.register_tokenizer(ANALYZER, self._analyzer())
        index.reload()
        return index

    def _open_copy(self, source: Path) -> None:
        """Open a directory that cannot be written through links to its files, because Tantivy's readers lock.

        Made again whenever the original has another commit.
        """
        status = (source / "meta.json").stat()
        version = (status.st_ino, status.st_mtime_ns)
        if self._index is not None and self._copied is not None and self._copied[0] == version:
            return
        copy = tempfile.TemporaryDirectory(prefix="castle-lexicon-")
        for file in source.iterdir():
            if file.suffix == ".json":
                shutil.copyfile(file, Path(copy.name) / file.name)
            elif not file.name.startswith("."):
                (Path(copy.name) / file.name).symlink_to(file.absolute())
        self._copied = (version, copy)
        self._index = self._opened(Path(copy.name))

    def _open_for_writing(self) -> tantivy.Index:
        """Return an index that has just read the list of its files, which a writer needs to clean up."""
        import tantivy

        if self.path is not None:
            self.close()
            self.path.mkdir(mode=0o700, exist_ok=True)
            return self._opened(self.path)
        if self._index is None:
            self._index = tantivy.Index(schema())
            self._index.config_reader("manual")
            self._index.register_tokenizer(ANALYZER, self._analyzer())
        return self._index

    def _discard_leftovers(self) -> None:
        """Delete what writers left that were killed; the caller holds Tantivy's lock."""
        if self.path is not None:
            for file in (*self.path.glob(".tmp*"), *abandoned_deletions(self.path)):
                file.unlink(missing_ok=True)

    def _analyzer(self) -> tantivy.TextAnalyzer:
        import tantivy

        if self._stems is None:
            builder = tantivy.TextAnalyzerBuilder(tantivy.Tokenizer.whitespace())
            self._stems = builder.filter(tantivy.Filter.stemmer("english")).build()
        return self._stems

    # Text to terms

    def _analyze(self, text: str) -> list[str]:
        return list(self._analyzer().analyze(words_of(text)))

    def _asked(self, text: str) -> dict[str, str]:
        """Return each distinct stem of the query with the word it stands for."""
        spaced = words_of(text).split(" ")
        stems: dict[str, str] = {}
        for word in dict.fromkeys(spaced):
            for stem in self._analyzer().analyze(word):
                stems.setdefault(stem, word)
        return stems

    # Queries

    def _term(self, index: tantivy.Index, field: str, value: str) -> tantivy.Query:
        import tantivy

        return tantivy.Query.term_query(index.schema, field, legal_text(value), "basic")

    def _query(
        self,
        index: tantivy.Index,
        terms: Mapping[str, Mapping[str, float]],
        exact: Iterable[list[str]],
        scope: Scope,
        quoted: bool,
    ) -> tantivy.Query:
        import tantivy

        query, should, schema = tantivy.Query, tantivy.Occur.Should, index.schema
        any_of: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for stem, spelled in terms.items():
            body = [
                query.boost_query(query.term_query(schema, "body", term), factor)
                for term, factor in spelled.items()
            ]
            any_of.append((should, body[0] if len(body) == 1 else query.disjunction_max_query(body)))
            title = query.term_query(schema, "title", stem)
            any_of.append((should, query.boost_query(title, TITLE_WEIGHT)))
        needed: list[tuple[tantivy.Occur, tantivy.Query]] = []
        for phrase in exact:
            if len(phrase) == 1:
                needed.append((should, query.term_query(schema, "body", phrase[0])))
                continue
            whole = query.phrase_query(schema, "body", list(phrase))
            needed.append((should, whole))
            any_of.append((should, query.boost_query(whole, PHRASE_WEIGHT)))
        clauses = [(tantivy.Occur.Must, query.boolean_query(any_of)), *self._filters(index, scope)]
        if quoted:
            one_of = query.const_score_query(query.boolean_query(needed), 0.0)
            clauses.append((tantivy.Occur.Must, one_of))
        return query.boolean_query(clauses)

    def _filters(self, index: tantivy.Index, scope: Scope) -> list[tuple[tantivy.Occur, tantivy.Query]]:
        """Return the scope as clauses that add nothing to a score."""
        import tantivy

        query, schema, integer = tantivy.Query, index.schema, tantivy.FieldType.Integer
        wanted = {"wing": scope.wing, "room": scope.room, "role": scope.role, "source": scope.source}
        must = [self._term(index, field, value) for field, value in wanted.items() if value is not None]
        if scope.as_of is not None:
            must.append(query.range_query(schema, "filed_at", integer, None, scope.as_of))
            must.append(query.range_query(schema, "ended_at", integer, scope.as_of, include_lower=False))
        elif not scope.history:
            must.append(self._term(index, "state", "current"))
        if scope.since is not None:
            must.append(query.range_query(schema, "authored_at", integer, scope.since))
        if scope.until is not None:
            must.append(
                query.range_query(schema, "authored_at", integer, None, scope.until, include_upper=False)
            )
        kinds = query.term_set_query(schema, "kind", [legal_text(k) for k in scope.kinds or HIDDEN_KINDS])
        clauses = [(tantivy.Occur.Must, query.const_score_query(part, 0.0)) for part in must]
        if scope.kinds:
            return [*clauses, (tantivy.Occur.Must, query.const_score_query(kinds, 0.0))]
        return [*clauses, (tantivy.Occur.MustNot, kinds)]

    def _matched(
        self,
        index: tantivy.Index,
        searcher: tantivy.Searcher,
        spelled: Mapping[str, Sequence[str]],
        ids: Mapping[Place, str],
    ) -> dict[Place, tuple[str, ...]]:
        """Return the words of the query, given with their terms, that each of the drawers has.

        One search answers for ``_BITS`` words: each word scores its own power of two, and the sum spells
        which of them a drawer has.
        """
        import tantivy

        query, should, schema = tantivy.Query, tantivy.Occur.Should, index.schema
        # One query an id: a set of terms is looked for in the list of all terms, three times as long.
        one_of = [(should, self._term(index, "id", id_)) for id_ in ids.values()]
        among = query.const_score_query(query.boolean_query(one_of), 0.0)
        matched: dict[Place, list[str]] = {place: [] for place in ids}
        every = list(spelled)
        for start in range(0, len(every) if ids else 0, _BITS):
            part = every[start : start + _BITS]
            clauses = [(tantivy.Occur.Must, among)]
            for bit, word in enumerate(part):
                places = [("body", term) for term in spelled[word]] + [("title", spelled[word][0])]
                fields = [(should, query.term_query(schema, field, term)) for field, term in places]
                clauses.append(
                    (should, query.const_score_query(query.boolean_query(fields), float(1 << bit)))
                )
            for score, address in searcher.search(query.boolean_query(clauses), len(ids), False).hits:
                bits = int(score)
                matched[_place(address)] += [word for bit, word in enumerate(part) if bits >> bit & 1]
        return {place: tuple(found) for place, found in matched.items()}


def _place(address: tantivy.DocAddress) -> Place:
    return address.segment_ord, address.doc


def _terms(searcher: tantivy.Searcher, stem: str, word: str) -> dict[str, float]:
    """Return the terms for a word of the query: its English stem, and other stems that texts have.

    The factor of a term makes it as rare as the most frequent of them: a word is not rarer for being looked
    for in the texts of one language.
    """
    held = {term: searcher.doc_freq("body", term) for term in (stem, *stems_anywhere(word))}
    least = min(_rarity(searcher.num_docs, count) for count in held.values())
    return {
        term: least / _rarity(searcher.num_docs, count)
        for term, count in held.items()
        if count or term == stem
    }


def _rarity(drawers: int, having: int) -> float:
    """Return the inverse document frequency of Tantivy's BM25: ln(1 + (N - n + 0.5) / (n + 0.5))."""
    return math.log1p((max(drawers, having) - having + 0.5) / (having + 0.5))

"""Each question set from a few records in its own format."""

from __future__ import annotations

import json
import lzma
from pathlib import Path
from typing import Any

import pytest

from benchmarks.retrieval.cases import Case, half, selected
from benchmarks.retrieval.readers import beam, beir, convomem, locomo, longmemeval, membench, realtalk, xquad
from castle.clock import to_iso


def dump(path: Path, value: object) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


LME: dict[str, Any] = {
    "question_id": "q1_abs",
    "question_type": "temporal-reasoning",
    "question": "When did I buy the lamp?",
    "question_date": "2023/05/30 (Tue) 03:23",
    "answer_session_ids": ["s2"],
}
TURNS = [[{"role": "user", "content": "Hello\u2028there"}], [{"role": "user", "content": "I bought a lamp"}]]


def packed(path: Path, rows: list[dict[str, Any]]) -> None:
    with lzma.open(path, "wt", encoding="utf-8") as file:
        file.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


def test_longmemeval_reads_alike_from_both_layouts(tmp_path: Path) -> None:
    dates = ["2023/05/20 (Sat) 00:43", "2023/05/21 (Sun) 07:00"]
    turns = [TURNS[0], [{**TURNS[1][0], "has_answer": True}]]
    whole = {**LME, "haystack_session_ids": ["s1", "s2"], "haystack_dates": dates, "haystack_sessions": turns}
    (tmp_path / "split").mkdir()
    own = {**LME, "evidence_turns": [["s2", 0]], "haystack": [["s1", dates[0]], ["s2", dates[1]]]}
    packed(tmp_path / "split" / "questions.jsonl.xz", [own])
    sessions = [{"session_id": "s1", "turns": TURNS[0]}, {"session_id": "s2", "turns": TURNS[1]}]
    packed(tmp_path / "split" / "sessions.jsonl.xz", sessions)
    one = longmemeval.read(dump(tmp_path / "all.json", [whole]))
    other = longmemeval.read(tmp_path / "split")
    assert one.cases == other.cases
    (case,) = one.cases
    (question,) = case.questions
    assert not question.answered
    assert question.sessions == {"s2"}
    assert question.turns == {"s2#0"}
    assert question.now is not None
    assert to_iso(question.now).startswith("2023-05-30T03:23")
    assert [m.record()["time"][:16] for m in case.messages] == ["2023-05-20T00:43", "2023-05-21T07:00"]


def test_locomo_reads_evidence_in_every_spelling(tmp_path: Path) -> None:
    talk = {
        "session_1_date_time": "1:56 pm on 8 May, 2023",
        "session_1": [
            {"speaker": "Ann", "dia_id": "D1:1", "text": "I sold the boat."},
            {"speaker": "Ben", "dia_id": "D1:2", "text": "Which one?"},
        ],
    }
    asked = [
        {"question": "What did Ann sell?", "category": 4, "evidence": ["D1:1; D01:2", "D9:9"]},
        {"question": "Why?", "category": 5, "evidence": ["D1:2"]},
        {"question": "Who?", "category": 1, "evidence": []},
    ]
    path = dump(tmp_path / "l.json", [{"sample_id": "conv-1", "conversation": talk, "qa": asked}])
    found = locomo.read(path)
    (case,) = found.cases
    first, second = case.questions
    assert first.turns == {"session_1#D1:1", "session_1#D1:2"}
    assert (first.answered, second.answered) == (True, False)
    assert found.notes == ("1 questions name no turn as evidence and are left out",)
    assert case.messages[0].speaker == "Ann"


def test_xquad_asks_each_language_and_across(tmp_path: Path) -> None:
    for name in ("en", "de"):
        asked = [{"id": "1", "question": f"{name}?", "answers": []}, {"id": "2", "question": "second?"}]
        dump(
            tmp_path / f"xquad.{name}.json",
            {"data": [{"title": "t", "paragraphs": [{"context": f"{name} text", "qas": asked}]}]},
        )
    own = xquad.read(tmp_path)
    assert [case.name for case in own.cases] == ["de", "en"]
    assert [q.sessions for q in own.cases[0].questions] == [{"de-0"}, {"de-0"}]
    (case,) = xquad.read_across(tmp_path).cases
    assert [(q.text, q.wing, set(q.sessions)) for q in case.questions] == [
        ("de?", "en", {"en-0"}),
        ("en?", "de", {"de-0"}),
    ]


def test_beir_takes_relevant_documents_that_are_there(tmp_path: Path) -> None:
    (tmp_path / "qrels").mkdir()
    rows = [{"_id": "d1", "title": "Boats", "text": "a boat"}, {"_id": "d2", "title": "", "text": "b"}]
    queries = [{"_id": "q1", "text": "boat"}, {"_id": "q2", "text": "gone"}, {"_id": "q3", "text": "other"}]
    for name, listed in (("corpus", rows), ("queries", queries)):
        lines = "".join(json.dumps(row) + "\n" for row in listed)
        (tmp_path / f"{name}.jsonl").write_text(lines, encoding="utf-8")
    judged = "query-id\tcorpus-id\tscore\nq1\td1\t2\nq1\td2\t0\nq2\td9\t1\n"
    (tmp_path / "qrels" / "test.tsv").write_text(judged, encoding="utf-8")
    found = beir.read(tmp_path)
    (question,) = found.cases[0].questions
    assert question.id == "q1"
    assert question.sessions == {"d1"}
    assert found.notes == ("1 queries have no relevant document in the corpus and are left out",)
    with pytest.raises(SystemExit, match="no qrels"):
        beir.read(tmp_path / "qrels")


def test_convomem_finds_evidence_by_its_words(tmp_path: Path) -> None:
    item = {
        "question": "How many children?",
        "answer": "3",
        "category": "user facts",
        "message_evidences": [{"speaker": "User", "text": "I have three children"}],
        "conversations": [
            {
                "id": "c",
                "messages": [
                    {"speaker": "User", "text": "Well, I have three children."},
                    {"speaker": "Assistant", "text": "How nice"},
                ],
            }
        ],
    }
    lost = {**item, "message_evidences": [{"speaker": "User", "text": "never said"}]}
    found = convomem.read(dump(tmp_path / "one.json", {"evidence_items": [item, lost]}))
    (case,) = found.cases
    assert case.questions[0].turns == {"c#0"}
    assert [message.role for message in case.messages] == ["user", "assistant"]
    assert found.notes == ("1 items name no evidence that is in their conversations",)


def test_membench_reads_dialogues_and_streams(tmp_path: Path) -> None:
    talk = {
        "message_list": [{"user": "I moved to Porto. time: '2024-10-01 08:00'", "agent": "Noted."}],
        "QA": {"question": "Where?", "target_step_id": [[0, 0]], "time": "'2024-10-02 09:00'"},
    }
    stream = {"message_list": ["Avery moved.", "Avery left."], "QA": {"question": "?", "target_step_id": "1"}}
    lost = {**stream, "QA": {"question": "?", "target_step_id": [7]}}
    path = dump(tmp_path / "m.json", {"simple": {"roles": [talk], "events": [stream, lost]}})
    found = membench.read(path)
    first, second = found.cases
    assert first.questions[0].turns == {"0#0-user", "0#0-assistant"}
    assert to_iso(first.messages[0].time or 0).startswith("2024-10-01T08:00")
    assert second.questions[0].kind == "events"
    assert second.questions[0].turns == {"0#1-user"}
    assert found.notes == ("1 records name no step as evidence",)


def test_beam_reads_batches_and_nested_ids(tmp_path: Path) -> None:
    turns = [
        [
            {"id": 7, "role": "user", "content": "My code is cobalt.", "time_anchor": "March-15-2024"},
            {"id": 8, "role": "assistant", "content": "Noted."},
        ]
    ]
    chat = [{"batch_number": 1, "turns": turns}, {"batch_number": 2, "turns": turns}]
    dump(tmp_path / "1" / "chat.json", chat)
    asked = {
        "information_extraction": [{"question": "What?", "source_chat_ids": {"first": [8]}}],
        "abstention": [{"question": "Who?"}],
    }
    dump(tmp_path / "1" / "probing_questions" / "probing_questions.json", asked)
    found = beam.read(tmp_path)
    (case,) = found.cases
    assert case.questions[0].turns == {"0#1", "1#1"}
    assert to_iso(case.messages[1].time or 0).startswith("2024-03-15")
    assert found.notes == ("1 questions name no message as evidence and are left out",)


def test_realtalk_reads_sessions_and_dates(tmp_path: Path) -> None:
    chat = {
        "name": {"speaker_1": "Ann"},
        "session_1": [
            {
                "clean_text": "Good day",
                "speaker": "Ann",
                "date_time": "29.12.2023, 15:04:05",
                "dia_id": "D1:1",
            }
        ],
        "events_session_1": [{"not": "a message"}],
        "qa": [{"question": "What?", "category": 1, "evidence": ["D1:1"]}],
    }
    (case,) = realtalk.read(dump(tmp_path / "Chat_1.json", chat)).cases
    assert case.questions[0].turns == {"session_1#D1:1"}
    assert to_iso(case.messages[0].time or 0).startswith("2023-12-29T15:04:05")


def test_a_selection_is_even_by_kind_and_a_half_keeps_its_cases(tmp_path: Path) -> None:
    asked = [{"question": f"{n}?", "category": 1 + n % 2, "evidence": ["D1:1"]} for n in range(20)]
    said = [{"speaker": "A", "dia_id": "D1:1", "text": "x"}]
    talk = {"session_1_date_time": "1:56 pm on 8 May, 2023", "session_1": said}
    rows = [{"sample_id": f"c{n}", "conversation": talk, "qa": asked} for n in range(4)]
    cases = locomo.read(dump(tmp_path / "l.json", rows)).cases
    kinds = [question.kind for case in selected(cases, "all", 8) for question in case.questions]
    assert sorted(kinds) == ["1 multi-hop"] * 4 + ["2 temporal"] * 4
    split = [{case.name for case in selected(cases, name, None)} for name in "ab"]
    assert split[0] | split[1] == {"c0", "c1", "c2", "c3"}
    assert not split[0] & split[1]
    assert {half(case.name) for case in selected(cases[1:], "a", None)} <= {"a"}
    assert Case("x").hash == Case("y").hash

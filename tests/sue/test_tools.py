"""The two tools, called as a host calls them."""

from __future__ import annotations

from typing import Any, cast

import pytest
from mcp.server.mcpserver.exceptions import ToolError

from castle.mcp.tools import Tools
from castle.sue.worker import work
from tests.sue.conftest import Required
from tests.sue.scripted import DECISION, REVIEW, Script


def called(tools: Tools, name: str, **given: Any) -> dict[str, Any]:
    return cast(dict[str, Any], getattr(tools, name)(**given).structured_content)


def test_a_review_is_begun_and_told_of(required: Required, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("castle.sue.processes.start", lambda run: work(run, Script(*REVIEW)))
    tools = Tools(str(required.castle.root))
    begun = called(tools, "sue_review", drawer_ids=required.ids, decision=DECISION, max_turns=14)["review"]
    assert (begun["status"], begun["terminal_state"]) == ("completed", "RESOLVED")
    assert begun["drawer_ids"] == list(required.ids)
    told = called(tools, "sue_status", run_id=begun["run_id"])
    assert told["reviews"] == [begun]
    assert told["report"].startswith("<castle-recall")
    assert "# Review of requirements: euthyphro" in told["report"]
    assert begun["claim"].startswith("<castle-recall")
    listed = called(tools, "sue_status")
    assert (listed["total"], len(listed["lenses"])) == (1, 9)
    with pytest.raises(ToolError, match="no review"):
        tools.sue_status(run_id="f" * 32)


def test_they_are_offered_to_those_who_ask_for_all() -> None:
    tiers = {method.__name__: offer for method, offer in Tools().all()}
    assert (tiers["sue_review"].tier, tiers["sue_review"].kind) == ("all", "adds")
    assert (tiers["sue_status"].tier, tiers["sue_status"].kind) == ("all", "reads")

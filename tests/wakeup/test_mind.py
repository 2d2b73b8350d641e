"""What an agent is woken up with of the mind, inside the budget of the page."""

from __future__ import annotations

from pathlib import Path

from castle import Castle


def test_preferences_open_work_and_what_is_over_stand_on_the_page(tmp_path: Path) -> None:
    with Castle(tmp_path / "palace", embedder="fake") as castle:
        castle.add("The shop sells lanterns.", wing="shop", room="notes")
        before = castle.wake_up().text
        assert "In mind" not in before
        castle.memory_inject_preference("I like short answers", confidence=0.8)
        castle.memory_save("mend the awning", "working", {"session_id": "s"})
        fact = castle.memory_save("The shop opens at six", "semantic", {"confidence": 0.9}).memory
        castle.memory_forget(fact.id, expire=True, reason="winter")
        page = castle.wake_up()
        for line in ("- I like short answers", "- mend the awning", "- The shop opens at six (until "):
            assert line in page.text
        assert page.tokens <= 900
        for number in range(40):
            castle.memory_save(f"long open work number {number} " + "and more " * 40, "working")
        full = castle.wake_up()
        assert full.tokens <= 900
        assert full.text.count("long open work") < 8
        assert full.drawers[:1] == page.drawers[:1]

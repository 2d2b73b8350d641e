import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from castle.config import Room
from castle.errors import UsageError
from castle.mine.rooms import FOLDER_ROOMS, Words, detect_rooms, normalize_wing, room_for, valid_name


def names(*paths: str) -> list[str]:
    return [room.name for room in detect_rooms(paths)]


def test_known_folders_at_the_top_and_one_deeper() -> None:
    assert names("client/a.js", "src/api/b.py", "docs/c.md") == [
        "frontend",
        "documentation",
        "src",
        "backend",
        "general",
    ]
    assert names("a/b/tests/x.py") == ["general"]


def test_unknown_folders_are_rooms_of_their_own() -> None:
    assert names("Novel Drafts/a.md", "ab/b.md", ".hidden/c.md", "2024/d.md") == ["novel_drafts", "general"]
    assert names("设计/a.md") == ["设计", "general"]
    assert names("हिन्दी/a.md") == ["हिन्दी", "general"]


def test_file_names_when_folders_suggest_nothing() -> None:
    assert names("meeting-may.md", "meeting_june.md", "BudgetPlan.md", "x.md") == ["meetings", "general"]
    many = [
        f"{word}{n}.md"
        for word in ("api", "docs", "design", "cost", "meeting", "team", "research")
        for n in "-a -b".split()
    ]
    assert len(names(*many)) == 7
    assert names() == ["general"]


def test_general_is_last_and_once() -> None:
    assert names("general/a.md", "docs/b.md") == ["documentation", "general"]


def test_rooms_carry_the_words_that_lead_to_them() -> None:
    (frontend, general) = detect_rooms(["client/a.js"])
    assert "client" in frontend.keywords and "frontend" not in frontend.keywords
    assert frontend.description and general.keywords == ()


def test_about_seventy_five_words_are_known() -> None:
    assert len(FOLDER_ROOMS) >= 75


ROOMS = (
    Room("ui", "", ("a", "screens")),
    Room("backend", "", ("api", "server", "road map")),
    Room("docs", "", ("readme",)),
    Room("general"),
)


@pytest.mark.parametrize(
    ("path", "head", "room"),
    [
        ("ui/x.md", "server server", "ui"),
        ("guide/build/suite/x.md", "", "general"),
        ("area/banana/x.md", "", "general"),
        ("Backend/docs/x.md", "", "backend"),
        ("src/docs/server/x.md", "", "docs"),
        ("my-api-v2/x.md", "", "backend"),
        ("x/theServerCode.py", "", "backend"),
        ("x/README.md", "", "docs"),
        ("x/rebuilding.md", "", "general"),
        ("Road-Map/x.md", "", "backend"),
        ("x/y.md", "The api and the API; the docs.", "backend"),
        ("x/y.md", "apis, serverless, documentation", "general"),
        ("x/y.md", " " * 2000 + "server", "general"),
        ("x/y.md", "the road\nmap", "backend"),
        ("x/y.md", "", "general"),
        ("general/x.md", "server", "backend"),
        (".env", "", "general"),
    ],
)
def test_routing_goes_by_whole_words(path: str, head: str, room: str) -> None:
    assert room_for(path, head, ROOMS) == room


def test_routing_in_scripts_without_spaces() -> None:
    rooms = (Room("db", "", ("データベース",)), Room("plan", "", ("계획",)))
    assert room_for("x.md", "私たちはデータベースを使う", rooms) == "db"
    assert room_for("x.md", "오늘 계획 회의", rooms) == "plan"


def test_words_are_whole_and_caseless() -> None:
    assert Words("Art, art; party ART_2 start").count("art") == 3
    assert Words("x").count("") == 0
    assert Words("C++ and c++").count("c++") == 2
    assert Words("Cafe\u0301 STRASSE İzmir").count("café") == 1
    assert Words("STRASSE").count("Straße") == 1
    assert Words("art of art-house, C++").distinct(("Art", "c++", "art house", "music", "")) == 3
    assert Words("art of art-house, C++").total(("Art", "c++", "art house", "music", "")) == 4


PARTS = st.sampled_from(["a", "A", "ab", "é", "1", "データ", "c++", "'"])


@given(
    st.lists(PARTS | st.sampled_from(list(" _-.\n,")), max_size=30).map("".join),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(list(" _-")),
)
def test_words_are_counted_as_a_search_would(text: str, parts: list[str], joint: str) -> None:
    escaped = r"[\s_-]+".join(map(re.escape, parts))
    before = "" if parts[0] == "データ" else r"(?<![^\W_])"
    after = "" if parts[-1] == "データ" else r"(?![^\W_])"
    found = re.findall(before + escaped + after, text, re.IGNORECASE)
    assert Words(text).count(joint.join(parts)) == len(found)


def test_files_and_folders_in_scripts_with_marks() -> None:
    rooms = (Room("हिन्दी"), Room("हिन्द"))
    assert room_for("x/हिन्दी पाठ.md", "", rooms) == "हिन्दी"
    assert room_for("x/y.md", "यह हिन्दी है", rooms) == "हिन्दी"


@pytest.mark.parametrize("name", ["a", "my_app", "O'Brien", "v1.2", "Ünï côde", "设计", "a-b", "हिन्दी"])
def test_valid_names(name: str) -> None:
    valid_name("room", name)


@pytest.mark.parametrize(
    "name", ["", " ", " a", "a ", "_a", "a_", "a/b", "a\\b", "a..b", "a\0b", "x" * 129, "..", "a\nb"]
)
def test_invalid_names_say_why(name: str) -> None:
    with pytest.raises(UsageError, match="room"):
        valid_name("room", name)


@pytest.mark.parametrize(
    ("name", "wing"),
    [
        ("My App", "my_app"),
        ("my-cool-app", "my_cool_app"),
        (".dotfiles", "dotfiles"),
        ("a..b", "a_b"),
        ("v1.2", "v1.2"),
    ]
    + [
        ("  ", "unnamed"),
        ("Ünï", "ünï"),
        ("u\u0308ber", "über"),
        ("हिन्दी", "हिन्दी"),
        ("ภาษาไทย ที่", "ภาษาไทย_ที่"),
        ("J\u030cx", "\u01f0x"),
        ("\u0301a\u0301", "á"),
        ("_\u0301_", "unnamed"),
        ("__x__", "x"),
        ("a/b", "a_b"),
        ("\udce9x", "x"),
    ],
)
def test_wings(name: str, wing: str) -> None:
    assert normalize_wing(name) == wing


@settings(deadline=None)
@given(st.text(st.characters() | st.characters(categories=["Mn", "Mc", "Me", "Lu"]), max_size=200))
def test_a_wing_is_always_a_valid_name_and_stays_itself(name: str) -> None:
    wing = normalize_wing(name)
    valid_name("wing", wing)
    assert normalize_wing(wing) == wing

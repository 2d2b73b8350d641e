from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from castle.errors import UsageError
from castle.mind.conditions.rules import (
    MAX_CHECKS,
    MAX_GROUPS_DEEP,
    OPERATORS,
    Environment,
    FileState,
    baseline_of,
    evaluate,
    files_of,
    read_condition,
    to_json_value,
)
from castle.mind.conditions.values import compare, look_up, read_version

VALUES: dict[str, Any] = {
    "node_version": "v18.19.0",
    "python_version": "3.11.4",
    "replicas": 3,
    "debug": True,
    "os": "Linux",
    "services": ["redis", "postgres"],
    "package.json": {"react": "^18.2.0", "@scope/x": "1.0.0", "engines.node": ">=18"},
    "packages": {"react": "18.2.0", "foo-bar": "1.10", "next": "15.0.0-canary.3"},
    "nested": {"a": {"b": 1}},
}
NOW = Environment(VALUES, {"src/app.py": FileState("ab" * 32, 1, 2), "gone.py": FileState()})


def result(expression: object, environment: Environment = NOW, before: Environment | None = None) -> str:
    condition = read_condition(expression)
    return evaluate(condition, environment, baseline_of(condition, before) if before else None).result


def check(field: str, operator: str, value: object = None, **more: object) -> dict[str, object]:
    return {"field": field, "operator": operator, **({} if value is None else {"value": value}), **more}


@pytest.mark.parametrize(
    ("field", "operator", "value", "expected"),
    [
        ("node_version", "<", "20", "met"),
        ("node_version", "<=", "18.19", "met"),
        ("node_version", ">", "9", "met"),
        ("node_version", ">=", "18.19.1", "not_met"),
        ("packages.react", "<", "19.0.0-rc1", "met"),
        ("packages.foo_bar", ">", "1.9", "met"),
        ("packages.next", "<", "15.0.0", "met"),
        ("packages.next", ">", "15.0.0-canary.2", "met"),
        ("replicas", ">=", 3, "met"),
        ("replicas", "<", "2.5", "not_met"),
        ("os", "<", "Windows", "met"),
        ("react_version", "==", "18.2", "met"),
        ("python_version", "==", "3.11.4", "met"),
        ("python_version", "!=", "3.11.4", "not_met"),
        ("debug", "==", True, "met"),
        ("debug", "==", "true", "met"),
        ("services", "contains", "redis", "met"),
        ("services", "contains", "red", "not_met"),
        ("os", "contains", "inu", "met"),
        ("package.json", "not_contains", "vue", "met"),
        ("node_version", "matches", "v18.*", "met"),
        ("os", "matches", "l*", "not_met"),
        ("package.json", "not_found", "vue", "met"),
        ("package.json", "not_found", "react", "not_met"),
        ("services", "not_found", "mysql", "met"),
        ("os", "not_found", "Linux", "not_met"),
        ("nested.a.b", "==", 1, "met"),
        ("package.json.engines.node", "==", ">=18", "met"),
        ("package.json.@scope/x", "==", "1.0.0", "met"),
    ],
)
def test_operators_that_look_at_one_environment(
    field: str, operator: str, value: object, expected: str
) -> None:
    assert result(check(field, operator, value)) == expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        (check("rust_version", ">", "1"), "says nothing about rust_version"),
        (check("nothing", "not_found", "x"), "says nothing about nothing"),
        (check("packages.vue", ">", "3"), "has no packages.vue"),
        (check("package.json.react", ">", "18"), "a range of versions"),
        (check("os", ">", "1.2"), "not both versions"),
        (check("debug", ">", 1), "no order"),
        (check("services", "<", "1"), "no order"),
        (check("node_version", "value_changed"), "nothing is remembered"),
        (check("other.py", "file_modified"), "was not looked at"),
    ],
)
def test_what_is_not_known_is_unknown_and_says_why(expression: object, why: str) -> None:
    verdict = evaluate(read_condition(expression), NOW)
    assert verdict.result == "unknown"
    assert why in verdict.reason


def test_a_number_that_json_has_shortened_is_not_guessed_at() -> None:
    # 1.10 reads as 1.1 in JSON: as a number 1.9 is more, as a version less.
    assert isinstance(compare(1.9, "1.10"), str)
    assert compare(1.5, "1.2") == 1
    assert compare(18, "18.0.1") == -1


@pytest.mark.parametrize(
    ("before", "now", "more", "expected"),
    [
        ("18.2.0", "18.2.0", {}, "not_met"),
        ("18.2.0", "18.3.0", {}, "met"),
        ("18.2", "18.2.0", {}, "not_met"),
        ("^18.2.0", "^19.0.0", {}, "met"),
        ("18.2.0", "18.9.0", {"level": "major"}, "not_met"),
        ("18.2.0", "19.0.0-rc1", {"level": "major"}, "met"),
        ("18.2.0", "18.3.0", {"level": "minor"}, "met"),
        ("18.2.0", "18.2.9", {"level": "minor"}, "not_met"),
        ("18.2.0", "18.2.9", {"level": "patch"}, "met"),
        ("latest", "next", {}, "unknown"),
        ("latest", "latest", {}, "not_met"),
        ("1.0.0-canary.1", "1.0.0-canary.2", {}, "met"),
    ],
)
def test_version_changed(before: str, now: str, more: dict[str, object], expected: str) -> None:
    expression = check("package.json", "version_changed", "react", **more)
    then = Environment({"package.json": {"react": before}})
    assert result(expression, Environment({"package.json": {"react": now}}), then) == expected


def test_value_changed_by_field_by_part_and_by_what_is_gone() -> None:
    part = check("package.json", "value_changed", "react")
    changed = Environment({"package.json": {"react": "^19", "vue": "3"}})
    without = Environment({"package.json": {"vue": "3"}})
    assert result(part, NOW, NOW) == "not_met"
    assert result(part, changed, NOW) == "met"
    assert result(part, without, NOW) == "met"
    assert result(part, NOW, without) == "met"
    assert result(part, Environment({}), NOW) == "unknown"
    assert result(check("package.json", "value_changed"), changed, NOW) == "met"
    assert result(check("package.json", "value_changed"), NOW, NOW) == "not_met"


def test_a_long_value_is_remembered_by_its_hash() -> None:
    expression = read_condition(check("text", "value_changed"))
    baseline = baseline_of(expression, Environment({"text": "x" * 9_000}))
    assert len(str(baseline)) < 200
    assert evaluate(expression, Environment({"text": "x" * 9_000}), baseline).result == "not_met"
    assert evaluate(expression, Environment({"text": "y" * 9_000}), baseline).result == "met"


def test_file_modified_is_about_the_hash_not_the_time() -> None:
    expression = check("src/app.py", "file_modified")
    touched = Environment({}, {"src/app.py": FileState("ab" * 32, 99, 2)})
    edited = Environment({}, {"src/app.py": FileState("cd" * 32, 1, 2)})
    removed = Environment({}, {"src/app.py": FileState()})
    unreadable = Environment({}, {"src/app.py": FileState(problem="it leads out of the project")})
    assert result(expression, touched, NOW) == "not_met"
    assert result(expression, edited, NOW) == "met"
    assert result(expression, removed, NOW) == "met"
    assert result(expression, unreadable, NOW) == "unknown"
    assert result(check("gone.py", "file_modified"), NOW, NOW) == "not_met"
    assert files_of(read_condition({"not": expression})) == {"src/app.py"}


def test_a_baseline_keeps_what_it_remembers_and_takes_in_what_was_not_known() -> None:
    both = read_condition({"any": [check("a", "value_changed"), check("b", "value_changed")]})
    first = baseline_of(both, Environment({"a": 1}))
    second = baseline_of(both, Environment({"a": 2, "b": 3}), first)
    assert evaluate(both, Environment({"a": 2, "b": 3}), second).met
    assert not evaluate(both, Environment({"a": 1, "b": 3}), second).met


TRUE, FALSE, OPEN = check("os", "==", "Linux"), check("os", "!=", "Linux"), check("nowhere", "==", 1)


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        ({"all": [TRUE, TRUE]}, "met"),
        ({"all": [TRUE, OPEN]}, "unknown"),
        ({"all": [OPEN, FALSE]}, "not_met"),
        ({"any": [FALSE, OPEN]}, "unknown"),
        ({"any": [OPEN, TRUE]}, "met"),
        ({"any": [FALSE, FALSE]}, "not_met"),
        ({"not": TRUE}, "not_met"),
        ({"not": OPEN}, "unknown"),
        ({"not": {"any": [FALSE, {"all": [FALSE, OPEN]}]}}, "met"),
    ],
)
def test_groups_have_three_values(expression: object, expected: str) -> None:
    assert result(expression) == expected


@pytest.mark.parametrize(
    ("expression", "why"),
    [
        ([], "condition is not an object"),
        ({}, "condition has no field"),
        (check("a", "value_chagned"), "did you mean value_changed"),
        (check("a", "=="), "needs a value"),
        ({"field": "a", "value": {"b": 1}}, "needs a value"),
        ({"field": "a", "value": 1, "note": "x"}, "has the key 'note'"),
        (check("a", ">", True), "needs a number or a version"),
        (check("a", "contains", 3), "needs a text"),
        (check("a", "value_changed", 3), "is the name of a part of the field"),
        (check("a.py", "file_modified", "x"), "takes no value"),
        (check("../a.py", "file_modified"), "is not the path of a file inside the project"),
        (check("/etc/passwd", "file_modified"), "is not the path of a file inside the project"),
        (check("C:/a.py", "file_modified"), "is not the path of a file inside the project"),
        (check("a", "==", 1, level="major"), "level is for version_changed"),
        (check("a", "version_changed", level="epoch"), "one of major, minor, patch"),
        (check("a", "==", "x" * 1001), "1000 characters at most"),
        (check("a" * 201, "==", 1), "has no field"),
        (check("a\nb", "==", 1), "has no field"),
        ({"all": []}, "condition.all is not a list"),
        ({"all": [{"any": [check("a", "??", 1)]}]}, "condition.all[0].any[0] has the operator"),
        ({"all": [TRUE], "field": "x"}, "into a group"),
        ({"all": [TRUE] * (MAX_CHECKS + 1)}, "checks at most"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_when_it_is_saved(expression: object, why: str) -> None:
    with pytest.raises(UsageError) as caught:
        read_condition(expression)
    message = str(caught.value)
    assert why in message
    assert message.startswith("condition")
    assert len(message.splitlines()) == 1


def test_groups_are_bounded_in_depth() -> None:
    expression: object = TRUE
    for _ in range(MAX_GROUPS_DEEP):
        expression = {"not": expression}
    read_condition(expression)
    with pytest.raises(UsageError, match="deep at most"):
        read_condition({"not": expression})
    for _ in range(100_000):
        expression = {"not": expression}
    with pytest.raises(UsageError, match="deep at most"):
        read_condition(expression)


def test_a_condition_is_written_as_it_was_read() -> None:
    expression = {
        "any": [
            {"not": check("package.json", "version_changed", "react", level="major")},
            {"all": [check("a", "<", 3), check("src/a.py", "file_modified")]},
        ]
    }
    assert to_json_value(read_condition(expression)) == expression
    assert to_json_value(read_condition({"field": "a", "value": 1})) == check("a", "==", 1)


def test_an_absent_field_is_not_a_thing_that_is_gone() -> None:
    assert not look_up(VALUES, "nowhere", "react").known
    assert look_up(VALUES, "package.json", "vue").gone
    assert not look_up(VALUES, "vue_version").known


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=True) | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.sampled_from(OPERATORS), st.text(min_size=1, max_size=10), JSON, JSON, JSON)
def test_evaluation_never_raises(operator: str, name: str, value: Any, then: Any, now: Any) -> None:
    try:
        condition = read_condition(check(name, operator, value))
    except UsageError:
        return
    baseline = baseline_of(condition, Environment({name: then}))
    verdict = evaluate(condition, Environment({name: now}), baseline)
    assert verdict.result in ("met", "not_met", "unknown")
    assert verdict.reason
    assert baseline_of(condition, Environment({name: then})) == baseline or then != then


@given(st.text(max_size=30))
def test_reading_a_version_never_raises(text: str) -> None:
    read_version(text)

"""The results file: everything that tables, figures and texts say is read from it."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from castle import __version__
from research.info_theory import surprisal
from research.info_theory.judging import asked_sha256
from research.info_theory.ranks import benjamini_hochberg
from research.info_theory.relations import SURPRISE_PAIRS
from research.info_theory.study import STAGES, Plan

HERE = Path(__file__).parent
RESULTS = HERE / "results"
CHECKS = "checks.json"
Q = 0.05
DIGITS = 6
TOLERANCE: Mapping[str, float] = {"same": 1e-6, "other": 1e-3, "recall": 0.005}
"""How far a second run may be from the first: on the same machine, on another, and in recall there."""

PUBLISHED: Mapping[str, Any] = {
    "drawers": 65779,
    "wings": 7,
    "n": 65746,
    "rho_ab": 0.9820,
    "low": 0.9817,
    "high": 0.9823,
    "rho_ac": 0.2023,
    "rho_bc": 0.2015,
    "exponential_wins": 6,
    "strata": 6,
    "epsilon2": 0.081,
}
"""What an earlier study of one large palace of seven wings reported, with bge-m3 as its embedder."""


def assemble(
    found: Mapping[str, Mapping[str, Any]],
    plan: Plan,
    data: Mapping[str, str],
    filed: Mapping[str, Sequence[str]],
) -> dict[str, Any]:
    """Return the record: ``found`` by data set, and of question sets the hash of their files (``data``).

    ``filed`` says which states of Castle filed the palaces of question sets.
    """
    return {
        "manifest": {
            "castle": __version__,
            "python": platform.python_version(),
            "packages": {name: _version(name) for name in ("numpy", "matplotlib", "lancedb", "onnxruntime")},
            "plan": asdict(plan),
            "data": dict(data),
            "filed": {name: list(codes) for name, codes in filed.items()},
            "embedder": ", ".join(sorted({one["describe"]["embedder"] for one in found.values()})),
            "tolerance": dict(TOLERANCE),
            "code": code(),
            "asked": asked_sha256(),
            "surprisal_priors": surprisal.PRIORS,
            "stages": list(STAGES),
        },
        "published": dict(PUBLISHED),
        "datasets": {name: dict(one) for name, one in found.items()},
        **_adjusted(found),
    }


def _adjusted(found: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """Return the tests of all data sets together, and the gate."""
    tests = dict(_tests(found))
    gates = [one["downstream-eval"]["gate"] for one in found.values() if one.get("downstream-eval")]
    return {
        "tests": {
            name: {"p": tests[name], "adjusted": value, "stands": stands}
            for name, (value, stands) in benjamini_hochberg(tests, Q).items()
        },
        "q": Q,
        "gate": gates[0] if gates else {"open": False, "passed": {}, "margin": math.nan},
    }


def comparable(
    results: Mapping[str, Any], datasets: Collection[str], judged: Collection[str]
) -> dict[str, Any]:
    """Return what two runs have to agree on: these data sets, without the manifest.

    What a model said is left out where it is not among the ``judged``; tests are adjusted anew for the rest.
    So is the state of the code that asked the questions.
    """
    found = {name: dict(one) for name, one in results["datasets"].items() if name in datasets}
    for one in found.values():
        if one["downstream-eval"]:
            one["downstream-eval"] = {k: v for k, v in one["downstream-eval"].items() if k != "code"}
    for name in set(found) - set(judged):
        del found[name]["llm-surprise"]
        pairs = found[name]["correlations"]
        found[name]["correlations"] = {pair: one for pair, one in pairs.items() if pair not in SURPRISE_PAIRS}
    return {"datasets": found, "published": results["published"], **_adjusted(found)}


def code() -> str:
    """Return a hash of the study's own code."""
    digest = hashlib.sha256()
    for path in sorted(HERE.glob("*.py")):
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:16]


def write(results: Mapping[str, Any], plots: Mapping[str, Any], directory: Path) -> None:
    """Write the results and the points of the figures."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, value, indent in (("results.json", results, 1), ("plots.json", plots, None)):
        written = json.dumps(rounded(value), indent=indent, sort_keys=True, ensure_ascii=False)
        path = directory / name
        if not path.is_file() or path.read_text(encoding="utf-8") != f"{written}\n":
            # Checks were made on what was there before.
            (directory / CHECKS).unlink(missing_ok=True)
        path.write_text(written + "\n", encoding="utf-8")


def read(directory: Path, name: str = "results.json") -> dict[str, Any]:
    """Read what ``write`` wrote, the results with the checks that were made on them."""
    found: dict[str, Any] = json.loads((directory / name).read_text(encoding="utf-8"))
    if name == "results.json":
        path = directory / CHECKS
        found["checks"] = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else []
    return found


def checked(directory: Path, check: Mapping[str, Any]) -> None:
    """Keep that a check has passed on the results that are there."""
    known = [*read(directory)["checks"], dict(check)]
    (directory / CHECKS).write_text(json.dumps(known, indent=1) + "\n", encoding="utf-8")


def numbers(value: Any) -> int:
    """Return how many numbers there are in a result."""
    if isinstance(value, Mapping | list):
        return sum(map(numbers, value.values() if isinstance(value, Mapping) else value))
    return int(isinstance(value, int | float) and not isinstance(value, bool))


def rounded(value: Any) -> Any:
    """Return the value with numbers to DIGITS significant digits and NaN as null, as it is written."""
    if isinstance(value, Mapping):
        return {str(key): rounded(one) for key, one in value.items()}
    if isinstance(value, (list, tuple)):
        return [rounded(one) for one in value]
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    return value


def differences(old: Any, new: Any, tolerance: float, where: str = "") -> list[str]:
    """Return where two results differ by more than ``tolerance``, relative to what is larger than 1."""
    if isinstance(old, Mapping) and isinstance(new, Mapping):
        return [
            text
            for key in sorted({*old, *new})
            for text in differences(old.get(key), new.get(key), tolerance, f"{where}/{key}")
        ]
    if isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        pairs = enumerate(zip(old, new, strict=True))
        return [text for i, (a, b) in pairs for text in differences(a, b, tolerance, f"{where}/{i}")]
    if isinstance(old, float | int) and isinstance(new, float | int):
        apart = abs(old - new) / max(1.0, abs(old), abs(new))
        return [f"{where}: {old} and {new}"] if apart > tolerance else []
    return [] if old == new else [f"{where}: {old!r} and {new!r}"]


def _tests(found: Mapping[str, Mapping[str, Any]]) -> list[tuple[str, float]]:
    return [
        (f"{dataset}: {name}", math.nan if entry["p"] is None else entry["p"])
        for dataset, one in found.items()
        for stage in ("heterogeneity", "correlations")
        for name, entry in one.get(stage, {}).items()
    ]


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"

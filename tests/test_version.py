"""The version stands in one place, and everything that repeats it says the same."""

from __future__ import annotations

import tomllib
from pathlib import Path

from castle import __version__
from plugins.update import MANIFESTS, files

ROOT = Path(__file__).parents[1]


def test_the_package_has_the_version_of_its_project() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == __version__


def test_every_file_of_the_plugins_follows_from_the_package() -> None:
    found = dict(files())
    for path, text in found.items():
        assert path.read_text(encoding="utf-8") == text, f"{path}: run python -m plugins.update"
    assert set(MANIFESTS.values()) <= set(found)
    assert all(f'"version": "{__version__}"' in found[manifest] for manifest in MANIFESTS.values())


def test_every_manifest_is_kept_up_to_date() -> None:
    manifests = {path for path in (ROOT / "plugins").rglob("plugin.json")}
    assert manifests == set(MANIFESTS.values())

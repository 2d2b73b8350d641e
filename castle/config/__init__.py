"""Configuration: the settings of a user and the file of a project, both in ``castle.yaml``.

``load`` gives the settings in force, ``set_user`` changes one of them in the user's file, ``load_project``
and ``write_project`` deal with a project's file. Nothing heavy is imported before a file or value is read.
"""

from __future__ import annotations

from castle.config.edit import set_user, unset_user
from castle.config.load import FILE_NAME, hints, load
from castle.config.project import ProjectConfig, Room, check_name, load_project, write_project
from castle.config.settings import Hooks, Key, Settings, find_key, keys

__all__ = [
    "FILE_NAME",
    "Hooks",
    "Key",
    "ProjectConfig",
    "Room",
    "Settings",
    "check_name",
    "find_key",
    "hints",
    "keys",
    "load",
    "load_project",
    "set_user",
    "unset_user",
    "write_project",
]

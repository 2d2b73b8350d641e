"""The shape of a project's file, for the strict check; imported only where a file is read."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

_Text = Annotated[str, Field(min_length=1)]


class RoomEntry(BaseModel):
    """One room of a project."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    description: str = ""
    keywords: tuple[_Text, ...] = ()


class ProjectFile(BaseModel):
    """A project's ``castle.yaml``."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    wing: str | None = None
    rooms: tuple[RoomEntry, ...] = ()
    ignore: tuple[_Text, ...] = ()
    capture: bool = True

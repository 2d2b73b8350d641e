from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

SCRIPT = """
import json, sys
if sys.argv[1] == "plain":
    import lancedb
else:
    from castle.store.lance import import_lancedb
    lancedb = import_lancedb()
import lance_namespace
import lance_namespace_urllib3_client as client
before = "lance_namespace_urllib3_client.api.table_api" in sys.modules
from lance_namespace_urllib3_client import TableApi, ApiClient
from lance_namespace_urllib3_client.models import CreateTableRequest
from lance_namespace_urllib3_client.models import CreateTableResponse
from pydantic import BaseModel, ValidationError
try:
    import overrides
except ImportError:
    overrides = None
class Later(BaseModel):
    number: int
try:
    CreateTableRequest(id=5)
except ValidationError as error:
    refused = error.error_count()
try:
    client.no_such_name
except AttributeError as error:
    missing = str(error)
print(json.dumps({
    "loaded before use": before,
    "same": client.TableApi is TableApi and sys.modules[TableApi.__module__].TableApi is TableApi,
    "names": sorted(name for name in dir(client) if not name.startswith("__")),
    "lancedb": sorted(name for name in dir(lancedb) if not name.startswith("__")),
    "namespace": sorted(dir(lance_namespace)),
    "version": client.__version__,
    "file": client.__file__,
    "missing": missing,
    "model": CreateTableRequest.__name__,
    "request": CreateTableRequest(id=["a"], mode="Create").model_dump_json(),
    "refused": refused,
    "later": Later.__pydantic_complete__,
    "deferred": CreateTableResponse.__pydantic_complete__,
    "checked": overrides.override.__module__ if overrides else "",
}))
"""


def outcome(way: str) -> dict[str, Any]:
    command = [sys.executable, "-W", "error", "-c", SCRIPT, way]
    result = subprocess.run(command, capture_output=True, text=True, check=True)
    assert result.stderr == ""
    loaded: dict[str, Any] = json.loads(result.stdout)
    return loaded


def test_the_deferred_client_is_the_real_one_when_it_is_used() -> None:
    plain, deferred = outcome("plain"), outcome("deferred")
    assert plain.pop("loaded before use") is True
    assert deferred.pop("loaded before use") is False
    assert (plain.pop("deferred"), deferred.pop("deferred")) == (True, False)
    assert deferred == plain

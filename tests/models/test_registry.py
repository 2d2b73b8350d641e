from __future__ import annotations

import subprocess
import sys

import pytest

from castle.errors import ModelError
from castle.models.builtin import BuiltinEmbedder
from castle.models.registry import describe_embedder, embedder_names, load_embedder


def test_description_is_that_of_the_loaded_embedder(builtin: BuiltinEmbedder) -> None:
    assert embedder_names() == ("builtin", "multilingual", "fake")
    assert describe_embedder("fake") == load_embedder("fake").identity
    assert describe_embedder("builtin") == builtin.identity


def test_identity_names_model_revision_quantisation_and_pooling() -> None:
    identity = describe_embedder("builtin").identity
    assert identity == "all-MiniLM-L6-v2/8199be6f699a-g1/int8-dynamic/mean-256"


@pytest.mark.parametrize(("name", "near"), [("bultin", "builtin"), ("FAKE", "fake"), ("bge-m2", "bge-m3")])
def test_unknown_name_is_refused_with_the_nearest(name: str, near: str) -> None:
    for call in (describe_embedder, load_embedder):
        with pytest.raises(ModelError, match=f"known: builtin, .*; did you mean '{near}'"):
            call(name)


def test_no_name_is_unknown() -> None:
    with pytest.raises(ModelError, match="there is no embedder ''"):
        describe_embedder("")


def test_describing_imports_nothing_heavy() -> None:
    code = (
        "import sys; from castle.models.registry import describe_embedder; describe_embedder('builtin');"
        "heavy = {'numpy', 'onnx', 'onnxruntime', 'tokenizers', 'platformdirs'};"
        "sys.exit(str(sorted(heavy & set(sys.modules))))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.strip() == "[]"


def test_palaces_of_one_process_share_an_embedder() -> None:
    assert load_embedder("fake") is load_embedder("fake")

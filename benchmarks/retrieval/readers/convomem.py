from pathlib import Path
from benchmarks.retrieval.cases import Collection
def read(path: Path) -> Collection:
    raise NotImplementedError
read_across = read

"""What we say was fetched is what ``datasets`` then loads without a network."""

import shutil
from pathlib import Path

import datasets
import pytest

from mtl import tasks
from mtl.data.hub_presence import fetched_rows
from mtl.data.sources import read_rows
from mtl.errors import DataError

RTE = tasks.get("glue/rte")


@pytest.fixture
def datasets_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty cache of ``datasets``."""
    cache = tmp_path / "datasets"
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", cache)
    return cache


def fetch(cache: Path, work: Path, rows: int) -> None:
    """What loading ``nyu-mll/glue``, configuration rte, from the hub leaves in the cache."""
    labels = datasets.ClassLabel(names=["entailment", "not_entailment"])
    features = datasets.Features({"sentence1": datasets.Value("string"), "sentence2": datasets.Value("string")})
    features["label"] = labels
    table = {"sentence1": ["It rains."] * rows, "sentence2": ["It is wet."] * rows, "label": [0] * rows}
    folder = work / "rte"
    folder.mkdir(parents=True)
    for split in ("train", "validation"):
        datasets.Dataset.from_dict(table, features=features).to_parquet(folder / f"{split}-00000-of-00001.parquet")
    built = datasets.load_dataset_builder(str(work), "rte", cache_dir=str(work / "cache"))
    built.download_and_prepare()
    there = Path(built.cache_dir)
    shutil.copytree(there, cache / "nyu-mll___glue" / "rte" / there.parts[-2] / there.parts[-1])
    for path in (cache / "nyu-mll___glue").rglob(f"{built.dataset_name}-*.arrow"):
        path.rename(path.with_name(path.name.replace(built.dataset_name, "glue", 1)))


def write_card(work: Path) -> None:
    work.mkdir()
    files = "".join(f"  - split: {split}\n    path: rte/{split}-*\n" for split in ("train", "validation"))
    (work / "README.md").write_text(f"---\nconfigs:\n- config_name: rte\n  data_files:\n{files}---\n", encoding="utf-8")


def test_nothing_was_fetched(datasets_cache: Path) -> None:
    assert fetched_rows(RTE, "train") is None
    assert fetched_rows(tasks.get("mini/entail2"), "train") is None
    with pytest.raises(DataError):
        read_rows(RTE, "train", None)


def test_fetched_rows_are_counted_and_can_be_read_offline(datasets_cache: Path, tmp_path: Path) -> None:
    write_card(tmp_path / "work")
    fetch(datasets_cache, tmp_path / "work", 3)
    assert (fetched_rows(RTE, "train"), fetched_rows(RTE, "dev"), fetched_rows(RTE, "test")) == (3, 3, None)
    assert len(read_rows(RTE, "train", None)) == 3
    assert fetched_rows(tasks.get("glue/cola"), "train") is None

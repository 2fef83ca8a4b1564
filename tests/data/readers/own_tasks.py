"""Task definitions over files in a folder, for tests of the readers."""

from pathlib import Path
from typing import Any

import pytest

from mtl.data.sources import read_rows
from mtl.errors import DataError
from mtl.tasks.custom import define_task
from mtl.tasks.spec import TaskSpec


def own_task(folder: Path, ending: str, **changes: Any) -> TaskSpec:
    """Pairs ``a``, ``b`` with a label ``no`` or ``yes``, in ``train`` and ``dev`` files of one ending."""
    definition: dict[str, Any] = {
        "name": "mine/pairs",
        "files": {"train": f"train.{ending}", "dev": f"dev.{ending}"},
        "texts": ["a", "b"],
        "labels": ["no", "yes"],
        "defined_in": str(folder / "task.yaml"),
    }
    return define_task({**definition, **changes})


def refused(spec: TaskSpec, split: str = "train") -> str:
    """The message of the DataError that reading the split ends in."""
    with pytest.raises(DataError) as caught:
        read_rows(spec, split, None)
    return str(caught.value)

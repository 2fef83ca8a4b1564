"""Splits by the name a user gives, and the head that reads a task."""

from pathlib import Path

import pytest

from mtl.errors import ConfigError, DataError
from mtl.stages.open_run import head_task, matching_splits, open_run
from mtl.tasks.registry import get


def test_a_name_means_the_split_or_all_of_its_kind() -> None:
    assert matching_splits(get("glue/rte"), "test") == ("test",)
    assert matching_splits(get("glue/mnli"), "test") == ("test_matched", "test_mismatched")
    assert matching_splits(get("glue/mnli"), "dev_matched") == ("dev_matched",)
    with pytest.raises(ConfigError, match=r"glue/rte has no split 'tes'; it has train, dev, test"):
        matching_splits(get("glue/rte"), "tes")


def test_a_diagnostic_set_is_read_by_the_head_it_names() -> None:
    assert head_task(get("glue/ax")) == "glue/mnli"
    assert head_task(get("glue/rte")) == "glue/rte"


def test_a_directory_that_is_no_run_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no config\.yaml"), open_run(tmp_path):
        pass

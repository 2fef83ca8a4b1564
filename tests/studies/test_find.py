from pathlib import Path

import pytest
from synthetic_results import a_result

from mtl.errors import ConfigError, DataError
from mtl.records import write_result
from mtl.studies.find import find_runs

SCORES = {"joint": (("glue/rte", 70.0, 277, 277),)}


def write(directory: Path, seed: int) -> Path:
    directory.mkdir(parents=True)
    write_result(directory / "result.json", a_result(SCORES, seed=seed))
    return directory


def test_a_run_a_file_and_a_directory_of_runs(tmp_path: Path) -> None:
    first, second = write(tmp_path / "all" / "b", 1), write(tmp_path / "all" / "deep" / "a", 2)
    assert [run.result.seed for run in find_runs([second, first])] == [2, 1]
    assert [run.result.seed for run in find_runs([first / "result.json"])] == [1]
    assert [run.result.seed for run in find_runs([tmp_path])] == [1, 2]
    assert [run.result.seed for run in find_runs([first, tmp_path])] == [1, 2], "a file counts once"


def test_copies_of_a_run_are_refused(tmp_path: Path) -> None:
    first, copy = write(tmp_path / "a", 1), write(tmp_path / "b", 1)
    with pytest.raises(ConfigError, match="same run") as caught:
        find_runs([first, copy])
    assert str(copy) in str(caught.value)


@pytest.mark.parametrize("name", ["", "not/there"])
def test_no_result_is_an_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no result\.json"):
        find_runs([tmp_path / name])


def test_what_is_no_result_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "result.json").write_text("{}", encoding="utf-8")
    with pytest.raises(DataError, match="schema 1"):
        find_runs([tmp_path])

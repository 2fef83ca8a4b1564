"""The results of runs, found by path."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from mtl import tasks as task_registry
from mtl.config.load import load_config
from mtl.errors import ConfigError, DataError
from mtl.records import ResultRecord, read_result
from mtl.rundir import RunDirectory

_RESULT = "result.json"


@dataclass(frozen=True)
class FoundRun:
    """A result, and the directory it lies in: its run's, or that of a copy of the result alone.

    ``folds`` are the runs, one for each fold in order, whose predictions the result is of where it is of several (see
    mtl.studies.folds); its directory is then that of the first.
    """

    directory: RunDirectory
    result: ResultRecord
    folds: tuple["FoundRun", ...] = ()

    @property
    def parts(self) -> tuple["FoundRun", ...]:
        """The runs themselves: all folds, or this one."""
        return self.folds or (self,)


def find_runs(paths: Sequence[Path]) -> list[FoundRun]:
    """The runs at ``paths``: each a run's directory, a result file, or a directory that holds runs at any depth.

    Raises DataError where there is none, and ConfigError where the same run is found twice: it would count as two.
    """
    found: dict[str, Path] = {}
    runs = []
    for path in _files(paths):
        result = read_result(path)
        if result.run_hash in found:
            raise ConfigError(
                f"{found[result.run_hash]} and {path} are the same run (seed {result.seed}), and would count as two: "
                "name one of them"
            )
        found[result.run_hash] = path
        runs.append(FoundRun(RunDirectory(path.parent), result))
    return runs


def learn_tasks(found: Sequence[FoundRun]) -> None:
    """Make the tasks that the runs' configs define known by name."""
    for run in found:
        if run.directory.config.is_file():
            task_registry.expand(load_config(run.directory.config).tasks)


def _files(paths: Sequence[Path]) -> list[Path]:
    """Every result file, once, in the order of ``paths``."""
    files: dict[Path, Path] = {}
    for path in paths:
        if path.is_file():
            here = [path]
        elif (path / _RESULT).is_file():
            here = [path / _RESULT]
        else:
            here = sorted(path.rglob(_RESULT))
        if not here:
            raise DataError(f"no {_RESULT} in {path} or below it: the run has not finished, or the path is not a run's")
        files.update((file.resolve(), file) for file in here if file.resolve() not in files)
    return list(files.values())

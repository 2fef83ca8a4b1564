"""The layout of a run directory: where every file of a run is, and that no name leads out of it.

::

    <out>/config.yaml  environment.json  result.json  run.lock
    <out>/joint/  single/<suite>/<task>/  finetune/<suite>/<task>/      one directory for each trained model
    <out>/log.txt  failure.json      where a study started the run: what it said, and how it ended where it failed

Paths are computed, nothing is created, except by :func:`prepare_run_directory`.
"""

import os
import re
import shutil
from pathlib import Path

from mtl.errors import ConfigError

STAGES = ("joint", "single", "finetune")

# See mtl.atomic.
_TEMPORARY = re.compile(r"\..+\.tmp")
_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
# Names that some file systems refuse or take for a device, whatever follows their first dot.
_RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?", re.IGNORECASE)


class StageDirectory:
    """The directory of one trained model: its logs, checkpoints and predictions."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.metrics = path / "metrics.jsonl"
        self.tensorboard = path / "tensorboard"
        self.sequence = path / "sequence.npz"
        self.checkpoints = path / "checkpoints"
        self.record = path / "stage.json"

    def best_for(self, task: str) -> Path:
        """The checkpoint of a joint model that was best for the task ``suite/task`` alone, where it keeps such."""
        return _inside(self.checkpoints, "best_for", *_task_parts(task))

    def predictions(self, task: str, split: str) -> Path:
        """The Parquet file of the predictions for one split of the task ``suite/task``."""
        return _inside(self.path, "predictions", *_task_parts(task), _name(split) + ".parquet")


class RunDirectory:
    """The directory of one run. ``path`` is the user's own choice; every name below it is checked."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.config = path / "config.yaml"
        self.environment = path / "environment.json"
        self.result = path / "result.json"
        self.lock = path / "run.lock"
        self.log = path / "log.txt"
        self.failure = path / "failure.json"

    @property
    def own_names(self) -> frozenset[str]:
        """What a run writes into its directory; anything else there is somebody's own."""
        return frozenset({self.config.name, self.environment.name, self.result.name, self.lock.name, *STAGES})

    def stage(self, stage: str, task: str | None = None) -> StageDirectory:
        """The directory of a stage: ``joint`` has one model and takes no task, the others one model for each task.

        Raises ``ConfigError`` for an unknown stage, a missing or needless task, and a name that is not plain.
        """
        if stage not in STAGES:
            raise ConfigError(f"unknown stage {stage!r}: it is one of {', '.join(STAGES)}")
        if (task is None) != (stage == "joint"):
            wanted = "takes no task" if stage == "joint" else "needs a task, such as glue/rte"
            raise ConfigError(f"the stage {stage!r} {wanted}; got {task!r}")
        return StageDirectory(_inside(self.path, stage, *(_task_parts(task) if task is not None else ())))

    def content(self) -> list[Path]:
        """What the run itself has in the directory.

        That leaves out the lock, what a study keeps there about the run, and temporary files, which those who try to
        take the lock leave for a moment and a process that is killed while it writes leaves behind.
        """
        others = {self.lock.name, self.log.name, self.failure.name}
        return [
            entry for entry in self.path.iterdir() if entry.name not in others and not _TEMPORARY.fullmatch(entry.name)
        ]

    def clear(self) -> None:
        """Delete all of :meth:`content`; the lock belongs to whoever holds it."""
        for entry in self.content():
            if entry.is_dir() and not entry.is_symlink():
                shutil.rmtree(entry)
            else:
                entry.unlink()


def check_place(path: Path) -> None:
    """Raise ``ConfigError`` where no run directory can be at ``path``: a file is in the way, or one may not write."""
    there = next(place for place in (path.absolute(), *path.absolute().parents) if os.path.exists(place))
    if not there.is_dir():
        raise ConfigError(f"{there} is a file, and a run needs a directory: choose another out=")
    if not os.access(there, os.W_OK | os.X_OK):
        raise ConfigError(f"{there} may not be written: choose another out=, or mend its permissions")


def prepare_run_directory(path: Path, *, resume: bool, overwrite: bool) -> RunDirectory:
    """An existing directory ready for a run: empty, or with ``resume`` as an earlier run left it.

    A directory that holds nothing but a lock counts as empty, so this may, and where another trainer could be at work
    on the same directory should, be called while the run's lock is held. Raises ``ConfigError`` where files of
    somebody would be mixed up or lost: a directory with content and neither flag; ``overwrite`` of a directory that is
    not a run's; ``resume`` of a run that is not there; what :func:`check_place` refuses.
    """
    run = RunDirectory(path)
    if resume and overwrite:
        raise ConfigError("--resume continues a run and --overwrite deletes it: give one of them")
    check_place(path)
    occupied = path.is_dir() and bool(run.content())
    if resume and not (occupied and run.config.is_file()):
        raise ConfigError(f"nothing to resume in {path}: it has no config.yaml. Check out=, or leave out --resume")
    if occupied and not resume:
        if not overwrite:
            raise ConfigError(f"{path} is not empty: --resume continues it, --overwrite replaces it, or change out=")
        if not run.config.is_file():
            raise ConfigError(
                f"--overwrite refuses to delete {path}: it has no config.yaml, so it is not a run's directory. "
                "Choose another out=, or delete it yourself"
            )
        strangers = sorted(entry.name for entry in run.content() if entry.name not in run.own_names)
        if strangers:
            raise ConfigError(
                f"--overwrite refuses to delete {path}: no run writes {', '.join(strangers[:3])}. Choose another "
                "out=, or move these away"
            )
        run.clear()
    path.mkdir(parents=True, exist_ok=True)
    return run


def _task_parts(task: str) -> tuple[str, str]:
    suite, slash, name = task.partition("/")
    if not slash:
        raise ConfigError(f"{task!r} is not a task's name: it is written suite/task, such as glue/rte")
    return _name(suite), _name(name)


def _name(name: str) -> str:
    """``name``, once it is certain that it names one plain entry of a directory on every file system."""
    if not _NAME.fullmatch(name) or name.strip(".") != name or _RESERVED.fullmatch(name):
        raise ConfigError(
            f"{name!r} cannot be part of a path: use 1 to 64 letters, digits, '.', '_' or '-', "
            "no dot at either end, and no device name such as 'con'"
        )
    return name


def _inside(root: Path, *parts: str) -> Path:
    """``root`` with ``parts`` below it, once it is certain that no link on the way leads out of ``root``."""
    path = root.joinpath(*parts)
    if not path.resolve().is_relative_to(root.resolve()):
        raise ConfigError(f"{path} leads out of {root} through a link: remove the link")
    return path

"""The directory of a study: what lies where, and whether it is still the same study.

::

    <out>/study.yaml  status.json      the study; a summary for people, which nothing is decided by
    <out>/additions.json               seeds and arms that it got after runs had been scored
    <out>/configs/<arm>/seed-<n>.yaml  what each run was started with; `mtl run` takes it as it is
    <out>/claims/                      which launcher of this machine is at which run, held by locks of the system
    <out>/runs/<arm>/seed-<n>-<hash>/  the run directories, with log.txt; they alone say what is done
"""

import fcntl
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import yaml

from mtl.atomic import write_text_atomically
from mtl.config.hashes import difference
from mtl.config.load import load_config
from mtl.config.replayed import replayed_run
from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.rundir import check_place
from mtl.studies.additions import note_addition
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.run_state import state_of
from mtl.studies.spec import StudySpec, read_study, study_text

# What a study promises before it runs, and so may not change afterwards.
_PROMISED = ("name", "question", "folds", "equal", "baseline", "primary")


class StudyDirectory:
    """Paths below the directory of a study; nothing is created."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.study = path / "study.yaml"
        self.additions = path / "additions.json"
        self.status = path / "status.json"
        self.configs = path / "configs"
        self.claims = path / "claims"
        self.jobs = path / "slurm"

    def config(self, run: PlannedRun) -> Path:
        """The settings that the run is started with."""
        return self.configs / run.arms[0] / f"{run.repetition}.yaml"


def check_directory(directory: StudyDirectory, study: StudySpec, runs: Sequence[PlannedRun]) -> None:
    """Raise ConfigError unless the directory is free, or holds this study, at most with fewer arms and seeds.

    Settings that cannot change a result may have changed, and so may what the cluster is asked for.
    """
    check_place(directory.path)
    if not directory.study.is_file():
        # Names with a dot are files that are being written, or none of anybody's work.
        entries = directory.path.iterdir() if directory.path.is_dir() else ()
        if any(not entry.name.startswith(".") for entry in entries) and not directory.study.is_file():
            raise ConfigError(f"{directory.path} is not empty and holds no study: choose another --out")
        return
    before = read_study(directory.study)
    changes = [*_promises_changed(before, study), *_runs_changed(directory, before, runs)]
    if changes:
        lines = "\n".join(f"  {change}" for change in changes)
        raise ConfigError(
            f"{directory.path} holds another study: arms and seeds can be added, but this changed:\n{lines}\n"
            "Take it back, or choose another --out"
        )


def write_study(directory: StudyDirectory, study: StudySpec, runs: Sequence[PlannedRun]) -> None:
    """Write study.yaml and the settings of every run, and note what is new; what has not changed stays untouched."""
    if directory.study.is_file():
        _note_additions(directory, read_study(directory.study), study, runs)
    # First, so that another start at the same moment finds a study here and not a directory of somebody else's. Configs
    # that are missing after a crash belong to runs that were not begun, and are written by the next start.
    _write(directory.study, study_text(study))
    for run in runs:
        document = run.config.model_dump(mode="json")
        _write(directory.config(run), yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


class Claims:
    """The runs that this launcher is at, so that another one on the same machine leaves them alone.

    A claim is a lock that the system drops when its holder dies, however that happens. Between machines, and against
    `mtl run` by hand, the lock of the run itself decides.
    """

    def __init__(self, directory: StudyDirectory) -> None:
        self._path = directory.claims
        self._held: dict[Path, int] = {}

    def take(self, run: PlannedRun) -> bool:
        """Whether the run is this launcher's from now on; False where it is another's."""
        self._path.mkdir(parents=True, exist_ok=True)
        name = f"{run.arms[0]}.{run.directory.name}"
        descriptor = os.open(self._path / name, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(descriptor)
            return False
        self._held[run.directory] = descriptor
        return True

    def release(self, run: PlannedRun) -> None:
        """Give the run up, done or not."""
        os.close(self._held.pop(run.directory))

    def release_all(self) -> None:
        """Give up whatever is held."""
        while self._held:
            os.close(self._held.popitem()[1])


def _note_additions(directory: StudyDirectory, before: StudySpec, study: StudySpec, runs: Sequence[PlannedRun]) -> None:
    had = expand(before, directory.path)
    arms = {arm for run in had for arm in run.arms}
    new = dict.fromkeys(arm for run in runs for arm in run.arms if arm not in arms)
    seeds = [seed for seed in study.seeds if seed not in before.seeds]
    complete = sum(state_of(run.directory) == "complete" for run in had)
    note_addition(directory.additions, seeds, list(new), complete)


def _promises_changed(before: StudySpec, now: StudySpec) -> Iterator[str]:
    for name in _PROMISED:
        old, new = getattr(before, name), getattr(now, name)
        if old != new:
            yield f"{name}: {_plain(old)} -> {_plain(new)}"


def _plain(value: object) -> object:
    return value.model_dump(mode="json", exclude_none=True) if hasattr(value, "model_dump") else value


def _runs_changed(directory: StudyDirectory, before: StudySpec, runs: Sequence[PlannedRun]) -> Iterator[str]:
    """What became of the runs that the study had: each is still planned, with the same settings, in the same place."""
    planned = {(arm, run.repetition): run for run in runs for arm in run.arms}
    had = [(arm, run.repetition) for run in expand(before, directory.path) for arm in run.arms]
    gone = [(arm, repetition) for arm, repetition in had if (arm, repetition) not in planned]
    arms, repetitions = {arm for arm, _ in planned}, {repetition for _, repetition in planned}
    yield from dict.fromkeys(f"arm {arm} is gone" for arm, _ in gone if arm not in arms)
    yield from dict.fromkeys(
        f"{_spoken(repetition)} is gone" for arm, repetition in gone if arm in arms and repetition not in repetitions
    )
    told = set()
    for path in sorted(directory.configs.glob("*/seed-*.yaml")):
        arm, repetition = path.parent.name, path.stem
        if (arm, repetition) in planned and arm not in told:
            changes = list(_settings_changed(load_config(path), planned[arm, repetition]))
            yield from (f"arm {arm}: {change}" for change in changes)
            told |= {arm} if changes else set()


def _spoken(repetition: str) -> str:
    """``seed-1-fold-0`` as it is said."""
    return repetition.replace("-fold-", ", fold ").replace("seed-", "seed ")


def _settings_changed(before: RunConfig, run: PlannedRun) -> Iterator[str]:
    changes = difference(before, run.config)
    for setting, one, other, own in (
        ("init.from", before.init.from_, run.config.init.from_, run.starts_from),
        ("sampling.from", replayed_run(before), replayed_run(run.config), run.replays),
    ):
        if one is not None and own is None and one != other:
            changes.append(f"{setting}: {one} -> {other}")
    yield from changes
    place = Path(before.out)
    if not changes and (place.parent.name, place.name) != (run.directory.parent.name, run.directory.name):
        yield (
            f"its run would lie in {run.directory.parent.name}/{run.directory.name} instead of "
            f"{place.parent.name}/{place.name}: an equal arm was put before it, or this is another version of mtl"
        )


def _write(path: Path, text: str) -> None:
    if path.is_file() and path.read_text(encoding="utf-8") == text:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, text)

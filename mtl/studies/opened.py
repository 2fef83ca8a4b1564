"""A study opened again: its file, every run that it has, and how each of them stands."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from mtl.config.run import RunConfig
from mtl.errors import ConfigError, DataError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.studies.additions import read_additions
from mtl.studies.expand import PlannedRun, expand
from mtl.studies.find import FoundRun, find_runs
from mtl.studies.folds import pooled_folds
from mtl.studies.run_state import RunState, read_failure, state_of
from mtl.studies.scored_arms import Arm, find_arm, scored_arms
from mtl.studies.spec import StudySpec, read_study
from mtl.studies.study_files import StudyDirectory

_HASH = "[0-9a-f]" * 8


@dataclass(frozen=True)
class StudyRun:
    """One run of a study: ``found`` has its result, as far as it got; ``failure`` says how it ended where it failed."""

    title: str
    arms: tuple[str, ...]
    seed: int
    config: RunConfig
    directory: Path
    state: RunState
    found: FoundRun | None
    failure: str | None


@dataclass(frozen=True)
class OpenedStudy:
    """A study and all of its runs, arms in its order and seeds within."""

    path: Path
    spec: StudySpec
    runs: tuple[StudyRun, ...]

    @property
    def arm_names(self) -> tuple[str, ...]:
        """Every arm; those that share their runs with an earlier one come with it."""
        return tuple(dict.fromkeys(name for run in self.runs for name in run.arms))

    def results(self) -> list[FoundRun]:
        """The runs that have a result, folds as one once all of them are there; DataError where there are none."""
        if self.nothing is not None:
            raise DataError(f"{self.path}: {self.nothing}; mtl study carries out the runs of a study")
        return list(self._results)

    @property
    def nothing(self) -> str | None:
        """Why there is nothing to score yet; None where there is something."""
        if all(run.found is None for run in self.runs):
            return "no run has a result yet"
        return None if self._results else "no arm and seed has all of its folds yet"

    def notes(self) -> list[str]:
        """What a reader of its tables has to know of the runs that are not in them, or under another name."""
        missing = [run.title for run in self.runs if run.state != "complete"]
        shared = dict.fromkeys(
            f"{', '.join(run.arms[1:])}: the same runs as {run.arms[0]}" for run in self.runs if run.arms[1:]
        )
        notes = [f"half finished: {len(missing)} of {len(self.runs)} runs are not complete"] if missing else []
        if missing and self.spec.folds is not None:
            notes.append("seeds of an arm that lack a fold are left out")
        additions = read_additions(StudyDirectory(self.path).additions)
        return [*notes, *shared, *(addition.note for addition in additions)]

    @cached_property
    def _results(self) -> list[FoundRun]:
        found = [run.directory for run in self.runs if run.found is not None]
        return [run for run in pooled_folds(find_runs(found)) if run.result.fold is None]

    def scored(self) -> tuple[Arm, ...]:
        """The arms that have results, in the order of the study; DataError where there is none."""
        return scored_arms(self.results())

    def label(self, arm: str) -> str:
        """What the runs of ``arm`` are called: of arms that share their runs, the first."""
        return next((run.arms[0] for run in self.runs if arm in run.arms), arm)

    def comparison(
        self, arms: Sequence[Arm], baseline: str | None = None, primary: tuple[str, str] | None = None
    ) -> "NamedComparison | None":
        """What the study compares its arms with; None where it names no baseline, and ``baseline`` does not either.

        ConfigError where ``baseline`` or ``primary`` (arm, score) differ from what the study named before it ran: a
        comparison that is chosen after the scores are known proves nothing.
        """
        named = self._named(arms, baseline)
        if baseline is not None and self.spec.baseline is not None:
            self._refuse_other("--baseline", find_arm(arms, self.label(baseline)).name, named and named.baseline)
        if primary is not None:
            own = None if named is None or named.arm is None else (find_arm(arms, named.arm).name, named.score)
            self._refuse_other("--primary", (find_arm(arms, self.label(primary[0])).name, primary[1]), own)
        return named

    def _named(self, arms: Sequence[Arm], baseline: str | None) -> "NamedComparison | None":
        primary = self.spec.primary
        if primary is None:
            reference = baseline or self.spec.baseline
            return (
                None if reference is None else NamedComparison(find_arm(arms, self.label(reference)).name, None, None)
            )
        other = f"{self.label(self.spec.baseline or '')}:{primary.baseline_stage or primary.stage}"
        return NamedComparison(find_arm(arms, other).name, f"{self.label(primary.arm)}:{primary.stage}", primary.score)

    def _refuse_other(self, flag: str, asked: object, own: object) -> None:
        if asked != own:
            primary = self.spec.primary
            named = "no primary comparison"
            if primary is not None:
                named = f"{primary.arm} against {self.spec.baseline} by {primary.score}"
            raise ConfigError(
                f"{flag} is not what the study {self.spec.name} named before it ran ({named}): leave it out, or name "
                f"{self.path / 'runs'} to explore"
            )


@dataclass(frozen=True)
class NamedComparison:
    """The baseline among scored arms, and the primary comparison with it: the name of an arm, which may have no result
    yet, and the score. Both are None in an exploratory study.
    """

    baseline: str
    arm: str | None
    score: str | None


def is_study(paths: Sequence[Path]) -> bool:
    """Whether ``paths`` are the directory of one study."""
    return len(paths) == 1 and StudyDirectory(paths[0]).study.is_file()


def open_study(path: Path) -> OpenedStudy:
    """The study in the directory ``path``.

    ConfigError where there is none, or where it can no longer be expanded: a recipe is gone, or a task. DataError where
    a file of a run is damaged.
    """
    directory = StudyDirectory(path)
    if not directory.study.is_file():
        raise ConfigError(
            f"{path} holds no study.yaml, so it is no study: name the directory that mtl study was given as --out; "
            "mtl table takes runs of any kind"
        )
    spec = read_study(directory.study)
    return OpenedStudy(path, spec, tuple(_open(run) for run in expand(spec, path)))


def _open(run: PlannedRun) -> StudyRun:
    place = _place(run)
    result = RunDirectory(place).result
    found = FoundRun(RunDirectory(place), read_result(result)) if result.is_file() else None
    failure = read_failure(place)
    told = None if failure is None else failure.message
    return StudyRun(run.title, run.arms, run.seed, run.config, place, state_of(place), found, told)


def _place(run: PlannedRun) -> Path:
    """Where the run lies. Another version of mtl may have given its folder another hash: then the rest of it tells."""
    if run.directory.is_dir():
        return run.directory
    repetition = run.directory.name.rpartition("-")[0]
    others = sorted(run.directory.parent.glob(f"{repetition}-{_HASH}"))
    if len(others) > 1:
        raise ConfigError(
            f"{others[0]} and {others[1]} are both runs of {run.title}: move the one away that does not belong here"
        )
    return others[0] if others else run.directory

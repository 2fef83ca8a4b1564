"""The measurements: a trial where a length is to be chosen, then sections of each side in turn, then the figures."""

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from mtl.bench.other_reports import (
    EvaluationReport,
    MachineReport,
    TokenisingReport,
    evaluation_report,
    tokenising_report,
)
from mtl.bench.processes import Runner, run_section
from mtl.bench.records import Answer, Peer, Request, SectionKind, TrainingMeasure, Trial
from mtl.bench.report import MeasuredSetting, TrainingReport, training_report
from mtl.config.locations import cache_directory
from mtl.config.run import RunConfig
from mtl.costs.fit import fit_machine
from mtl.costs.machine import machine_key, save_profile
from mtl.errors import ConfigError, DataError
from mtl.runtime.torchrun import launched_ranks

_TRAINING_SECONDS = 12.0
_TURN_SECONDS = 4.0
_FEWEST_UPDATES = 20
_FEWEST_WARMUP = 5


@dataclass(frozen=True)
class Bench:
    """Measures one config; ``plugins`` are imported by every process that measures, ``runner`` starts them.

    ``turns``: how often each side is measured; ``updates``: timed updates of each turn, by default as many as take
    some seconds.
    """

    config: RunConfig
    turns: int = 3
    updates: int | None = None
    plugins: tuple[str, ...] = ()
    runner: Runner = run_section

    def training(self, against: Sequence[Peer] = (), *, profile: bool = False) -> TrainingReport:
        """Sections of mtl and, each time right after it, one of every peer: A B A B.

        All sections take the same number of updates. The n-th pair trains with the config's seed plus n, from 0.
        """
        self._check()
        if against:
            check_trainer_available()
        trial = self._trial(profile=profile)
        timed = self.updates or updates_within(_TRAINING_SECONDS, trial.seconds_per_update)
        warmup = warmup_of(timed)
        seeds = tuple(self.config.seed + number for number in range(self.turns))
        sides: tuple[SectionKind, ...] = ("mtl", *against)
        found: dict[SectionKind, list[TrainingMeasure]] = {side: [] for side in sides}
        for seed in seeds:
            for side in sides:
                measure = self._ask(side, seed=seed, warmup=warmup, updates=timed).training
                assert measure is not None
                found[side].append(measure)
        setting = MeasuredSetting(
            **trial.setting.model_dump(),
            mean_rows_per_update=trial.rows_per_update,
            mean_tokens_per_update=trial.tokens_per_update,
            warmup_updates=warmup,
            timed_updates=timed,
            pairs=self.turns,
            seeds=seeds,
        )
        return training_report(trial, setting, found["mtl"], {peer: found[peer] for peer in against})

    def evaluation(self) -> EvaluationReport:
        """Evaluation in turn with training, in one process."""
        self._check()
        trial = self._trial()
        timed = self.updates or updates_within(_TURN_SECONDS, trial.seconds_per_update)
        measure = self._ask("eval", warmup=warmup_of(timed), updates=timed * self.turns, turns=self.turns).evaluation
        assert measure is not None
        return evaluation_report(measure)

    def tokenising(self) -> TokenisingReport:
        """Building token stores in turn with the bare tokenizer, in one process."""
        self._check()
        if self.updates is not None:
            raise ConfigError("mtl bench tokenise trains nothing: leave out --updates")
        measure = self._ask("tokenise", turns=self.turns).tokenising
        assert measure is not None
        return tokenising_report(measure)

    def machine(self) -> MachineReport:
        """Short trainings of several shapes, and the profile fitted to them, which is kept in the cache directory."""
        self._check()
        if self.updates is not None:
            raise ConfigError("mtl bench machine has updates of its own: leave out --updates")
        measure = self._ask("machine").machine
        assert measure is not None
        profile = fit_machine(
            machine_key(self.config.training),
            measure.cases,
            precision=measure.precision,
            threads=measure.threads,
            device=measure.device,
        )
        return MachineReport(profile=profile, file=str(save_profile(profile, cache_directory(self.config))))

    def _check(self) -> None:
        if launched_ranks() > 1:
            raise ConfigError("mtl bench measures one process: start it without torchrun")
        if self.turns < 1:
            raise ConfigError(f"--pairs {self.turns}: measure each side once or more")
        if self.updates is not None and self.updates < 1:
            raise ConfigError(f"--updates {self.updates}: time one update or more")

    def _trial(self, *, profile: bool = False) -> Trial:
        found = self._ask("trial", profile=profile).trial
        assert found is not None
        return found

    def _ask(self, section: SectionKind, *, seed: int | None = None, **wanted: Any) -> Answer:
        document = self.config.model_dump(mode="json")
        if seed is not None:
            document["seed"] = seed
        return self.runner(Request(section=section, config=document, plugins=self.plugins, **wanted))


def updates_within(seconds: float, seconds_per_update: float) -> int:
    """How many updates take about ``seconds``, but not so few that a mean of ten parts says nothing."""
    return max(_FEWEST_UPDATES, round(seconds / seconds_per_update))


def warmup_of(updates: int) -> int:
    """Updates that are run before that many are timed."""
    return max(_FEWEST_WARMUP, round(updates / 10))


def check_trainer_available() -> None:
    """Raise DataError where the package is missing that Trainer asks for: before anything is measured."""
    if importlib.util.find_spec("accelerate") is None:
        raise DataError(
            "--against needs the package accelerate, which Hugging Face's Trainer asks for: pip install 'mtl[bench]'"
        )

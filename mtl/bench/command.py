"""The measurement of training: a trial, then sections of mtl and its peers in turn, then the figures."""

from collections.abc import Sequence

from mtl.bench.processes import Runner, run_section
from mtl.bench.records import Peer, Request, SectionKind, TrainingMeasure, Trial
from mtl.bench.report import MeasuredSetting, TrainingReport, training_report
from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.runtime.ranks import launched_ranks

_SECONDS = 12.0
_FEWEST_UPDATES = 20
_FEWEST_WARMUP = 5


def bench_training(
    config: RunConfig,
    *,
    against: Sequence[Peer] = (),
    pairs: int = 3,
    updates: int | None = None,
    profile: bool = False,
    plugins: Sequence[str] = (),
    runner: Runner = run_section,
) -> TrainingReport:
    """Measure ``pairs`` sections of mtl and, each time right after it, one of every peer: A B A B.

    All sections take the same number of updates: ``updates``, or as many as mtl takes in about twelve seconds. The
    n-th pair trains with the seed of the config plus n, counted from 0.
    """
    if launched_ranks() > 1:
        raise ConfigError("mtl bench measures one process: start it without torchrun")
    if pairs < 1 or (updates is not None and updates < 1):
        raise ConfigError(f"--pairs {pairs} and --updates {updates}: measure at least one of each")
    document = config.model_dump(mode="json")
    trial = _trial(runner(Request(section="trial", config=document, plugins=tuple(plugins), profile=profile)).trial)
    timed = updates or updates_within(_SECONDS, trial.seconds_per_update)
    warmup = max(_FEWEST_WARMUP, round(timed / 10))
    seeds = tuple(config.seed + number for number in range(pairs))
    found: dict[SectionKind, list[TrainingMeasure]] = {}
    for seed in seeds:
        kinds: tuple[SectionKind, ...] = ("mtl", *against)
        for kind in kinds:
            request = Request(
                section=kind,
                config={**document, "seed": seed},
                plugins=tuple(plugins),
                warmup=warmup,
                updates=timed,
            )
            found.setdefault(kind, []).append(_training(runner(request).training))
    setting = MeasuredSetting(
        **trial.setting.model_dump(),
        mean_rows_per_update=trial.rows_per_update,
        mean_tokens_per_update=trial.tokens_per_update,
        warmup_updates=warmup,
        timed_updates=timed,
        pairs=pairs,
        seeds=seeds,
    )
    return training_report(trial, setting, found["mtl"], {peer: found[peer] for peer in against})


def updates_within(seconds: float, seconds_per_update: float) -> int:
    """How many updates take about ``seconds``, but not so few that a mean of ten parts says nothing."""
    return max(_FEWEST_UPDATES, round(seconds / seconds_per_update))


def _trial(found: Trial | None) -> Trial:
    assert found is not None
    return found


def _training(found: TrainingMeasure | None) -> TrainingMeasure:
    assert found is not None
    return found

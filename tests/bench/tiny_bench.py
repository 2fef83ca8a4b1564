"""Measurements small enough for a test: tiny encoders on generated tasks, and clocks that count their readings."""

from collections.abc import Callable, Sequence
from itertools import count

from mtl.bench.records import Peak, Setting, TrainingMeasure, Trial
from mtl.bench.start import Start, start_training
from mtl.config.load import load_config
from mtl.config.run import RunConfig
from tests.tiny_overrides import TINY

ENTAIL, SIMILARITY, ACCEPTABILITY = "mini/entail2", "mini/similarity", "mini/acceptability"


def tiny_config(*overrides: str, tasks: Sequence[str] = (ENTAIL,)) -> RunConfig:
    """The config of a tiny run; overrides given last win."""
    return load_config([], [*TINY, "data.max_length=48", f"tasks=[{','.join(tasks)}]", *overrides])


def tiny_start(updates: int, *overrides: str, tasks: Sequence[str] = (ENTAIL,)) -> Start:
    """A tiny training of that length, about to start."""
    return start_training(tiny_config(*overrides, tasks=tasks), updates)


def counting_clock(step: float = 1.0) -> Callable[[], float]:
    """A clock that moves on by ``step`` at each reading and never otherwise, from 0."""
    readings = count()
    return lambda: next(readings) * step


def measure(
    seconds: float, *, tokens: int = 1000, losses: Sequence[float] = (1.0,), peak: float | None = 1e9
) -> TrainingMeasure:
    """A training of 10 rows and 1e9 operations that took so long."""
    return TrainingMeasure(
        updates=len(losses),
        seconds=seconds,
        rows=10,
        tokens=tokens,
        padded_tokens=2 * tokens,
        flops=1e9,
        losses=tuple(losses),
        seconds_to_first_update=0.5,
        peak_memory_bytes=2**20,
        peak=None if peak is None else Peak(before=peak / 2, after=peak),
    )


def setting(tasks: Sequence[str] = (ENTAIL,)) -> Setting:
    """A setting made up."""
    return Setting(
        model="some/model",
        parameters=1234,
        tasks=tuple(tasks),
        stage="single" if len(tasks) == 1 else "joint",
        precision="fp32",
        precision_reason="fp32 was asked for.",
        device="cpu",
        threads=1,
        max_length=48,
        rows_per_update=8,
        tokens_per_update=None,
        dropout={"hidden_dropout_prob": 0.1},
        machine={"processor": "a processor", "gpus": [], "cores_usable": 2},
        versions={"torch": "2", "transformers": "5", "tokenizers": "0"},
        commit=None,
    )


def trial(seconds_per_update: float = 0.1, tasks: Sequence[str] = (ENTAIL,)) -> Trial:
    """A trial made up."""
    return Trial(
        setting=setting(tasks),
        seconds_per_update=seconds_per_update,
        rows_per_update=8.0,
        tokens_per_update=80.0,
        time_split={"data_wait": 0.1, "forward": 0.3, "backward": 0.5, "optimiser": 0.1},
        profile=(),
    )

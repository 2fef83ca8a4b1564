"""The task sequence of another run that a joint stage replays: what it is known by."""

from dataclasses import dataclass
from pathlib import Path

from mtl.config.replayed import replayed_run
from mtl.config.run import RunConfig
from mtl.data.replay_plan import recorded_sequence
from mtl.records import ResultRecord, read_result
from mtl.rundir import RunDirectory


@dataclass(frozen=True)
class RecordedDraws:
    """``sha256`` of the sequence, and what stands for it in the name of an arm (see :func:`name_in_chain`)."""

    sha256: str
    chain: str | None


def recorded_draws(config: RunConfig) -> RecordedDraws | None:
    """What ``config`` replays, if it does; DataError where that has not been recorded."""
    replayed = replayed_run(config)
    if replayed is None:
        return None
    result = RunDirectory(Path(replayed).expanduser()).result
    chain = name_in_chain(config, read_result(result)) if result.is_file() else None
    return RecordedDraws(recorded_sequence(replayed).sha256, None if chain is None else f"draws of {chain}")


def name_in_chain(config: RunConfig, source: ResultRecord) -> str | None:
    """What stands for another run in the name of an arm whose runs go on from runs of one arm.

    None unless each goes on from the run of its own seed and fold.
    """
    same = source.seed == config.seed and source.fold == config.splits.held_out
    return source.arm if same else None

"""What a run would cost, as text for a terminal."""

import textwrap
from collections.abc import Iterator

from mtl.stages.plan_records import Cost, RunCosts
from mtl.studies.columns import aligned

_WIDTH = 120
_UNKNOWN = "?"
_HEADER = ("cost", "updates", "tokens", "PFLOP", "evaluating", "time", "evaluating", "memory", "on disk", "at most")


def cost_lines(costs: RunCosts) -> Iterator[str]:
    """A table with a row for each stage and one for all, then what the figures rest on; ``?`` is unknown."""
    rows = [_row(stage.stage, stage.total) for stage in costs.stages]
    if len(rows) > 1:
        rows.append(_row("all", costs.total))
    yield from aligned(_HEADER, rows)
    if costs.flops_per_thousand_tokens is not None:
        parameters = "" if costs.parameters is None else f", {costs.parameters:,} parameters"
        yield (
            f"training takes {costs.flops_per_thousand_tokens / 1e12:.4g} TFLOP for 1,000 tokens, attention and heads "
            f"left out{parameters}"
        )
    yield from textwrap.wrap(f"time and memory: {costs.basis}", _WIDTH)
    for note in costs.notes:
        yield from textwrap.wrap(f"note: {note}", _WIDTH)


def _row(name: str, cost: Cost) -> tuple[str, ...]:
    return (
        name,
        _UNKNOWN if cost.updates is None else f"{cost.updates:,}",
        _UNKNOWN if cost.tokens is None else f"{cost.tokens:,.0f}",
        _scaled(cost.flops, 1e15),
        _scaled(cost.evaluation_flops, 1e15),
        _duration(cost.training_seconds),
        _duration(cost.evaluation_seconds),
        _size(cost.memory_bytes),
        _size(cost.disk_bytes),
        _size(cost.disk_bytes_most),
    )


def _scaled(value: float | None, unit: float) -> str:
    return _UNKNOWN if value is None else f"{value / unit:,.4g}"


def _size(size: float | None) -> str:
    return _UNKNOWN if size is None else f"{size / 2**20:,.0f} MiB"


def _duration(seconds: float | None) -> str:
    """Two units at most: ``3 h 07 min``, ``4 min 10 s``, ``8.1 s``."""
    if seconds is None:
        return _UNKNOWN
    if seconds < 60:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest:02d} s"
    return f"{minutes // 60} h {minutes % 60:02d} min"

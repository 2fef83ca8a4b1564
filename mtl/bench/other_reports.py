"""What `mtl bench eval` and `mtl bench tokenise` report, and how it is made from what was measured."""

import statistics

from mtl.bench.figures import InTurn, in_turn
from mtl.bench.records import EvaluationMeasure, Record, Setting, TokenisingMeasure, TokenisingSetting
from mtl.costs.machine import MachineProfile


class _FirstFigures(InTurn):
    """What the first of both did: rows and real tokens of a turn, and its median rate."""

    real_tokens_per_second: float
    rows: int
    tokens: int


class EvaluationFigures(_FirstFigures):
    """Real tokens a second, medians over the turns; ``ratio`` is evaluation over training."""

    training_real_tokens_per_second: float


class EvaluationReport(Record):
    """The document of ``mtl bench eval --json``."""

    eval: EvaluationFigures
    setting: Setting
    notes: tuple[str, ...]


class TokenisingFigures(_FirstFigures):
    """Rates of the store's builder and of the bare tokenizer, medians; ``ratio``: the builder's over the other's."""

    rows_per_second: float
    bare_real_tokens_per_second: float
    bare_rows_per_second: float


class TokenisingReport(Record):
    """The document of ``mtl bench tokenise --json``."""

    tokenise: TokenisingFigures
    setting: TokenisingSetting
    notes: tuple[str, ...]


class MachineReport(Record):
    """The document of ``mtl bench machine --json``: what was measured and fitted, and where that is kept."""

    profile: MachineProfile
    file: str


def evaluation_report(measure: EvaluationMeasure) -> EvaluationReport:
    """The figures of evaluation and training in turn."""
    evaluation, training = measure.evaluation_tokens_per_second, measure.training_tokens_per_second
    figures = EvaluationFigures(
        **in_turn(evaluation, training).model_dump(),
        real_tokens_per_second=statistics.median(evaluation),
        training_real_tokens_per_second=statistics.median(training),
        rows=measure.rows,
        tokens=measure.tokens,
    )
    note = (
        "Evaluation is one pass over every dev split, its outputs on the host at the end, scores not computed; "
        "training includes data and optimiser. Both in one process, in turn, warm-up left out."
    )
    return EvaluationReport(eval=figures, setting=measure.setting, notes=(note,))


def tokenising_report(measure: TokenisingMeasure) -> TokenisingReport:
    """The figures of both ways in turn."""
    ours, bare = statistics.median(measure.store_seconds), statistics.median(measure.bare_seconds)
    figures = TokenisingFigures(
        # Seconds, so the builder's are what the other's are divided by.
        **in_turn(measure.bare_seconds, measure.store_seconds).model_dump(),
        real_tokens_per_second=measure.tokens / ours,
        rows_per_second=measure.rows / ours,
        bare_real_tokens_per_second=measure.tokens / bare,
        bare_rows_per_second=measure.rows / bare,
        rows=measure.rows,
        tokens=measure.tokens,
    )
    note = (
        "The training rows of every task, in memory before. The store's time covers tokenising, hashing, writing, "
        "syncing and checking; the bare tokenizer's is one call for each task, up to Python lists of ids."
    )
    return TokenisingReport(tokenise=figures, setting=measure.setting, notes=(note,))

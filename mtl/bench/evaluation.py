"""Evaluation under the clock, in turn with training, since its rate is judged against the rate of training."""

import time
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import islice

from mtl.bench.records import EvaluationMeasure
from mtl.bench.start import Start, describe_start, updates_of
from mtl.evaluation.evaluate import Evaluator
from mtl.stages.build import Parts, build_parts
from mtl.training.loop import run_updates
from mtl.training.prepared import PreparedUpdate, prefetched
from mtl.training.tracking import synchronise


def measure_evaluation(
    start: Start, warmup: int, turns: int, *, clock: Callable[[], float] = time.perf_counter
) -> EvaluationMeasure:
    """``turns`` times, an equal part of the training after its warm-up, then every dev split of every task.

    Scores are not computed: the clock covers batches, forward passes and the copy of the outputs to the host. Every
    split is passed once untimed before.
    """
    parts = build_parts(start.context, start.unit)
    turn = _Turn(start, parts, clock)
    training, evaluation = [], []
    with closing(prefetched(parts.preparation, parts.planner, 0)) as updates:
        turn.train(updates, warmup)
        turn.evaluate()
        for count in equal_parts(updates_of(start) - warmup, turns):
            training.append(turn.train(updates, count))
            evaluation.append(turn.evaluate())
    return EvaluationMeasure(
        setting=describe_start(start, sum(parameter.numel() for parameter in parts.model.parameters())),
        rows=sum(store.rows for task in turn.data for store in task.dev.values()),
        tokens=turn.tokens,
        training_tokens_per_second=tuple(training),
        evaluation_tokens_per_second=tuple(evaluation),
    )


def equal_parts(whole: int, parts: int) -> list[int]:
    """``whole`` as a sum of ``parts`` numbers that differ by one at most."""
    return [whole * (part + 1) // parts - whole * part // parts for part in range(parts)]


class _Turn:
    """The two sides; both methods give real tokens a second."""

    def __init__(self, start: Start, parts: Parts, clock: Callable[[], float]) -> None:
        self._parts, self._device, self._clock = parts, start.hardware.device, clock
        self._evaluator = Evaluator(start.unit.settings.evaluation.tokens_per_batch, start.precision, self._device)
        self.data = [start.context.data[task] for task in start.unit.tasks]
        self.tokens = sum(int(store.lengths().sum()) for task in self.data for store in task.dev.values())
        self._trained = 0

    def train(self, updates: Iterator[PreparedUpdate], count: int) -> float:
        """The next ``count`` updates."""
        before, began = self._trained, self._now()
        run_updates(map(self._counted, islice(updates, count)), self._parts.updater, lambda result: False)
        return (self._trained - before) / (self._now() - began)

    def evaluate(self) -> float:
        """All dev splits once."""
        began = self._now()
        for task in self.data:
            for store in task.dev.values():
                self._evaluator.predict(self._parts.model, task.spec, store)
        return self.tokens / (self._now() - began)

    def _counted(self, update: PreparedUpdate) -> PreparedUpdate:
        self._trained += int(update.tokens.sum())
        return update

    def _now(self) -> float:
        synchronise(self._device)
        return self._clock()

"""What one training is expected to cost, from its plan, its encoder's shape and its rows' lengths."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from mtl.config.encoder import SequenceHeadSettings
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig, Stage, StageSettings
from mtl.costs.pace import Footprint, Pace
from mtl.costs.shape import EncoderShape
from mtl.costs.work import (
    HeadShape,
    Passage,
    forward_flops,
    model_parameters,
    pass_work,
    training_flops,
    widest,
)
from mtl.data.lengths import RowLengths
from mtl.data.planner import updates_of
from mtl.data.rows import row_step
from mtl.data.subsets import HOLDOUT_ROWS, HOLDOUT_SHARE
from mtl.stages.plan_records import Cost, ModelPlan
from mtl.stages.sizes import train_portion
from mtl.tasks.registry import get

SNAPSHOTS = 10
"""Evaluations during a training whose selection needs scores and that says nothing of how often."""
_WEIGHT_BYTES, _MOMENT_BYTES = 4, 8
# How far above the mean the largest update of a training lies, in standard deviations.
_LARGEST = 3.0
_FURTHEST = 6.0
# All draws round to one number, nearly always.
_NARROW = 0.1


@dataclass(frozen=True)
class _Evaluated:
    """Rows that are scored together: how many times, of which head, and what is known of their lengths."""

    times: int
    task: str
    lengths: RowLengths
    rows: float


@dataclass(frozen=True)
class ModelCosts:
    """The cost of one training of a stage; ``names`` are all tasks of the run, ``lengths`` by task and split."""

    config: RunConfig
    stage: Stage
    plan: ModelPlan
    shape: EncoderShape | None
    names: Sequence[str]
    lengths: Mapping[tuple[str, str], RowLengths | None]
    pace: Pace | None

    def cost(self) -> Cost:
        """Everything that can be told."""
        passage, updates = self._training, self._updates
        kept, most = self._disk(updates)
        if self.shape is None or passage is None or updates is None:
            tokens = None if passage is None else passage.tokens
            return Cost(updates, tokens, None, None, None, None, None, kept, most)
        flops = training_flops(self.shape, passage)
        evaluated = None if self._unknown_dev else list(self._evaluated(updates))
        scored = None if evaluated is None else sum(forward_flops(self.shape, self._rows(each)) for each in evaluated)
        seconds, scoring, memory = self._on_pace(self.shape, passage, updates, evaluated or [])
        scoring = None if evaluated is None else scoring
        return Cost(updates, passage.tokens, flops, scored, seconds, scoring, memory, kept, most)

    @cached_property
    def _settings(self) -> StageSettings:
        return resolve_stage(self.config, self.stage, self.plan.task)

    @cached_property
    def _heads(self) -> dict[str, HeadShape]:
        heads = {}
        for task in self.plan.tasks:
            settings, spec = resolve_head(self.config, self.stage, task.task), get(task.task)
            # A plug-in's head is taken for one linear layer over all tokens.
            pooling = settings.pooling if isinstance(settings, SequenceHeadSettings) else "mean"
            heads[task.task] = HeadShape(spec.outputs, pooling == "first_dense", pooling != "mean")
        return heads

    @property
    def _first_only(self) -> bool:
        return all(head.first_tokens_only for head in self._heads.values())

    @cached_property
    def _updates(self) -> int | None:
        if self.plan.updates is not None:
            return self.plan.updates
        units = 0.0
        for task in self.plan.tasks:
            lengths = self.lengths.get((task.task, "train"))
            if lengths is None:
                return None
            units += task.rows * lengths.tokens / lengths.rows
        return updates_of(self._settings, units)

    @cached_property
    def _training(self) -> Passage | None:
        """All that the updates take together; None where a task's lengths are unknown."""
        total = Passage()
        for task in self.plan.tasks:
            lengths = self.lengths.get((task.task, "train"))
            if lengths is None or self._updates is None:
                return None
            examples = task.expected_examples
            if examples is None:
                tokens = task.share * self._updates * (self._settings.training.tokens_per_update or 0)
                examples = tokens * lengths.rows / lengths.tokens
            total += self._passage(task.task, lengths, examples)
        return total

    def _passage(self, head: str, lengths: RowLengths, rows: float) -> Passage:
        """So many rows of these lengths, expected."""
        each = rows / lengths.rows
        weights = 0 if self.shape is None else self._heads[head].weights(self.shape.width)
        sequences = lengths.sequences * each
        return Passage(lengths.tokens * each, lengths.squared * each, sequences, weights * sequences)

    def _rows(self, evaluated: _Evaluated) -> Passage:
        return self._passage(evaluated.task, evaluated.lengths, evaluated.rows).times(evaluated.times)

    @property
    def _unknown_dev(self) -> bool:
        return any(self.lengths.get(key) is None for _, key in self._dev_splits())

    def _dev_splits(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """The task whose head reads it, and task and split, of all that is scored at the end."""
        for name in self.names:
            spec = get(name)
            reader = spec.scored_by if spec.evaluate_only else name
            if reader in self._heads:
                for split in spec.dev_splits:
                    yield str(reader), (name, split)

    def _evaluated(self, updates: int) -> Iterator[_Evaluated]:
        """What is scored during the training and at its end."""
        for head, key in self._dev_splits():
            lengths = self.lengths[key]
            assert lengths is not None
            yield _Evaluated(1, head, lengths, lengths.rows)
            if key[0] in self._heads and self._settings.selection.on != "holdout":
                yield _Evaluated(evaluations(self._settings, updates), head, lengths, self._cut(lengths.rows))
        if self._settings.selection.on == "holdout":
            for task in self.plan.tasks:
                lengths = self.lengths[task.task, "train"]
                assert lengths is not None
                held = min(int(HOLDOUT_SHARE * lengths.rows), HOLDOUT_ROWS)
                rows = self._cut(train_portion(self.config, task.task).of(held))
                yield _Evaluated(evaluations(self._settings, updates), task.task, lengths, rows)

    def _cut(self, rows: int) -> int:
        """Rows of a split that are scored during training."""
        limit = self._settings.evaluation.rows_during_training
        return rows if limit is None else min(rows, limit)

    def _on_pace(
        self, shape: EncoderShape, passage: Passage, updates: int, evaluated: Sequence[_Evaluated]
    ) -> tuple[float | None, float | None, float | None]:
        """Seconds of the updates and of the evaluations, and bytes of memory."""
        parameters = model_parameters(shape, list(self._heads.values()))
        if self.pace is None or parameters is None or shape.parameters is None:
            return None, None, None
        settings, first_only = self._settings, self._first_only
        each = passage.times(1.0 / updates)
        micro = max(settings.training.micro_batches, math.ceil(each.tokens / settings.training.tokens_per_micro_batch))
        work = pass_work(
            shape, passage, parameters * updates, first_only=first_only, training=True, passes=micro * updates
        )
        seconds = self.pace.training_seconds(work, training_flops(shape, passage), updates, parameters)
        scoring, wide, scores, scored = 0.0, 0.0, 0.0, 0
        for part in evaluated:
            rows, per_batch = self._rows(part), settings.evaluation.tokens_per_batch
            batches = part.times * math.ceil(rows.tokens / max(part.times, 1) / per_batch)
            work_of_part = pass_work(
                shape, rows, parameters * batches, first_only=first_only, training=False, passes=batches
            )
            scoring += self.pace.evaluation_seconds(work_of_part, forward_flops(shape, rows), batches, parameters)
            scored += batches
            tokens = min(per_batch, part.rows * part.lengths.tokens / part.lengths.rows)
            wide = max(wide, widest(shape, tokens))
            scores = max(scores, shape.attention_heads * tokens * part.lengths.longest)
        largest = pass_work(
            shape, each.times(self._spread(each) / micro), parameters, first_only=first_only, training=True
        )
        # Only the native encoder rounds them.
        step = row_step(round(each.tokens / micro)) if shape.native else 1
        sizes = expected_sizes(micro * updates, self._deviation(each) / micro / step)
        # Full batches of an evaluation are of one size, nearly; the last of each split is of another.
        sizes += min(scored, len(evaluated) + 1)
        footprint = Footprint(shape.parameters, parameters - shape.parameters, largest, wide, scores, sizes)
        memory = self.pace.memory(footprint)
        return seconds, scoring, memory

    def _spread(self, each: Passage) -> float:
        """How many times the mean update's tokens the largest one has; 1 where updates are sized in tokens."""
        if self._settings.training.rows_per_update is None:
            return 1.0
        return 1.0 + _LARGEST * self._deviation(each) / each.tokens

    def _deviation(self, each: Passage) -> float:
        """Standard deviation of an update's tokens; in one sized in tokens that of its last row."""
        mean = squares = 0.0
        for task in self.plan.tasks:
            lengths = self.lengths[task.task, "train"]
            assert lengths is not None
            mean += task.share * lengths.tokens / lengths.rows
            squares += task.share * lengths.squared_rows / lengths.rows
        return math.sqrt(max(0.0, squares - mean * mean) * (self._settings.training.rows_per_update or 1))

    def _disk(self, updates: int | None) -> tuple[float | None, float | None]:
        """Bytes of checkpoints at the training's end, and the most at any time."""
        parameters = None if self.shape is None else model_parameters(self.shape, list(self._heads.values()))
        if parameters is None:
            return None, None
        selected = self._settings.selection.on != "last"
        by_task = self.stage == "joint" and self.config.finetune_from == "task_best"
        kept = _WEIGHT_BYTES * parameters * (1.0 + selected + (len(self.plan.tasks) if by_task else 0))
        every = self.config.checkpoint.every
        steps = 0 if every is None or updates is None else (updates - 1) // every
        # An old one goes only when its successor is whole.
        together = min(steps, self.config.checkpoint.keep + 1)
        return kept, kept + (_WEIGHT_BYTES + _MOMENT_BYTES) * parameters * together


def evaluations(settings: StageSettings, updates: int) -> int:
    """Evaluations during a training of so many updates, patience left out of account."""
    every = settings.evaluation.every
    if settings.selection.on == "last":
        return 0 if every is None else (updates - 1) // every
    return math.ceil(updates / (every or math.ceil(updates / SNAPSHOTS)))


def expected_sizes(draws: int, deviation: float) -> float:
    """How many different whole numbers come up in so many draws from a normal distribution of that deviation."""
    if deviation < _NARROW:
        return float(min(draws, 1))
    places = np.arange(-math.ceil(_FURTHEST * deviation), math.ceil(_FURTHEST * deviation) + 1)
    chances = np.exp(-0.5 * np.square(places / deviation)) / (deviation * math.sqrt(2.0 * math.pi))
    return float((1.0 - np.power(1.0 - np.minimum(chances, 1.0), draws)).sum())

"""One training from start (or resume) to its scores: the loop's hooks are here, what they do is elsewhere."""

import logging
from contextlib import closing

from mtl import metrics
from mtl.errors import StoppedError
from mtl.evaluation.evaluate import Evaluator
from mtl.records import StageRecord, TaskRecord
from mtl.runtime.checkpoint_files import verify_checkpoint
from mtl.stages.build import build_parts
from mtl.stages.context import RunContext, Unit
from mtl.stages.datasets import TaskData
from mtl.stages.models import load_weights
from mtl.stages.scoring import log_values, score_dev, score_snapshot
from mtl.stages.suites import suite_records
from mtl.stages.training_files import TrainingFiles
from mtl.training.flops import FlopCounter
from mtl.training.loop import check_finite, run_updates
from mtl.training.prepared import prefetched
from mtl.training.progress import Progress
from mtl.training.selection import Selection
from mtl.training.totals import Totals
from mtl.training.tracking import LossWindow, MetricsLog, SilentLog, TrainingLog, synchronise
from mtl.training.update import UpdateResult

logger = logging.getLogger("mtl")


def train_one(context: RunContext, unit: Unit) -> StageRecord:
    """Train the unit's model, continuing from its newest checkpoint if it has one, and score every task in full.

    Raises StoppedError after a signal, a checkpoint saved; NonFiniteError with the weights before the bad update.
    """
    training = _Training(context, unit)
    try:
        training.run()
        return training.score()
    finally:
        training.log.close()
        training.progress.close()


class _Training:
    """The state of one training and what happens after each of its updates."""

    def __init__(self, context: RunContext, unit: Unit) -> None:
        self.context, self.unit = context, unit
        self.parts = context.ranks.together(lambda: build_parts(context, unit))
        self.totals = Totals(unit.tasks, FlopCounter.of(self.parts.model))
        self.window = LossWindow(unit.tasks)
        self.selection = Selection(unit.settings.selection.patience)
        # Patience is the suite's: no task alone ends a training of all.
        by_task = unit.stage == "joint" and context.config.finetune_from == "task_best"
        self.task_selections = {task: Selection(None) for task in unit.tasks} if by_task else {}
        self.files = TrainingFiles(
            context, unit, self.parts, self.totals, self.window, self.selection, self.task_selections
        )
        state = self.files.restore()
        self.finished = state is not None and bool(state["finished"])
        self.evaluation_due = state is not None and bool(state["evaluation_due"])
        events = unit.directory.tensorboard if context.config.logging.tensorboard else None
        kept = int(state["log_bytes"]) if state is not None else 0
        self.log: TrainingLog = SilentLog()
        if context.ranks.first:
            self.log = MetricsLog(unit.directory.metrics, events, keep_bytes=kept, step=self.totals.updates)
        self.progress = Progress(unit.title, self.totals.updates, self.parts.planner.total, shown=context.ranks.first)
        self.evaluator = Evaluator(
            unit.settings.evaluation.tokens_per_batch,
            self.parts.precision,
            context.device,
            check=context.signals.agree_and_raise,
            ranks=context.ranks,
        )
        self._mark = (self.totals.seconds, self.totals.examples, self.totals.tokens)
        if state is not None:
            logger.info("%s: resumed after update %d", unit.title, self.totals.updates)

    def run(self) -> None:
        """The updates that are left, then the weights at the end."""
        if self.finished:
            return
        planner, start = self.parts.planner, self.totals.updates
        planner.seek(start, self.totals.cursors)
        # A stop may have come right after the evaluation that used up the patience.
        ended = self._evaluate_or_save() if self.evaluation_due else self.selection.exhausted
        if not ended and start < planner.total:
            # Closed here, so that a training that ends in an error leaves no thread behind.
            with closing(prefetched(self.parts.preparation, planner, start)) as updates:
                run_updates(updates, self.parts.updater, self._after_update)
        self.files.save_last(log_bytes=self.log.length)

    def score(self) -> StageRecord:
        """Every task's dev splits with the selected weights, and the record of the stage."""
        selected, settings = self.totals.updates, self.unit.settings
        if settings.selection.on != "last" and self.selection.best_score is not None:
            verify_checkpoint(self.files.best)
            load_weights(self.parts.model, self.files.best)
            selected = self.selection.best_step
        logger.info("%s: evaluating", self.unit.title)
        tasks: dict[str, TaskRecord] = {}
        readers = {name: name for name in self.unit.tasks}
        readers |= {name: str(data.spec.scored_by) for name, data in self.context.evaluated.items()}
        for name, reader in readers.items():
            if reader in self.unit.tasks:
                tasks[name] = self._score_task(name, reader, selected)
        if self.context.ranks.first:
            self.totals.write_sequence(self.unit.directory.sequence)
        specs = [self.context.everything[task].spec for task in tasks]
        found = {task: {name: split.metrics for name, split in record.splits.items()} for task, record in tasks.items()}
        primaries = {task: record.primary for task, record in tasks.items()}
        prefix = "eval" if settings.selection.on == "last" else "eval_selected"
        self.log.write(self.totals.updates, log_values(prefix, specs, found, primaries))
        self.log.hyperparameters(
            {"seed": self.context.config.seed, "stage": self.unit.stage, "sampling": settings.sampling.kind},
            {f"final/{task}/primary": primary for task, primary in primaries.items()},
        )
        return StageRecord(tasks=tasks, suites=suite_records(specs, tasks), cost=self.totals.cost(self.unit.inherited))

    def _score_task(self, task: str, reader: str, selected: int) -> TaskRecord:
        """The record of a task, its dev splits read by the head of ``reader``."""
        data, settings = self.context.everything[task], self.unit.settings
        splits = score_dev(
            self.parts.model,
            data,
            self.context.data[reader].spec,
            self.evaluator,
            self.unit.directory,
            save=settings.evaluation.save_predictions and self.context.ranks.first,
        )
        looks_before = self.unit.dev_looks_before.get(reader, 0)
        return TaskRecord(
            primary=metrics.primary(data.spec, {split: record.metrics for split, record in splits.items()}),
            selected_on="dev" if looks_before else settings.selection.on,
            looks=looks_before + (1 if settings.selection.on == "last" else self.selection.looks),
            selected_step=selected,
            train_rows=data.train_rows if isinstance(data, TaskData) else None,
            train_rows_official=data.official_rows("train") if isinstance(data, TaskData) else None,
            kfold=data.folded.folds if isinstance(data, TaskData) and data.folded is not None else None,
            labels_shuffled=self.context.data[reader].labels_shuffled,
            splits=splits,
        )

    def _after_update(self, result: UpdateResult) -> bool:
        config, total = self.context.config, self.parts.planner.total
        self.totals.add(result.update)
        self.window.add(result)
        step = self.totals.updates
        self.progress.advance(self._log_training(step) if step % config.logging.every == 0 or step == total else None)
        every = self.parts.evaluate_every
        last = self.unit.settings.selection.on == "last"
        due = every is not None and (step % every == 0 if last else step % every == 0 or step == total)
        ended = due and not (last and step == total) and self._evaluate_or_save()
        if self.context.signals.agree():
            check_finite(result)
            self.files.save_step(log_bytes=self.log.length, evaluation_due=False)
            self.context.signals.raise_if_requested()
        if config.checkpoint.every is not None and step % config.checkpoint.every == 0 and step < total and not ended:
            check_finite(result)
            self.files.save_step(log_bytes=self.log.length, evaluation_due=False)
        return ended

    def _evaluate_or_save(self) -> bool:
        """Evaluate; true if the training is to end. A signal in the middle saves the state before the evaluation."""
        length = self.log.length
        try:
            return self._evaluate()
        except StoppedError:
            self.files.save_step(log_bytes=length, evaluation_due=True)
            raise

    def _evaluate(self) -> bool:
        settings, step = self.unit.settings, self.totals.updates
        snapshot = score_snapshot(
            self.parts.model,
            [self.context.data[task] for task in self.unit.tasks],
            self.evaluator,
            holdout=settings.selection.on == "holdout",
            rows=settings.evaluation.rows_during_training,
        )
        self.log.write(step, snapshot.values)
        if settings.selection.on == "last":
            return False
        # All have the same outputs; but a metric may round differently on another machine, and they have to part never.
        score = float(self.context.ranks.decide(lambda: snapshot.score))
        if self.selection.see(step, score):
            self.files.save_best()
        for task, selection in self.task_selections.items():
            if selection.see(step, snapshot.primaries[task]):
                self.files.save_best_for(task)
        return self.selection.exhausted

    def _log_training(self, step: int) -> dict[str, float]:
        """Write a record of the updates since the last one; what the progress bar shows of it."""
        synchronise(self.context.device)
        means = self.window.take()
        planner, tasks = self.parts.planner, self.unit.tasks
        epochs = {
            f"train/{task}/epochs": float(self.totals.cursors[number] / planner.streams[number].size)
            for number, task in enumerate(tasks)
        }
        shares = planner.probabilities(step - 1)
        probabilities = {f"train/{task}/probability": float(share) for task, share in zip(tasks, shares, strict=True)}
        seconds, examples, tokens = self.totals.seconds, self.totals.examples, self.totals.tokens
        passed = max(seconds - self._mark[0], 1e-9)
        speed = {
            "speed/rows_per_second": (examples - self._mark[1]) / passed,
            "speed/tokens_per_second": (tokens - self._mark[2]) / passed,
        }
        self._mark = (seconds, examples, tokens)
        rate = {"train/learning_rate": self.parts.optimizer.learning_rate(step - 1)}
        self.log.write(step, {**means, **probabilities, **epochs, **rate, **speed})
        losses = [value for name, value in means.items() if name.endswith("/loss")]
        return {"loss": sum(losses) / len(losses), "rows/s": speed["speed/rows_per_second"]}

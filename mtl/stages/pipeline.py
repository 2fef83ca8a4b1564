"""A whole run: data and encoder once, then every stage's trainings in order, each skipped if it is done."""

import logging
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import yaml
from pydantic import JsonValue

from mtl import tasks as task_registry
from mtl.atomic import write_text_atomically
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig
from mtl.data.tokenizer import load_tokenizer
from mtl.errors import MtlError, StoppedError
from mtl.records import ResultRecord, StageName, StageRecord, Status, read_stage_record, sum_costs, write_result
from mtl.rundir import RunDirectory, check_place, prepare_run_directory
from mtl.runtime.checkpoint_files import remove_steps
from mtl.runtime.device import choose_device
from mtl.runtime.ranks import Ranks, joined_ranks
from mtl.runtime.signals import StopSignals
from mtl.stages.build import check_plans
from mtl.stages.checks import check_config
from mtl.stages.context import RunContext, Unit
from mtl.stages.continuing import check_resumed_config, record_environment
from mtl.stages.datasets import load_evaluated_data, load_task_data
from mtl.stages.environment import (
    Hardware,
    RunEnvironment,
    agree_on_kernels,
    describe_run,
    read_environment,
    start_hardware,
)
from mtl.stages.finetuning_start import finetuning_start
from mtl.stages.initial import load_initial_weights
from mtl.stages.shared_start import RankLock, check_same_start
from mtl.stages.suites import suite_records
from mtl.stages.train_one import train_one

logger = logging.getLogger("mtl")


def run_pipeline(config: RunConfig, *, resume: bool = False, overwrite: bool = False) -> ResultRecord:
    """Train as ``config.stages`` say, evaluate every task, write the run directory ``config.out``; its result.

    Raises an :class:`MtlError` for what the user can mend; whatever was finished before is recorded in result.json.
    A start that is refused, or that finds data or encoder missing, leaves everything as it was.
    """
    run = RunDirectory(Path(config.out))
    # The signals are left last, so that none meets a lock half released.
    with joined_ranks(choose_device(config.training.device)) as ranks, StopSignals(ranks) as signals:
        check_same_start(config, ranks)
        names = ranks.together(lambda: _checked_tasks(config))
        with RankLock(run.lock, ranks):
            result = _run(config, names, run, ranks, signals, resume=resume, overwrite=overwrite)
        # Nobody hangs up while another is still reading.
        ranks.wait()
        return result


def _checked_tasks(config: RunConfig) -> tuple[str, ...]:
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    check_place(Path(config.out))
    return names


def _run(
    config: RunConfig,
    names: tuple[str, ...],
    run: RunDirectory,
    ranks: Ranks,
    signals: StopSignals,
    *,
    resume: bool,
    overwrite: bool,
) -> ResultRecord:
    """The run on this rank; the first one prepares the directory, which the others only read."""
    if resume or not overwrite:
        ranks.first_does(lambda: prepare_run_directory(run.path, resume=resume, overwrite=overwrite))
    added = bool(ranks.decide(lambda: resume and check_resumed_config(run, config)))
    hardware = ranks.together(
        lambda: start_hardware(config, read_environment(run.environment) if resume else None, ranks)
    )
    agree_on_kernels(ranks)
    try:
        context = ranks.first_before_others(lambda: _load(config, names, hardware, signals, ranks))
        signals.agree_and_raise()
        ranks.together(lambda: check_plans(context))
    except StoppedError:
        if not resume and ranks.first:
            _begin(run, config, overwrite=overwrite)  # So that --resume finds a run to start.
        raise
    if not resume:
        ranks.first_does(lambda: _begin(run, config, overwrite=overwrite))
    described = describe_run(context, hardware, ranks)
    stored = ranks.decide(lambda: record_environment(run, described, added=added).model_dump(mode="json"))
    if added:
        ranks.first_does(lambda: _write_config(run, config))
    return _Pipeline(context, run, RunEnvironment.model_validate(stored)).execute()


def _load(
    config: RunConfig, names: tuple[str, ...], hardware: Hardware, signals: StopSignals, ranks: Ranks
) -> RunContext:
    """What all stages need; DataError where some of it is missing."""
    # A rank that stopped here alone would leave the others waiting; they ask together afterwards.
    check = signals.raise_if_requested if ranks.first else lambda: None
    tokenizer = load_tokenizer(config.encoder)
    trained, evaluated = ([task_registry.get(name) for name in part] for part in task_registry.split_roles(names))
    data = load_task_data(config, trained, tokenizer, check)
    others = load_evaluated_data(config, evaluated, tokenizer, check)
    initial = load_initial_weights(config, tokenizer)
    return RunContext(config, data, others, tokenizer, initial, hardware.device, hardware.precision, signals, ranks)


def _begin(run: RunDirectory, config: RunConfig, *, overwrite: bool) -> None:
    """Make the directory a run's, by its config.yaml; with ``overwrite`` an earlier run in it is deleted."""
    prepare_run_directory(run.path, resume=False, overwrite=overwrite)
    _write_config(run, config)


def _write_config(run: RunDirectory, config: RunConfig) -> None:
    document = config.model_dump(mode="json")
    for name in ("root", "cache"):
        # Whoever evaluates the run later may stand elsewhere.
        if document["data"][name] is not None:
            document["data"][name] = str(Path(document["data"][name]).expanduser().absolute())
    write_text_atomically(run.config, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))


class _Pipeline:
    """The stages of one run and the record that grows with them."""

    def __init__(self, context: RunContext, run: RunDirectory, environment: RunEnvironment) -> None:
        self.context, self.run, self.environment = context, run, environment
        self.config, self.names, self.signals = context.config, tuple(context.data), context.signals
        self.stages: dict[StageName, StageRecord] = {}

    def execute(self) -> ResultRecord:
        """Every training that is left, and the result; it is written as well where a training fails or is stopped."""
        try:
            for unit in self._units():
                self._merge(unit, self._finished(unit) or self._train(unit))
        except StoppedError:
            self._write("stopped")
            raise
        except MtlError:
            self._write("failed")
            raise
        return self._write("complete")

    def _units(self) -> Iterator[Unit]:
        """The trainings in the order of ``config.stages``; where one starts from is looked for when it is its turn."""
        for stage in self.config.stages:
            for task in [None] if stage == "joint" else self.names:
                members = self._joint_tasks() if task is None else (task,)
                after_joint = stage == "finetune" and "joint" in self.config.stages
                # No joint stage is in a run whose tasks have starts of their own.
                own = None if task is None else self.context.initial.by_task.get(task)
                yield Unit(
                    stage=stage,
                    tasks=members,
                    settings=resolve_stage(self.config, stage, task),
                    heads={name: resolve_head(self.config, stage, name) for name in members},
                    directory=self.run.stage(stage, task),
                    start=None if own is None else own.checkpoint,
                    keep_heads=own is None or self.config.init.heads == "keep",
                    inherited={"joint": self.stages["joint"].cost} if after_joint else self.context.initial.inherited,
                    dev_looks_before=self.context.initial.dev_looks,
                )

    def _dev_looks(self, task: str) -> int:
        """How often the choice of the joint snapshot that fine-tuning starts from has looked at dev scores."""
        record = self.stages["joint"].tasks.get(task)
        if record is None or record.selected_on != "dev" or self.config.finetune_from == "last":
            return self.context.initial.dev_looks.get(task, 0)
        return record.looks

    def _joint_tasks(self) -> tuple[str, ...]:
        """The tasks of the joint model: all of the run's, or those it had when it was trained."""
        record = self._stored(self.run.stage("joint").record)
        return self.names if record is None else tuple(name for name in self.names if name in record.tasks)

    def _train(self, unit: Unit) -> StageRecord:
        self.signals.agree_and_raise()
        logger.info("%s: training", unit.title)
        if unit.stage == "finetune" and "joint" in self.stages:
            # Looked for only now: a fine-tuning that is done needs no snapshot any more.
            start = finetuning_start(self.run, self.config, unit.tasks[0])
            looks = {task: self._dev_looks(task) for task in unit.tasks}
            unit = replace(unit, start=start, dev_looks_before=looks)
        record = train_one(self.context, unit)
        self.context.ranks.first_does(lambda: _keep_record(unit, record))
        for task, scored in record.tasks.items():
            logger.info("%s: %s %.1f", unit.title, task, scored.primary)
        return record

    def _finished(self, unit: Unit) -> StageRecord | None:
        """The record of a training that an earlier call of the run finished."""
        record = self._stored(unit.directory.record)
        if record is not None:
            logger.info("%s: done before, skipped", unit.title)
        return record

    def _stored(self, path: Path) -> StageRecord | None:
        """The record in a file, as the first rank sees it: another machine may not see the same files yet."""

        def read() -> JsonValue:
            return read_stage_record(path).model_dump(mode="json") if path.is_file() else None

        document = self.context.ranks.decide(read)
        return None if document is None else StageRecord.model_validate(document)

    def _merge(self, unit: Unit, record: StageRecord) -> None:
        """Put a training's record into its stage's: tasks side by side, costs added up, suites anew."""
        before = self.stages.get(unit.stage)
        tasks = {**(before.tasks if before else {}), **record.tasks}
        specs = [task_registry.get(name) for name in tasks]
        cost = sum_costs(before.cost, record.cost) if before else record.cost
        self.stages[unit.stage] = StageRecord(tasks=tasks, suites=suite_records(specs, tasks), cost=cost)

    def _write(self, status: Status) -> ResultRecord:
        known = (*self.config.encoder.known_training_data, *self.context.initial.known_training_data)
        encoder = {
            "path": getattr(self.config.encoder, "path", self.config.encoder.kind),
            "known_training_data": list(dict.fromkeys(known)),
        }
        result = ResultRecord.model_validate(
            {
                "status": status,
                "seed": self.config.seed,
                "arm_hash": self.environment.arm_hash,
                "run_hash": self.environment.run_hash,
                "chain_hash": self.environment.chain_hash,
                "fold": self.config.splits.held_out,
                "partial": any(found.partial for found in self.context.everything.values()),
                "encoder": encoder,
                "stages": {stage: record.model_dump() for stage, record in self.stages.items()},
            }
        )
        if self.context.ranks.first:
            write_result(self.run.result, result)
        return result


def _keep_record(unit: Unit, record: StageRecord) -> None:
    unit.directory.path.mkdir(parents=True, exist_ok=True)
    write_text_atomically(unit.directory.record, record.model_dump_json(indent=2) + "\n")
    remove_steps(unit.directory.checkpoints)

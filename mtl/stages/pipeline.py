"""A whole run: data and encoder once, then every stage's trainings in order, each skipped if it is done."""

import logging
from collections.abc import Iterator
from pathlib import Path

import yaml

from mtl import tasks as task_registry
from mtl.atomic import write_text_atomically
from mtl.config.hashes import difference
from mtl.config.load import load_config
from mtl.config.resolve import resolve_head, resolve_stage
from mtl.config.run import RunConfig
from mtl.data.tokenizer import load_tokenizer
from mtl.errors import ConfigError, MtlError, StoppedError
from mtl.models.load import load_encoder
from mtl.records import CostRecord, ResultRecord, StageName, StageRecord, Status, write_result
from mtl.rundir import RunDirectory, prepare_run_directory
from mtl.runtime.lock import RunLock
from mtl.runtime.signals import StopSignals
from mtl.stages.checks import check_config
from mtl.stages.context import RunContext, Unit
from mtl.stages.datasets import load_task_data
from mtl.stages.environment import RunEnvironment, describe_run, read_environment, start_hardware
from mtl.stages.suites import suite_records
from mtl.stages.train_one import train_one

logger = logging.getLogger("mtl")


def run_pipeline(config: RunConfig, *, resume: bool = False, overwrite: bool = False) -> ResultRecord:
    """Train as ``config.stages`` say, evaluate every task, write the run directory ``config.out``; its result.

    Raises an :class:`MtlError` for what the user can mend; whatever was finished before is recorded in result.json.
    """
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    run = RunDirectory(Path(config.out))
    run.path.mkdir(parents=True, exist_ok=True)
    with RunLock(run.lock), StopSignals() as signals:
        prepare_run_directory(run.path, resume=resume, overwrite=overwrite)
        if resume:
            _refuse_changes(run, config)
        else:
            document = config.model_dump(mode="json")
            write_text_atomically(run.config, yaml.safe_dump(document, sort_keys=False, allow_unicode=True))
        return _Pipeline(config, names, run, signals).execute()


class _Pipeline:
    """The stages of one run and the record that grows with them."""

    def __init__(self, config: RunConfig, names: tuple[str, ...], run: RunDirectory, signals: StopSignals) -> None:
        self.config, self.names, self.run, self.signals = config, names, run, signals
        self.stages: dict[StageName, StageRecord] = {}

    def execute(self) -> ResultRecord:
        hardware = start_hardware(self.config, read_environment(self.run.environment))
        tokenizer = load_tokenizer(self.config.encoder)
        specs = [task_registry.get(name) for name in self.names]
        data = load_task_data(self.config, specs, tokenizer, self.signals.raise_if_requested)
        loaded = load_encoder(self.config.encoder, self.config.seed, tokenizer.vocabulary_size)
        self.context = RunContext(
            self.config, data, tokenizer, loaded, hardware.device, hardware.precision, self.signals
        )
        self.environment = self._record_environment(describe_run(self.context, hardware))
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
        """The trainings in the order of ``config.stages``; a later stage finds an earlier one's weights on disk."""
        for stage in self.config.stages:
            for task in [None] if stage == "joint" else self.names:
                members = self.names if task is None else (task,)
                joint = self.run.stage("joint").checkpoints / "last"
                inherited = {"joint": self.stages["joint"].cost} if stage == "finetune" else {}
                yield Unit(
                    stage=stage,
                    tasks=members,
                    settings=resolve_stage(self.config, stage, task),
                    heads={name: resolve_head(self.config, stage, name) for name in members},
                    directory=self.run.stage(stage, task),
                    start=joint if stage == "finetune" else None,
                    inherited=inherited,
                )

    def _train(self, unit: Unit) -> StageRecord:
        self.signals.raise_if_requested()
        logger.info("%s: training", unit.title)
        record = train_one(self.context, unit)
        unit.directory.path.mkdir(parents=True, exist_ok=True)
        write_text_atomically(unit.directory.record, record.model_dump_json(indent=2) + "\n")
        for task, scored in record.tasks.items():
            logger.info("%s: %s %.1f", unit.title, task, scored.primary)
        return record

    def _finished(self, unit: Unit) -> StageRecord | None:
        """The record of a training that an earlier call of the run finished."""
        if not unit.directory.record.is_file():
            return None
        logger.info("%s: done before, skipped", unit.title)
        return StageRecord.model_validate_json(unit.directory.record.read_text(encoding="utf-8"))

    def _merge(self, unit: Unit, record: StageRecord) -> None:
        """Put a training's record into its stage's: tasks side by side, costs added up, suites anew."""
        before = self.stages.get(unit.stage)
        tasks = {**(before.tasks if before else {}), **record.tasks}
        specs = [task_registry.get(name) for name in tasks]
        cost = _sum_costs(before.cost, record.cost) if before else record.cost
        self.stages[unit.stage] = StageRecord(tasks=tasks, suites=suite_records(specs, tasks), cost=cost)

    def _record_environment(self, described: RunEnvironment) -> RunEnvironment:
        """Write environment.json, or on resume make sure that data and encoder are still the same."""
        stored = read_environment(self.run.environment)
        if stored is None:
            write_text_atomically(self.run.environment, described.model_dump_json(indent=2) + "\n")
            return described
        if stored.arm_hash != described.arm_hash:
            changed = sorted(task for task in self.names if stored.data.get(task) != described.data[task])
            what = f"the data of {', '.join(changed)}" if changed else "the encoder's weights"
            raise ConfigError(f"{what} changed since {self.run.path} was started; start a new run in another out=")
        return stored

    def _write(self, status: Status) -> ResultRecord:
        encoder = {
            "path": getattr(self.config.encoder, "path", self.config.encoder.kind),
            "known_training_data": list(self.config.encoder.known_training_data),
        }
        result = ResultRecord.model_validate(
            {
                "status": status,
                "seed": self.config.seed,
                "arm_hash": self.environment.arm_hash,
                "run_hash": self.environment.run_hash,
                "partial": any(self.context.data[name].partial for name in self.names),
                "encoder": encoder,
                "stages": {stage: record.model_dump() for stage, record in self.stages.items()},
            }
        )
        write_result(self.run.result, result)
        return result


def _sum_costs(first: CostRecord, second: CostRecord) -> CostRecord:
    """Two trainings of one stage; what both inherited was spent once."""
    sums = {
        name: getattr(first, name) + getattr(second, name) for name in CostRecord.model_fields if name != "inherited"
    }
    return CostRecord(**sums, inherited={**first.inherited, **second.inherited})


def _refuse_changes(run: RunDirectory, config: RunConfig) -> None:
    changes = difference(load_config(run.config), config)
    if changes:
        raise ConfigError(
            f"--resume continues {run.path} only as it was started, but the config differs: {'; '.join(changes)}. "
            "Take these back, or start a new run in another out="
        )

"""Whether the arms of a study spend alike what the study says they do, as far as row counts tell."""

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from mtl.config.replayed import with_joint_sampling
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.errors import ConfigError
from mtl.stages.plan import plan_run
from mtl.stages.plan_records import ModelPlan, RunPlan
from mtl.studies.expand import PlannedRun
from mtl.studies.spec import StudySpec

# Expected counts of examples come from rounded numbers of updates.
_TOLERANCE = 0.02

Spent = dict[str, float]


def check_equal(study: StudySpec, runs: Sequence[PlannedRun]) -> str:
    """A line that says what is held equal and how far that was checked; ConfigError where arms are unequal.

    What an arm spends is, in one seed, the sum over all models of its run and those that led to the weights it starts
    from: of the stage that these are of, or of its own tasks there where each starts from its own model. An arm that
    another one starts from can only have spent less, and is not compared. Training that may stop early counts in full.
    Needs the data of every task, of which no row is read.
    """
    if study.equal == "none":
        return "nothing is held equal between the arms"
    if study.equal == "total_tokens":
        return "equal: total_tokens is not checked, since tokens are known only once rows are read: see cost.tokens"
    spent = _spent_by_arm(study, runs)
    unknown = [arm for arm, amounts in spent.items() if amounts is None]
    if unknown:
        return (
            f"equal: {study.equal} is not checked, since updates are sized in tokens in {', '.join(unknown)} and their "
            "number is known only once rows are read"
        )
    known = {arm: amounts for arm, amounts in spent.items() if amounts is not None}
    unequal = [
        what for what in dict.fromkeys(key for amounts in known.values() for key in amounts) if _differs(known, what)
    ]
    if unequal:
        lines = [f"  {arm}: " + ", ".join(_shown(amounts, what) for what in unequal) for arm, amounts in known.items()]
        raise ConfigError(
            f"the study says equal: {study.equal}, but its arms come to different amounts:\n"
            + "\n".join(lines)
            + "\nChange training.updates or training.epochs of an arm, or set equal: none"
        )
    if study.equal == "updates":
        return f"equal: every arm takes {next(iter(known.values()))['updates']:,.0f} updates in all"
    return "equal: every task is expected to come up as often in every arm that trains it"


def _spent_by_arm(study: StudySpec, runs: Sequence[PlannedRun]) -> dict[str, Spent | None]:
    seed = study.seeds[0]
    planned = {run.directory: run for run in runs if run.seed == seed and run.fold in (None, 0)}
    plans = {place: plan_run(_foreseen(run, planned)) for place, run in planned.items()}

    def spent(run: PlannedRun, stages: Collection[str], tasks: Collection[str] | None) -> Spent | None:
        """What these stages had spent once they were over, their one-task models only for ``tasks`` if given."""
        own = _spent(plans[run.directory], study.equal, stages, tasks)
        if run.starts_from is None:
            return own
        init = run.config.init
        leading = ("joint", "finetune") if init.stage == "finetune" else (init.stage,)
        own_tasks = tasks or plans[run.directory].tasks
        before = spent(planned[run.starts_from], leading, own_tasks if init.by_task else None)
        return None if own is None or before is None else _sum(before, own)

    sources = {run.starts_from for run in runs}
    return {
        arm: spent(run, run.config.stages, None)
        for run in planned.values()
        if run.directory not in sources
        for arm in run.arms
    }


def _foreseen(run: PlannedRun, planned: Mapping[Path, PlannedRun]) -> RunConfig:
    """The run's settings; one that repeats what another draws is expected to draw what that one is."""
    if run.replays is None:
        return run.config
    source = _foreseen(planned[run.replays], planned)
    sampling = resolve_stage(source, "joint", None).sampling
    return with_joint_sampling(run.config, sampling.model_dump(mode="json"))


def _spent(plan: RunPlan, what: str, stages: Collection[str], tasks: Collection[str] | None) -> Spent | None:
    """Updates in all, or expected examples by task; None where a model's are not known."""
    total: Spent = {}
    for stage in plan.stages:
        for model in stage.models if stage.stage in stages else ():
            if tasks is not None and model.task is not None and model.task not in tasks:
                continue
            own = _of_model(model, what)
            if own is None:
                return None
            total = _sum(total, own)
    return total


def _of_model(model: ModelPlan, what: str) -> Spent | None:
    if what == "updates":
        return None if model.updates is None else {"updates": float(model.updates)}
    found = {task.task: task.expected_examples for task in model.tasks}
    known = {task: examples for task, examples in found.items() if examples is not None}
    return known if len(known) == len(found) else None


def _sum(first: Mapping[str, float], second: Mapping[str, float]) -> Spent:
    return {key: first.get(key, 0.0) + second.get(key, 0.0) for key in dict.fromkeys((*first, *second))}


def _differs(spent: Mapping[str, Spent], what: str) -> bool:
    amounts = [found[what] for found in spent.values() if what in found]
    tolerance = 0.0 if what == "updates" else _TOLERANCE
    return max(amounts) - min(amounts) > tolerance * max(amounts)


def _shown(amounts: Mapping[str, float], what: str) -> str:
    unit = "" if what == "updates" else " examples"
    return f"{what} {amounts[what]:,.0f}{unit}" if what in amounts else f"{what} none"

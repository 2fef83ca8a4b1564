"""``result.json``: what a run scored, how it was selected and what it cost. The schema that tables are computed from.

Scores are times 100 and unrounded. Timings stand only under ``cost.seconds``, which comparisons for equality leave
out. Unknown keys, NaN and infinity are refused in both directions, so that a file either means this or is no result.
"""

import json
import operator
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from mtl.atomic import write_text_atomically
from mtl.errors import DataError

StageName = Literal["single", "joint", "finetune"]
Status = Literal["complete", "stopped", "failed"]
SelectedOn = Literal["last", "holdout", "dev"]

Count = Annotated[int, Field(ge=0)]
Amount = Annotated[float, Field(ge=0)]


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


def _is_none(value: object) -> bool:
    return value is None


class SplitRecord(_Record):
    """One split of one task: all its metrics over ``rows`` rows.

    ``rows_at_hand`` is there where these are but a part of the split, always the same for one number of rows.
    """

    metrics: dict[str, float]
    rows: Count
    rows_official: Count | None = None
    """Rows of the official release; None where the task has none."""
    rows_at_hand: Count | None = Field(default=None, exclude_if=_is_none)
    rows_sha256: str
    """Fingerprint of what was scored: the file's bytes, or the generated rows."""
    flags: list[str] = []


class TaskRecord(_Record):
    """One task in one stage. ``looks`` counts how often the data it was selected on were scored.

    ``train_rows`` are the rows of train that were used; None where that is not known. ``kfold`` is there where train
    and dev were divided anew into so many folds, of which one is scored here, or all together. ``labels_shuffled`` is
    there where the labels of train were permuted: a control, whose scores are none of the task.
    """

    primary: float
    selected_on: SelectedOn
    looks: Count
    selected_step: Count
    train_rows: Count | None = None
    train_rows_official: Count | None = None
    kfold: Count | None = Field(default=None, exclude_if=_is_none)
    labels_shuffled: bool = Field(default=False, exclude_if=operator.not_)
    splits: dict[str, SplitRecord]


class SuiteRecord(_Record):
    """The unweighted mean over ``tasks``; None where no task of the run counts towards it.

    ``score_with_wnli`` also counts the tasks that normally stay out (GLUE's WNLI); None where the run has none.
    """

    score: float | None
    score_with_wnli: float | None = None
    tasks: list[str]


class CostRecord(_Record):
    """What a stage spent. ``inherited`` is what the stages or runs it started from had spent, by their name."""

    updates: Count = 0
    examples: Count = 0
    tokens: Count = 0
    flops: Amount = 0
    seconds: Amount = 0
    inherited: dict[str, "CostRecord"] = {}


def sum_costs(first: CostRecord, second: CostRecord) -> CostRecord:
    """Two trainings of one stage; what both inherited was spent once."""
    sums = {
        name: getattr(first, name) + getattr(second, name) for name in CostRecord.model_fields if name != "inherited"
    }
    return CostRecord(**sums, inherited={**first.inherited, **second.inherited})


class StageRecord(_Record):
    """Everything one stage scored, by task and by suite, and its cost."""

    tasks: dict[str, TaskRecord]
    suites: dict[str, SuiteRecord]
    cost: CostRecord


class EncoderRecord(_Record):
    """Where the encoder came from, and on which data it is known to have been trained before."""

    path: str
    known_training_data: list[str] = []


class ResultRecord(_Record):
    """A whole run.

    ``partial``: some split, trained on or scored, lacks rows of the official release, so that nothing here may be
    printed beside published scores. ``arm_hash`` is equal for runs that differ in their seed only, and in ``fold``, the
    one that was held out where small tasks were divided into folds. ``chain_hash`` is there where a run started from
    another one of the same seed and fold, or replays its draws, and equal where the runs started from are of one arm:
    their weights differ with the seed, and so do the arm hashes of what starts from them.
    """

    schema_: Literal[1] = Field(default=1, alias="schema")
    status: Status
    seed: int
    arm_hash: str
    run_hash: str
    fold: Count | None = Field(default=None, exclude_if=_is_none)
    chain_hash: str | None = Field(default=None, exclude_if=_is_none)
    partial: bool
    encoder: EncoderRecord
    stages: dict[StageName, StageRecord] = {}

    @property
    def arm(self) -> str:
        """Equal for the runs of one arm: runs that differ in their seed, and in that of what they start from, only."""
        return self.chain_hash or self.arm_hash


def read_result(path: Path) -> ResultRecord:
    """The result at ``path``; DataError where it is missing or is none of this schema."""
    try:
        text = path.read_text(encoding="utf-8")
    except FileNotFoundError as error:
        raise DataError(f"no result at {path}: the run has not finished, or the path is not a run's") from error
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8, so it is no result file") from error
    try:
        return ResultRecord.model_validate_json(text, strict=True)
    except ValidationError as error:
        faults = "; ".join(f"{'.'.join(map(str, fault['loc'])) or 'file'}: {fault['msg']}" for fault in error.errors())
        raise DataError(f"{path} is no result of schema 1 ({faults}); run it again with this version") from error


def read_stage_record(path: Path) -> StageRecord:
    """The record of one finished training, which is there; DataError where it is damaged."""
    try:
        return StageRecord.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path} is damaged: delete it, and --resume scores that training again") from error


def write_result(path: Path, result: ResultRecord) -> None:
    """Write ``result`` to ``path``, wholly or not at all; equal results give equal bytes."""
    values = result.model_dump(mode="json", by_alias=True)
    write_text_atomically(path, json.dumps(values, indent=2, ensure_ascii=False, allow_nan=False) + "\n")


def result_schema() -> dict[str, Any]:
    """The JSON schema of ``result.json``, for editors and for scripts in other languages."""
    return ResultRecord.model_json_schema(by_alias=True, mode="serialization")

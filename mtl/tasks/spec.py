"""What a task is: a name, its texts and labels, its metrics and where its rows lie. Data only, no code per task."""

from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

TaskKind = Literal["classification", "regression"]
MetricName = Literal["accuracy", "f1", "matthews", "pearson", "spearman", "exact_match", "r3"]
TaskName = Annotated[str, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,63}/[A-Za-z0-9][A-Za-z0-9._-]{0,63}$")]
Reader = Literal["tsv", "csv", "jsonl", "parquet", "hub", "generated"]


class SplitSpec(BaseModel):
    """One split of a task: its file under the task's directory, and the row count of the official release."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    file: str
    hub: str | None = None
    official_rows: int | None = None
    labelled: bool = True
    columns: tuple[str, ...] | None = None
    """Column names of a file without a header line, in order; None where the first line names them."""
    text_columns: tuple[str, ...] | None = None
    """Columns of the texts where this file calls them otherwise than the task's other files; None where it does not."""


class TaskSpec(BaseModel):
    """A task as data.

    ``labels`` are the class names in the order of the head's outputs; ``label_values`` maps what stands in the label
    column to a class name (identity where it is empty). A regression task has no labels but a ``score_range``.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: TaskName
    kind: TaskKind
    reader: Reader = "tsv"
    directory: str
    text_columns: tuple[str, ...] = Field(min_length=1, max_length=2)
    label_column: str
    labels: tuple[str, ...] = ()
    label_values: dict[str, str] = {}
    positive_label: str | None = None
    score_range: tuple[float, float] | None = None
    metrics: tuple[MetricName, ...] = Field(min_length=1)
    primary: tuple[MetricName, ...] = Field(min_length=1)
    splits: dict[str, SplitSpec]
    dev_splits: tuple[str, ...] = ("dev",)
    in_suite_score: bool = True
    evaluate_only: bool = False
    """Never trained; scored with the head of ``scored_by``, whose labels ``label_map`` turns into this task's."""
    scored_by: str | None = None
    label_map: dict[str, str] = {}
    tag_columns: tuple[str, ...] = ()
    """Columns of a diagnostic set that name the phenomena of a row, several separated by semicolons."""
    files_root: str | None = None
    """Directory of a user's files; None for the layout of the data root."""
    hub: tuple[str, str | None] | None = None
    """Hub data set and configuration: ``("nyu-mll/glue", "rte")``. A folder begins with ``.``, ``/`` or ``~``."""
    hub_columns: dict[str, str] = {}
    """What the hub calls a column, for those that it calls otherwise than the file."""
    version: int = 1

    @property
    def suite(self) -> str:
        """The part of the name before the slash."""
        return self.name.split("/")[0]

    @property
    def outputs(self) -> int:
        """Width of the head: the number of classes, 1 for regression."""
        return len(self.labels) if self.kind == "classification" else 1

    def texts_of(self, split: str) -> tuple[str, ...]:
        """The columns that hold the texts in the file of ``split``."""
        return self.splits[split].text_columns or self.text_columns

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        if self.kind == "classification" and len(set(self.labels)) != len(self.labels):
            raise ValueError(f"{self.name}: a label name stands twice in {self.labels}")
        if self.kind == "classification" and len(self.labels) < 2:
            raise ValueError(f"{self.name}: a classification task needs at least two labels")
        if self.kind == "regression" and (self.labels or self.score_range is None):
            raise ValueError(f"{self.name}: a regression task has a score_range and no labels")
        if not set(self.primary) <= set(self.metrics):
            raise ValueError(f"{self.name}: primary metrics {self.primary} are not all among {self.metrics}")
        if "f1" in self.metrics and self.positive_label not in self.labels:
            raise ValueError(f"{self.name}: f1 needs positive_label, one of {self.labels}")
        unknown = set(self.label_values.values()) - set(self.labels)
        if unknown:
            raise ValueError(f"{self.name}: label_values name labels that do not exist: {sorted(unknown)}")
        if self.evaluate_only != (self.scored_by is not None):
            raise ValueError(f"{self.name}: evaluate_only and scored_by go together")
        unmapped = set(self.label_map.values()) - set(self.labels)
        if unmapped:
            raise ValueError(f"{self.name}: label_map leads to labels that do not exist: {sorted(unmapped)}")
        needed = set(self.dev_splits) if self.evaluate_only else {"train", *self.dev_splits}
        missing = needed - set(self.splits)
        if missing:
            raise ValueError(f"{self.name}: splits lack {sorted(missing)}")
        uneven = [name for name in self.splits if len(self.texts_of(name)) != len(self.text_columns)]
        if uneven:
            raise ValueError(f"{self.name}: the splits {uneven} have another number of texts than the task")
        return self

"""Suite scores from the scores of their tasks."""

from collections.abc import Mapping, Sequence

from mtl import metrics
from mtl.records import SuiteRecord, TaskRecord
from mtl.tasks.spec import TaskSpec


def suite_records(specs: Sequence[TaskSpec], tasks: Mapping[str, TaskRecord]) -> dict[str, SuiteRecord]:
    """The unweighted mean of every suite over the tasks that were scored, which the record names."""
    records = {}
    for suite in dict.fromkeys(spec.suite for spec in specs):
        members = [spec for spec in specs if spec.suite == suite]
        found = metrics.suite_score({spec.name: tasks[spec.name].primary for spec in members}, members)
        records[suite] = SuiteRecord(score=found.score, score_with_wnli=found.score_all, tasks=list(found.tasks))
    return records

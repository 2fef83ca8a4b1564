"""Suite scores from the scores of their tasks."""

from collections.abc import Mapping, Sequence

from mtl import metrics
from mtl.records import SuiteRecord, TaskRecord
from mtl.tasks.spec import TaskSpec


def suite_records(specs: Sequence[TaskSpec], tasks: Mapping[str, TaskRecord]) -> dict[str, SuiteRecord]:
    """The unweighted mean of every suite over the tasks that were trained and scored, which the record names."""
    records = {}
    trained = [spec for spec in specs if not spec.evaluate_only]
    for suite in dict.fromkeys(spec.suite for spec in trained):
        members = [spec for spec in trained if spec.suite == suite]
        found = metrics.suite_score({spec.name: tasks[spec.name].primary for spec in members}, members)
        records[suite] = SuiteRecord(score=found.score, score_with_wnli=found.score_all, tasks=list(found.tasks))
    return records

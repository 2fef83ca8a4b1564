"""What a task file says becomes a task, and what is wrong with one is said by file and key."""

from pathlib import Path
from typing import Any

import pytest

from mtl.config.task_files import read_definition
from mtl.errors import ConfigError
from mtl.tasks import registry
from mtl.tasks.custom import define_task, spec_fingerprint

REVIEWS: dict[str, Any] = {
    "name": "mine/reviews",
    "files": {"train": "reviews.csv", "dev": "reviews_dev.csv"},
    "texts": ["review"],
    "label": "rating",
    "labels": ["negative", "positive"],
    "defined_in": "/data/reviews.yaml",
}
LIKENESS = {**REVIEWS, "labels": None, "score_range": ["0", "5"], "texts": ["one", "other"]}


@pytest.fixture(autouse=True)
def scratch_registry(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(registry, "_TASKS", dict(registry._TASKS))


def _refused(**changes: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        define_task({**REVIEWS, **changes})
    return str(caught.value)


def test_a_short_file_is_a_whole_task(tmp_path: Path) -> None:
    (tmp_path / "reviews.yaml").write_text(
        "name: mine/reviews\nfiles: {train: reviews.csv, dev: reviews_dev.csv}\n"
        "texts: [review]\nlabel: rating\nlabels: [negative, positive]\n"
    )
    spec = define_task(read_definition(tmp_path / "reviews.yaml"))
    assert (spec.name, spec.kind, spec.reader) == ("mine/reviews", "classification", "csv")
    assert (spec.text_columns, spec.label_column) == (("review",), "rating")
    assert (spec.labels, spec.label_values) == (("negative", "positive"), {})
    assert (spec.metrics, spec.primary) == (("accuracy",), ("accuracy",))
    assert {split: part.file for split, part in spec.splits.items()} == REVIEWS["files"]
    assert spec.files_root == str(tmp_path)


def test_a_mapping_of_labels_names_what_stands_in_the_file() -> None:
    spec = define_task({**REVIEWS, "labels": {"0": "bad", "1": "good", "2": "good"}})
    assert spec.labels == ("bad", "good")
    assert spec.label_values == {"0": "bad", "1": "good", "2": "good"}


def test_a_range_makes_a_regression() -> None:
    spec = define_task(LIKENESS)
    assert (spec.kind, spec.score_range, spec.outputs) == ("regression", (0.0, 5.0), 1)
    assert spec.primary == ("pearson", "spearman")


def test_metrics_and_what_is_primary_can_be_chosen() -> None:
    spec = define_task({**REVIEWS, "metrics": ["f1", "accuracy"], "primary": ["f1"], "positive": "positive"})
    assert (spec.metrics, spec.primary, spec.positive_label) == (("f1", "accuracy"), ("f1",), "positive")
    assert define_task({**REVIEWS, "metrics": ["accuracy", "matthews"]}).primary == ("accuracy", "matthews")


def test_every_split_that_begins_with_dev_is_scored() -> None:
    files = {"train": "a.tsv", "dev_old": "b.tsv", "dev_new": "c.tsv", "test": "d.tsv"}
    spec = define_task({**REVIEWS, "files": files, "unlabelled": ["test"]})
    assert spec.dev_splits == ("dev_old", "dev_new")
    assert spec.reader == "tsv"
    assert [part.labelled for part in spec.splits.values()] == [True, True, True, False]


def test_a_hub_data_set_is_named_with_its_own_splits() -> None:
    spec = define_task({**REVIEWS, "files": None, "hub": {"path": "some/reviews", "config": "plain"}})
    assert (spec.reader, spec.hub) == ("hub", ("some/reviews", "plain"))
    assert {split: part.hub for split, part in spec.splits.items()} == {"train": "train", "dev": "validation"}


def test_a_task_may_only_be_evaluated() -> None:
    spec = define_task(
        {**REVIEWS, "files": {"dev": "hans.jsonl"}, "scored_by": "glue/mnli", "label_map": {"neutral": "negative"}}
    )
    assert spec.evaluate_only
    assert (spec.scored_by, spec.label_map) == ("glue/mnli", {"neutral": "negative"})
    assert registry.split_roles(("glue/mnli", "glue/ax")) == (("glue/mnli",), ("glue/ax",))


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"fils": {}}, "fils: unknown key; did you mean files?"),
        ({"hub": {"path": "a/b", "conf": "x"}, "files": None}, "hub.conf: unknown key; did you mean config?"),
        ({"texts": "review"}, "texts: must be a list; write [review]"),
        ({"texts": ["a", "b", "c"]}, "texts: Tuple should have at most 2"),
        ({"name": None}, "name: "),
        ({"metrics": ["acuracy"]}, "metrics.0: must be 'accuracy', 'f1'"),
        ({"labels": None}, "set exactly one of labels (classification) and score_range (regression)"),
        ({"score_range": ["0", "1"]}, "set exactly one of labels (classification) and score_range"),
        ({"labels": None, "score_range": ["5", "0"]}, "score_range is [lowest, highest]"),
        ({"hub": {"path": "a/b"}}, "set exactly one of files and hub"),
        ({"files": None}, "set exactly one of files and hub"),
        ({"files": {"train": "a.csv"}}, "files: names no dev split"),
        ({"files": {"dev": "a.csv"}}, "files: names no train split; a task that is only evaluated says scored_by"),
        (
            {"files": {"train": "a.csv", "dev": "b.tsv"}},
            "files: cannot tell one format from the endings of a.csv, b.tsv",
        ),
        ({"files": {"train": "a.txt", "dev": "b.txt"}}, "files: cannot tell one format"),
        ({"files": {"train": "a\0.csv", "dev": "b.csv"}}, "cannot be a split"),
        ({"files": {"train": "a.csv", "dev/../x": "b.csv"}}, "cannot be a split"),
        ({"labels": ["a", "a"]}, "labels: a name stands twice in a, a"),
        ({"labels": ["a"]}, "at least two labels"),
        ({"metrics": ["f1"]}, "positive: f1 needs the label it counts as positive, one of negative, positive"),
        ({"positive": "good"}, "positive: 'good' is none of negative, positive"),
        ({"primary": ["f1"]}, "are not all among"),
        ({"unlabelled": ["test"]}, "unlabelled names splits that there are not: test"),
        ({"evaluate_only": "true"}, "evaluate_only needs scored_by"),
        ({"scored_by": "glue/mnli", "label_map": {"neutral": "x"}}, "label_map leads to labels that do not exist"),
    ],
)
def test_what_is_said_of_a_wrong_file(changes: dict[str, Any], line: str) -> None:
    message = _refused(**changes)
    assert message.startswith("/data/reviews.yaml: ")
    assert line in message


@pytest.mark.parametrize("name", ["../x", "mine/../x", "mine", "mine/a\0b", "mine/" + "x" * 65, "/x", "mine/x\n", ""])
def test_a_hostile_name_is_refused(name: str) -> None:
    assert "is no name; write SUITE/TASK" in _refused(name=name)


def test_a_shipped_name_cannot_be_taken() -> None:
    for name in ("glue/rte", "glue/mine", "mini/entail3"):
        with pytest.raises(ConfigError, match=r"reviews\.yaml: the name .* is in the shipped suite"):
            registry.expand([{**REVIEWS, "name": name}])


def test_two_tasks_of_one_name_are_refused() -> None:
    with pytest.raises(ConfigError, match="another task is called 'mine/reviews' already"):
        registry.expand([REVIEWS, {**REVIEWS, "label": "other"}])
    registry.register_task(define_task({**REVIEWS, "name": "mine/plugged"}).model_copy(update={"files_root": None}))
    with pytest.raises(ConfigError, match="another task is called 'mine/plugged' already"):
        registry.expand([{**REVIEWS, "name": "mine/plugged"}])


def test_a_definition_is_known_by_name_from_there_on() -> None:
    other = {**REVIEWS, "name": "mine/other"}
    assert registry.expand(["mini/entail2", REVIEWS, other, "-mine/other"]) == ("mini/entail2", "mine/reviews")
    assert registry.expand([REVIEWS, other, "-mine"]) == ()
    assert registry.expand([REVIEWS, other, "mine"]) == ("mine/reviews", "mine/other")
    assert registry.get("mine/reviews").label_column == "rating"


def test_another_config_may_define_it_anew() -> None:
    registry.expand([REVIEWS])
    registry.expand([{**REVIEWS, "label": "other"}])
    assert registry.get("mine/reviews").label_column == "other"


def test_a_task_file_may_stand_for_its_task(tmp_path: Path) -> None:
    path = tmp_path / "likes.yaml"
    path.write_text("{name: mine/likes, files: {train: a.csv, dev: b.csv}, texts: [a], labels: [no, yes]}")
    assert registry.expand([str(path)]) == ("mine/likes",)
    assert registry.get("mine/likes").files_root == str(tmp_path)
    with pytest.raises(ConfigError, match=r"none\.yaml: cannot be read"):
        registry.expand([str(tmp_path / "none.yaml")])


def test_the_fingerprint_is_of_what_the_task_is_not_of_where_its_files_lie() -> None:
    known = spec_fingerprint(define_task(REVIEWS))
    moved = {"defined_in": "/elsewhere/x.yaml", "files": {"train": "a.jsonl", "dev": "b.jsonl"}}
    assert spec_fingerprint(define_task({**REVIEWS, **moved})) == known
    assert spec_fingerprint(define_task({**REVIEWS, "metrics": ["accuracy"]})) == known
    for change in ({"label": "stars"}, {"labels": ["positive", "negative"]}, {"metrics": ["matthews"]}):
        assert spec_fingerprint(define_task({**REVIEWS, **change})) != known

"""Small tasks divided into folds: what a run trains on and scores, and what a study makes of all folds together."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from test_studies import OVERRIDES
from tiny_runs import ACCEPTABILITY, ENTAIL, SIMILARITY, run_tiny

from mtl import api, metrics, tasks
from mtl.config.run import RunConfig
from mtl.errors import ConfigError, DataError
from mtl.records import ResultRecord, read_result
from mtl.rundir import RunDirectory
from mtl.stages.plan import plan_run
from mtl.studies.find import FoundRun, find_runs
from mtl.studies.folds import pooled_folds
from mtl.studies.scored_arms import scored_arms
from mtl.studies.spec import StudySpec, read_study

LARGE = "mini/entail3"
ROWS = {
    name: {split: tasks.get(name).splits[split].official_rows or 0 for split in ("train", "dev")}
    for name in (ENTAIL, SIMILARITY, LARGE)
}
FOLDS = 2


def study(place: Path, *overrides: str, **changes: object) -> StudySpec:
    document = {
        "name": "folds",
        "question": "Which sampler?",
        "base": ["empty.yaml"],
        "overrides": [*OVERRIDES, "training.updates=3", *overrides],
        "arms": {"even": ["sampling=uniform"], "sizes": []},
        "seeds": 2,
        "folds": FOLDS,
        "equal": "updates",
        "baseline": "sizes",
    }
    place.mkdir(parents=True, exist_ok=True)
    (place / "empty.yaml").write_text("")
    (place / "study.yaml").write_text(json.dumps({**document, **changes}))
    return read_study(place / "study.yaml")


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A study of two arms, two seeds and two folds; one of its tasks is too large to be divided."""
    place = tmp_path_factory.mktemp("folds")
    outcome = api.study(study(place, f"tasks=[{ENTAIL},{SIMILARITY},{LARGE}]"), place / "out")
    assert len(outcome.complete) == 8
    return place / "out"


def runs(done: Path, arm: str, seed: int) -> list[Path]:
    """The directories of the runs of an arm and seed, by fold."""
    return sorted(done.glob(f"runs/{arm}/seed-{seed}-fold-*"))


def saved(run: Path, task: str) -> dict[int, tuple[object, object]]:
    """Label and prediction by row."""
    table = pq.read_table(RunDirectory(run).stage("joint").predictions(task, "dev")).to_pydict()
    return dict(zip(table["row_id"], zip(table["label"], table["prediction"], strict=True), strict=True))


def pooled(done: Path) -> list[FoundRun]:
    return pooled_folds(find_runs([done]))


def test_folds_cover_train_and_dev_once_alike_in_every_arm_and_seed(done: Path) -> None:
    for task in (ENTAIL, SIMILARITY):
        divisions = set()
        for arm in ("even", "sizes"):
            for seed in (1, 2):
                found = [sorted(saved(run, task)) for run in runs(done, arm, seed)]
                assert len(found) == FOLDS
                assert sorted(found[0] + found[1]) == list(range(sum(ROWS[task].values())))
                divisions.add(json.dumps(found))
        assert len(divisions) == 1


def test_a_fold_says_so_in_its_result(done: Path) -> None:
    for fold, run in enumerate(runs(done, "even", 1)):
        result = read_result(run / "result.json")
        assert result.fold == fold
        records = result.stages["joint"].tasks
        assert {name: record.kfold for name, record in records.items()} == {ENTAIL: 2, SIMILARITY: 2, LARGE: None}
        scored = records[ENTAIL].splits["dev"]
        assert (scored.rows, scored.rows_official) == (len(saved(run, ENTAIL)), None)
        assert not result.partial or records[LARGE].train_rows_official != records[LARGE].train_rows
        assert records[LARGE].splits["dev"].rows == ROWS[LARGE]["dev"]
        assert "fold" not in json.dumps(records[LARGE].model_dump())


def test_scores_are_of_all_folds_predictions_together(done: Path) -> None:
    for run in pooled(done):
        arm = "even" if "/even/" in str(run.directory.path) else "sizes"
        own = runs(done, arm, run.result.seed)
        assert [part.directory.path for part in run.folds] == own
        records = run.result.stages["joint"].tasks
        together = {row: pair for part in own for row, pair in saved(part, ENTAIL).items()}
        right = [label == prediction for label, prediction in together.values()]
        assert records[ENTAIL].splits["dev"].rows == len(right) == sum(ROWS[ENTAIL].values())
        assert records[ENTAIL].splits["dev"].metrics["accuracy"] == pytest.approx(100 * np.mean(right))
        pairs = np.array([pair for part in own for pair in saved(part, SIMILARITY).values()])
        found = metrics.score(tasks.get(SIMILARITY), pairs[:, 1], pairs[:, 0]).metrics
        assert records[SIMILARITY].primary == pytest.approx((found["pearson"] + found["spearman"]) / 2)
        single = [read_result(part / "result.json").stages["joint"] for part in own]
        assert records[LARGE] == single[0].tasks[LARGE], "a task with its own splits is scored in fold 0"
        mean = np.mean([record.primary for record in records.values()])
        assert run.result.stages["joint"].suites["mini"].score == pytest.approx(mean)
        assert run.result.stages["joint"].cost.tokens == sum(stage.cost.tokens for stage in single)
        assert run.result.fold is None


def test_seeds_and_folds_are_one_arm_and_compared_as_such(done: Path) -> None:
    assert [(arm.name, len(arm.runs)) for arm in scored_arms(pooled(done))] == [("even", 2), ("sizes", 2)]
    shown = api.table(done / "runs", baseline="sizes")
    assert "accuracy, 2-fold" in shown
    assert f"2-fold: train and dev of {ENTAIL}, {SIMILARITY} were divided anew" in " ".join(shown.split())
    assert f"{LARGE}: on their own splits" in " ".join(shown.split())
    assert "no test: no saved predictions" not in shown
    frame = api.results(done)
    assert len(frame) == 2 * 2 * sum(len(tasks.get(name).metrics) for name in ROWS)
    assert set(frame[frame.task == ENTAIL]["rows"]) == {sum(ROWS[ENTAIL].values())}
    assert set(frame[frame.task == ENTAIL]["kfold"]) == {2}
    assert frame[frame.task == LARGE]["kfold"].isna().all()


def test_a_fold_alone_is_shown_as_such_and_not_compared(done: Path) -> None:
    alone = runs(done, "even", 1)[1]
    assert "this is fold 1 alone" in " ".join(api.table(alone).split())
    others = [path for seed in (1, 2) for path in runs(done, "sizes", seed)]
    with pytest.raises(ConfigError, match=r"is scored on fold 1 of 2 alone.*of these only 1 are here"):
        api.table([alone, *others], baseline="sizes")


def test_predictions_that_are_missing_or_of_other_rows_are_refused(done: Path, tmp_path: Path) -> None:
    copies = [shutil.copytree(run, tmp_path / run.name) for run in runs(done, "even", 1)]
    first, second = (RunDirectory(copy).stage("joint").predictions(ENTAIL, "dev") for copy in copies)
    first.unlink()
    with pytest.raises(DataError, match="no predictions at"):
        api.table(tmp_path)
    shutil.copyfile(second, first)
    with pytest.raises(DataError, match=r"not of this result"):
        api.table(tmp_path)


def test_a_study_that_lacks_a_fold_says_so(done: Path, tmp_path: Path) -> None:
    out = shutil.copytree(done, tmp_path / "out")
    shutil.rmtree(runs(out, "even", 1)[0])
    shown = " ".join(api.table(out).split())
    assert "half finished: 1 of 8 runs are not complete seeds of an arm that lack a fold are left out" in shown
    assert "even: seed 2 (n = 1)" in shown
    for arm, seed in (("even", 2), ("sizes", 1), ("sizes", 2)):
        shutil.rmtree(runs(out, arm, seed)[1])
    with pytest.raises(DataError, match="no arm and seed has all of its folds yet"):
        api.table(out)
    assert "no arm and seed has all of its folds yet" in api.report(out).read_text(encoding="utf-8")


def test_scoring_a_run_again_scores_its_fold(done: Path, tmp_path: Path) -> None:
    run = runs(done, "sizes", 2)[1]
    record = read_result(run / "result.json").stages["joint"].tasks[ENTAIL].splits["dev"]
    assert api.evaluate(run, tasks=[ENTAIL])[ENTAIL]["dev"] == record
    train = api.evaluate(run, tasks=[ENTAIL], split="train")[ENTAIL]["train"]
    assert train.rows + record.rows == sum(ROWS[ENTAIL].values())
    files = api.predict(run, tasks=[ENTAIL], split="dev", out=tmp_path)
    rows = pq.read_table(files[ENTAIL]["dev"]).column("row_id").to_pylist()
    assert rows == list(saved(run, ENTAIL))


def test_test_splits_are_not_divided(done: Path, tmp_path: Path) -> None:
    names = set(tasks.get(ENTAIL).splits) - {"train", "dev"}
    run = runs(done, "sizes", 2)[0]
    for name in names:
        files = api.predict(run, tasks=[ENTAIL], split=name, out=tmp_path)
        rows = pq.read_table(files[ENTAIL][name]).column("row_id").to_pylist()
        assert rows == list(range(tasks.get(ENTAIL).splits[name].official_rows or 0))


def test_a_plan_counts_the_rows_of_the_folds(done: Path) -> None:
    run = runs(done, "sizes", 2)[0]
    config: RunConfig = api.load_config(run / "config.yaml", ["data.max_train_rows=null"])
    planned = {each.task: each.rows for each in plan_run(config).stages[0].models[0].tasks}
    assert planned[LARGE] == ROWS[LARGE]["train"]
    for task in (ENTAIL, SIMILARITY):
        assert abs(planned[task] - sum(ROWS[task].values()) / 2) <= 1


def test_folds_are_compared_only_with_as_many_folds(tmp_path: Path) -> None:
    small = f"tasks=[{ENTAIL},{SIMILARITY}]"
    for name, folds in (("three", 3), ("two", 2), ("plain", None)):
        outcome = api.study(
            study(tmp_path / name, small, arms={name: ["sampling=uniform"]}, folds=folds, baseline=name, seeds=1),
            tmp_path / name / "out",
        )
        assert len(outcome.complete) == (folds or 1)
    two, three, plain = (tmp_path / name / "out/runs" for name in ("two", "three", "plain"))
    with pytest.raises(ConfigError, match=r"two is scored on train and dev in 2 folds, three on train and dev in 3"):
        api.table([two, three], baseline="two")
    with pytest.raises(ConfigError, match="plain is scored on dev, two on train and dev in 2 folds") as caught:
        api.table([two, plain], baseline="plain", allow_different=["data", "selection"])
    assert "--allow-different" not in str(caught.value)


def test_what_cannot_be_divided_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"splits\.kfold is 5, but no task of this run is divided"):
        run_tiny(tmp_path / "large", "stages=[joint]", "splits.kfold=5", tasks=[LARGE])
    with pytest.raises(ConfigError, match=r"5 folds are numbered 0 to 4"):
        run_tiny(tmp_path / "beyond", "splits.kfold=5", "splits.fold=5")
    with pytest.raises(ConfigError, match=r"splits\.kfold is not set"):
        run_tiny(tmp_path / "without", "splits.fold=1")
    with pytest.raises(ConfigError, match="overrides sets splits, which a study sets"):
        api.study(study(tmp_path, "splits.kfold=2"), tmp_path / "out")


def test_a_fold_is_the_runs_own_and_not_its_arms(tmp_path: Path) -> None:
    def result(name: str, *overrides: str) -> ResultRecord:
        return run_tiny(tmp_path / name, "stages=[joint]", "training.updates=1", *overrides, tasks=[ACCEPTABILITY])

    whole, first, second = (
        result("whole"),
        result("first", "splits.kfold=2"),
        result("second", "splits.kfold=2", "splits.fold=1"),
    )
    assert first.arm_hash == second.arm_hash != whole.arm_hash
    assert first.run_hash != second.run_hash
    with pytest.raises(ConfigError, match=r"splits"):
        run_tiny(
            tmp_path / "first",
            *("stages=[joint]", "training.updates=1", "splits.kfold=2", "splits.fold=1"),
            tasks=[ACCEPTABILITY],
            resume=True,
        )

"""Two runs side by side: what is refused, and that the numbers are those of the files."""

import json
import shutil
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import stats
from tiny_runs import ACCEPTABILITY, ENTAIL, JOINT, SIMILARITY, run_tiny

from mtl import api
from mtl.cli import main
from mtl.errors import ConfigError, DataError
from mtl.records import read_result
from mtl.rundir import RunDirectory
from mtl.studies.compare import Comparison
from mtl.tasks import mini


@pytest.fixture(scope="module")
def other_run(tmp_path_factory: pytest.TempPathFactory) -> RunDirectory:
    """As ``joint_run``, but with another seed, learning rate and number of updates."""
    out = tmp_path_factory.mktemp("other") / "run"
    run_tiny(out, *JOINT, "seed=6", "training.updates=30", "optimizer.learning_rate=1e-2")
    return RunDirectory(out)


@pytest.fixture
def comparison(joint_run: RunDirectory, other_run: RunDirectory) -> Comparison:
    return api.compare(joint_run.path, other_run.path, flips=3)


@pytest.fixture
def copied(other_run: RunDirectory, tmp_path: Path) -> Path:
    """A copy of the other run that a test may damage."""
    shutil.copytree(other_run.path, tmp_path / "copy")
    return tmp_path / "copy"


def test_scores_are_those_of_the_results(
    comparison: Comparison, joint_run: RunDirectory, other_run: RunDirectory
) -> None:
    first, second = (read_result(run.result).stages["joint"] for run in (joint_run, other_run))
    assert comparison.stages == ("joint", "joint")
    assert [task.task for task in comparison.tasks] == [ENTAIL, SIMILARITY]
    for task in comparison.tasks:
        assert task.first == pytest.approx(first.tasks[task.task].primary, abs=1e-9)
        assert task.second == pytest.approx(second.tasks[task.task].primary, abs=1e-9)
        assert task.difference == pytest.approx(task.second - task.first)
    assert comparison.suites == {"mini": (first.suites["mini"].score, second.suites["mini"].score)}


def test_settings_that_differ_are_named(comparison: Comparison) -> None:
    changed = {line.partition(":")[0]: line for line in comparison.config_difference}
    assert changed["seed"] == "seed: 1 -> 6"
    assert changed["training.updates"] == "training.updates: 8 -> 30"
    assert "out" not in changed


def test_the_test_of_accuracy_is_of_the_discordant_rows(
    comparison: Comparison, joint_run: RunDirectory, other_run: RunDirectory
) -> None:
    entail, similarity = comparison.tasks
    tables = [
        pq.read_table(run.stage("joint").predictions(ENTAIL, "dev")).to_pylist() for run in (joint_run, other_run)
    ]
    right = [[row["label"] == row["prediction"] for row in rows] for rows in tables]
    lost = sum(one and not other for one, other in zip(*right, strict=True))
    gained = sum(other and not one for one, other in zip(*right, strict=True))
    assert gained + lost > 0
    assert (entail.flips["dev"].gained_count, entail.flips["dev"].lost_count) == (gained, lost)
    assert entail.test.test == "McNemar, exact"
    assert entail.test.p_value == pytest.approx(stats.binomtest(lost, gained + lost).pvalue)
    assert similarity.test.test == "approximate randomisation"
    assert entail.p_holm >= entail.test.p_value


def test_flipped_examples_have_their_text_and_both_predictions(comparison: Comparison) -> None:
    flips = comparison.tasks[0].flips["dev"]
    rows = mini.generate(ENTAIL, "dev")
    texts = [column for name, column in rows.items() if name != "label"]
    assert 0 < len(flips.gained) <= 3
    for flip in flips.gained:
        assert (flip.second, flip.first != flip.label) == (flip.label, True)
    for flip in (*flips.gained, *flips.lost):
        assert flip.texts == tuple(column[flip.row] for column in texts)
        assert flip.label == rows["label"][flip.row]
    nearer = comparison.tasks[1].flips["dev"].gained
    assert [abs(flip.second - flip.label) < abs(flip.first - flip.label) for flip in nearer] == [True] * 3  # type: ignore[operator]


def test_a_run_equals_itself(joint_run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    same = api.compare(joint_run.path, joint_run.path)
    assert [(task.difference, task.test.p_value, task.p_holm) for task in same.tasks] == [(0.0, 1.0, 1.0)] * 2
    assert not any(flips.gained or flips.lost for task in same.tasks for flips in task.flips.values())
    assert same.config_difference == ()
    assert main(["compare", str(joint_run.path), str(joint_run.path)]) == 0
    assert "no difference that could change a result" in capsys.readouterr().out


def test_what_is_printed(joint_run: RunDirectory, other_run: RunDirectory, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [str(joint_run.path), str(other_run.path)]
    assert main(["compare", *runs, "--task", ENTAIL, "--flips", "1"]) == 0
    shown = capsys.readouterr().out
    for part in ("seed: 1 -> 6", "McNemar, exact", "p (Holm)", "another seed would change is not tested", "right in B"):
        assert part in shown
    assert 1 <= shown.count("  row ") <= 2
    assert SIMILARITY not in shown
    assert main(["compare", *runs, "--flips", "0", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [task["task"] for task in found["tasks"]] == [ENTAIL, SIMILARITY]
    assert found["tasks"][0]["flips"]["dev"]["gained"] == []
    assert main(["compare", *runs, "--flips", "many"]) == 2


def test_two_stages_of_one_run(full_run: RunDirectory) -> None:
    found = api.compare(full_run.path, full_run.path, stage="single", second_stage="finetune", tasks=[ACCEPTABILITY])
    stages = read_result(full_run.result).stages
    assert found.stages == ("single", "finetune")
    assert found.tasks[0].second == pytest.approx(stages["finetune"].tasks[ACCEPTABILITY].primary)
    assert found.suites == {}


def test_other_rows_are_refused_by_name(joint_run: RunDirectory, copied: Path) -> None:
    result = json.loads((copied / "result.json").read_text())
    result["stages"]["joint"]["tasks"][SIMILARITY]["splits"]["dev"]["rows_sha256"] = "0" * 64
    (copied / "result.json").write_text(json.dumps(result))
    with pytest.raises(DataError, match=f"{SIMILARITY} dev: the runs were scored on different rows.*000000"):
        api.compare(joint_run.path, copied)
    assert len(api.compare(joint_run.path, copied, tasks=[ENTAIL]).tasks) == 1


def test_predictions_that_are_missing_damaged_or_of_another_result_are_refused(
    joint_run: RunDirectory, copied: Path
) -> None:
    path = RunDirectory(copied).stage("joint").predictions(ENTAIL, "dev")
    table = pq.read_table(path)
    swapped = table.set_column(2, "prediction", table.column("label"))
    pq.write_table(swapped, path)
    with pytest.raises(DataError, match=r"accuracy is 100\.0000"):
        api.compare(joint_run.path, copied)
    pq.write_table(table.slice(0, 10), path)
    with pytest.raises(DataError, match="has 10 predictions"):
        api.compare(joint_run.path, copied)
    strange = pa.array(["perhaps"] * len(table))
    pq.write_table(table.set_column(2, "prediction", strange), path)
    with pytest.raises(DataError, match="perhaps"):
        api.compare(joint_run.path, copied)
    path.write_bytes(b"PAR1 or not")
    with pytest.raises(DataError, match="cannot be read"):
        api.compare(joint_run.path, copied)
    path.unlink()
    with pytest.raises(DataError, match="save_predictions"):
        api.compare(joint_run.path, copied)


def test_what_neither_run_has_is_refused(
    joint_run: RunDirectory, other_run: RunDirectory, full_run: RunDirectory, tmp_path: Path
) -> None:
    first, second = joint_run.path, other_run.path
    with pytest.raises(ConfigError, match="no scores of the stage single; it has joint"):
        api.compare(first, second, stage="single")
    with pytest.raises(ConfigError, match=f"not scored by both runs: {ACCEPTABILITY}"):
        api.compare(first, full_run.path, tasks=[ACCEPTABILITY])
    with pytest.raises(ConfigError, match=f"no scores of {ENTAIL} on train; it has dev"):
        api.compare(first, second, split="train")
    with pytest.raises(DataError, match="no run directory"):
        api.compare(first, tmp_path)
    assert api.compare(first, full_run.path).only_second == (ACCEPTABILITY,)


def test_runs_that_start_from_different_weights_differ_in_that(joint_run: RunDirectory, tmp_path: Path) -> None:
    alone = ("stages=[single]", "training.updates=1")
    run_tiny(tmp_path / "plain", *alone)
    run_tiny(tmp_path / "started", *alone, f"init.from={joint_run.path}")
    found = api.compare(tmp_path / "plain", tmp_path / "started")
    assert found.config_difference == (f"init.from: not set -> {joint_run.path}",)
    assert api.compare(tmp_path / "plain", tmp_path / "plain").config_difference == ()

import csv
import io
import re
from pathlib import Path

import numpy as np
import pytest
from run_directories import COUNTS, write_run, write_study
from scipy import stats

from mtl import api
from mtl.errors import ConfigError, DataError
from mtl.studies.comparisons import Comparison
from mtl.studies.find import find_runs
from mtl.studies.scored_arms import Arm, find_arm, scored_arms
from mtl.studies.study_layout import CSV_COLUMNS, lay_out_study
from mtl.studies.study_table import Primary, StudyTable, study_table


def arms_in(path: Path) -> tuple[Arm, ...]:
    return scored_arms(find_runs([path]))


def table_of(path: Path, baseline: str = "alone", primary: Primary | None = None) -> StudyTable:
    return study_table(arms_in(path), baseline, primary=primary)


def comparison(table: StudyTable, arm: str, row: str) -> Comparison:
    return next(each for each in table.comparisons if (each.arm, each.row.name) == (arm, row))


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_study(tmp_path_factory.mktemp("study"), {"alone": 0.0, "mixed": 0.1, "tuned": 0.6})


def test_arms_are_called_after_their_folders(study: Path) -> None:
    arms = arms_in(study)
    assert [(arm.name, arm.stage, len(arm.runs)) for arm in arms] == [
        ("alone", "joint", 3),
        ("mixed", "joint", 3),
        ("tuned", "joint", 3),
    ]
    assert find_arm(arms, "alone:joint") is find_arm(arms, "alone")
    with pytest.raises(ConfigError, match=r"no arm 'lone'; there are alone, mixed, tuned"):
        find_arm(arms, "lone")


def test_arms_of_one_folder_stay_apart_and_others_are_called_by_their_hash(tmp_path: Path) -> None:
    write_run(tmp_path / "same" / "seed-1", "a", 1)
    write_run(tmp_path / "same" / "seed-2", "b", 2)
    write_run(tmp_path / "elsewhere", "c", 1)
    assert {arm.name for arm in arms_in(tmp_path)} == {"same (aaaaaaaa)", "same (bbbbbbbb)", "cccccccccccc"}


def test_every_score_is_compared_and_one_of_them_is_primary(study: Path) -> None:
    table = table_of(study, primary=Primary("tuned", "glue"))
    assert len(table.comparisons) == 2 * 4
    assert table.secondary == 7
    primary = comparison(table, "tuned", "glue")
    assert primary.primary
    assert primary.estimate is not None
    assert primary.p_adjusted == primary.estimate.p_value
    others = [each for each in table.comparisons if not each.primary]
    smallest = min(others, key=lambda each: each.estimate.p_value if each.estimate else 1)
    assert smallest.estimate is not None
    assert smallest.p_adjusted == pytest.approx(7 * smallest.estimate.p_value)


def test_a_difference_that_is_not_distinguishable_is_below_the_detectable_one(study: Path) -> None:
    found = [each for each in table_of(study).comparisons if not each.distinguishable]
    assert found
    assert all(each.detectable is not None and each.detectable > abs(each.difference) for each in found)


def test_examples_make_the_interval_wider_than_seeds_alone(study: Path) -> None:
    found = comparison(table_of(study), "tuned", "glue/rte")
    assert found.estimate is not None
    scores = {arm.name: [arm.record(run).tasks["glue/rte"].primary for run in arm.runs] for arm in arms_in(study)}
    seeds_alone = stats.ttest_ind(scores["tuned"], scores["alone"], equal_var=False)
    error = abs(found.difference) / abs(seeds_alone.statistic)
    assert found.estimate.standard_error > error
    assert found.estimate.degrees > seeds_alone.df


def test_bold_is_the_best_and_what_is_not_distinguishable_from_it(study: Path) -> None:
    table = table_of(study)
    suite = table.rows[-1]
    assert (suite.name, suite.best) == ("glue", (False, False, True))
    close = write_study(study.parent / "close", {"alone": 0.0, "mixed": 0.02})
    assert table_of(close).rows[-1].best == (True, True)


def test_one_run_is_shown_but_neither_tested_nor_bold(tmp_path: Path) -> None:
    write_study(tmp_path, {"alone": 0.0})
    write_run(tmp_path / "runs" / "tuned" / "seed-1", "t", 1, gain=0.6)
    table = table_of(tmp_path)
    assert {each.untested for each in table.comparisons} == {"tuned has one run: no variance over seeds"}
    assert not any(any(row.best) for row in table.rows)
    assert "no test: tuned has one run" in lay_out_study(table, "md")


def test_without_predictions_there_is_no_test(tmp_path: Path) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "tuned": 0.6})
    gone = path / "tuned" / "seed-2" / "joint" / "predictions" / "glue" / "rte" / "dev.parquet"
    gone.unlink()
    table = table_of(path)
    told = "no saved predictions of glue/rte dev in tuned, seed 2"
    assert comparison(table, "tuned", "glue/rte").untested == told
    assert comparison(table, "tuned", "glue").untested == told
    assert comparison(table, "tuned", "glue/cola").estimate is not None


def test_predictions_of_another_result_are_an_error(tmp_path: Path) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "tuned": 0.6})
    one, other = (path / arm / "seed-1" / "joint/predictions/glue/rte/dev.parquet" for arm in ("alone", "tuned"))
    other.write_bytes(one.read_bytes())
    with pytest.raises(DataError, match="accuracy is"):
        table_of(path)


@pytest.mark.parametrize(("seeds", "pairing"), [((1, 2, 3, 4, 5), "paired"), ((1, 2, 3), "Welch")])
def test_runs_of_one_sequence_are_paired_from_five_seeds_on(
    seeds: tuple[int, ...], pairing: str, tmp_path: Path
) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "tuned": 0.3}, seeds=seeds)
    assert {each.pairing for each in table_of(path).comparisons} == {pairing}


@pytest.mark.parametrize("change", ["another sequence", "no sequence", "another seed"])
def test_a_seed_number_alone_pairs_nothing(change: str, tmp_path: Path) -> None:
    path = write_study(tmp_path, {"alone": 0.0, "tuned": 0.3}, seeds=(1, 2, 3, 4, 5))
    last = path / "tuned" / "seed-5"
    if change == "another sequence":
        write_run(last, "t", 5, gain=0.3, counts=COUNTS[::-1])
    elif change == "no sequence":
        (last / "joint" / "sequence.npz").unlink()
    else:
        write_run(last, "t", 6, gain=0.3)
    found = table_of(path)
    assert {each.pairing for each in found.comparisons} == {"Welch"}
    assert "Welch t" in lay_out_study(found, "text")


def test_wnli_is_compared_but_no_mean_counts_it(tmp_path: Path) -> None:
    names = ("glue/rte", "glue/wnli")
    table = table_of(write_study(tmp_path, {"alone": 0.0, "tuned": 0.6}, names=names))
    gain = table.improvements["tuned"]
    assert gain.mean_points == pytest.approx(comparison(table, "tuned", "glue/rte").difference)
    assert comparison(table, "tuned", "glue/wnli").estimate is not None


def test_delta_m_is_against_the_mean_of_the_baselines_seeds(study: Path) -> None:
    table = table_of(study)
    relative = []
    for task in ("glue/cola", "glue/stsb", "glue/rte"):
        alone, _, tuned = (
            np.mean([list(arm.record(run).tasks[task].splits["dev"].metrics.values()) for run in arm.runs], axis=0)
            for arm in table.arms
        )
        # CoLA's and RTE's score are their first metric, STS-B's the mean of both.
        kept = slice(None) if task == "glue/stsb" else slice(0, 1)
        relative.append(float(np.mean(100 * (tuned[kept] - alone[kept]) / alone[kept])))
    assert table.improvements["tuned"].delta_m == pytest.approx(np.mean(relative))


def test_the_primary_comparison_has_to_be_there(study: Path) -> None:
    for primary, told in (
        (Primary("alone", "glue"), "with itself"),
        (Primary("tuned", "superglue"), r"'superglue'.*rows: glue/cola"),
        (Primary("other", "glue"), "no arm 'other'"),
    ):
        with pytest.raises(ConfigError, match=told):
            table_of(study, primary=primary)


def test_one_arm_has_nothing_to_be_compared_with(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="nothing to compare joint with"):
        table_of(write_study(tmp_path, {"alone": 0.0}), "joint")


@pytest.mark.parametrize("layout", ["text", "md", "tex", "csv"])
def test_equal_runs_give_equal_bytes_wherever_they_lie(layout: str, study: Path, tmp_path: Path) -> None:
    again = write_study(tmp_path, {"tuned": 0.6, "mixed": 0.1, "alone": 0.0})
    one, other = (api.table(path, layout=layout, baseline="alone") for path in (study, again))  # type: ignore[arg-type]
    assert one == other


def test_csv_has_twelve_digits_and_every_column(study: Path) -> None:
    table = table_of(study)
    lines = list(csv.DictReader(io.StringIO(lay_out_study(table, "csv"))))
    assert len(lines) == 3 * 4
    assert tuple(lines[0]) == CSV_COLUMNS
    found = next(line for line in lines if (line["row"], line["arm"]) == ("glue/rte", "tuned"))
    expected = comparison(table, "tuned", "glue/rte")
    shown = [float(found[name]) for name in ("difference", "detectable")]
    assert shown == pytest.approx([expected.difference, expected.detectable], rel=1e-11)
    assert (found["test"], found["distinguishable"], found["best"]) == ("Welch", "1", "1")
    assert all(None not in line and None not in line.values() for line in lines)


def test_latex_is_balanced_and_escaped(study: Path) -> None:
    text = lay_out_study(table_of(study), "tex")
    for environment in set(re.findall(r"\\begin\{(\w+)\}", text)):
        assert text.count(rf"\begin{{{environment}}}") == text.count(rf"\end{{{environment}}}")
    for block in re.findall(r"\\begin\{tabular\}.*?\\end\{tabular\}", text, flags=re.DOTALL):
        columns = len(re.findall("[lr]", block.split("@{}")[1]))
        rows = [line for line in block.splitlines() if line.endswith(r"\\")]
        assert {len(re.split(r"(?<!\\)&", row)) for row in rows} == {columns}
        assert [block.count(rule) for rule in (r"\toprule", r"\midrule", r"\bottomrule")] == [1, 1, 1]
    plain = re.sub(r"\\[%&#_{}$]", "", text)
    assert re.search(r"(?<!\\)[#_]", plain) is None
    assert "%" not in "".join(line for line in plain.splitlines() if not line.startswith("%"))
    assert plain.count("$") % 2 == 0
    assert text.isascii()

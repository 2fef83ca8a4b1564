"""What a layout shows of a table, and that the numbers behind it stay those of the whole."""

import csv
import io
from pathlib import Path

import pytest
from study_directories import write_planned_study
from synthetic_results import a_result

from mtl import api
from mtl.cli import main
from mtl.errors import ConfigError
from mtl.studies.layout import lay_out
from mtl.studies.table import arm_tables
from mtl.studies.table_layout import SPREADS, TableLayout, read_layout


@pytest.fixture(scope="module")
def study(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_planned_study(tmp_path_factory.mktemp("study"))


def table(study: Path, *keys: str, layout: str = "md") -> str:
    return api.table(study, layout=layout, shown=read_layout(None, keys))  # type: ignore[arg-type]


def lines(text: str, start: str) -> list[str]:
    return [line for line in text.splitlines() if line.startswith(start)]


def test_rows_and_columns_are_chosen_and_ordered(study: Path) -> None:
    shown = table(study, "rows=[glue,glue/rte]", "columns=[tuned,alone]")
    assert lines(shown, "| task")[0] == "| task | score | tuned | alone |"
    scored = shown.split("**Differences")[0]
    assert [line.split(" | ")[0] for line in scored.splitlines() if line.startswith("| glue")] == [
        "| glue",
        "| glue/rte",
    ]
    assert "mixed" not in shown.split("\n\n- ")[0]
    assert "3 rows or columns of the study not shown; corrections count all of them" in shown


def test_what_is_not_shown_still_counts_in_corrections(study: Path) -> None:
    whole = {line.split(" | ")[8] for line in lines(table(study), "| glue/rte | tuned")}
    part = {
        line.split(" | ")[8] for line in lines(table(study, "rows=[glue/rte]", "columns=[tuned]"), "| glue/rte | tuned")
    }
    assert whole == part != set()


def test_names_stand_everywhere_in_the_table_and_are_explained(study: Path) -> None:
    shown = table(study, "names.tuned=T = 5", "names.glue/rte=RTE", "names.alone=reference")
    assert lines(shown, "| task")[0] == "| task | score | reference | mixed | T = 5 |"
    assert len(lines(shown, "| RTE | T = 5 |")) == 1
    assert "**Differences to reference, in points**" in shown
    assert "names: T = 5 is tuned, RTE is glue/rte, reference is alone" in shown


def test_decimals(study: Path) -> None:
    cell = lines(table(study, "decimals=3"), "| glue |")[0].split(" | ")[2].strip("*")
    mean, spread = (part.partition(".")[2] for part in cell.split(" ± "))
    assert len(mean) == len(spread) == 3
    assert "." not in lines(table(study, "decimals=0"), "| glue |")[0].split(" | ")[2]


@pytest.mark.parametrize("spread", list(SPREADS))
def test_the_note_says_what_the_spread_is(spread: str, study: Path) -> None:
    shown = table(study, f"spread={spread}")
    assert SPREADS[spread] in shown  # type: ignore[index]
    assert ("±" in lines(shown, "| glue |")[0]) == (spread != "none")
    others = [told for name, told in SPREADS.items() if name != spread]
    assert not any(told in shown for told in others)


def test_an_interval_is_wider_than_the_deviation_of_three_seeds(study: Path) -> None:
    # t with 2 degrees of freedom, 4.303, over the root of 3.
    deviation, interval = (
        float(
            lines(table(study, f"spread={spread}", "decimals=6"), "| glue |")[0]
            .split(" | ")[2]
            .split(" ± ")[1]
            .strip("*")
        )
        for spread in ("deviation", "interval")
    )
    assert interval / deviation == pytest.approx(4.302653 / 3**0.5, rel=1e-4)


def test_transposed_every_score_is_where_it_was(study: Path) -> None:
    def cells(text: str) -> list[list[str]]:
        rows = text.split("**Differences")[0].splitlines()
        return [line[2:-2].split(" | ") for line in rows if line.startswith("|") and ":--" not in line]

    straight, turned = cells(table(study)), cells(table(study, "transpose=true"))
    for row in straight[1:]:
        for place, arm in enumerate(straight[0][2:], start=2):
            line = next(line for line in turned if line[0] == arm)
            assert line[turned[0].index(row[0])] == row[place]
    assert turned[1][1:] == [row[1] for row in straight[1:]]


def test_parts(study: Path) -> None:
    shown = table(study, "parts=scores")
    assert "**Scores**" in shown
    assert "Differences" not in shown
    assert "seed 1, 2, 3 (n = 3)" in shown, "the note stays"


def test_csv_keeps_the_names_of_the_study_and_tells_what_notes_tell(study: Path) -> None:
    text = table(study, "rows=[glue/rte]", "columns=[tuned,alone]", "names.tuned=T = 5", layout="csv")
    found = list(csv.DictReader(io.StringIO(text)))
    assert [line["arm"] for line in found] == ["tuned", "alone"]
    first = found[0]
    assert (first["seeds"], first["selected_on"], first["looks"]) == ("1; 2; 3", "last", "1")
    assert (first["train_rows"], first["encoder"]) == ("100", "some/encoder")
    assert first["known_training_data"] == "SNLI"


def test_blocks_of_arms_take_the_same_keys() -> None:
    scores = (("glue/rte", 70.0, 277, 277), ("glue/cola", 60.0, 1043, 1043))
    found = arm_tables([a_result({"joint": scores, "single": scores})])
    shown = lay_out(found, "text", TableLayout(rows=("glue/rte",), columns=("joint",), names={"joint": "all nine"}))
    assert lines(shown, "task")[0].split() == ["task", "score", "all", "nine"]
    assert lines(shown, "glue/cola") == []
    assert lines(lay_out(found, "csv", TableLayout(columns=("joint",))), "a" * 64 + ",glue/rte,accuracy,0,single") == []


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("rows=[glue/nothing]", "rows: there is no row 'glue/nothing'; there are glue/sst2"),
        ("columns=[other]", "columns: there is no column 'other'; there are alone"),
        ("names.other=x", "names: there is no row or column 'other'"),
        ("decimals=9", "decimals"),
        ("spread=range", "spread"),
        ("row=[glue]", "rows"),
    ],
)
def test_what_is_no_layout_says_so(key: str, told: str, study: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(study), key]) == 2
    assert told in capsys.readouterr().err


def test_a_file_of_keys_and_keys_over_it(study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "paper.yaml"
    file.write_text("columns: [tuned, alone]\ndecimals: 2\nnames:\n  glue/rte: RTE\n", encoding="utf-8")
    assert main(["table", str(study), "--format", "md", "--layout", str(file), "decimals=0"]) == 0
    shown = capsys.readouterr().out
    assert shown == table(study, "columns=[tuned,alone]", "decimals=0", "names.glue/rte=RTE")


def test_keys_alone_are_no_table(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", "decimals=1"]) == 2
    assert "name what the table is of" in capsys.readouterr().err


def test_unknown_keys_raise_one_error() -> None:
    with pytest.raises(ConfigError, match=r"(?s)decimal.*transposed"):
        read_layout(None, ["decimal=1", "transposed=true"])

"""The bytes of a table whose numbers are written down here, in every layout."""

from pathlib import Path

import pytest

from mtl.studies.comparisons import Comparison, Row, TestedDifference
from mtl.studies.costs import ArmCost
from mtl.studies.scored_arms import Arm
from mtl.studies.statistics.delta_m import Improvement
from mtl.studies.study_layout import StudyLayoutName, lay_out_study
from mtl.studies.study_table import Primary, ScoreRow, StudyTable
from mtl.studies.table import Cell

GOLDEN = Path(__file__).parent / "golden"
RTE, GLUE, QQP = Row("glue/rte", None), Row("glue", ("glue/qqp", "glue/rte")), Row("glue/qqp", None)
FOUND = TestedDifference(standard_error=1.0, degrees=4.25, p_value=0.0004, low=2.0, high=6.04)


def a_table() -> StudyTable:
    alone, mixed = (Cell((60.0, 62.0)), Cell((65.0, 65.04)))
    one = Cell((70.0,))
    against = {"arm": "mixed_t5", "baseline": "single"}
    return StudyTable(
        arms=(Arm("single", "single", "single", ()), Arm("mixed_t5", "mixed_t5", "joint", ())),
        baseline="single",
        primary=Primary("mixed_t5", "glue"),
        rows=(
            ScoreRow("glue/qqp", None, "accuracy", True, (one, one), (False, False)),
            ScoreRow("glue/rte", None, "accuracy", False, (alone, mixed), (True, True)),
            ScoreRow("glue", GLUE.members, "mean of 2", False, (alone, None), (False, False)),
        ),
        comparisons=(
            Comparison(QQP, **against, difference=-0.04, pairing="Welch", estimate=None, untested="one run"),
            Comparison(
                RTE,
                **against,
                difference=1.5,
                pairing="paired",
                estimate=FOUND,
                untested=None,
                p_adjusted=0.2,
                detectable=3.14,
            ),
            Comparison(
                GLUE,
                **against,
                difference=4.02,
                pairing="Welch",
                estimate=FOUND,
                untested=None,
                primary=True,
                p_adjusted=0.0004,
                detectable=3.0,
            ),
        ),
        secondary=1,
        improvements={
            "mixed_t5": Improvement(
                None, "the baseline is under 10: glue/cola matthews 3.0", 1.5, 2.0, 0.5, "glue/qqp", -0.3
            )
        },
        costs={"single": ArmCost(12345.0, None, 2.5e15), "mixed_t5": ArmCost(100.0, 50.0, 1e9)},
        notes=("50% of rows & more",),
    )


@pytest.mark.parametrize("layout", ["text", "md", "tex", "csv"])
def test_the_bytes_are_those_that_were_looked_at(layout: StudyLayoutName) -> None:
    assert lay_out_study(a_table(), layout) == (GOLDEN / f"table.{layout}").read_text(encoding="utf-8")


def test_the_notes_say_how_to_read_it() -> None:
    text = lay_out_study(a_table(), "text")
    for told in (
        "primary comparison: mixed_t5 against single by glue, tested alone",
        "corrected for 1 secondary test;",
        "no test: one run",
        "delta-m is not shown: the baseline is under 10: glue/cola matthews 3.0",
        "50% of rows & more",
    ):
        assert told in text

"""The trainings behind a machine's profile, under a clock that only counts."""

from pathlib import Path

import pytest
from tiny_bench import counting_clock, tiny_config

from mtl.bench.command import Bench
from mtl.bench.machine import CASES, Case, measure_case
from mtl.bench.records import Answer, MachineMeasure, Request
from mtl.cli.bench_text import machine_text
from mtl.costs.machine import find_profile, machine_key


def test_a_case_is_measured_by_the_clock_it_is_given() -> None:
    case = Case(1, 16, 32, 2, 50, 4, 8)
    measure, hardware = measure_case(tiny_config(), case, clock=counting_clock(0.5))
    assert hardware.precision == "fp32"
    assert (measure.training_seconds, measure.evaluation_seconds) == (0.5, 0.5)
    assert measure.training["passes"] == measure.evaluation["passes"] == 1.0
    assert measure.training["masks"] > 0.0
    # All 63 times 4 rows are evaluated, since they have fewer tokens than a batch may.
    assert measure.evaluation["flops"] == pytest.approx(63 * measure.training["flops"] / 3, rel=0.2)
    assert measure.fixed_bytes > 16 * 1000


def test_what_is_measured_is_fitted_and_kept(tmp_path: Path) -> None:
    found = [measure_case(tiny_config(), Case(1, 16, 32, 2, 50, rows, 8), clock=counting_clock())[0] for rows in (2, 4)]
    requests = []

    def runner(request: Request) -> Answer:
        requests.append(request.section)
        return Answer(machine=MachineMeasure(cases=tuple(found), precision="fp32", threads=1, device="cpu"))

    config = tiny_config(f"data.cache={tmp_path}")
    report = Bench(config, runner=runner).machine()
    assert requests == ["machine"]
    assert find_profile(machine_key(config.training), tmp_path) == report.profile
    assert Path(report.file).parent == tmp_path
    assert "1x16, 50 words, 4 rows of 8" in machine_text(report)


def test_cases_differ() -> None:
    assert len({case.name for case in CASES}) == len(CASES)

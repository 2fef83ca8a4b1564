"""The documents of `--json`: their shape is fixed, their numbers follow from what was measured."""

import json

import pytest
from tiny_bench import ENTAIL, SIMILARITY, measure, setting, trial

from mtl.bench.other_reports import evaluation_report, tokenising_report
from mtl.bench.records import EvaluationMeasure, TokenisingMeasure, TokenisingSetting, TrainingMeasure
from mtl.bench.report import MeasuredSetting, TrainingReport, training_report
from mtl.cli.bench_text import evaluation_text, tokenising_text, training_text

OWN = [measure(1.0, losses=[3.0, 1.0]), measure(2.0, losses=[1.0, 1.0], peak=2e9), measure(4.0, losses=[2.0, 1.0])]
PEERS = [measure(each, losses=[4.0, 2.0], peak=None) for each in (2.0, 3.0, 16.0)]


def report(*, tasks: tuple[str, ...] = (ENTAIL,), peers: list[TrainingMeasure] = PEERS) -> TrainingReport:
    measured = MeasuredSetting(
        **setting(tasks).model_dump(),
        mean_rows_per_update=8.0,
        mean_tokens_per_update=80.0,
        warmup_updates=5,
        timed_updates=2,
        pairs=3,
        seeds=(1, 2, 3),
    )
    return training_report(trial(tasks=tasks), measured, OWN, {"hf-tuned": peers})


def test_the_shape_of_the_document() -> None:
    document = json.loads(report().model_dump_json())
    assert set(document) == {"mtl", "against", "setting", "losses", "notes"}
    common = {
        "real_tokens_per_second", "rows_per_second", "flops_per_second", "mfu", "seconds_to_first_update",
        "peak_memory_bytes", "padding", "updates", "seconds", "rates",
    }  # fmt: skip
    assert set(document["mtl"]) == common | {"peak_flops_per_second", "time_split", "profile"}
    assert set(document["against"]) == {"hf-tuned"}
    assert set(document["against"]["hf-tuned"]) == common | {"ratio", "ratios"}
    needed = {"model", "precision", "threads", "rows_per_update", "tasks", "dropout", "machine", "versions", "commit"}
    assert needed <= set(document["setting"])


def test_figures_are_medians_over_sections() -> None:
    found = report()
    assert found.mtl.real_tokens_per_second == 500.0
    assert found.mtl.rates == (1000.0, 500.0, 250.0)
    assert (found.mtl.rows_per_second, found.mtl.flops_per_second) == (5.0, 0.5e9)
    # 1e9 operations in 1, 2 and 4 s, of peaks of 1, 2 and 1 GFLOP/s: all of it, a quarter, and a quarter.
    assert found.mtl.mfu == 0.25
    assert found.mtl.peak_flops_per_second == 1e9
    peer = found.against["hf-tuned"]
    assert peer.ratios == (2.0, 1.5, 4.0)
    assert peer.ratio == 2.0
    # A peer is held against the peak that mtl's section of its pair measured.
    assert peer.mfu == pytest.approx(1 / 6)
    assert peer.padding == 0.5


def test_loss_curves_stand_side_by_side_unless_tasks_are_mixed() -> None:
    assert report().losses == {"mtl": [2.0, 1.0], "hf-tuned": [4.0, 2.0]}
    mixed = report(tasks=(ENTAIL, SIMILARITY))
    assert mixed.losses == {"mtl": [2.0, 1.0]}
    assert any("Speed only" in note for note in mixed.notes)
    assert not any("Speed only" in note for note in report().notes)


def test_the_text_shows_every_ratio_the_curves_and_the_notes() -> None:
    shown = training_text(report())
    assert "mtl / hf-tuned: median 2.00 of 2.00, 1.50, 4.00" in shown
    assert "mtl             2.0000  1.0000\nhf-tuned        4.0000  2.0000" in shown
    assert "time of an update: waiting for data 10.0%, forward 30.0%, backward 50.0%, optimiser 10.0%" in shown
    assert "Rates count real tokens only." in shown
    assert "5 warm-up and 2 timed updates, 3 times, seeds 1, 2, 3" in shown


def test_evaluation_is_held_against_training_turn_by_turn() -> None:
    found = evaluation_report(
        EvaluationMeasure(
            setting=setting(),
            rows=10,
            tokens=100,
            training_tokens_per_second=(10.0, 20.0, 10.0),
            evaluation_tokens_per_second=(30.0, 80.0, 10.0),
        )
    )
    assert (found.eval.ratio, found.eval.ratios) == (3.0, (3.0, 4.0, 1.0))
    assert (found.eval.real_tokens_per_second, found.eval.training_real_tokens_per_second) == (30.0, 10.0)
    assert "evaluation / training: median 3.00 of 3.00, 4.00, 1.00" in evaluation_text(found)


def test_tokenising_is_held_against_the_bare_call_turn_by_turn() -> None:
    made = TokenisingSetting(
        tokenizer="mini",
        tasks=(ENTAIL,),
        max_length=48,
        machine={"processor": None, "cores_usable": 2},
        versions={"tokenizers": "0"},
        commit="abc",
    )
    measured = TokenisingMeasure(
        setting=made, rows=10, tokens=100, store_seconds=(2.0, 4.0, 2.0), bare_seconds=(1.0, 1.0, 3.0)
    )
    found = tokenising_report(measured)
    assert (found.tokenise.ratio, found.tokenise.ratios) == (0.5, (0.5, 0.25, 1.5))
    assert (found.tokenise.real_tokens_per_second, found.tokenise.bare_rows_per_second) == (50.0, 10.0)
    assert "token store / bare tokenizer: median 0.50 of 0.50, 0.25, 1.50" in tokenising_text(found)

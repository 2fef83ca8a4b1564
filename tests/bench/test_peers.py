"""The peers: they see the rows that mtl sees, padded as they say, and train as mtl does but for that."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import torch
from tiny_bench import ACCEPTABILITY, ENTAIL, SIMILARITY, counting_clock, tiny_start

from mtl.bench.hugging_face import StepWatch, grouped_order, make_trainer, measure_peer, peer_model
from mtl.bench.peer_rows import RecordingCollator, peer_rows, shared_label, work_of
from mtl.bench.records import Peer
from mtl.bench.start import Start
from mtl.bench.train import measure_training
from mtl.data.batches import UpdateWork
from mtl.errors import MtlError
from mtl.stages.build import build_parts, plan_updates

UPDATES, WARMUP, ROWS = 7, 2, 8


def planned(start: Start) -> list[Counter[tuple[str, tuple[int, ...]]]]:
    """For each update of mtl the multiset of its rows: task and token ids, straight from the stores."""
    planner, _ = plan_updates(start.context, start.unit.tasks, start.unit.settings)
    updates = []
    for step in range(planner.total):
        plan = planner.plan(step)
        rows: Counter[tuple[str, tuple[int, ...]]] = Counter()
        for task, row in zip(plan.tasks, plan.rows, strict=True):
            name = start.unit.tasks[task]
            store = start.context.data[name].train
            begin, end = store.sequence_offsets[row : row + 2]
            rows[name, tuple(store.tokens[begin:end].tolist())] += 1
        updates.append(rows)
    return updates


def trained(start: Start, peer: Peer, out: Path) -> tuple[Any, list[Counter[tuple[str, tuple[int, ...]]]]]:
    """The peer's Trainer after its training, and for each update the rows that its model was given."""
    rows = peer_rows(start)
    trainer = make_trainer(start, peer, rows, str(out))
    inputs: list[list[tuple[int, ...]]] = []

    def note(module: Any, arguments: Any, given: dict[str, torch.Tensor]) -> None:
        pairs = zip(given["input_ids"], given["attention_mask"], strict=True)
        inputs.append([tuple(ids[mask.bool()].tolist()) for ids, mask in pairs])

    trainer.model.register_forward_pre_hook(note, with_kwargs=True)
    trainer.train()
    updates = []
    for batch, texts in zip(trainer.data_collator.seen, inputs, strict=True):
        updates.append(Counter(zip((rows.tasks[place] for place in batch.places), texts, strict=True)))
    return trainer, updates


@pytest.mark.parametrize("tasks", [(ENTAIL,), (ENTAIL, SIMILARITY, ACCEPTABILITY)])
def test_the_default_sees_the_same_rows_in_each_update_padded_to_the_maximum(
    tmp_path: Path, tasks: tuple[str, ...]
) -> None:
    start = tiny_start(UPDATES, tasks=tasks)
    trainer, updates = trained(start, "hf-default", tmp_path)
    assert updates == planned(start)
    assert {batch.padded_tokens for batch in trainer.data_collator.seen} == {ROWS * 48}
    assert not trainer.args.bf16
    assert len(trainer.losses) == UPDATES


def test_the_tuned_one_sees_the_same_rows_over_all_padded_by_batch_and_grouped(tmp_path: Path) -> None:
    start = tiny_start(UPDATES, "training.precision=bf16", tasks=(ENTAIL, ACCEPTABILITY))
    trainer, updates = trained(start, "hf-tuned", tmp_path)
    assert sum(updates, Counter()) == sum(planned(start), Counter())
    seen = trainer.data_collator.seen
    assert all(batch.padded_tokens == len(batch.places) * max(batch.lengths) for batch in seen)
    # Sorted by length, so that padding is little: less than rows as they come would have.
    mixed = sum(ROWS * max(len(ids) for _, ids in rows) for rows in planned(start))
    assert sum(batch.padded_tokens for batch in seen) < mixed
    assert trainer.args.bf16


@pytest.mark.parametrize("peer", ["hf-default", "hf-tuned"])
def test_real_tokens_are_counted_from_attention_masks(peer: Peer, tmp_path: Path) -> None:
    start = tiny_start(UPDATES)
    trainer, updates = trained(start, peer, tmp_path)
    direct = [sum(len(ids) * times for (_, ids), times in rows.items()) for rows in updates]
    assert [sum(batch.lengths) for batch in trainer.data_collator.seen] == direct
    found = measure_peer(start, peer, WARMUP, -1.0, clock=counting_clock())
    assert (found.updates, found.rows) == (UPDATES - WARMUP, ROWS * (UPDATES - WARMUP))
    assert found.tokens == sum(direct[WARMUP:])
    assert (found.seconds, found.seconds_to_first_update) == (1.0, 1.0)
    assert found.peak is None
    if peer == "hf-default":
        assert found.padded_tokens == 48 * found.rows
        own = measure_training(start, WARMUP, 0.0, peak=lambda: 1.0)
        assert (found.tokens, found.rows) == (own.tokens, own.rows)
        assert found.flops == pytest.approx(own.flops)


def test_from_the_same_weights_without_dropout_the_default_has_mtl_s_losses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    start = tiny_start(
        UPDATES, "encoder.dropout=0", "head.dropout=0", "optimizer.warmup=0.3", "optimizer.clip_norm=0.05",
        "optimizer.weight_decay=0.3",
    )  # fmt: skip
    own = measure_training(start, WARMUP, 0.0, peak=lambda: 1.0)
    head = dict(build_parts(start.context, start.unit).model.head_module(ENTAIL).named_parameters())
    original = peer_model

    def same_start(*arguments: Any) -> Any:
        model = original(*arguments)
        with torch.no_grad():
            for layer, prefix in ((model.bert.pooler.dense, "dense"), (model.classifier, "output")):
                for name, parameter in layer.named_parameters():
                    parameter.copy_(head[f"{prefix}.{name}"])
        return model

    monkeypatch.setattr("mtl.bench.hugging_face.peer_model", same_start)
    peer = measure_peer(start, "hf-default", WARMUP, 0.0)
    assert peer.losses == pytest.approx(own.losses, rel=2e-4)


def test_the_peer_has_mtl_s_encoder_and_dropout_but_transformers_attention() -> None:
    start = tiny_start(UPDATES, "encoder.dropout=0.2", "head.dropout=0.3")
    model = peer_model(start, peer_rows(start))
    assert model.config._attn_implementation in ("sdpa", "eager")
    assert (model.config.hidden_dropout_prob, model.dropout.p, model.config.num_labels) == (0.2, 0.3, 2)
    expected = start.context.initial.loaded.encoder.model.state_dict()
    assert all(torch.equal(model.bert.state_dict()[name], tensor) for name, tensor in expected.items())


def test_grouping_sorts_within_batches_and_shuffles_them() -> None:
    lengths = [number % 7 + 1 for number in range(33)]
    order = grouped_order(lengths, 4, seed=3)
    assert sorted(order) == list(range(33))
    batches = [[lengths[place] for place in order[begin : begin + 4]] for begin in range(0, 32, 4)]
    assert sum(4 * max(batch) - sum(batch) for batch in batches) < 8
    longest = [max(batch) for batch in batches]
    assert longest != sorted(longest, reverse=True)
    assert grouped_order(lengths, 4, seed=3) == order != grouped_order(lengths, 4, seed=4)


def test_a_regression_alone_keeps_its_scores_and_a_mixture_shares_classes() -> None:
    alone = peer_rows(tiny_start(3, tasks=(SIMILARITY,)))
    assert (alone.outputs, alone.regression) == (1, True)
    assert any(feature["labels"] != round(feature["labels"]) for feature in alone.features)
    mixed = peer_rows(tiny_start(3, tasks=(ENTAIL, SIMILARITY)))
    assert (mixed.outputs, mixed.regression) == (2, False)
    assert {feature["labels"] for feature in mixed.features} <= {0, 1}
    assert [shared_label(label, 3) for label in (0, 4, 2.6, -1.0)] == [0, 1, 0, 2]


def test_updates_sized_in_tokens_become_their_mean_number_of_rows() -> None:
    start = tiny_start(5, "training.tokens_per_update=120")
    rows = peer_rows(start)
    counts = [rows_of.total() for rows_of in planned(start)]
    assert rows.per_update == sum(counts) // 5
    assert len(rows.features) // rows.per_update >= 5


def test_work_counts_real_tokens_and_rows_by_task() -> None:
    collator = RecordingCollator(
        lambda features: {"attention_mask": torch.tensor([[1, 1, 0], [1, 1, 1]])}, ["attention_mask"]
    )
    collator([{"attention_mask": [], "labels": 0, "place": place} for place in (1, 0)])
    assert work_of(collator.seen, ["a", "b"]) == UpdateWork(5, 13.0, {"a": 1, "b": 1})


def test_a_warm_up_of_one_update_ends_at_the_first() -> None:
    watch = StepWatch(1, torch.device("cpu"), counting_clock())
    for done in range(1, 4):
        watch.after_update(done, 3)
    assert (watch.first, watch.start, watch.end) == (0.0, 0.0, 1.0)


def test_a_training_that_ends_early_is_no_measurement(monkeypatch: pytest.MonkeyPatch) -> None:
    def early(*arguments: Any) -> Any:
        trainer = make_trainer(*arguments)
        trainer.args.max_steps = 3
        return trainer

    monkeypatch.setattr("mtl.bench.hugging_face.make_trainer", early)
    with pytest.raises(MtlError, match="after 3 updates"):
        measure_peer(tiny_start(UPDATES), "hf-tuned", WARMUP, 0.0)

"""Packed batches: every token where it belongs, tasks as slices, examples in their places of the whole update."""

import numpy as np
import pytest
import torch

from mtl.data.batches import BatchSource, PackedBatch
from mtl.data.plan import UpdatePlan
from mtl.data.store import TokenStore


def _store(sequences: list[list[list[int]]], labels: list[int] | list[float]) -> TokenStore:
    """From token ids by example and sequence; the type of a token is its number modulo 2."""
    flat = [sequence for example in sequences for sequence in example]
    tokens = np.array([token for sequence in flat for token in sequence], dtype=np.uint16)
    scores = any(isinstance(label, float) for label in labels)
    return TokenStore(
        tokens=tokens,
        types=(tokens % 2).astype(np.uint8),
        sequence_offsets=np.cumsum([0, *map(len, flat)]),
        example_offsets=np.cumsum([0, *map(len, sequences)]),
        labels=np.array(labels, dtype=np.float32 if scores else np.int64),
        text_keys=np.zeros((len(sequences), 1), dtype=np.uint64),
        fingerprint="",
        data_fingerprint="",
        truncated=0,
        empty=0,
    )


PAIRS = [[[10, 11, 12]], [[13]], [[14, 15]], [[16, 17, 18, 19]]]
CHOICES = [[[20, 21], [22]], [[23, 24, 25], [26, 27]], [[28], [29], [30, 31]]]


@pytest.fixture
def source() -> BatchSource:
    return BatchSource(
        {
            "made/pairs": _store(PAIRS, [0, 1, 2, 1]),
            "made/choices": _store(CHOICES, [1, 0, 2]),
            "made/scores": _store(PAIRS, [0.5, 1.5, 2.5, 3.5]),
            "made/unlabelled": _store(PAIRS, []),
        }
    )


def _plan(*slots: tuple[int, int]) -> UpdatePlan:
    tasks, rows = np.array(slots).T
    return UpdatePlan(0, tasks, rows, np.ones(len(slots), dtype=np.int64))


def _sequences(batch: PackedBatch) -> list[list[list[int]]]:
    """The token ids of a batch by example and sequence, read through its offsets."""
    starts, examples = batch.sequence_offsets.tolist(), batch.example_offsets.tolist()
    return [
        [batch.token_ids[starts[at] : starts[at + 1]].tolist() for at in range(examples[row], examples[row + 1])]
        for row in range(batch.examples)
    ]


def test_examples_are_ordered_by_task_and_otherwise_keep_their_order(source: BatchSource) -> None:
    batch = source.batch(_plan((2, 3), (0, 2), (2, 0), (0, 1)), np.arange(4))
    assert batch.example_task.tolist() == [0, 0, 2, 2]
    assert batch.example_ids.tolist() == [2, 1, 3, 0]
    assert batch.slots.tolist() == [1, 3, 0, 2]
    assert batch.tasks == ("made/pairs", "made/scores")
    assert batch.layout.slices == {"made/pairs": slice(0, 2), "made/scores": slice(2, 4)}
    assert _sequences(batch) == [PAIRS[2], PAIRS[1], PAIRS[3], PAIRS[0]]


def test_targets_belong_to_their_examples(source: BatchSource) -> None:
    batch = source.batch(_plan((2, 3), (0, 2), (2, 0), (0, 1)), np.arange(4))
    assert batch.targets["made/pairs"].tolist() == [2, 1]
    assert batch.targets["made/pairs"].dtype == torch.int64
    assert batch.targets["made/scores"].tolist() == [3.5, 0.5]
    assert batch.targets["made/scores"].dtype == torch.float32
    assert set(batch.targets) == {"made/pairs", "made/scores"}


def test_offsets_positions_and_types(source: BatchSource) -> None:
    batch = source.batch(_plan((0, 0), (0, 3), (0, 1)), np.arange(3))
    assert batch.sequence_offsets.tolist() == [0, 3, 7, 8]
    assert batch.example_offsets.tolist() == [0, 1, 2, 3]
    assert batch.position_ids.tolist() == [0, 1, 2, 0, 1, 2, 3, 0]
    assert batch.type_ids.tolist() == (batch.token_ids % 2).tolist()
    assert batch.layout.sequence_lengths.tolist() == [3, 4, 1]
    assert (batch.examples, batch.tokens) == (3, 8)


def test_an_example_of_several_sequences(source: BatchSource) -> None:
    batch = source.batch(_plan((1, 2), (0, 2), (1, 0), (1, 2)), np.arange(4))
    assert _sequences(batch) == [PAIRS[2], CHOICES[2], CHOICES[0], CHOICES[2]]
    assert batch.example_offsets.tolist() == [0, 1, 4, 6, 9]
    assert batch.layout.sequences_per_example.tolist() == [1, 3, 2, 3]
    assert batch.layout.sequence_lengths.tolist() == [2, 1, 1, 2, 2, 1, 1, 1, 2]
    assert batch.position_ids.tolist() == [0, 1, 0, 0, 0, 1, 0, 1, 0, 0, 0, 0, 1]
    assert batch.targets["made/choices"].tolist() == [2, 1, 2]


def test_a_part_of_an_update_keeps_the_places_in_the_whole(source: BatchSource) -> None:
    plan = _plan((0, 0), (1, 1), (0, 2), (2, 3), (0, 1))
    parts = [source.batch(plan, np.array(slots)) for slots in ([1, 4], [0, 2, 3])]
    assert [part.slots.tolist() for part in parts] == [[4, 1], [0, 2, 3]]
    whole = source.batch(plan, np.arange(5))
    by_slot = dict(zip(whole.slots.tolist(), _sequences(whole), strict=True))
    for part in parts:
        assert _sequences(part) == [by_slot[slot] for slot in part.slots.tolist()]


def test_an_evaluation_batch_takes_rows_as_asked(source: BatchSource) -> None:
    batch = source.evaluation_batch("made/scores", np.array([3, 0, 2]))
    assert batch.example_ids.tolist() == [3, 0, 2]
    assert batch.example_task.tolist() == [2, 2, 2]
    assert batch.slots.tolist() == [0, 1, 2]
    assert batch.targets["made/scores"].tolist() == [3.5, 0.5, 2.5]
    assert _sequences(batch) == [PAIRS[3], PAIRS[0], PAIRS[2]]


def test_a_store_without_labels_gives_no_targets(source: BatchSource) -> None:
    batch = source.evaluation_batch("made/unlabelled", np.array([1]))
    assert batch.targets == {}
    assert batch.layout.slices == {"made/unlabelled": slice(0, 1)}


def test_token_fields_are_int64(source: BatchSource) -> None:
    batch = source.batch(_plan((0, 0), (1, 1)), np.arange(2))
    fields = [value for value in vars(batch).values() if isinstance(value, torch.Tensor)]
    assert len(fields) == 8
    assert {tensor.dtype for tensor in fields} == {torch.int64}


def test_moving_a_batch_moves_every_tensor_and_keeps_the_host_layout(source: BatchSource) -> None:
    batch = source.batch(_plan((0, 0), (2, 1)), np.arange(2))
    moved = batch.to(torch.device("meta"))
    tensors = [value for value in vars(moved).values() if isinstance(value, torch.Tensor)]
    assert {tensor.device.type for tensor in [*tensors, *moved.targets.values()]} == {"meta"}
    assert moved.layout is batch.layout
    assert batch.token_ids.device.type == "cpu"


def test_changing_a_batch_does_not_change_the_store(source: BatchSource) -> None:
    batch = source.evaluation_batch("made/pairs", np.array([0]))
    batch.token_ids.zero_()
    batch.targets["made/pairs"].zero_()
    again = source.evaluation_batch("made/pairs", np.array([3, 0]))
    assert _sequences(again) == [PAIRS[3], PAIRS[0]]
    assert again.targets["made/pairs"].tolist() == [1, 0]

"""The packed batch: examples of any tasks, flat and unpadded; the type that data, encoder, heads and loop meet at.

B examples, S sequences, T tokens, K tasks. An example is what is sampled and scored; a sequence is what attends within
itself. Examples are ordered by task, so each task's examples are one slice.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from mtl.data.blocks import Blocks, sequence_blocks
from mtl.data.plan import UpdatePlan
from mtl.data.store import TokenStore
from mtl.sampling.samplers import IntArray


@dataclass(frozen=True)
class Layout:
    """The batch's shape on the host, so that nothing on the device has to be asked for it.

    ``sequence_lengths`` (S,); ``sequences_per_example`` (B,); ``slices``: task name to its slice of the examples.
    """

    sequence_lengths: IntArray
    sequences_per_example: IntArray
    slices: Mapping[str, slice]


@dataclass(frozen=True)
class PackedBatch:
    """Token-level fields are (T,), see the module's text for the letters.

    ``slots`` (B,) are the examples' places in the whole update, over all ranks and micro-batches: dropout is keyed on
    them. ``example_ids`` (B,) are rows of the source split. ``blocks``: the sequences grouped by length, for attention.
    ``targets`` holds one tensor a task over its examples, or none in prediction; ``spans`` (B_t, n, 2) token ranges
    within the example for tasks that read them.
    """

    token_ids: Tensor
    type_ids: Tensor
    position_ids: Tensor
    sequence_offsets: Tensor
    example_offsets: Tensor
    example_task: Tensor
    example_ids: Tensor
    slots: Tensor
    blocks: Blocks
    layout: Layout
    targets: Mapping[str, Tensor] = field(default_factory=dict)
    spans: Mapping[str, Tensor] = field(default_factory=dict)

    @property
    def tasks(self) -> tuple[str, ...]:
        """Names of the tasks that have examples here."""
        return tuple(self.layout.slices)

    @property
    def examples(self) -> int:
        """B."""
        return int(self.layout.sequences_per_example.size)

    @property
    def tokens(self) -> int:
        """T."""
        return int(self.token_ids.shape[0])

    def to(self, device: torch.device) -> Self:
        """The batch on ``device``, copied without blocking where its memory is pinned."""
        return self._map(lambda tensor: tensor.to(device, non_blocking=True))

    def pin(self) -> Self:
        """The batch in page-locked memory, for copies to a GPU that overlap with its work."""
        return self._map(lambda tensor: tensor.pin_memory())

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        changed: dict[str, Any] = {
            name: change(value) for name, value in vars(self).items() if isinstance(value, Tensor)
        }
        for name, group in (("targets", self.targets), ("spans", self.spans)):
            changed[name] = {task: change(tensor) for task, tensor in group.items()}
        changed["blocks"] = self.blocks.map(change)
        return replace(self, **changed)


@dataclass(frozen=True)
class UpdateWork:
    """What an update's arithmetic follows from: tokens, the sum of squared sequence lengths, sequences by task."""

    tokens: int
    squared_lengths: float
    sequences: Mapping[str, int]


@dataclass(frozen=True)
class BatchSource:
    """The stores that batches are cut from, by task, in the order of the task indices of update plans."""

    stores: Mapping[str, TokenStore]

    def batch(self, plan: UpdatePlan, slots: IntArray) -> PackedBatch:
        """The examples at ``slots`` (B,) of an update, with their targets."""
        order = slots[np.argsort(plan.tasks[slots], kind="stable")]
        names = list(self.stores)
        parts = []
        for task in np.unique(plan.tasks[order]):
            chosen = order[plan.tasks[order] == task]
            parts.append((names[task], plan.rows[chosen], chosen))
        return self._pack(parts)

    def work(self, plan: UpdatePlan) -> UpdateWork:
        """The work of a whole update, from the stores' offsets alone."""
        squared, sequences = 0.0, {}
        for number, (task, store) in enumerate(self.stores.items()):
            rows = plan.rows[plan.tasks == number]
            if rows.size:
                chosen = _ranges(store.example_offsets[rows], store.example_offsets[rows + 1])
                lengths = store.sequence_offsets[chosen + 1] - store.sequence_offsets[chosen]
                squared += float(np.square(lengths.astype(np.float64)).sum())
                sequences[task] = int(chosen.size)
        return UpdateWork(int(plan.lengths.sum()), squared, sequences)

    def evaluation_batch(self, task: str, rows: IntArray) -> PackedBatch:
        """The examples at ``rows`` (B,) of one task's store; targets where the store has labels."""
        return self._pack([(task, rows, np.arange(rows.size, dtype=np.int64))])

    def _pack(self, parts: Sequence[tuple[str, IntArray, IntArray]]) -> PackedBatch:
        names = list(self.stores)
        gathered = [_gather(self.stores[task], rows) for task, rows, _ in parts]
        sequence_lengths = np.concatenate([piece.sequence_lengths for piece in gathered])
        per_example = np.concatenate([piece.sequences_per_example for piece in gathered])
        sizes = [rows.size for _, rows, _ in parts]
        starts = np.cumsum([0, *sizes])
        slices = {task: slice(int(starts[i]), int(starts[i + 1])) for i, (task, _, _) in enumerate(parts)}
        targets = {
            task: torch.from_numpy(self.stores[task].labels[rows])
            for task, rows, _ in parts
            if self.stores[task].labelled
        }
        return PackedBatch(
            token_ids=_int64(np.concatenate([piece.tokens for piece in gathered])),
            type_ids=_int64(np.concatenate([piece.types for piece in gathered])),
            position_ids=_int64(_restarting_positions(sequence_lengths)),
            sequence_offsets=_int64(_offsets(sequence_lengths)),
            example_offsets=_int64(_offsets(per_example)),
            example_task=_int64(np.repeat([names.index(task) for task, _, _ in parts], sizes)),
            example_ids=_int64(np.concatenate([rows for _, rows, _ in parts])),
            slots=_int64(np.concatenate([slots for _, _, slots in parts])),
            blocks=sequence_blocks(sequence_lengths),
            layout=Layout(sequence_lengths, per_example, slices),
            targets=targets,
        )


@dataclass(frozen=True)
class _Gathered:
    tokens: npt.NDArray[Any]
    types: npt.NDArray[Any]
    sequence_lengths: IntArray
    sequences_per_example: IntArray


def _gather(store: TokenStore, rows: IntArray) -> _Gathered:
    sequences = _ranges(store.example_offsets[rows], store.example_offsets[rows + 1])
    begins, ends = store.sequence_offsets[sequences], store.sequence_offsets[sequences + 1]
    tokens = _ranges(begins, ends)
    per_example = store.example_offsets[rows + 1] - store.example_offsets[rows]
    return _Gathered(store.tokens[tokens], store.types[tokens], ends - begins, per_example)


def _ranges(begins: IntArray, ends: IntArray) -> IntArray:
    """All integers of the half-open ranges, one range after the other."""
    lengths = ends - begins
    shifts = np.repeat(np.cumsum(lengths) - lengths - begins, lengths)
    return np.asarray(np.arange(shifts.size, dtype=np.int64) - shifts, dtype=np.int64)


def _restarting_positions(lengths: IntArray) -> IntArray:
    return _ranges(np.zeros_like(lengths), lengths)


def _offsets(lengths: IntArray) -> IntArray:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths, dtype=np.int64)])


def _int64(array: npt.NDArray[Any]) -> Tensor:
    return torch.from_numpy(array.astype(np.int64))

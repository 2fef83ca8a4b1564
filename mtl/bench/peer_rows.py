"""The rows of a training as a Trainer takes them: the same rows in the same order, tokenised as mtl has them."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from mtl.bench.start import Start
from mtl.data.batches import UpdateWork
from mtl.data.store import TokenStore
from mtl.errors import ConfigError
from mtl.stages.build import plan_updates

INPUTS = ("input_ids", "token_type_ids", "attention_mask")


@dataclass(frozen=True)
class PeerRows:
    """Features in the order of the updates, ``per_update`` to each, and the head that reads them.

    A feature holds the inputs, ``labels``, and ``place``, its index here; ``tasks`` names the task of each. ``outputs``
    is 1 for a regression.
    """

    features: list[dict[str, Any]]
    tasks: list[str]
    per_update: int
    outputs: int
    regression: bool


def peer_rows(start: Start) -> PeerRows:
    """The rows of all updates as mtl plans them. Tasks that are mixed share one head: see :func:`shared_label`.

    Where updates are sized in tokens a peer's hold the mean number of rows, rounded down. ConfigError for examples of
    several sequences, which no sequence classifier reads.
    """
    context, unit = start.context, start.unit
    specs = [context.data[task].spec for task in unit.tasks]
    stores = [context.data[task].train for task in unit.tasks]
    for spec, store in zip(specs, stores, strict=True):
        if store.rows != store.sequence_offsets.size - 1:
            raise ConfigError(
                f"{spec.name} has examples of several sequences, which the peers of --against cannot read: leave the "
                "task or --against out"
            )
    mixture = len(specs) > 1
    outputs = max(spec.outputs for spec in specs)
    # Only a mixture of nothing but regressions has a lone output, which can then be trained on their scores.
    regression = outputs == 1
    planner, _ = plan_updates(context, unit.tasks, unit.settings)
    features: list[dict[str, Any]] = []
    tasks: list[str] = []
    for step in range(planner.total):
        plan = planner.plan(step)
        for task, row in zip(plan.tasks.tolist(), plan.rows.tolist(), strict=True):
            label: float = stores[task].labels[row].item()
            if mixture and not regression:
                label = shared_label(label, outputs)
            features.append(_feature(stores[task], row, label, len(features)))
            tasks.append(unit.tasks[task])
    return PeerRows(features, tasks, len(features) // planner.total, outputs, regression)


def shared_label(label: float, outputs: int) -> int:
    """A label of any task as one of a head's ``outputs`` classes: scores rounded, then the rest of a division.

    It means nothing; it lets one head run on every task's rows at the cost that a real head would have.
    """
    return round(label) % outputs


def _feature(store: TokenStore, row: int, label: float, place: int) -> dict[str, Any]:
    begin, end = store.sequence_offsets[row : row + 2]
    return {
        "input_ids": store.tokens[begin:end].tolist(),
        "token_type_ids": store.types[begin:end].tolist(),
        "attention_mask": [1] * int(end - begin),
        "labels": label,
        "place": place,
    }


@dataclass(frozen=True)
class Seen:
    """A batch as the peer's model got it: places of its rows, their real tokens, and tokens with padding."""

    places: tuple[int, ...]
    lengths: tuple[int, ...]
    padded_tokens: int


@dataclass(frozen=True)
class RecordingCollator:
    """Collates features by ``collate`` and notes what each batch holds, counted from its attention mask.

    ``kept``: the inputs that the model takes.
    """

    collate: Callable[[list[dict[str, Any]]], Mapping[str, Any]]
    kept: Sequence[str]
    seen: list[Seen] = field(default_factory=list)

    def __call__(self, features: Sequence[Mapping[str, Any]]) -> Mapping[str, Any]:
        """The batch of these features."""
        batch = self.collate([{name: feature[name] for name in (*self.kept, "labels")} for feature in features])
        mask = batch["attention_mask"]
        places = tuple(int(feature["place"]) for feature in features)
        self.seen.append(Seen(places, tuple(mask.sum(dim=1).tolist()), mask.numel()))
        return batch


def padded_features(rows: PeerRows, pad: Callable[[dict[str, Any]], Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Every feature padded on its own by ``pad``, ahead of the training."""
    return [{**feature, **pad({name: feature[name] for name in INPUTS})} for feature in rows.features]


def work_of(seen: Sequence[Seen], tasks: Sequence[str]) -> UpdateWork:
    """The useful work in these batches: real tokens and rows only, by task."""
    lengths = np.array([length for batch in seen for length in batch.lengths], dtype=np.float64)
    names, counts = np.unique([tasks[place] for batch in seen for place in batch.places], return_counts=True)
    sequences = dict(zip(names.tolist(), counts.tolist(), strict=True))
    return UpdateWork(int(lengths.sum()), float(np.square(lengths).sum()), sequences)

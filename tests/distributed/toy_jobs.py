"""What the tests let several ranks compute, and one rank for comparison, with everything they ask about saved."""

import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.evaluation.evaluate import Evaluator
from mtl.models.load import wrap_model
from mtl.models.multitask import MultitaskModel
from mtl.runtime.ranks import Ranks
from mtl.sampling.samplers import FixedSampler
from mtl.weighting.protocol import BoolArray, Needs, StaticWeighting
from tests.training.toy_training import PAIRS, SCORES, Toy, toy_bert, toy_model, toy_spec, toy_store, toy_training

UPDATES, FEWER = 50, 12
EVALUATED = range(1, 18)


class ByLosses(StaticWeighting):
    """Weights that follow from the losses, or from the gradients' norms, or from the step, as ``needs`` says."""

    def __init__(self, needs: Needs) -> None:
        self.needs = needs

    def weights_at(self, step: int) -> Tensor:
        return torch.tensor([1.0, 2.0, 0.5])

    def weights(self, step: int, present: BoolArray, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        if gradients is not None:
            norms = torch.nan_to_num(gradients.diagonal(), nan=1.0)
            return 1.0 / (0.1 + norms.sqrt())
        return self.weights_at(step) if losses is None else torch.nan_to_num(losses, nan=0.0) + 0.5


def mixed(
    ranks: Ranks, *, way: str = "packed", micro_batches: int = 2, needs: Needs = "nothing", combine: Any = "share"
) -> Toy:
    """Updates of 5 rows of three tasks, one of them rare: often on one rank only, often in no row at all."""
    return toy_training(
        model=toy_model(dropout=0.1, encoder=wrap_model(toy_bert(0.1), way)),
        rows=5,
        total=UPDATES,
        micro_batches=micro_batches,
        sampler=FixedSampler(np.array([5.0, 4.0, 1.0])),
        weighting=ByLosses(needs),
        combine=combine,
        optimizer={"weight_decay": 0.1, "clip_norm": 0.5},
        ranks=ranks,
    )


def train(toy: Toy, ranks: Ranks, place: Path, updates: int) -> None:
    """Run the updates; every rank saves losses, final weights and the rows it held."""
    results = toy.run(0, updates)
    held: list[list[list[int]]] = []
    for result in results:
        assert len(result.update.batches) <= result.update.micro_batches
        held.append([[t, r] for b in result.update.batches for t, r in _rows(b)])
    place.mkdir(parents=True, exist_ok=True)
    numbers = {"losses": np.stack([result.losses.numpy() for result in results])}
    numbers |= {"norms": np.stack([result.gradient_norm.numpy() for result in results])}
    np.savez(place / f"numbers-{ranks.rank}.npz", **numbers)
    np.savez(place / f"weights-{ranks.rank}.npz", **{name: w.numpy() for name, w in toy.weights().items()})
    (place / f"rows-{ranks.rank}.json").write_text(json.dumps(held))


def _rows(batch: PackedBatch) -> list[tuple[int, int]]:
    return list(zip(batch.example_task.tolist(), batch.example_ids.tolist(), strict=True))


def evaluate(ranks: Ranks, place: Path) -> None:
    """Outputs of splits of 1 to 17 examples, in batches of about two, on every rank."""
    place.mkdir(parents=True, exist_ok=True)
    model = toy_model()
    evaluator = Evaluator(30, "fp32", torch.device("cpu"), ranks=ranks)
    outputs = {}
    for task in (PAIRS, SCORES):
        for rows in EVALUATED:
            outputs[f"{task} {rows}"] = evaluator.predict(model, toy_spec(task), toy_store(task, rows)).outputs
    np.savez(place / f"outputs-{ranks.rank}.npz", **outputs)


def train_short_of_memory(ranks: Ranks, place: Path) -> None:
    """The same updates where the last rank cannot hold more than 25 tokens at once; gradients of the first saved."""
    for needs in NEEDS:
        toy = mixed(ranks, micro_batches=1, needs=needs)
        if ranks.rank == ranks.size - 1:
            toy.model.register_forward_pre_hook(_refuse(25))
        train(toy, ranks, place / needs, updates=FEWER)


def train_short_of_memory_in_backward(ranks: Ranks, place: Path) -> None:
    """The same updates where a backward pass of the last rank once breaks off halfway."""
    toy = mixed(ranks, micro_batches=1)
    if ranks.rank == ranks.size - 1:
        passes = itertools.count()

        def break_off(gradient: Tensor) -> None:
            if next(passes) == 2:
                raise torch.OutOfMemoryError("no room for gradients")

        parameters = list(toy.model.encoder.parameters())
        parameters[len(parameters) // 2].register_hook(break_off)
    train(toy, ranks, place, updates=FEWER)


def _refuse(most: int) -> Callable[[MultitaskModel, tuple[Any, ...]], None]:
    def refuse(model: MultitaskModel, arguments: tuple[Any, ...]) -> None:
        if arguments[0].tokens > most:
            raise torch.OutOfMemoryError("no room for so many tokens")

    return refuse


NEEDS: tuple[Literal["nothing"], Literal["losses"], Literal["gradients"]] = ("nothing", "losses", "gradients")


def everything(ranks: Ranks, out: Path) -> None:
    """All of it, so that processes are started once."""
    for needs in NEEDS:
        for micro_batches in (1, 2):
            toy = mixed(ranks, micro_batches=micro_batches, needs=needs)
            train(toy, ranks, out / f"{needs}-{micro_batches}", updates=UPDATES if needs == "nothing" else FEWER)
    train(mixed(ranks, combine="equal"), ranks, out / "equal", updates=FEWER)
    for needs in ("nothing", "gradients"):
        train(mixed(ranks, way="native", needs=needs), ranks, out / f"native-{needs}", updates=FEWER)
    evaluate(ranks, out / "evaluated")
    train_short_of_memory(ranks, out / "short of memory")
    train_short_of_memory_in_backward(ranks, out / "short of memory" / "backward")

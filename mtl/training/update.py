"""One update: forward, weights, backward, clip, step. What multi-task training is, in one file.

With L_t the mean loss of task t over all of its examples in the update, s_t the task's share of the update's unit and
w_t its weight, ``combine: share`` minimises sum_t w_t s_t L_t, so that in expectation task t counts p_t w_t whatever
the number of tasks an update holds; ``equal`` minimises sum_t w_t L_t / sum_t w_t over the tasks present.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from mtl.data.batches import PackedBatch
from mtl.gradients.per_task import encoder_gradients, gramian
from mtl.models.dropout import DropoutKey
from mtl.models.multitask import MultitaskModel
from mtl.runtime.device import to_device
from mtl.runtime.precision import Precision, forward_context
from mtl.training.memory import MemoryWatch
from mtl.training.optimizer import Optimizer
from mtl.training.prepared import Preparation, PreparedUpdate
from mtl.training.reduction import GradientReduction
from mtl.weighting.protocol import Weighting


@dataclass(frozen=True)
class UpdateResult:
    """What an update leaves behind, all on the device: nothing here has been waited for.

    ``losses`` (K,) raw task means, NaN where a task is absent; ``weights`` (K,); ``example_losses`` one mapping a
    micro-batch, by task; ``gradient_norm`` before clipping; ``not_finite`` is 1 from the first bad update on.
    """

    update: PreparedUpdate
    losses: Tensor
    weights: Tensor
    example_losses: list[dict[str, Tensor]]
    gradient_norm: Tensor
    not_finite: Tensor


class Updater:
    """Runs prepared updates on a model, on one rank or several: the step is the same on all of them.

    Where any rank runs out of memory, all take the update again in smaller micro-batches, and later updates with it.
    Alone on a GPU the host never waits for the device within an update, unless the encoder is padded or memory ran out.
    """

    def __init__(
        self,
        model: MultitaskModel,
        optimizer: Optimizer,
        weighting: Weighting,
        preparation: Preparation,
        *,
        combine: Literal["share", "equal"],
        precision: Precision,
        device: torch.device,
        seed: int,
    ) -> None:
        self.model, self.optimizer, self.weighting = model, optimizer, weighting
        self._preparation, self._ranks = preparation, preparation.ranks
        self._combine, self._precision, self._device, self._seed = combine, precision, device, seed
        self._index = {task: number for number, task in enumerate(model.tasks)}
        self._not_finite = torch.zeros((), dtype=torch.float32, device=device)
        self._reduction = GradientReduction(model, preparation.ranks)
        self._memory = MemoryWatch()
        self._modules = tuple(model.modules())

    def run(self, update: PreparedUpdate) -> UpdateResult:
        """Take one step. After a loss or gradient that is not finite, parameters no longer change.

        Raises MtlError where memory does not hold a micro-batch of one example.
        """
        if not all(module.training for module in self._modules):
            self.model.train()
        update = self._memory.fitted(update, self._preparation)
        while (gradients := self._gradients(update)) is None:
            update = self._preparation.halved(update)
        batches, losses, weights, examples = gradients
        self._learn_weights(update, weights, losses)
        norm = self.optimizer.norm()
        present = self._to_device(update.counts) > 0
        bad = ~torch.isfinite(torch.where(present, losses, 0.0).sum() + norm)
        self._not_finite = torch.maximum(self._not_finite, bad.float())
        self.optimizer.step(update.step, self._not_finite, norm)
        self.weighting.after_step(self._losses_again(update, batches))
        return UpdateResult(update, losses, weights.detach(), examples, norm, self._not_finite)

    def _gradients(
        self, update: PreparedUpdate
    ) -> tuple[list[PackedBatch], Tensor, Tensor, list[dict[str, Tensor]]] | None:
        """Leave the update's gradients, over all ranks, in the parameters; None where a rank ran out of memory."""
        self.optimizer.zero()
        batches: list[PackedBatch] = []
        with self._memory.watch():
            batches = [batch.to(self._device) for batch in update.batches]
        by_task = self.weighting.needs == "gradients"
        losses, weights, examples = (self._backward_by_task if by_task else self._backward)(update, batches)
        if self._reduction.finish(self._present(update), self._memory.exhausted, encoder=not by_task):
            self._memory.give_up(update, self._ranks)
            return None
        if losses is None:
            losses = self._task_means(examples, self._to_device(update.counts))
        return batches, losses, weights, examples

    def _backward(
        self, update: PreparedUpdate, batches: Sequence[PackedBatch]
    ) -> tuple[Tensor | None, Tensor, list[dict[str, Tensor]]]:
        """Gradients of the combined loss, one micro-batch after the other; the task's losses if known before."""
        counts, examples = self._to_device(update.counts), []
        forwarded, known = [], None
        if self.weighting.needs != "nothing":
            # Nothing less than the whole update's losses; a lone micro-batch need not be passed again for them.
            with torch.set_grad_enabled(update.micro_batches == 1), self._memory.watch():
                forwarded = [self._example_losses(update, batch) for batch in batches]
            known = self._task_means(forwarded, counts)
        weights = self._weights(update, known, None)
        scale = self._coefficients(update, weights.detach()) / counts.clamp(min=1.0)
        with self._memory.watch():
            for number, batch in enumerate(batches):
                if forwarded and update.micro_batches == 1:
                    losses = forwarded[number]
                else:
                    losses = self._example_losses(update, batch)
                examples.append({task: values.detach() for task, values in losses.items()})
                total = torch.stack([scale[self._index[task]] * values.sum() for task, values in losses.items()]).sum()
                with self._reduction.overlapping(last=number == len(batches) - 1):
                    total.backward()  # type: ignore[no-untyped-call]
        # Between the first backward pass and the reduction's end no other sum may travel: ranks would meet at
        # different ones.
        return known, weights, examples

    def _backward_by_task(
        self, update: PreparedUpdate, batches: Sequence[PackedBatch]
    ) -> tuple[Tensor, Tensor, list[dict[str, Tensor]]]:
        """The encoder gets the weighted sum of the tasks' gradients of L_t, every head the gradient of its own L_t."""
        parameters = list(self.model.encoder.parameters())
        counts, examples = self._to_device(update.counts), []
        size = sum(parameter.numel() for parameter in parameters)
        gradients = {
            task: torch.zeros(size, device=self._device)
            for task, number in self._index.items()
            if update.counts[number]
        }
        with self._memory.watch():
            for batch in batches:
                losses = self._example_losses(update, batch)
                examples.append({task: values.detach() for task, values in losses.items()})
                for task, values in losses.items():
                    loss = values.sum() / counts[self._index[task]]
                    last = task == batch.tasks[-1]
                    head = self.model.head_module(task)
                    gradients[task] += encoder_gradients(loss, parameters, head, keep_graph=not last)
        for part in gradients.values():
            self._ranks.add(part)
        means = self._task_means(examples, counts)
        products = gramian([gradients.get(task) for task in self.model.tasks], self._device)
        weights = self._weights(update, means, products).detach()
        combined = torch.stack([weights[self._index[task]] * part for task, part in gradients.items()]).sum(0)
        for parameter, part in zip(parameters, torch.split(combined, [p.numel() for p in parameters]), strict=True):
            parameter.grad = part.view_as(parameter)
        return means, weights, examples

    def _example_losses(self, update: PreparedUpdate, batch: PackedBatch) -> dict[str, Tensor]:
        with forward_context(self._precision, self._device):
            outputs = self.model(batch, DropoutKey(self._seed, update.step))
        return self.model.losses(outputs, batch)

    def _task_means(self, parts: Sequence[dict[str, Tensor]], counts: Tensor) -> Tensor:
        """Raw mean losses (K,) over all micro-batches and ranks, NaN where a task has no example."""
        sums = torch.zeros(len(self._index), device=self._device)
        for task, number in self._index.items():
            here = [part[task].detach().sum() for part in parts if task in part]
            if here:
                sums[number] = torch.stack(here).sum()
        self._ranks.add(sums)
        return torch.where(counts > 0, sums / counts.clamp(min=1.0), float("nan"))

    def _weights(self, update: PreparedUpdate, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        return to_device(self.weighting.weights(update.step, update.counts > 0, losses, gradients), self._device)

    def _coefficients(self, update: PreparedUpdate, weights: Tensor) -> Tensor:
        """What each task's L_t is multiplied by in the update's loss (K,)."""
        if self._combine == "share":
            return weights * self._to_device(update.shares)
        here = torch.where(self._to_device(update.counts) > 0, weights, 0.0)
        total = here.sum()
        # An update whose tasks all have weight 0 has nothing to learn; it is no division by zero.
        return here / torch.where(total == 0.0, 1.0, total)

    def _learn_weights(self, update: PreparedUpdate, weights: Tensor, losses: Tensor) -> None:
        """Gradients of the weighting's own parameters, the tasks' losses taken as given."""
        if not weights.requires_grad:
            return
        # The NaN of an absent task has to go before the product: its derivative would be zero times NaN.
        present = self._to_device(update.counts) > 0
        loss = (self._coefficients(update, weights) * torch.where(present, losses, 0.0)).sum()
        regulariser = self.weighting.regulariser()
        (loss if regulariser is None else loss + regulariser).backward()  # type: ignore[no-untyped-call]

    def _losses_again(self, update: PreparedUpdate, batches: Sequence[PackedBatch]) -> Tensor | None:
        if self.weighting.needs != "second_forward":
            return None
        with torch.no_grad():
            parts = [self._example_losses(update, batch) for batch in batches]
        return self._task_means(parts, self._to_device(update.counts))

    def _present(self, update: PreparedUpdate) -> list[str]:
        """The tasks that the update holds on any rank."""
        return [task for task, number in self._index.items() if update.counts[number]]

    def _to_device(self, array: np.ndarray) -> Tensor:
        return to_device(torch.from_numpy(array.astype(np.float32)), self._device)

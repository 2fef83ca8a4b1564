"""Summing gradients over ranks: the encoder's in buckets while backward still runs, the heads' after it.

A parameter that any rank reached has the sum, with zeros for ranks that did not; one that none reached has no gradient
and takes no step. So what is summed never depends on which rank holds which task, and nothing has to look for unused
parameters.
"""

import weakref
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial

import torch
from torch import Tensor, nn

from mtl.models.multitask import MultitaskModel
from mtl.runtime.ranks import Ranks

_BUCKET_BYTES = 25 * 2**20


@dataclass(eq=False)
class _Bucket:
    """Gradients that travel together: a flat buffer with a slice for each parameter."""

    parameters: list[nn.Parameter]
    buffer: Tensor
    expected: set[nn.Parameter] = field(default_factory=set)
    """Those that the last backward pass reached here; once they are ready, so is the bucket."""
    ready: set[nn.Parameter] = field(default_factory=set)

    def slices(self) -> list[Tensor]:
        """Views of the buffer, shaped like the parameters."""
        parts = torch.split(self.buffer, [parameter.numel() for parameter in self.parameters])
        return [part.view_as(parameter) for part, parameter in zip(parts, self.parameters, strict=True)]

    def fill(self) -> None:
        """Copy the gradients in, zeros where there is none."""
        for parameter, part in zip(self.parameters, self.slices(), strict=True):
            if parameter.grad is None:
                part.zero_()
            else:
                part.copy_(parameter.grad)


class GradientReduction:
    """Sums the gradients of a model over the ranks of a run. With one rank it does nothing and costs nothing."""

    def __init__(self, model: MultitaskModel, ranks: Ranks) -> None:
        self._model, self._ranks = model, ranks
        self._buckets: list[_Bucket] = []
        self._waits: list[Callable[[], None]] = []
        self._overlapping = False
        if ranks.size > 1:
            # Backward reaches the last layers first.
            self._buckets = _buckets([each for each in model.encoder.parameters() if each.requires_grad][::-1])
            for number, bucket in enumerate(self._buckets):
                hook = partial(_arrived, weakref.ref(self), number)
                for parameter in bucket.parameters:
                    parameter.register_post_accumulate_grad_hook(hook)  # type: ignore[no-untyped-call]

    @contextmanager
    def overlapping(self, last: bool) -> Iterator[None]:
        """Around a backward pass: if it is this rank's ``last`` of the update, full buckets leave while it runs."""
        self._overlapping = last and self._ranks.size > 1
        try:
            yield
        finally:
            self._overlapping = False

    def finish(self, present: Sequence[str], failed: bool, *, encoder: bool) -> bool:
        """Sum what has not been summed; whether any rank ``failed``, and then no gradient means anything.

        ``present``: the tasks that the whole update holds; ``encoder``: false where its gradients are sums already.
        Afterwards all ranks have bit-equal gradients.
        """
        if self._ranks.size == 1:
            return failed
        heads = [parameter for task in present for parameter in self._model.head_module(task).parameters()]
        groups = [*(self._buckets if encoder else []), *([_Bucket(heads, _flat(heads))] if heads else [])]
        reached = [parameter.grad is not None for group in groups for parameter in group.parameters]
        started = list(self._waits)
        self._waits.clear()
        for group in groups[len(started) :]:
            group.fill()
            started.append(self._ranks.begin_adding(group.buffer))
        # Only now: ranks may have sent off different numbers of buckets, and collectives match by their order.
        failed, *reached_anywhere = self._ranks.any([failed, *reached])
        flags = iter(reached_anywhere)
        for group, wait in zip(groups, started, strict=True):
            wait()
            # A backward pass that broke off says nothing about how far the next one will get.
            arrived = () if failed else group.parameters
            group.expected = {parameter for parameter in arrived if parameter.grad is not None}
            group.ready.clear()
            for parameter, part in zip(group.parameters, group.slices(), strict=True):
                parameter.grad = part.to(parameter.dtype) if next(flags) else None
        return failed

    def _arrived(self, bucket: _Bucket, parameter: nn.Parameter) -> None:
        """Note a gradient that is complete; send off all buckets that are, in their order."""
        if not self._overlapping:
            return
        bucket.ready.add(parameter)
        if bucket in self._buckets[: len(self._waits)]:
            raise RuntimeError("backward reached a parameter of the encoder that it had never reached before")
        while len(self._waits) < len(self._buckets):
            following = self._buckets[len(self._waits)]
            if not following.expected or not following.expected <= following.ready:
                return
            following.fill()
            self._waits.append(self._ranks.begin_adding(following.buffer))


def _arrived(reduction: "weakref.ref[GradientReduction]", number: int, parameter: nn.Parameter) -> None:
    """A gradient of bucket ``number`` is complete.

    The collector does not see what a parameter's hooks hold: through them a model would hold itself for ever.
    """
    alive = reduction()
    if alive is not None:
        alive._arrived(alive._buckets[number], parameter)


def _buckets(parameters: Sequence[nn.Parameter]) -> list[_Bucket]:
    buckets: list[list[nn.Parameter]] = []
    room = 0
    for parameter in parameters:
        size = parameter.numel() * parameter.element_size()
        if size > room:
            buckets.append([])
            room = max(_BUCKET_BYTES, size)
        buckets[-1].append(parameter)
        room -= size
    return [_Bucket(group, _flat(group)) for group in buckets]


def _flat(parameters: Sequence[nn.Parameter]) -> Tensor:
    return torch.zeros(
        sum(parameter.numel() for parameter in parameters), dtype=torch.float32, device=parameters[0].device
    )

"""The ranks of a run: processes that train one model together. A run that is alone has one, and waits for nobody.

Every method of :class:`Ranks` but the plain properties is collective: all ranks call it, in the same order.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, TypeVar

import torch
import torch.distributed as dist
from pydantic import JsonValue
from torch import Tensor

from mtl.errors import LostRankError, MtlError, RelayedError
from mtl.runtime.torchrun import launched_ranks

T = TypeVar("T")

# A rank that dies closes its connections, which ends the others at once. This limit is for one that is cut off without
# a word; it has to be longer than the first rank needs to tokenise or to write a checkpoint while the others wait.
_PATIENCE = timedelta(hours=2)


@dataclass(frozen=True)
class Ranks:
    """This process's number among ``size``; the first one writes files and decides what others only follow."""

    rank: int = 0
    size: int = 1

    @property
    def first(self) -> bool:
        """Whether this is the rank that writes."""
        return self.rank == 0

    def add(self, tensor: Tensor) -> None:
        """Replace ``tensor``, on any device, by its sum over the ranks; bit-equal on all of them."""
        if self.size > 1:
            with _lost_ranks():
                dist.all_reduce(tensor)

    def begin_adding(self, tensor: Tensor) -> Callable[[], None]:
        """Start the same sum in the background; what is returned waits for it."""
        if self.size == 1:
            return lambda: None
        with _lost_ranks():
            work = dist.all_reduce(tensor, async_op=True)

        def wait() -> None:
            with _lost_ranks():
                work.wait()

        return wait

    def any(self, flags: Sequence[bool]) -> list[bool]:
        """For each flag whether any rank has raised it. The host waits for the other hosts, not for devices."""
        if self.size == 1:
            return list(flags)
        raised = torch.tensor(flags, dtype=torch.uint8)
        with _lost_ranks():
            dist.all_reduce(raised, op=dist.ReduceOp.MAX)
        return [bool(flag) for flag in raised.tolist()]

    def wait(self) -> None:
        """Return once all ranks are here."""
        self.any([False])

    def decide(self, action: Callable[[], JsonValue]) -> Any:
        """What ``action`` returns on the first rank, on all of them; the others do not call it.

        An MtlError there is raised here as well, by the others as RelayedError with the same exit code.
        """
        if self.size == 1:
            return action()
        if not self.first:
            answer = _receive()
            if "error" in answer:
                raise RelayedError(answer["error"], answer["exit_code"])
            return answer["value"]
        try:
            value = action()
        except MtlError as error:
            _send({"error": str(error), "exit_code": error.exit_code})
            raise
        _send({"value": value})
        return value

    def first_does(self, action: Callable[[], object]) -> None:
        """Carry ``action`` out on the first rank, the others waiting; errors as for :meth:`decide`."""

        def act() -> None:
            action()

        self.decide(act)

    def first_before_others(self, action: Callable[[], T]) -> T:
        """Carry ``action`` out on every rank, the first rank before the others: they find the files it left.

        Errors as for :meth:`decide` on the first rank, as for :meth:`together` on the others. ``action`` itself must
        not be collective.
        """
        if not self.first:
            self.decide(lambda: None)
            return self.together(action)
        found: list[T] = []
        self.first_does(lambda: found.append(action()))
        return self.together(lambda: found[0])

    def together(self, action: Callable[[], T]) -> T:
        """Carry ``action`` out on every rank; an MtlError on any of them is raised on all.

        What several raise alike only the lowest of them reports; those without an error of their own raise
        RelayedError. All ranks are done when this returns. ``action`` itself must not be collective.
        """
        if self.size == 1:
            return action()
        found: list[T] = []
        error: MtlError | None = None
        try:
            found.append(action())
        except MtlError as caught:
            error = caught
        if not self.any([error is not None])[0]:
            return found[0]
        own: dict[str, JsonValue] = {} if error is None else {"error": str(error), "exit_code": error.exit_code}
        answers = self._exchange(own)
        if error is None:
            failure = next(answer for answer in answers if answer)
            raise RelayedError(failure["error"], failure["exit_code"])
        error.reported_elsewhere = own in answers[: self.rank]
        raise error

    def _exchange(self, own: dict[str, JsonValue]) -> list[dict[str, Any]]:
        """What each rank has to say, in their order."""
        return [_send(own, rank) if rank == self.rank else _receive(rank) for rank in range(self.size)]


ALONE = Ranks()


@contextmanager
def joined_ranks(device: torch.device) -> Iterator[Ranks]:
    """This process among those that torchrun started, joined while the block runs; alone where it started none.

    Tensors on the CPU travel by gloo, those on GPUs by NCCL. Where the process group exists already, as in a user's own
    script, it is used and left.
    """
    if launched_ranks() == 1:
        yield ALONE
        return
    ours = not dist.is_initialized()
    if ours:
        backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
        with _lost_ranks():
            dist.init_process_group(backend, timeout=_PATIENCE)
    try:
        yield Ranks(dist.get_rank(), dist.get_world_size())
    finally:
        if ours:
            dist.destroy_process_group()


@contextmanager
def _lost_ranks() -> Iterator[None]:
    """Say in plain words what a broken connection means; torch reports it as a RuntimeError."""
    try:
        yield
    except RuntimeError as error:
        # Without the place in torch's sources before it and the guesses after it.
        reason = re.sub(r"^\[\S+\] ", "", str(error)).partition("\n")[0].partition(". ")[0][:200]
        raise LostRankError(
            f"another rank of this run is gone or cannot be reached ({reason}); --resume continues from the last "
            "checkpoint"
        ) from error


def _send(answer: dict[str, JsonValue], source: int = 0) -> dict[str, JsonValue]:
    content = torch.frombuffer(bytearray(json.dumps(answer).encode()), dtype=torch.uint8)
    with _lost_ranks():
        dist.broadcast(torch.tensor([content.numel()]), src=source)
        dist.broadcast(content, src=source)
    return answer


def _receive(source: int = 0) -> dict[str, Any]:
    size = torch.zeros(1, dtype=torch.int64)
    with _lost_ranks():
        dist.broadcast(size, src=source)
        content = torch.empty(int(size), dtype=torch.uint8)
        dist.broadcast(content, src=source)
    answer: dict[str, Any] = json.loads(content.numpy().tobytes())
    return answer

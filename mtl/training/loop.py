"""The loop: the same for joint, single-task and fine-tuning runs, knowing nothing of stages, scores or files."""

from collections.abc import Callable, Iterable

import torch

from mtl.errors import NonFiniteError
from mtl.runtime.garbage import older_objects_left_alone
from mtl.training.prepared import PreparedUpdate
from mtl.training.update import Updater, UpdateResult

AfterUpdate = Callable[[UpdateResult], bool]
"""Called after every update; true ends the training early."""


def run_updates(updates: Iterable[PreparedUpdate], updater: Updater, after_update: AfterUpdate) -> None:
    """Run the updates in order until they end or the hook says so.

    Raises NonFiniteError, naming task and examples, for a loss or gradient that is not finite; no parameter has been
    changed by it. On a GPU the flag is read one update late, so as not to wait for the device: the updates in between
    are skipped on the device itself.
    """
    guard = _Guard()
    with older_objects_left_alone():
        for update in updates:
            result = updater.run(update)
            guard.watch(result)
            if after_update(result):
                break
    guard.finish()


class _Guard:
    """Raises for updates that were not finite, without making the host wait for the current one."""

    def __init__(self) -> None:
        self._pending: tuple[UpdateResult, torch.Tensor, torch.cuda.Event] | None = None

    def watch(self, result: UpdateResult) -> None:
        """Check at once on the CPU; on a GPU start a copy of the flag and check the one before."""
        if result.not_finite.device.type == "cpu":
            _raise_if_set(result, result.not_finite)
            return
        self.finish()
        flag = torch.empty((), dtype=torch.float32, pin_memory=True)
        flag.copy_(result.not_finite, non_blocking=True)
        event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        event.record()
        self._pending = (result, flag, event)

    def finish(self) -> None:
        """Check what is still pending."""
        if self._pending is not None:
            result, flag, event = self._pending
            event.synchronize()
            self._pending = None
            _raise_if_set(result, flag)


def check_finite(result: UpdateResult) -> None:
    """Raise NonFiniteError at once if the update was not finite: for whoever is about to save what it left."""
    _raise_if_set(result, result.not_finite)


def _raise_if_set(result: UpdateResult, flag: torch.Tensor) -> None:
    if float(flag) == 0.0:
        return
    step = result.update.step
    for batch, losses in zip(result.update.batches, result.example_losses, strict=True):
        for task, values in losses.items():
            bad = ~torch.isfinite(values).cpu()
            if bad.any():
                rows = batch.example_ids[batch.layout.slices[task]].cpu()[bad].tolist()
                raise NonFiniteError(
                    f"the loss of {task} is not finite at update {step}, in training rows {rows[:20]} (from 0); "
                    "the weights were left as they were. Lower the learning rate, or look at these rows"
                )
    if not bool(torch.isfinite(result.losses[torch.from_numpy(result.update.counts > 0)]).all()):
        error = NonFiniteError(f"a loss is not finite at update {step}, in rows of another rank, which names them")
        error.reported_elsewhere = True
        raise error
    tasks = ", ".join(sorted({task for losses in result.example_losses for task in losses}))
    raise NonFiniteError(
        f"the gradient is not finite at update {step} (tasks {tasks}) though the losses are; the weights were left as "
        "they were. Lower the learning rate, or set training.precision=fp32"
    )

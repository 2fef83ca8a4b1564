"""What the training loop asks of a loss weighting, and the base of those that only follow the step.

K tasks, in the order of the task indices of update plans. Weights multiply raw mean losses L_t over the whole update.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Literal, Protocol

import numpy as np
import numpy.typing as npt
from pydantic import JsonValue
from torch import Tensor, nn

from mtl.errors import DataError

BoolArray = npt.NDArray[np.bool_]

Needs = Literal["nothing", "losses", "gradients", "second_forward"]
"""What a weighting reads before it can answer, which is what it costs.

``nothing``: no cost. ``losses``: the mean losses of the whole update; where the update has several micro-batches, a
forward pass without gradients, with the same dropout, runs first. ``gradients``: the Gramian of the per-task gradients
of the shared encoder; the weights multiply those gradients, while each head gets its own plain gradient.
``second_forward``: the losses, and after the step the losses of the same batch once more, for ``after_step``.
"""


class Weighting(Protocol):
    """Turns an update's per-task losses (or gradients) into the weight of each task; may learn, may keep state."""

    @property
    def needs(self) -> Needs:
        """Which of the arguments below are given."""
        ...

    def weights(self, step: int, present: BoolArray, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        """Weight of each task (K,), float32; what stands at a task that is absent from the update is ignored.

        ``step`` counts from 0; ``present`` (K,) says which tasks the update holds; ``losses`` (K,) raw means, NaN where
        absent; ``gradients`` (K, K) inner products of the tasks' gradients, rows and columns of absent tasks NaN. Both
        are detached, and None where ``needs`` does not ask for them. The result is on their device, else on the CPU;
        it is differentiable with respect to ``parameters()`` alone.
        """
        ...

    def after_step(self, losses_again: Tensor | None) -> None:
        """Called once after the optimizer's step; ``losses_again`` (K,) as ``losses``, for ``second_forward`` only."""
        ...

    def parameters(self) -> list[nn.Parameter]:
        """What the optimizer trains along with the model; empty where nothing is learned."""
        ...

    def regulariser(self) -> Tensor | None:
        """A scalar that is added to the objective, so that learned weights do not vanish; None without parameters."""
        ...

    def state_dict(self) -> dict[str, JsonValue]:
        """Everything that the next update depends on, as plain data."""
        ...

    def load_state_dict(self, state: Mapping[str, JsonValue]) -> None:
        """Continue exactly where ``state_dict`` was taken."""
        ...


class StaticWeighting(ABC):
    """A weighting that is a pure function of the step: a subclass defines ``weights_at`` and is done."""

    needs: Needs = "nothing"

    @abstractmethod
    def weights_at(self, step: int) -> Tensor:
        """Weight of each task (K,) in update ``step``, counted from 0; float32 on the CPU."""

    def weights(self, step: int, present: BoolArray, losses: Tensor | None, gradients: Tensor | None) -> Tensor:
        """See ``Weighting``."""
        return self.weights_at(step)

    def after_step(self, losses_again: Tensor | None) -> None:
        """Does nothing: there is nothing to learn from a step."""
        return

    def parameters(self) -> list[nn.Parameter]:
        """None are learned."""
        return []

    def regulariser(self) -> Tensor | None:
        """Nothing is learned, so nothing has to be held back."""
        return None

    def state_dict(self) -> dict[str, JsonValue]:
        """Empty: the step says it all."""
        return {}

    def load_state_dict(self, state: Mapping[str, JsonValue]) -> None:
        """Accepts the empty state only; DataError for a state that another weighting saved."""
        if state:
            raise DataError(
                f"the checkpoint holds state of another weighting ({', '.join(sorted(state))}); "
                f"{type(self).__name__} keeps none: resume with the weighting that the run was started with"
            )

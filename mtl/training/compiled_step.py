"""The optimiser's step by compiled kernels, on a CPU, on the groups and state of its reference ``torch.optim.AdamW``.

Letters: V entries of a table.
"""

import ctypes
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from mtl.models.kept_gradient import KeptGradient
from mtl.models.kernels.optimizer_calls import SteppedParameter, adamw_step, square_sum
from mtl.models.working_weights import WorkingWeights


@dataclass
class _Reached:
    """Rows (V,) of a table whose moments may differ from zero, as long as ``mean`` is of so many steps."""

    mean: Tensor
    steps: float
    rows: Tensor


class CompiledStep:
    """Takes steps of an optimiser whose parameters are in fp32 and without gaps.

    Between them torch may take steps as well, or the state may be loaded anew.
    """

    def __init__(
        self,
        adamw: torch.optim.AdamW,
        kept: Mapping[nn.Parameter, KeptGradient],
        working: WorkingWeights | None,
    ) -> None:
        self._adamw, self._kept, self._working = adamw, kept, working
        self._reached: dict[nn.Parameter, _Reached] = {}

    @staticmethod
    def fits(parameters: Iterable[nn.Parameter]) -> bool:
        """Whether kernels can step all of them."""
        return all(
            each.dtype == torch.float32 and each.device.type == "cpu" and each.is_contiguous() for each in parameters
        )

    def step(self, library: ctypes.CDLL, excess: float) -> None:
        """What ``step`` of the optimiser does, gradients divided by ``excess``; they themselves stay as they are."""
        groups = self._adamw.param_groups
        stepped = [
            (parameter, self._stepped(parameter, group))
            for group in groups
            for parameter in group["params"]
            if parameter.grad is not None
        ]
        adamw_step(library, [step for _, step in stepped], groups[0]["betas"], groups[0]["eps"], excess)
        if self._working is not None:
            self._working.were_written([parameter for parameter, _ in stepped])

    def _stepped(self, parameter: nn.Parameter, group: Mapping[str, Any]) -> SteppedParameter:
        state = self._adamw.state[parameter]
        if not state:
            state["step"] = torch.zeros(())
            state["exp_avg"], state["exp_avg_sq"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
        return SteppedParameter(
            parameter.detach(),
            cast("Tensor", parameter.grad).contiguous(),
            state["exp_avg"],
            state["exp_avg_sq"],
            state["step"],
            group["lr"],
            group["weight_decay"],
            copy=None if self._working is None else self._working.copy_of(parameter),
            reached=self._rows_reached(parameter, state) if parameter in self._kept else None,
        )

    def _rows_reached(self, parameter: nn.Parameter, state: Mapping[str, Tensor]) -> Tensor:
        """All rows that have had a gradient, those of the gradient at hand among them."""
        mean, steps = state["exp_avg"], float(state["step"])
        known = self._reached.get(parameter)
        if known is None or known.mean is not mean or known.steps != steps:
            rows = (mean.any(1) | state["exp_avg_sq"].any(1)).to(torch.uint8)
            known = self._reached[parameter] = _Reached(mean, steps, rows)
        touched = self._kept[parameter].touched()
        known.rows[slice(None) if touched is None else touched] = 1
        known.steps = steps + 1.0
        return known.rows


def compiled_norm(library: ctypes.CDLL, gradients: Iterable[Tensor]) -> Tensor:
    """The global norm of gradients, one float."""
    return torch.tensor(math.sqrt(square_sum(library, [each.contiguous() for each in gradients])))

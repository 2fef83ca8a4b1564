"""Weights in bf16 beside their fp32 parameters, those of layers on the same inputs side by side.

Reference: rounding the parameters whenever they are applied. An optimiser that writes the rounded weights as it steps
saves reading all parameters once more.
"""

from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn


class _Place(NamedTuple):
    """A layer's rows within the weights that stand side by side."""

    joint: int
    start: int
    stop: int


class WorkingWeights:
    """The rounded weights of layers, by groups that stand side by side.

    They are what an optimiser wrote in its last step, as long as the parameters have not changed since, and are written
    from when they are first asked for. A change of a parameter's ``data``, which autograd does not count, goes unseen
    until the next step.
    """

    def __init__(self, groups: Sequence[Sequence[nn.Linear]]) -> None:
        self._joints: list[tuple[Tensor, Tensor]] = []
        self._places: dict[nn.Linear, _Place] = {}
        self._copies: dict[Tensor, tuple[Tensor, Tensor]] = {}
        self._written: dict[Tensor, tuple[int, int]] = {}
        self._asked_for = False
        for group in groups:
            rows = sum(layer.out_features for layer in group)
            weight = torch.empty(rows, group[0].in_features, dtype=torch.bfloat16)
            bias = torch.empty(rows, dtype=torch.bfloat16)
            start = 0
            for layer in group:
                stop = start + layer.out_features
                self._places[layer] = _Place(len(self._joints), start, stop)
                # With the whole that they are rows of: in a copied model the two do not count changes together.
                self._copies[layer.weight] = weight, weight[start:stop]
                self._copies[layer.bias] = bias, bias[start:stop]
                start = stop
            self._joints.append((weight, bias))

    @staticmethod
    def serve(inputs: Tensor) -> bool:
        """Whether these inputs meet weights that are kept here: in a training in bf16 on a CPU."""
        return inputs.dtype == torch.bfloat16 and inputs.device.type == "cpu" and torch.is_grad_enabled()

    def of(self, layers: Sequence[nn.Linear]) -> tuple[Tensor, Tensor] | None:
        """Weights (sum of E, D) and biases of layers that follow each other in a group; None if not written."""
        self._asked_for = True
        for layer in layers:
            for parameter in (layer.weight, layer.bias):
                if self._written.get(parameter) != _state(parameter):
                    return None
        first, last = self._places[layers[0]], self._places[layers[-1]]
        weight, bias = self._joints[first.joint]
        return weight[first.start : last.stop], bias[first.start : last.stop]

    def copy_of(self, parameter: Tensor) -> Tensor | None:
        """Where the optimiser writes the rounded parameter; None for one that nobody reads here."""
        return self._copies[parameter][1] if self._asked_for and parameter in self._copies else None

    def were_written(self, parameters: Sequence[Tensor]) -> None:
        """The optimiser has written the copies of these parameters, as far as there are any, and no others."""
        written = [parameter for parameter in parameters if self.copy_of(parameter) is not None]
        self._written = {parameter: _state(parameter) for parameter in written}
        torch.autograd.graph.increment_version([self._copies[parameter][0] for parameter in self._written])


def _state(parameter: Tensor) -> tuple[int, int]:
    return parameter._version, parameter.data_ptr()

"""AdamW over groups of parameters, each with its own learning rate and decay, stepped only on finite updates."""

import ctypes
import re
from collections.abc import Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn

from mtl.config.encoder import HeadSettings
from mtl.config.training import OptimizerSettings
from mtl.errors import DataError, MtlError
from mtl.models.kernels.compiled import compiled_kernels
from mtl.models.multitask import MultitaskModel
from mtl.training.compiled_step import CompiledStep, compiled_norm
from mtl.training.schedule import learning_rate_factor

# As torch.nn.utils.clip_grad_norm_ has it.
_CLIP_EPSILON = 1e-6
_LAYER = re.compile(r"\b(?:layer|layers|albert_layer_groups)\.(\d+)\.")


class Optimizer:
    """AdamW (Loshchilov and Hutter 2019) on the model's parameters and those of the weighting.

    Biases and norms (all one-dimensional parameters) do not decay. A parameter without a gradient, such as a head that
    is absent from the update, takes no step at all: no decay, no momentum.
    """

    def __init__(
        self,
        model: MultitaskModel,
        settings: OptimizerSettings,
        heads: Mapping[str, HeadSettings],
        total: int,
        extra: list[nn.Parameter],
    ) -> None:
        self._settings, self._total = settings, total
        self._names = {parameter: name for name, parameter in named_parameters(model).items()}
        self._names |= {parameter: f"weighting.{number}" for number, parameter in enumerate(extra)}
        groups: dict[tuple[float, float], list[nn.Parameter]] = {}
        for parameter, rate in _learning_rates(model, settings, heads).items():
            decay = settings.weight_decay if parameter.dim() > 1 else 0.0
            groups.setdefault((rate, decay), []).append(parameter)
        for parameter in extra:
            groups.setdefault((settings.learning_rate, 0.0), []).append(parameter)
        self._kept = {cast("nn.Parameter", kept.table): kept for kept in model.encoder.kept_gradients}
        self._adamw = torch.optim.AdamW(
            [
                {"params": parameters, "weight_decay": decay, "base_rate": rate}
                for (rate, decay), parameters in groups.items()
            ],
            lr=settings.learning_rate,
            betas=(settings.beta1, settings.beta2),
            eps=settings.epsilon,
            fused=True,
        )
        self._working = model.encoder.working_weights
        fits = CompiledStep.fits(self._names)
        self._compiled = CompiledStep(self._adamw, self._kept, self._working) if fits else None

    def zero(self) -> None:
        """Forget all gradients; a parameter that gets none until the step is left alone by it.

        Whoever held on to a gradient of an embedding may find it changed by the next backward pass.
        """
        for kept in self._kept.values():
            kept.take_back()
        for parameter in self._names:
            parameter.grad = None

    def norm(self) -> Tensor:
        """The global norm of the gradients, on the device; they are not clipped yet."""
        library = self._library()
        if library is not None:
            return compiled_norm(library, self._gradients())
        return torch.nn.utils.get_total_norm(list(self._gradients()))

    def step(self, step: int, skip: Tensor, norm: Tensor | None = None) -> None:
        """Take update ``step`` unless ``skip`` (one float on the device) is 1: the host does not wait for it.

        Gradients of this ``norm`` are scaled to the limit on it, if there is one and they exceed it.
        """
        for group in self._adamw.param_groups:
            group["lr"] = group["base_rate"] * learning_rate_factor(step, self._total, self._settings)
        excess, library = self._excess(norm), self._library()
        if library is not None and self._compiled is not None:
            if not bool(skip):
                self._compiled.step(library, 1.0 if excess is None else float(excess))
            return
        # The fused kernels read these two, as torch.amp.GradScaler sets them: they divide by the first as they go.
        self._adamw.grad_scale, self._adamw.found_inf = excess, skip  # type: ignore[attr-defined]
        if self._working is not None:
            self._working.were_written([])
        try:
            self._adamw.step()
        except torch.OutOfMemoryError as error:
            raise MtlError(
                "out of memory in the optimiser's step, for which smaller micro-batches do not help: AdamW keeps twice "
                "the size of all parameters; use a smaller encoder or more memory"
            ) from error

    def _gradients(self) -> Iterator[Tensor]:
        """What the norm follows from: all gradients, of embeddings the rows that may differ from zero."""
        for parameter in self._names:
            if parameter.grad is not None:
                touched = self._kept[parameter].touched() if parameter in self._kept else None
                yield parameter.grad if touched is None else parameter.grad.index_select(0, touched)

    def _library(self) -> ctypes.CDLL | None:
        return None if self._compiled is None else compiled_kernels()

    def _excess(self, norm: Tensor | None) -> Tensor | None:
        """How many times as large as the limit the norm is, 1 where it is not larger; None where nothing is limited."""
        if norm is None or self._settings.clip_norm is None:
            return None
        return ((norm.float() + _CLIP_EPSILON) / self._settings.clip_norm).clamp(min=1.0)

    def learning_rate(self, step: int) -> float:
        """The encoder's (undecayed) learning rate at update ``step``."""
        return self._settings.learning_rate * learning_rate_factor(step, self._total, self._settings)

    def state_tensors(self) -> dict[str, Tensor]:
        """Adam's moments and step counts by parameter name, for those that have taken a step."""
        return {
            f"{self._names[cast('nn.Parameter', parameter)]}/{key}": value
            for parameter, state in self._adamw.state.items()
            for key, value in state.items()
        }

    def load_state_tensors(self, tensors: Mapping[str, Tensor]) -> None:
        """Put back what :meth:`state_tensors` gave; DataError where it belongs to other parameters."""
        parameters = {name: parameter for parameter, name in self._names.items()}
        for name, value in tensors.items():
            owner, _, key = name.rpartition("/")
            if owner not in parameters or (key != "step" and value.shape != parameters[owner].shape):
                raise DataError(f"the saved optimiser state {name} fits no parameter of this model")
            state: dict[str, Any] = self._adamw.state[parameters[owner]]
            # A copy, since Adam changes its state in place and the tensors belong to the caller.
            state[key] = value.to(parameters[owner].device, copy=True)


def named_parameters(model: MultitaskModel) -> dict[str, nn.Parameter]:
    """All parameters under the names that checkpoints use: ``encoder/...`` and ``<suite/task>/...``."""
    named = {f"encoder/{name}": parameter for name, parameter in model.encoder.model.named_parameters()}
    for task in model.tasks:
        named |= {f"{task}/{name}": parameter for name, parameter in model.head_module(task).named_parameters()}
    return named


def _learning_rates(
    model: MultitaskModel, settings: OptimizerSettings, heads: Mapping[str, HeadSettings]
) -> dict[nn.Parameter, float]:
    config = model.encoder.model.config
    layers = int(config.num_hidden_layers)
    groups = int(getattr(config, "num_hidden_groups", layers))
    rates = {}
    for name, parameter in model.encoder.model.named_parameters():
        distance = layers - _depth(name, layers, groups)
        rates[parameter] = settings.learning_rate * (settings.layer_decay or 1.0) ** distance
    for task in model.tasks:
        for parameter in model.head_module(task).parameters():
            rates[parameter] = heads[task].learning_rate or settings.learning_rate
    return rates


def _depth(name: str, layers: int, groups: int) -> int:
    """0 for the embeddings, 1 for the first layer, ``layers`` for the last one and for what follows it.

    ALBERT passes each of its ``groups`` of weights in several layers on end; a group counts as the last of them.
    """
    match = _LAYER.search(f".{name}")
    if match:
        return (int(match.group(1)) + 1) * layers // groups
    return 0 if "embedding" in name else layers

"""A head from outside: registered, chosen by its kind, built for a task."""

from typing import Literal

import pytest
import torch
from torch import Tensor, nn

import mtl
from mtl.config.encoder import HEADS, HeadSettings
from mtl.config.run import rebuild_models
from mtl.data.batches import PackedBatch
from mtl.errors import ConfigError
from mtl.models.dropout import DropoutKey
from mtl.models.head_registry import HEAD_FACTORIES, make_head
from mtl.models.heads import SequenceHead
from mtl.tasks.spec import TaskSpec


class ConstantHeadSettings(HeadSettings):
    kind: Literal["constant_toy"] = "constant_toy"
    value: float = 1.0


class ConstantHead(nn.Module):
    """Says the same of every example."""

    def __init__(self, spec: TaskSpec, width: int, settings: ConstantHeadSettings) -> None:
        super().__init__()
        self.task, self.outputs, self.value = spec.name, spec.outputs, settings.value

    def initialise(self, seed: int, pooler: dict[str, Tensor] | None) -> None:
        return None

    def forward(self, hidden_TD: Tensor, batch: PackedBatch, key: DropoutKey | None) -> Tensor:
        chosen = batch.layout.slices[self.task]
        return torch.full((chosen.stop - chosen.start, self.outputs), self.value)


def test_a_registered_head_is_chosen_by_its_kind_and_the_old_settings_are_dropped() -> None:
    mtl.register_head("constant_toy", ConstantHeadSettings, ConstantHead)
    try:
        config = mtl.load_config("quickstart", ["head.kind=constant_toy", "head.value=3"])
        assert config.head == ConstantHeadSettings(value=3.0)
        assert mtl.load_config("quickstart", ["head=constant_toy"]).head == ConstantHeadSettings()
        head = make_head(mtl.tasks.get("mini/entail3"), 8, config.head)
        assert isinstance(head, ConstantHead)
        assert (head.outputs, head.value) == (3, 3.0)
        with pytest.raises(ConfigError, match="constant_toy"):
            mtl.register_head("constant_toy", ConstantHeadSettings, ConstantHead)
    finally:
        HEADS.pop("constant_toy")
        HEAD_FACTORIES.pop("constant_toy")
        rebuild_models()


def test_the_default_is_a_sequence_head_and_an_unknown_kind_names_the_known() -> None:
    config = mtl.load_config("quickstart")
    assert isinstance(make_head(mtl.tasks.get("mini/entail3"), 8, config.head), SequenceHead)
    with pytest.raises(ConfigError, match="sequence"):
        mtl.load_config("quickstart", ["head.kind=nothing_like_it"])

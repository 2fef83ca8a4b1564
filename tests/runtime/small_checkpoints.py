"""Small checkpoints, and what is looked at in them."""

from collections.abc import Callable
from pathlib import Path

import torch
from pydantic import JsonValue

from mtl.runtime import checkpoint_files as checkpoints

STATE: dict[str, JsonValue] = {"step": 7, "losses": [0.5, None], "nested": {"b": "é", "a": True}}


def save_small(directory: Path, value: float = 1.0, files: Callable[[Path], None] | None = None) -> None:
    """Save two sets of tensors, one of them with ``value`` all over, and a document."""
    tensors = {
        "model": {"encoder.weight": torch.full((2, 3), value), "ids": torch.arange(3)},
        "optimizer": {"moment": torch.tensor([0.25], dtype=torch.bfloat16)},
    }
    checkpoints.save_checkpoint(directory, tensors=tensors, documents={"state": STATE}, files=files)


def weight_in(directory: Path) -> float:
    """The ``value`` that a whole checkpoint was saved with."""
    checkpoints.verify_checkpoint(directory)
    return checkpoints.load_tensors(directory, "model")["encoder.weight"][0, 0].item()


def names_in(parent: Path) -> list[str]:
    """What lies in the folder, in order."""
    return sorted(path.name for path in parent.iterdir())

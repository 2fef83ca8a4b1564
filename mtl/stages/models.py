"""The model of a stage: built fresh from the encoder a run starts from, or read back from a checkpoint by names."""

import copy
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from pydantic import JsonValue
from torch import Tensor, nn

from mtl.config.encoder import HeadSettings
from mtl.data.tokenizer import TextTokenizer
from mtl.errors import DataError
from mtl.models.head_registry import make_head
from mtl.models.heads import Head
from mtl.models.load import LoadedEncoder, load_exactly
from mtl.models.multitask import MultitaskModel
from mtl.runtime.checkpoint_files import load_document, load_tensors
from mtl.tasks.spec import TaskSpec

logger = logging.getLogger("mtl")


def build_model(
    loaded: LoadedEncoder, specs: Sequence[TaskSpec], heads: Mapping[str, HeadSettings], seed: int
) -> MultitaskModel:
    """A new model on a copy of the encoder, each head from its own random stream."""
    modules: dict[str, nn.Module] = {}
    for spec in specs:
        modules[spec.name] = make_head(spec, loaded.encoder.width, heads[spec.name])
        cast("Head", modules[spec.name]).initialise(seed, loaded.pooler)
    return MultitaskModel(copy.deepcopy(loaded.encoder), modules)


def model_tensors(model: MultitaskModel) -> dict[str, dict[str, Tensor]]:
    """The weights as two groups: ``model``, the encoder under Hugging Face's names, and ``heads`` by task name."""
    heads: dict[str, Tensor] = {}
    for task in model.tasks:
        heads |= {f"{task}/{name}": tensor for name, tensor in model.head_module(task).state_dict().items()}
    return {"model": dict(model.encoder.model.state_dict()), "heads": heads}


def heads_document(specs: Sequence[TaskSpec], heads: Mapping[str, HeadSettings]) -> dict[str, JsonValue]:
    """What every saved head is: its task's kind and label names in output order, and its settings."""
    return {
        spec.name: {"kind": spec.kind, "labels": list(spec.labels), "settings": heads[spec.name].model_dump()}
        for spec in specs
    }


def write_model_files(directory: Path, model: MultitaskModel, tokenizer: TextTokenizer) -> None:
    """The encoder's config and the tokenizer, so that ``AutoModel`` opens the directory."""
    config = copy.deepcopy(model.encoder.model.config)
    config.architectures = [type(model.encoder.model).__name__]
    config.save_pretrained(directory)
    tokenizer.hugging_face.save_pretrained(directory)


def load_weights(model: MultitaskModel, directory: Path, *, heads: bool = True) -> None:
    """Put a checkpoint's weights into the model, every tensor by name and shape; with ``heads`` false the encoder only.

    Raises DataError naming what is missing, left over or of another shape, or a head whose labels differ.
    """
    load_exactly(model.encoder.model, load_tensors(directory, "model"), f"{directory} (encoder)")
    if not heads:
        return
    saved = load_tensors(directory, "heads")
    for task in model.tasks:
        load_exactly(model.head_module(task), _of_task(saved, task), f"{directory} (head of {task})")


def keep_heads(model: MultitaskModel, specs: Sequence[TaskSpec], directory: Path) -> None:
    """Take over the heads of a checkpoint for those tasks that it has with the same labels; the others stay new."""
    document: Any = load_document(directory, "heads")
    tensors = load_tensors(directory, "heads")
    for spec in specs:
        saved = document.get(spec.name)
        if saved is None or saved["kind"] != spec.kind or tuple(saved["labels"]) != spec.labels:
            logger.info("%s: a new head, %s has none for its labels", spec.name, directory)
            continue
        load_exactly(model.head_module(spec.name), _of_task(tensors, spec.name), f"{directory} (head of {spec.name})")


def check_heads(directory: Path, specs: Sequence[TaskSpec]) -> None:
    """Raise DataError unless the checkpoint has each task's head, of the same kind, with the same labels in order."""
    document: Any = load_document(directory, "heads")
    for spec in specs:
        saved = document.get(spec.name)
        if saved is None:
            raise DataError(f"{directory} has no head for {spec.name}; it has {sorted(document)}")
        if saved["kind"] != spec.kind or tuple(saved["labels"]) != spec.labels:
            raise DataError(f"the head of {spec.name} in {directory} was trained for labels {saved['labels']}")


def _of_task(heads: Mapping[str, Tensor], task: str) -> dict[str, Tensor]:
    """The tensors of one task's head under the head's own names."""
    return {name.removeprefix(f"{task}/"): tensor for name, tensor in heads.items() if name.startswith(f"{task}/")}

"""One encoder and one head as a plain Hugging Face classifier with the same outputs.

Hugging Face's classifiers differ in what stands between the encoder and the logits. Where that is a dense layer on the
first token and tanh, as in our head, the weights are put in their places and the logits are equal; all other
architectures are refused, since another activation would give another model.
"""

import copy
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from mtl.errors import ConfigError
from mtl.models.heads import SequenceHead
from mtl.models.load import load_exactly
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class _Places:
    """Where a classifier keeps the dense layer and the output layer, and what its config calls the head's dropout."""

    dense: str
    output: str
    dropout: str = "classifier_dropout"


_POOLER = _Places("pooler.dense", "classifier")
_ROBERTA = _Places("classifier.dense", "classifier.out_proj")
PLACES: Mapping[str, _Places] = {
    "albert": _Places("pooler", "classifier", "classifier_dropout_prob"),
    "bert": _POOLER,
    "camembert": _ROBERTA,
    "ernie": _POOLER,
    "roberta": _ROBERTA,
    "xlm-roberta": _ROBERTA,
}
"""By ``model_type``. Not here: ELECTRA and DeBERTa (gelu), DistilBERT (relu), ModernBERT (gelu and a norm)."""


def classifier(encoder: Any, head: nn.Module, spec: TaskSpec) -> Any:
    """A new ``AutoModelForSequenceClassification`` in evaluation mode with the weights of a Hugging Face ``encoder``.

    Its config has the task's labels as ``id2label`` and the head's dropout. ConfigError, naming what can be exported,
    for an architecture or a head that such a class cannot express exactly.
    """
    from transformers import AutoModelForSequenceClassification

    places = PLACES.get(encoder.config.model_type)
    if places is None:
        raise ConfigError(
            f"{type(encoder).__name__} cannot be exported exactly: its Hugging Face classifier has another head than "
            f"a dense layer with tanh. These can: {', '.join(PLACES)}; or read the checkpoint with `mtl predict`"
        )
    if not isinstance(head, SequenceHead) or head.dense is None:
        raise ConfigError(
            f"the head of {spec.name} cannot be exported: Hugging Face's classifiers know head.kind=sequence with "
            "head.pooling=first_dense only"
        )
    config = classifier_config(encoder.config, spec, {places.dropout: head.rate})
    # Every weight is replaced below; torch's global generator is left as it was.
    with torch.random.fork_rng(devices=[]):
        model = AutoModelForSequenceClassification.from_config(config, dtype=torch.float32)  # type: ignore[no-untyped-call]
    prefix = model.base_model_prefix
    state: dict[str, Tensor] = {f"{prefix}.{name}": tensor for name, tensor in encoder.state_dict().items()}
    dense = places.dense if places.dense.startswith("classifier") else f"{prefix}.{places.dense}"
    for place, layer in ((dense, head.dense), (places.output, head.output)):
        state |= {f"{place}.{name}": tensor for name, tensor in layer.state_dict().items()}
    load_exactly(model, state, f"the export of {spec.name}")
    return model.eval()


def classifier_config(config: Any, spec: TaskSpec, dropout: Mapping[str, float]) -> Any:
    """A copy of an encoder's config with the task's labels, in the order of the head's outputs, and its dropout."""
    config = copy.deepcopy(config)
    names = list(spec.labels) or ["score"]
    config.id2label = dict(enumerate(names))
    config.label2id = {name: number for number, name in enumerate(names)}
    config.problem_type = "regression" if spec.kind == "regression" else "single_label_classification"
    config.update(dict(dropout))
    # The name of our own attention function means nothing to others.
    config._attn_implementation = "sdpa"
    return config

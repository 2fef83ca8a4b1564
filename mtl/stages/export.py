"""One task of a run as a directory that plain transformers opens, checked before it is there."""

import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from mtl import tasks as task_registry
from mtl.config.run import Stage
from mtl.data.store import TokenStore
from mtl.data.tokenizer import TextTokenizer, tokenizer_from_path
from mtl.errors import ConfigError, DataError
from mtl.evaluation.evaluate import Evaluator
from mtl.models.hugging_face import classifier
from mtl.models.load import quiet_transformers
from mtl.random_streams import generator
from mtl.stages.model_card import model_card
from mtl.stages.open_run import OpenedModel, OpenedRun, open_run

_TOLERANCE = 1e-4
"""In units of the largest logit. The outputs of deep models drift by 1e-5 with the shape of a batch; a wrong weight, a
wrong place for it or another tokenisation shows from 1e-2 on."""
_TEXTS = 6


def export_task(path: Path, target: Path, *, task: str, stage: Stage = "joint") -> Path:
    """Write ``task`` of a run to the new directory ``target``: weights, config, tokenizer and a model card.

    ``AutoModelForSequenceClassification`` opens it and gives the logits of the run's model; before the directory
    appears it is opened so and compared, and DataError raised, nothing left, where they differ. ConfigError for a
    target with content, a task without a head of its own, and an architecture that cannot be exported exactly.
    """
    spec = task_registry.get(task)
    if spec.evaluate_only:
        raise ConfigError(f"{task} has no head of its own; export {spec.scored_by}, whose head reads it")
    if target.exists() and (not target.is_dir() or any(target.iterdir())):
        raise ConfigError(f"{target} is there already, with content: name a new directory, or empty this one")
    with open_run(path) as opened:
        opened.choose([task])
        model = opened.open_model(stage, task)
        # Differences between devices would hide in the tolerance what has to be seen.
        model.model.to("cpu")
        exported = classifier(model.model.encoder.model, model.model.head_module(task), spec)
        temporary = target.absolute().with_name(f".{target.absolute().name}.exporting")
        shutil.rmtree(temporary, ignore_errors=True)
        temporary.mkdir(parents=True)
        try:
            _write(temporary, exported, opened, stage, model)
            _compare(temporary, model, opened.config.data.max_length)
            if target.exists():
                target.rmdir()
            temporary.rename(target)
        except BaseException:
            shutil.rmtree(temporary, ignore_errors=True)
            raise
    return target


def _write(directory: Path, exported: Any, opened: OpenedRun, stage: Stage, model: OpenedModel) -> None:
    with quiet_transformers():
        exported.save_pretrained(directory)
    tokenizer = tokenizer_from_path(model.directory).hugging_face
    # Whoever asks for truncation gets the length that was trained with.
    tokenizer.model_max_length = opened.config.data.max_length
    tokenizer.save_pretrained(directory)
    card = model_card(opened.run, opened.config, opened.trained, stage=stage, spec=model.spec)
    card.save(directory / "README.md")
    # Weights are written readable by their owner alone; whoever may read the card may read them.
    (directory / "model.safetensors").chmod((directory / "README.md").stat().st_mode)


def _compare(directory: Path, model: OpenedModel, max_length: int) -> None:
    """DataError unless the directory, opened without this package, gives the model's own logits."""
    tokenizer = tokenizer_from_path(model.directory)
    columns = check_texts(tokenizer, texts=len(model.spec.text_columns), max_length=max_length)
    expected = _our_logits(model, tokenizer, columns, max_length)
    found = _plain_logits(directory, columns)
    difference = float(np.abs(expected - found).max())
    if not difference <= _TOLERANCE * max(1.0, float(np.abs(expected).max())):
        raise DataError(
            f"nothing was exported: opened with plain transformers, the model of {model.spec.name} gives logits that "
            f"differ by {difference:.2g} from its own; this architecture or tokenizer is not exported rightly"
        )


def check_texts(tokenizer: TextTokenizer, *, texts: int, max_length: int) -> list[list[str]]:
    """Columns of texts made of the tokenizer's own words, from one word to more than fit, the same at every call."""
    vocabulary = sorted(tokenizer.hugging_face.get_vocab().items(), key=lambda item: item[1])
    words = [word for word, _ in vocabulary if word.isalpha()] or [word for word, _ in vocabulary]
    draws = generator(0, "export check")
    lengths = np.linspace(1, max_length + 8, _TEXTS).astype(int)
    return [
        [" ".join(words[place] for place in draws.integers(0, len(words), length)) for length in lengths]
        for _ in range(texts)
    ]


def _our_logits(
    model: OpenedModel, tokenizer: TextTokenizer, columns: Sequence[Sequence[str]], max_length: int
) -> npt.NDArray[np.float32]:
    store = _unlabelled_store(tokenizer, columns, max_length)
    evaluator = Evaluator(model.evaluator.tokens_per_batch, "fp32", torch.device("cpu"), check=model.evaluator.check)
    return evaluator.predict(model.model, model.spec, store).outputs


def _plain_logits(directory: Path, columns: Sequence[Sequence[str]]) -> npt.NDArray[np.float32]:
    from transformers import AutoModelForSequenceClassification, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(directory)
    with quiet_transformers():
        model = AutoModelForSequenceClassification.from_pretrained(directory, use_safetensors=True).eval()
    inputs = tokenizer(*map(list, columns), padding=True, truncation=True, return_tensors="pt")
    with torch.inference_mode():
        logits: npt.NDArray[np.float32] = model(**inputs).logits.float().numpy()
    return logits


def _unlabelled_store(tokenizer: TextTokenizer, columns: Sequence[Sequence[str]], max_length: int) -> TokenStore:
    """A store in memory, of rows that come from nowhere."""
    encodings = tokenizer.encode(columns[0], columns[1] if len(columns) > 1 else None, max_length)
    lengths = [len(encoding.ids) for encoding in encodings]
    return TokenStore(
        tokens=np.concatenate([np.array(encoding.ids, dtype=np.uint32) for encoding in encodings]),
        types=np.concatenate([np.array(encoding.type_ids, dtype=np.uint8) for encoding in encodings]),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64),
        example_offsets=np.arange(len(lengths) + 1, dtype=np.int64),
        labels=np.zeros(0, dtype=np.int64),
        text_keys=np.zeros((len(lengths), len(columns)), dtype=np.uint64),
        fingerprint="",
        data_fingerprint="",
        truncated=0,
        empty=0,
    )

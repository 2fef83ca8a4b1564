"""Fetching and tokenising ahead of a run, so that the run itself needs no network."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from mtl import tasks as task_registry
from mtl.config.locations import cache_directory
from mtl.config.run import RunConfig
from mtl.data.store import ARRAYS, TokenStore
from mtl.data.tokenizer import load_tokenizer
from mtl.models.load import load_encoder
from mtl.stages.checks import check_config
from mtl.stages.datasets import load_evaluated_data, load_task_data
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class PreparedSplit:
    """A tokenised split: its rows, those of the official release (None: not published), tokens, and bytes on disk."""

    task: str
    split: str
    rows: int
    rows_official: int | None
    tokens: int
    bytes: int


@dataclass(frozen=True)
class Prepared:
    """What a run of the config will find. ``encoder_bytes`` is the size of the encoder's weights in fp32."""

    encoder: str
    vocabulary: int
    encoder_bytes: int
    cache: Path
    splits: tuple[PreparedSplit, ...]


def prepare(config: RunConfig) -> Prepared:
    """Load tokenizer and encoder and tokenise every split as a run would, which leaves all of it in the caches.

    Going the run's own way is what makes sure that nothing is forgotten. Nothing is written to ``config.out``. Raises
    what the start of a run raises: ConfigError for a wrong config, DataError where data or encoder cannot be had.
    """
    names = task_registry.expand(config.tasks)
    check_config(config, names)
    tokenizer = load_tokenizer(config.encoder)
    trained, evaluated = ([task_registry.get(name) for name in part] for part in task_registry.split_roles(names))
    data = load_task_data(config, trained, tokenizer, lambda: None)
    others = load_evaluated_data(config, evaluated, tokenizer, lambda: None)
    loaded = load_encoder(config.encoder, config.seed, tokenizer.vocabulary_size)
    weights = loaded.encoder.model.state_dict().values()
    return Prepared(
        encoder=getattr(config.encoder, "path", config.encoder.kind),
        vocabulary=tokenizer.vocabulary_size,
        encoder_bytes=sum(tensor.numel() * tensor.element_size() for tensor in weights),
        cache=cache_directory(config),
        splits=(
            *(split for task in data.values() for split in _splits(task.spec, {"train": task.train, **task.dev})),
            *(split for task in others.values() for split in _splits(task.spec, task.dev)),
        ),
    )


def _splits(spec: TaskSpec, stores: Mapping[str, TokenStore]) -> Iterator[PreparedSplit]:
    for name, store in stores.items():
        official = spec.splits[name].official_rows
        yield PreparedSplit(spec.name, name, store.rows, official, int(store.tokens.size), _bytes(store))


def _bytes(store: TokenStore) -> int:
    return sum(int(getattr(store, name).nbytes) for name in ARRAYS)

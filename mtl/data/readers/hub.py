"""Data sets in the form the Hugging Face hub has them: a folder of Parquet files here, else through ``datasets``.

A data set ``owner/name`` is first looked for as the folder ``owner/name`` under the data root; a path that begins with
``.``, ``/`` or ``~`` is a folder itself. Only the readers that ``datasets`` carries are used, never code of a data set.
"""

import glob
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtl.data.readers import parquet
from mtl.data.readers.table import Table
from mtl.errors import DataError
from mtl.tasks.spec import TaskSpec

if TYPE_CHECKING:
    import pyarrow


class AbsentError(DataError):
    """The data set is neither here nor can it be fetched; the message is the cause alone."""


def read(spec: TaskSpec, split: str, data_root: Path | None) -> tuple[Table, str]:
    """The texts and labels of a split under the task's own column names, and where they were found.

    Numbers of classes become names: those the task gives them, else those the data set does, else in the order of the
    task's labels. Raises AbsentError where there is no such data set, DataError for rows that cannot be used.
    """
    part = spec.splits[split]
    texts = [spec.hub_columns.get(name, name) for name in spec.texts_of(split)]
    label = spec.hub_columns.get(spec.label_column, spec.label_column) if part.labelled else None
    source, found = _table(spec, split, data_root)

    def meant(value: Any, names: Sequence[str]) -> Any:
        return _class_name(spec, value, names)

    table = parquet.texts_of(found, source, texts=texts, label=label, label_text=meant)
    columns = {own: table.columns[there] for own, there in zip(spec.texts_of(split), texts, strict=True)}
    if label is not None:
        columns[spec.label_column] = table.columns[label]
    return Table(columns, table.line_numbers, unit="row"), source


def count_rows(spec: TaskSpec, split: str, data_root: Path | None, *, fetch: bool) -> int | None:
    """The length of a split; None where it is not here, and with ``fetch`` cannot be had from the hub either."""
    shards = _shards(spec, split, data_root)
    if shards:
        return sum(parquet.count_rows(shard) for shard in shards)
    if not fetch:
        return None
    try:
        return _table(spec, split, data_root)[1].num_rows  # type: ignore[no-any-return]
    except AbsentError:
        return None


def _class_name(spec: TaskSpec, value: Any, names: Sequence[str]) -> Any:
    if not isinstance(value, int) or isinstance(value, bool) or spec.kind == "regression":
        return value
    if str(value) in spec.label_values:
        return value
    known = names or ([] if spec.label_values else spec.labels)
    return known[value] if 0 <= value < len(known) else value


def _table(spec: TaskSpec, split: str, data_root: Path | None) -> tuple[str, "pyarrow.Table"]:
    """Where the split was found, for messages, and its content."""
    shards = _shards(spec, split, data_root)
    if shards:
        return (str(shards[0]) if len(shards) == 1 else f"{shards[0].parent}, {split}"), parquet.read_files(shards)
    return _load(spec, split, data_root)


def _folder(spec: TaskSpec, data_root: Path | None) -> Path | None:
    """The folder that holds the data set, or may hold a copy of it; None where it can only be on the hub."""
    path = spec.hub[0] if spec.hub else ""
    if _is_folder(path):
        return Path(spec.files_root or "") / Path(path).expanduser()
    return None if data_root is None else data_root / path


def _is_folder(path: str) -> bool:
    return path.startswith((".", "/", "~"))


def _shards(spec: TaskSpec, split: str, data_root: Path | None) -> list[Path]:
    """The split's Parquet files in a folder laid out as on the hub: ``rte/train-00000-of-00001.parquet``."""
    folder, part = _folder(spec, data_root), spec.splits[split]
    if folder is None or spec.hub is None or part.hub is None:
        return []
    for place in (folder / spec.hub[1],) if spec.hub[1] else (folder, folder / "data"):
        found = [
            *place.glob(f"{glob.escape(part.hub)}-*-of-*.parquet"),
            *place.glob(f"{glob.escape(part.hub)}.parquet"),
        ]
        if found:
            return sorted(found)
    return []


def _load(spec: TaskSpec, split: str, data_root: Path | None) -> tuple[str, "pyarrow.Table"]:
    import datasets

    path, config = spec.hub or ("", None)
    # A copy in the data root may lack a split or a configuration, which the hub has.
    name = str(_folder(spec, data_root)) if _is_folder(path) else path
    wanted = spec.splits[split].hub
    source = ", ".join(part for part in (name, config, wanted) if part)
    try:
        found = datasets.load_dataset(name, config, split=wanted)
    # A ValueError is an unknown configuration or split; a RuntimeError a data set that is code, which is never run.
    except (OSError, ValueError, RuntimeError, datasets.exceptions.DatasetsError) as error:
        raise AbsentError(f"{source}: {str(error).splitlines()[0] if str(error) else type(error).__name__}") from error
    return source, found.with_format("arrow")[:]

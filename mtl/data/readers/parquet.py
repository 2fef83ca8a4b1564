"""Parquet files, and the class names that Hugging Face's ``datasets`` writes into them."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from mtl.data.readers.table import Table, column_positions, label_cell, text_cell
from mtl.errors import DataError

if TYPE_CHECKING:
    import pyarrow

LabelText = Callable[[Any, Sequence[str]], Any]
"""Turns a label's value, and the class names that the file declares for it (none: empty), into what it means."""


def _as_it_is(value: Any, names: Sequence[str]) -> Any:
    return value


def parse(content: bytes, path: object, *, texts: Sequence[str], label: str | None) -> Table:
    """The columns ``texts`` and ``label`` of a file's ``content``; ``path`` is for messages only.

    DataError, with file and row (counted from 1), for a file that is not Parquet, an absent column, and a missing text.
    """
    import pyarrow as pa

    return texts_of(_read(pa.BufferReader(content), path), path, texts=texts, label=label)


def texts_of(
    table: "pyarrow.Table",
    source: object,
    *,
    texts: Sequence[str],
    label: str | None,
    label_text: LabelText = _as_it_is,
) -> Table:
    """The columns ``texts`` and ``label`` of a table as text; errors as in ``parse``, under the name ``source``."""
    column_positions(table.column_names, [*texts, *(() if label is None else (label,))], source)
    columns = {name: _texts(table, name, source) for name in texts}
    if label is not None:
        names, values = _class_names(table.schema, label), table.column(label).to_pylist()
        columns[label] = [
            label_cell(label_text(value, names), label, f"{source}, row {row}") for row, value in enumerate(values, 1)
        ]
    return Table(columns, list(range(1, table.num_rows + 1)), unit="row")


def read_files(paths: Sequence[Path]) -> "pyarrow.Table":
    """Several files of the same columns, one after the other."""
    import pyarrow as pa

    try:
        return pa.concat_tables([_read(path, path) for path in paths])
    except pa.ArrowException as error:
        raise _unreadable(", ".join(map(str, paths)), error) from error


def count_rows(source: Path | bytes, path: object = None) -> int:
    """How many rows a file, or the content of ``path``, has, from its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return int(pq.ParquetFile(pa.BufferReader(source) if isinstance(source, bytes) else source).metadata.num_rows)
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path or source, error) from error


def _read(file: Any, path: object) -> "pyarrow.Table":
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        return pq.ParquetFile(file).read()
    except (pa.ArrowException, OSError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: object, error: Exception) -> DataError:
    return DataError(f"{path}: cannot be read as Parquet ({str(error).splitlines()[0]}); save it once more")


def _texts(table: "pyarrow.Table", name: str, path: object) -> list[str]:
    values = table.column(name).to_pylist()
    return [text_cell(value, name, f"{path}, row {row}") for row, value in enumerate(values, 1)]


def _class_names(schema: "pyarrow.Schema", column: str) -> tuple[str, ...]:
    """The names of the classes whose numbers stand in the column, as ``datasets`` notes them; none without a note."""
    noted = (schema.metadata or {}).get(b"huggingface")
    if noted is None:
        return ()
    feature = json.loads(noted).get("info", {}).get("features", {}).get(column, {})
    return tuple(feature.get("names", ())) if isinstance(feature, dict) else ()

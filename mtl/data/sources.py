"""The rows of a task's split, checked on the way in: texts as they stand, labels as class indices or scores."""

import hashlib
import json
from dataclasses import dataclass
from pathlib import Path

from mtl.data import tsv
from mtl.data.files import file_content, file_path, missing_message, split_part
from mtl.data.labels import Labels, Where, read_labels
from mtl.data.readers import csv_file, hub, jsonl, parquet
from mtl.data.readers.table import Table, content_fingerprint
from mtl.errors import DataError
from mtl.tasks.spec import TaskSpec


@dataclass(frozen=True)
class Rows:
    """All rows of one split, in file order.

    ``texts`` has one list per text column. ``labels`` is int64 class indices in the order of the task's labels,
    float32 scores for regression, or None where the split has none. ``fingerprint`` is the sha256 of the file's
    bytes, or of the content where it was generated or came from the hub. ``dropped_lines`` counts malformed lines of
    an official file (see mtl.data.tsv).
    """

    texts: tuple[list[str], ...]
    labels: Labels | None
    fingerprint: str
    dropped_lines: int = 0

    def __len__(self) -> int:
        return len(self.texts[0])


def read_rows(spec: TaskSpec, split: str, data_root: Path | None) -> Rows:
    """Every row of ``split``, from its file, or where that is absent from the hub; empty texts are kept.

    Raises ConfigError for a split the task does not have, and DataError, with file and line, for rows that are
    missing, malformed, or hold a label outside the task's set, or a score outside its range.
    """
    part = split_part(spec, split)
    if spec.reader == "generated":
        return _generated_rows(spec, split)
    path = file_path(spec, part, data_root)
    content = file_content(path)
    if path is None or content is None:
        table, source = _from_hub(spec, split, data_root)
        fingerprint = content_fingerprint(table.columns)
    else:
        table, source = _parse(spec, split, path, content), str(path)
        fingerprint = hashlib.sha256(content).hexdigest()

    def where(row: int) -> str:
        return f"{source}, {table.unit} {table.line_numbers[row]}"

    return _rows(spec, split, table, where, fingerprint)


def count_rows(spec: TaskSpec, split: str, data_root: Path | None) -> int | None:
    """The length of ``read_rows`` without decoding a row; None where the rows are absent.

    The hub is asked only for a task that has no files; otherwise a copy in the data root counts, and nothing is
    fetched.
    """
    part = split_part(spec, split)
    if spec.reader == "generated":
        return part.official_rows
    path = file_path(spec, part, data_root)
    content = file_content(path)
    if path is None or content is None:
        return hub.count_rows(spec, split, data_root, fetch=spec.reader == "hub")
    if spec.reader == "csv":
        return csv_file.count_rows(content, path)
    if spec.reader == "jsonl":
        return jsonl.count_rows(content)
    if spec.reader == "parquet":
        return parquet.count_rows(content, path)
    return tsv.count_rows(content, header=part.columns, official_rows=part.official_rows)


def source_fingerprint(spec: TaskSpec, split: str, data_root: Path | None) -> str:
    """The fingerprint of ``read_rows`` without a check of the rows; the same errors for missing data."""
    part = split_part(spec, split)
    if spec.reader == "generated":
        return _generated_fingerprint(spec, split, _generated_columns(spec, split))
    content = file_content(file_path(spec, part, data_root))
    if content is None:
        return content_fingerprint(_from_hub(spec, split, data_root)[0].columns)
    return hashlib.sha256(content).hexdigest()


def _from_hub(spec: TaskSpec, split: str, data_root: Path | None) -> tuple[Table, str]:
    """The split from the hub or a copy of it; DataError that says both ways to get it where it cannot be had."""
    missing = missing_message(spec, split, data_root)
    if spec.hub is None or spec.splits[split].hub is None:
        raise DataError(missing)
    try:
        return hub.read(spec, split, data_root)
    except hub.AbsentError as error:
        raise DataError(f"{missing} (That failed: {error}.)") from error


def _parse(spec: TaskSpec, split: str, path: Path, content: bytes) -> Table:
    part, texts = spec.splits[split], spec.texts_of(split)
    label = spec.label_column if part.labelled else None
    wanted = (*texts, *(() if label is None else (label,)))
    if spec.reader == "csv":
        return csv_file.parse(content, path, wanted=wanted)
    if spec.reader == "jsonl":
        return jsonl.parse(content, path, texts=texts, label=label)
    if spec.reader == "parquet":
        return parquet.parse(content, path, texts=texts, label=label)
    return tsv.parse(content, path, wanted=wanted, header=part.columns, official_rows=part.official_rows)


def _generated_columns(spec: TaskSpec, split: str) -> dict[str, list[str]]:
    # The generator is only loaded where it is used.
    from mtl.tasks import mini

    return mini.generate(spec.name, split)


def _generated_fingerprint(spec: TaskSpec, split: str, columns: dict[str, list[str]]) -> str:
    canonical = json.dumps({"task": spec.name, "split": split, "columns": columns}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _generated_rows(spec: TaskSpec, split: str) -> Rows:
    columns = _generated_columns(spec, split)
    fingerprint = _generated_fingerprint(spec, split, columns)

    def where(row: int) -> str:
        return f"generated {spec.name}, split {split}, row {row}"

    return _rows(spec, split, Table(columns, []), where, fingerprint)


def _rows(spec: TaskSpec, split: str, table: Table, where: Where, fingerprint: str) -> Rows:
    """Rows from columns of text; ``where(row)`` says in a message where a row stands."""
    texts = tuple(table.columns[name] for name in spec.texts_of(split))
    labelled = spec.splits[split].labelled
    labels = read_labels(spec, table.columns[spec.label_column], where) if labelled else None
    return Rows(texts, labels, fingerprint, table.dropped_lines)

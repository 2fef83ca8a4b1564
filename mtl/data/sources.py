"""The rows of a task's split, checked on the way in: texts as they stand, labels as class indices or scores."""

import hashlib
import json
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath

import numpy as np
import numpy.typing as npt

from mtl.data import tsv
from mtl.errors import ConfigError, DataError
from mtl.tasks.spec import SplitSpec, TaskSpec

Labels = npt.NDArray[np.int64] | npt.NDArray[np.float32]


@dataclass(frozen=True)
class Rows:
    """All rows of one split, in file order.

    ``texts`` has one list per text column. ``labels`` is int64 class indices in the order of the task's labels,
    float32 scores for regression, or None where the split has none. ``fingerprint`` is the sha256 of the file's
    bytes, or of the generated content. ``dropped_lines`` counts malformed lines of an official file (see mtl.data.tsv).
    """

    texts: tuple[list[str], ...]
    labels: Labels | None
    fingerprint: str
    dropped_lines: int = 0

    def __len__(self) -> int:
        return len(self.texts[0])


def read_rows(spec: TaskSpec, split: str, data_root: Path | None) -> Rows:
    """Every row of ``split``; empty texts are kept.

    Raises ConfigError for a split the task does not have, and DataError, with file and line, for a file that is
    missing, malformed, or holds a label outside the task's set, or a score outside its range.
    """
    part = _split(spec, split)
    if spec.reader == "generated":
        return _generated_rows(spec, split, part)
    path, content = _required_file(spec, split, part, data_root)
    wanted = (*spec.texts_of(split), *((spec.label_column,) if part.labelled else ()))
    table = tsv.parse(content, path, wanted=wanted, header=part.columns, official_rows=part.official_rows)
    fingerprint = hashlib.sha256(content).hexdigest()

    def where(row: int) -> str:
        return f"{path}, line {table.line_numbers[row]}"

    return _rows(spec, split, table.columns, where, fingerprint, table.dropped_lines)


def count_rows(spec: TaskSpec, split: str, data_root: Path | None) -> int | None:
    """The length of ``read_rows`` without decoding a row; None where the file is absent."""
    part = _split(spec, split)
    if spec.reader == "generated":
        return part.official_rows
    content = _content(_path(spec, part, data_root))
    if content is None:
        return None
    return tsv.count_rows(content, header=part.columns, official_rows=part.official_rows)


def source_fingerprint(spec: TaskSpec, split: str, data_root: Path | None) -> str:
    """The fingerprint of ``read_rows`` without parsing a row; the same errors for an unknown split and missing data."""
    part = _split(spec, split)
    if spec.reader == "generated":
        return _generated_fingerprint(spec, split, _generated_columns(spec, split))
    _, content = _required_file(spec, split, part, data_root)
    return hashlib.sha256(content).hexdigest()


def _split(spec: TaskSpec, split: str) -> SplitSpec:
    if split not in spec.splits:
        raise ConfigError(f"task {spec.name} has no split {split!r}; it has {', '.join(spec.splits)}")
    return spec.splits[split]


def _path(spec: TaskSpec, part: SplitSpec, data_root: Path | None) -> Path | None:
    """Where the split's file has to be; None without a data root."""
    relative = PurePath(spec.suite, spec.directory, part.file)
    if ".." in relative.parts or relative.is_absolute():
        raise ConfigError(f"task {spec.name}: the file {relative} would lie outside the data root; name one inside it")
    return None if data_root is None else data_root / relative


def _content(path: Path | None) -> bytes | None:
    """The bytes of the file; None where there is no such file. Other failures to read name the file and the cause."""
    if path is None:
        return None
    try:
        return path.read_bytes()
    except FileNotFoundError:
        return None
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}); check its type and its permissions") from error


def _required_file(spec: TaskSpec, split: str, part: SplitSpec, data_root: Path | None) -> tuple[Path, bytes]:
    """The split's file and its bytes; DataError that says both ways to get it where there is none."""
    path = _path(spec, part, data_root)
    content = _content(path)
    if path is None or content is None:
        raise DataError(_missing_message(spec, split, part, path))
    return path, content


def _missing_message(spec: TaskSpec, split: str, part: SplitSpec, path: Path | None) -> str:
    relative = PurePath(spec.suite, spec.directory, part.file)
    found = "no data root is set" if path is None else f"no such file: {path}"
    official = f"place the official file at {path or PurePath('<data root>') / relative}"
    message = f"{spec.name}, split {split}: {found}. Either {official}, or set data.root (or MTL_DATA_DIR) to a folder "
    message += f"that holds {relative}."
    if spec.hub is not None:
        message += (
            f" The same rows are on the Hugging Face hub as {spec.hub[0]}, configuration {spec.hub[1]}, "
            f"split {part.hub or split}; a copy from there has to be saved in the official file's form."
        )
    return message


def _generated_columns(spec: TaskSpec, split: str) -> dict[str, list[str]]:
    # The generator is only loaded where it is used.
    from mtl.tasks import mini

    return mini.generate(spec.name, split)


def _generated_fingerprint(spec: TaskSpec, split: str, columns: dict[str, list[str]]) -> str:
    canonical = json.dumps({"task": spec.name, "split": split, "columns": columns}, sort_keys=True, ensure_ascii=True)
    return hashlib.sha256(canonical.encode()).hexdigest()


def _generated_rows(spec: TaskSpec, split: str, part: SplitSpec) -> Rows:
    columns = _generated_columns(spec, split)
    fingerprint = _generated_fingerprint(spec, split, columns)

    def where(row: int) -> str:
        return f"generated {spec.name}, split {split}, row {row}"

    return _rows(spec, split, columns, where, fingerprint, 0)


def _rows(
    spec: TaskSpec,
    split: str,
    columns: dict[str, list[str]],
    where: Callable[[int], str],
    fingerprint: str,
    dropped_lines: int,
) -> Rows:
    """Rows from columns of text; ``where(row)`` says in a message where a row stands."""
    part = spec.splits[split]
    texts = tuple(columns[name] for name in spec.texts_of(split))
    labels: Labels | None = None
    if part.labelled and spec.kind == "classification":
        labels = _class_indices(spec, columns[spec.label_column], where)
    elif part.labelled:
        labels = _scores(spec, columns[spec.label_column], where)
    return Rows(texts, labels, fingerprint, dropped_lines)


def _class_indices(spec: TaskSpec, values: Sequence[str], where: Callable[[int], str]) -> npt.NDArray[np.int64]:
    names = spec.label_values or {label: label for label in spec.labels}
    index_of = {value: spec.labels.index(label) for value, label in names.items()}
    for row, value in enumerate(values):
        if value not in index_of:
            raise DataError(
                f"{where(row)}: label {value!r} in column {spec.label_column!r} is none of "
                f"{', '.join(map(repr, index_of))}; an unlabelled or foreign row cannot be used here"
            )
    return np.array([index_of[value] for value in values], dtype=np.int64)


def _scores(spec: TaskSpec, values: Sequence[str], where: Callable[[int], str]) -> npt.NDArray[np.float32]:
    low, high = spec.score_range or (-math.inf, math.inf)
    scores = np.empty(len(values), dtype=np.float32)
    for row, value in enumerate(values):
        try:
            score = float(value)
        except ValueError:
            score = math.nan
        # Written so that NaN fails it too.
        if not (math.isfinite(score) and low <= score <= high):
            raise DataError(
                f"{where(row)}: score {value!r} in column {spec.label_column!r} is no number from {low:g} to {high:g}"
            )
        scores[row] = score
    return scores

"""The tags of a diagnostic set's rows: which phenomena each row is an example of."""

import hashlib
from pathlib import Path

from mtl.data import tsv
from mtl.errors import ConfigError, DataError
from mtl.tasks.spec import TaskSpec

RowTags = frozenset[tuple[str, str]]
"""Pairs of a coarse category, which is a column's name, and a fine one."""


def read_tags(spec: TaskSpec, split: str, data_root: Path | None, *, expected: str) -> list[RowTags]:
    """The tags of every row of a split, in file order; a row may have none, and several of one category.

    ``expected`` is the fingerprint of the rows that were predicted. DataError where the file is another one by now;
    ConfigError for a task whose rows do not come from a TSV file.
    """
    if spec.reader != "tsv" or data_root is None:
        raise ConfigError(f"{spec.name}: tags are read from official TSV files under data.root (or MTL_DATA_DIR) only")
    part = spec.splits[split]
    path = data_root / spec.suite / spec.directory / part.file
    try:
        content = path.read_bytes()
    except OSError as error:
        raise DataError(f"{path}: cannot be read ({error.strerror}), and the tags of {spec.name} are in it") from error
    if hashlib.sha256(content).hexdigest() != expected:
        raise DataError(f"{path} is not the file whose rows were predicted; start again")
    columns = tsv.parse(
        content, path, wanted=spec.tag_columns, header=part.columns, official_rows=part.official_rows
    ).columns
    rows = zip(*(columns[name] for name in spec.tag_columns), strict=True)
    return [
        frozenset(
            (coarse, fine.strip())
            for coarse, cell in zip(spec.tag_columns, cells, strict=True)
            for fine in cell.split(";")
            if fine.strip()
        )
        for cells in rows
    ]

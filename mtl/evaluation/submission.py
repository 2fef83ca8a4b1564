"""Files for a leaderboard: predictions as it spells them, in one zip whose bytes depend on the predictions alone."""

import io
import zipfile
from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from mtl.errors import DataError, NonFiniteError
from mtl.evaluation.benchmarks import Benchmark, SubmissionFile
from mtl.evaluation.evaluate import SplitPredictions
from mtl.evaluation.submission_check import file_faults
from mtl.tasks.spec import TaskSpec

_EARLIEST = (1980, 1, 1, 0, 0, 0)
_UNIX = 3
_PERMISSIONS = 0o100644


def submission_file(benchmark: Benchmark, file: SubmissionFile, spec: TaskSpec, predicted: SplitPredictions) -> bytes:
    """The content of ``file``: a header, then a line for each row of the test file, in its order.

    Scores are clipped and rounded here and nowhere else. NonFiniteError for a score that is none; DataError where rows
    are missing or not in order, or the number of rows is not the leaderboard's.
    """
    if not np.array_equal(predicted.rows, np.arange(predicted.rows.size)):
        raise DataError(f"{file.name}: the predictions of {spec.name} are not of all rows of {file.split} in order")
    if file.score_range is None:
        values = [file.spellings[spec.labels[int(place)]] for place in predicted.predictions]
    else:
        values = _scores(file, file.score_range, predicted.predictions)
    return _checked(benchmark, file, values)


def constant_file(benchmark: Benchmark, file: SubmissionFile) -> bytes:
    """The content of ``file`` with the same answer for every row, which the table of benchmarks names."""
    return _checked(benchmark, file, [file.constant] * file.rows)


def submission_zip(benchmark: Benchmark, contents: Mapping[str, bytes]) -> bytes:
    """All files of the benchmark in one flat zip: equal contents give equal bytes, whatever machine made them."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for file in benchmark.files:
            entry = zipfile.ZipInfo(file.name, _EARLIEST)
            entry.create_system, entry.external_attr = _UNIX, _PERMISSIONS << 16
            # Stored, not compressed: releases of zlib differ in what they make of the same bytes.
            entry.compress_type = zipfile.ZIP_STORED
            archive.writestr(entry, contents[file.name])
    return packed.getvalue()


def _scores(file: SubmissionFile, score_range: tuple[float, float], scores: npt.NDArray[np.generic]) -> list[str]:
    values = scores.astype(np.float64)
    wrong = np.flatnonzero(~np.isfinite(values))
    if wrong.size:
        raise NonFiniteError(f"{file.name}: {wrong.size} predictions are not finite, the first in row {wrong[0]}")
    return [f"{value:.{file.decimals}f}" for value in np.clip(values, *score_range)]


def _checked(benchmark: Benchmark, file: SubmissionFile, values: list[str]) -> bytes:
    lines = ["\t".join(benchmark.columns), *(f"{row}\t{value}" for row, value in enumerate(values))]
    content = ("\n".join(lines) + "\n").encode()
    faults = file_faults(benchmark, file, content)
    if faults:
        raise DataError(f"no submission was written: {faults[0]}")
    return content

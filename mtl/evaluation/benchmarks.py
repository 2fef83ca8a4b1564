"""What each leaderboard wants to be sent: file names, rows and spellings, as data.

Row counts are those of the official test files. ``constant`` is what fills a file whose rows cannot be predicted: the
most frequent answer in train (for scores the mean), as a baseline would give.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

BenchmarkName = Literal["glue"]


@dataclass(frozen=True)
class SubmissionFile:
    """One file: whose predictions it holds, of which split, and how they are spelt.

    ``spellings`` maps a label of the task to what stands in the file; it is empty for scores, which are clipped to
    ``score_range`` and written with ``decimals``.
    """

    name: str
    task: str
    split: str
    rows: int
    constant: str
    spellings: Mapping[str, str]
    score_range: tuple[float, float] | None = None
    decimals: int = 3


@dataclass(frozen=True)
class Benchmark:
    """A leaderboard's files, in the order they have in the zip, and the header line of each."""

    name: BenchmarkName
    files: tuple[SubmissionFile, ...]
    columns: tuple[str, str] = ("index", "prediction")


def _as_named(*labels: str) -> dict[str, str]:
    return {label: label for label in labels}


_TWO_WAY = _as_named("entailment", "not_entailment")
_THREE_WAY = _as_named("entailment", "neutral", "contradiction")

# GLUE's server asks for every file, named so, in a zip without folders.
GLUE = Benchmark(
    "glue",
    (
        SubmissionFile("AX.tsv", "glue/ax", "test", 1104, "entailment", _THREE_WAY),
        SubmissionFile("CoLA.tsv", "glue/cola", "test", 1063, "1", {"unacceptable": "0", "acceptable": "1"}),
        SubmissionFile("MNLI-m.tsv", "glue/mnli", "test_matched", 9796, "entailment", _THREE_WAY),
        SubmissionFile("MNLI-mm.tsv", "glue/mnli", "test_mismatched", 9847, "entailment", _THREE_WAY),
        SubmissionFile("MRPC.tsv", "glue/mrpc", "test", 1725, "1", {"not_equivalent": "0", "equivalent": "1"}),
        SubmissionFile("QNLI.tsv", "glue/qnli", "test", 5463, "entailment", _TWO_WAY),
        SubmissionFile("QQP.tsv", "glue/qqp", "test", 390_965, "0", {"not_duplicate": "0", "duplicate": "1"}),
        SubmissionFile("RTE.tsv", "glue/rte", "test", 3000, "entailment", _TWO_WAY),
        SubmissionFile("SST-2.tsv", "glue/sst2", "test", 1821, "1", {"negative": "0", "positive": "1"}),
        SubmissionFile("STS-B.tsv", "glue/stsb", "test", 1379, "2.701", {}, (0.0, 5.0)),
        SubmissionFile("WNLI.tsv", "glue/wnli", "test", 146, "0", {"not_entailment": "0", "entailment": "1"}),
    ),
)

BENCHMARKS: Mapping[BenchmarkName, Benchmark] = {"glue": GLUE}

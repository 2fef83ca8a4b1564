"""What training time and memory follow from on this machine: short trainings of encoders of several shapes.

Each runs in a fresh process, which holds what a run's process holds before any work.
"""

import multiprocessing
import statistics
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mtl.bench.memory import forget_peak, peak_memory
from mtl.bench.records import MachineMeasure
from mtl.config.encoder import ScratchEncoder, SequenceHeadSettings
from mtl.config.resolve import resolve_stage
from mtl.config.run import RunConfig
from mtl.costs.machine import CaseMeasure, fixed_bytes, quantities
from mtl.costs.shape import EncoderShape
from mtl.costs.work import HeadShape, Passage, Work, model_parameters, pass_work, widest
from mtl.data.rows import filled_rows
from mtl.data.store import TokenStore
from mtl.data.tokenizer import load_tokenizer
from mtl.evaluation.evaluate import Evaluator
from mtl.models.load import load_encoder
from mtl.random_streams import generator
from mtl.rundir import RunDirectory
from mtl.runtime.signals import StopSignals
from mtl.sampling.samplers import IntArray
from mtl.stages.build import Parts, build_parts
from mtl.stages.context import InitialWeights, RunContext, Unit
from mtl.stages.datasets import TaskData
from mtl.stages.environment import Hardware, start_hardware
from mtl.tasks.registry import get
from mtl.training.prepared import PreparedUpdate, prefetched
from mtl.training.tracking import synchronise

Clock = Callable[[], float]

_TASK = "mini/entail2"
_WARMUP = 3
_SECONDS, _EVALUATION_SECONDS = 2.0, 0.7
_EVALUATIONS, _EVALUATION_TOKENS = 2, 16_384
_MOST = 60
_TYPES, _POSITIONS = 2, 512


@dataclass(frozen=True)
class Case:
    """A scratch encoder, and rows of ``length`` tokens on average, ``rows`` of them in an update."""

    layers: int
    width: int
    feed_forward: int
    attention_heads: int
    vocabulary: int
    rows: int
    length: int
    dropout: float = 0.1
    pooling: str = "first_dense"
    updates: int = 5
    """At least so many are timed."""

    @property
    def name(self) -> str:
        """How it is called in reports."""
        without = "" if self.dropout else ", no dropout"
        return f"{self.layers}x{self.width}, {self.vocabulary} words, {self.rows} rows of {self.length}{without}"


# Far apart in each quantity that time follows from, and in what they have of one for each of another.
CASES = (
    Case(2, 128, 256, 8, 1_000, 192, 20, dropout=0.0, pooling="mean"),
    Case(2, 128, 512, 4, 1_000, 64, 16),
    Case(2, 128, 512, 4, 1_000, 64, 16, dropout=0.0, updates=60),
    Case(8, 128, 512, 4, 2_000, 16, 16),
    Case(8, 128, 512, 4, 2_000, 16, 16, dropout=0.0),
    Case(4, 256, 1024, 4, 30_000, 32, 32),
    Case(4, 256, 1024, 4, 2_000, 32, 96),
    Case(4, 256, 1024, 8, 2_000, 128, 40, pooling="mean"),
    # Many updates of many sizes: what is compiled for each size is kept, and takes memory.
    Case(6, 384, 1536, 12, 30_000, 8, 64, updates=60),
    Case(6, 384, 1536, 12, 30_000, 32, 64),
    Case(6, 384, 1536, 12, 2_000, 64, 32),
    Case(3, 384, 1536, 12, 2_000, 32, 64, dropout=0.0),
    Case(2, 512, 2048, 8, 100_000, 8, 16),
    Case(6, 768, 3072, 12, 30_000, 8, 32),
)


def measure_machine(config: RunConfig, cases: Sequence[Case] = CASES) -> MachineMeasure:
    """Every case in turn, each in a process of its own, under the threads, precision and device of ``config``."""
    document = config.model_dump(mode="json")
    spawned = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max_workers=1, mp_context=spawned, max_tasks_per_child=1) as processes:
        measures = [processes.submit(measure_from_document, document, case).result() for case in cases]
    return MachineMeasure(
        cases=tuple(measure for measure, _ in measures),
        precision=measures[0][1].precision,
        threads=measures[0][1].threads,
        device=measures[0][1].device.type,
    )


def measure_from_document(document: dict[str, object], case: Case) -> tuple[CaseMeasure, Hardware]:
    """One case, from a config as plain data."""
    return measure_case(RunConfig.model_validate(document), case)


def measure_case(config: RunConfig, case: Case, *, clock: Clock = time.perf_counter) -> tuple[CaseMeasure, Hardware]:
    """One training: updates under the clock, then evaluations of as many tokens as a batch has by default."""
    hardware = start_hardware(config, None)
    trial = _Trial(config, case, hardware, clock)
    forget_peak(hardware.device)
    work, largest, seconds = trial.train()
    training_bytes = peak_memory(hardware.device)
    forget_peak(hardware.device)
    evaluation, evaluation_seconds = trial.evaluate()
    shape, head = shape_of(case), head_of(case)
    encoder = shape.parameters
    assert encoder is not None
    tokens = sum(trial.lengths[trial.evaluated].tolist())
    sizes = float(len(trial.sizes))
    return CaseMeasure(
        name=case.name,
        training=quantities(work),
        training_seconds=seconds,
        evaluation=quantities(evaluation),
        evaluation_seconds=evaluation_seconds,
        fixed_bytes=fixed_bytes(hardware.device.type, encoder, head.parameters(shape.width)),
        training_memory={"base": 1.0, "elements": largest.elements, "scores": largest.scores, "sizes": sizes},
        training_bytes=training_bytes,
        evaluation_memory={
            "base": 1.0,
            "widest": widest(shape, tokens),
            "scores": evaluation.scores / shape.layers,
            "sizes": sizes + 1.0,
        },
        evaluation_bytes=peak_memory(hardware.device),
    ), hardware


def shape_of(case: Case) -> EncoderShape:
    """The encoder of a case, as a plan would know it."""
    return EncoderShape(
        case.layers, case.width, case.feed_forward, case.attention_heads, case.vocabulary, _POSITIONS, _TYPES,
        case.width, case.dropout, case.dropout, native=True,
    )  # fmt: skip


def head_of(case: Case) -> HeadShape:
    """The head of a case."""
    return HeadShape(get(_TASK).outputs, case.pooling == "first_dense", case.pooling != "mean")


def row_lengths(case: Case) -> IntArray:
    """Lengths of rows for all updates, evenly from half of the mean to one and a half times it."""
    rows = case.rows * (_WARMUP + _MOST)
    low, high = max(4, case.length // 2), case.length + case.length // 2
    return np.linspace(low, high, rows).round().astype(np.int64)[generator(0, "machine", "order").permutation(rows)]


def generated_store(case: Case, lengths: IntArray) -> TokenStore:
    """Rows of random words with random labels."""
    draws = generator(0, "machine", "tokens")
    total = int(lengths.sum())
    return TokenStore(
        tokens=draws.integers(0, case.vocabulary, total, dtype=np.uint32),
        types=np.zeros(total, dtype=np.uint8),
        sequence_offsets=np.concatenate([[0], np.cumsum(lengths)]),
        example_offsets=np.arange(lengths.size + 1, dtype=np.int64),
        labels=draws.integers(0, get(_TASK).outputs, lengths.size),
        text_keys=np.arange(lengths.size, dtype=np.uint64)[:, None],
        fingerprint="",
        data_fingerprint="",
        truncated=0,
        empty=0,
    )


@dataclass
class _Trial:
    """The parts of one case's training, and what is measured of them."""

    config: RunConfig
    case: Case
    hardware: Hardware
    clock: Clock
    lengths: IntArray = field(init=False)
    parts: Parts = field(init=False)
    sizes: set[int] = field(default_factory=set)
    """Rows that the encoder ran on in the updates, each number once."""

    def __post_init__(self) -> None:
        self.lengths = row_lengths(self.case)
        self._data = TaskData(get(_TASK), generated_store(self.case, self.lengths), {})
        self.parts = self._build()
        self._updates = prefetched(self.parts.preparation, self.parts.planner, 0)

    @property
    def evaluated(self) -> IntArray:
        """The rows that are evaluated: the first ones, as many as fill a batch."""
        rows = int(np.searchsorted(np.cumsum(self.lengths), _EVALUATION_TOKENS, side="right"))
        return np.arange(rows, dtype=np.int64)

    def _run(self, update: PreparedUpdate) -> None:
        self.parts.updater.run(update)
        self.sizes.add(filled_rows(update.work.tokens))

    def evaluate(self) -> tuple[Work, float]:
        """One batch, again and again: its work, and the median of its times but for the first."""
        rows = self.evaluated
        evaluator = Evaluator(int(self.lengths.sum()), self.hardware.precision, self.hardware.device)
        times: list[float] = []
        while not _enough(times[1:], _EVALUATIONS, _EVALUATION_SECONDS):
            began = self._now()
            evaluator.predict(self.parts.model, self._data.spec, self._data.train, rows)
            times.append(self._now() - began)
        lengths = self.lengths[rows].astype(np.float64)
        work = self._work(lengths.sum(), np.square(lengths).sum(), rows.size, training=False)
        return work, statistics.median(times[1:])

    def train(self) -> tuple[Work, Work, float]:
        """Updates: the work of a mean one and of the largest, and the median of their times."""
        times: list[float] = []
        works: list[Work] = []
        for _ in range(_WARMUP):
            self._run(next(self._updates))
        began = self._now()
        for update in self._updates:
            self._run(update)
            now = self._now()
            times.append(now - began)
            works.append(self._of(update))
            began = now
            if _enough(times, self.case.updates, _SECONDS):
                break
        self._updates.close()
        mean = sum(works, Work()).times(1.0 / len(works))
        return mean, max(works, key=lambda work: work.elements), statistics.median(times)

    def _of(self, update: PreparedUpdate) -> Work:
        return self._work(
            update.work.tokens, update.work.squared_lengths, sum(update.work.sequences.values()), training=True
        )

    def _work(self, tokens: float, squared: float, sequences: float, *, training: bool) -> Work:
        shape, head = shape_of(self.case), head_of(self.case)
        passage = Passage(float(tokens), float(squared), float(sequences), sequences * head.weights(shape.width))
        parameters = model_parameters(shape, [head])
        assert parameters is not None
        return pass_work(shape, passage, parameters, first_only=head.first_tokens_only, training=training)

    def _now(self) -> float:
        synchronise(self.hardware.device)
        return self.clock()

    def _build(self) -> Parts:
        case = self.case
        encoder = ScratchEncoder(
            tokenizer="mini", layers=case.layers, width=case.width, attention_heads=case.attention_heads,
            feed_forward=case.feed_forward, positions=_POSITIONS, dropout=case.dropout,
        )  # fmt: skip
        loaded = load_encoder(encoder, 0, case.vocabulary)
        initial = InitialWeights(loaded, None, "", {})
        context = RunContext(
            self.config, {_TASK: self._data}, {}, load_tokenizer(encoder), initial, self.hardware.device,
            self.hardware.precision, StopSignals(),
        )  # fmt: skip
        settings = resolve_stage(self.config, "single", _TASK)
        length = settings.training.model_copy(
            update={"updates": _WARMUP + _MOST, "epochs": None, "rows_per_update": case.rows, "tokens_per_update": None}
        )
        # Whether the weights learn is of no interest; that they stay finite is.
        rate = settings.optimizer.model_copy(update={"learning_rate": 1e-5})
        settings = settings.model_copy(update={"training": length, "optimizer": rate})
        head = SequenceHeadSettings.model_validate({"pooling": case.pooling, "dropout": case.dropout})
        directory = RunDirectory(Path(self.config.out)).stage("single", _TASK)
        return build_parts(context, Unit("single", (_TASK,), settings, {_TASK: head}, directory))


def _enough(times: Sequence[float], fewest: int, seconds: float) -> bool:
    return len(times) >= _MOST or (len(times) >= fewest and sum(times) >= seconds)

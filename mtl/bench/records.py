"""What travels between a measurement's command and the processes that measure: plain data, validated on both ends."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict

from mtl.costs.machine import CaseMeasure

Peer = Literal["hf-default", "hf-tuned"]
SectionKind = Literal["trial", "mtl", "hf-default", "hf-tuned", "eval", "tokenise", "machine"]


class Record(BaseModel):
    """Frozen plain data that takes no field it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(Record):
    """One section to measure: a whole config as plain data, and how many updates come before and under the clock.

    ``turns``: how often a section that alternates two things does so; ``profile``: whether a trial lists operators.
    """

    section: SectionKind
    config: dict[str, Any]
    plugins: tuple[str, ...] = ()
    warmup: int = 1
    updates: int = 1
    turns: int = 1
    profile: bool = False


class Setting(Record):
    """What was measured, and on what: whatever a reader needs to judge a figure or to take it again.

    ``dropout`` holds the rates that the encoder's config names and that of each head; ``parameters`` counts all.
    """

    model: str
    parameters: int
    tasks: tuple[str, ...]
    stage: str
    precision: str
    precision_reason: str
    device: str
    threads: int
    max_length: int
    rows_per_update: int | None
    tokens_per_update: int | None
    dropout: dict[str, float]
    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str | None


class Peak(Record):
    """The best rate of large matrix products before and after a section, in floating-point operations a second."""

    before: float
    after: float

    @property
    def best(self) -> float:
        """The better of both: what the machine could do at the time."""
        return max(self.before, self.after)


class TrainingMeasure(Record):
    """A training under the clock. ``tokens`` are real ones, ``padded_tokens`` those that the model was run on.

    ``losses`` are the mean losses of the timed updates, one each; ``flops`` the useful operations of the real tokens.
    """

    updates: int
    seconds: float
    rows: int
    tokens: int
    padded_tokens: int
    flops: float
    losses: tuple[float, ...]
    seconds_to_first_update: float
    peak_memory_bytes: int
    peak: Peak | None = None


class OperatorTime(Record):
    """An operator's own time, without that of operators it calls; ``share`` is of all operators' own times."""

    operator: str
    calls: int
    seconds: float
    share: float


class Trial(Record):
    """A short training that is thrown away: how long an update takes, and where its time goes.

    ``time_split``: shares of an update's wall time, which add up to 1.
    """

    setting: Setting
    seconds_per_update: float
    rows_per_update: float
    tokens_per_update: float
    time_split: dict[str, float]
    profile: tuple[OperatorTime, ...]


class EvaluationMeasure(Record):
    """Training and evaluation in turn: one entry of each list a turn. Rates are of real tokens a second."""

    setting: Setting
    rows: int
    tokens: int
    training_tokens_per_second: tuple[float, ...]
    evaluation_tokens_per_second: tuple[float, ...]


class TokenisingSetting(Record):
    """What was tokenised, and on what; the machine's threads are torch's, the tokenizer has its own."""

    tokenizer: str
    tasks: tuple[str, ...]
    max_length: int
    machine: dict[str, Any]
    versions: dict[str, str]
    commit: str | None


class TokenisingMeasure(Record):
    """The same texts tokenised in turn by the store's builder and by the bare tokenizer, in seconds."""

    setting: TokenisingSetting
    rows: int
    tokens: int
    store_seconds: tuple[float, ...]
    bare_seconds: tuple[float, ...]


class MachineMeasure(Record):
    """The short trainings that a machine's profile is fitted to, and what they ran on."""

    cases: tuple[CaseMeasure, ...]
    precision: str
    threads: int
    device: str


class Failure(Record):
    """An error that the user can mend, to be raised again by the command."""

    message: str
    exit_code: int


class Answer(Record):
    """What a section found: one of these, by its kind."""

    training: TrainingMeasure | None = None
    trial: Trial | None = None
    evaluation: EvaluationMeasure | None = None
    tokenising: TokenisingMeasure | None = None
    machine: MachineMeasure | None = None
    failure: Failure | None = None

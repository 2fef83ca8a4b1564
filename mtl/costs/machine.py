"""What was measured of a machine: how long its work takes, and how much memory; kept in the cache directory."""

import hashlib
from collections.abc import Mapping
from pathlib import Path

from pydantic import BaseModel, ConfigDict, ValidationError

from mtl.atomic import write_text_atomically
from mtl.config.training import TrainingSettings
from mtl.costs.work import WORK_NAMES, Work
from mtl.errors import DataError
from mtl.runtime.machine import asked_threads, processor_name, torch_version, usable_cores

INITIAL_BYTES = 4
"""A run keeps the encoder's weights that it starts from, in fp32, beside those that it trains."""
TRAINED_BYTES = 16
"""Weights, gradients and Adam's two moments, all in fp32."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class MachineKey(_Record):
    """All that a profile holds for; what is left to torch's choice is None or ``auto``, and is the same again here."""

    processor: str | None
    cores_usable: int | None
    threads: int | None
    torch: str | None
    precision: str
    device: str
    kernels: str = "auto"
    revision: int = 5
    """Raised where what a profile was measured of has changed: older ones are measured anew."""

    def path(self, cache: Path) -> Path:
        """The profile's file, which need not exist."""
        key = hashlib.sha256(self.model_dump_json().encode()).hexdigest()
        return cache / f"machine-{key[:16]}.json"


class LinearFit(_Record):
    """A sum of coefficients times quantities, by name, with what it leaves over relative to each measured value."""

    coefficients: dict[str, float]
    residuals: tuple[float, ...]

    def predict(self, quantities: Mapping[str, float]) -> float:
        """The sum; a quantity that is not named counts as 0."""
        return sum(each * quantities.get(name, 0.0) for name, each in self.coefficients.items())

    @property
    def worst(self) -> float:
        """The largest relative residual."""
        return max(map(abs, self.residuals))


class CaseMeasure(_Record):
    """One short training: its mean update and evaluation batch as work, and the seconds and bytes that they took.

    ``*_memory``: the quantities that memory follows from beside parameters, of the largest update and batch.
    ``*_bytes`` are the most that the process, or the GPU, has held by the end of either, ``fixed_bytes`` those of
    weights, gradients and moments.
    """

    name: str
    training: dict[str, float]
    training_seconds: float
    evaluation: dict[str, float]
    evaluation_seconds: float
    fixed_bytes: float
    training_memory: dict[str, float]
    training_bytes: float
    evaluation_memory: dict[str, float]
    evaluation_bytes: float


class MachineProfile(_Record):
    """Everything that was measured and fitted; ``precision``, ``threads`` and ``device`` are what was really used."""

    key: MachineKey
    precision: str
    threads: int
    device: str
    training: LinearFit
    evaluation: LinearFit
    training_memory: LinearFit
    evaluation_memory: LinearFit
    cases: tuple[CaseMeasure, ...]

    def training_seconds(self, work: Work) -> float:
        """Expected time of updates."""
        return self.training.predict(quantities(work))

    def evaluation_seconds(self, work: Work) -> float:
        """Expected time of forward passes without gradients."""
        return self.evaluation.predict(quantities(work))

    def fixed_bytes(self, encoder: int, heads: int) -> float:
        """Memory of what has the size of the parameters; on a GPU without the weights that are started from."""
        return fixed_bytes(self.device, encoder, heads)


def fixed_bytes(device: str, encoder: int, heads: int) -> float:
    """Bytes of weights, gradients and moments, and on a CPU of the encoder's first weights."""
    return TRAINED_BYTES * (encoder + heads) + (INITIAL_BYTES * encoder if device == "cpu" else 0)


def quantities(work: Work) -> dict[str, float]:
    """The work by name."""
    return {name: getattr(work, name) for name in WORK_NAMES}


def machine_key(training: TrainingSettings) -> MachineKey:
    """The key of this machine under the settings; torch is not loaded."""
    return MachineKey(
        processor=processor_name(),
        cores_usable=usable_cores(),
        threads=asked_threads(training.threads),
        torch=torch_version(),
        precision=training.precision,
        device=training.device,
        kernels=training.kernels,
    )


def save_profile(profile: MachineProfile, cache: Path) -> Path:
    """Keep the profile, in place of an older one; its path."""
    path = profile.key.path(cache)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text_atomically(path, profile.model_dump_json(indent=1))
    return path


def find_profile(key: MachineKey, cache: Path) -> MachineProfile | None:
    """The profile of a machine; None where it was not measured. DataError where the file cannot be read."""
    path = key.path(cache)
    if not path.is_file():
        return None
    try:
        return MachineProfile.model_validate_json(path.read_bytes())
    except ValidationError as error:
        raise DataError(f"{path} is damaged, or of another version: measure anew with `mtl bench machine`") from error

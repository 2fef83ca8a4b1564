"""On what the runs of a study were carried out, from their environment.json: versions, commit, hardware."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from mtl.errors import DataError
from mtl.studies.find import FoundRun
from mtl.studies.report.content import Content

_GIB = 1 << 30


def machine_rows(content: Content) -> list[tuple[str, str]]:
    """What is noted, by name; where runs differ every value, with the number of runs that have it."""
    noted: dict[str, dict[str, int]] = {}
    runs = [run.found for run in content.study.runs if run.found is not None]
    for run in runs:
        for name, value in _facts(_environment(run)):
            counts = noted.setdefault(name, {})
            counts[value] = counts.get(value, 0) + 1
    return [(name, _shown(counts, len(runs))) for name, counts in noted.items()]


def _shown(counts: Mapping[str, int], runs: int) -> str:
    if list(counts.values()) == [runs]:
        return next(iter(counts))
    return "; ".join(f"{value} ({number} of {runs} runs)" for value, number in sorted(counts.items()))


def _environment(run: FoundRun) -> Mapping[str, Any]:
    path = run.directory.environment
    if not path.is_file():
        return {}
    try:
        noted = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise DataError(f"{path} is damaged: {error}; run it again") from error
    return noted if isinstance(noted, dict) else {}


def _facts(noted: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    hardware: Mapping[str, Any] = noted.get("hardware") or {}
    if "git_commit" in noted:
        yield "commit", str(noted["git_commit"] or "not known")
    if hardware:
        yield "processor", _processor(hardware)
        gpus = hardware.get("gpus") or []
        yield "GPUs", ", ".join(str(_name(gpu)) for gpu in gpus) or "none"
        if hardware.get("memory_bytes"):
            yield "memory", f"{hardware['memory_bytes'] / _GIB:.1f} GiB"
        if hardware.get("system"):
            yield "system", str(hardware["system"])
    if "device" in noted:
        amounts = [
            f"{number} {name}{'' if number == 1 else 's'}"
            for name in ("thread", "rank")
            if (number := noted.get(f"{name}s")) is not None
        ]
        yield "carried out on", ", ".join([str(noted["device"]), *amounts])
    if "precision" in noted:
        yield "precision", str(noted["precision"])
    for package, version in (noted.get("versions") or {}).items():
        yield str(package), str(version)


def _processor(hardware: Mapping[str, Any]) -> str:
    return f"{hardware.get('processor')} ({hardware.get('architecture')}), {hardware.get('cores')} cores"


def _name(gpu: Any) -> Any:
    return gpu.get("name", gpu) if isinstance(gpu, Mapping) else gpu

"""What a run needs and whether it is here: software, device, encoder, data, room on the disk. Changes nothing."""

import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from mtl import tasks as task_registry
from mtl.config.load import load_config, shipped_names
from mtl.config.locations import cache_directory, data_root
from mtl.config.run import RunConfig
from mtl.data.files import file_path
from mtl.data.hub_presence import fetched_rows
from mtl.data.model_presence import encoder_presence, offline
from mtl.errors import ConfigError
from mtl.stages.catalogue import TaskEntry, task_entries
from mtl.stages.checks import check_config
from mtl.stages.extras import installed_extras
from mtl.tasks.spec import TaskSpec

State = Literal["ok", "note", "partial", "missing"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at; ``mend`` says how to get what is missing."""

    topic: Literal["software", "device", "encoder", "data", "disk", "extras"]
    name: str
    state: State
    text: str
    mend: str | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was looked at."""

    findings: tuple[Finding, ...]

    @property
    def ready(self) -> bool:
        """Nothing that the config needs is missing, so that a run could start here without a network."""
        return all(finding.state != "missing" for finding in self.findings)


def diagnose(config: RunConfig, *, survey: bool = False) -> Diagnosis:
    """Whether ``config`` could run here, offline; with ``survey`` what is here of everything that is known.

    A survey looks at every task of ``config`` and at the encoders of the shipped recipes, and nothing that it lacks
    counts as missing. ConfigError where the config itself cannot be carried out.
    """
    names = task_registry.expand(config.tasks)
    if not survey:
        check_config(config, names)
    findings = [
        *_software(),
        *_device(config),
        *(_shipped_encoders() if survey else [_encoder("encoder", config)]),
        *_data(names, data_root(config)),
        *_disk(config),
        *_extras(),
    ]
    return Diagnosis(tuple(_as_note(finding) if survey else finding for finding in findings))


def _as_note(finding: Finding) -> Finding:
    state: State = "note" if finding.state == "missing" else finding.state
    return Finding(finding.topic, finding.name, state, finding.text, finding.mend)


def _software() -> Iterator[Finding]:
    from mtl.runtime.device import versions

    yield from (Finding("software", name, "ok", version) for name, version in versions().items())
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE", "HF_HOME", "MTL_DATA_DIR", "MTL_CACHE_DIR"):
        value = os.environ.get(name)
        if value is not None:
            told = " (nothing is downloaded)" if name == "HF_HUB_OFFLINE" and offline() else ""
            yield Finding("software", name, "note", f"{value}{told}")


def _device(config: RunConfig) -> Iterator[Finding]:
    import torch

    from mtl.models.kernels.compiled import choose_kernels
    from mtl.runtime.device import choose_device
    from mtl.runtime.precision import choose_precision

    try:
        device = choose_device(config.training.device)
    except ConfigError as error:
        yield Finding("device", config.training.device, "missing", str(error))
        return
    named = torch.cuda.get_device_name(device) if device.type == "cuda" else "the processor"
    yield Finding("device", "device", "ok", f"{device}, {named}")
    precision = choose_precision(config.training.precision, device)
    yield Finding("device", "precision", "ok", f"{precision.name}: {precision.reason}")
    threads = config.training.threads or torch.get_num_threads()
    source = "training.threads" if config.training.threads else "OMP_NUM_THREADS or the number of cores"
    yield Finding("device", "threads", "ok", f"{threads}, from {source}")
    if device.type == "cpu":
        try:
            yield Finding("device", "kernels", "ok", choose_kernels(config.training.kernels))
        except ConfigError as error:
            yield Finding("device", "kernels", "missing", str(error))


def _shipped_encoders() -> Iterator[Finding]:
    for recipe in shipped_names():
        if "/" not in recipe and recipe != "base":
            yield _encoder(recipe, load_config(recipe))


def _encoder(name: str, config: RunConfig) -> Finding:
    found = encoder_presence(config.encoder)
    if not found.missing:
        return Finding("encoder", name, "ok", found.place)
    return Finding("encoder", name, "missing", f"{found.place}: lacks {', '.join(found.missing)}", found.mend)


def _data(names: Sequence[str], root: Path | None) -> Iterator[Finding]:
    if root is not None and not root.is_dir():
        yield Finding("data", "data root", "note", f"{root} is not there", "set data.root or MTL_DATA_DIR")
    else:
        yield Finding("data", "data root", "note", str(root or "not set (data.root or MTL_DATA_DIR)"))
    for entry in task_entries(names, root):
        yield _task(entry, task_registry.get(entry.name), root)


def _task(entry: TaskEntry, spec: TaskSpec, root: Path | None) -> Finding:
    if spec.reader == "generated":
        return Finding("data", entry.name, "ok", "generated")
    rows = {name: split.rows for name, split in entry.splits.items()}
    fetched = [name for name, count in rows.items() if count is None and fetched_rows(spec, name) is not None]
    rows |= {name: fetched_rows(spec, name) for name in fetched}
    counts = "; ".join(
        f"{name} {'none' if count is None else f'{count:,}'}"
        + ("" if (official := entry.splits[name].rows_official) is None else f" of {official:,}")
        for name, count in rows.items()
    )
    text = f"{counts} rows" + (f" ({', '.join(fetched)} from the hub's cache)" if fetched else "")
    lacking = [name for name, count in rows.items() if count is None]
    if lacking:
        return Finding("data", entry.name, "missing", text, _how_to_get(spec, lacking, root))
    partial = any(entry.splits[name].rows_official not in (None, count) for name, count in rows.items())
    return Finding("data", entry.name, "partial" if partial else "ok", text)


def _how_to_get(spec: TaskSpec, splits: Sequence[str], root: Path | None) -> str:
    paths = [file_path(spec, spec.splits[split], root or Path("<data root>")) for split in splits]
    files = ", ".join(path.name for path in paths if path is not None)
    ways = [f"place {files} in {paths[0].parent}"] if paths[0] is not None else []
    if spec.hub is not None:
        ways.append(f"where there is a network, `mtl prepare` fetches {' '.join(part for part in spec.hub if part)}")
    return "; or ".join(ways)


def _disk(config: RunConfig) -> Iterator[Finding]:
    for name, path in (("cache", cache_directory(config)), ("out", Path(config.out))):
        existing = next(parent for parent in (path.absolute(), *path.absolute().parents) if parent.exists())
        free = shutil.disk_usage(existing).free / 2**30
        made = "" if path.exists() else ", not made yet"
        yield Finding("disk", name, "note", f"{path}{made}; {free:,.1f} GiB free")


def _extras() -> Iterator[Finding]:
    for extra in installed_extras():
        if extra.lacking:
            text = f"lacks {', '.join(extra.lacking)}"
            yield Finding("extras", extra.name, "note", text, f"pip install 'mtl[{extra.name}]'")
        else:
            yield Finding("extras", extra.name, "ok", ", ".join(extra.packages))

"""Are the times and memory that `mtl plan` expects those that training takes? Measures the machine, plans, then trains.

    python experiments/check_plan_estimates.py DATA_ROOT [--updates 80] [--out results/speed/plan_estimates.json]

Three trainings: a small encoder from random weights on generated tasks, MiniLM on RTE alone with 32 rows an update, and
MiniLM on the nine GLUE tasks with 64. Every training is a process of its own; its time is that of all updates by
the rates in the run's log, its memory the most that the process held. Leave the machine alone meanwhile.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

UNTIMED = ["logging.tensorboard=false", "checkpoint.every=null", "evaluation.save_predictions=false"]
CASES = {
    "scratch joint": ["quickstart", "stages=[joint]"],
    "minilm rte": ["glue_minilm", "stages=[single]", "tasks=[glue/rte]", "training.rows_per_update=32"],
    "minilm nine tasks": ["glue_minilm", "stages=[joint]", "training.rows_per_update=64"],
}
# The most memory of a process is known to whoever waits for it.
TRAIN = (
    "import resource, sys\nfrom mtl.cli import main\ncode = main(sys.argv[1:])\n"
    "print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024, file=sys.stderr)\nsys.exit(code)"
)


def main() -> None:
    """Measure, predict, train and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--updates", type=int, default=80)
    parser.add_argument("--threads", type=int, default=None, help="for all three; torch's choice by default")
    parser.add_argument("--out", type=Path, default=Path("results/speed/plan_estimates.json"))
    arguments = parser.parse_args()
    found: dict[str, Any] = {}
    with tempfile.TemporaryDirectory() as directory:
        threads = "null" if arguments.threads is None else str(arguments.threads)
        common = [f"data.cache={directory}/cache", f"training.threads={threads}"]
        report = Path(directory, "machine.json")
        print(run("bench", "machine", *common, "--json", str(report)).stdout)
        for name, words in CASES.items():
            chosen = [*words, *common, f"data.root={arguments.data_root}", f"training.updates={arguments.updates}"]
            found[name] = compare(chosen, Path(directory, name.replace(" ", "_")))
            print(name, json.dumps(found[name]), flush=True)
        profile = json.loads(report.read_text())["profile"]
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"updates": arguments.updates, "cases": found, "profile": profile}
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")


def compare(words: list[str], out: Path) -> dict[str, float]:
    """What the plan says, what the run took, and the one over the other."""
    run("prepare", *words)
    predicted = json.loads(run("plan", *words, "--json").stdout)["costs"]["total"]
    command = [sys.executable, "-c", TRAIN, "run", *words, *UNTIMED, f"out={out}"]
    done = subprocess.run(command, env=offline(), capture_output=True, text=True, check=True)
    peak = next(int(line.split()[1]) for line in done.stderr.splitlines() if line.startswith("PEAK "))
    (stage,) = json.loads((out / "result.json").read_text())["stages"].values()
    cost = stage["cost"]
    figures = {
        "tokens": (predicted["tokens"], cost["tokens"]),
        "flops": (predicted["flops"], cost["flops"]),
        "training_seconds": (predicted["training_seconds"], training_seconds(out, cost)),
        "memory_bytes": (predicted["memory_bytes"], peak),
    }
    return {
        f"{name}_{kind}": value
        for name, (plan, real) in figures.items()
        for kind, value in (("predicted", plan), ("measured", real), ("ratio", plan / real))
    }


def training_seconds(out: Path, cost: dict[str, Any]) -> float:
    """Seconds of all updates, from the tokens a second that the log has of each ten: scoring is left out."""
    (log,) = out.rglob("metrics.jsonl")
    records = [json.loads(line) for line in log.read_text().splitlines()]
    rates = [each["speed/tokens_per_second"] for each in records if "speed/tokens_per_second" in each]
    # The first records hold the start as well: the median of the later ones stands for all.
    later = sorted(rates[1:])
    return float(cost["tokens"] / later[len(later) // 2])


def run(*words: str) -> subprocess.CompletedProcess[str]:
    """One command of mtl; its error is shown where it fails."""
    return subprocess.run(
        [sys.executable, "-m", "mtl", *words], env=offline(), stdout=subprocess.PIPE, text=True, check=True
    )


def offline() -> dict[str, str]:
    """The environment, with no network and this checkout first."""
    here = str(Path(__file__).resolve().parents[1])
    path = os.pathsep.join(part for part in (here, os.environ.get("PYTHONPATH")) if part)
    return os.environ | {"PYTHONPATH": path, "HF_HUB_OFFLINE": "1"}


if __name__ == "__main__":
    main()

"""Is mixing tasks free? The rate of joint training on the nine GLUE tasks beside that of each task trained alone.

    python experiments/mixture_speed.py DATA_ROOT [--rows 32] [--rounds 3] [--out results/speed/mixture.json]

In each round ``mtl bench train`` measures the mixture, every task alone, and the mixture again, with as many rows an
update. The mixture is held against the rate at which its rows would pass if those of each task went at the pace of that
task alone: one over the sum of each task's share of the rows divided by its rate. Needs a quiet machine.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TASKS = ("cola", "sst2", "mrpc", "stsb", "qqp", "mnli", "qnli", "rte", "wnli")


def main() -> None:
    """Measure in turn, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--rows", type=int, default=32, help="rows an update, of every training")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--updates", type=int, default=12, help="timed updates of each training")
    parser.add_argument("--out", type=Path, default=Path("results/speed/mixture.json"))
    arguments = parser.parse_args()
    shares = row_shares(arguments.data_root)
    rounds: list[dict[str, Any]] = []
    for number in range(arguments.rounds):
        before = measure("glue", arguments)["rows_per_second"]
        alone = {task: measure(f"glue/{task}", arguments) for task in TASKS}
        mixture = statistics.fmean((before, measure("glue", arguments)["rows_per_second"]))
        expected = 1 / sum(shares[task] / alone[task]["rows_per_second"] for task in TASKS)
        rounds.append({"mixture": mixture, "alone": alone, "expected": expected, "ratio": mixture / expected})
        print(f"round {number + 1}: {mixture:.1f} rows/s against {expected:.1f}: {mixture / expected:.2f}", flush=True)
    ratio = statistics.median(each["ratio"] for each in rounds)
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    document = {"rows_per_update": arguments.rows, "row_shares": shares, "rounds": rounds, "ratio": ratio}
    arguments.out.write_text(json.dumps(document, indent=1) + "\n")
    print(f"median {ratio:.2f}")


def row_shares(data_root: Path) -> dict[str, float]:
    """Each task's share of the rows of the mixture, as `mtl plan` expects it."""
    plan = mtl("plan", "glue_minilm", f"data.root={data_root}", "--json")
    (model,) = json.loads(plan)["stages"][0]["models"]
    return {task["task"].removeprefix("glue/"): task["share"] for task in model["tasks"]}


def measure(tasks: str, arguments: argparse.Namespace) -> dict[str, float]:
    """Rows and real tokens a second of one training."""
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        mtl(
            "bench", "train", "glue_minilm", f"tasks=[{tasks}]", f"data.root={arguments.data_root}",
            f"training.rows_per_update={arguments.rows}", "--pairs", "1", "--updates", str(arguments.updates),
            "--json", str(report),
        )  # fmt: skip
        found: dict[str, Any] = json.loads(report.read_text())["mtl"]
    return {name: float(found[name]) for name in ("rows_per_second", "real_tokens_per_second")}


def mtl(*words: str) -> str:
    """The standard output of one command."""
    return subprocess.run([sys.executable, "-m", "mtl", *words], check=True, capture_output=True, text=True).stdout


if __name__ == "__main__":
    main()

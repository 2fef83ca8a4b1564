"""What compiled kernels gain on a CPU: `training.kernels=compiled` beside `torch`, in turn, on the same rows.

    python experiments/kernels_speed.py DATA_ROOT [--rounds 3] [--only NAME ...] [--out results/speed/kernels.json]

In each round ``mtl bench train`` measures every setting below with torch's operations alone, then with compiled
kernels. Needs a quiet machine and gcc.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SETTINGS: dict[str, tuple[str, int, str, int]] = {
    # name: tasks, rows an update, precision, timed updates
    "sst2_32": ("glue/sst2", 32, "bf16", 40),
    "rte_32": ("glue/rte", 32, "bf16", 12),
    "mixture_32": ("glue", 32, "bf16", 25),
    "sst2_32_fp32": ("glue/sst2", 32, "fp32", 20),
}


def main() -> None:
    """Measure in turn, then compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", nargs="+", choices=list(SETTINGS), default=list(SETTINGS), metavar="NAME")
    parser.add_argument("--out", type=Path, default=Path("results/speed/kernels.json"))
    arguments = parser.parse_args()
    found: dict[str, Any] = {name: {"torch": [], "compiled": [], "ratios": []} for name in arguments.only}
    for _ in range(arguments.rounds):
        for name, rates in found.items():
            torch, compiled = (measure(name, kernels, arguments.data_root) for kernels in ("torch", "compiled"))
            rates["torch"].append(torch)
            rates["compiled"].append(compiled)
            rates["ratios"].append(compiled / torch)
    for name, rates in found.items():
        rates["ratio"] = statistics.median(rates["ratios"])
        print(f"{name}: {rates['ratio']:.2f} ({', '.join(f'{ratio:.2f}' for ratio in rates['ratios'])})")
    arguments.out.parent.mkdir(parents=True, exist_ok=True)
    arguments.out.write_text(json.dumps(found, indent=1) + "\n")


def measure(name: str, kernels: str, data_root: Path) -> float:
    """Real tokens a second of one training."""
    tasks, rows, precision, updates = SETTINGS[name]
    with tempfile.TemporaryDirectory() as directory:
        report = Path(directory, "report.json")
        command = [
            sys.executable, "-m", "mtl", "bench", "train", "glue_minilm", f"tasks=[{tasks}]", f"data.root={data_root}",
            f"training.rows_per_update={rows}", f"training.precision={precision}", f"training.kernels={kernels}",
            "--pairs", "1", "--updates", str(updates), "--json", str(report),
        ]  # fmt: skip
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        return float(json.loads(report.read_text())["mtl"]["real_tokens_per_second"])


if __name__ == "__main__":
    main()

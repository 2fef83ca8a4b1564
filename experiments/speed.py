"""Speed of training beside Hugging Face's Trainer on real rows: every measurement, then one table and a picture.

    python experiments/speed.py DATA_ROOT [--out results/speed] [--only NAME ...]

Runs ``mtl bench train`` once for each measurement below (what is measured already is kept) and writes its figures to
``NAME.json``; then ``summary.md`` and ``speed.svg`` from all figures there. Needs a quiet machine, a checkout that
nobody changes meanwhile, and ``accelerate``.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

TUNED, DEFAULT = "hf-tuned", "hf-default"
MEASUREMENTS: dict[str, tuple[str, int, int, str]] = {
    # name: tasks, rows an update, timed updates, peer
    "rte_32": ("glue/rte", 32, 12, TUNED),
    "sst2_32": ("glue/sst2", 32, 40, TUNED),
    "mixture_32": ("glue", 32, 25, TUNED),
    "rte_128": ("glue/rte", 128, 5, TUNED),
    "sst2_128": ("glue/sst2", 128, 15, TUNED),
    "sst2_32_default": ("glue/sst2", 32, 6, DEFAULT),
    "rte_32_default": ("glue/rte", 32, 4, DEFAULT),
    "mixture_128": ("glue", 128, 8, TUNED),
    "qnli_32": ("glue/qnli", 32, 15, TUNED),
    "qnli_128": ("glue/qnli", 128, 5, TUNED),
}
COLUMNS = ("measurement", "mtl tokens/s", "mtl MFU", "peer", "peer tokens/s", "peer MFU", "ratios", "median")


def main() -> None:
    """Measure what is missing, then summarise."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data_root", type=Path)
    parser.add_argument("--out", type=Path, default=Path("results/speed"))
    parser.add_argument("--only", nargs="+", choices=list(MEASUREMENTS), default=list(MEASUREMENTS), metavar="NAME")
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    for name in arguments.only:
        if not (arguments.out / f"{name}.json").is_file():
            measure(name, arguments.data_root, arguments.out)
    found = {
        name: json.loads((arguments.out / f"{name}.json").read_text())
        for name in MEASUREMENTS
        if (arguments.out / f"{name}.json").is_file()
    }
    summary = summarise(found)
    (arguments.out / "summary.md").write_text(summary)
    draw(found, arguments.out / "speed.svg")
    print(summary, end="")


def measure(name: str, data_root: Path, out: Path) -> None:
    """One call of ``mtl bench train``, three pairs of sections."""
    tasks, rows, updates, peers = MEASUREMENTS[name]
    command = [
        sys.executable, "-m", "mtl", "bench", "train", "glue_minilm", f"tasks=[{tasks}]", f"data.root={data_root}",
        f"training.rows_per_update={rows}", "--against", peers, "--pairs", "3", "--updates", str(updates),
        "--json", str(out / f"{name}.json"),
    ]  # fmt: skip
    print(name, flush=True)
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def summarise(found: Mapping[str, Any]) -> str:
    """A Markdown table, a line for each measurement and peer."""
    lines = ["| " + " | ".join(COLUMNS) + " |", "|" + "---|" * len(COLUMNS)]
    for name, figures in found.items():
        ours = figures["mtl"]
        for peer, theirs in figures["against"].items():
            cells: Sequence[str] = (
                name,
                f"{ours['real_tokens_per_second']:,.0f}",
                f"{ours['mfu']:.1%}",
                peer,
                f"{theirs['real_tokens_per_second']:,.0f}",
                f"{theirs['mfu']:.1%}",
                ", ".join(f"{ratio:.2f}" for ratio in theirs["ratios"]),
                f"{theirs['ratio']:.2f}",
            )
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def draw(found: Mapping[str, Any], path: Path) -> None:
    """Real tokens a second of both sides, and the ratio over each pair of bars."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    names = [name for name in found if TUNED in found[name]["against"]]
    ours = [found[name]["mtl"]["real_tokens_per_second"] for name in names]
    theirs = [found[name]["against"][TUNED]["real_tokens_per_second"] for name in names]
    with plt.rc_context({"font.size": 8, "svg.hashsalt": "speed"}):
        figure, axes = plt.subplots(figsize=(6.8, 2.6))
        places = range(len(names))
        axes.bar([place - 0.2 for place in places], ours, 0.4, label="mtl", color="#0072B2")
        axes.bar([place + 0.2 for place in places], theirs, 0.4, label="Trainer, tuned", color="#E69F00")
        for place, name in zip(places, names, strict=True):
            ratio = found[name]["against"][TUNED]["ratio"]
            axes.text(place, max(ours[place], theirs[place]), f"{ratio:.2f}", ha="center", va="bottom")
        axes.set_xticks(list(places), [name.replace("_", "\n") for name in names])
        axes.set_ylabel("real tokens a second")
        axes.set_title("Training MiniLM; over the bars the median ratio", fontsize=8)
        axes.legend(frameon=False)
        axes.spines[["top", "right"]].set_visible(False)
        figure.tight_layout()
        figure.savefig(path, metadata={"Date": None})
        plt.close(figure)


if __name__ == "__main__":
    main()

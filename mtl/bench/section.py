"""One section of a measurement, alone in a process: `python -m mtl.bench.section REQUEST ANSWER`, both JSON files.

Each section gets a process of its own, so that none inherits another's memory, threads, caches or global state.
"""

import importlib
import sys
import time
from pathlib import Path
from typing import get_args

from mtl.bench.records import Answer, Failure, Peer, Request
from mtl.config.load import validate_config
from mtl.errors import MtlError


def main(argv: list[str]) -> None:
    """Carry out the request in the first file and write the answer to the second."""
    request = Request.model_validate_json(Path(argv[0]).read_bytes())
    for module in request.plugins:
        importlib.import_module(module)
    try:
        answer = perform(request)
    except MtlError as error:
        answer = Answer(failure=Failure(message=str(error), exit_code=error.exit_code))
    Path(argv[1]).write_text(answer.model_dump_json(), encoding="utf-8")


def perform(request: Request) -> Answer:
    """Measure one section in this process."""
    from mtl.bench.evaluation import measure_evaluation
    from mtl.bench.hugging_face import measure_peer
    from mtl.bench.start import start_training
    from mtl.bench.tokenising import measure_tokenising
    from mtl.bench.train import measure_training
    from mtl.bench.trial import TRIAL_UPDATES, run_trial

    if request.section == "machine":
        from mtl.bench.machine import measure_machine

        return Answer(machine=measure_machine(validate_config(request.config)))
    if request.section in get_args(Peer):
        # Loading the code is no part of the time to the first update, mtl's or a peer's.
        importlib.import_module("transformers.trainer")
    began = time.perf_counter()
    config = validate_config(request.config)
    if request.section == "trial":
        return Answer(trial=run_trial(start_training(config, TRIAL_UPDATES), profile=request.profile))
    if request.section == "mtl":
        start = start_training(config, request.warmup + request.updates)
        return Answer(training=measure_training(start, request.warmup, began))
    if request.section in ("hf-default", "hf-tuned"):
        start = start_training(config, request.warmup + request.updates)
        return Answer(training=measure_peer(start, request.section, request.warmup, began))
    if request.section == "eval":
        start = start_training(config, request.warmup + request.updates)
        return Answer(evaluation=measure_evaluation(start, request.warmup, request.turns))
    return Answer(tokenising=measure_tokenising(config, request.turns))


if __name__ == "__main__":
    main(sys.argv[1:])

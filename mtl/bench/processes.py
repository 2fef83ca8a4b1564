"""Starting a section in a process of its own, and taking its answer or its error."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from mtl.bench.records import Answer, Request
from mtl.errors import ConfigError, DataError, MtlError, NonFiniteError
from mtl.runtime.processes import search_path

Runner = Callable[[Request], Answer]

_ERRORS: dict[int, type[MtlError]] = {kind.exit_code: kind for kind in (ConfigError, DataError, NonFiniteError)}


def run_section(request: Request) -> Answer:
    """The answer of a new Python process, which has ended by then. Raises the MtlError that it raised.

    The process inherits the environment, so the thread settings are those of the command.
    """
    with tempfile.TemporaryDirectory() as directory:
        asked, answered = Path(directory, "request.json"), Path(directory, "answer.json")
        asked.write_text(request.model_dump_json(), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, "-m", "mtl.bench.section", str(asked), str(answered)],
            env=os.environ | {"PYTHONPATH": search_path()},
            # What libraries print there is no result.
            stdout=subprocess.DEVNULL,
            check=False,
        )
        if done.returncode != 0 or not answered.is_file():
            raise MtlError(
                f"the process that measured {request.section} ended with exit code {done.returncode}; what it said is "
                "above. An exit code of -9 is lack of memory in most cases: use fewer rows an update"
            )
        answer = Answer.model_validate_json(answered.read_bytes())
    if answer.failure is not None:
        raise _ERRORS.get(answer.failure.exit_code, MtlError)(answer.failure.message)
    return answer

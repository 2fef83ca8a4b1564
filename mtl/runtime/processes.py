"""What this process may use, where others find this package, and whether one noted down earlier still runs.

The latter is told by its number and its start, since numbers are used again.
"""

import os
from pathlib import Path


def process_start(pid: int) -> int | None:
    """When ``pid`` started, in clock ticks since boot; None where it does not run or the system does not say."""
    fields = _stat_fields(pid)
    return int(fields[19]) if fields else None


def is_running(pid: int, start: int | None) -> bool:
    """Whether the process ``pid`` that started at ``start`` runs on this machine.

    With ``start`` None, or on a system without ``/proc``, only the number is compared. A process that has ended but
    was not yet collected by its parent does not run.
    """
    if pid <= 0:
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        pass  # It runs, under another user.
    fields = _stat_fields(pid)
    if not fields:
        return True
    return fields[0] not in ("Z", "X") and (start is None or int(fields[19]) == start)


def search_path() -> str:
    """PYTHONPATH for a process that is to run this very code, whatever directory it is started in."""
    here = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(path for path in (here, os.environ.get("PYTHONPATH")) if path)


def _stat_fields(pid: int) -> list[str]:
    """The fields of ``/proc/<pid>/stat`` from the third on: the second, the command, may hold blanks and brackets."""
    try:
        text = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return []
    return text.rpartition(")")[2].split()

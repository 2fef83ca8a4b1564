"""Settings that name tasks are checked against the tasks that are trained."""

from collections.abc import Collection, Iterable

from mtl import tasks
from mtl.errors import ConfigError


def check_names(setting: str, named: Iterable[str], trained: Collection[str]) -> None:
    """ConfigError where ``setting`` names a task that is not trained.

    A model of one task (a stage ``single`` or ``finetune``) may share its settings with a joint stage of several, so
    there the names of other known tasks are no error.
    """
    others = sorted(set(named) - set(trained))
    if len(trained) == 1:
        for name in others:
            tasks.get(name)
    elif others:
        raise ConfigError(
            f"{setting} names tasks that are not trained: {', '.join(others)}; "
            f"correct or remove these entries, trained are {', '.join(sorted(trained))}"
        )

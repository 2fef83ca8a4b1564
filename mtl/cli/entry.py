"""The command line's entry: finds the verb, and answers every failure by a message and an exit code."""

import argparse
import sys
from collections.abc import Sequence

from mtl.cli import (
    bench,
    compare,
    doctor,
    evaluate,
    export,
    plan,
    plot,
    predict,
    prepare,
    report,
    run,
    study,
    submit,
    table,
    tasks,
)
from mtl.cli.arguments import Verb
from mtl.cli.messages import messages_on_stderr, printable, rank_mark
from mtl.errors import ConfigError, MtlError
from mtl.runtime.torchrun import launched_ranks, leave_error

VERBS: tuple[Verb, ...] = (
    run.VERB,
    plan.VERB,
    evaluate.VERB,
    predict.VERB,
    submit.VERB,
    export.VERB,
    study.VERB,
    table.VERB,
    report.VERB,
    compare.VERB,
    plot.VERB,
    tasks.VERB,
    doctor.VERB,
    prepare.VERB,
    bench.VERB,
)

_EXIT_CODES = """exit codes: 0 done; 2 config or usage; 3 data or model missing; 4 a loss or metric is not finite;
75 stopped by a signal and 130 by Ctrl-C, a checkpoint saved; 1 anything else"""


def main(argv: Sequence[str] | None = None) -> int:
    """Carry out ``argv`` (the process's own by default) and return the exit code.

    An error that a user can mend is printed without a traceback, of a run on several ranks by the one that it befell;
    any other is a fault of the program and is raised.
    """
    try:
        verb, arguments = _parse(sys.argv[1:] if argv is None else argv)
    except SystemExit as stop:
        return stop.code if isinstance(stop.code, int) else 2
    try:
        if launched_ranks() > 1 and verb is not run.VERB:
            raise ConfigError(f"torchrun started {launched_ranks()} processes, but {verb.name} is the work of one")
        with messages_on_stderr():
            return verb.act(arguments)
    except MtlError as error:
        if not error.reported_elsewhere:
            print(f"{rank_mark()}mtl {verb.name}: {printable(str(error))}", file=sys.stderr)
        leave_error(error)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"{rank_mark()}mtl {verb.name}: interrupted", file=sys.stderr)
        return 130


def _parse(argv: Sequence[str]) -> tuple[Verb, argparse.Namespace]:
    """The verb and its arguments. Each verb has a parser of its own, since only a plain parser lets flags and
    positional arguments mix in any order.
    """
    verbs = {verb.name: verb for verb in VERBS}
    width = max(map(len, verbs))
    top = argparse.ArgumentParser(
        prog="mtl",
        description="Train one shared encoder on many language-understanding tasks at once.",
        epilog="verbs:\n"
        + "\n".join(f"  {verb.name:<{width}}  {verb.summary}" for verb in VERBS)
        + f"\n\nmtl VERB --help tells more about a verb.\n{_EXIT_CODES}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    top.add_argument("verb", metavar="VERB", choices=list(verbs), help=", ".join(verbs))
    top.add_argument("rest", metavar="...", nargs=argparse.REMAINDER, help="configs, key=value, flags")
    found = top.parse_args(list(argv))
    verb = verbs[found.verb]
    parser = argparse.ArgumentParser(
        prog=f"mtl {verb.name}",
        description=verb.summary[0].upper() + verb.summary[1:] + ".",
        epilog=f"example: {verb.example}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    verb.declare(parser)
    return verb, parser.parse_intermixed_args(found.rest)

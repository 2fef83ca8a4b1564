import logging

import pytest

from mtl.cli.messages import messages_on_stderr


def test_messages_go_to_stderr_and_only_inside(capsys: pytest.CaptureFixture[str]) -> None:
    logger = logging.getLogger("mtl")
    before = (logger.level, list(logger.handlers), logger.propagate)
    with messages_on_stderr():
        logger.info("trained %d updates", 5)
        logger.warning("odd rows")
        logger.debug("not shown")
    assert capsys.readouterr() == ("", "trained 5 updates\nwarning: odd rows\n")
    assert (logger.level, logger.handlers, logger.propagate) == before

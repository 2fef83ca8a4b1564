"""Bytes of a text file as text."""

from pathlib import Path

from mtl.errors import DataError

BYTE_ORDER_MARK = b"\xef\xbb\xbf"


def decode(content: bytes, path: Path) -> str:
    """UTF-8 without a byte-order mark; DataError naming the line where it is not UTF-8."""
    try:
        return content.removeprefix(BYTE_ORDER_MARK).decode("utf-8")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise DataError(f"{path}, line {line}: not UTF-8 ({error.reason}); save the file as UTF-8") from error

"""Numbers as CSV files hold them."""


def csv_number(value: float | None) -> str:
    """Twelve significant digits; nothing for None.

    Further digits depend on the order in which a processor and its threads add, and the same study is to give the same
    file on every machine.
    """
    return "" if value is None else f"{float(value):.12g}"

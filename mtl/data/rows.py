"""How many rows the native encoder runs for a number of tokens; no torch, so that plans can ask."""


def row_step(tokens: int) -> int:
    """What rows are a multiple of: 16, of more than a thousand tokens a sixty-fourth to a thirty-second."""
    return max(16, 1 << max(0, tokens.bit_length() - 6))


def filled_rows(tokens: int) -> int:
    """Rows for so many tokens, one more than those at least.

    A CPU's libraries compile products for every size anew, which takes longer and more memory than some filler; sizes
    that recur are compiled once.
    """
    step = row_step(tokens)
    return (tokens // step + 1) * step

"""The gradient of a large table of embeddings, most of whose rows are zero: kept from update to update.

Reference: ``aten.embedding_dense_backward``, which clears the whole table each time. Letters: T tokens, V entries, E
width.
"""

import numpy as np
import torch
from torch import Tensor


class KeptGradient:
    """Gives a table's dense gradient (V, E), and takes it back to clear the rows that were touched, not all of them.

    One gradient is out at a time: whoever asks for another before :meth:`take_back` gets a new one. Nothing but what is
    asked for here may be added to it in place: other rows would neither be counted nor cleared. On a GPU, where the
    rows would be added in no fixed order, all of them are new.
    """

    def __init__(self, table: Tensor) -> None:
        self.table = table
        self._spare: Tensor | None = None
        self._lent: Tensor | None = None
        self._touched: list[Tensor] = []

    def of(self, rows: Tensor, ids: Tensor) -> Tensor:
        """The gradient whose row ``ids[t]`` is the sum of all ``rows[t]`` (T, E) with these ids (T,)."""
        if rows.device.type != "cpu":
            return scattered(rows, ids, self.table.shape[0])
        # Rows of a second gradient may be added to the one that is out.
        self._touched.append(ids)
        if self._lent is not None:
            return scattered(rows, ids, self.table.shape[0])
        self._lent, self._spare = self._spare, None
        if self._lent is None:
            self._lent = rows.new_zeros(self.table.shape)
        # Another tensor on the same memory: autograd would copy one that is held elsewhere.
        return self._lent.index_add_(0, ids, rows).detach()

    def touched(self) -> Tensor | None:
        """The rows (in rising order) whose gradient may differ from zero; None where that cannot be known."""
        if not self._is_out():
            return None
        # By numpy: torch's own way to find them is one that makes a host wait for a GPU, and is refused in updates.
        return torch.from_numpy(np.unique(torch.cat(self._touched).numpy()))

    def take_back(self) -> None:
        """Before the table's gradient is dropped: clear it for the next time, if it is the one that was given."""
        if self._is_out():
            assert self._lent is not None
            self._spare = self._lent.index_fill_(0, torch.cat(self._touched), 0.0)
        self._lent = None
        self._touched.clear()

    def _is_out(self) -> bool:
        """Whether the table's gradient is the one that was given: not one that others put in its place."""
        gradient = self.table.grad
        return self._lent is not None and gradient is not None and gradient.data_ptr() == self._lent.data_ptr()


def scattered(rows: Tensor, ids: Tensor, size: int) -> Tensor:
    """A new gradient (size, E): zeros, and the sums of rows (T, E) by their ids (T,), added in a fixed order."""
    if rows.device.type == "cpu":
        return rows.new_zeros(size, rows.shape[1]).index_add_(0, ids, rows)
    gradient: Tensor = torch.ops.aten.embedding_dense_backward(rows, ids, size, -1, False)
    return gradient

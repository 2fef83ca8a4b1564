"""The model: one shared encoder and a head for every task, known by the task's name."""

from collections.abc import Mapping

from torch import Tensor, nn

from mtl.data.batches import PackedBatch
from mtl.models.dropout import DropoutKey
from mtl.models.encoder import Encoder
from mtl.models.heads import Head


class MultitaskModel(nn.Module):
    """Runs the encoder once over a batch that may mix tasks, then each task's head on its own examples."""

    def __init__(self, encoder: Encoder, heads: Mapping[str, nn.Module]) -> None:
        super().__init__()
        self.encoder = encoder
        # Module names may not hold dots; task names may.
        self._heads = nn.ModuleDict({_escape(task): head for task, head in heads.items()})
        self.tasks = tuple(heads)

    def head(self, task: str) -> Head:
        """The head of a task."""
        head: Head = self._heads[_escape(task)]  # type: ignore[assignment]
        return head

    def head_module(self, task: str) -> nn.Module:
        """The same head as a module, for its parameters."""
        return self._heads[_escape(task)]

    def forward(self, batch: PackedBatch, key: DropoutKey | None = None) -> dict[str, Tensor]:
        """Outputs by task, first dimension the task's examples in the batch; ``key`` is None in evaluation."""
        first_only = all(getattr(self.head(task), "first_tokens_only", False) for task in batch.tasks)
        hidden = self.encoder(batch, key, first_only=first_only)
        return {task: self.head(task)(hidden, batch, key) for task in batch.tasks}

    def losses(self, outputs: Mapping[str, Tensor], batch: PackedBatch) -> dict[str, Tensor]:
        """One fp32 loss an example, by task."""
        return {task: self.head(task).losses(logits, batch.targets[task]) for task, logits in outputs.items()}


def _escape(task: str) -> str:
    return task.replace("%", "%25").replace(".", "%2E")

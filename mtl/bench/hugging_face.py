"""The peers: Hugging Face's Trainer on a sequence classifier, as its example sets it and as a good user would."""

import tempfile
import time
from collections.abc import Callable
from typing import Any, cast

import torch
from torch import Tensor

from mtl.bench.memory import forget_peak, peak_memory
from mtl.bench.peer_rows import INPUTS, PeerRows, RecordingCollator, Seen, padded_features, peer_rows, work_of
from mtl.bench.records import Peer, TrainingMeasure
from mtl.bench.start import Start, updates_of
from mtl.errors import ConfigError, MtlError
from mtl.models.load import quiet_transformers
from mtl.stages.models import build_model
from mtl.training.flops import FlopCounter
from mtl.training.schedule import learning_rate_factor
from mtl.training.tracking import synchronise

_HEAD_DROPOUT = ("classifier_dropout", "classifier_dropout_prob", "seq_classif_dropout")
_MEGABATCH = 50


def measure_peer(
    start: Start, peer: Peer, warmup: int, began: float, *, clock: Callable[[], float] = time.perf_counter
) -> TrainingMeasure:
    """Train the peer on mtl's rows, as many updates, the clock running as for mtl.

    ``hf-default`` takes the rows of each update as mtl does, padded to the maximum length, in fp32. ``hf-tuned`` groups
    them by length over the whole training, pads by batch and computes in mtl's precision.
    """
    rows = peer_rows(start)
    with quiet_transformers(), tempfile.TemporaryDirectory() as out:
        trainer = make_trainer(start, peer, rows, out)
        device = trainer.args.device
        watch = StepWatch(warmup, device, clock)
        trainer.add_callback(watch.callback())
        trainer.train()
    memory = peak_memory(device)
    total = updates_of(start)
    if trainer.state.global_step != total:
        raise MtlError(f"{peer} ended after {trainer.state.global_step} updates, not {total}: please report this")
    timed: list[Seen] = trainer.data_collator.seen[warmup:total]
    losses = tuple(float(loss) for loss in trainer.losses[warmup:total])
    return TrainingMeasure(
        updates=total - warmup,
        seconds=watch.end - watch.start,
        rows=sum(len(batch.places) for batch in timed),
        tokens=sum(sum(batch.lengths) for batch in timed),
        padded_tokens=sum(batch.padded_tokens for batch in timed),
        flops=_useful_flops(start, timed, rows),
        losses=losses,
        seconds_to_first_update=watch.first - began,
        peak_memory_bytes=memory,
    )


class StepWatch:
    """Reads the clock after the first update, at the end of the warm-up, and at the end."""

    def __init__(self, warmup: int, device: torch.device, clock: Callable[[], float]) -> None:
        self._warmup, self._device, self._clock = warmup, device, clock
        self.first = self.start = self.end = 0.0

    def after_update(self, done: int, total: int) -> None:
        """To be called after each update, with the number done."""
        if done not in (1, self._warmup, total):
            return
        if done == self._warmup:
            forget_peak(self._device)
        synchronise(self._device)
        now = self._clock()
        self.first = now if done == 1 else self.first
        self.start = now if done == self._warmup else self.start
        self.end = now if done == total else self.end

    def callback(self) -> Any:
        """The same as a callback of Trainer."""
        from transformers import TrainerCallback

        watch = self

        class Callback(TrainerCallback):
            def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
                watch.after_update(state.global_step, state.max_steps)

        return Callback()


def make_trainer(start: Start, peer: Peer, rows: PeerRows, out: str) -> Any:
    """The peer's Trainer, which keeps its ``losses``, and in ``data_collator.seen`` what its batches held."""
    from torch.optim.lr_scheduler import LambdaLR
    from torch.utils.data import SequentialSampler
    from transformers import Trainer

    settings = start.unit.settings
    total = updates_of(start)

    class Recorder(Trainer):
        losses: list[Tensor]

        def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
            def factor(step: int) -> float:
                return learning_rate_factor(min(step, total - 1), total, settings.optimizer)

            self.lr_scheduler = LambdaLR(cast("Any", self.optimizer if optimizer is None else optimizer), factor)
            return self.lr_scheduler

        def compute_loss(self, model: Any, inputs: Any, *arguments: Any, **named: Any) -> Any:
            loss: Any = super().compute_loss(model, inputs, *arguments, **named)
            self.losses.append(loss.detach())
            return loss

        def _get_train_sampler(self, *_: Any) -> Any:
            return SequentialSampler(features)

    features, collator = _features_and_collator(start, peer, rows)
    trainer: Any = Recorder(
        model=peer_model(start, rows),
        args=_arguments(start, peer, rows, out),
        train_dataset=features,
        data_collator=cast("Any", collator),
    )
    trainer.losses = []
    return trainer


def _features_and_collator(start: Start, peer: Peer, rows: PeerRows) -> tuple[list[dict[str, Any]], RecordingCollator]:
    from transformers import DataCollatorWithPadding, default_data_collator

    tokenizer = start.context.tokenizer.hugging_face
    kept = [name for name in INPUTS if name in {*tokenizer.model_input_names, "attention_mask"}]
    if peer == "hf-default":
        longest = start.context.config.data.max_length
        features = padded_features(rows, lambda inputs: tokenizer.pad(inputs, padding="max_length", max_length=longest))
        return features, RecordingCollator(default_data_collator, kept)
    lengths = [len(feature["input_ids"]) for feature in rows.features]
    grouped = [rows.features[place] for place in grouped_order(lengths, rows.per_update, start.context.config.seed)]
    # Tensor cores want lengths that are multiples of eight.
    multiple = 8 if start.hardware.device.type == "cuda" else None
    return grouped, RecordingCollator(DataCollatorWithPadding(tokenizer, pad_to_multiple_of=multiple), kept)


def grouped_order(lengths: list[int], per_update: int, seed: int) -> list[int]:
    """Places in the order of Trainer's ``group_by_length``, its batches shuffled; those that fill none come last.

    The grouping is that of a long training, whose batches are cut from fifty sorted together; of itself it would group
    a training of few updates less. Shuffled, since a measured part of sorted batches would be unlike the whole.
    """
    from transformers.trainer_pt_utils import get_length_grouped_indices

    generator = torch.Generator().manual_seed(seed)
    order: list[int] = get_length_grouped_indices(  # type: ignore[no-untyped-call]
        lengths, per_update, mega_batch_mult=_MEGABATCH, generator=generator
    )
    whole = len(order) // per_update
    batches = [order[batch * per_update :][:per_update] for batch in torch.randperm(whole, generator=generator)]
    return [place for batch in batches for place in batch] + order[whole * per_update :]


def _arguments(start: Start, peer: Peer, rows: PeerRows, out: str) -> Any:
    from transformers import TrainingArguments

    settings, device = start.unit.settings.optimizer, start.hardware.device
    if device.index:
        raise ConfigError(
            f"training.device={device}: Trainer takes the first GPU; set training.device=cuda and choose the GPU by "
            "CUDA_VISIBLE_DEVICES"
        )
    tuned = peer == "hf-tuned"
    arguments = TrainingArguments(
        output_dir=out,
        max_steps=updates_of(start),
        per_device_train_batch_size=rows.per_update,
        learning_rate=settings.learning_rate,
        weight_decay=settings.weight_decay,
        adam_beta1=settings.beta1,
        adam_beta2=settings.beta2,
        adam_epsilon=settings.epsilon,
        max_grad_norm=settings.clip_norm or 0.0,
        optim="adamw_torch_fused",
        bf16=tuned and start.precision == "bf16",
        use_cpu=device.type == "cpu",
        seed=start.context.config.seed,
        remove_unused_columns=False,
        dataloader_drop_last=True,
        dataloader_num_workers=0,
        # Reading the loss at every update to filter it would make the host wait for a GPU.
        logging_nan_inf_filter=not tuned,
        logging_strategy="no",
        save_strategy="no",
        eval_strategy="no",
        report_to=[],
        disable_tqdm=True,
    )
    # Of several GPUs one is used, as by mtl; Trainer would spread every batch over all of them.
    arguments._n_gpu = min(1, arguments.n_gpu)
    return arguments


def peer_model(start: Start, rows: PeerRows) -> Any:
    """A classifier as transformers builds it, with the encoder weights that mtl starts from and its dropout rates."""
    from transformers import AutoModelForSequenceClassification

    loaded, unit = start.context.initial.loaded, start.unit
    # A copy without mtl's own attention, so that transformers chooses its default.
    config = type(loaded.encoder.model.config).from_dict(loaded.encoder.model.config.to_dict())
    config.num_labels = rows.outputs
    config.problem_type = "regression" if rows.regression else "single_label_classification"
    for name in _HEAD_DROPOUT:
        if hasattr(config, name):
            setattr(config, name, getattr(unit.heads[unit.tasks[0]], "dropout", 0.0))
    with torch.random.fork_rng(devices=[]):
        torch.default_generator.manual_seed(start.context.config.seed)
        model: Any = AutoModelForSequenceClassification.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32
        )
    found = model.base_model.load_state_dict(loaded.encoder.model.state_dict(), strict=False)
    missing = [name for name in found.missing_keys if not name.startswith("pooler")]
    if missing or found.unexpected_keys:
        raise MtlError(
            f"{type(model).__name__} does not take the weights of mtl's encoder; they differ in "
            f"{[*missing, *found.unexpected_keys][:5]}. Measure this encoder without --against"
        )
    pooler = getattr(model.base_model, "pooler", None)
    if pooler is not None and loaded.pooler is not None:
        pooler.dense.load_state_dict(loaded.pooler)
    return model


def _useful_flops(start: Start, timed: list[Seen], rows: PeerRows) -> float:
    context, unit = start.context, start.unit
    specs = [context.data[task].spec for task in unit.tasks]
    counter = FlopCounter.of(build_model(context.initial.loaded, specs, unit.heads, context.config.seed))
    return counter.training(work_of(timed, rows.tasks))

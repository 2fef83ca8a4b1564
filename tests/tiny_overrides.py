"""Settings of a run so small that its training takes moments: what the tests of whole runs and of `mtl bench` share."""

TINY = (
    "encoder.kind=scratch",
    "encoder.tokenizer=mini",
    "encoder.positions=64",
    "encoder.dropout=0.1",
    "encoder.layers=1",
    "encoder.width=16",
    "encoder.attention_heads=2",
    "encoder.feed_forward=32",
    "data.max_train_rows=60",
    "training.rows_per_update=8",
    "training.threads=1",
    "training.precision=fp32",
    "optimizer.learning_rate=1e-3",
)

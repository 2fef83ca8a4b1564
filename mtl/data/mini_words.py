"""The words of the tokenizer of the mini tasks, in the order of their numbers."""

SPECIAL_WORDS = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}


def mini_words() -> tuple[str, ...]:
    """Special words first."""
    from mtl.tasks.mini import vocabulary

    return (*SPECIAL_WORDS.values(), *vocabulary())

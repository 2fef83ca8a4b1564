"""Our own forward and backward pass for BERT-shaped encoders, on Hugging Face's modules and weights."""

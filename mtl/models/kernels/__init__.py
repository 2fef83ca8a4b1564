"""Kernels in C for what an encoder's layer does between its matrix products, on a CPU."""

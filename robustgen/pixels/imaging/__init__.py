"""Pixel arrays and operations on them: decoding, geometry, kernels, video, and one module per effect."""

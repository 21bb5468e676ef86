"""Arrays of pixels and what is done to them: decoding, geometry, kernels, effects, video, similarity."""

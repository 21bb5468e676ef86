"""Arrays of pixels and what is done to them: decoding, geometry, kernels, an effect a module, video."""

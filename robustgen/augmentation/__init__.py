"""Augmentations for training; unlike the corruptions, they are not what a model is scored on."""

# What dataset.json calls a set of AugMix copies.
TITLE = "AugMix"

"""Augmentations for training; unlike corruptions, they are not used for scoring."""

# Name of a set of AugMix copies in dataset.json.
TITLE = "AugMix"

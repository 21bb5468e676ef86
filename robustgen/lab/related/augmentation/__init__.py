"""Augmentations for training; unlike corruptions, they are not used for scoring."""

"""Data sets as values: config, plan, work units, records, finished set, and reading its images.

dataset = open_dataset("out/imagenet-c", classes=wnids)
for variant in dataset.variants:
    for images in dataset.batches(variant, 64):
        ...
"""

from robustgen.sets.dataset.opening import open_dataset as open_dataset
from robustgen.sets.formats.base import Dataset as Dataset

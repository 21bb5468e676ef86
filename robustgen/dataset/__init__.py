"""Data sets as values: config, plan, work units, records, finished set, and reading its images.

dataset = open_dataset("out/imagenet-c", classes=wnids)
for arm in dataset.arms:
    for images in dataset.batches(arm, 64):
        ...
"""

from robustgen.dataset.opening import open_dataset as open_dataset
from robustgen.formats import Dataset as Dataset

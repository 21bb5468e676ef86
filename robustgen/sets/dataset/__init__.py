"""Data sets as values: config, plan, work units, records, finished set, and reading its images.

written = open_set("out/imagenet-c", classes=wnids)
for variant in written:
    for images in written.batches(variant, 64):
        ...
"""

from robustgen.sets.dataset.opening import open_set as open_set
from robustgen.sets.formats.base import WrittenSet as WrittenSet

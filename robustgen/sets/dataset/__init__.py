"""Data sets as values: config, plan, work units, records, finished set, and reading its images.

written = open_set("out/imagenet-c", classes=wnids)
for variant in written:
    for images in written.batches(variant, 64):
        ...
"""

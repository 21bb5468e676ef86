"""Benchmark sets to be read: as make-c and make-p wrote them, or published ones as they were downloaded.

    dataset = open_dataset("out/imagenet-c", classes=wnids)
    for arm in dataset.arms:
        for images in dataset.batches(arm, 64):
            ...

Nothing of this depends on a framework; `predicting` reads through it, and so can any other program.
"""

from robustgen.datasets.arrays import Arrays as Arrays
from robustgen.datasets.base import Dataset as Dataset
from robustgen.datasets.base import Labels as Labels
from robustgen.datasets.base import Pixels as Pixels
from robustgen.datasets.base import describe_difference as describe_difference
from robustgen.datasets.base import name_contents as name_contents
from robustgen.datasets.base import parse_arm as parse_arm
from robustgen.datasets.opening import EQUALISED as EQUALISED
from robustgen.datasets.opening import open_dataset as open_dataset
from robustgen.datasets.opening import read_about as read_about
from robustgen.datasets.trees import Tree as Tree

"""Sources of images: folders, labelled folders, Tiny ImageNet, CIFAR and a few built-in photographs.

A source names its images by *keys*, relative POSIX paths ``"<class>/<file name>"``. The key decides the
random stream of an image, so one dataset has the same keys in whichever layout it is stored. Nothing that
lies in a source is trusted: links may not leave it, pickles run no code, archives are not extracted.
"""

from robustgen.sources.base import Source as Source
from robustgen.sources.base import class_of as class_of
from robustgen.sources.cifar import Cifar as Cifar
from robustgen.sources.folder import ImageFolder as ImageFolder
from robustgen.sources.labelled import LabelledFolder as LabelledFolder
from robustgen.sources.opening import KINDS as KINDS
from robustgen.sources.opening import open_source as open_source
from robustgen.sources.photographs import Photographs as Photographs
from robustgen.sources.tiny_imagenet import TinyImageNet as TinyImageNet

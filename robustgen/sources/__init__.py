"""Sources of images: folders, archives, shards, tables, arrays and a few built-in photographs.

A source names its images by *keys*, relative POSIX paths ``"<class>/<file name>"``. The key determines the
random stream of an image, so a data set has the same keys in every layout. Sources are not trusted: links
may not leave them, pickles run no code, archives are not extracted.
"""

from robustgen.sources.base import Source as Source
from robustgen.sources.cifar import Cifar as Cifar
from robustgen.sources.folder import ImageFolder as ImageFolder
from robustgen.sources.folder import Photographs as Photographs
from robustgen.sources.opening import open_source as open_source

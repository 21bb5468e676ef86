"""Built-in photographs for a demonstration without downloads."""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

from robustgen.errors import SourceError
from robustgen.sources.files import FileSource
from robustgen.sources.trees import FolderTree
from robustgen.sources.walk import Found


class Photographs(FileSource):
    """The photographs in scikit-image's wheel, for a demonstration without downloads.

    Raises
    ------
    SourceError
        scikit-image or a photograph is missing; the message says how to install them.
    """

    NAMES = (
        "astronaut.png",
        "chelsea.png",
        "coffee.png",
        "hubble_deep_field.jpg",
        "ihc.png",
        "motorcycle_left.png",
        "retina.jpg",
        "rocket.jpg",
    )

    def __init__(self) -> None:
        # Look up the package without importing it, which takes a second.
        spec = importlib.util.find_spec("skimage")
        folders = [Path(folder) / "data" for folder in (spec and spec.submodule_search_locations) or ()]
        complete = [folder for folder in folders if all((folder / name).is_file() for name in self.NAMES)]
        if not complete:
            raise SourceError(
                f"scikit-image with its photographs ({', '.join(self.NAMES)}) is missing: "
                "pip install 'robustgen[demo]'"
            )
        super().__init__(FolderTree(complete[0]))

    def _scan(self) -> Iterator[Found]:
        for name in self.NAMES:
            yield f"{Path(name).stem}/{name}", None

    def _name(self, key: str) -> str:
        return key.rpartition("/")[2]

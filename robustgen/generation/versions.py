"""The versions of the libraries that decide the bytes of an output."""

from importlib import metadata

from robustgen import __version__
from robustgen.imaging import video
from robustgen.imaging.jpeg import Libjpeg, libjpeg_version
from robustgen.imaging.opencv import cv2


def list_versions(*, with_video: bool, libjpeg: Libjpeg = "turbo") -> dict[str, str]:
    """Library name to version, of those that a changed pixel or byte could come from.

    `libjpeg` is the one that encodes; the one that reads source images comes with Pillow.
    """
    versions = {
        "robustgen": __version__,
        "numpy": metadata.version("numpy"),
        "scipy": metadata.version("scipy"),
        "opencv": str(cv2.__version__),
        "pillow": metadata.version("pillow"),
        "libjpeg": libjpeg_version(libjpeg),
    }
    return versions | {"video": video.build()} if with_video else versions

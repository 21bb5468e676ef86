"""The versions of the libraries that decide the bytes of an output."""

from importlib import metadata

from PIL import features

from robustgen import __version__
from robustgen.imaging import video
from robustgen.imaging.opencv import cv2


def list_versions(*, with_video: bool) -> dict[str, str]:
    """Library name to version, of those that a changed pixel or byte could come from."""
    versions = {
        "robustgen": __version__,
        "numpy": metadata.version("numpy"),
        "scipy": metadata.version("scipy"),
        "opencv": str(cv2.__version__),
        "pillow": metadata.version("pillow"),
        "libjpeg": str(features.version("jpg")),
    }
    return versions | {"video": video.build()} if with_video else versions

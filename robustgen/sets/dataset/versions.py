"""Versions of the libraries that decide the bytes of every output; writers add those of their formats."""

from importlib import metadata

from robustgen.files.version import __version__
from robustgen.pixels.imaging.jpeg import Libjpeg, decoder_version, libjpeg_version
from robustgen.pixels.imaging.third_party import cv2


def list_versions(libjpeg: Libjpeg = "turbo") -> dict[str, str]:
    """Return the name and version of each library that can change a pixel.

    With the `libjpeg` "turbo", files are encoded by OpenCV's and source images decoded by Pillow's.
    """
    return {
        "robustgen": __version__,
        "numpy": metadata.version("numpy"),
        "scipy": metadata.version("scipy"),
        "opencv": str(cv2.__version__),
        "pillow": metadata.version("pillow"),
        "libjpeg": libjpeg_version(libjpeg),
        "jpeg_decoder": decoder_version(libjpeg),
    }

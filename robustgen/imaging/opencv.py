"""OpenCV, imported in one place: on one thread, and with a remedy where it cannot load."""

from robustgen.errors import MissingDependencyError

try:
    import cv2
except ImportError as error:
    raise MissingDependencyError(
        f"OpenCV cannot be imported ({error}). Either install the system libraries it asks for "
        "(Debian: apt-get install libgl1 libglib2.0-0), or use the build that needs none: "
        "pip uninstall -y opencv-python && pip install --force-reinstall --no-deps opencv-python-headless"
    ) from error

# Workers are processes: more threads inside each would only fight over the same cores.
cv2.setNumThreads(1)

__all__ = ["cv2"]

"""Single import of OpenCV: on first use, with one thread, and with advice if it cannot be loaded."""

from functools import cache
from typing import TYPE_CHECKING, Any

from robustgen.errors import MissingDependencyError

if TYPE_CHECKING:
    import cv2
else:

    class _OpenCv:
        """Placeholder of the module `cv2` until first use."""

        def __getattr__(self, name: str) -> Any:
            value = getattr(_import_opencv(), name)
            # Later look-ups find it here.
            setattr(self, name, value)
            return value

    cv2 = _OpenCv()


@cache
def _import_opencv() -> Any:
    try:
        import cv2 as module
    except ModuleNotFoundError as error:
        raise MissingDependencyError(
            "OpenCV is not installed: pip install 'robustgen[opencv]', or opencv-python, or "
            "opencv-contrib-python; any of them, but only one"
        ) from error
    except ImportError as error:
        raise MissingDependencyError(
            f"OpenCV cannot be imported ({error}). Replace it by the build that needs no system libraries: "
            "pip install --force-reinstall --no-deps opencv-python-headless. Or install what the "
            "full build needs (Debian: apt-get install libgl1 libglib2.0-0)"
        ) from error
    # Workers are processes; more threads in each would compete for the same cores.
    module.setNumThreads(1)
    return module


__all__ = ["cv2"]

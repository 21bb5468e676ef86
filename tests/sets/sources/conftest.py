from pathlib import Path

import pytest

from tests.sets.sources.test_trees import NAMES, files_of, put_photos


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five images in three classes; not to be changed."""
    return put_photos(tmp_path_factory.mktemp("photos"), *NAMES)


@pytest.fixture(scope="session")
def files(folder: Path) -> dict[str, bytes]:
    """Name to content of the files in `folder`."""
    return files_of(folder)


@pytest.fixture(scope="session")
def png(files: dict[str, bytes]) -> bytes:
    """The content of a PNG file."""
    return files["n01/a.png"]

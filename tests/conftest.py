import pytest
from helpers import cifar_folder, put_photo


@pytest.fixture(scope="session")
def photos(tmp_path_factory):
    """A folder of five small photographs in two classes: three JPEG, one PNG, one of another size."""
    root = tmp_path_factory.mktemp("photos")
    put_photo(root / "cat" / "a.JPEG", seed=1)
    put_photo(root / "cat" / "b.jpg", seed=2)
    put_photo(root / "cat" / "c.png", seed=3)
    put_photo(root / "dog" / "a.JPEG", seed=4)
    put_photo(root / "dog" / "d.JPEG", height=50, width=33, seed=5)
    return root


@pytest.fixture(scope="session")
def cifar(tmp_path_factory):
    """A CIFAR-10 folder of 20 images, with its images and labels."""
    return cifar_folder(tmp_path_factory.mktemp("cifar"))

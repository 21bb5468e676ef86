"""Sets and sources of the tests of other rooms, which this wing's commands read."""

from tests.lab.models.test_preprocessing import set_c  # noqa: F401
from tests.sets.dataset.test_clips import clips, made  # noqa: F401
from tests.sets.dataset.test_descriptions import load  # noqa: F401
from tests.sets.dataset.test_detection import cityscapes, turned  # noqa: F401
from tests.sets.dataset.test_schemas import source  # noqa: F401
from tests.sets.formats.test_shards import sets  # noqa: F401
from tests.sets.sources.test_published import chest  # noqa: F401

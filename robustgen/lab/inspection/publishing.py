"""Last step before a set is published: the user's own fields in `croissant.json`."""

import hashlib
from collections.abc import Mapping
from datetime import date
from typing import Any

from robustgen.files.set_files import MANIFEST_SUMS, check_folder
from robustgen.files.storage import open_store
from robustgen.files.text_files import read_sums
from robustgen.lab.inspection.verify import read_finished
from robustgen.sets.dataset.descriptions import CROISSANT, add_fields, encode_croissant, make_croissant
from robustgen.sets.dataset.manifest import encode_sums


def describe_set(root: str, fields: Mapping[str, Any]) -> dict[str, Any]:
    """Write `croissant.json` of the finished set at `root` with the user's own fields, and return it.

    Parameters
    ----------
    root : path or URL
    fields : mapping
        Values of `descriptions.USER_FIELDS`; dates may be date objects.

    Raises
    ------
    SourceError
        There is no set.
    OutputError
        The set is not finished.
    ConfigError
        A field cannot be set.
    """
    store = open_store(root)
    check_folder(store)
    texts = {name: value.isoformat() if isinstance(value, date) else value for name, value in fields.items()}
    content = add_fields(make_croissant(read_finished(store), store), texts)
    data = encode_croissant(content)
    sums = read_sums(store.read(MANIFEST_SUMS)) | {CROISSANT: hashlib.sha256(data).hexdigest()}
    store.put(CROISSANT, data)
    store.put(MANIFEST_SUMS, encode_sums(sums))
    return content

"""Ledger of a set, which also knows the plans that were executed in it.

    .robustgen/settings.json, records/, claims/, finished: see `robustgen.files.ledger`
    .robustgen/plans/<number>-<digest>.json  the content of dataset.json for each plan executed here
    .robustgen/source-index         listing of the source's archives, see `robustgen.sets.sources`

If the folders at the root of an output are classes, a state folder would count as a class too. The ledger of
the output ``icons`` is then the folder ``.icons.robustgen`` next to it.
"""

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from itertools import compress
from typing import Any, Final

from robustgen.errors import OutputError
from robustgen.files.ledger import Ledger, digest, find_differences, refuse_differences, to_json
from robustgen.files.set_files import STATE
from robustgen.files.storage import Store, open_store

COMPANIONS: Final = "companions"
"""Name of the record of the files about a set as a whole, and of its refused images."""


class Coverage(dict[str, frozenset[str]]):
    """Images to the folders of their attempted variants; images with the same variants share one object."""

    def __init__(self) -> None:
        super().__init__()
        self._known: dict[frozenset[str], frozenset[str]] = {}

    def add(self, keys: Iterable[str], folders: Iterable[str]) -> None:
        """Add the variants in `folders` to all `keys`."""
        given = frozenset(folders)
        for key in keys:
            every = self.get(key, given) | given
            self[key] = self._known.setdefault(every, every)


def find_folder(path: str, folders: Container[str]) -> str:
    """Return which of the `folders`, at most two levels deep, contains the file at `path`; else ""."""
    outer, _, rest = path.partition("/")
    inner, slash, _ = rest.partition("/")
    if slash and f"{outer}/{inner}" in folders:
        return f"{outer}/{inner}"
    return outer if rest and outer in folders else ""


def name_mirror(folder: str) -> str:
    """Return the name of the record of the mirrored files in the `folder` of a variant."""
    return f"mirror-{folder.replace('/', '-')}"


class SetLedger(Ledger):
    """Ledger of the set `root`. Picklable.

    Parameters
    ----------
    root : Store
    beside : bool
        Whether to create a new ledger next to the output rather than in it.
    """

    def __init__(self, root: Store, *, beside: bool = False) -> None:
        inside, sibling = root.folder(STATE), _open_beside(root)
        exist = inside.map(lambda each: each.exists("settings.json"), (inside, sibling))
        found = next(compress((inside, sibling), exist), None)
        super().__init__(root, store=found or (sibling if beside else inside))

    @property
    def index_place(self) -> tuple[Store, str]:
        """Return where to cache the listing of the source for workers and later runs."""
        return self.store, "source-index"

    def add_plan(self, manifest: Mapping[str, Any], parameters: Mapping[str, Any]) -> None:
        """Write the plan of this run, unless it is part of another.

        Raises
        ------
        OutputError
            The output was created with other parameters.
        """
        plan = json.loads(json.dumps({"manifest": manifest, "parameters": parameters}))
        held = self.plans()
        self._compare_parameters(held, plan)
        # The latest plan tells how many images the source has now.
        is_other = not held or held[-1]["manifest"]["source"]["images"] != manifest["source"]["images"]
        if not is_other and any(_is_part(manifest, each["manifest"]) for each in held):
            return
        data = to_json(plan)
        path = f"plans/{len(held):04d}-{digest(data)}.json"
        self.store.put(path, data)
        try:
            # If two runs start at once, at least one sees the plan of the other.
            self._compare_parameters(self.plans(), plan)
        except OutputError:
            self.store.delete(path)
            raise

    def _compare_parameters(self, plans: Sequence[dict[str, Any]], plan: Mapping[str, Any]) -> None:
        wanted = plan["parameters"]
        for parameters in (each["parameters"] for each in plans):
            # Variants can be added.
            both = parameters.keys() & wanted.keys()
            held, now = ({name: each[name] for name in both} for each in (parameters, wanted))
            refuse_differences(self.root.location, find_differences(held, now, "parameters"))

    def plans(self) -> list[dict[str, Any]]:
        """Return the plans started here, the latest last, each with ``"manifest"`` and ``"parameters"``.

        A damaged plan does not count; the same command writes it again.

        Raises
        ------
        AnotherSetError
            The settings are damaged, or another version wrote the state.
        """
        # The settings tell whether this version can read the plans.
        _, paths = self.store.map(lambda read: read(), (self.settings, self._list_plans))
        contents = zip(paths, self.store.map(self.store.read, paths), strict=True)
        return [json.loads(data) for path, data in contents if path.endswith(f"-{digest(data)}.json")]

    def _list_plans(self) -> list[str]:
        return [entry.path for entry in self.store.list("plans")]


def find_largest(plans: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the plan with the most images and variants; the last one of several.

    It describes the set, because other plans are parts of it, unless the source has lost images since.
    """
    there = plans[-1]["manifest"]["source"]["images"] if plans else 0
    held = [plan for plan in plans if plan["manifest"]["images"] <= there]
    return max(
        reversed(held or plans),
        key=lambda plan: (plan["manifest"]["images"], len(plan["manifest"]["variants"])),
    )


def _is_part(manifest: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    """Return whether the plan of `manifest` has no images and variants that the `other` one lacks."""
    ours, theirs = manifest["source"], other["source"]
    # The digest covers only the images of a plan, so a part has another digest.
    is_smaller = manifest["images"] < other["images"] and ours["images"] == theirs["images"]
    has_same = manifest["images"] == other["images"] and ours == theirs
    return (is_smaller or has_same) and {*manifest["variants"]} <= {*other["variants"]}


def _open_beside(root: Store) -> Store:
    parent, _, name = root.location.rpartition("/")
    place = f"{parent}/.{name}{STATE}"
    store = open_store(place)
    if store.is_local and store.location != place:
        raise OutputError(f"{place}: is a link; the state of an output needs a real folder")
    return store

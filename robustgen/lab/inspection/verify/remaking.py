"""Comparison of an output with images recreated from its source."""

import random
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustgen.errors import ArgumentError, MissingDependencyError, explain_failure
from robustgen.files.set_files import MANIFEST
from robustgen.files.storage import Store, is_url
from robustgen.lab.inspection.verify.contents import Finding
from robustgen.lab.plans import plan_again
from robustgen.pixels.benchmarks.kinds import CLEAN_VARIANT, IMAGENET_C, TITLES
from robustgen.pixels.imaging.decode import collect_complaints
from robustgen.sets.dataset.manifest import describe, read_errors
from robustgen.sets.dataset.state import OutputState
from robustgen.settings.fields import make_absolute


def remake_images(
    store: Store, manifest: Mapping[str, Any], deep: str, source: str | None = None
) -> tuple[int, list[Finding]]:
    """Recreate a random sample of images, or all; return their number and the differences.

    Parameters
    ----------
    store : Store
    manifest : mapping
    deep : str
        Number of images, or ``"all"``.
    source : path or URL, optional
        Current location of the source images.

    Raises
    ------
    ArgumentError
        `deep` is invalid, or the location of the source is neither in the state nor given as `source`.
    SourceError
        The source cannot be found.
    """
    plan = _plan_again(store, manifest, source)
    chosen = _choose_sample(list(enumerate(plan.keys)), deep)
    failed = {(entry["key"], entry.get("variant", "")) for entry in read_errors(store)[0]}
    differing = [
        finding for index, key in chosen for finding in _compare_image(store, plan, index, key, failed)
    ]
    return len(chosen), differing


def _plan_again(store: Store, manifest: Mapping[str, Any], source: str | None) -> Any:
    state = OutputState(store)
    # Only the state names folders of this machine; dataset.json is published.
    config = describe(state)["config"] if state.exists else manifest["config"]
    held = config.get("source")
    if held and not source and not is_url(held) and not Path(held).is_absolute():
        raise ArgumentError(f"--deep: {MANIFEST} does not locate {held!r}; pass it with --source")
    content = config | {"output": store.location, "source": make_absolute(source) if source else held}
    name = f"{store.location}/{MANIFEST}"
    if manifest["kind"] not in TITLES:
        return plan_again(manifest["kind"], content, name)
    variants = tuple(filter(None, map(TITLES[manifest["kind"]].variant_in, manifest["variants"])))
    if manifest["kind"] == IMAGENET_C.title and {*variants} - {CLEAN_VARIANT}:
        # Another run may have added corruptions with more needs, such as tiles of other sizes.
        content["corruptions"] = [
            *dict.fromkeys(variant.name for variant in variants if variant != CLEAN_VARIANT)
        ]
        content["severities"] = sorted({variant.level for variant in variants if variant != CLEAN_VARIANT})
    return replace(plan_again(manifest["kind"], content, name), variants=variants)


def _choose_sample(numbered: list[tuple[int, str]], deep: str) -> list[tuple[int, str]]:
    if deep == "all":
        return numbered
    if not deep.isdecimal() or int(deep) < 1:
        raise ArgumentError(f"--deep: must be a number of images, or all, not {deep!r}")
    # The seed comes from the system, because a new sample each time finds more.
    return random.sample(numbered, min(int(deep), len(numbered)))


def _compare_image(
    store: Store, plan: Any, index: int, key: str, failed: Collection[tuple[str, str]]
) -> Iterator[Finding]:
    """Yield the differences of one image; those that `failed` before, by key and variant, may fail again."""
    image, shared = None, dict[str, Any]()
    for variant in plan.variants if (key, "") not in failed else ():
        try:
            if image is None:
                # The run that created the set has counted the warnings of decoders.
                with collect_complaints():
                    image = plan.recipe.prepare(plan.source.open(key))
            pixels = plan.recipe.make(variant, key, image, shared)
            for encoded in plan.writer.encoder.encode(variant, key, pixels):
                # The checksums report files that cannot be read.
                with suppress(OSError, ValueError):
                    path, is_same = plan.writer.find_output(store, variant, index, key, encoded)
                    if not is_same:
                        of = f" {key} in {variant.folder}" if plan.writer.file_per != "image" else ""
                        yield Finding("differs", path, f":{of} from what the source gives now")
        except MissingDependencyError:
            raise
        except Exception as error:
            if (key, variant.folder) not in failed:
                yield Finding("differs", key, f": {explain_failure(error, key)}")
            if image is None:
                return

"""Images of an output made anew from its source, and compared with what is there."""

import random
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from robustgen.augmentation import TITLE as AUGMIX
from robustgen.benchmark import TITLES
from robustgen.datasets import EQUALISED
from robustgen.errors import ArgumentError, ImageError, OutputError
from robustgen.generation.config import check
from robustgen.icons import TITLE as ICONS
from robustgen.output.files import MANIFEST
from robustgen.verify.findings import Finding


def remake_images(
    root: Path, manifest: Mapping[str, Any], deep: str, source: Path | None = None
) -> tuple[int, list[Finding]]:
    """Make a random sample of images, or all, once more; return how many, and what differs.

    Parameters
    ----------
    root : Path
    manifest : mapping
    deep : str
        How many images, or ``"all"``.
    source : Path, optional
        Where the source images are now.

    Raises
    ------
    ArgumentError
        `deep` is neither.
    SourceError
        The source is not where it was.
    """
    plan = _plan_anew(root, manifest, source)
    chosen = _choose_sample(list(enumerate(plan.keys)), deep)
    return len(chosen), [
        finding for index, key in chosen for finding in _compare_image(root, plan, index, key)
    ]


def _plan_anew(root: Path, manifest: Mapping[str, Any], source: Path | None) -> Any:
    given = manifest["config"].get("source")
    # What was given may have been relative to a folder that is not the current one.
    held = given if given is None or Path(given).is_absolute() else manifest["source"]["location"]
    content = manifest["config"] | {"output": str(root), "source": str(source.absolute()) if source else held}
    plan = _plan(manifest["kind"], content, str(root / MANIFEST))
    arms = plan.recipe.list_arms(manifest.get("arms", ()))
    return replace(plan, arms=arms or plan.arms)


def _plan(title: str, content: dict[str, Any], name: str) -> Any:
    """The plan of a set of the kind called `title`, made from the choices that the file `name` holds."""
    from robustgen.generation.plan import plan_benchmark

    if title in TITLES:
        return plan_benchmark(check(content, name), TITLES[title].kind)
    if title == EQUALISED:
        from robustgen import preprocess

        return preprocess.plan_clahe(check(content, name, None, preprocess.ClaheChoices))
    if title == ICONS:
        from robustgen.icons import icon_set

        return icon_set.plan_icons(check(content, name, None, icon_set.IconChoices))
    if title == AUGMIX:
        from robustgen.augmentation import training_copies

        return training_copies.plan_copies(check(content, name, None, training_copies.AugMixChoices))
    raise OutputError(f"{name}: kind: sets of the kind {title!r} cannot be made anew")


def _choose_sample(numbered: list[tuple[int, str]], deep: str) -> list[tuple[int, str]]:
    if deep == "all":
        return numbered
    if not deep.isdecimal() or int(deep) < 1:
        raise ArgumentError(f"--deep: must be a number of images, or all, not {deep!r}")
    # Seeded by the system: another sample each time finds more.
    return random.sample(numbered, min(int(deep), len(numbered)))


def _compare_image(root: Path, plan: Any, index: int, key: str) -> Iterator[Finding]:
    shared: dict[str, Any] = {}
    try:
        image = plan.recipe.prepare(plan.source.load(key))
        for arm in plan.arms:
            pixels = plan.recipe.make(arm, key, image, shared)
            for path, detail in plan.writer.differences(root, arm, index, key, pixels):
                yield Finding("differs", path, detail)
    except ImageError as error:
        yield Finding("differs", key, f": {error}")

"""Opening the ingredients of a set: what its corruptions need beside the images."""

from collections.abc import Iterator, Mapping
from typing import Any

from robustgen.errors import ConfigError, UnknownNameError
from robustgen.files.storage import Store
from robustgen.pixels.benchmarks.binding import Bound
from robustgen.pixels.benchmarks.ingredients import Ingredient, IngredientSpec, OpenedIngredient
from robustgen.pixels.benchmarks.kinds import CLEAN, Variant
from robustgen.sets.dataset.recipes import CorruptionRecipe, Recipe
from robustgen.sets.dataset.selection import match_keys
from robustgen.sets.dataset.state import SetLedger
from robustgen.sets.ingredients import OPENERS
from robustgen.sets.sources.base import Source
from robustgen.settings.config import Config


def open_ingredients(
    config: Config,
    recipe: CorruptionRecipe,
    variants: tuple[Variant, ...],
    source: Source,
    keys: tuple[str, ...],
    store: Store,
) -> dict[str, OpenedIngredient]:
    """Open every ingredient that one of the `variants` needs, for the images `keys`; return them by name.

    Raises
    ------
    ConfigError, MissingDependencyError
        An ingredient is missing or cannot be used, or none of the variants needs one that `config` names.
    """
    needing = dict[Ingredient, list[Bound]]()
    for ingredient, bound in _list_needs(recipe, variants):
        needing.setdefault(ingredient, []).append(bound)
    names = [ingredient.name for ingredient in needing]
    for name in config.ingredients:
        if name not in names:
            others = f" (they need {' and '.join(names)})" if names else ""
            raise ConfigError(f"with: {name}: none of the corruptions needs it{others}")
    opened = {}
    for ingredient, users in needing.items():
        place, settings = _read(ingredient, config.ingredients.get(ingredient.name, {}))
        if place is None and ingredient.default == "refused":
            raise ConfigError(
                f"{users[0].operation.name} needs {ingredient.sentence}: "
                f"give --with {ingredient.name}=PLACE, or leave it out"
            )
        every, cache = match_keys(source, config), SetLedger(store).store
        spec = IngredientSpec(
            place, settings, [each.any_parameters() for each in users], source, every, config.libjpeg, cache
        )
        opened[ingredient.name] = OPENERS.get(ingredient.name, ingredient.open)(spec)
        opened[ingredient.name].check(keys)
    return opened


def find_fitting(recipe: Recipe[Any], variants: tuple[Variant, ...]) -> Ingredient | None:
    """Return an ingredient of `variants` that fits one image pixel by pixel, such as depth; None without."""
    return next((each for each, _ in _list_needs(recipe, variants) if each.fits_image), None)


def _list_needs(recipe: Recipe[Any], variants: tuple[Variant, ...]) -> Iterator[tuple[Ingredient, Bound]]:
    """Yield the ingredient of each variant that needs one, and the variant with its constants."""
    if isinstance(recipe, CorruptionRecipe):
        for variant in variants:
            if variant.name != CLEAN and (needs := recipe.bind(variant).operation.needs):
                yield needs, recipe.bind(variant)


def _read(ingredient: Ingredient, given: Mapping[str, Any]) -> tuple[str | None, dict[str, Any]]:
    """Return the place and the checked settings of an ingredient, as `given` in a config."""
    settings = dict[str, Any]()
    for name in given.keys() - {"place"}:
        try:
            if name not in ingredient.settings:
                raise UnknownNameError(f"setting of {ingredient.name}", name, ingredient.settings)
            settings[name] = ingredient.settings[name](given[name])
        except (ValueError, TypeError) as error:
            raise ConfigError(f"with: {ingredient.name}.{name}: {error}") from error
    return given.get("place"), settings

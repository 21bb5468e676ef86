"""Packages of emoji as they are published, with small pictures."""

import json

import numpy as np
from PIL import Image

NAMES = ("2708-fe0f", "1f6e9-fe0f", "1f431", "1f408", "1f44d", "1f44d-1f3fb", "1f600")


def picture(seed, side=24):
    """An opaque patch of a colour of its own on a transparent ground, RGBA."""
    rng = np.random.default_rng(seed)
    pixels = np.zeros((side, side, 4), np.uint8)
    pixels[4:-4, 4:-4] = (*rng.integers(0, 256, 3), 255)
    return Image.fromarray(pixels)


def put(path, image):
    path.parent.mkdir(parents=True, exist_ok=True)
    image.save(path, lossless=True)
    return path


def plain(root, names, seed=0, suffix="png", side=24):
    for i, name in enumerate(names):
        put(root / f"{name}.{suffix}", picture(seed + i, side))
    return root


def describe(root, **package):
    (root / "package.json").write_text(json.dumps(package))
    return root


def datasource(root, style, names, seed=0):
    """A package with the layout of emoji-datasource-<style>."""
    plain(root / "img" / style / "64", names, seed)
    put(root / "img" / style / "sheets" / "32.png", picture(99))
    (root / "emoji.json").write_text("[]")
    return describe(root, name=f"emoji-datasource-{style}", version="16.0.0", license="MIT")


def fluent(root, names, seed=0):
    """A package with the layout of @lobehub/fluent-emoji-3d."""
    plain(root / "assets", names, seed, "webp", side=40)
    return describe(root, name="@lobehub/fluent-emoji-3d", version="1.1.0", license="MIT")

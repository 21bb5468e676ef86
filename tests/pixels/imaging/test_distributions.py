"""Noise drawn the fast way, from a Generator, is distributed as the published formula says."""

import itertools

import numpy as np
import pytest
from scipy.stats import chisquare, norm, poisson

from robustgen import CORRUPTIONS, PERTURBATIONS, corrupt, perturb
from robustgen.pixels.benchmarks.corruptions.noise import (
    gaussian_alias_table,
    impulse_alias_table,
    shot_alias_table,
    speckle_alias_table,
)
from robustgen.pixels.imaging.rng import alias_table

SIDE = 512
VALUES = (0, 1, 40, 128, 200, 254, 255)


# --- the formulas, once more ---------------------------------------------------------------------


def of_truncated(cdf):
    """Chances of 0 .. 255 from the distribution function of x, clipped to [0, 1], times 255, truncated."""
    below = np.concatenate([[0], cdf(np.arange(1, 256) / 255), [1]])
    return np.diff(below)


def gaussian_chances(value, sigma):
    return of_truncated(lambda edge: norm.cdf(edge, value / 255, sigma))


def speckle_chances(value, sigma):
    if value == 0:
        return np.eye(256)[0]
    return of_truncated(lambda edge: norm.cdf(edge, value / 255, value / 255 * sigma))


def shot_chances(value, photons):
    counts = np.arange(20 * photons + 50)
    results = (np.clip(counts / photons, 0, 1) * 255).astype(np.uint8)
    return np.bincount(results, poisson.pmf(counts, value / 255 * photons), minlength=256)


def impulse_chances(value, amount):
    chances = np.eye(256)[value] * (1 - amount)
    chances[[0, 255]] += amount / 2
    return chances


CHANCES = {
    "gaussian_noise": (gaussian_chances, gaussian_alias_table, "sigma"),
    "shot_noise": (shot_chances, shot_alias_table, "photons"),
    "impulse_noise": (impulse_chances, impulse_alias_table, "amount"),
    "speckle_noise": (speckle_chances, speckle_alias_table, "sigma"),
}


def levels_of(name):
    """Every constant published for a noise, as corruption and as perturbation."""
    registries = [registry[name] for registry in (CORRUPTIONS, PERTURBATIONS) if name in registry]
    found = [
        getattr(operation.parameters(level, scale), CHANCES[name][2])
        for operation in registries
        for scale, level in itertools.product((224, 299, 64, 32), operation.levels)
    ]
    return sorted(set(found))


# --- the tables ----------------------------------------------------------------------------------


def implied(table):
    """The chances (256, 256) that an alias table stands for, exactly: 2**32 equally likely draws a row."""
    stay, alias = (table >> 8).astype(np.int64), (table & 255).astype(np.int64)
    draws = stay.copy()
    for row in range(256):
        np.add.at(draws[row], alias[row], 2**24 - stay[row])
    assert (draws.sum(axis=1) == 2**32).all()
    return draws / 2**32


@pytest.mark.parametrize("name", CHANCES)
def test_the_tables_hold_the_chances_of_the_formula(name):
    chances, alias_table, _ = CHANCES[name]
    levels = levels_of(name)
    for level in levels[:: max(1, len(levels) // 6)] + levels[-1:]:
        table = implied(alias_table(level))
        want = np.stack([chances(value, level) for value in range(256)])
        assert np.abs(table - want).max() < 2**-24, level


def random_chances():
    rng = np.random.default_rng(1)
    rows = rng.random((256, 256)) ** 8
    rows[0], rows[1], rows[2, 128:] = 1, np.eye(256)[77], 0
    rows[3] = [1e-12] * 255 + [1]
    rows[4] = 0.5 ** np.arange(256)
    return rows / rows.sum(axis=1, keepdims=True)


def test_alias_tables_are_exact_for_any_chances():
    chances = random_chances()
    table = implied(alias_table(chances))
    assert np.abs(table - chances).max() < 2**-24
    assert (table[1] == np.eye(256)[77]).all()


# --- the draws -----------------------------------------------------------------------------------


def drawn(name, value, level, seed):
    """How often each result comes out for a plain image of `value`."""
    image = np.full((SIDE, SIDE, 3), value, np.uint8)
    return np.bincount(corrupt(image, name, level, edition="imagenet", rng=seed).reshape(-1), minlength=256)


def p_value(counts, chances):
    """Of a chi-square test; results that are hardly to be expected are counted together."""
    expected = chances / chances.sum() * counts.sum()
    rare = expected < 20
    observed = np.append(counts[~rare], counts[rare].sum())
    expected = np.append(expected[~rare], expected[rare].sum())
    if expected[-1] < 1:
        # A sum of its own would be too small to test; that it stays small is told here.
        assert observed[-1] < 15
        observed, expected = observed[:-1], expected[:-1] * (observed[:-1].sum() / expected[:-1].sum())
    return chisquare(observed, expected).pvalue if len(observed) > 1 else float(observed[0] == counts.sum())


@pytest.mark.slow("millions of draws")
@pytest.mark.parametrize("level", [1, 3, 5])
@pytest.mark.parametrize("name", CHANCES)
def test_draws_follow_the_formula(name, level):
    chances, _, parameter = CHANCES[name]
    constant = getattr(CORRUPTIONS[name].parameters(level, 224), parameter)
    for value in VALUES:
        assert p_value(drawn(name, value, level, seed=value), chances(value, constant)) > 1e-4, value


@pytest.mark.slow("millions of draws")
def test_neighbours_channels_and_frames_are_independent():
    source = np.full((96, 97, 3), 128, np.uint8)
    frames = perturb(source, "gaussian_noise", edition="folder", scale=224, difficulty=3, rng=3)
    noise = frames[1:].astype(float) - frames[1:].mean()
    for axis, lag in itertools.product(range(4), (1, 2)):
        one, other = np.split(noise, [lag], axis=axis)[1], np.split(noise, [-lag], axis=axis)[0]
        correlation = (one * other).mean() / noise.var()
        assert abs(correlation) < 5 / np.sqrt(one.size), (axis, lag)

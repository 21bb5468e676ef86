"""The random streams, which must not change unnoticed, and draws that are NumPy's."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from robustgen.pixels.benchmarks.corruptions.noise import impulse_alias_table
from robustgen.pixels.imaging.kernels import draws as draws_loops
from robustgen.pixels.imaging.rng import (
    beta,
    bytes_below,
    dirichlet,
    draw_from_pcg64,
    normal,
    random_bits,
    resample,
    uniform,
)
from robustgen.sets.dataset.recipes import item_rng

PINNED = [8210512383702425809, 3336261286374996146, 857411689141250124]


def test_the_stream_of_an_output_is_pinned():
    draws = item_rng(
        0, "c", "imagenet", "fog", 3, "n01440764/ILSVRC2012_val_00000293.JPEG"
    ).bit_generator.random_raw(3)
    assert draws.tolist() == PINNED


def test_every_part_of_the_identity_makes_another_stream():
    identity = (0, "c", "imagenet", "fog", 3, "a")
    ours = item_rng(*identity).bit_generator.random_raw(4)
    for place, other in enumerate((1, "p", "imagenet-64", "snow", 33, "b")):
        changed = (*identity[:place], other, *identity[place + 1 :])
        assert not np.any(ours == item_rng(*changed).bit_generator.random_raw(4))


BIT_GENERATORS = (np.random.PCG64DXSM, np.random.Philox, np.random.SFC64, np.random.MT19937)


def test_random_bits_are_the_words_of_the_stream():
    """What the bytes of every noise are made of."""
    bits = random_bits(np.random.default_rng(3), 1001, "<u4")
    words = np.random.PCG64(3).random_raw(501)
    assert np.array_equal(bits, words.astype("<u8").view("<u4")[:1001])


@pytest.mark.parametrize("count", [0, 1, 2, 3, 4, 7, 512, 1025, 5000])
def test_our_pcg64_draws_what_numpy_draws_and_stops_where_it_stops(count):
    ours, numpys = np.random.default_rng(count), np.random.default_rng(count)
    # Half a word is left over, which both keep.
    assert ours.integers(9, dtype=np.uint32) == numpys.integers(9, dtype=np.uint32)
    assert np.array_equal(uniform(ours, -1, 3, (count,)), numpys.uniform(-1, 3, (count,)))
    words = np.empty(count, np.uint64)
    draw_from_pcg64(ours, draws_loops.draw_words, words)
    assert np.array_equal(words, numpys.bit_generator.random_raw(count))
    assert ours.bit_generator.state == numpys.bit_generator.state


@pytest.mark.parametrize("bound", [3, 36, 100, 255])
@pytest.mark.parametrize("half", [False, True])
def test_our_bounded_bytes_are_those_of_numpy_and_stop_where_it_stops(bound, half):
    for count in (7, 2048, 2049, 2050, 5000, 200_000):
        ours, numpys = np.random.default_rng(count), np.random.default_rng(count)
        if half:
            assert ours.integers(9, dtype=np.uint32) == numpys.integers(9, dtype=np.uint32)
        drawn = bytes_below(ours, bound, count)
        assert np.array_equal(drawn, numpys.integers(0, bound, count, np.uint8))
        # Of halves of words, so that one that is left over counts.
        assert ours.integers(9, dtype=np.uint32) == numpys.integers(9, dtype=np.uint32)
        assert ours.random() == numpys.random()


@pytest.mark.parametrize("count", [0, 1, 511, 512, 513, 5000, 200_000])
def test_our_normal_deviates_are_those_of_numpy_and_stop_where_it_stops(count):
    """Of 200 000 some fifty lie beyond the outermost strip of the ziggurat, two thousand at edges."""
    ours, numpys = np.random.default_rng(count), np.random.default_rng(count)
    assert ours.integers(9, dtype=np.uint32) == numpys.integers(9, dtype=np.uint32)
    drawn = normal(ours, 0.65, 0.3, (count,))
    # In the tail NumPy takes its C library's logarithm, whose last bit may be another.
    assert np.allclose(drawn, numpys.normal(0.65, 0.3, (count,)), rtol=1e-15, atol=0)
    assert ours.bit_generator.state == numpys.bit_generator.state


@pytest.mark.parametrize(
    "make", [np.random.RandomState, lambda seed: np.random.Generator(np.random.Philox(seed))]
)
def test_draws_of_other_generators_are_their_own(make):
    ours, numpys = make(3), make(3)
    for shape in ((3, 4), (60, 70)):
        assert np.array_equal(normal(ours, 1, 2, shape), numpys.normal(1, 2, shape))
    assert dirichlet(ours, 0.7, 3).tolist() == numpys.dirichlet([0.7] * 3).tolist()
    assert beta(ours, 0.7, 0.7) == numpys.beta(0.7, 0.7)


def test_the_tables_of_the_ziggurats_are_those_of_numpy():
    script = Path(__file__).parents[3] / "scripts" / "read_ziggurat.py"
    assert subprocess.run([sys.executable, str(script), "--check"]).returncode == 0


def draws_equal(draw, numpys_draw, rtol=1e-15):
    """Assert that both draw the same from one seed, and stop at the same place."""
    ours, numpys = np.random.default_rng(7), np.random.default_rng(7)
    # NumPy takes its C library's powers, whose last bit may be another.
    assert np.allclose(draw(ours), numpys_draw(numpys), rtol=rtol, atol=0)
    assert ours.bit_generator.state == numpys.bit_generator.state


@pytest.mark.parametrize("concentration", [0.02, 0.05, 0.1, 0.5, 1, 1.5, 40])
def test_our_dirichlet_weights_are_those_of_numpy(concentration):
    """Concentration 1 takes 4000 exponential deviates, of which some lie in the tail and many at edges.

    Below 0.02 some deviates are so small that NumPy 2.0 has 0 for them, where later releases have not.
    """
    rounds = 400 if concentration == 1 else 30
    draws_equal(
        lambda rng: [dirichlet(rng, concentration, 10) for _ in range(rounds)],
        lambda rng: rng.dirichlet([concentration] * 10, rounds),
        rtol=1e-13,
    )


@pytest.mark.parametrize("shapes", [(0.02, 0.03), (0.3, 0.9), (1, 1), (0.5, 3), (7, 2)], ids=str)
def test_our_beta_deviates_are_those_of_numpy(shapes):
    draws_equal(
        lambda rng: [beta(rng, *shapes) for _ in range(300)],
        lambda rng: rng.beta(*shapes, 300),
        1e-13,
    )


@pytest.mark.parametrize("size", [1, 2, 1023, 1024, 1025, 4001])
def test_noise_from_a_pcg64_is_that_of_its_words(size):
    values = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)
    table = impulse_alias_table(0.3)
    ours, other = np.random.default_rng(size), np.random.default_rng(size)
    want = np.empty_like(values)
    bits = random_bits(other, size, "<u4")
    draws_loops.resample(values, table, bits, np.empty(size, np.uint32), want)
    assert np.array_equal(resample(values, table, ours), want)
    assert ours.bit_generator.state == other.bit_generator.state


@pytest.mark.parametrize("bit_generator", BIT_GENERATORS, ids=lambda each: each.__name__)
def test_random_bits_are_uniform_in_every_position(bit_generator):
    bits = random_bits(np.random.Generator(bit_generator(0)), 100_000, "<u4")
    ones = np.unpackbits(bits.view(np.uint8)).reshape(-1, 32).mean(axis=0)
    assert bits.dtype == np.uint32 and len(bits) == 100_000
    assert np.all(np.abs(ones - 0.5) < 5 * 0.5 / np.sqrt(100_000))

"""LLVM intrinsics that numba lacks."""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from robustgen.pixels.imaging.kernels.compiler import compiled

# --- LLVM intrinsics that numba lacks --------------------------------------------------------------

_FOUR_FLOATS, _FOUR_DOUBLES = ir.VectorType(ir.FloatType(), 4), ir.VectorType(ir.DoubleType(), 4)


def _point_at_vector(context, builder, array_type, array, index, vector):
    first = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), vector.as_pointer())


def _spread_to_vector(builder, value, vector):
    """Return a `vector` with all elements equal to `value`."""
    nought = ir.Constant(ir.IntType(32), 0)
    one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, nought)
    everywhere = ir.Constant(ir.VectorType(ir.IntType(32), vector.count), [0] * vector.count)
    return builder.shuffle_vector(one, one, everywhere)


@intrinsic
def upper_product(context, a, b):
    """Return the upper 64 bits of the product of two uint64."""

    def generate(context, builder, signature, args):
        wide = ir.IntType(128)
        product = builder.mul(builder.zext(args[0], wide), builder.zext(args[1], wide))
        return builder.trunc(builder.lshr(product, ir.Constant(wide, 64)), ir.IntType(64))

    return types.uint64(types.uint64, types.uint64), generate


@intrinsic
def copy_block(context, source, at, target, to):
    """Copy `BLOCK` values from source[at:] to target[to:]; all are read before any is written.

    A loop would check each time whether the two overlap.
    """

    def generate(context, builder, signature, args):
        block = ir.VectorType(context.get_data_type(source.dtype), BLOCK)
        values = builder.load(_point_at_vector(context, builder, source, args[0], args[1], block))
        stored = builder.store(values, _point_at_vector(context, builder, target, args[2], args[3], block))
        values.align = stored.align = source.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


BLOCK = 16


@intrinsic
def mix_pixels(context, pixels, places, weights, line, to):
    """Write the weighted sum of four pixels, computed in double precision, to `line`.

    `pixels` and `line` are float32, flat, with four values per pixel, processed at once. `places` (4) are
    the starts of the pixels, `to` is the start of the sum. Terms are added one after the other.
    """

    def generate(context, builder, signature, args):
        pixels_type, _, _, line_type, _ = signature.args
        pixels, places, weights, line, to = args
        total = None
        for place, weight in zip(
            *(cgutils.unpack_tuple(builder, each) for each in (places, weights)), strict=True
        ):
            four = builder.load(
                _point_at_vector(context, builder, pixels_type, pixels, place, _FOUR_FLOATS), align=4
            )
            share = builder.fmul(
                builder.fpext(four, _FOUR_DOUBLES), _spread_to_vector(builder, weight, _FOUR_DOUBLES)
            )
            total = builder.fadd(total, share) if total else share
        rounded = builder.fptrunc(total, _FOUR_FLOATS)
        builder.store(rounded, _point_at_vector(context, builder, line_type, line, to, _FOUR_FLOATS), align=4)
        return context.get_dummy_value()

    return types.void(pixels, places, weights, line, types.intp), generate


@intrinsic
def add_weighed(context, spline, at, pitch, across, down, weight, total, to):
    """Add `weight` times 4 x 4 weighted pixels of `spline` (float64, flat) to a pixel of `total` (float32).

    Pixels have four values, processed at once. The first is at `at`, with three more lines of `pitch` values
    below; the result is at `to`. `across` and `down` are the four weights of either axis.
    """

    def generate(context, builder, signature, args):
        spline, at, pitch, across, down, weight, total, to = args

        def weigh(four, weights):
            a, b, c, d = map(builder.fmul, four, weights)
            return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

        a_row, a_column = (
            [
                _spread_to_vector(builder, each, _FOUR_DOUBLES)
                for each in cgutils.unpack_tuple(builder, weights)
            ]
            for weights in (across, down)
        )
        lines = []
        for _ in range(4):
            places = [builder.add(at, ir.Constant(at.type, 4 * i)) for i in range(4)]
            points = [
                _point_at_vector(context, builder, signature.args[0], spline, place, _FOUR_DOUBLES)
                for place in places
            ]
            lines.append(weigh([builder.load(point, align=8) for point in points], a_row))
            at = builder.add(at, pitch)
        sample = builder.fptrunc(weigh(lines, a_column), _FOUR_FLOATS)
        target = _point_at_vector(context, builder, signature.args[6], total, to, _FOUR_FLOATS)
        added = builder.fmul(_spread_to_vector(builder, weight, _FOUR_FLOATS), sample)
        builder.store(builder.fadd(builder.load(target, align=4), added), target, align=4)
        return context.get_dummy_value()

    return types.void(spline, types.intp, types.intp, across, down, weight, total, types.intp), generate


# --- lanes: eight float64 values loaded, added, multiplied and stored at once ----------------------

# Loops over arrays that may overlap are compiled with checks, or process one value at a time. Operations on
# lanes run in the written order on every processor.

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class _Lanes(types.Type):
    """Type of eight values."""


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, _VECTOR)


_LANES = _Lanes("lanes")


def _spread(builder, value):
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _declare(operation, name):
    """Define `operation`, LLVM's instruction `name`, on two lanes, and on lanes and a number."""

    @infer_global(operation)
    class _Operation(ConcreteTemplate):
        cases = (signature(_LANES, _LANES, _LANES), signature(_LANES, _LANES, types.float64))

    @lower_builtin(operation, _LANES, _LANES)
    def _apply(context, builder, signature, args):
        return getattr(builder, name)(*args)

    @lower_builtin(operation, _LANES, types.float64)
    def _apply_number(context, builder, signature, args):
        return getattr(builder, name)(args[0], _spread(builder, args[1]))


_declare(operator.add, "fadd")
_declare(operator.sub, "fsub")
_declare(operator.mul, "fmul")


def _point_at(context, builder, array_type, array, index):
    first = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), _VECTOR.as_pointer())


@intrinsic
def load(context, array, at):
    """Return the lanes of `array` (float64, flat) from `at` on."""

    def generate(context, builder, signature, args):
        return builder.load(_point_at(context, builder, array, *args), align=8)

    return _LANES(array, types.intp), generate


@intrinsic
def store(context, lanes, array, at):
    """Write `lanes` into `array` (float64, flat) from `at` on."""

    def generate(context, builder, signature, args):
        builder.store(args[0], _point_at(context, builder, array, *args[1:]), align=8)
        return context.get_dummy_value()

    return types.void(_LANES, array, types.intp), generate


@compiled
def empty_lanes(rows):
    """Return an uninitialised float64 array of `rows` lanes, each in one cache line of 64 bytes."""
    raw = np.empty((rows + 1) * LANES)
    start = -raw.ctypes.data // 8 % LANES
    return raw[start : start + rows * LANES]

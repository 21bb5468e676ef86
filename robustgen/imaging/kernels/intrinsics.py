"""LLVM intrinsics that numba lacks."""

from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic


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
    """Copy `BLOCK` values from source[at] on to target[to] on: all are read before one is written.

    A loop would have to find out first, each time, whether the two overlap.
    """

    def generate(context, builder, signature, args):
        block = ir.VectorType(context.get_data_type(source.dtype), BLOCK)

        def point(array_type, array, index):
            first = context.make_array(array_type)(context, builder, array).data
            return builder.bitcast(builder.gep(first, [index]), block.as_pointer())

        values = builder.load(point(source, args[0], args[1]))
        stored = builder.store(values, point(target, args[2], args[3]))
        values.align = stored.align = source.dtype.bitwidth // 8
        return context.get_dummy_value()

    return types.void(source, types.intp, target, types.intp), generate


BLOCK = 16


@intrinsic
def add_weighed(context, spline, at, pitch, across, down, weight, total, to):
    """Add `weight` times 4 x 4 weighed pixels of `spline` (float64, flat) to one of `total` (float32, flat).

    Pixels have four values, which are taken at once: those from `at` on, and in the next three lines of
    `pitch` values; they go to the four from `to` on. `across` and `down` are the four weights of either axis.
    """

    def generate(context, builder, signature, args):
        _, at, pitch, across, down, weight, _, to = args
        wide, narrow = ir.VectorType(ir.DoubleType(), 4), ir.VectorType(ir.FloatType(), 4)

        def point(number, index, vector):
            first = context.make_array(signature.args[number])(context, builder, args[number]).data
            return builder.bitcast(builder.gep(first, [index]), vector.as_pointer())

        def spread(value, vector):
            one = builder.insert_element(ir.Constant(vector, ir.Undefined), value, nought)
            everywhere = ir.Constant(ir.VectorType(ir.IntType(32), 4), [0] * 4)
            return builder.shuffle_vector(one, one, everywhere)

        def weigh(four, weights):
            a, b, c, d = map(builder.fmul, four, weights)
            return builder.fadd(builder.fadd(a, b), builder.fadd(c, d))

        nought = ir.Constant(ir.IntType(32), 0)
        a_row, a_column = (
            [spread(each, wide) for each in cgutils.unpack_tuple(builder, weights)]
            for weights in (across, down)
        )
        lines = []
        for _ in range(4):
            places = [builder.add(at, ir.Constant(at.type, 4 * i)) for i in range(4)]
            four = [builder.load(point(0, place, wide), align=8) for place in places]
            lines.append(weigh(four, a_row))
            at = builder.add(at, pitch)
        sample = builder.fptrunc(weigh(lines, a_column), narrow)
        target = point(6, to, narrow)
        added = builder.fmul(spread(weight, narrow), sample)
        builder.store(builder.fadd(builder.load(target, align=4), added), target, align=4)
        return context.get_dummy_value()

    return types.void(spline, types.intp, types.intp, across, down, weight, total, types.intp), generate

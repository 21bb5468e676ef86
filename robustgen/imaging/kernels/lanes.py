"""Lanes: eight float64 values that are loaded, added, multiplied and stored at once.

A loop over arrays that could overlap is compiled with checks for that, or takes one value at a time. Lanes
are computed in the order in which the operations stand, on every processor.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from robustgen.imaging.kernels.compiler import compiled

LANES = 8
_VECTOR = ir.VectorType(ir.DoubleType(), LANES)


class _Lanes(types.Type):
    """The type of the eight values."""


@register_model(_Lanes)
class _LanesModel(models.PrimitiveModel):
    def __init__(self, manager, lanes):
        super().__init__(manager, lanes, _VECTOR)


_LANES = _Lanes("lanes")


def _spread(builder, value):
    """Return lanes of which each is `value`."""
    one = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), value, ir.Constant(ir.IntType(32), 0))
    return builder.shuffle_vector(one, one, ir.Constant(ir.VectorType(ir.IntType(32), LANES), [0] * LANES))


def _declare(operation, name):
    """Let loops apply `operation`, LLVM's instruction `name`, to lanes and to lanes and a number."""

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


def _point(context, builder, array_type, array, index):
    first = context.make_array(array_type)(context, builder, array).data
    return builder.bitcast(builder.gep(first, [index]), _VECTOR.as_pointer())


@intrinsic
def load(context, array, at):
    """Return the lanes of `array` (float64, flat) from `at` on."""

    def generate(context, builder, signature, args):
        return builder.load(_point(context, builder, array, *args), align=8)

    return _LANES(array, types.intp), generate


@intrinsic
def store(context, lanes, array, at):
    """Write `lanes` into `array` (float64, flat) from `at` on."""

    def generate(context, builder, signature, args):
        builder.store(args[0], _point(context, builder, array, *args[1:]), align=8)
        return context.get_dummy_value()

    return types.void(_LANES, array, types.intp), generate


@compiled
def empty_lanes(rows):
    """Return an uninitialised float64 array of `rows` lanes, each in one line of the cache: 64 bytes."""
    raw = np.empty((rows + 1) * LANES)
    start = -raw.ctypes.data // 8 % LANES
    return raw[start : start + rows * LANES]

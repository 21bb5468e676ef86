"""Lanes: eight float64 values loaded, added, multiplied and stored at once.

Loops over arrays that may overlap are compiled with checks, or process one value at a time. Operations on
lanes run in the written order on every processor.
"""

import operator

import numpy as np
from llvmlite import ir
from numba import types
from numba.core.imputils import lower_builtin
from numba.core.typing.templates import ConcreteTemplate, infer_global, signature
from numba.extending import intrinsic, models, register_model

from robustgen.pixels.imaging.kernels.compiler import compiled

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
    """Return lanes that all equal `value`."""
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
    """Return an uninitialised float64 array of `rows` lanes, each in one cache line of 64 bytes."""
    raw = np.empty((rows + 1) * LANES)
    start = -raw.ctypes.data // 8 % LANES
    return raw[start : start + rows * LANES]

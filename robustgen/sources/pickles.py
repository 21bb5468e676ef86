"""Pickles of arrays, read by an interpreter of the few operations that they need.

Python's own would call what a pickle names, and gives a few bytes gigabytes: by a far place in its memo, or
by a tuple of tuples of tuples, each twice, as a key. Here nothing is called, keys are strings, lists, dicts
and tuples stand where they were made and nowhere else, and the steps are counted.
"""

import pickletools
from collections.abc import Callable
from typing import Any

# A batch of 99 999 images and their file names takes some 500 000.
MOST_STEPS = 2_000_000
# What the text in a pickle may amount to as bytes, for one text can be used many times.
_MOST_ENCODED = 1 << 29


class Pickled:
    """A NumPy object of a pickle: what it was made from, and its state."""

    state: Any = None

    def __init__(self, *made_from: Any) -> None:
        self.made_from = made_from


class _Global:
    """A name in a pickle that stands for a function or class of NumPy."""


_ENCODE, _NUMPY = _Global(), _Global()
_KNOWN = {
    "numpy ndarray": _NUMPY,
    "numpy dtype": _NUMPY,
    "numpy.core.multiarray _reconstruct": _NUMPY,
    "numpy._core.multiarray _reconstruct": _NUMPY,
    # With it Python 3 writes bytes into old pickles.
    "_codecs encode": _ENCODE,
}
_MARK = object()
_CONSTANTS: dict[str, Any] = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False, "EMPTY_TUPLE": ()}
_BYTE_STRINGS = frozenset({"STRING", "BINSTRING", "SHORT_BINSTRING"})
_PLAIN = frozenset(
    {
        *("BINBYTES", "SHORT_BINBYTES", "BINBYTES8"),
        *("UNICODE", "BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8"),
        *("INT", "BININT", "BININT1", "BININT2", "LONG", "LONG1", "LONG4", "FLOAT", "BINFLOAT"),
    }
)
_SHORT_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}


def unpickle(content: bytes) -> object:
    """Read a pickle of plain values and NumPy arrays.

    Parameters
    ----------
    content : bytes

    Returns
    -------
    None, bool, int, float, bytes, str, tuple, list, dict or Pickled
        Strings of Python 2 are bytes; arrays and dtypes are `Pickled`.

    Raises
    ------
    ValueError, LookupError
        It is damaged, or asks for more than arrays need.
    """
    machine = _Machine()
    for steps, (opcode, argument, _) in enumerate(pickletools.genops(content), 1):
        if steps > MOST_STEPS:
            raise ValueError(f"more than {MOST_STEPS} steps to unpickle")
        machine.step(opcode.name, argument)
    return machine.stack.pop()


class _Machine:
    """The stack and the memo of a pickle being read."""

    def __init__(self) -> None:
        self.stack: list[Any] = []
        self._memo: dict[int, Any] = {}
        self._encoded = 0

    def step(self, name: str, argument: Any) -> None:
        """Carry out one operation."""
        if name in _PLAIN:
            self.stack.append(argument)
        elif name in _BYTE_STRINGS:
            self.stack.append(argument.encode("latin-1"))
        elif name in _CONSTANTS:
            self.stack.append(_CONSTANTS[name])
        elif name in _SHORT_TUPLES:
            items = [self.stack.pop() for _ in range(_SHORT_TUPLES[name])]
            self.stack.append(tuple(reversed(items)))
        elif name in _OPERATIONS:
            _OPERATIONS[name](self, argument)
        else:
            raise ValueError(f"{name} is nothing that a pickle of arrays needs")

    def _push(self, value: Any) -> None:
        self.stack.append(value)

    def _mark(self, _: None) -> None:
        self.stack.append(_MARK)

    def _pop_items(self) -> list[Any]:
        """Take all above the last mark, and the mark."""
        items = []
        while (item := self.stack.pop()) is not _MARK:
            items.append(item)
        return items[::-1]

    def _make_tuple(self, _: None) -> None:
        self._push(tuple(self._pop_items()))

    def _make_list(self, _: None) -> None:
        self._push(self._pop_items())

    def _make_dict(self, _: None) -> None:
        items = self._pop_items()
        self._push({})
        self._set(items)

    def _append(self, _: None) -> None:
        self._extend([self.stack.pop()])

    def _append_all(self, _: None) -> None:
        self._extend(self._pop_items())

    def _extend(self, items: list[Any]) -> None:
        self._top(list).extend(items)

    def _set_item(self, _: None) -> None:
        value, key = self.stack.pop(), self.stack.pop()
        self._set([key, value])

    def _set_items(self, _: None) -> None:
        self._set(self._pop_items())

    def _set(self, items: list[Any]) -> None:
        for key, value in zip(items[::2], items[1::2], strict=True):
            if not isinstance(key, bytes | str):
                raise ValueError(f"{type(key).__name__} in the place of a key")
            self._top(dict)[key] = value

    def _top(self, kind: type) -> Any:
        if not self.stack or type(self.stack[-1]) is not kind:
            raise ValueError(f"no {kind.__name__.lower()} where one must be")
        return self.stack[-1]

    def _remember(self, place: int | None) -> None:
        self._memo[len(self._memo) if place is None else place] = self.stack[-1]

    def _recall(self, place: int) -> None:
        value = self._memo[place]
        if isinstance(value, list | dict | tuple) and value:
            raise ValueError(f"uses a {type(value).__name__} twice")
        self._push(value)

    def _name(self, name: str) -> None:
        if name not in _KNOWN:
            raise ValueError(f"asks for the global {name.replace(' ', '.')}, which is refused")
        self._push(_KNOWN[name])

    def _name_on_stack(self, _: None) -> None:
        attribute, module = self.stack.pop(), self.stack.pop()
        self._name(f"{module} {attribute}")

    def _call(self, _: None) -> None:
        arguments, called = self.stack.pop(), self.stack.pop()
        if not isinstance(called, _Global) or not isinstance(arguments, tuple):
            raise ValueError("calls what cannot be called")
        self._push(self._encode(*arguments) if called is _ENCODE else Pickled(*arguments))

    def _encode(self, text: str, _encoding: str) -> bytes:
        self._encoded += len(text)
        if self._encoded > _MOST_ENCODED:
            raise ValueError(f"more than {_MOST_ENCODED} bytes of text")
        return text.encode("latin-1")

    def _build(self, _: None) -> None:
        state = self.stack.pop()
        self._top(Pickled).state = state

    def _ignore(self, _: Any) -> None:
        pass


_OPERATIONS: dict[str, Callable[[_Machine, Any], None]] = {
    "PROTO": _Machine._ignore,
    "FRAME": _Machine._ignore,
    "STOP": _Machine._ignore,
    "MARK": _Machine._mark,
    "TUPLE": _Machine._make_tuple,
    "LIST": _Machine._make_list,
    "DICT": _Machine._make_dict,
    "EMPTY_LIST": lambda machine, _: machine._push([]),
    "EMPTY_DICT": lambda machine, _: machine._push({}),
    "APPEND": _Machine._append,
    "APPENDS": _Machine._append_all,
    "SETITEM": _Machine._set_item,
    "SETITEMS": _Machine._set_items,
    "PUT": _Machine._remember,
    "BINPUT": _Machine._remember,
    "LONG_BINPUT": _Machine._remember,
    "MEMOIZE": _Machine._remember,
    "GET": _Machine._recall,
    "BINGET": _Machine._recall,
    "LONG_BINGET": _Machine._recall,
    "GLOBAL": _Machine._name,
    "STACK_GLOBAL": _Machine._name_on_stack,
    "REDUCE": _Machine._call,
    "BUILD": _Machine._build,
}

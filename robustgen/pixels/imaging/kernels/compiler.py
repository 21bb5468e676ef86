"""Compilation of loops by numba on first use, cached on disk."""

import hashlib
import pickle
import zlib
from contextlib import ExitStack, suppress
from pathlib import Path

from numba import config, njit
from numba.core import event
from numba.core.caching import CompileResultCacheImpl, FunctionCache, IndexDataCacheFile, _CacheLocator
from numba.np import linalg

from robustgen.errors import MissingDependencyError
from robustgen.files.storage.host import lock, pause_collection
from robustgen.pixels.imaging.kernels import (
    SHIPPED,
    SHIPPED_FEATURES,
    SHIPPED_PROCESSOR,
    loop_folder,
    name_loops,
    tell,
    tell_of_compiling,
    tell_of_other_loops,
)

if config.DISABLE_JIT:
    raise MissingDependencyError("NUMBA_DISABLE_JIT is set, but robustgen's loops must be compiled; unset it")


class _Listener(event.Listener):  # type: ignore[misc,unused-ignore]
    """Listener for loops that are compiled, not read from the cache."""

    def __init__(self):
        self._depth, self._pause = 0, ExitStack()

    def on_start(self, event):
        """Disable garbage collection for the outermost loop, which saves a sixth of the time."""
        if not self._depth:
            tell_of_compiling()
            self._pause.enter_context(pause_collection())
        self._depth += 1

    def on_end(self, event):
        """Enable garbage collection after the outermost loop."""
        self._depth -= 1
        if not self._depth:
            self._pause.close()


event.register("numba:compile", _Listener())


def _skip_blas_check():
    """Let numba assume that SciPy is installed: its check would import all of `scipy.linalg`."""
    check, linalg.ensure_blas = linalg.ensure_blas, lambda: None
    try:
        import numba.np.arraymath  # noqa: F401
    finally:
        # Other packages' loops that multiply matrices import it when compiled.
        linalg.ensure_blas = check


_skip_blas_check()


class _Locator(_CacheLocator):
    """Place of the compiled loops of a function: one folder for all functions."""

    def __init__(self, function, file):
        self._py_file, self._line = file, function.__code__.co_firstlineno

    @classmethod
    def from_function(cls, function, file):
        """Return the place of a function that is written in `file`."""
        return cls(function, file)

    def get_cache_path(self):
        """Return the folder."""
        return str(loop_folder())

    def get_source_stamp(self):
        """Return nothing, because the folder is named after all sources."""

    def get_disambiguator(self):
        """Return what tells functions of one name apart."""
        return str(self._line)


class _LoopFiles(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _LoopStore(IndexDataCacheFile):
    """Compiled loops of one function: a file for each key, which ends with its checksum."""

    damaged = ""

    def _name(self, key):
        digest = hashlib.sha256(repr(key).encode()).hexdigest()[:16]
        return self._data_path(self._data_name_pattern.replace("{number:d}", digest))

    def save(self, key, data):
        """Save a loop."""
        packed = self._dump(data)
        with self._open_for_write(self._name(key)) as file:
            file.write(packed + zlib.crc32(packed).to_bytes(4, "big"))

    def load(self, key):
        """Return a loop; None if there is none or its file, then `damaged`, is not as it was written."""
        self.damaged = ""
        try:
            content = Path(self._name(key)).read_bytes()
        except OSError:
            return None
        if zlib.crc32(content[:-4]).to_bytes(4, "big") == content[-4:]:
            return pickle.loads(content)
        self.damaged = self._name(key)
        return None


# Loops that came with the wheel; a checkout has none.
_SHIPPED = Path(__file__).parent / SHIPPED


class _LoopCache(FunctionCache):
    """Compiled loops on disk, each compiled by one process, for which the others wait.

    Without a lock, numba could also store two loops of one function under one name. Loops that came with the
    wheel are read before those that were compiled here.
    """

    _impl_class = _LoopFiles

    def __init__(self, function):
        super().__init__(function)
        self._lock = ExitStack()
        self._cache_file, self._shipped = (
            _LoopStore(str(folder), self._impl.filename_base, None)
            for folder in (self._cache_path, _SHIPPED / name_loops())
        )

    def _index_key(self, signature, codegen):
        # Not by bytecode, which differs without docstrings: the folder tells sources apart.
        return str(signature), codegen.magic_tuple()

    def _load_overload(self, signature, target):
        return self._load_shipped(signature, target) or super()._load_overload(signature, target)

    def _load_shipped(self, signature, target):
        """Return the loop that came with the wheel; None if there is none for this processor."""
        text, (triple, _, features) = self._index_key(signature, target.codegen())
        if config.CPU_NAME or not {*SHIPPED_FEATURES.split(",")} <= {*features.split(",")}:
            return None
        data = self._shipped.load((text, (triple, SHIPPED_PROCESSOR, SHIPPED_FEATURES)))
        return data and self._impl.rebuild(target, data)

    def load_overload(self, signature, target):
        """Return the loop from a cache; None if this process has to compile it, and then save it."""
        # A compilation that failed has saved nothing.
        self._lock.close()
        loop = super().load_overload(signature, target)
        if loop is None:
            tell_of_compiling()
            self._lock.enter_context(lock(f"{self.cache_path}/{self._impl.filename_base}.lock"))
            loop = super().load_overload(signature, target)
        if loop is not None:
            self._lock.close()
        elif damaged := self._cache_file.damaged or self._shipped.damaged:
            tell(f"{damaged} is damaged; compiling this loop again")
        elif _SHIPPED.is_dir():
            tell_of_other_loops()
        return loop

    def save_overload(self, signature, loop):
        """Save the loop that this process compiled, for all that wait, without the paths of its sources."""
        with self._lock:
            super().save_overload(signature, loop._replace(type_annotation=None))


# No loop is called from C, so no wrappers are compiled for it.
_OPTIONS = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


def _keep(loop):
    """Return `loop` with a cache, if any folder can be written."""
    with suppress(OSError):
        loop._cache = _LoopCache(loop.py_func)
    return loop


def compiled(function):
    """Compile a function when it is first called with arguments of some types."""
    return _keep(njit(**_OPTIONS)(function))


def inner(function):
    """Inline a function that other loops call in one place; compile it separately only if Python calls it.

    Long functions called in several places would take longer to compile.
    """
    return _keep(njit(inline="always", **_OPTIONS)(function))

"""Cached properties of objects that several threads use, each its own."""

import functools
import sys
from functools import cached_property as cached_property
from typing import TYPE_CHECKING, Any

if sys.version_info < (3, 12) and not TYPE_CHECKING:

    class cached_property(functools.cached_property):
        """Cached property without the lock of older Pythons, which all objects of a class share."""

        def __get__(self, instance: Any, owner: Any = None) -> Any:
            """Return the value; two threads that need it first may both compute it."""
            if instance is None:
                return self
            if self.attrname not in vars(instance):
                vars(instance)[self.attrname] = self.func(instance)
            return vars(instance)[self.attrname]

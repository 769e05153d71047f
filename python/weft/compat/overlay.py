# SPDX-License-Identifier: Apache-2.0
"""Modules that add names to other modules without changing them."""
import sys
import types


class Overlay(types.ModuleType):
    """A module with names of its own; every other name comes from the modules that lie below it."""

    def __init__(self, name, own, *below):
        super().__init__(name)
        self.__dict__.update(own)
        self._below = below

    def __getattr__(self, name):
        for module in self.__dict__.get('_below', ()):
            try:
                return getattr(module, name)
            except AttributeError:
                pass
        raise AttributeError("module '%s' has no attribute '%s'" % (self.__name__, name))

    def __dir__(self):
        return sorted(set(self.__dict__).union(*(dir(module) for module in self._below)))


class Refusing(Overlay):
    """An overlay that says what it has when it is asked for something else."""

    def __getattr__(self, name):
        try:
            return super().__getattr__(name)
        except AttributeError:
            if name.startswith('__'):
                raise
            raise AttributeError('weft.compat has no %s.%s; it has %s' % (
                self.__name__, name, ', '.join(n for n in dir(self) if not n.startswith('_')))) from None


def register(module):
    """Lets `import NAME` and `from NAME import ...` find `module` and the overlays in it, however deep they lie."""
    module.__dict__.setdefault('__path__', [])
    sys.modules[module.__name__] = module
    for inner in list(vars(module).values()):
        if isinstance(inner, Overlay) and inner.__name__.startswith(module.__name__ + '.'):
            register(inner)

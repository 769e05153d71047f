# SPDX-License-Identifier: Apache-2.0
"""Lets `import horovod.tensorflow` find weft.horovod, where no Horovod is wanted."""
import importlib
import importlib.abc
import importlib.util
import sys

_NAMES = {'horovod': 'weft.horovod', 'horovod.tensorflow': 'weft.horovod.tensorflow',
          'horovod.tensorflow.elastic': 'weft.horovod.elastic'}


class _Alias(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def find_spec(self, name, path=None, target=None):
        if name not in _NAMES:
            return None
        return importlib.util.spec_from_loader(name, self, is_package=name != 'horovod.tensorflow.elastic')

    def create_module(self, spec):
        return importlib.import_module(_NAMES[spec.name])

    def exec_module(self, module):
        """It ran when it was created."""


def install():
    if not any(isinstance(finder, _Alias) for finder in sys.meta_path):
        sys.meta_path.insert(0, _Alias())

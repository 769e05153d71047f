# SPDX-License-Identifier: Apache-2.0
"""Puts weft servers under a program that knows nothing of them: the interpreter imports this by itself.

With this folder and the one that holds `weft` on PYTHONPATH, the first import of tensorflow replaces tf.train.Server.
Written so that Python 2.7 and 3.5 can load it.
"""
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _then(loader, name):
    """`loader`, whose module is followed by weft.install()."""
    def followed(function):
        def run(*args):
            result = function(*args)
            import weft
            weft.install()
            return result
        return run
    if hasattr(loader, 'exec_module'):
        loader.exec_module = followed(loader.exec_module)
    else:
        loader.load_module = followed(loader.load_module)
    return loader


class _Finder(object):
    """Finds tensorflow once, where everybody else would."""

    def find_spec(self, name, path=None, target=None):
        if name != 'tensorflow' or self not in sys.meta_path:
            return None
        sys.meta_path.remove(self)
        import importlib.util
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.loader is not None:
            _then(spec.loader, name)
        return spec

    def find_module(self, name, path=None):  # Python 2
        if name != 'tensorflow' or self not in sys.meta_path or sys.version_info[0] > 2:
            return None
        sys.meta_path.remove(self)
        return self

    def load_module(self, name):
        module = __import__(name)
        import weft
        weft.install()
        return module


def _run_the_hidden_one():
    """The sitecustomize that this one stands before, if there is one."""
    for folder in sys.path:
        path = os.path.join(folder or '.', 'sitecustomize.py')
        if os.path.abspath(os.path.dirname(path)) != _HERE and os.path.isfile(path):
            with open(path) as source:
                exec(compile(source.read(), path, 'exec'), {'__name__': 'sitecustomize', '__file__': path})
            return


sys.meta_path.insert(0, _Finder())
_run_the_hidden_one()

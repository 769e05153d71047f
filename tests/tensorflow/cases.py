# SPDX-License-Identifier: Apache-2.0
"""Loads one of TensorFlow's test files in graph mode and runs its cases on one server after the other."""
import importlib.abc
import importlib.machinery
import importlib.util
import re
import sys
import types
import unittest


class _Sources(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Modules that the installed packages lack, such as bases of tests, come from the folder of test files."""

    def __init__(self, folder, packages):
        self.folder, self.packages = folder, packages

    def find_spec(self, name, path=None, target=None):
        for short, full in self.packages.items():
            if name.startswith(full + '.'):
                name_there = short + name[len(full):]
                break
        else:
            name_there = name
        place = self.folder / name_there.replace('.', '/')
        if place.with_suffix('.py').is_file():
            return importlib.machinery.ModuleSpec(name, self, origin=str(place.with_suffix('.py')))
        if place.is_dir() and '.' in name:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = [str(place)]
            return spec
        return None

    def exec_module(self, module):
        self.execute(module, module.__spec__.origin)

    def execute(self, module, path):
        module.__file__ = str(path)
        with open(path) as source:
            text = source.read()
        for short, full in self.packages.items():
            # As the build of that package's wheel does.
            text = re.sub(r'\b(from|import) %s\b(?!\.src)(?=[. ])' % short, r'\1 ' + full, text)
            text = re.sub(r'^import %s$' % short, 'import %s' % short, text, flags=re.M)
        exec(compile(text, str(path), 'exec'), module.__dict__)


class Sessions:
    """Sends every session that names no target to a server, and counts the steps."""

    def __init__(self):
        self.target, self.steps = '', 0

    def install(self):
        from tensorflow.python.client import session
        make, step = session.BaseSession.__init__, session.BaseSession._do_call

        def init(this, target='', graph=None, config=None):
            make(this, target or self.target, graph, config)

        def do_call(this, function, *args):
            self.steps += this.sess_str == self.target.encode()
            return step(this, function, *args)
        session.BaseSession.__init__, session.BaseSession._do_call = init, do_call

    def turn_to(self, target):
        from tensorflow.python.client import session
        self.target, self.steps = target, 0
        session.Session.reset(target)


SESSIONS = Sessions()


def _graph_mode_only(test_util):
    """Decorators that run a case once in a graph and once eagerly leave the second away."""
    def both(function=None, config=None, use_gpu=True, assert_no_eager_garbage=False, **more):
        def decorate(method):
            def run(this, *args, **kwargs):
                with this.test_session(use_gpu=use_gpu, config=config):
                    method(this, *args, **kwargs)
            run.__name__, run.__doc__ = method.__name__, method.__doc__
            run.__dict__.update(method.__dict__)
            return run
        return decorate(function) if function is not None else decorate
    test_util.run_in_graph_and_eager_modes = both


def prepare():
    """Before any fork: imports TensorFlow, with the behaviour of version 1."""
    import tensorflow.compat.v1 as tf
    tf.disable_v2_behavior()
    from absl import flags
    from tensorflow.python.framework import test_util
    from tensorflow.python.platform import googletest  # noqa: F401  Its flags.
    flags.FLAGS(['test'])
    _graph_mode_only(test_util)
    SESSIONS.install()


def _flat(suite):
    for one in suite:
        if isinstance(one, unittest.TestSuite):
            yield from _flat(one)
        else:
            yield one


def _cause(result):
    """The last exception of a failed case: its type and what it says."""
    text = (result.errors + result.failures)[0][1].rstrip()
    found = re.findall(r'^((?:[\w.]+\.)?[A-Z]\w*(?:Error|Exception|Interrupt)): ?(.*(?:\n(?![ \w]*File ).*){0,8})', text, re.M)
    kind, words = found[-1] if found else ('', text[-600:])
    if 'Detected at node' in words:  # What the node said stands below the traceback of its definition.
        said = re.findall(r"^Node: '.*'\n((?:.*\n){1,6})", text[text.rindex(words):], re.M)
        words = said[-1] if said else words
    return kind.rsplit('.', 1)[-1], words[:900]


def _run_once(case, target):
    SESSIONS.turn_to(target)
    result = unittest.TestResult()
    unittest.TestSuite([type(case)(case._testMethodName)]).run(result)
    if result.skipped and not result.errors + result.failures:
        return 'skipped', None
    if result.errors or result.failures:
        return 'failed', _cause(result)
    return ('passed' if SESSIONS.steps else 'no steps'), None


def _load(folder, path, packages):
    sources = _Sources(folder, packages)
    sys.meta_path.append(sources)
    name = path[:-3].replace('/', '.')
    for short, full in packages.items():
        if name.startswith(short + '.'):
            name = full + name[len(short):]
    module = types.ModuleType(name)
    sys.modules[name] = module
    sources.execute(module, folder / path)
    return unittest.defaultTestLoader.loadTestsFromModule(module)


def run(folder, path, pattern, targets, done, packages, say):
    """Says what is begun ({case, backend}) and each case's outcome."""
    suite = _load(folder, path, packages)
    import tensorflow.compat.v1 as tf
    for case in _flat(suite):
        name = '%s.%s' % (type(case).__name__, case._testMethodName)
        if name in done or not re.search(pattern, name) or 'mode_eager' in name or name.endswith('test_session'):
            continue
        line = {'file': path, 'case': name}
        for backend in targets:
            say({'case': name, 'backend': backend, **line})
            with tf.Graph().as_default():
                line[backend], cause = _run_once(case, targets[backend])
            if cause:
                line['kind' if backend == 'weft' else 'there'], line['words'] = cause
            if line[backend] != 'passed':
                break
        say(line)
    say({'finished': True})

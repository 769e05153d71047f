# SPDX-License-Identifier: Apache-2.0
"""How a case of an op is written, and the values to try.

    @cases('Abs', 'Neg')                       one generator, called for each op and each set of types that
    def unary(op, types):                      TensorFlow has a CPU kernel for, e.g. {'T': 'float32'}
        yield Case([edges(types['T'])])        inputs in the op's order; a list of arrays for N * T
        yield Case([...], {'axis': 1})         with attributes; types and counts are inferred
        yield Case([...], error=True)          TensorFlow refuses it, and we do with the same code

    @script('VariableV2', 'Assign')            several ops and steps: builds with `b`, returns a list of Step;
    def variable(b, types): ...                types are those of the first op

Inputs are fed through placeholders without a shape, so that the server, not the client, meets bad ones.
"""
import collections
import functools
import zlib

import numpy as np
import tensorflow as tf

GENERATORS = collections.defaultdict(list)  # op -> functions of (op, types)
SCRIPTS = collections.defaultdict(list)     # first op -> (function of (b, types), all its ops)
DEFAULT_TYPES = {}                          # (op, attr) -> types to try where the kernel takes any

FLOATS = ['float16', 'bfloat16', 'float32', 'float64']
COMPLEX = ['complex64', 'complex128']
INTS = ['int8', 'int16', 'int32', 'int64', 'uint8', 'uint16', 'uint32', 'uint64']
NUMBERS = FLOATS + COMPLEX + INTS
ALL_TYPES = NUMBERS + ['bool', 'string']


class Case:
    def __init__(self, inputs, attrs=None, error=False, name=''):
        self.inputs, self.attrs, self.error, self.name = inputs, attrs or {}, error, name


class Step:
    """One session.run: fetches (tensors or operations), feeds, and whether it fails ('any': with whatever code)."""

    def __init__(self, *fetches, feeds=None, error=False):
        self.fetches, self.feeds, self.error = list(fetches), feeds or {}, error


class Path:
    """A file name in a folder that differs between the two servers; fed as a string."""

    def __init__(self, name):
        self.name = name


def cases(*ops):
    def add(generator):
        for op in ops:
            GENERATORS[op].append(generator)
        return generator
    return add


def script(*ops):
    def add(function):
        SCRIPTS[ops[0]].append((function, ops))
        return function
    return add


def types_for(attr, types, *ops):
    """Where TensorFlow's kernel does not say which types it takes, try these."""
    for op in ops:
        DEFAULT_TYPES[op, attr] = types


@functools.lru_cache(None)
def numpy_type(name):
    return np.dtype(object) if name == 'string' else np.dtype(tf.as_dtype(name).as_numpy_dtype)


def is_float(name):
    return name in FLOATS


def is_int(name):
    return name in INTS


def limits(name):
    info = tf.as_dtype(name)
    return info.min, info.max


def _random(*key):
    return np.random.RandomState(zlib.crc32(repr(key).encode()))


def values(name, shape, low=-4, high=4, key=0):
    """Ordinary values of any type, the same each time; `key` gives others."""
    shape = tuple(shape)
    random = _random(name, shape, low, high, key)
    if name == 'string':
        pool = [b'', b'a', b'weft', b'\x00\xff', b'x' * 70, 'dünn'.encode()]
        return np.array([pool[i] for i in random.randint(0, len(pool), int(np.prod(shape)))], object).reshape(shape)
    if name == 'bool':
        return np.asarray(random.randint(0, 2, shape) == 1)
    if is_int(name):
        return np.asarray(random.randint(max(low, 0) if name[0] == 'u' else low, high + 1, shape)).astype(numpy_type(name))
    real = random.uniform(low, high, shape)
    if name in COMPLEX:
        real = real + 1j * random.uniform(low, high, shape)
    return np.asarray(real).astype(numpy_type(name))


def positive(name, shape, key=0):
    return values(name, shape, 1 if is_int(name) else 0.1, 6, key)


def nonzero(name, shape, key=0):
    x = values(name, shape, -5, 5, key)
    return np.where(x == 0, np.ones([], x.dtype), x).astype(x.dtype) if x.size else x


def edges(name):
    """A vector of the values where kernels go wrong."""
    if name == 'bool':
        return np.array([False, True])
    if name == 'string':
        return values(name, [9])
    if is_int(name):
        low, high = limits(name)
        return np.array(sorted({low, low + 1, 0, 1, 2, 3, 7, high // 2, high - 1, high} | ({-1, -2, -3} if low else set())),
                        numpy_type(name))
    dtype = numpy_type(name)
    real = [0.0, -0.0, 1, -1, 0.5, -0.5, 1.5, 2.5, -2.5, 1e-3, -1e-3, 3.25, -7, 20, -20, 88, -104, 1e4, -1e4, np.inf,
            -np.inf, np.nan]
    if name in COMPLEX:
        return np.array([0, 1, -1, 1j, -1j, 1 + 1j, 0.5 - 2j, -3 + 0.25j, 4 - 4j], dtype)
    info = tf.as_dtype(name)
    return np.concatenate([np.array(real, np.float64).astype(dtype), np.array([info.max, info.min], dtype)])


def long(name, low=-4, high=4, key=0):
    """More than one SIMD register, odd, more than one shard's block."""
    return values(name, [1037], low, high, key)


class Builder:
    """Adds ops to the graph of one script, under names that no other script has."""

    def __init__(self, scope, apply_op):
        self._scope, self._apply_op = scope, apply_op

    def op(self, op, *inputs, **attrs):
        return self._apply_op(op, inputs, attrs)

    def name(self, suffix):
        return '%s_%s' % (self._scope.replace('/', '_'), suffix)

    def constant(self, value, dtype=None):
        return tf.constant(value, dtype)

    def hidden(self, value):
        """A constant whose shape the client cannot see, so that the server meets it first."""
        return self.op('PlaceholderWithDefault', np.asarray(value), shape=None)

    def variable(self, initial, ref=True):
        """An initialised variable: (handle, initialiser, read)."""
        dtype = tf.as_dtype(initial.dtype if initial.dtype != object else tf.string)
        count = len(tf.compat.v1.get_default_graph().get_operations())
        name = self.name('v%d' % count)
        first = tf.constant(initial, dtype)
        if ref:
            handle = self.op('VariableV2', shape=initial.shape, dtype=dtype, shared_name=name)
            return handle, self.op('Assign', handle, first).op, self.op('Identity', handle)
        handle = self.op('VarHandleOp', shape=initial.shape, dtype=dtype, shared_name=name)
        read = self.op('ReadVariableOp', handle, dtype=dtype)
        return handle, self.op('AssignVariableOp', handle, first), read

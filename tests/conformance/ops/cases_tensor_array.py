# SPDX-License-Identifier: Apache-2.0
"""Stacks and TensorArrays: objects of one step, so each Step makes its own."""
import numpy as np
import tensorflow as tf

from cases import FLOATS, Step, script, types_for, values

types_for('elem_type', ['float32', 'string', 'int64', 'bool'], 'StackV2')
types_for('dtype', FLOATS + ['complex64', 'int32', 'int64', 'string', 'bool'], 'TensorArrayV3')
NUMBERS = FLOATS + ['complex64', 'int32', 'int64']


def _after(*first):
    return tf.control_dependencies([getattr(one, 'op', one) for one in first])


@script('StackV2', 'StackPushV2', 'StackPopV2', 'StackCloseV2')
def stack(b, types):
    name = types['elem_type']

    def run(max_size, pushes, pops, close=False, elem_type=name):
        handle = b.op('StackV2', b.hidden(np.int32(max_size)), elem_type=name)
        made, last = [], [handle]
        for k in range(pushes):
            with _after(*last):
                made.append(b.op('StackPushV2', handle, values(name, [2, k])))
            last = [made[-1]]
        for _ in range(pops):
            with _after(*last):
                made.append(b.op('StackPopV2', handle, elem_type=elem_type))
            last = [made[-1]]
        if close:
            with _after(*last):
                last = [b.op('StackCloseV2', handle)]
            with _after(*last):
                made.append(b.op('StackPushV2', handle, values(name, [1])))
        return made
    return [Step(*run(-1, 3, 3)), Step(*run(2, 2, 1)), Step(*run(2, 3, 0), error=True), Step(*run(-1, 1, 2), error=True),
            Step(*run(-1, 1, 0, close=True), error=True), Step(*run(-1, 1, 1, elem_type='int32'), error='any')]


class _Array:
    """A TensorArray whose ops run in the order in which they are written."""

    def __init__(self, b, size, dtype, **attrs):
        self.b, self.dtype = b, dtype
        self.handle, self.flow = b.op('TensorArrayV3', b.hidden(np.int32(size)), dtype=dtype, **attrs)

    def write(self, index, value):
        self.flow = self.b.op('TensorArrayWriteV3', self.handle, self.b.hidden(np.int32(index)), self.b.hidden(value), self.flow)

    def scatter(self, indices, value):
        self.flow = self.b.op('TensorArrayScatterV3', self.handle, np.array(indices, np.int32), self.b.hidden(value), self.flow)

    def split(self, value, lengths):
        self.flow = self.b.op('TensorArraySplitV3', self.handle, self.b.hidden(value), np.array(lengths, np.int64), self.flow)

    def read(self, index, dtype=None):
        return self.b.op('TensorArrayReadV3', self.handle, self.b.hidden(np.int32(index)), self.flow, dtype=dtype or self.dtype)

    def gather(self, indices, **attrs):
        return self.b.op('TensorArrayGatherV3', self.handle, np.array(indices, np.int32), self.flow, dtype=self.dtype, **attrs)

    def concat(self, **attrs):
        return list(self.b.op('TensorArrayConcatV3', self.handle, self.flow, dtype=self.dtype, **attrs))

    def size(self):
        return self.b.op('TensorArraySizeV3', self.handle, self.flow)

    def gradient(self, source='gradients'):
        other = object.__new__(_Array)
        other.b, other.dtype = self.b, self.dtype
        other.handle, other.flow = self.b.op('TensorArrayGradV3', self.handle, self.flow, source=source)
        return other


@script('TensorArrayV3', 'TensorArrayWriteV3', 'TensorArrayReadV3', 'TensorArraySizeV3', 'TensorArrayCloseV3')
def elements(b, types):
    name = types['dtype']
    steps = []

    def array(size=3, **attrs):
        return _Array(b, size, name, **attrs)

    def step(make, **kind):
        steps.append(Step(*make(), **kind))

    def written(a, *indices, shape=(2,)):
        for index in indices:
            a.write(index, values(name, shape, key=index))
        return a
    step(lambda: (lambda a: [a.read(1), a.read(0), a.size()])(written(array(), 0, 1)))
    step(lambda: (lambda a: [a.read(4), a.size()])(written(array(dynamic_size=True), 0, 4)))
    step(lambda: [written(array(), 3).flow], error=True)
    step(lambda: [written(array(), -1).flow], error=True)
    step(lambda: [written(array(), 1, 1).flow], error=True)
    step(lambda: [written(array(), 0).read(5)], error=True)
    step(lambda: [written(array(), 0).read(1)], error=True)
    if name != 'string':  # TensorFlow has no zero of it
        step(lambda: [written(array(element_shape=[2]), 0).read(1)])
    step(lambda: [written(array(element_shape=[3]), 0).flow], error=True)
    step(lambda: [written(array(), 0).read(0, 'uint8')], error=True)
    step(lambda: [b.op('TensorArrayV3', b.hidden(np.int32(-1)), dtype=name)[1]], error=True)

    def twice(**attrs):
        a = written(array(**attrs), 0)
        first = a.read(0)
        with _after(first):
            return [first, a.read(0)]
    step(lambda: twice(clear_after_read=False))
    step(twice, error=True)

    def closed():
        a = written(array(), 0)
        with _after(a.flow):
            close = b.op('TensorArrayCloseV3', a.handle)
        with _after(close):
            return [a.size()]
    step(closed, error=True)

    def unequal():
        a = written(array(identical_element_shapes=True), 0)
        a.write(1, values(name, [4]))
        return [a.flow]
    step(unequal, error=True)
    return steps


@script('TensorArrayV3', 'TensorArrayGatherV3', 'TensorArrayScatterV3', 'TensorArrayConcatV3', 'TensorArraySplitV3')
def wholes(b, types):
    name = types['dtype']
    steps = []

    def scattered(indices, rows, size=4, **attrs):
        a = _Array(b, size, name, **attrs)
        a.scatter(indices, values(name, rows))
        return a

    def split(lengths, rows, size=3, **attrs):
        a = _Array(b, size, name, **attrs)
        a.split(values(name, rows), lengths)
        return a
    steps.append(Step(scattered([2, 0, 1], [3, 2]).gather([0, 2])))
    steps.append(Step(scattered([5, 0], [2, 2], dynamic_size=True).size()))
    steps.append(Step(scattered([0, 1], [2]).gather([1, 0])))
    steps.append(Step(scattered([4], [1, 2]).flow, error=True))
    steps.append(Step(scattered([0, 1], [3, 2]).flow, error=True))
    steps.append(Step(scattered([0], [1, 2]).gather([], element_shape=[2])))
    steps.append(Step(scattered([0], [1, 2]).gather([3]), error=True))
    steps.append(Step(*split([2, 0, 1], [3, 2]).concat()))
    steps.append(Step(split([2, 0, 1], [3, 2]).read(1)))
    steps.append(Step(split([1, 2], [3]).flow, error=True))
    steps.append(Step(*split([1, 2], [3], size=1, dynamic_size=True).concat()))
    steps.append(Step(split([2, 2, 2], [3, 2]).flow, error=True))
    mixed = _Array(b, 2, name)
    mixed.write(0, values(name, [2]))
    mixed.write(1, values(name, [3]))
    steps.append(Step(mixed.gather([0, 1]), error=True))
    uneven = _Array(b, 2, name)
    uneven.write(0, values(name, [2, 3]))
    uneven.write(1, values(name, [1, 3], key=1))
    steps.append(Step(*uneven.concat()))
    steps.append(Step(*_Array(b, 0, name).concat(element_shape_except0=[3])))
    return steps


@script('TensorArrayV3', 'TensorArrayGradV3', 'TensorArrayGradWithShape')
def gradients(b, types):
    name = types['dtype']
    if name not in NUMBERS:
        return []
    forward = _Array(b, 3, name)
    for index in range(3):
        forward.write(index, values(name, [2]))
    added = forward.gradient()
    added.write(1, values(name, [2], key=1))
    with _after(added.flow):
        again = forward.gradient()
    again.write(1, values(name, [2], key=2))
    wrong = forward.gradient('wrong')
    wrong.write(0, values(name, [2]))
    wrong.write(0, values(name, [3]))
    handle, flow = b.op('TensorArrayGradWithShape', forward.handle, forward.flow, np.array([4], np.int32), source='shaped')
    shaped = b.op('TensorArrayReadV3', handle, b.hidden(np.int32(2)), flow, dtype=name)
    return [Step(again.read(1), again.read(0)), Step(again.size()), Step(wrong.flow, error=True), Step(shaped)]

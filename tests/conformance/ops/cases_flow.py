# SPDX-License-Identifier: Apache-2.0
"""Queues, accumulators, Switch and Merge, conditionals and loops."""
import time

import numpy as np
import tensorflow as tf
from tensorflow.core.framework import attr_value_pb2

from cases import ALL_TYPES, Case, Step, cases, numpy_type, script, types_for, values

tf1 = tf.compat.v1


def _queue_steps(b, queue, name, v='V2'):
    one = b.op('QueueEnqueue' + v, queue, [values(name, [2]), np.int64(7)])
    many = b.op('QueueEnqueueMany' + v, queue, [values(name, [3, 2], key=1), np.arange(3)])
    types = [name, 'int64']
    take = b.op('QueueDequeue' + v, queue, component_types=types)
    take_many = b.op('QueueDequeueMany' + v, queue, 2, component_types=types)
    up_to = b.op('QueueDequeueUpTo' + v, queue, 5, component_types=types)
    size, closed = b.op('QueueSize' + v, queue), b.op('QueueIsClosed' + v, queue)
    close = b.op('QueueClose' + v, queue)
    return [Step(size, closed), Step(one), Step(many), Step(size), Step(*take), Step(*take_many), Step(size), Step(close), Step(closed),
            Step(one, error=True), Step(many, error=True), Step(*up_to), Step(*take, error=True), Step(*take_many, error=True),
            Step(*up_to, error=True)]


@script('FIFOQueueV2', 'QueueEnqueueV2', 'QueueEnqueueManyV2', 'QueueDequeueV2', 'QueueDequeueManyV2', 'QueueDequeueUpToV2', 'QueueSizeV2',
        'QueueIsClosedV2', 'QueueCloseV2')
def fifo_queue(b, types):
    steps = []
    for name in ALL_TYPES:
        queue = b.op('FIFOQueueV2', component_types=[name, 'int64'], shapes=[[2], []], shared_name=b.name(name))
        steps += _queue_steps(b, queue, name)
    return steps


@script('FIFOQueue', 'QueueEnqueue', 'QueueEnqueueMany', 'QueueDequeue', 'QueueDequeueMany', 'QueueDequeueUpTo', 'QueueSize', 'QueueIsClosed',
        'QueueClose')
def fifo_queue_v1(b, types):
    queue = b.op('FIFOQueue', component_types=['string', 'int64'], shapes=[[2], []], shared_name=b.name('q'))
    return _queue_steps(b, queue, 'string', '')


@script('PriorityQueueV2')
def priority_queue(b, types):
    queue = b.op('PriorityQueueV2', component_types=['float32'], shapes=[[]], shared_name=b.name('q'))
    return _priority_steps(b, queue, 'V2')


@script('PriorityQueue')
def priority_queue_v1(b, types):
    return _priority_steps(b, b.op('PriorityQueue', component_types=['float32'], shapes=[[]], shared_name=b.name('q')), '')


def _priority_steps(b, queue, v):
    put = b.op('QueueEnqueueMany' + v, queue, [np.array([5, 1, 9, 3]), values('float32', [4])])
    one = b.op('QueueEnqueue' + v, queue, [np.int64(2), np.float32(7)])
    take = b.op('QueueDequeue' + v, queue, component_types=['int64', 'float32'])
    take_many = b.op('QueueDequeueMany' + v, queue, 3, component_types=['int64', 'float32'])
    return [Step(put), Step(one), Step(*take), Step(*take_many), Step(b.op('QueueSize' + v, queue)), Step(*take)]


@script('FIFOQueueV2')
def fifo_queue_errors(b, types):
    queue = b.op('FIFOQueueV2', component_types=['float32'], shapes=[[2]], capacity=3, shared_name=b.name('q'))
    wrong_shape = b.op('QueueEnqueueV2', queue, [b.hidden(values('float32', [3]))])
    other = b.op('FIFOQueueV2', component_types=['int32'], shapes=[[2]], capacity=3, shared_name=b.name('q'))
    free = b.op('FIFOQueueV2', component_types=['float32'], shapes=[], shared_name=b.name('free'))
    put_free = [b.op('QueueEnqueueV2', free, [values('float32', s)]) for s in ([2], [3, 1])]
    take_many_free = b.op('QueueDequeueManyV2', free, 2, component_types=['float32'])
    take_free = b.op('QueueDequeueV2', free, component_types=['float32'])
    wrong_type = b.op('QueueDequeueV2', queue, component_types=['int32'])
    # The token queue of synchronous training: int64 scalars without a limit.
    tokens = b.op('FIFOQueueV2', component_types=['int64'], shapes=[[]], capacity=-1, shared_name=b.name('tokens'))
    fill = b.op('QueueEnqueueManyV2', tokens, [np.full([5], 3)])
    return [Step(b.op('QueueSizeV2', queue)), Step(wrong_shape, error=True), Step(b.op('QueueSizeV2', other), error=True),
            Step(put_free[0]), Step(put_free[1]), Step(take_many_free, error=True), Step(take_free), Step(take_free),
            Step(wrong_type, error=True), Step(fill), Step(b.op('QueueDequeueV2', tokens, component_types=['int64'])),
            Step(b.op('QueueSizeV2', tokens)), Step(b.op('QueueCloseV2', tokens, cancel_pending_enqueues=True))]


def _padding_queue(b, v):
    queue = b.op('PaddingFIFOQueue' + v, component_types=['int32'], shapes=[[None]], shared_name=b.name('q'))
    puts = [b.op('QueueEnqueue' + v, queue, [np.arange(n, dtype=np.int32)]) for n in (1, 3, 2)]
    return [Step(p) for p in puts] + [Step(b.op('QueueDequeueMany' + v, queue, 3, component_types=['int32']))]


@script('PaddingFIFOQueueV2')
def padding_queue(b, types):
    return _padding_queue(b, 'V2')


@script('PaddingFIFOQueue')
def padding_queue_v1(b, types):
    return _padding_queue(b, '')


def _shuffle_queue(b, v):
    queue = b.op('RandomShuffleQueue' + v, component_types=['int32'], shapes=[[]], capacity=20, min_after_dequeue=2, seed=1, seed2=2,
                 shared_name=b.name('q'))
    put = b.op('QueueEnqueueMany' + v, queue, [np.arange(10, dtype=np.int32)])
    return [Step(put), Step(b.op('QueueDequeueMany' + v, queue, 4, component_types=['int32'])),
            Step(b.op('QueueDequeue' + v, queue, component_types=['int32'])), Step(b.op('QueueSize' + v, queue))]


@script('RandomShuffleQueueV2')
def shuffle_queue(b, types):
    return _shuffle_queue(b, 'V2')


@script('RandomShuffleQueue')
def shuffle_queue_v1(b, types):
    return _shuffle_queue(b, '')


def _accumulator(b, types, make, prefix):
    name = types['dtype']
    steps = []
    for reduction in 'MEAN', 'SUM':
        handle = b.op(make, dtype=name, shape=[2, 3], shared_name=b.name(reduction), reduction_type=reduction)

        def apply(step, key, shape=(2, 3)):
            return b.op(prefix + 'ApplyGradient', handle, np.int64(step), b.hidden(values(name, shape, key=key)))
        count = b.op(prefix + 'NumAccumulated', handle)
        take = b.op(prefix + 'TakeGradient', handle, 2, dtype=name)
        none = b.op(prefix + 'TakeGradient', handle, b.hidden(np.int32(0)), dtype=name)
        steps += [Step(count), Step(apply(0, 1)), Step(apply(0, 2)), Step(apply(5, 3)), Step(count), Step(take), Step(count),
                  Step(apply(0, 4)), Step(count), Step(apply(1, 5)), Step(apply(1, 6)), Step(take),  # the step of 0 is stale by now
                  Step(b.op(prefix + 'SetGlobalStep', handle, np.int64(9))), Step(apply(8, 1)), Step(count), Step(apply(9, 1)), Step(count),
                  Step(apply(9, 1, (3, 2)), error=True), Step(none, error=True)]
    return steps


@script('ResourceConditionalAccumulator', 'ResourceAccumulatorApplyGradient', 'ResourceAccumulatorTakeGradient',
        'ResourceAccumulatorNumAccumulated', 'ResourceAccumulatorSetGlobalStep')
def resource_accumulator(b, types):
    return _accumulator(b, types, 'ResourceConditionalAccumulator', 'ResourceAccumulator')


@script('ConditionalAccumulator', 'AccumulatorApplyGradient', 'AccumulatorTakeGradient', 'AccumulatorNumAccumulated', 'AccumulatorSetGlobalStep')
def reference_accumulator(b, types):
    return _accumulator(b, types, 'ConditionalAccumulator', 'Accumulator')


@script('SparseConditionalAccumulator', 'SparseAccumulatorApplyGradient', 'SparseAccumulatorTakeGradient')
def sparse_accumulator(b, types):
    name = types['dtype']
    steps = []
    for reduction in 'MEAN', 'SUM':
        handle = b.op('SparseConditionalAccumulator', dtype=name, shape=[5, 2], shared_name=b.name(reduction), reduction_type=reduction)

        def apply(step, ids, key, width=2):
            return b.op('SparseAccumulatorApplyGradient', handle, np.int64(step), b.hidden(np.array(ids, np.int64)),
                        b.hidden(values(name, [len(ids), width], key=key)), np.array([5, width], np.int64), has_known_shape=True)
        count = b.op('AccumulatorNumAccumulated', handle)
        take = b.op('SparseAccumulatorTakeGradient', handle, 2, dtype=name)
        steps += [Step(apply(0, [1, 3], 1)), Step(apply(0, [0, 3], 2)), Step(count), Step(*take), Step(apply(0, [1], 3)), Step(count),
                  Step(apply(1, [4], 4)), Step(apply(1, [2], 5)), Step(*take),
                  Step(b.op('AccumulatorSetGlobalStep', handle, np.int64(7))), Step(apply(6, [1], 1)), Step(count),
                  Step(apply(7, [1], 1)), Step(apply(7, [1], 1, width=3), error=True), Step(apply(7, [2], 3)), Step(*take)]
    return steps


@script('Switch', 'Merge')
def switch_merge(b, types):
    name = types['T']
    pred = b.op('Placeholder', dtype='bool', shape=None)
    no, yes = b.op('Switch', values(name, [2]), pred)
    merged = b.op('Merge', [b.op('Identity', no), b.op('Identity', yes)])
    side = [b.op('Identity', one) for one in (no, yes)]
    return [step for value in (True, False) for step in (
        Step(*merged, feeds={pred: np.array(value)}), Step(side[value], feeds={pred: np.array(value)}),
        Step(side[not value], feeds={pred: np.array(value)}, error='any'))]  # TensorFlow's servers and sessions differ


types_for('T', ALL_TYPES, 'Switch')


@script('RefSwitch', 'RefMerge')
def ref_switch(b, types):
    steps = []
    v, start, read = b.variable(values('float32', [2]))
    pred = b.op('Placeholder', dtype='bool', shape=None)
    no, yes = b.op('RefSwitch', v, pred)
    change = b.op('AssignAdd', yes, np.ones([2], np.float32))
    merged = b.op('RefMerge', [no, change])
    for value in True, False, True:
        steps += [Step(merged[0], feeds={pred: np.array(value)}), Step(read)]
    return [Step(start)] + steps


@script('RefSelect')
def ref_select(b, types):
    (v, start, _), (w, start_too, _) = (b.variable(values('float32', [2], key=k)) for k in (1, 2))
    index = b.op('Placeholder', dtype='int32', shape=None)
    chosen = b.op('Identity', b.op('RefSelect', index, [v, w]))
    return [Step(start, start_too), Step(chosen, feeds={index: np.int32(0)}), Step(chosen, feeds={index: np.int32(1)}),
            Step(chosen, feeds={index: np.int32(2)}, error=True)]


types_for('T', ['float32'], 'Enter')


@script('Enter', 'Exit', 'NextIteration', 'LoopCond', 'RefEnter', 'RefExit', 'RefNextIteration')
def while_loop_v1(b, types):
    n = tf1.placeholder(tf.int32, [])
    count, total = tf1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t * 2.0 + 1.0), [0, tf.zeros([2])])
    nested = tf1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t + tf1.while_loop(
        lambda j, _: j < i, lambda j, u: (j + 1, u + 1), [0, 0])[1]), [0, 0])[1]
    v, start, read = b.variable(values('float32', [2]))
    inside = b.op('RefEnter', v, frame_name=b.name('frame'))
    out = b.op('RefExit', b.op('AssignAdd', inside, b.op('Enter', np.ones([2], np.float32), frame_name=b.name('frame'))))
    return [Step(count, total, nested, feeds={n: np.int32(k)}) for k in (0, 1, 7, 40)] + [Step(start), Step(out), Step(read)]


def _functional(steps):
    """A script whose control flow stays functional, as it does for programs that keep TensorFlow 2's control flow."""
    def build(b, types):
        tf1.enable_control_flow_v2()
        try:
            return steps(b)
        finally:
            tf1.disable_control_flow_v2()
    build.__name__ = steps.__name__
    return build


@script('StatelessIf', 'If')
@_functional
def functional_if(b):
    pred, x = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.float32, [None])
    v, start, read = b.variable(values('float32', [3]), ref=False)

    def change():
        with tf.control_dependencies([b.op('AssignAddVariableOp', v, x)]):
            return tf.identity(x)
    pure = tf1.cond(pred, lambda: x * 2.0, lambda: tf.reduce_sum(x, keepdims=True))
    stateful = tf1.cond(pred, change, lambda: x)
    return [Step(start)] + [step for value in (True, False) for step in (
        Step(pure, stateful, feeds={pred: np.array(value), x: values('float32', [3])}), Step(read))]


@script('StatelessWhile', 'While')
@_functional
def functional_while(b):
    n = tf1.placeholder(tf.int32, [])
    v, start, read = b.variable(np.zeros([], np.float32), ref=False)

    def count(i, t):
        with tf.control_dependencies([b.op('AssignAddVariableOp', v, t)]):
            return i + 1, t + 1.0
    pure = tf1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t * 2.0), [0, tf.ones([2])])
    stateful = tf1.while_loop(lambda i, _: i < n, count, [0, 1.0])
    return [Step(start)] + [step for k in (0, 1, 6) for step in (Step(*pure, *stateful, feeds={n: np.int32(k)}), Step(read))]


@script('StatelessCase', 'Case')
@_functional
def functional_case(b):
    index, x = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.float32, [2])
    v, start, read = b.variable(np.zeros([2], np.float32), ref=False)

    def change():
        with tf.control_dependencies([b.op('AssignAddVariableOp', v, x)]):
            return tf.identity(x)
    pure = tf.switch_case(index, [lambda: x, lambda: x * 2.0, lambda: -x])
    stateful = tf.switch_case(index, [lambda: x, change])
    return [Step(start)] + [step for k in (0, 1, 2, 7, -1) for step in (
        Step(pure, stateful, feeds={index: np.int32(k), x: values('float32', [2])}), Step(read))]


@script('PartitionedCall', 'StatefulPartitionedCall')
@_functional
def function_call(b):
    x = tf1.placeholder(tf.float32, [None])
    v, start, read = b.variable(values('float32', [2]), ref=False)

    @tf.function(autograph=False)
    def inner(t):
        return t * 3.0 + 1.0

    @tf.function(autograph=False)
    def outer(t, u):
        return inner(t), inner(inner(u)), u

    @tf.function(autograph=False)
    def change(t):
        b.op('AssignAddVariableOp', v, t)
        return b.op('ReadVariableOp', v, dtype='float32')
    return [Step(start), Step(*outer(x, x + 1.0), change(x), feeds={x: values('float32', [2])}), Step(read)]


@script('MapDefun', 'RemoteCall')
@_functional
def called_functions(b):
    """Kernels that call functions of the library."""
    x, rows = tf1.placeholder(tf.float32, [None]), tf1.placeholder(tf.float32, [None, 2])
    name = tf1.placeholder(tf.string, [])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([2], tf.float32), tf.TensorSpec([None], tf.float32)])
    def each(row, all_of_them):
        return tf.reduce_sum(row) + tf.reduce_sum(all_of_them), tf.strings.as_string(row)

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)])
    def twice(t):
        return t * 2.0

    def mapped(shapes):
        return b.op('MapDefun', [rows], [x], output_types=['float32', 'string'], output_shapes=shapes, f=each.get_concrete_function())

    known, unknown = mapped([[], [2]]), mapped([None, None])
    there, asked = (b.op('RemoteCall', target, [x], Tout=['float32'], f=twice.get_concrete_function())
                    for target in (np.array(b'/device:CPU:0', object), name))
    fed = {x: values('float32', [3]), rows: values('float32', [4, 2])}
    return [Step(*known, *unknown, feeds=fed), Step(*known, feeds={**fed, rows: np.zeros([0, 2], np.float32)}),
            Step(there, feeds={x: values('float32', [3])}),
            Step(asked, feeds={x: values('float32', [3]), name: np.array(b'/device:CPU:0', object)}),
            Step(asked, feeds={x: values('float32', [3]), name: np.array(b'/device:CPU:77', object)}, error='any')]


@script('Timestamp')
def timestamp(b, types):
    now = tf1.placeholder(tf.float64, [])
    return [Step(b.op('Less', b.op('Abs', b.op('Sub', b.op('Timestamp'), now)), np.float64(3600)), feeds={now: np.float64(time.time())})]


@script('OptionalFromValue', 'OptionalNone', 'OptionalHasValue', 'OptionalGetValue')
@_functional
def optionals(b):
    full = b.op('OptionalFromValue', [values('float32', [2]), np.array(b'text', object)])
    empty = b.op('OptionalNone')
    asked = [b.op('OptionalHasValue', one) for one in (full, empty)]
    got = b.op('OptionalGetValue', full, output_types=['float32', 'string'], output_shapes=[[2], []])
    wrong = [b.op('OptionalGetValue', one, output_types=names, output_shapes=shapes) for one, names, shapes in (
        (empty, ['float32'], [None]), (full, ['float32'], [None]), (full, ['int32', 'string'], [None, None]),
        (full, ['float32', 'string'], [[3], None]))]
    # The gradient of a functional conditional hands its intermediate results on in them.
    pred, x = tf1.placeholder(tf.bool, []), tf1.placeholder(tf.float32, [3])
    gradient = tf1.gradients(tf1.cond(pred, lambda: tf.exp(x) * 2.0, lambda: x), x)[0]
    return [Step(*asked), Step(*got)] + [Step(*one, error=True) for one in wrong] + [
        Step(gradient, feeds={pred: np.array(value), x: values('float32', [3])}) for value in (True, False)]


@script('EmptyTensorList', 'TensorListPushBack', 'TensorListPopBack', 'TensorListLength')
@_functional
def tensor_lists(b):
    any_shape, no_limit = b.hidden(np.int32(-1)), b.hidden(np.int32(-1))

    def empty(shape=any_shape, limit=no_limit, dtype='float32'):
        return b.op('EmptyTensorList', shape, limit, element_dtype=dtype)

    def pushed(handle, *elements):
        for element in elements:
            handle = b.op('TensorListPushBack', handle, element)
        return handle

    def pop(handle, shape=any_shape, dtype='float32'):
        return b.op('TensorListPopBack', handle, shape, element_dtype=dtype)
    one, two = values('float32', [2]), values('float32', [3, 1])
    both = pushed(empty(), one, two)
    rest, last = pop(both)
    texts = pushed(empty(dtype='string'), np.array([b'a', b'b'], object))
    sum_ = b.op('AddN', [both, both, pushed(empty(), two[:2, 0], two)])
    pops = [pop(handle) for handle in (sum_, b.op('ZerosLike', both))]
    good = [b.op('TensorListLength', one) for one in (empty(), both, rest)] + [
        last, pop(rest)[1], pop(texts, dtype='string')[1], pop(both, b.hidden(np.array([2], np.int32)))[1]] + [
        one for handle, last_ in pops for one in (last_, pop(handle)[1])]
    wrong = [pop(empty())[1], b.op('TensorListLength', pushed(empty(limit=b.hidden(np.int32(1))), one, one)),
             b.op('TensorListLength', pushed(empty(b.hidden(np.array([3], np.int32))), one)),
             b.op('TensorListLength', b.op('AddN', [both, rest]))]
    # The gradients of functional loops keep what each iteration had in them.
    n, x = tf1.placeholder(tf.int32, []), tf1.placeholder(tf.float32, [2])
    looped = tf1.while_loop(lambda i, _: i < n, lambda i, t: (i + 1, t * x + 1.0), [0, x])[1]
    slope, = tf1.gradients(looped, x)
    return [Step(*good)] + [Step(one, error=True) for one in wrong] + [
        Step(looped, slope, *tf1.gradients(slope, x), feeds={n: np.int32(k), x: values('float32', [2])}) for k in (0, 1, 5)]


@script('PyFunc', 'PyFuncStateless', 'EagerPyFunc')
def python_functions(b, types):
    """They are of another process: TensorFlow's servers do not find them either."""
    return [Step(b.op(op, [np.float32(1)], token='pyfunc_of_nobody', Tout=['float32']), error='any')
            for op in ('PyFunc', 'PyFuncStateless', 'EagerPyFunc')]


@script('Stack', 'StackPush', 'StackPop', 'StackClose')
def stack_by_name(b, types):
    stack = b.op('Stack', elem_type='float32', stack_name=b.name('stack'))
    with tf.control_dependencies([b.op('StackPush', stack, np.float32(1))]):
        second = b.op('StackPush', stack, np.array([2, 3], np.float32))
    with tf.control_dependencies([second]):
        top = b.op('StackPop', stack, elem_type='float32')
    with tf.control_dependencies([top]):
        bottom = b.op('StackPop', stack, elem_type='float32')
    with tf.control_dependencies([bottom]):
        close = b.op('StackClose', stack)
    empty = b.op('StackPop', b.op('Stack', elem_type='float32', stack_name=b.name('other')), elem_type='float32')
    return [Step(second, top, bottom, close), Step(empty, error=True)]


@script('RandomShuffleQueueV2')
def shuffle_queue_opened_again(b, types):
    shared = dict(component_types=['int32'], shapes=[[]], capacity=20, shared_name=b.name('queue'))
    first = b.op('RandomShuffleQueueV2', seed=7, seed2=8, **shared)
    again = [b.op('RandomShuffleQueueV2', **dict(shared, **seeds)) for seeds in ({}, dict(seed=7, seed2=8), dict(seed=1, seed2=8))]
    return [Step(first.op), Step(again[0].op), Step(again[1].op), Step(again[2].op, error=True)]


@script('Const')
def constants_of_no_elements(b, types):
    found = []
    for dtype, field in (tf.string, dict(string_val=[b''])), (tf.float32, dict(float_val=[3.0])):
        proto = tf1.make_tensor_proto(np.zeros([0, 2], np.float32))
        proto.ClearField('tensor_content')
        proto.dtype = dtype.as_datatype_enum
        for key, value in field.items():
            getattr(proto, key).extend(value)
        graph = tf1.get_default_graph()
        found.append(graph.create_op('Const', [], [dtype], attrs={
            'value': attr_value_pb2.AttrValue(tensor=proto), 'dtype': attr_value_pb2.AttrValue(type=proto.dtype)}, name='none').outputs[0])
    return [Step(*(b.op('Identity', x) for x in found))]

# SPDX-License-Identifier: Apache-2.0
"""Variables of both kinds and what reads, assigns and scatters into them."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, NUMBERS, Step, nonzero, numpy_type, script, types_for, values

types_for('dtype', ALL_TYPES, 'VariableV2', 'VarHandleOp')
types_for('dtype', ['float32', 'int64', 'string'], 'Variable')


@script('VariableV2', 'Assign', 'IsVariableInitialized')
def reference_variable(b, types):
    name = types['dtype']
    v = b.op('VariableV2', shape=[2, 3], dtype=name, shared_name=b.name('v'))
    ready = b.op('IsVariableInitialized', v)
    read = b.op('Identity', v)
    first = b.op('Assign', v, values(name, [2, 3]))
    second = b.op('Assign', v, values(name, [2, 3], key=1))
    other_shape = b.op('Assign', v, b.hidden(values(name, [4])), validate_shape=False)
    wrong_shape = b.op('Assign', v, b.hidden(values(name, [3, 2])))
    return [Step(ready), Step(read, error=True), Step(v, error=True), Step(first), Step(ready, read, v), Step(second), Step(read),
            Step(wrong_shape, error=True), Step(read), Step(other_shape), Step(read)]


@script('Variable')
def variable_v1(b, types):
    v = b.op('Variable', shape=[2], dtype=types['dtype'], shared_name=b.name('v'))
    return [Step(b.op('Assign', v, values(types['dtype'], [2]))), Step(v)]


@script('AssignAdd')
def assign_add(b, types):
    return _accumulate(b, types, 'AssignAdd')


@script('AssignSub')
def assign_sub(b, types):
    return _accumulate(b, types, 'AssignSub')


def _accumulate(b, types, op):
    name = types['T']
    v, start, read = b.variable(values(name, [2, 3]))
    change = b.op(op, v, values(name, [2, 3], key=1))
    locked = b.op(op, v, values(name, [2, 3], key=2), use_locking=True)
    wrong = b.op(op, v, b.hidden(values(name, [3])))
    fresh = b.op('VariableV2', shape=[2, 3], dtype=name, shared_name=b.name('fresh'))
    early = b.op(op, fresh, values(name, [2, 3]))
    return [Step(start), Step(change), Step(change), Step(read), Step(locked), Step(wrong, error=True), Step(read), Step(early, error=True)]


@script('CountUpTo')
def count_up_to(b, types):
    v, start, read = b.variable(values(types['T'], [], 0, 0))
    count = b.op('CountUpTo', v, limit=2)
    return [Step(start), Step(count), Step(count), Step(count, error=True), Step(read)]


@script('VarHandleOp', 'AssignVariableOp', 'ReadVariableOp', 'VarIsInitializedOp', 'VariableShape', 'DestroyResourceOp', 'DisableCopyOnRead')
def resource_variable(b, types):
    name = types['dtype']
    v = b.op('VarHandleOp', shape=[2, 3], dtype=name, shared_name=b.name('v'))
    ready = b.op('VarIsInitializedOp', v)
    read = b.op('ReadVariableOp', v, dtype=name)
    shape = [b.op('VariableShape', v, out_type=t) for t in ('int32', 'int64')]
    assign = b.op('AssignVariableOp', v, values(name, [2, 3]))
    again = b.op('AssignVariableOp', v, values(name, [2, 3], key=1))
    any_handle = b.op('VarHandleOp', shape=None, dtype=name, shared_name=b.name('v'))
    other_shape = b.op('AssignVariableOp', any_handle, values(name, [4]))
    read_any = b.op('ReadVariableOp', any_handle, dtype=name)
    destroy = b.op('DestroyResourceOp', v, ignore_lookup_error=False)
    gone = b.op('DestroyResourceOp', v)
    other = 'int32' if name != 'int32' else 'int64'
    wrong_type = b.op('ReadVariableOp', b.op('VarHandleOp', shape=[2, 3], dtype=other, shared_name=b.name('v')), dtype=other)
    return [Step(ready), Step(read, error=True), Step(assign), Step(ready, read, *shape), Step(again), Step(read, read_any),
            Step(b.op('DisableCopyOnRead', v)), Step(other_shape), Step(read_any), Step(wrong_type, error=True), Step(destroy),
            Step(ready), Step(read, error=True), Step(destroy, error=True), Step(gone)]


@script('AssignAddVariableOp')
def assign_add_variable(b, types):
    return _accumulate_resource(b, types, 'AssignAddVariableOp')


@script('AssignSubVariableOp')
def assign_sub_variable(b, types):
    return _accumulate_resource(b, types, 'AssignSubVariableOp')


types_for('dtype', NUMBERS, 'AssignAddVariableOp', 'AssignSubVariableOp')


def _accumulate_resource(b, types, op):
    name = types['dtype']
    v, start, read = b.variable(values(name, [2, 3]), ref=False)
    change = b.op(op, v, values(name, [2, 3], key=1))
    wrong = b.op(op, v, b.hidden(values(name, [3])))
    fresh = b.op('VarHandleOp', shape=[2, 3], dtype=name, shared_name=b.name('fresh'))
    return [Step(start), Step(change), Step(change), Step(read), Step(wrong, error=True), Step(read),
            Step(b.op(op, fresh, values(name, [2, 3])), error=True)]


def _scatter(op, resource):
    def scatter(b, types):
        name, index = types['dtype' if resource else 'T'], numpy_type(types['Tindices'])
        v, start, read = b.variable(values(name, [5, 2]), ref=not resource)
        fill = nonzero if op.endswith('Div') else values
        ids = np.array([0, 3, 4] if op.endswith('Update') else [3, 0, 3], index)
        change = b.op(op, v, ids, fill(name, [3, 2], key=1))
        matrix = b.op(op, v, np.array([[1], [2]], index), fill(name, [2, 1, 2], key=2))
        scalar = b.op(op, v, np.array([0, 2], index), fill(name, [], key=3))
        nothing = b.op(op, v, np.array([], index), values(name, [0, 2]))
        outside = [b.op(op, v, b.hidden(np.array([i], index)), fill(name, [1, 2])) for i in (5, -1)]
        wrong = b.op(op, v, b.hidden(ids), b.hidden(values(name, [2, 2])))
        return [Step(start), Step(change), Step(read), Step(matrix), Step(scalar), Step(nothing), Step(read),
                Step(outside[0], error=True), Step(outside[1], error=True), Step(wrong, error=True), Step(read)]
    scatter.__name__ = op
    return scatter


_SCATTERS = ['Scatter' + rule for rule in ('Add', 'Sub', 'Update', 'Mul', 'Div', 'Max', 'Min')]
for _op in _SCATTERS:
    script(_op)(_scatter(_op, False))
    script('Resource' + _op)(_scatter('Resource' + _op, True))
types_for('T', NUMBERS, *_SCATTERS)
types_for('dtype', NUMBERS, *['Resource' + _op for _op in _SCATTERS])


@script('ResourceGather')
def resource_gather(b, types):
    name, index = types['dtype'], numpy_type(types['Tindices'])
    v, start, _ = b.variable(values(name, [5, 2]), ref=False)

    def gather(ids, **attrs):
        return b.op('ResourceGather', v, b.hidden(np.array(ids, index)), dtype=name, **attrs)
    return [Step(start), Step(gather([0, 4, 4]), gather([[1], [2]]), gather(3), gather([])), Step(gather([5]), error=True),
            Step(gather([-1]), error=True)]


types_for('dtype', ALL_TYPES, 'ResourceGather')


def _scatter_nd(op, resource):
    def scatter_nd(b, types):
        name, index = types['T'], numpy_type(types['Tindices'])
        v, start, read = b.variable(values(name, [4, 3]), ref=not resource)
        rows = b.op(op, v, np.array([[0], [2]], index), values(name, [2, 3], key=1))
        cells = b.op(op, v, np.array([[0, 1], [3, 2]], index), values(name, [2], key=2))
        outside = b.op(op, v, b.hidden(np.array([[4]], index)), values(name, [1, 3]))
        wrong = b.op(op, v, b.hidden(np.array([[0]], index)), b.hidden(values(name, [1, 2])))
        return [Step(start), Step(rows), Step(read), Step(cells), Step(read), Step(outside, error=True), Step(wrong, error=True), Step(read)]
    scatter_nd.__name__ = op
    return scatter_nd


_SCATTERS_ND = ['ScatterNd' + rule for rule in ('Add', 'Sub', 'Update')]
for _op in _SCATTERS_ND:
    script(_op)(_scatter_nd(_op, False))
    script('Resource' + _op)(_scatter_nd('Resource' + _op, True))
types_for('T', NUMBERS, *_SCATTERS_ND)
types_for('T', NUMBERS, *['Resource' + _op for _op in _SCATTERS_ND])


@script('ResourceGatherNd')
def resource_gather_nd(b, types):
    name, index = types['dtype'], numpy_type(types['Tindices'])
    v, start, _ = b.variable(values(name, [4, 3]), ref=False)

    def gather(ids):
        return b.op('ResourceGatherNd', v, b.hidden(np.array(ids, index)), dtype=name)
    return [Step(start), Step(gather([[0], [3]]), gather([[0, 1], [3, 2]])), Step(gather([[4]]), error=True)]


types_for('dtype', NUMBERS, 'ResourceGatherNd')


@script('ResourceCountUpTo')
def resource_count_up_to(b, types):
    v, start, read = b.variable(values(types['T'], [], 0, 0), ref=False)
    count = b.op('ResourceCountUpTo', v, limit=2, T=types['T'])
    return [Step(start), Step(count), Step(count), Step(count, error=True), Step(read)]


@script('TemporaryVariable', 'DestroyTemporaryVariable')
def temporary_variable(b, types):
    v = b.op('TemporaryVariable', shape=[2], dtype=types['dtype'], var_name=b.name('t'))
    full = b.op('Assign', v, values(types['dtype'], [2]))
    return [Step(b.op('DestroyTemporaryVariable', full, var_name=b.name('t')))] * 2


types_for('dtype', NUMBERS, 'TemporaryVariable')


@script('RefIdentity')
def ref_identity(b, types):
    v, start, read = b.variable(values('float32', [2]))
    same = b.op('RefIdentity', v)
    return [Step(start), Step(same), Step(b.op('AssignAdd', same, np.ones([2], np.float32))), Step(read)]


@script('MutexV2', 'MutexLock', 'ConsumeMutexLock')
def mutex(b, types):
    """The second lock of a step waits for the first to be released; a lock that nobody consumes ends with its step."""
    handle = b.op('MutexV2', shared_name=b.name('mutex'))
    one = b.op('MutexLock', handle)
    with tf.control_dependencies([b.op('ConsumeMutexLock', one)]):
        two = b.op('MutexLock', handle)
    with tf.control_dependencies([b.op('ConsumeMutexLock', two)]):
        done = b.op('Identity', np.int32(7))
    alone = b.op('MutexLock', handle)
    with tf.control_dependencies([alone]):
        held = b.op('Identity', np.int32(8))
    return [Step(done), Step(done), Step(held), Step(done), Step(held)]


@script('GetSessionTensor', 'DeleteSessionTensor', 'GetSessionHandle', 'GetSessionHandleV2')
def session_tensors(b, types):
    handle = b.hidden(np.array(b'x;7;/job:localhost/replica:0/task:0/device:CPU:0', object))
    return [Step(b.op('GetSessionTensor', handle, dtype='float32'), error=True), Step(b.op('DeleteSessionTensor', handle), error=True)]

# SPDX-License-Identifier: Apache-2.0
"""Lists of tensors by index, stacked, scattered, cut and joined; EmptyTensorList and its kin are in cases_flow.py."""
import numpy as np
import tensorflow as tf

from cases import Step, script, types_for, values

tf1 = tf.compat.v1
TYPES = ['float32', 'float16', 'int64', 'complex64', 'bool', 'string']
types_for('element_dtype', TYPES, 'TensorListReserve', 'TensorListFromTensor', 'TensorListSplit')


def _ints(*numbers):
    return np.array(numbers, np.int32)


def _stack(b, handle, dtype, shape=-1, count=-1):
    return b.op('TensorListStack', handle, b.hidden(np.array(shape, np.int32)), element_dtype=dtype, num_elements=count)


def _failing(*outputs):
    return [Step(one, error=True) for one in outputs]


@script('TensorListReserve', 'TensorListGetItem', 'TensorListSetItem', 'TensorListResize', 'TensorListElementShape')
def by_index(b, types):
    dtype = types['element_dtype']

    def reserve(shape, count):
        shape = np.array(shape, types['shape_type'])
        return b.op('TensorListReserve', b.hidden(shape), b.hidden(np.int32(count)), element_dtype=dtype)

    def put(handle, index, value, **attrs):
        return b.op('TensorListSetItem', handle, b.hidden(np.int32(index)), b.hidden(value), **attrs)

    def get(handle, index, shape=-1):
        return b.op('TensorListGetItem', handle, b.hidden(np.int32(index)), b.hidden(np.array(shape, np.int32)), element_dtype=dtype)

    def size(handle):
        return b.op('TensorListLength', handle)

    def shape_of(handle):
        return b.op('TensorListElementShape', handle, shape_type=types['shape_type'])
    three = reserve([2], 3)
    one, other = values(dtype, [2]), values(dtype, [2], key=1)
    first = put(three, 0, one)
    both = put(first, 2, other)
    again = put(both, 0, other)
    free = put(reserve(-1, 2), 1, one)
    cut = b.op('TensorListResize', both, b.hidden(np.int32(1)))
    longer = b.op('TensorListResize', both, b.hidden(np.int32(5)))
    good = [size(three), get(three, 1), get(first, 0), get(first, 2), get(both, 0), get(both, 2), get(again, 0), get(again, 2),
            get(free, 0), get(free, 0, [2]), get(free, 1), size(cut), get(cut, 0), size(longer), get(longer, 4), _stack(b, longer, dtype),
            shape_of(three), shape_of(reserve(-1, 1)), shape_of(reserve([-1, 3], 0)), size(reserve([2], 0)),
            get(put(three, 4, one, resize_if_index_out_of_bounds=True), 4),
            b.op('TensorListPopBack', both, b.hidden(np.int32(-1)), element_dtype=dtype)[1],
            b.op('TensorListPopBack', first, b.hidden(np.int32(-1)), element_dtype=dtype)[1]]
    wrong = [get(three, 3), get(three, -1), get(reserve(-1, 1), 0), get(reserve([-1], 1), 0), size(put(three, 3, one)),
             size(put(three, -1, one)), size(put(three, 0, values(dtype, [3]))), size(reserve([2], -1)), size(reserve(3, 1)),
             size(b.op('TensorListResize', both, b.hidden(np.int32(-1)))), get(three, 0, [3])]
    return [Step(*good), Step(*good)] + _failing(*wrong)


@script('TensorListFromTensor', 'TensorListStack', 'TensorListGather', 'TensorListScatter', 'TensorListScatterV2',
        'TensorListScatterIntoExistingList')
def rows(b, types):
    dtype = types['element_dtype']
    tensor = values(dtype, [3, 2])

    def shape(*sizes):
        return b.hidden(np.array(sizes, types['shape_type']))
    anything = b.hidden(np.array(-1, types['shape_type']))

    def made(value=tensor, each=None):
        return b.op('TensorListFromTensor', b.hidden(value), shape(2) if each is None else each)

    def gather(handle, indices, each=-1):
        return b.op('TensorListGather', handle, b.hidden(_ints(*indices)), b.hidden(np.array(each, np.int32)), element_dtype=dtype)

    def scatter(indices, value=tensor, each=None):
        return b.op('TensorListScatter', b.hidden(value), b.hidden(_ints(*indices)), shape(2) if each is None else each)

    def sized(indices, count, value=tensor):
        return b.op('TensorListScatterV2', b.hidden(value), b.hidden(_ints(*indices)), shape(2), b.hidden(np.int32(count)))

    def into(handle, indices, value=tensor):
        return b.op('TensorListScatterIntoExistingList', handle, b.hidden(value), b.hidden(_ints(*indices)))
    handle = made()
    good = [_stack(b, handle, dtype), _stack(b, handle, dtype, [2], 3), _stack(b, made(each=anything), dtype, [-1]),
            _stack(b, made(values(dtype, [0, 2])), dtype), _stack(b, made(values(dtype, [2, 2, 0, 3]), anything), dtype),
            gather(handle, [2, 0, 2]), gather(handle, [], [2]), gather(handle, []), _stack(b, scatter([2, 0, 1]), dtype),
            # TensorFlow dies of reading elements that a scatter left out.
            gather(scatter([4, 0, 1]), [4, 0]), gather(sized([2, 0, 1], 6), [1, 2]), b.op('TensorListLength', sized([2, 0, 1], 6)),
            b.op('TensorListLength', scatter([4, 0, 1])), _stack(b, sized([2, 0, 1], -1), dtype),
            _stack(b, into(handle, [0, 2, 1]), dtype), _stack(b, handle, dtype)]
    wrong = [_stack(b, made(values(dtype, [0, 2]), anything), dtype), _stack(b, handle, dtype, [3]), _stack(b, handle, dtype, -1, 2),
             b.op('TensorListLength', made(values(dtype, []))), b.op('TensorListLength', made(each=shape(3))),
             gather(handle, [3]), gather(handle, [-1]), b.op('TensorListLength', scatter([-1, 0, 1])),
             b.op('TensorListLength', sized([3, 0, 1], 3)), b.op('TensorListLength', sized([2, 0, 1], -2)),
             _stack(b, b.op('TensorListPushBack', made(each=anything), values(dtype, [4])), dtype)]
    return [Step(*good), Step(*good)] + _failing(*wrong)


@script('TensorListSplit', 'TensorListConcat', 'TensorListConcatV2', 'TensorListConcatLists', 'TensorListPushBackBatch')
def pieces(b, types):
    dtype = types['element_dtype']
    tensor = values(dtype, [5, 2])

    def shape(*sizes):
        return b.hidden(np.array(sizes, types['shape_type']))

    def split(lengths, value=tensor, each=None):
        return b.op('TensorListSplit', b.hidden(value), shape(-1, 2) if each is None else each, b.hidden(np.array(lengths, np.int64)))

    def concat(handle, each=None, leading=()):
        return list(b.op('TensorListConcatV2', handle, shape(-1, 2) if each is None else each, b.hidden(np.array(leading, np.int64)),
                         element_dtype=dtype))

    def old(handle, each=None):
        return list(b.op('TensorListConcat', handle, element_dtype=dtype, element_shape=each))

    def size(handle):
        return b.op('TensorListLength', handle)
    cut = split([2, 0, 3])
    reserved = b.op('TensorListReserve', shape(-1, 2), b.hidden(np.int32(2)), element_dtype=dtype)
    half = b.op('TensorListSetItem', reserved, b.hidden(np.int32(0)), tensor[:3])
    lists = tf.stack([cut, split([5])])
    twice = b.op('TensorListConcatLists', lists, tf.stack([split([1, 4]), cut]), element_dtype=dtype)
    pushed = b.op('TensorListPushBackBatch', tf.stack([split([5]), cut]), b.hidden(values(dtype, [2, 4, 2])))
    good = [size(cut), *concat(cut), *old(cut), *old(cut, [None, 2]), *concat(half, leading=[9, 2]), *concat(reserved, shape(3, 2)),
            size(split([], values(dtype, [0, 2])))]
    for batch in twice, pushed:
        good += [t for one in tf.unstack(batch, 2) for t in concat(one)]
    wrong = [size(split([2, 2])), size(split([2, 4])), size(split([6, -1])), size(split([5], each=shape(-1, 3))),
             concat(cut, shape(2, 2))[0], concat(cut, shape(-1, 3))[0], size(split([], values(dtype, []))),
             size(b.op('TensorListPushBackBatch', tf.stack([cut]), b.hidden(values(dtype, [2, 1, 2]))))]
    return [Step(*good)] + _failing(*wrong)


@script('TensorListFromTensor')
def recurrent(b, types):
    """A Keras loop and its gradient: reads one list by index and sets another."""
    if types['element_dtype'] != 'float32':
        return []
    x = tf1.placeholder(tf.float32, [5, 3])
    tf1.enable_control_flow_v2()
    try:
        inputs = tf1.TensorArray(tf.float32, 5, element_shape=[3]).unstack(x)
        outputs = tf1.TensorArray(tf.float32, 5, element_shape=[3])
        step = lambda i, state, out: (i + 1, tf.tanh(state + inputs.read(i)), out.write(i, state * 2.0))  # noqa: E731
        _, last, outputs = tf1.while_loop(lambda i, *_: i < 5, step, [0, tf.zeros([3]), outputs])
        loss = tf.reduce_sum(outputs.stack()) + tf.reduce_sum(last)
        slope, = tf1.gradients(loss, x)
    finally:
        tf1.disable_control_flow_v2()
    return [Step(loss, slope, feeds={x: values('float32', [5, 3], -0.5, 0.5)})]


@script('TensorListGather', 'TensorListFromTensor', 'TensorListPushBack', 'EmptyTensorList')
def gathers_what_is_of_one_shape(b, types):
    at = b.op('EmptyTensorList', np.int32(-1), np.int32(-1), element_dtype='float32')
    for shape in [2], [3], [2]:
        at = b.op('TensorListPushBack', at, values('float32', shape))

    def gather(*indices):
        return b.op('TensorListGather', at, np.array(indices, np.int32), np.int32(-1), element_dtype='float32')
    return [Step(gather(0, 2)), Step(gather(1)), Step(gather(0, 1), error=True)]

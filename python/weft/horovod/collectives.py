# SPDX-License-Identifier: Apache-2.0
"""Ops that all ranks run together. Ranks meet by the names of their ops, which must be the same in all programs."""
import pickle
import zlib

import numpy as np
import tensorflow as tf
from tensorflow.python.ops import gen_collective_ops as ops

from weft.horovod import job

tf1 = tf.compat.v1
GROUP = 0x48564400  # no key of another's: strategies count theirs from 1
_REDUCED = (tf.bfloat16, tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
_GATHERED = (tf.float16, tf.float32, tf.float64, tf.int32, tf.int64)
_SENT = _GATHERED + (tf.bool,)


class ReduceOp:
    def __init__(self, name, merge, final='Id'):
        self.name, self.merge, self.final = name, merge, final

    def __repr__(self):
        return self.name


Average = ReduceOp('Average', 'Add', 'Div')
Sum = ReduceOp('Sum', 'Add')
Min = ReduceOp('Min', 'Min')
Max = ReduceOp('Max', 'Max')
Product = ReduceOp('Product', 'Mul')
Adasum = ReduceOp('Adasum', None)


class _NoCompression:
    @staticmethod
    def compress(tensor):
        return tensor, None

    @staticmethod
    def decompress(tensor, context):
        return tensor


class _HalfCompression:
    @staticmethod
    def compress(tensor):
        return (tf.cast(tensor, tf.float16), tensor.dtype) if tensor.dtype.is_floating else (tensor, None)

    @staticmethod
    def decompress(tensor, context):
        return tensor if context is None else tf.cast(tensor, context)


class _Bfloat16Compression(_HalfCompression):
    @staticmethod
    def compress(tensor):
        return (tf.cast(tensor, tf.bfloat16), tensor.dtype) if tensor.dtype.is_floating else (tensor, None)


class Compression:
    """What a reduction sends. With bf16, which Horovod has not, large and small numbers stay what they are, with three digits."""
    none = _NoCompression
    fp16 = _HalfCompression
    bf16 = _Bfloat16Compression


def _instance(kind, tensor, name):
    """A number for what ranks call by the same name; the second of a name in a graph gets another."""
    name = name or tensor.name
    names = tf1.get_collection_ref('weft_horovod_names')
    full = '%s %s' % (kind, name)
    names.append(full)
    return zlib.crc32(('%s %d' % (full, names.count(full))).encode()) & 0x7fffffff


def _keys(kind, tensor, name):
    """The group's size; 0: as it was formed last."""
    size = 0 if job.is_elastic() else job.size()
    return tf.constant(size), tf.constant(GROUP), tf.constant(_instance(kind, tensor, name))


def _as(tensor, types, by):
    """The tensor in a type that the op takes."""
    return tensor if tensor.dtype in types else tf.cast(tensor, by)


def _op_of(average, op):
    if average is not None and op is not None:
        raise ValueError('The op parameter supersedes average. Please provide only one of them.')
    op = op or (Sum if average is False else Average)
    if op.merge is None:
        raise NotImplementedError('hvd.Adasum')
    return op


def allreduce(tensor, average=None, device_dense='', device_sparse='', compression=Compression.none, op=None, prescale_factor=1.0,
              postscale_factor=1.0, name=None, process_set=None, ignore_name_scope=False):
    """The reduction (Average unless said) of what the ranks give, of one shape; of tf.IndexedSlices, all their slices."""
    op = _op_of(average, op)
    if isinstance(tensor, tf.IndexedSlices):
        if op not in (Average, Sum):
            raise NotImplementedError('tf.IndexedSlices are averaged or summed, not %s' % op)
        values, count = _gather(tensor.values, name and name + '.values')
        indices, _ = _gather(tensor.indices, name and name + '.indices')
        return tf.IndexedSlices(values / tf.cast(count, values.dtype) if op is Average else values, indices, tensor.dense_shape)
    tensor = tf.convert_to_tensor(tensor)
    with tf.device(device_dense):
        scaled = tensor if prescale_factor == 1.0 else tensor * tf.cast(prescale_factor, tensor.dtype)
        small, context = compression.compress(scaled)
        sent = _as(small, _REDUCED, tf.int32)
        reduced = ops.collective_reduce_v2(sent, *_keys('allreduce', tensor, name), [], merge_op=op.merge, final_op=op.final)
        reduced.set_shape(tensor.shape)
        reduced = compression.decompress(tf.cast(reduced, small.dtype), context)
        return reduced if postscale_factor == 1.0 else reduced * tf.cast(postscale_factor, reduced.dtype)


def grouped_allreduce(tensors, average=None, device_dense='', device_sparse='', compression=Compression.none, op=None,
                      prescale_factor=1.0, postscale_factor=1.0, process_set=None, ignore_name_scope=False):
    return [allreduce(tensor, average, device_dense, device_sparse, compression, op, prescale_factor, postscale_factor)
            for tensor in tensors]


def _gather(tensor, name):
    """What allgather gives, and of how many ranks it is."""
    tensor = tf.convert_to_tensor(tensor)
    sent = _as(tensor, _GATHERED, tf.int32)
    rows = tf.shape(sent)[:1]
    sizes = ops.collective_gather_v2(rows, *_keys('allgather sizes', tensor, name), [])
    most = tf.reduce_max(sizes)
    padding = tf.concat([[[0, most - rows[0]]], tf.zeros([tf.rank(sent) - 1, 2], tf.int32)], 0)
    padded = ops.collective_gather_v2(tf.pad(sent, padding), *_keys('allgather', tensor, name), [])
    is_row = tf.reshape(tf.sequence_mask(sizes, most), [-1])
    gathered = tf.gather(padded, tf.reshape(tf.where(is_row), [-1]))
    if tensor.shape.rank is not None:
        gathered.set_shape([None] + tensor.shape.as_list()[1:])
    return tf.cast(gathered, tensor.dtype), tf.size(sizes)


def allgather(tensor, name=None, ignore_name_scope=False, process_set=None):
    """What the ranks give, in order of rank along dimension 0, in which they may differ."""
    return _gather(tensor, name)[0]


def _broadcast(tensor, root_rank, name):
    """The graph is this rank's own: it sends, or receives."""
    sent = _as(tensor, _SENT, tf.float32 if tensor.dtype == tf.bfloat16 else tf.int32)
    keys = _keys('broadcast', tensor, name)
    if job.rank() == root_rank:
        got = ops.collective_bcast_send_v2(sent, *keys)
    else:
        got = ops.collective_bcast_recv_v2(*keys, tf.shape(sent), T=sent.dtype)
    return tf.cast(got, tensor.dtype)


def broadcast(tensor, root_rank, name=None, ignore_name_scope=False, process_set=None):
    """What rank `root_rank` gives; the others give its shape."""
    tensor = tf.convert_to_tensor(tensor)
    if not 0 <= root_rank < job.size():
        raise ValueError('root_rank is %d, the ranks are 0 to %d' % (root_rank, job.size() - 1))
    # Who is the root may be another one the next time that the graph runs.
    got = _gather(tensor[tf.newaxis], name)[0][root_rank] if job.is_elastic() else _broadcast(tensor, root_rank, name)
    got.set_shape(tensor.shape)
    return got


def alltoall(tensor, splits=None, name=None, ignore_name_scope=False, process_set=None):
    """Part r of what each rank gives, of as many equal parts along dimension 0 as there are ranks, goes to rank r."""
    if splits is not None:
        raise NotImplementedError('hvd.alltoall of unequal parts')
    if job.is_elastic():
        raise NotImplementedError('hvd.alltoall of ranks that come and go')
    tensor = tf.convert_to_tensor(tensor)
    shape = tf.shape(tensor)
    parts = tf.reshape(_as(tensor, _REDUCED, tf.int32), tf.concat([[job.size(), shape[0] // job.size()], shape[1:]], 0))
    got = ops.collective_all_to_all_v2(parts, *_keys('alltoall', tensor, name), [])
    got = tf.reshape(got, shape)
    got.set_shape(tensor.shape)
    return tf.cast(got, tensor.dtype)


def _now(make, feed):
    """Runs an op of its own at once: all ranks must come to it in the same order."""
    with tf.Graph().as_default():
        placeholder = tf1.placeholder(feed.dtype, feed.shape)
        result = make(placeholder)
        with tf1.Session() as session:
            return session.run(result, {placeholder: feed})


def barrier(process_set=None):
    _now(lambda x: allreduce(x, name='barrier', op=Sum), np.zeros([1], np.int32))


def broadcast_value(value, root_rank, name):
    """The array that rank `root_rank` gives, at once; the others give one of its shape."""
    return _now(lambda x: _broadcast(x, root_rank, name), np.asarray(value))


def broadcast_object(obj, root_rank=0, session=None, name=None, process_set=None):
    """Any object of rank `root_rank`."""
    own = np.frombuffer(pickle.dumps(obj), np.uint8).astype(np.int32)
    size = broadcast_value(np.array([own.size], np.int32), root_rank, 'size of %s' % (name or 'object'))[0]
    sent = own if job.rank() == root_rank else np.zeros([size], np.int32)
    got = broadcast_value(sent, root_rank, name or 'object')
    return pickle.loads(got.astype(np.uint8).tobytes())


def allgather_object(obj, session=None, name=None, process_set=None):
    """A list of all ranks' objects."""
    own = np.frombuffer(pickle.dumps(obj), np.uint8).astype(np.int32)
    sizes = _now(lambda x: allgather(x, name='sizes of %s' % (name or 'objects')), np.array([own.size], np.int32))
    all_bytes = _now(lambda x: allgather(x, name=name or 'objects'), own).astype(np.uint8)
    return [pickle.loads(part.tobytes()) for part in np.split(all_bytes, np.cumsum(sizes)[:-1])]

# SPDX-License-Identifier: Apache-2.0
"""What training programs use: variables from one rank, gradients of all."""
import os

import tensorflow as tf

from weft.horovod import collectives, job
from weft.horovod.collectives import Average, Compression

tf1 = tf.compat.v1


def broadcast_variables(variables, root_rank, process_set=None, inplace=False):
    """An op that gives every rank's variables the values of `root_rank`'s."""
    return tf.group(*[tf1.assign(variable, collectives.broadcast(tf.identity(variable), root_rank, name=variable.name))
                      for variable in variables])


def broadcast_global_variables(root_rank):
    return broadcast_variables(tf1.global_variables(), root_rank)


class BroadcastGlobalVariablesHook(tf1.train.SessionRunHook):
    """Starts all ranks from the variables of `root_rank`, made or restored."""

    def __init__(self, root_rank, device=''):
        self._root_rank = root_rank
        self._device = device
        self._op = None

    def begin(self):
        if self._op is None or self._op.graph is not tf1.get_default_graph():
            with tf.device(self._device):
                self._op = broadcast_global_variables(self._root_rank)

    def after_create_session(self, session, coord):
        session.run(self._op)


def _buckets(gradients):
    """Lists of places of gradients that are reduced in one message: of one type and HOROVOD_FUSION_THRESHOLD bytes at most, 4 MB
    unless said. A backward pass has the last gradients first, so those of the last variables leave while it goes on."""
    most = int(os.environ.get('HOROVOD_FUSION_THRESHOLD', 4 << 20))
    buckets, open_buckets = [], {}  # of those that still take more: the bucket and its bytes, by type
    for i in reversed(range(len(gradients))):
        gradient = gradients[i]
        if gradient is None:
            continue
        if isinstance(gradient, tf.IndexedSlices) or not gradient.shape.is_fully_defined():
            buckets.append([i])
            continue
        size = gradient.shape.num_elements() * gradient.dtype.size
        bucket, taken = open_buckets.get(gradient.dtype, (None, 0))
        if bucket is None or taken + size > most:
            bucket, taken = [], 0
            buckets.append(bucket)
        bucket.append(i)
        open_buckets[gradient.dtype] = bucket, taken + size
    return buckets


class _DistributedOptimizer(tf1.train.Optimizer):
    def __init__(self, optimizer, name, use_locking, device_dense, device_sparse, compression, sparse_as_dense, op):
        super().__init__(name=name or 'Distributed%s' % type(optimizer).__name__, use_locking=use_locking)
        self._optimizer = optimizer
        self._device_dense, self._device_sparse = device_dense, device_sparse
        self._compression, self._sparse_as_dense, self._op = compression, sparse_as_dense, op

    def compute_gradients(self, *args, **kwargs):
        """Those of the optimizer, reduced over the ranks."""
        pairs = self._optimizer.compute_gradients(*args, **kwargs)
        if job.size() == 1 and not job.is_elastic():
            return pairs
        reduced = {}
        for bucket in _buckets([self._as_said(gradient) for gradient, _ in pairs]):
            name = 'gradient of ' + pairs[bucket[0]][1].name
            reduced.update(zip(bucket, self._reduced([self._as_said(pairs[i][0]) for i in bucket], name)))
        return [(reduced.get(i), variable) for i, (_, variable) in enumerate(pairs)]

    def _as_said(self, gradient):
        return tf.convert_to_tensor(gradient) if self._sparse_as_dense and isinstance(gradient, tf.IndexedSlices) else gradient

    def _reduced(self, gradients, name):
        """One gradient, or several in one message."""
        one = gradients[0]
        if len(gradients) > 1:
            with tf.device(self._device_dense):
                one = tf.concat([tf.reshape(gradient, [-1]) for gradient in gradients], 0)
        whole = collectives.allreduce(one, device_dense=self._device_dense, device_sparse=self._device_sparse,
                                      compression=self._compression, op=self._op, name=name)
        if len(gradients) == 1:
            return [whole]
        with tf.device(self._device_dense):
            parts = tf.split(whole, [gradient.shape.num_elements() for gradient in gradients])
            return [tf.reshape(part, gradient.shape) for part, gradient in zip(parts, gradients)]

    def apply_gradients(self, *args, **kwargs):
        return self._optimizer.apply_gradients(*args, **kwargs)

    def get_slot(self, *args, **kwargs):
        return self._optimizer.get_slot(*args, **kwargs)

    def get_slot_names(self, *args, **kwargs):
        return self._optimizer.get_slot_names(*args, **kwargs)

    def variables(self, *args, **kwargs):
        return self._optimizer.variables(*args, **kwargs)


def DistributedOptimizer(optimizer, name=None, use_locking=False, device_dense='', device_sparse='', compression=Compression.none,
                         sparse_as_dense=False, backward_passes_per_step=1, op=Average, gradient_predivide_factor=1.0,
                         average_aggregated_gradients=False, num_groups=0, groups=None, process_set=None):
    """A tf.compat.v1.train.Optimizer whose gradients are those of all ranks."""
    if not isinstance(optimizer, tf1.train.Optimizer):
        raise NotImplementedError('hvd.DistributedOptimizer of %s: weft has it for tf.compat.v1.train.Optimizer' % type(optimizer).__name__)
    if backward_passes_per_step != 1:
        raise NotImplementedError('hvd.DistributedOptimizer with backward_passes_per_step=%d' % backward_passes_per_step)
    return _DistributedOptimizer(optimizer, name, use_locking, device_dense, device_sparse, compression, sparse_as_dense, op)


def DistributedGradientTape(*args, **kwargs):
    raise NotImplementedError('hvd.DistributedGradientTape: weft runs graphs, not TensorFlow 2 eager programs')

# SPDX-License-Identifier: Apache-2.0
"""What training programs use: variables from one rank, gradients of all."""
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


class _DistributedOptimizer(tf1.train.Optimizer):
    def __init__(self, optimizer, name, use_locking, device_dense, device_sparse, compression, sparse_as_dense, op):
        super().__init__(name=name or 'Distributed%s' % type(optimizer).__name__, use_locking=use_locking)
        self._optimizer = optimizer
        self._device_dense, self._device_sparse = device_dense, device_sparse
        self._compression, self._sparse_as_dense, self._op = compression, sparse_as_dense, op

    def compute_gradients(self, *args, **kwargs):
        """Those of the optimizer, reduced over the ranks."""
        return [(self._reduced(gradient, variable), variable) for gradient, variable in self._optimizer.compute_gradients(*args, **kwargs)]

    def _reduced(self, gradient, variable):
        if gradient is None or job.size() == 1 and not job.is_elastic():
            return gradient
        if self._sparse_as_dense and isinstance(gradient, tf.IndexedSlices):
            gradient = tf.convert_to_tensor(gradient)
        return collectives.allreduce(gradient, device_dense=self._device_dense, device_sparse=self._device_sparse,
                                     compression=self._compression, op=self._op, name='gradient of ' + variable.name)

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

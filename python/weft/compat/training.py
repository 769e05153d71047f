# SPDX-License-Identifier: Apache-2.0
"""What tf.contrib had for training: where variables go, tables of words, losses of sequences, Adam for a few rows."""
import zlib

import tensorflow.compat.v1 as tf
from tensorflow.python.ops import lookup_ops


def byte_size_load_fn(op):
    """The bytes of a variable of known shape."""
    variable = op.outputs[0]
    variable.shape.assert_is_fully_defined()
    return variable.shape.num_elements() * variable.dtype.base_dtype.size


class GreedyLoadBalancingStrategy:
    """A strategy of replica_device_setter: the next variable goes where `load_fn` has added up to least."""

    def __init__(self, num_tasks, load_fn):
        self._loads, self._load_fn = [0.0] * num_tasks, load_fn

    def __call__(self, op):
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


class RandomStrategy:
    """A strategy of replica_device_setter: by the variable's name, the same in every process."""

    def __init__(self, num_ps_tasks, seed=0):
        self._num_tasks, self._seed = num_ps_tasks, seed

    def __call__(self, op):
        return zlib.crc32(('%s/%s' % (self._seed, op.name)).encode()) % self._num_tasks


class LazyAdamOptimizer(tf.train.AdamOptimizer):
    """Adam that moves only those rows of an embedding that a step has read, and their moments."""

    def _apply_rows(self, gradient, variable, indices, update, subtract):
        def constant(tensor):
            return tf.cast(tensor, variable.dtype.base_dtype)
        beta1_power, beta2_power = (constant(power) for power in self._get_beta_accumulators())
        beta1, beta2, epsilon = constant(self._beta1_t), constant(self._beta2_t), constant(self._epsilon_t)
        rate = constant(self._lr_t) * tf.sqrt(1 - beta2_power) / (1 - beta1_power)
        m, v = self.get_slot(variable, 'm'), self.get_slot(variable, 'v')
        new_m = beta1 * tf.gather(m, indices) + (1 - beta1) * gradient
        new_v = beta2 * tf.gather(v, indices) + (1 - beta2) * tf.square(gradient)
        return tf.group(update(m, indices, new_m), update(v, indices, new_v),
                        subtract(variable, indices, rate * new_m / (tf.sqrt(new_v) + epsilon)))

    def _apply_sparse(self, grad, var):
        return self._apply_rows(grad.values, var, grad.indices, tf.scatter_update, tf.scatter_sub)

    def _resource_apply_sparse(self, grad, handle, indices):
        return self._apply_rows(grad, handle, indices, tf.scatter_update, tf.scatter_sub)


def sequence_loss(logits, targets, weights, average_across_timesteps=True, average_across_batch=True,
                  softmax_loss_function=None, name=None):
    """tf.contrib.seq2seq.sequence_loss: logits [batch, time, classes]; targets and weights [batch, time]."""
    with tf.name_scope(name, 'sequence_loss', [logits, targets, weights]):
        loss = softmax_loss_function or tf.nn.sparse_softmax_cross_entropy_with_logits
        losses = loss(labels=targets, logits=logits) * weights
        if average_across_timesteps and average_across_batch:
            return tf.reduce_sum(losses) / (tf.reduce_sum(weights) + 1e-12)
        axis = [0] if average_across_batch else [1]
        if not average_across_timesteps and not average_across_batch:
            return losses
        return tf.reduce_sum(losses, axis) / (tf.reduce_sum(weights, axis) + 1e-12)


TRAINING = dict(GreedyLoadBalancingStrategy=GreedyLoadBalancingStrategy, RandomStrategy=RandomStrategy,
                byte_size_load_fn=byte_size_load_fn)
OPTIMIZERS = dict(LazyAdamOptimizer=LazyAdamOptimizer)
SEQUENCES = dict(sequence_loss=sequence_loss)
TABLES = dict(HashTable=tf.lookup.StaticHashTable, KeyValueTensorInitializer=tf.lookup.KeyValueTensorInitializer,
              TextFileInitializer=tf.lookup.TextFileInitializer, MutableHashTable=lookup_ops.MutableHashTable,
              **{name: getattr(lookup_ops, name) for name in ('index_table_from_file', 'index_table_from_tensor',
                                                              'index_to_string_table_from_file', 'index_to_string_table_from_tensor')})

# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.batch_norm and layer_norm."""
import tensorflow.compat.v1 as tf

from weft.compat import framework
from weft.compat.framework import add_arg_scope


def _variable(name, depth, dtype, start, trainable, collections):
    return framework.model_variable(name, [depth], dtype, tf.constant_initializer(start), trainable=trainable,
                                    collections=collections)


@add_arg_scope
def batch_norm(inputs, decay=0.999, center=True, scale=False, epsilon=0.001, activation_fn=None,
               updates_collections=tf.GraphKeys.UPDATE_OPS, is_training=True, reuse=None, variables_collections=None,
               outputs_collections=None, trainable=True, data_format='NHWC', fused=None, scope=None, **unused):
    """Normalises over all dimensions but the channels. updates_collections=None makes the update of the moving
    averages a part of the layer; else it stands in that collection, for the train op to wait for."""
    unknown = set(unused) - {'param_initializers', 'param_regularizers', 'batch_weights', 'zero_debias_moving_mean',
                             'renorm', 'renorm_clipping', 'renorm_decay', 'adjustment'}
    if unknown or any(unused.values()):
        raise ValueError('weft.compat has no batch_norm with %s' % ', '.join(sorted(unused)))
    del fused
    with tf.variable_scope(scope, 'BatchNorm', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        channel = 1 if data_format == 'NCHW' else rank - 1
        depth, dtype = inputs.shape.as_list()[channel], inputs.dtype.base_dtype
        collections = variables_collections if not isinstance(variables_collections, dict) else None
        make = lambda name, start, trained: _variable(name, depth, dtype, start, trained, collections)  # noqa: E731
        beta = make('beta', 0.0, trainable) if center else None
        gamma = make('gamma', 1.0, trainable) if scale else None
        moving_mean, moving_variance = make('moving_mean', 0.0, False), make('moving_variance', 1.0, False)

        def of_the_batch():
            mean, variance = tf.nn.moments(inputs, [i for i in range(rank) if i != channel])
            updates = [tf.assign_sub(moving, (moving - now) * (1.0 - decay), name=name) for moving, now, name in (
                (moving_mean, mean, 'AssignMovingAvg'), (moving_variance, variance, 'AssignMovingAvg_1'))]
            if updates_collections is None or tf.is_tensor(is_training):
                with tf.control_dependencies(updates):
                    return tf.identity(mean), tf.identity(variance)
            for update in updates:
                tf.add_to_collections(updates_collections, update)
            return mean, variance

        def of_the_past():
            return tf.identity(moving_mean), tf.identity(moving_variance)
        if tf.is_tensor(is_training):
            mean, variance = tf.cond(is_training, of_the_batch, of_the_past)
        else:
            mean, variance = of_the_batch() if is_training else of_the_past()
        if channel != rank - 1:
            shape = [depth if i == channel else 1 for i in range(rank)]
            mean, variance, beta, gamma = (
                None if t is None else tf.reshape(t, shape) for t in (mean, variance, beta, gamma))
        net = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, epsilon)
        net.set_shape(inputs.shape)
        net = net if activation_fn is None else activation_fn(net)
        if outputs_collections:
            tf.add_to_collections(outputs_collections, net)
        return net


@add_arg_scope
def layer_norm(inputs, center=True, scale=True, activation_fn=None, reuse=None, variables_collections=None,
               outputs_collections=None, trainable=True, begin_norm_axis=1, begin_params_axis=-1, scope=None):
    """Normalises each example over the dimensions from begin_norm_axis on."""
    with tf.variable_scope(scope, 'LayerNorm', [inputs], reuse=reuse):
        inputs = tf.convert_to_tensor(inputs)
        rank = inputs.shape.ndims
        shape, dtype = inputs.shape.as_list()[begin_params_axis:], inputs.dtype.base_dtype
        beta, gamma = (framework.model_variable(name, shape, dtype, start, trainable=trainable,
                                                collections=variables_collections) if wanted else None
                       for name, start, wanted in (('beta', tf.zeros_initializer(), center),
                                                   ('gamma', tf.ones_initializer(), scale)))
        axes = list(range(begin_norm_axis % rank, rank))
        mean, variance = tf.nn.moments(inputs, axes, keep_dims=True)
        net = tf.nn.batch_normalization(inputs, mean, variance, beta, gamma, 1e-12)
        net.set_shape(inputs.shape)
        net = net if activation_fn is None else activation_fn(net)
        if outputs_collections:
            tf.add_to_collections(outputs_collections, net)
        return net

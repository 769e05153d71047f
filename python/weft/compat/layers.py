# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers: layers with the names, variables and defaults they had there, made of TensorFlow's ops alone."""
import functools

import numpy as np
import tensorflow.compat.v1 as tf

from weft.compat import framework, optimize
from weft.compat.framework import add_arg_scope

NHWC, NCHW = 'NHWC', 'NCHW'


def variance_scaling_initializer(factor=2.0, mode='FAN_IN', uniform=False, seed=None, dtype=tf.float32):
    """Random values whose variance is factor / n, n being the sizes that `mode` names."""
    if mode not in ('FAN_IN', 'FAN_OUT', 'FAN_AVG'):
        raise TypeError('Unknown mode %s [FAN_IN, FAN_OUT, FAN_AVG]' % mode)

    def initializer(shape, dtype=dtype, partition_info=None):
        shape = partition_info.full_shape if partition_info is not None else shape
        shape = [int(n) for n in shape]
        area = np.prod(shape[:-2]) if len(shape) > 2 else 1.0
        fan_in = float(shape[-2] if len(shape) > 1 else shape[-1] if shape else 1) * area
        fan_out = float(shape[-1] if shape else 1) * area
        n = {'FAN_IN': fan_in, 'FAN_OUT': fan_out, 'FAN_AVG': (fan_in + fan_out) / 2.0}[mode]
        if uniform:
            limit = (3.0 * factor / n) ** 0.5
            return tf.random_uniform(shape, -limit, limit, dtype, seed=seed)
        return tf.truncated_normal(shape, 0.0, (1.3 * factor / n) ** 0.5, dtype, seed=seed)
    return initializer


def xavier_initializer(uniform=True, seed=None, dtype=tf.float32):
    return variance_scaling_initializer(1.0, 'FAN_AVG', uniform, seed, dtype)


def _scaled_regularizer(scale, scope, name, penalty):
    if not isinstance(scale, float) and scale != 0:
        raise ValueError('scale cannot be an integer: %s' % scale)
    if scale < 0:
        raise ValueError('Setting a scale less than 0 on a regularizer: %g' % scale)
    if scale == 0:
        return lambda _: None

    def regularizer(weights):
        with tf.name_scope(scope, name, [weights]) as inner:
            return tf.multiply(tf.convert_to_tensor(scale, weights.dtype.base_dtype), penalty(weights), name=inner)
    return regularizer


def l1_regularizer(scale, scope=None):
    return _scaled_regularizer(scale, scope, 'l1_regularizer', lambda w: tf.reduce_sum(tf.abs(w)))


def l2_regularizer(scale, scope=None):
    return _scaled_regularizer(scale, scope, 'l2_regularizer', tf.nn.l2_loss)


def l1_l2_regularizer(scale_l1=1.0, scale_l2=1.0, scope=None):
    return sum_regularizer([l1_regularizer(scale_l1), l2_regularizer(scale_l2)], scope)


def sum_regularizer(regularizer_list, scope=None):
    parts = [r for r in regularizer_list if r is not None]
    if not parts:
        return None

    def regularizer(weights):
        with tf.name_scope(scope, 'sum_regularizer', [weights]) as inner:
            terms = [t for t in (r(weights) for r in parts) if t is not None]
            return tf.add_n(terms, name=inner) if terms else None
    return regularizer


def apply_regularization(regularizer, weights_list=None):
    weights = tf.get_collection(tf.GraphKeys.WEIGHTS) if weights_list is None else weights_list
    if not weights:
        raise ValueError('No weights to regularize.')
    penalties = [p for p in (regularizer(w) for w in weights) if p is not None]
    if not penalties:
        return tf.constant(0.0)
    total = tf.add_n(penalties)
    tf.add_to_collection(tf.GraphKeys.REGULARIZATION_LOSSES, total)
    return total


def _collections(variables_collections, name):
    if isinstance(variables_collections, dict):
        return variables_collections.get(name)
    return variables_collections


def _collected(outputs_collections, scope, outputs):
    """outputs, put into its collections under the scope's name, as end points are looked up by it."""
    for collection in [outputs_collections] if isinstance(outputs_collections, str) else outputs_collections or []:
        tf.add_to_collection(collection, outputs)
    outputs.alias = scope.original_name_scope.rstrip('/')
    return outputs


def _finish(net, scope, biases_shape, normalizer_fn, normalizer_params, activation_fn, biases_initializer,
            biases_regularizer, variables_collections, outputs_collections, trainable, data_format=NHWC):
    """What follows the product of a layer: normalisation or bias, then the activation."""
    if normalizer_fn is not None:
        net = normalizer_fn(net, **(normalizer_params or {}))
    elif biases_initializer is not None:
        biases = framework.model_variable(
            'biases', [biases_shape], net.dtype.base_dtype, biases_initializer, biases_regularizer, trainable,
            _collections(variables_collections, 'biases'))
        net = tf.nn.bias_add(net, biases, data_format=data_format)
    return _collected(outputs_collections, scope, net if activation_fn is None else activation_fn(net))


@add_arg_scope
def fully_connected(inputs, num_outputs, activation_fn=tf.nn.relu, normalizer_fn=None, normalizer_params=None,
                    weights_initializer=None, weights_regularizer=None, biases_initializer=tf.zeros_initializer(),
                    biases_regularizer=None, reuse=None, variables_collections=None, outputs_collections=None,
                    trainable=True, scope=None):
    """activation(inputs x weights + biases) over the last dimension."""
    with tf.variable_scope(scope, 'fully_connected', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        depth, rank = inputs.shape.as_list()[-1], inputs.shape.ndims
        if depth is None:
            raise ValueError('The last dimension of the inputs of %s should be defined, got %s' % (scope.name, inputs.shape))
        weights = framework.model_variable(
            'weights', [depth, num_outputs], inputs.dtype.base_dtype, weights_initializer or xavier_initializer(),
            weights_regularizer, trainable, _collections(variables_collections, 'weights'))
        flat = inputs if rank == 2 else tf.reshape(inputs, [-1, depth])
        net = tf.matmul(flat, weights)
        if rank != 2:
            net = tf.reshape(net, tf.concat([tf.shape(inputs)[:-1], [num_outputs]], 0))
            net.set_shape(inputs.shape.as_list()[:-1] + [num_outputs])
        if rank != 2 and normalizer_fn is None and biases_initializer is not None and rank > 5:
            raise ValueError('inputs of rank %d are not taken, expected at most 5' % rank)
        return _finish(net, scope, num_outputs, normalizer_fn, normalizer_params, activation_fn, biases_initializer,
                       biases_regularizer, variables_collections, outputs_collections, trainable)


def _pair(value):
    return [int(value)] * 2 if isinstance(value, int) else [int(v) for v in value]


def _spread(pair, data_format):
    """[1, h, w, 1] in the order of the data format."""
    return [1] + pair + [1] if data_format == NHWC else [1, 1] + pair


def _channels(inputs, data_format):
    if data_format not in (NHWC, NCHW, None):
        raise ValueError('data_format should be NHWC or NCHW, got %s' % data_format)
    if inputs.shape.ndims != 4:
        raise ValueError('Convolution expects inputs of rank 4, got %s' % inputs.shape)
    return inputs.shape.as_list()[1 if data_format == NCHW else 3]


@add_arg_scope
def convolution2d(inputs, num_outputs, kernel_size, stride=1, padding='SAME', data_format=None, rate=1,
                  activation_fn=tf.nn.relu, normalizer_fn=None, normalizer_params=None, weights_initializer=None,
                  weights_regularizer=None, biases_initializer=tf.zeros_initializer(), biases_regularizer=None,
                  reuse=None, variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    data_format = data_format or NHWC
    with tf.variable_scope(scope, 'Conv', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        weights = framework.model_variable(
            'weights', _pair(kernel_size) + [_channels(inputs, data_format), num_outputs], inputs.dtype.base_dtype,
            weights_initializer or xavier_initializer(), weights_regularizer, trainable,
            _collections(variables_collections, 'weights'))
        net = tf.nn.conv2d(inputs, weights, strides=_spread(_pair(stride), data_format), padding=padding,
                           data_format=data_format, dilations=_spread(_pair(rate), data_format))
        return _finish(net, scope, num_outputs, normalizer_fn, normalizer_params, activation_fn, biases_initializer,
                       biases_regularizer, variables_collections, outputs_collections, trainable, data_format)


@add_arg_scope
def convolution2d_transpose(inputs, num_outputs, kernel_size, stride=1, padding='SAME', activation_fn=tf.nn.relu,
                            normalizer_fn=None, normalizer_params=None, weights_initializer=None,
                            weights_regularizer=None, biases_initializer=tf.zeros_initializer(), biases_regularizer=None,
                            reuse=None, variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    with tf.variable_scope(scope, 'Conv2d_transpose', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        kernel, strides = _pair(kernel_size), _pair(stride)
        weights = framework.model_variable(
            'weights', kernel + [num_outputs, _channels(inputs, NHWC)], inputs.dtype.base_dtype,
            weights_initializer or xavier_initializer(), weights_regularizer, trainable,
            _collections(variables_collections, 'weights'))
        sizes, shape = inputs.shape.as_list(), tf.shape(inputs)

        def longer(i):
            grown = lambda n: n * strides[i] + (max(kernel[i] - strides[i], 0) if padding == 'VALID' else 0)  # noqa: E731
            return grown(shape[i + 1] if sizes[i + 1] is None else sizes[i + 1])
        net = tf.nn.conv2d_transpose(inputs, weights, tf.stack([shape[0], longer(0), longer(1), num_outputs]),
                                     _spread(strides, NHWC), padding)
        net.set_shape([sizes[0]] + [None if sizes[i + 1] is None else longer(i) for i in range(2)] + [num_outputs])
        return _finish(net, scope, num_outputs, normalizer_fn, normalizer_params, activation_fn, biases_initializer,
                       biases_regularizer, variables_collections, outputs_collections, trainable)


@add_arg_scope
def separable_convolution2d(inputs, num_outputs, kernel_size, depth_multiplier=1, stride=1, padding='SAME', rate=1,
                            activation_fn=tf.nn.relu, normalizer_fn=None, normalizer_params=None,
                            weights_initializer=None, weights_regularizer=None,
                            biases_initializer=tf.zeros_initializer(), biases_regularizer=None, reuse=None,
                            variables_collections=None, outputs_collections=None, trainable=True, scope=None):
    """A convolution of each channel; num_outputs=None leaves out the product over the channels behind it."""
    with tf.variable_scope(scope, 'SeparableConv2d', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        depth = _channels(inputs, NHWC)
        make = functools.partial(
            framework.model_variable, dtype=inputs.dtype.base_dtype, regularizer=weights_regularizer,
            initializer=weights_initializer or xavier_initializer(), trainable=trainable,
            collections=_collections(variables_collections, 'weights'))
        net = tf.nn.depthwise_conv2d(inputs, make('depthwise_weights', _pair(kernel_size) + [depth, depth_multiplier]),
                                     _spread(_pair(stride), NHWC), padding, rate=_pair(rate))
        outputs = depth * depth_multiplier
        if num_outputs is not None:
            net = tf.nn.conv2d(net, make('pointwise_weights', [1, 1, outputs, num_outputs]), strides=1, padding='VALID')
            outputs = num_outputs
        return _finish(net, scope, outputs, normalizer_fn, normalizer_params, activation_fn, biases_initializer,
                       biases_regularizer, variables_collections, outputs_collections, trainable)


def _pool(name, function):
    @add_arg_scope
    def pool(inputs, kernel_size, stride=2, padding='VALID', data_format=None, outputs_collections=None, scope=None):
        data_format = data_format or NHWC
        with tf.variable_scope(scope, name, [inputs]) as scope:
            net = function(tf.convert_to_tensor(inputs), _spread(_pair(kernel_size), data_format),
                           _spread(_pair(stride), data_format), padding, data_format)
            return _collected(outputs_collections, scope, net)
    pool._arg_scope_key += name
    return pool


max_pool2d = _pool('MaxPool2D', tf.nn.max_pool)
avg_pool2d = _pool('AvgPool2D', tf.nn.avg_pool)


@add_arg_scope
def flatten(inputs, outputs_collections=None, scope=None):
    with tf.variable_scope(scope, 'Flatten', [inputs]) as scope:
        inputs = tf.convert_to_tensor(inputs)
        if inputs.shape.ndims is None or inputs.shape.ndims < 2:
            raise ValueError('Inputs must have a least 2 dimensions.')
        rest = inputs.shape[1:].num_elements()
        return _collected(outputs_collections, scope, tf.reshape(
            inputs, [-1, rest] if rest is not None else tf.stack([tf.shape(inputs)[0], -1])))


@add_arg_scope
def dropout(inputs, keep_prob=0.5, noise_shape=None, is_training=True, outputs_collections=None, scope=None, seed=None):
    with tf.variable_scope(scope, 'Dropout', [inputs]) as scope:
        inputs = tf.convert_to_tensor(inputs)

        def dropped():
            return tf.nn.dropout(inputs, rate=1 - keep_prob, noise_shape=noise_shape, seed=seed)
        if tf.is_tensor(is_training):
            net = tf.cond(is_training, dropped, lambda: tf.identity(inputs))
        else:
            net = dropped() if is_training else tf.identity(inputs)
        return _collected(outputs_collections, scope, net)


@add_arg_scope
def bias_add(inputs, activation_fn=None, initializer=tf.zeros_initializer(), regularizer=None, reuse=None,
             variables_collections=None, outputs_collections=None, trainable=True, data_format=NHWC, scope=None):
    with tf.variable_scope(scope, 'BiasAdd', [inputs], reuse=reuse) as scope:
        inputs = tf.convert_to_tensor(inputs)
        depth = inputs.shape.as_list()[1 if data_format == NCHW else -1]
        return _finish(inputs, scope, depth, None, None, activation_fn, initializer, regularizer, variables_collections,
                       outputs_collections, trainable, data_format)


@add_arg_scope
def one_hot_encoding(labels, num_classes, on_value=1.0, off_value=0.0, outputs_collections=None, scope=None):
    with tf.variable_scope(scope, 'OneHotEncoding', [labels]) as scope:
        labels = tf.convert_to_tensor(labels)
        return _collected(outputs_collections, scope, tf.one_hot(
            tf.cast(labels, tf.int64), num_classes, on_value=on_value, off_value=off_value))


@add_arg_scope
def unit_norm(inputs, dim, epsilon=1e-7, scope=None):
    with tf.variable_scope(scope, 'UnitNorm', [inputs]):
        return inputs / tf.sqrt(epsilon + tf.reduce_sum(tf.square(inputs), dim, keepdims=True))


def embed_sequence(ids, vocab_size=None, embed_dim=None, unique=False, initializer=None, regularizer=None,
                   trainable=True, scope=None, reuse=None):
    del unique
    with tf.variable_scope(scope, 'EmbedSequence', [ids], reuse=reuse):
        table = framework.model_variable('embeddings', [vocab_size, embed_dim], tf.float32, initializer, regularizer,
                                         trainable)
        return tf.nn.embedding_lookup(table, tf.convert_to_tensor(ids))


def repeat(inputs, repetitions, layer, *args, **keywords):
    """layer of layer of ... of inputs, each in a scope with its number."""
    scope = keywords.pop('scope', None)
    name = getattr(layer, '__name__', 'layer')
    with tf.variable_scope(scope, 'Repeat', [inputs]):
        for i in range(repetitions):
            inputs = layer(inputs, *args, scope='%s_%d' % (scope or name, i + 1), **keywords)
        return tf.convert_to_tensor(inputs)


def stack(inputs, layer, stack_args, **keywords):
    """layer of layer of ... of inputs, each with the next arguments of stack_args."""
    scope = keywords.pop('scope', None)
    name = getattr(layer, '__name__', 'layer')
    with tf.variable_scope(scope, 'Stack', [inputs]):
        for i, args in enumerate(stack_args):
            args = args if isinstance(args, (list, tuple)) else [args]
            inputs = layer(inputs, *args, scope='%s_%d' % (scope or name, i + 1), **keywords)
        return inputs


def summarize_tensor(tensor, tag=None):
    tag = tag or tensor.op.name
    return (tf.summary.scalar if tensor.shape.ndims == 0 else tf.summary.histogram)(tag, tensor)


def summarize_collection(collection, name_filter=None, summarizer=summarize_tensor):
    return [summarizer(t) for t in tf.get_collection(collection, name_filter)]


def names():
    """What tf.contrib.layers holds."""
    from weft.compat import normalization
    linear, relu, relu6 = (functools.partial(fully_connected, activation_fn=f) for f in (None, tf.nn.relu, tf.nn.relu6))
    return dict(
        OPTIMIZER_CLS_NAMES=optimize.OPTIMIZER_CLS_NAMES, OPTIMIZER_SUMMARIES=optimize.OPTIMIZER_SUMMARIES,
        apply_regularization=apply_regularization, avg_pool2d=avg_pool2d, batch_norm=normalization.batch_norm,
        bias_add=bias_add, conv2d=convolution2d, conv2d_transpose=convolution2d_transpose, convolution2d=convolution2d,
        convolution2d_transpose=convolution2d_transpose, dropout=dropout, embed_sequence=embed_sequence,
        flatten=flatten, fully_connected=fully_connected, l1_l2_regularizer=l1_l2_regularizer,
        l1_regularizer=l1_regularizer, l2_regularizer=l2_regularizer, layer_norm=normalization.layer_norm,
        linear=linear, max_pool2d=max_pool2d, one_hot_encoding=one_hot_encoding, optimize_loss=optimize.optimize_loss,
        relu=relu, relu6=relu6, repeat=repeat, separable_conv2d=separable_convolution2d,
        separable_convolution2d=separable_convolution2d, stack=stack, sum_regularizer=sum_regularizer,
        summarize_activation=summarize_tensor, summarize_collection=summarize_collection,
        summarize_tensor=summarize_tensor, unit_norm=unit_norm,
        variance_scaling_initializer=variance_scaling_initializer, xavier_initializer=xavier_initializer,
        xavier_initializer_conv2d=xavier_initializer)

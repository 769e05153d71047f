# SPDX-License-Identifier: Apache-2.0
"""Functions whose arguments stood in another order before TensorFlow 1.0. Each takes both orders."""
import numpy as np
import tensorflow.compat.v1 as tf


def _is_number(value):
    """Whether `value` can only be a dimension or a count: no tensor to work on is a Python or numpy integer."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def concat(*args, **keywords):
    """concat(concat_dim, values) of TensorFlow 0.x, or concat(values, axis)."""
    given = dict(zip(('first', 'second', 'name'), args))
    if len(args) > 3:
        raise TypeError('concat takes at most 3 arguments')
    first, second = given.get('first'), given.get('second')
    if 'concat_dim' in keywords:
        values = first if 'first' in given else keywords['values']
        return tf.concat(values, keywords['concat_dim'], name=keywords.get('name', 'concat'))
    if _is_number(first) or isinstance(second, (list, tuple)):
        values = second if 'second' in given else keywords['values']
        return tf.concat(values, first, name=given.get('name', keywords.get('name', 'concat')))
    return tf.concat(*args, **keywords)


def split(*args, **keywords):
    """split(split_dim, num_split, value) of TensorFlow 0.x, or split(value, num_or_size_splits, axis)."""
    if 'split_dim' in keywords or 'num_split' in keywords or (args and _is_number(args[0])):
        old = dict(zip(('split_dim', 'num_split', 'value', 'name'), args), **keywords)
        return tf.split(old['value'], old['num_split'], old['split_dim'], name=old.get('name', 'split'))
    return tf.split(*args, **keywords)


def sparse_split(*args, **keywords):
    """sparse_split(split_dim, num_split, sp_input), or keywords alone."""
    old = dict(zip(('axis', 'num_split', 'sp_input', 'name'), args), **keywords)
    if 'split_dim' in old:
        old['axis'] = old.pop('split_dim')
    return tf.sparse_split(**old)


def reverse(tensor, axis=None, name=None, dims=None):
    """reverse(tensor, dims) with a truth value for each dimension, or reverse(tensor, axis) with numbers of dimensions."""
    axis = dims if axis is None else axis
    if isinstance(axis, (list, tuple, np.ndarray)) and len(axis) and all(isinstance(a, (bool, np.bool_)) for a in axis):
        axis = [i for i, wanted in enumerate(axis) if wanted]
    return tf.reverse(tensor, axis, name=name)


def _logits_and_labels(args, keywords, labels='labels'):
    """Positions are TensorFlow 0.x's, logits first: TensorFlow 1 takes these arguments by name alone."""
    given = dict(zip(('logits', labels), args[:2]), **keywords)
    if labels in given:
        given['labels'] = given.pop(labels)
    return args[2:], given


def softmax_cross_entropy_with_logits(*args, **keywords):
    rest, given = _logits_and_labels(args, keywords)
    return tf.nn.softmax_cross_entropy_with_logits(**dict(zip(('dim', 'name'), rest), **given))


def sparse_softmax_cross_entropy_with_logits(*args, **keywords):
    rest, given = _logits_and_labels(args, keywords)
    return tf.nn.sparse_softmax_cross_entropy_with_logits(**dict(zip(('name',), rest), **given))


def sigmoid_cross_entropy_with_logits(*args, **keywords):
    rest, given = _logits_and_labels(args, keywords, 'labels' if 'labels' in keywords else 'targets')
    return tf.nn.sigmoid_cross_entropy_with_logits(**dict(zip(('name',), rest), **given))


def _is_integer(value):
    return tf.as_dtype(value.dtype).is_integer if hasattr(value, 'dtype') else np.asarray(value).dtype.kind in 'iu'


def _inputs_and_labels(function):
    """function(weights, biases, inputs, labels, ...) of TensorFlow 0.x, or labels before inputs. Labels are integers."""
    def either(weights, biases, *args, **keywords):
        if len(args) >= 2 and _is_integer(args[1]) and not _is_integer(args[0]):
            args = (args[1], args[0]) + args[2:]
        return function(weights, biases, *args, **keywords)
    either.__name__ = function.__name__
    return either


sampled_softmax_loss = _inputs_and_labels(tf.nn.sampled_softmax_loss)
nce_loss = _inputs_and_labels(tf.nn.nce_loss)


def resize_images(images, *args, **keywords):
    """resize_images(images, new_height, new_width, ...) of TensorFlow 0.x, or resize_images(images, size, ...)."""
    if 'new_height' in keywords or (len(args) >= 2 and _is_number(args[0])):
        old = dict(zip(('new_height', 'new_width', 'method', 'align_corners'), args), **keywords)
        return tf.image.resize_images(images, [old.pop('new_height'), old.pop('new_width')], **old)
    return tf.image.resize_images(images, *args, **keywords)


class SyncReplicasOptimizer(tf.train.SyncReplicasOptimizer):
    """Takes the replica_id that TensorFlow 0.x asked for and later found out for itself."""

    def __init__(self, *args, replica_id=None, **keywords):
        del replica_id
        super().__init__(*args, **keywords)

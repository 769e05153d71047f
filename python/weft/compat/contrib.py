# SPDX-License-Identifier: Apache-2.0
"""tf.contrib, as far as programs on graphs used it for models, training and MNIST. What is missing says what is there."""
import types

import tensorflow.compat.v1 as tf

from weft.compat import framework, layers, mnist, overlay, training


class HParams:
    """tf.contrib.training.HParams: named values that a string of NAME=VALUE,... can change."""

    def __init__(self, **values):
        self.__dict__.update(values)

    def add_hparam(self, name, value):
        if name in self.__dict__:
            raise ValueError('Hyperparameter name is reserved: %s' % name)
        setattr(self, name, value)

    def set_hparam(self, name, value):
        if name not in self.__dict__:
            raise KeyError('Hyperparameter %s does not exist' % name)
        setattr(self, name, _as(type(self.__dict__[name]), value))

    def get(self, key, default=None):
        return self.__dict__.get(key, default)

    def values(self):
        return dict(self.__dict__)

    def parse(self, text):
        for item in filter(None, (part.strip() for part in text.split(','))):
            name, equals, value = item.partition('=')
            if not equals:
                raise ValueError('expected NAME=VALUE, got %s' % item)
            self.set_hparam(name.strip(), value.strip())
        return self

    def override_from_dict(self, values):
        for name, value in values.items():
            self.set_hparam(name, value)
        return self

    def __contains__(self, key):
        return key in self.__dict__


def _as(kind, value):
    if kind is bool and isinstance(value, str):
        if value.lower() not in ('true', 'false', '1', '0'):
            raise ValueError('expected true or false, got %s' % value)
        return value.lower() in ('true', '1')
    return value if kind is type(None) else kind(value)


def _softmax_cross_entropy(logits, onehot_labels, weights=1.0, label_smoothing=0, scope=None):
    """Logits came first in contrib.losses."""
    return tf.losses.softmax_cross_entropy(onehot_labels, logits, weights, label_smoothing, scope)


def _sigmoid_cross_entropy(logits, multi_class_labels, weights=1.0, label_smoothing=0, scope=None):
    return tf.losses.sigmoid_cross_entropy(multi_class_labels, logits, weights, label_smoothing, scope)


def _sparse_softmax_cross_entropy(logits, labels, weights=1.0, scope=None):
    return tf.losses.sparse_softmax_cross_entropy(labels, logits, weights, scope)


def _predictions_first(function):
    """contrib.losses took predictions, labels; tf.losses takes labels, predictions."""
    def swapped(predictions, labels=None, *args, **keywords):
        return function(labels, predictions, *args, **keywords)
    swapped.__name__ = function.__name__
    return swapped


def _losses():
    swapped = {name: _predictions_first(getattr(tf.losses, name)) for name in (
        'absolute_difference', 'mean_squared_error', 'log_loss', 'mean_pairwise_squared_error', 'cosine_distance')}
    return dict(swapped, softmax_cross_entropy=_softmax_cross_entropy, sigmoid_cross_entropy=_sigmoid_cross_entropy,
                sparse_softmax_cross_entropy=_sparse_softmax_cross_entropy, add_loss=tf.losses.add_loss,
                compute_weighted_loss=tf.losses.compute_weighted_loss, get_losses=tf.losses.get_losses,
                get_regularization_losses=tf.losses.get_regularization_losses, get_total_loss=tf.losses.get_total_loss)


def _accuracy(predictions, labels, weights=None, name=None):
    """tf.contrib.metrics.accuracy: the mean of what is equal, of this batch alone."""
    with tf.name_scope(name, 'accuracy', [predictions, labels]):
        right = tf.cast(tf.equal(predictions, tf.cast(labels, predictions.dtype)), tf.float32)
        return tf.reduce_mean(right) if weights is None else tf.reduce_sum(right * weights) / tf.reduce_sum(weights * tf.ones_like(right))


def _metrics():
    streaming = {}
    for name in ('accuracy', 'auc', 'mean_absolute_error', 'mean_squared_error', 'precision', 'recall',
                 'root_mean_squared_error'):
        metric = getattr(tf.metrics, name)
        streaming['streaming_' + name] = (
            lambda predictions, labels, *args, _metric=metric, **keywords: _metric(labels, predictions, *args, **keywords))
    return dict(streaming, streaming_mean=tf.metrics.mean, accuracy=_accuracy)


def module():
    """tensorflow.contrib with its modules."""
    def inner(name, own, *below, kind=overlay.Refusing):
        return kind('tensorflow.contrib.' + name, own, *below)
    layer_names, losses = layers.names(), _losses()
    mnist_module = mnist.module('tensorflow.contrib.learn.datasets.mnist')
    datasets = overlay.Refusing('tensorflow.contrib.learn.datasets', {'mnist': mnist_module})
    modes = types.SimpleNamespace(TRAIN='train', EVAL='eval', INFER='infer')
    rnn = getattr(tf.nn, 'rnn_cell', None)
    modules = dict(
        layers=inner('layers', layer_names), framework=inner('framework', framework.NAMES),
        learn=inner('learn', {'datasets': datasets, 'ModeKeys': modes}), losses=inner('losses', losses),
        metrics=inner('metrics', _metrics()), training=inner('training', {'HParams': HParams, **training.TRAINING}),
        opt=inner('opt', training.OPTIMIZERS), seq2seq=inner('seq2seq', training.SEQUENCES), lookup=inner('lookup', training.TABLES),
        slim=inner('slim', {**framework.NAMES, **layer_names, 'losses': inner('slim.losses', losses)}))
    if rnn is not None:
        modules['rnn'] = inner('rnn', {'static_rnn': tf.nn.static_rnn,
                                       'static_bidirectional_rnn': tf.nn.static_bidirectional_rnn}, rnn)
    return overlay.Refusing('tensorflow.contrib', modules)

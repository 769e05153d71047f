# SPDX-License-Identifier: Apache-2.0
"""read_data_sets of tensorflow.examples.tutorials.mnist and contrib.learn: MNIST's IDX files in batches."""
import collections
import gzip
import os
import struct

import numpy as np
import tensorflow.compat.v1 as tf

from weft.compat import overlay

Datasets = collections.namedtuple('Datasets', ['train', 'validation', 'test'])

_TYPES = {0x08: '>u1', 0x09: '>i1', 0x0B: '>i2', 0x0C: '>i4', 0x0D: '>f4', 0x0E: '>f8'}


def read_idx(path):
    """The array in an IDX file: two zero bytes, type, rank, sizes, then the elements, most significant byte first."""
    with open(path, 'rb') as file:
        data = file.read()
    if data[:2] == b'\x1f\x8b':
        data = gzip.decompress(data)
    if len(data) < 4 or data[:2] != b'\0\0' or data[2] not in _TYPES:
        raise ValueError('%s is not an IDX file: it begins with %r' % (path, data[:4]))
    kind, rank = np.dtype(_TYPES[data[2]]), data[3]
    if len(data) < 4 + 4 * rank:
        raise ValueError('%s ends within the sizes of its %d dimensions' % (path, rank))
    shape = struct.unpack('>%dI' % rank, data[4:4 + 4 * rank])
    elements = int(np.prod(shape, dtype=object)) if rank else 1
    if len(data) - 4 - 4 * rank != elements * kind.itemsize:
        raise ValueError('%s: shape %s takes %d bytes, and %d follow' % (
            path, list(shape), elements * kind.itemsize, len(data) - 4 - 4 * rank))
    return np.frombuffer(data, kind, elements, 4 + 4 * rank).reshape(shape).astype(kind.newbyteorder('='))


def dense_to_one_hot(labels, num_classes):
    return np.eye(num_classes)[labels]


class DataSet:
    """Images and labels, handed out in batches; each epoch has an order of its own."""

    def __init__(self, images, labels, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True, seed=None):
        dtype = tf.as_dtype(dtype).base_dtype
        if dtype not in (tf.uint8, tf.float32):
            raise TypeError('Invalid image dtype %r, expected uint8 or float32' % dtype)
        graph_seed, op_seed = tf.get_seed(seed)
        np.random.seed(graph_seed if seed is None else op_seed)
        self._fake, self._one_hot = fake_data, one_hot
        if fake_data:
            images, labels = np.ones([10000, 784], np.float32), np.zeros([10000], np.uint8)
        elif len(images) != len(labels):
            raise ValueError('there are %d images and %d labels' % (len(images), len(labels)))
        if reshape and not fake_data:
            images = images.reshape(len(images), int(np.prod(images.shape[1:])))
        if dtype == tf.float32 and images.dtype != np.float32:
            images = images.astype(np.float32) * np.float32(1 / 255.)
        self._images, self._labels = images, labels
        self._epochs, self._at = 0, 0

    images = property(lambda self: self._images)
    labels = property(lambda self: self._labels)
    num_examples = property(lambda self: len(self._images))
    epochs_completed = property(lambda self: self._epochs)

    def next_batch(self, batch_size, fake_data=False, shuffle=True):
        """The next examples. A batch that reaches over the end of an epoch goes on with the first of the next."""
        if fake_data:
            label = [1] + [0] * 9 if self._one_hot else 0
            return [[1] * 784] * batch_size, [label] * batch_size
        if self._at == 0 and self._epochs == 0 and shuffle:
            self._shuffle()
        images, labels = (a[self._at:self._at + batch_size] for a in (self._images, self._labels))
        self._at += batch_size
        if self._at > len(self._images):
            self._epochs += 1
            if shuffle:
                self._shuffle()
            self._at = batch_size - len(images)
            images = np.concatenate([images, self._images[:self._at]])
            labels = np.concatenate([labels, self._labels[:self._at]])
        return images, labels

    def _shuffle(self):
        order = np.arange(len(self._images))
        np.random.shuffle(order)
        self._images, self._labels = self._images[order], self._labels[order]


def _path(folder, name):
    for candidate in name + '.gz', name, name.replace('-idx', '.idx'):
        path = os.path.join(folder, candidate)
        if os.path.exists(path):
            return path
    raise FileNotFoundError('%s is neither in %s nor there with .gz. Put the four IDX files of MNIST there: '
                            'weft.compat does not download them.' % (name, os.path.abspath(folder)))


def read_data_sets(train_dir, fake_data=False, one_hot=False, dtype=tf.float32, reshape=True, validation_size=5000,
                   seed=None, source_url=None):
    """Reads MNIST from the four IDX files of `train_dir`, packed with gzip or not."""
    del source_url
    if fake_data:
        return Datasets(*(DataSet([], [], fake_data=True, one_hot=one_hot, dtype=dtype, seed=seed) for _ in range(3)))

    def images(name):
        array = read_idx(_path(train_dir, name))
        return array.reshape(array.shape + (1,))

    def labels(name):
        array = read_idx(_path(train_dir, name))
        return dense_to_one_hot(array, 10) if one_hot else array

    train_images, train_labels = images('train-images-idx3-ubyte'), labels('train-labels-idx1-ubyte')
    test_images, test_labels = images('t10k-images-idx3-ubyte'), labels('t10k-labels-idx1-ubyte')
    if not 0 <= validation_size <= len(train_images):
        raise ValueError('Validation size should be between 0 and {}. Received: {}.'.format(
            len(train_images), validation_size))
    options = dict(dtype=dtype, reshape=reshape, seed=seed)
    return Datasets(DataSet(train_images[validation_size:], train_labels[validation_size:], **options),
                    DataSet(train_images[:validation_size], train_labels[:validation_size], **options),
                    DataSet(test_images, test_labels, **options))


def load_mnist(train_dir='MNIST-data'):
    return read_data_sets(train_dir)


def module(name):
    """These functions as the module `name`."""
    return overlay.Refusing(name, dict(read_data_sets=read_data_sets, load_mnist=load_mnist, DataSet=DataSet,
                                       dense_to_one_hot=dense_to_one_hot))


def examples():
    """tensorflow.examples.tutorials.mnist.input_data, which TensorFlow 2 no longer has."""
    path = 'tensorflow.examples.tutorials.mnist'
    mnist = overlay.Refusing(path, {'input_data': module(path + '.input_data')})
    tutorials = overlay.Refusing('tensorflow.examples.tutorials', {'mnist': mnist})
    return overlay.Refusing('tensorflow.examples', {'tutorials': tutorials})

# SPDX-License-Identifier: Apache-2.0
"""The digits of digits.csv in the shape that TensorFlow's old tutorials give MNIST."""
import os

import numpy as np

TRAIN = 1437  # images; the other 360 test


class Images:
    """Images scaled to 0..1 with their labels; next_batch walks them in a new order each epoch."""

    def __init__(self, images, labels, seed=0):
        self.images, self.labels, self.num_examples = images, labels, len(images)
        self._random, self._order = np.random.RandomState(seed), []

    def next_batch(self, size):
        while len(self._order) < size:
            self._order = np.concatenate([self._order, self._random.permutation(self.num_examples)]).astype(int)
        batch, self._order = self._order[:size], self._order[size:]
        return self.images[batch], self.labels[batch]


class Digits:
    def __init__(self, train, test):
        self.train, self.test = train, test


def read_data_sets(folder=None, one_hot=False, seed=0):
    """`folder` holds digits.csv; by default the one this file lies in."""
    table = np.loadtxt(os.path.join(folder or os.path.dirname(os.path.abspath(__file__)), 'digits.csv'), delimiter=',')
    images, labels = (table[:, :64] / 16).astype(np.float32), table[:, 64].astype(np.int64)
    if one_hot:
        labels = np.eye(10, dtype=np.float32)[labels]
    return Digits(Images(images[:TRAIN], labels[:TRAIN], seed), Images(images[TRAIN:], labels[TRAIN:], seed))

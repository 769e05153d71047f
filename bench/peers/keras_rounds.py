#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keras' side of the row fit: the models, and an epoch of `fit`.

    keras_rounds.py make FOLDER                        FOLDER/mlp.keras and so on: what both sides begin with
    keras_rounds.py fit FILE.keras EXAMPLES CLASSES BATCH
"""
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from rounds import serve  # noqa: E402

keras = tf.keras
L = keras.layers


def models():
    def of(shape, *layers, dtype='float32'):
        return keras.Sequential([keras.Input(shape, dtype=dtype), *layers, L.Dense(10, activation='softmax')])
    yield 'mlp', of((784,), L.Dense(128, activation='relu'))
    yield 'convolutions', of((28, 28, 1), L.Conv2D(16, 3, activation='relu'), L.MaxPooling2D(), L.Conv2D(32, 3, activation='relu'),
                             L.MaxPooling2D(), L.Flatten())
    yield 'lstm', of((40,), L.Embedding(1000, 32), L.LSTM(32), dtype='int32')


def fit(path, count, classes, batch):
    model = keras.models.load_model(path)
    model.compile('adam', 'sparse_categorical_crossentropy', metrics=['accuracy'])
    tensor = model.inputs[0]
    places = np.arange(count * int(np.prod(tensor.shape[1:])), dtype=np.int64).reshape((count,) + tuple(tensor.shape[1:]))
    is_float = 'float' in str(getattr(tensor.dtype, 'name', tensor.dtype))
    x = (places % 97).astype('float32') / np.float32(97) if is_float else (places * 31 % 997).astype('int32')
    y = np.arange(count) % classes
    return lambda: model.fit(x, y, batch_size=batch, shuffle=False, verbose=0).history['loss'][-1]


if __name__ == '__main__':
    if sys.argv[1] == 'make':
        for name, made in models():
            made.save(os.path.join(sys.argv[2], name + '.keras'))
    else:
        serve(fit(sys.argv[2], *map(int, sys.argv[3:])), checks=2)

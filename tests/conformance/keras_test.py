#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Keras 2.15 in graph mode on a session of a weft server: keras_test.py [WEFT]. Models train to TensorFlow's own losses,
and what the server's values were saved as, real Keras loads with the same predictions.
"""
import os
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import processes

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
keras = tf.keras
layers = keras.layers


def _seeded(seed):
    return keras.initializers.GlorotUniform(seed)


def convolutions():
    model = keras.Sequential([
        layers.Conv2D(6, 3, padding='same', activation='relu', input_shape=(8, 8, 2), kernel_initializer=_seeded(1)),
        layers.BatchNormalization(), layers.MaxPooling2D(),
        layers.SeparableConv2D(8, 3, depthwise_initializer=_seeded(2), pointwise_initializer=_seeded(3)), layers.LeakyReLU(),
        layers.Conv2DTranspose(4, 2, strides=2, kernel_initializer=_seeded(4)), layers.UpSampling2D(), layers.ZeroPadding2D(),
        layers.GlobalAveragePooling2D(), layers.Dropout(0.25, seed=5), layers.Dense(3, activation='softmax', kernel_initializer=_seeded(6))])
    model.compile('adam', 'sparse_categorical_crossentropy', metrics=['accuracy'])
    random = np.random.RandomState(1)
    return model, random.rand(16, 8, 8, 2).astype(np.float32), random.randint(0, 3, 16)


def _text(*middle):
    model = keras.Sequential([layers.Embedding(30, 8, mask_zero=True, input_length=6, embeddings_initializer=_seeded(1)), *middle,
                              layers.Dense(1, activation='sigmoid', kernel_initializer=_seeded(2))])
    model.compile(keras.optimizers.legacy.RMSprop(0.01), 'binary_crossentropy', metrics=['accuracy'])
    random = np.random.RandomState(2)
    words = random.randint(1, 30, [12, 6]) * (np.arange(6) < random.randint(2, 7, [12, 1]))
    return model, words, random.randint(0, 2, 12).astype(np.float32)


def _recurrent(kind, **more):
    return kind(7, kernel_initializer=_seeded(3), recurrent_initializer=_seeded(4), **more)


def lstm():
    return _text(_recurrent(layers.LSTM, return_sequences=True), _recurrent(layers.LSTM))


def lstm_of_version_1():
    return _text(_recurrent(tf1.keras.layers.LSTM))


def gru():
    return _text(layers.Bidirectional(_recurrent(layers.GRU)))


def gru_of_version_1():
    return _text(_recurrent(tf1.keras.layers.GRU, return_sequences=True), layers.TimeDistributed(layers.Dense(
        4, kernel_initializer=_seeded(5))), layers.GlobalMaxPooling1D())


def simple_rnn():
    return _text(_recurrent(layers.SimpleRNN, dropout=0.0), layers.Dense(5, 'tanh', kernel_initializer=_seeded(6)))


def attention():
    """Functional: two inputs, attention between and within, two outputs with losses of their own weight."""
    asked, told = keras.Input((4, 6), name='asked'), keras.Input((5, 6), name='told')
    found = layers.Attention()([asked, told])
    within = layers.MultiHeadAttention(2, 3, kernel_initializer=_seeded(1))(asked, told)
    x = layers.LayerNormalization()(layers.Add()([found, within, asked]))
    x = layers.Concatenate()([layers.GlobalAveragePooling1D()(x), layers.Flatten()(layers.AdditiveAttention()([asked, told]))])
    one = layers.Dense(1, name='one', kernel_initializer=_seeded(2))(x)
    other = layers.Dense(3, activation='softmax', name='other', kernel_initializer=_seeded(3))(layers.PReLU()(x))
    model = keras.Model([asked, told], [one, other])
    model.compile(keras.optimizers.legacy.SGD(0.05, momentum=0.9, nesterov=True),
                  {'one': 'mse', 'other': 'categorical_crossentropy'}, loss_weights=[1.0, 0.5])
    random = np.random.RandomState(3)
    return (model, [random.rand(10, 4, 6), random.rand(10, 5, 6)],
            [random.rand(10, 1), np.eye(3)[random.randint(0, 3, 10)]])


MODELS = [convolutions, lstm, lstm_of_version_1, gru, gru_of_version_1, simple_rnn, attention]


def flat(values):
    return values if isinstance(values, list) else [values]


class KerasTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, folder=cls.folder, ps=1, worker=1))

    def in_session(self, target, use):
        """use() in a graph and a session of its own, which is Keras' session there."""
        tf1.keras.backend.clear_session()
        tf1.set_random_seed(4)
        with tf1.Session(target) as session:
            tf1.keras.backend.set_session(session)
            return use()

    def trained(self, build, save=None):
        """Losses and metrics of three epochs, of an evaluation, and predictions; save(model) last."""
        model, x, y = build()
        history = model.fit(x, y, batch_size=5, epochs=3, shuffle=False, verbose=0).history
        found = [np.asarray(history[name]) for name in sorted(history)]
        found += [np.asarray(model.evaluate(x, y, verbose=0)), np.asarray(model.train_on_batch(x, y))]
        predictions = flat(model.predict(x))
        if save:
            save(model)
        return found, predictions

    def trained_there(self, build, save=None):
        self.addCleanup(tf1.Session.reset, self.cluster['worker'][0])
        return self.in_session(self.cluster['worker'][0], lambda: self.trained(build, save))

    def assert_close(self, got, expected):
        self.assertEqual(len(got), len(expected))
        for one, other in zip(got, expected):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-5)

    def test_weights_of_an_object_graph_and_of_hdf5(self):
        for suffix in '', '.h5':
            with self.subTest(suffix):
                path = os.path.join(self.folder, 'weights' + suffix)
                _, expected = self.trained_there(convolutions, lambda model: model.save_weights(path))

                def loaded():
                    model, x, _ = convolutions()
                    model.load_weights(path)
                    return flat(model.predict(x))
                self.assert_close(self.in_session('', loaded), expected)
                self.assert_close(self.in_session(self.cluster['worker'][0], loaded), expected)

    def test_whole_models(self):
        """In HDF5 with the optimizer's state: both sessions train on to the same losses."""
        path = os.path.join(self.folder, 'model.h5')
        _, expected = self.trained_there(attention, lambda model: model.save(path))

        def goes_on():
            model = keras.models.load_model(path)
            _, x, y = attention()
            predictions = flat(model.predict(x))
            return predictions, [np.asarray(model.train_on_batch(x, y)) for _ in range(3)]
        here, losses_here = self.in_session('', goes_on)
        there, losses_there = self.in_session(self.cluster['worker'][0], goes_on)
        self.assert_close(here, expected)
        self.assert_close(there, expected)
        self.assert_close(losses_there, losses_here)

    def test_saved_model(self):
        """tf.compat.v1.keras' way of exporting from a session, loaded by TensorFlow and by a session on the server."""
        path = os.path.join(self.folder, 'saved')

        def save(model):
            tf1.saved_model.simple_save(tf1.keras.backend.get_session(), path, {'x': model.input}, {'y': model.output})
        _, expected = self.trained_there(convolutions, save)
        _, x, _ = self.in_session('', convolutions)
        for target in '', self.cluster['worker'][0]:
            with tf.Graph().as_default(), tf1.Session(target) as session:
                definition = tf1.saved_model.load(session, ['serve'], path).signature_def['serving_default']
                got = session.run(definition.outputs['y'].name, {definition.inputs['x'].name: x})
                self.assert_close([got], expected)

    def test_callbacks_and_generators(self):
        """Early stopping, checkpoints, schedules, a log of the epochs; batches from a generator."""
        path = os.path.join(self.folder, 'best.h5')

        def use():
            model, x, y = simple_rnn()
            noted = []
            batches = ((x[i % 3 * 4:][:4], y[i % 3 * 4:][:4]) for i in range(1000))
            model.fit(batches, steps_per_epoch=3, epochs=4, verbose=0, validation_data=(x, y), callbacks=[
                keras.callbacks.EarlyStopping('loss', patience=2), keras.callbacks.ModelCheckpoint(path, save_best_only=True),
                keras.callbacks.LearningRateScheduler(lambda epoch: 0.01 / (1 + epoch)),
                keras.callbacks.LambdaCallback(on_epoch_end=lambda epoch, logs: noted.append(logs['val_loss']))])
            return [np.asarray(noted)]
        here = self.in_session('', use)
        self.addCleanup(tf1.Session.reset, self.cluster['worker'][0])
        self.assert_close(self.in_session(self.cluster['worker'][0], use), here)


def _add(build):
    def test(self):
        expected = self.in_session('', lambda: self.trained(build))
        got = self.trained_there(build)
        self.assert_close(got[0] + got[1], expected[0] + expected[1])
    setattr(KerasTest, 'test_' + build.__name__, test)


for _build in MODELS:
    _add(_build)

if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)

# SPDX-License-Identifier: Apache-2.0
"""Layers, losses, metrics and optimizers in C++ against the real Keras, and files both ways:
keras_layers_test.py KERAS_TOOL [--share I/N] [TEST ...]     of the layers every N-th from I on, 0 to N - 1

Keras writes each model and data; keras_tool reads both, predicts, evaluates and takes ten steps, and saves what it trained.
Compared are predictions, the change of every weight in the first step (its gradient), losses of ten steps, weights and
predictions after them; then Keras opens what was saved in all forms and must predict the same."""
import json
import os
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['CUDA_VISIBLE_DEVICES'] = ''
import h5py
import numpy as np
import tensorflow as tf

from keras_cases import CASES, DRAWN, EXAMPLES, KERAS3, LOSSES, METRICS, NAMED_METRICS, OPTIMIZERS, keras, sequential, targets

TOOL = sys.argv[1]
SHARE, SHARES = 0, 1
if sys.argv[2:3] == ['--share']:
    SHARE, SHARES = map(int, sys.argv[3].split('/'))
    del sys.argv[2:4]
STEPS = 10
LOOSE = {  # what float sums in another order may move further in ten steps
    'unit_normalization': 1e-4, 'activation_exponential': 5e-4, 'optimizer_adadelta': 1e-4, 'optimizer_nadam': 1e-4,
    'optimizer_adamax': 1e-4, 'optimizer_ftrl_l1_l2': 1e-4, 'small_resnet': 2e-4, 'transformer': 2e-4,
    'optimizer_rmsprop_centered': 1e-3, 'batch_normalization': 1e-4, 'batch_normalization_3': 1e-4,
}


def model_inputs(model, random):
    inputs = model.inputs if isinstance(model.inputs, (list, tuple)) else [model.inputs]
    made = []
    for tensor in inputs:
        shape = (EXAMPLES,) + tuple(tensor.shape[1:])
        kind = str(getattr(tensor.dtype, 'name', tensor.dtype))
        if kind == 'string':
            texts = ['sun', 'the Rain, the sun!', '', 'Fog', 'rain', 'rain and  sun and snow and wind']
            made.append(np.array([texts[i] for i in random.integers(0, len(texts), shape).ravel()]).reshape(shape))
        elif kind == 'int64':
            made.append(random.integers(0, 9, shape))
        elif 'int' in str(getattr(tensor.dtype, 'name', tensor.dtype)):
            ids = random.integers(1, 9, shape).astype('int32')
            ids[::2, -2:] = 0  # where 0 stands for nothing
            made.append(ids)
        else:
            made.append(random.normal(size=shape).astype('float32'))
    return made


def as_list(value):
    return list(value) if isinstance(value, (list, tuple)) else [value]


def weights_of(model):
    return [np.array(w) for w in model.get_weights()]


def given(arrays):
    """As Keras takes them."""
    if any(x.dtype.kind == 'U' for x in arrays):  # texts are tensors, and then all must be
        return [tf.constant(x) for x in arrays]
    return list(arrays)


class Case:
    """A model with data, and what Keras makes of them."""

    def __init__(self, folder, name, model, loss='mse', optimizer='sgd', metrics=(), kind='real', steps=STEPS, save=False):
        self.name = name
        self.tolerance = LOOSE.get(name, 2e-5)
        base = os.path.join(folder, name)
        random = np.random.default_rng(len(name))
        # Other values than zeros and ones.
        model.set_weights([w + 0.05 * np.abs(random.normal(size=w.shape)).astype('float32') for w in weights_of(model)])
        self.x = model_inputs(model, random)
        self.stateful = name.startswith('stateful')
        if name in ('gru_masked', 'stateful_simple'):
            self.x[0][1, 2:4] = 0.5
        model.save(base + '.keras')
        fed = given(self.x)
        self.out = as_list(model(fed if len(fed) > 1 else fed[0], training=False))
        self.out = [np.array(out) for out in self.out]
        y = [targets(kind, out.shape, random) for out in self.out]
        losses = loss if isinstance(loss, list) else [loss]
        batch = EXAMPLES if self.stateful else 3
        settings = {'batch': batch, 'loss': losses, 'optimizer': optimizer, 'metrics': list(metrics), 'steps': steps, 'save': save}
        settings['texts'] = {'x%d' % i: [list(x.shape), x.ravel().tolist()] for i, x in enumerate(self.x) if x.dtype.kind == 'U'}
        with h5py.File(base + '.h5', 'w') as data:
            data.attrs['settings'] = json.dumps(settings)
            for i, x in enumerate(self.x):
                if x.dtype.kind != 'U':
                    data['x%d' % i] = x
            for i, target in enumerate(y):
                data['y%d' % i] = target
        made = [getattr(keras.losses, one['class_name'])(**one['config']) if isinstance(one, dict) else keras.losses.get(one)
                for one in losses]
        model.compile(OPTIMIZERS[optimizer](), made if len(made) > 1 else made[0], metrics=self.keras_metrics(metrics),
                      run_eagerly=True)
        packed = (fed if len(fed) > 1 else fed[0], y if len(y) > 1 else y[0])
        self.reset_states(model)
        self.logs = model.evaluate(*packed, verbose=0, batch_size=batch, return_dict=True)
        self.losses, self.first, self.names = [], None, [w.name for w in model.weights]
        for step in range(steps):
            logs = model.train_on_batch(*packed, return_dict=True)
            self.losses.append(float(logs['loss']))
            if step == 0:
                self.first = weights_of(model)
        self.last = weights_of(model)
        self.reset_states(model)
        self.trained = [np.array(out) for out in as_list(model(packed[0], training=False))]

    @staticmethod
    def reset_states(model):
        for layer in model.layers:
            if getattr(layer, 'stateful', False):
                layer.reset_states()

    @staticmethod
    def keras_metrics(names):
        return [NAMED_METRICS[name](name=name) if name in NAMED_METRICS else name for name in names]

    def differences(self, folder):
        """What is further from Keras's than the tolerance, as texts."""
        base = os.path.join(folder, self.name)
        wrong = []

        def compare(what, ours, theirs, tolerance):
            ours, theirs = np.array(ours, 'float64'), np.array(theirs, 'float64')
            if ours.shape != theirs.shape:
                wrong.append('%s: shape %s, Keras %s' % (what, ours.shape, theirs.shape))
            elif ours.size:
                off = np.abs(ours - theirs) / (1 + np.abs(theirs))
                if not off.max() <= tolerance:
                    wrong.append('%s: off by %.2g' % (what, off.max()))

        with h5py.File(base + '.weft.h5', 'r') as made:
            for i, out in enumerate(self.out):
                compare('prediction %d' % i, made['out%d' % i][()], out, 1e-5)
            logs = dict(zip(made.attrs['logs'], made['logs'][()]))
            for name, value in self.logs.items():
                short = {'compile_metrics': None}.get(name, name)
                if short in logs:
                    compare(name, logs[short], value, 1e-5)
                elif len(self.out) == 1:
                    wrong.append('no number %s, but %s' % (name, sorted(logs)))
            if self.losses:
                compare('losses', made['losses'][()], self.losses, self.tolerance)
                for when, theirs in (('first', self.first), ('last', self.last)):
                    self.compare_weights(compare, when, made[when], theirs)
                for i, out in enumerate(self.trained):
                    compare('trained prediction %d' % i, made['trained%d' % i][()], out, self.tolerance)
        return wrong

    def compare_weights(self, compare, when, ours, theirs):
        """By order where Keras has ours, else by shape and value: trained ones come first there."""
        values = [ours[str(i)][()] for i in range(len(ours))]
        states = [i for i, name in enumerate(ours.attrs['names']) if name.rsplit('/', 1)[1].startswith('moving_')]
        if not KERAS3:
            values = [v for i, v in enumerate(values) if i not in states] + [values[i] for i in states]
        left = list(range(len(theirs)))
        for i, value in enumerate(values):
            fitting = [j for j in left if theirs[j].shape == value.shape]
            if not fitting:
                compare('%s weight %d' % (when, i), value, np.zeros(()), 0)
                continue
            best = min(fitting, key=lambda j: np.abs(theirs[j] - value).max() if value.size else 0)
            left.remove(best)
            compare('%s weights: %s' % (when, self.names[best]), value, theirs[best], self.tolerance)


class Keras(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(cls.folder.cleanup)

    def check(self, cases):
        folder = self.folder.name
        done = subprocess.run([TOOL, folder] + [case.name for case in cases], stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        told = dict(line.split(' ', 1) for line in done.stdout.splitlines())
        for case in cases:
            with self.subTest(case.name):
                self.assertEqual(told.get(case.name), 'ok')
                self.assertEqual(case.differences(folder), [])

    def test_layers(self):
        only = os.environ.get('CASES', '').split()
        cases = []
        for name, make in list(CASES.items())[SHARE::SHARES]:
            if only and name not in only:
                continue
            if KERAS3 is False and name == 'small_resnet':
                continue  # Keras 2 scales the moving variance of images
            outputs = 2 if name == 'several_outputs' else 1
            keras.utils.set_random_seed(len(name))  # a pool whose two largest are all but equal may choose the other
            steps = 0 if name == 'activation_exponential' else STEPS  # which grows without bounds
            cases.append(Case(self.folder.name, name, make(), loss=['mse'] * outputs, save=True, steps=steps))
        self.check(cases)
        for case in cases:
            if case.name.startswith('group_query'):
                continue  # Keras builds it from shapes that weft's files do not tell (docs/layers.md)
            with self.subTest(case.name + ' opened by Keras'):
                self.open_saved(case)

    def open_saved(self, case):
        base = os.path.join(self.folder.name, case.name)
        version = '3' if KERAS3 else '2'
        with h5py.File(base + '.weft.h5', 'r') as made:
            expected = [made['trained%d' % i][()] for i in range(len(case.trained))]
        x = given(case.x) if len(case.x) > 1 else given(case.x)[0]
        for form in ('.weft%s.keras' % version, '.weft%s.h5' % version):
            # A layer that Keras 2.15 knows, but not in files, not in its own either.
            custom = {} if KERAS3 else {'SpectralNormalization': keras.layers.SpectralNormalization}
            model = keras.models.load_model(base + form, custom_objects=custom, compile=False)
            for ours, theirs in zip(expected, as_list(model(x, training=False))):
                np.testing.assert_allclose(np.array(theirs), ours, rtol=1e-5, atol=1e-5, err_msg=form)
        model.set_weights([w * 0 for w in weights_of(model)])
        forms = ['.weft%s.weights.h5' % version] + ([] if KERAS3 else ['.weft.ckpt'])
        for form in forms:
            if form == '.weft.ckpt' and case.name == 'nested':
                continue
            loaded = model.load_weights(base + form)
            case.reset_states(model)
            if form == '.weft.ckpt':
                loaded.assert_existing_objects_matched()
            for ours, theirs in zip(expected, as_list(model(x, training=False))):
                np.testing.assert_allclose(np.array(theirs), ours, rtol=1e-5, atol=1e-5, err_msg=form)

    def test_draws(self):
        """Of what is drawn while training means, squares and products of neighbours are Keras's, as far as so many draws tell."""
        folder, count = self.folder.name, 4000
        random = np.random.default_rng(5)
        told = {}
        for name, (shared, make) in DRAWN.items():
            model = make()
            one = random.uniform(0, 255, model.input_shape[1:])
            if len(one.shape) < 3:
                one = one / 128 - 1
            x = np.repeat(one[None].astype('float32'), count, 0)
            model.save('%s/%s.keras' % (folder, name))
            with h5py.File('%s/%s.h5' % (folder, name), 'w') as data:
                data.attrs['settings'] = json.dumps({'batch': shared if shared > 1 else count})
                data['x0'] = x
            size = shared if shared > 1 else count
            told[name] = np.concatenate([np.array(model(x[i:i + size])) for i in range(0, count, size)]), shared
        done = subprocess.run([TOOL, folder] + list(told), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=200)
        self.assertEqual(done.stdout, ''.join('%s ok\n' % name for name in told), done.stderr[-3000:])
        for name, (theirs, shared) in told.items():
            with self.subTest(name), h5py.File('%s/%s.weft.h5' % (folder, name), 'r') as made:
                ours = made['out0'][()]
                self.assertEqual(ours.shape, theirs.shape)
                self.compare_draws(ours[::shared], theirs[::shared])

    def compare_draws(self, ours, theirs):
        def features(y):
            y = y.reshape(len(y), -1).astype('float64')
            return np.concatenate([y, y * y, y * np.roll(y, 1, 1)], 1)
        ours, theirs = features(ours), features(theirs)
        self.assertGreater(ours.var(0).max(), 0)
        error = np.sqrt((ours.var(0) + theirs.var(0)) / len(ours)) + 1e-4 * (1 + np.abs(theirs.mean(0)))
        self.assertLess((np.abs(ours.mean(0) - theirs.mean(0)) / error).max(), 6)

    def test_optimizers(self):
        self.check([Case(self.folder.name, 'optimizer_' + name,
                         sequential((5,), keras.layers.Dense(4, activation='tanh'), keras.layers.Dense(3)), optimizer=name)
                    for name in OPTIMIZERS])

    def test_losses_and_metrics(self):
        cases = []
        for number, (loss, (kind, activation)) in enumerate(LOSSES.items()):
            if isinstance(loss, tuple):
                if not KERAS3 and loss[1] == 'reduction':
                    continue
                name, loss = '%s_%s' % loss[:2], {'class_name': loss[0], 'config': {loss[1]: loss[2]}}
            else:
                name = loss
            if (activation is None and kind in ('one_hot', 'class')) or (kind == 'binary' and activation != 'sigmoid'):
                metrics = []
            else:
                metrics = METRICS.get(kind, [])
            model = sequential((5,), keras.layers.Dense(6, activation=activation))
            cases.append(Case(self.folder.name, 'loss_%d_%s' % (number, name), model, loss=loss, kind=kind, metrics=metrics,
                              steps=2))
        self.check(cases)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)

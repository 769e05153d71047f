# SPDX-License-Identifier: Apache-2.0
"""Estimators in C++ against the real ones of TensorFlow 2.15: estimator_test.py ESTIMATOR_TOOL [--all] [TEST ...]

Both begin with the checkpoint that the real one writes before its first step and see the same records. Compared are the
losses of ten steps, all numbers of the checkpoint after them (the optimizers' too, under TensorFlow's names), evaluations and
predictions; then each goes on from the other's checkpoint, and TensorFlow opens what C++ exports."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
os.environ['CUDA_VISIBLE_DEVICES'] = ''
import logging
import numpy as np
import tensorflow as tf

logging.getLogger('tensorflow').setLevel(logging.ERROR)
import estimator_cases
from estimator_cases import CASES, E, SPEC, input_fn, write_records

TOOL = sys.argv[1]
ALL = '--all' in sys.argv
STEPS = 10
USUAL = ('dnn_classes', 'wide_and_deep')


def tool(case, command, folder, data, *arguments):
    done = subprocess.run([TOOL, case, command, folder, data, *map(str, arguments)], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, text=True, timeout=120)
    assert done.returncode == 0, '%s %s: %s' % (case, command, done.stderr[-3000:])
    return json.loads(done.stdout)


class Losses(tf.compat.v1.train.SessionRunHook):
    def __init__(self):
        self.values = []

    def before_run(self, run_context):
        loss, = run_context.session.graph.get_collection('losses')[-1:]
        return tf.compat.v1.train.SessionRunArgs(loss)

    def after_run(self, run_context, run_values):
        self.values.append(float(run_values.results))


def values_of(checkpoint):
    reader = tf.train.load_checkpoint(checkpoint)
    return {name: reader.get_tensor(name) for name in reader.get_variable_to_shape_map()}


class Estimators(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        folder = tempfile.TemporaryDirectory()
        cls.addClassCleanup(folder.cleanup)
        cls.folder = folder.name
        cls.data = os.path.join(cls.folder, 'records')
        cls.records = write_records(cls.data)

    def begin(self, case):
        """The folder of the real one's training and another that has what it began with."""
        real, ours = (os.path.join(self.folder, case + end) for end in ('_real', '_ours'))
        config = E.RunConfig(model_dir=real, tf_random_seed=7, keep_checkpoint_max=0, save_checkpoints_steps=1000)
        estimator = CASES[case](config)
        losses = Losses()
        estimator.train(input_fn(case, self.data, True), steps=STEPS, hooks=[losses])
        os.makedirs(ours)
        for name in os.listdir(real):
            if name.startswith('model.ckpt-0'):
                shutil.copy(os.path.join(real, name), ours)
        with open(os.path.join(ours, 'checkpoint'), 'w') as state:
            state.write('model_checkpoint_path: "model.ckpt-0"\nall_model_checkpoint_paths: "model.ckpt-0"\n')
        return estimator, losses.values, real, ours

    def close(self, ours, theirs, what, tolerance=2e-5):
        self.assertEqual(set(ours), set(theirs), what)
        for name, value in theirs.items():
            if np.asarray(value).dtype.kind in 'OSU':
                self.assertEqual(ours[name], value, '%s of %s' % (name, what))
            else:
                np.testing.assert_allclose(ours[name], value, rtol=tolerance, atol=tolerance, err_msg='%s of %s' % (name, what))

    def predictions(self, estimator, case):
        found = {}
        for row in estimator.predict(input_fn(case, self.data, False)):
            for key, value in row.items():
                found.setdefault(key, []).extend(v.decode() if isinstance(v, bytes) else v.item() for v in np.ravel(value))
        return found

    def check_export(self, case, real, folder, predictions):
        made = tool(case, 'export', folder, self.data, os.path.join(self.folder, case + '_export'))['folder']
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            meta = tf.compat.v1.saved_model.load(session, ['serve'], made)
            signature = meta.signature_def['predict']
            got = session.run({key: tensor.name for key, tensor in signature.outputs.items()},
                              {signature.inputs['examples'].name: self.records})
            for key, value in got.items():
                flat = [v.decode() if isinstance(v, bytes) else v.item() for v in np.ravel(value)]
                self.close({key: flat}, {key: predictions[key]}, case + ' exported')
            names = set(meta.signature_def)
        theirs = real.export_saved_model(os.path.join(self.folder, case + '_their_export'),
                                         E.export.build_parsing_serving_input_receiver_fn(SPEC))
        with tf.Graph().as_default(), tf.compat.v1.Session() as session:
            expected = tf.compat.v1.saved_model.load(session, ['serve'], theirs.decode()).signature_def
        self.assertEqual(names, set(expected))
        for name in names:
            mine, other = meta.signature_def[name], expected[name]
            self.assertEqual((mine.method_name, set(mine.inputs), set(mine.outputs)),
                             (other.method_name, set(other.inputs), set(other.outputs)), name)

    def check(self, case):
        estimator, losses, real, ours = self.begin(case)
        told = tool(case, 'train', ours, self.data, STEPS)
        self.assertEqual(told['step'], STEPS)
        np.testing.assert_allclose(told['losses'], losses, rtol=2e-5, err_msg='losses of ' + case)
        last = 'model.ckpt-%d' % STEPS
        self.close(values_of(os.path.join(ours, last)), values_of(os.path.join(real, last)), 'checkpoint of ' + case)
        evaluated = estimator.evaluate(input_fn(case, self.data, False))
        self.close(tool(case, 'evaluate', ours, self.data), evaluated, 'evaluation of ' + case)
        predictions = self.predictions(estimator, case)
        self.close(tool(case, 'predict', ours, self.data), predictions, 'predictions of ' + case)
        # From the other's checkpoint.
        self.close(tool(case, 'evaluate', real, self.data), evaluated, case + ' from the real checkpoint')
        other = CASES[case](E.RunConfig(model_dir=ours, keep_checkpoint_max=0))
        self.close(other.evaluate(input_fn(case, self.data, False)), evaluated, case + ' from our checkpoint')
        here, there = Losses(), Losses()
        other.train(input_fn(case, self.data, True), steps=2, hooks=[here])
        estimator.train(input_fn(case, self.data, True), steps=2, hooks=[there])
        np.testing.assert_allclose(here.values, there.values, rtol=2e-5, err_msg=case + ' goes on from our checkpoint')
        self.check_export(case, estimator, real, self.predictions(estimator, case))
        warm = os.path.join(self.folder, case + '_warm')
        told = tool(case, 'warm', warm, self.data, os.path.join(real, last))
        self.assertEqual(told['step'], 1)
        start = tool(case, 'evaluate', warm, self.data)
        self.assertEqual(start['global_step'], 1)

    def test_cases(self):
        for case in CASES if ALL else USUAL:
            with self.subTest(case):
                self.check(case)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + [word for word in sys.argv[2:] if word != '--all'], verbosity=2)

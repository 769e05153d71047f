# SPDX-License-Identifier: Apache-2.0
"""Each example as its README runs it: examples_test.py WEFT BIN_FOLDER EXAMPLES_FOLDER [TEST ...]."""
import glob
import re
import socket
import subprocess
import sys
import tempfile
import unittest
import zipfile

WEFT, BIN, FOLDER = sys.argv[1:4]


def run(*command, timeout=150):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    assert done.returncode == 0, done.stdout[-3000:]
    return done.stdout


def job(flags, program, *arguments):
    return run(WEFT, 'run', *flags, '--', '%s/%s' % (BIN, program), *arguments)


def number(pattern, text):
    found = re.search(pattern, text)
    assert found, '%s is not in:\n%s' % (pattern, text[-3000:])
    return float(found[1])


class Alone(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_linear_regression(self):
        text = run(BIN + '/linear_regression', '--model_dir', self.folder)
        self.assertLess(number(r'loss (\S+)', text), 1e-4)
        self.assertAlmostEqual(number(r'at 10: (\S+)', text), 32, delta=0.05)
        self.assertIn(self.folder + '/model.ckpt-200', text)
        self.assertRegex(run(WEFT, 'inspect', self.folder), r'checkpoint of 3 tensors(.|\n)*offset(.|\n)*slope')
        self.assertAlmostEqual(number(r'\[\] \[(\S+)\]', run(WEFT, 'inspect', self.folder, '--tensor', 'slope')), 3, delta=0.01)

    def test_linear_regression_is_short(self):
        with open(FOLDER + '/linear_regression/main.cc') as source:
            self.assertLess(len(source.readlines()), 60)

    def test_eager(self):
        text = run(BIN + '/eager')
        self.assertIn('close after', text)
        self.assertIn('y = 3.000 x + 2.000 after 300 steps as 1 graph', text)
        self.assertIn('the third derivative of x^4 at 2 is 48', text)

    def test_convnet(self):
        text = run(BIN + '/convnet', '--data', FOLDER + '/digits/digits.csv', '--seed', '1')
        self.assertGreaterEqual(number(r'Test accuracy: (\S+)', text), 0.97)

    def test_pipeline(self):
        """A second run goes on where the first one ended; what it exports is a model."""
        command = BIN + '/pipeline', '--data', FOLDER + '/digits/digits.csv', '--model_dir', self.folder + '/model'
        self.assertIn('Steps 0 to 100', run(*command, '--steps', '100'))
        text = run(*command, '--steps', '600', '--export', self.folder + '/exported')
        self.assertIn('Steps 100 to 600', text)
        self.assertGreaterEqual(number(r'test accuracy: (\S+)', text), 0.85)
        self.assertIn('digits_STATE', run(WEFT, 'inspect', self.folder + '/model'))
        self.assertRegex(run(WEFT, 'inspect', self.folder + '/exported'), r'serving_default')

    def test_models_of_layers(self):
        path = self.folder + '/digits.keras'
        text = run(BIN + '/image_model', '--data', FOLDER + '/digits/digits.csv', '--model', path, '--epochs', '8')
        self.assertGreaterEqual(number(r'Test accuracy: (\S+)', text), 0.9)
        with zipfile.ZipFile(path) as archive:
            self.assertEqual(sorted(archive.namelist()), ['config.json', 'metadata.json', 'model.weights.h5'])
            self.assertIsNone(archive.testzip())
        text = run(BIN + '/text_model')
        self.assertGreaterEqual(number(r'Test accuracy: (\S+)', text), 0.9)
        self.assertGreater(number(r'liked: (\S+)', text), 0.5)
        self.assertGreaterEqual(number(r'R2 (\S+)', run(BIN + '/tabular_model', self.folder + '/flats.weights.h5')), 0.9)

    def test_estimator(self):
        text = run(BIN + '/estimator', self.folder)
        self.assertGreaterEqual(number(r'accuracy: (\S+)', text), 0.85)
        self.assertEqual(number(r'global_step: (\S+)', text), 600)
        exported, = glob.glob(self.folder + '/export/buyers/*')
        self.assertRegex(run(WEFT, 'inspect', exported), r'serving_default')
        with open(FOLDER + '/estimator/main.cc') as source:
            self.assertLessEqual(len(source.readlines()), 60)

    def test_custom_op(self):
        text = run(BIN + '/custom_op')
        first, last = number(r'loss (\S+) at first', text), number(r'(\S+) at last', text)
        self.assertGreater(first, 0.1)
        self.assertLess(last, 0.005)

    def test_op_library(self):
        library = BIN + '/../examples/lion.so'
        self.assertIn('loaded ResourceSparseApplyLion\ny = 3.00 x + -1.00\n', run(BIN + '/op_library', library))

    def test_wrong_flags_and_targets_say_what_is_wrong(self):
        for flags, said in ((['--steps', '0'], '--steps'), (['--target', 'http://x:1'], 'http://x:1')):
            done = subprocess.run([BIN + '/linear_regression', *flags], stdout=subprocess.PIPE,
                                  stderr=subprocess.STDOUT, text=True, timeout=60)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stdout)


class Cluster(unittest.TestCase):
    def test_linear_regression_on_a_server(self):
        with socket.socket() as free:
            free.bind(('127.0.0.1', 0))
            address = '127.0.0.1:%d' % free.getsockname()[1]
        server = subprocess.Popen([WEFT, 'server', '--cluster', '{"worker": ["%s"]}' % address, '--job_name', 'worker'],
                                  stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        try:
            with tempfile.TemporaryDirectory() as folder:
                text = run(BIN + '/linear_regression', '--target', 'grpc://' + address, '--model_dir', folder)
            self.assertAlmostEqual(number(r'at 10: (\S+)', text), 32, delta=0.05)
        finally:
            server.terminate()
            self.assertEqual(server.wait(30), 0)

    def test_between_graph(self):
        with tempfile.TemporaryDirectory() as folder:
            text = job(['--ps', '1', '--workers', '2'], 'between_graph', '--model_dir', folder, '--steps', '1500')
            self.assertGreaterEqual(number(r'worker 0: \d+ of (\d+) steps', text), 1500)
            self.assertLess(number(r'worker 0: .* loss (\S+)', text), 0.01)
            again = job(['--ps', '1', '--workers', '2'], 'between_graph', '--model_dir', folder, '--steps', '1600')
            own = [int(n) for n in re.findall(r'worker \d: (\d+) of', again)]
            self.assertLessEqual(sum(own), 200, 'it did not go on from the checkpoint:\n' + again)

    def test_pipeline_of_two_workers(self):
        """Each reads its part; the chief's place in it is in the checkpoint that both kinds of task write."""
        with tempfile.TemporaryDirectory() as folder:
            text = job(['--ps', '1', '--workers', '2'], 'pipeline', '--data', FOLDER + '/digits/digits.csv', '--model_dir', folder,
                       '--steps', '200')
            self.assertGreaterEqual(number(r'test accuracy: (\S+)', text), 0.7)
            self.assertIn('digits_STATE', run(WEFT, 'inspect', folder))

    def test_recommender_model_over_parameter_servers(self):
        """Layers whose tables lie on both servers; the second worker's steps count too, and alone it is the same program."""
        text = job(['--ps', '2', '--workers', '2'], 'recommender_model')
        self.assertGreater(number(r'val_auc (\S+)', text.rsplit('epoch', 1)[1]), 0.9)
        self.assertIn('epoch 8', run(BIN + '/recommender_model'))

    def test_six_programs_are_short(self):
        for name in ('image_model', 'text_model', 'tabular_model', 'recommender_model', 'eager', 'serving'):
            with open('%s/%s/main.cc' % (FOLDER, name)) as source:
                self.assertLessEqual(len(source.readlines()), 60, name)

    def test_estimator_as_a_job(self):
        """Chief, worker, parameter server and evaluator; the evaluator tells of the last checkpoint and exports it."""
        with tempfile.TemporaryDirectory() as folder:
            text = job(['--chief', '--ps', '1', '--workers', '1', '--evaluator'], 'estimator', folder)
            self.assertGreaterEqual(number(r'accuracy: (\S+)', text), 0.85)
            self.assertGreaterEqual(number(r'global_step: (\S+)', text), 600)
            self.assertEqual(len(glob.glob(folder + '/export/buyers/*')), 1)
            self.assertGreaterEqual(len(glob.glob(folder + '/eval/events.*')), 1)

    def test_in_graph(self):
        text = job(['--workers', '3'], 'in_graph')
        self.assertIn('3 replicas', text)
        self.assertLess(number(r'loss (\S+)', text), 1e-3)

    def test_together_is_one_program_for_all_strategies(self):
        """The same losses however the batch is spread; with parameter servers, which nobody waits for, about as good."""
        def losses(text, worker=0):
            found = re.findall(r'worker %d, step (\d+): loss (\S+)' % worker, text)
            return {int(step): float(loss) for step, loss in found}
        alone = losses(run(BIN + '/together', '--steps', '60'))
        self.assertEqual(sorted(alone), [20, 40, 60])
        spread = [losses(run(BIN + '/together', '--steps', '60', '--devices', '2')),
                  losses(job(['--workers', '2'], 'together', '--steps', '60', '--devices', '2'), worker=1)]
        for other in spread:
            self.assertEqual(sorted(other), sorted(alone))
            for step, loss in alone.items():
                self.assertAlmostEqual(other[step], loss, delta=1e-5)
        text = job(['--ps', '1', '--workers', '2'], 'together', '--steps', '200')
        self.assertLess(number(r'step 200: loss (\S+)', text) if 'step 200:' in text else number(r'step 180: loss (\S+)', text),
                        alone[20])

    def test_split_model(self):
        text = job(['--workers', '2'], 'split_model')
        self.assertIn("layers on '/job:worker/task:0' and '/job:worker/task:1'", text)
        self.assertLess(number(r'loss (\S+)', text), 0.01)

    def test_recommender_moves_the_rows_of_a_batch_only(self):
        text = job(['--ps', '2', '--workers', '1'], 'recommender')
        moved, there, rows = (number(r'%s: (\d+)' % name, text) for name in ('rows moved', 'rows in the batch', 'rows'))
        self.assertEqual(moved, there)
        self.assertLess(there, rows)
        self.assertLess(number(r'AUC before: (\S+)', text), 0.6)
        self.assertGreater(number(r'AUC after: +(\S+)', text), 0.85)

    def test_recommender_with_two_workers(self):
        text = job(['--ps', '2', '--workers', '2'], 'recommender')
        self.assertGreater(number(r'AUC after: +(\S+)', text), 0.85)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[4:], verbosity=2)

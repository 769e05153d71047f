#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""`weft plan` and what it plans from, with a program that runs: plan_test.py PATH_OF_WEFT PATH_OF_LINEAR_REGRESSION."""
import json
import pathlib
import re
import subprocess
import sys
import tempfile
import unittest

WEFT = None
PROGRAM = None
NODES = 'sn,cpu_milli,memory_mib,gpu,model\n' + ''.join('n%d,16000,65536,0,\n' % i for i in range(3))


class PlanTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)
        (self.folder / 'nodes.csv').write_text(NODES)

    def weft(self, *words, code=0):
        done = subprocess.run([WEFT, *map(str, words)], cwd=self.folder, capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, code, done.stdout + done.stderr)
        return done.stdout + done.stderr

    def measure(self):
        self.weft('run', '--cost_file', 'costs.json', '--', PROGRAM, '--model_dir', self.folder / 'model')
        return json.loads((self.folder / 'costs.json').read_text())

    def test_a_program_is_measured_and_planned(self):
        costs = self.measure()
        self.assertEqual((costs['format'], costs['version']), ('weft.dev/costs', 1))
        self.assertGreater(costs['steps'], 50)
        self.assertGreater(costs['step_seconds'], 0)
        ops = {op['name']: op for op in costs['ops']}
        self.assertIn('slope', ops)
        self.assertEqual(ops['slope']['state_bytes'], 4)
        self.assertTrue(all(op['seconds'] >= op['least_seconds'] >= 0 for op in ops.values()))
        text = self.weft('plan', 'costs.json', '--nodes', 'nodes.csv', '--explain', '--output', 'plan.json', '--page', 'plan.html')
        self.assertIn('single: 1 worker', text)
        self.assertIn('ps: 2 workers, 2 servers', text)
        plan = json.loads((self.folder / 'plan.json').read_text())
        # What is best for a step of microseconds depends on how busy the machine was that measured it.
        self.assertIn('  use       %s: %d ' % (plan['form'], len(plan['workers'])), text)
        self.assertEqual(plan['graph'], costs['graph'])
        self.assertIn('<svg', (self.folder / 'plan.html').read_text())
        self.assertIn('still holds', self.weft('plan', 'costs.json', '--reuse', 'plan.json'))
        costs['graph'] = '0123456789abcdef'
        (self.folder / 'costs.json').write_text(json.dumps(costs))
        self.assertIn('has changed since', self.weft('plan', 'costs.json', '--reuse', 'plan.json', code=1))
        costs['version'] = 2
        (self.folder / 'costs.json').write_text(json.dumps(costs))
        self.assertIn('cost file of version 2, this weft reads 1', self.weft('plan', 'costs.json', code=1))

    def test_distribution_measures_first_and_plans_then(self):
        for how in 'counts', 'auto':
            words = ['run', '--distribution', how, '--cost_file', how + '.json', '--nodes', 'nodes.csv', '--', PROGRAM,
                     '--model_dir', self.folder / 'model']
            self.assertIn('one worker and measures it', self.weft(*words))
            text = self.weft(*words)
            counts = re.search(r'distribution: (?:single|ps): (\d+) workers?(?:, (\d+) servers?)?, ', text)
            self.assertIsNotNone(counts, text)
            tasks = int(counts[1]) + int(counts[2] or 0)
            self.assertIn('starting %d task' % tasks, text)
            self.assertIn('a plan for 3 nodes; `weft run` starts all tasks on this machine', text)
        self.assertIn('by its --cost_file', self.weft('run', '--distribution', 'auto', '--', PROGRAM, code=2))

    def test_a_program_for_one_device_runs_on_several(self):
        alone = self.weft('run', '--', PROGRAM, '--model_dir', self.folder / 'model')
        text = self.weft('run', '--distribution', 'auto', '--ps', '1', '--workers', '2', '--', PROGRAM,
                         '--model_dir', self.folder / 'model')
        self.assertRegex(text, 'Distribution: a step [0-9]+ nodes run on each of 2 workers, on a share of 4 rows')
        loss = re.search(r'loss \S+ after', alone)[0]
        self.assertIn(loss, text)

    def test_a_program_is_measured_on_the_spot(self):
        text = self.weft('plan', '--nodes', 'nodes.csv', '--spread_batch', '--explain', '--', PROGRAM, '--model_dir',
                         self.folder / 'model', '--steps', '100000')
        self.assertIn('ps: 2 workers, 1 server', text)
        self.assertIn('before one of its steps was traced', self.weft('plan', '--', 'true', code=1))

    def test_well_known_models_on_shapes_of_clouds(self):
        text = self.weft('plan', '--model', 'resnet50', '--shape', 'p3.8xlarge*2', '--examples', 1281167, '--split', 'false')
        self.assertIn('workers', text)
        self.assertIn('24.48 $ an hour', text)
        (self.folder / 'prices.json').write_text('{"p3.8xlarge": 1.0}')
        text = self.weft('plan', '--model', 'resnet50', '--shape', 'p3.8xlarge*2', '--prices', 'prices.json', '--split', 'false')
        self.assertIn('2.00 $ an hour', text)
        self.assertIn('Standard_NC24s_v3', self.weft('plan', '--shapes'))

    def test_what_fits_nowhere_is_named(self):
        (self.folder / 'nodes.csv').write_text('sn,cpu_milli,memory_mib,gpu,model\nsmall,4000,64,0,\n')
        text = self.weft('plan', '--model', 'vgg16', '--nodes', 'nodes.csv', code=1)
        self.assertIn('vgg16 fits nowhere on these nodes', text)
        self.assertRegex(text, r'[0-9.]+ GiB are missing')
        self.assertIn('Did you mean', self.weft('plan', '--model', 'mlp', '--shape', 'p3.8xlarg', code=1))
        self.assertIn('expected one of', self.weft('plan', '--model', 'vgg61', code=1))


if __name__ == '__main__':
    WEFT, PROGRAM = sys.argv[1:3]
    unittest.main(argv=sys.argv[:1] + sys.argv[3:], verbosity=2)

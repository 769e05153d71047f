#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The runner itself, on a small folder of test files: runner_test.py WEFT. What it calls passed ran on both servers."""
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
BASE = '''
from tensorflow.python.framework import test_util
import tensorflow.compat.v1 as tf
class Base(tf.test.TestCase):
  def expect(self, value):
    with self.cached_session():
      self.assertAllEqual(value, self.evaluate(tf.constant(value) * 1))
'''
TESTS = '''
import os, signal, time
import tensorflow.compat.v1 as tf
from tensorflow.python.framework import test_util
from tensorflow.python.sample import base_for_tests
TIMES = []
class SampleTest(base_for_tests.Base):
  def testPasses(self):
    self.expect([1, 2])
    with tf.Session() as session:
      name = session.list_devices()[0].name
    self.assertIn('/job:localhost/', name)
  @test_util.run_in_graph_and_eager_modes
  def testBothModes(self):
    assert not tf.executing_eagerly()
    self.assertAllEqual(6, self.evaluate(tf.constant(2) * 3))
  def testWithoutSteps(self):
    tf.constant(1)
  def testFailsOnBoth(self):
    self.expect([1])
    self.fail('always')
  def testFailsTheSecondTime(self):
    self.expect([1])
    TIMES.append(1)
    self.assertEqual(TIMES, [1])
  def testVariablesAreFresh(self):
    v = tf.Variable(1.0, name='v', use_resource=True)
    with tf.Session() as session:
      with self.assertRaises(tf.errors.FailedPreconditionError):
        session.run(v.read_value())
      session.run(v.initializer)
  def testStops(self):
    self.expect([1])
    time.sleep(1000)
  def testZLast(self):
    self.expect([3])
if __name__ == '__main__':
  tf.test.main()
'''


class RunnerTest(unittest.TestCase):
    def test_outcomes(self):
        with tempfile.TemporaryDirectory() as folder:
            place = pathlib.Path(folder, 'tests/tensorflow/python/sample')
            place.mkdir(parents=True)
            (place / 'base_for_tests.py').write_text(BASE)
            (place / 'some_test.py').write_text(TESTS)
            (place / 'broken_test.py').write_text('import no_such_module\n')
            out, page = os.path.join(folder, 'out.jsonl'), os.path.join(folder, 'page.md')
            subprocess.run([sys.executable, str(HERE / 'run.py'), sys.argv[1], os.path.join(folder, 'tests'), '--out', out,
                            '--case_seconds', '10'], check=True, timeout=280)
            lines = [json.loads(line) for line in pathlib.Path(out).read_text().splitlines()]
            got = {line['case'].partition('.')[2]: (line['tensorflow'], line.get('weft')) for line in lines}
            self.assertEqual(got, {
                '': ('no import', None), 'testPasses': ('passed', 'passed'), 'testBothModes': ('passed', 'passed'),
                'testWithoutSteps': ('no steps', None), 'testFailsOnBoth': ('failed', None),
                'testFailsTheSecondTime': ('passed', 'failed'), 'testVariablesAreFresh': ('passed', 'passed'),
                'testStops': ('stuck', None), 'testZLast': ('passed', 'passed')})
            pathlib.Path(page).write_text('# Words\n\n| old |\n')
            subprocess.run([sys.executable, str(HERE / 'table.py'), out, '--page', page], check=True)
            text = pathlib.Path(page).read_text()
            self.assertTrue(text.startswith('# Words\n'))
            self.assertIn('| sample | 2 | 5 | 4 | 80.0% |', text)
            self.assertNotIn('| old |', text)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1] + sys.argv[2:], verbosity=2)

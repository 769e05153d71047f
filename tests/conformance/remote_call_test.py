#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Functions that the real client's graphs call by RemoteCall: remote_call_test.py PATH_OF_WEFT [unittest arguments]."""
import sys
import unittest

import processes
import tensorflow as tf

tf1 = tf.compat.v1
BINARY = None
PLAIN = tf1.ConfigProto()
PLAIN.graph_options.optimizer_options.opt_level = -1
FIRST, SECOND = ('/job:worker/replica:0/task:%d/device:CPU:0' % task for task in (0, 1))


class RemoteCallTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._cluster = processes.cluster(BINARY, worker=2)
        cls.target = cls._cluster.__enter__()['worker'][0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def call(self, device, value):
        """What the function gives, and by device the names of the operations that ran there."""
        with tf.Graph().as_default():
            @tf.function(autograph=False, input_signature=[tf.TensorSpec([None], tf.float32)])
            def scaled(t):
                return t * 3.0, tf.reduce_sum(t)

            with tf.device(FIRST):
                x = tf1.placeholder(tf.float32, [None])
                product, total = tf.raw_ops.RemoteCall(target=device, args=[x], Tout=[tf.float32, tf.float32],
                                                       f=scaled.get_concrete_function())
                joined = product + total
            metadata = tf1.RunMetadata()
            with tf1.Session(self.target, config=PLAIN) as session:
                result = session.run([joined, product], {x: value}, run_metadata=metadata,
                                     options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE))
            ran = {stats.device: {node.node_name.split('/')[-1] for node in stats.node_stats} for stats in metadata.step_stats.dev_stats}
            return [part.tolist() for part in result], ran

    def test_a_function_runs_on_a_device_of_another_task(self):
        result, ran = self.call(SECOND, [1, 2])
        self.assertEqual(result, [[6, 9], [3, 6]])
        self.assertIn('RemoteCall', ran[SECOND])
        self.assertNotIn('RemoteCall', ran[FIRST])

    def test_or_where_it_is_called(self):
        result, ran = self.call(FIRST, [1, 2])
        self.assertEqual(result, [[6, 9], [3, 6]])
        self.assertIn('RemoteCall', ran[FIRST])

    def test_a_device_that_there_is_not_is_named(self):
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'task:7'):
            self.call('/job:worker/replica:0/task:7/device:CPU:0', [1, 2])


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

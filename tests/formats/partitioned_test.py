# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of partitioned variables, in both directions: partitioned_test.py TOOL [unittest arguments]."""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
TOOL = None
WHOLE = np.arange(21, dtype=np.float32).reshape(7, 3)


def tool(*args):
    done = subprocess.run([TOOL, *map(str, args)], capture_output=True, text=True, timeout=120)
    if done.returncode != 0:
        raise AssertionError('%s: %s' % (args, done.stderr))
    return done.stdout.splitlines()


class PartitionedTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='partitioned-')
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def test_tensorflow_reads_ours_whole(self):
        for parts, axis in (3, 0), (2, 1), (1, 0):
            path = tool('save', os.path.join(self.folder, '%d-%d' % (parts, axis)), parts, axis)[-1]
            reader = tf.train.load_checkpoint(path)
            self.assertEqual(reader.get_variable_to_shape_map(),
                             {'table': [7, 3], 'table/Momentum': [7, 3], 'global_step': []})
            np.testing.assert_array_equal(reader.get_tensor('table'), WHOLE)
            np.testing.assert_array_equal(reader.get_tensor('table/Momentum'), -WHOLE)
            self.assertEqual(reader.get_tensor('global_step'), 1)

    def test_tensorflow_restores_ours_in_its_own_parts(self):
        path = tool('save', self.folder, 3, 0)[-1]
        with tf1.Graph().as_default(), tf1.Session() as session:
            table = tf1.get_variable('table', [7, 3], partitioner=tf1.fixed_size_partitioner(2))
            tf1.train.Saver().restore(session, path)
            np.testing.assert_array_equal(session.run(tf.convert_to_tensor(table)), WHOLE)

    def test_we_restore_tensorflow_s_in_our_own_parts(self):
        with tf1.Graph().as_default(), tf1.Session() as session:
            with tf1.variable_scope('', use_resource=True):
                table = tf1.get_variable('table', [7, 3], initializer=tf1.zeros_initializer(),
                                         partitioner=tf1.fixed_size_partitioner(4))
            step = tf1.train.get_or_create_global_step()
            loss = tf.reduce_sum(tf.convert_to_tensor(table) * -WHOLE)
            train = tf1.train.MomentumOptimizer(1.0, 0.9).minimize(loss, step)
            session.run(tf1.global_variables_initializer())
            session.run(train)
            path = tf1.train.Saver().save(session, os.path.join(self.folder, 'theirs'))
        for parts, axis in (3, 0), (2, 1), (1, 0):
            values = [float(line) for line in tool('restore', path, parts, axis)]
            np.testing.assert_array_equal(np.array(values, np.float32).reshape(7, 3), WHOLE)

    def test_partitioners_choose_as_tensorflow_does(self):
        """The numbers of src/weft/train/partition_test.cc."""
        def parts(partitioner, shape, dtype=tf.float32, axis=0):
            return partitioner(shape=tf.TensorShape(shape), dtype=dtype)[axis]
        sized, most = tf1.variable_axis_size_partitioner, tf1.min_max_variable_partitioner
        self.assertEqual([parts(sized(64), [10, 4]), parts(sized(15), [10, 4]), parts(sized(64, max_shards=2), [10, 4]),
                          parts(sized(64), [10, 4], tf.string), parts(sized(64, bytes_per_string_element=4), [10, 4], tf.string)],
                         [3, 10, 2, 10, 3])
        self.assertEqual([parts(most(8, 0, 50), [10, 4]), parts(most(2, 0, 50), [10, 4]), parts(most(8, 1, 1), [10, 4], axis=1),
                          parts(most(8), [10, 4])], [4, 2, 4, 1])


if __name__ == '__main__':
    TOOL = sys.argv.pop(1)
    unittest.main(verbosity=2)

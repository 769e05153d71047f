#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""RunMetadata as TensorFlow's own tools read it: trace_test.py PATH_OF_WEFT [unittest arguments]."""
import json
import sys
import time
import unittest

import processes
import tensorflow as tf
from tensorflow.python.client import timeline

tf1 = tf.compat.v1
BINARY = None
# What is run shall be what stands in the graph.
PLAIN = tf1.ConfigProto()
PLAIN.graph_options.optimizer_options.opt_level = -1
PS, WORKER = ('/job:%s/replica:0/task:0/device:CPU:0' % job for job in ('ps', 'worker'))


class TraceTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls._cluster = processes.cluster(BINARY, ps=1, worker=1)
        cls.target = cls._cluster.__enter__()['worker'][0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def setUp(self):
        context = tf.Graph().as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        with tf.device('/job:ps/task:0'):
            w = tf1.get_variable('w', initializer=tf.ones([3, 4]), use_resource=True)
            read = w.read_value()
        with tf.device('/job:worker/task:0'):
            self.x = tf1.placeholder(tf.float32, [2, 3], name='x')
            self.y = tf.matmul(self.x, read, name='product')
            self.z = tf.reduce_sum(self.y, name='total')
        self.session = tf1.Session(self.target, config=PLAIN)
        self.addCleanup(self.session.close)
        self.session.run(w.initializer)

    def run_traced(self, **options):
        metadata = tf1.RunMetadata()
        before = time.time() * 1e6
        value = self.session.run(self.z, {self.x: [[1, 2, 3], [4, 5, 6]]}, options=tf1.RunOptions(**options),
                                 run_metadata=metadata)
        self.assertEqual(value, 84)
        return metadata, before, time.time() * 1e6

    def test_step_stats_name_nodes_times_threads_and_shapes(self):
        metadata, before, after = self.run_traced(trace_level=tf1.RunOptions.FULL_TRACE)
        devices = {device.device: {node.node_name: node for node in device.node_stats}
                   for device in metadata.step_stats.dev_stats}
        self.assertEqual(set(devices), {PS, WORKER})
        self.assertTrue(any('ReadVariableOp' in node.timeline_label for node in devices[PS].values()), devices[PS])
        product, total = devices[WORKER]['product'], devices[WORKER]['total']
        self.assertIn('MatMul(', product.timeline_label)
        for node in product, total:
            self.assertTrue(before - 1 <= node.all_start_micros <= node.all_start_micros + node.all_end_rel_micros
                            <= after + 1, (before, node, after))
            self.assertGreater(node.thread_id, 0)
        self.assertLessEqual(product.all_start_micros, total.all_start_micros)
        description = product.output[0].tensor_description
        self.assertEqual([dim.size for dim in description.shape.dim], [2, 4])
        self.assertEqual(description.dtype, tf.float32.as_datatype_enum)
        self.assertEqual(description.allocation_description.requested_bytes, 32)
        # The wait for the tensor of the other task is seen too.
        receives = [node for node in devices[WORKER].values() if '= _Recv(' in node.timeline_label]
        self.assertEqual([[dim.size for dim in node.output[0].tensor_description.shape.dim] for node in receives], [[3, 4]])

    def test_timeline_makes_a_chrome_trace(self):
        metadata, _, _ = self.run_traced(trace_level=tf1.RunOptions.FULL_TRACE)
        trace = json.loads(timeline.Timeline(metadata.step_stats).generate_chrome_trace_format(show_memory=True))
        slices = {event['args']['name']: event for event in trace['traceEvents'] if event['ph'] == 'X'}
        self.assertEqual(slices['product']['name'], 'MatMul')
        self.assertIn('total', slices)
        names = {event['args']['name'] for event in trace['traceEvents'] if event['ph'] == 'M'}
        self.assertTrue(any(PS in name for name in names), names)

    def test_partition_graphs_only_when_asked_for(self):
        metadata, _, _ = self.run_traced(output_partition_graphs=True)
        nodes = [{node.name for node in graph.node} for graph in metadata.partition_graphs]
        self.assertEqual(len(nodes), 2)
        self.assertEqual(sum('product' in names for names in nodes), 1)
        self.assertEqual(len(metadata.step_stats.dev_stats), 0)
        metadata, _, _ = self.run_traced()
        self.assertEqual(metadata.ByteSize(), 0)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

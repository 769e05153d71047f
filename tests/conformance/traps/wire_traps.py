# SPDX-License-Identifier: Apache-2.0
"""Traps in the messages: paths, field numbers, encodings, sizes."""
import numpy as np

import grpc
from harness import Raw, TrapTest, graph_def_of, master_pb2, tf, tf1


class WireTraps(TrapTest):
    def setUp(self):
        super().setUp()
        self.raw = Raw(self.target)
        self.addCleanup(self.raw.close)

    def test_trap_01_method_path(self):
        request = master_pb2.ListDevicesRequest(session_handle=self.raw.create())
        self.assertTrue(self.raw.call('ListDevices', request).local_device)
        with self.assertRaises(grpc.RpcError) as caught:
            self.raw.call('ListDevices', request, path='/tensorflow.grpc.MasterService/')
        self.assertEqual(caught.exception.code(), grpc.StatusCode.UNIMPLEMENTED)

    def test_trap_02_new_graph_version_is_field_4(self):
        handle = self.raw.create(graph_def_of(lambda: tf.constant(1.0, name='a')))
        answer = self.raw.extend(handle, graph_def_of(lambda: tf.constant(2.0, name='b')), 0, raw=True)
        self.assertEqual(answer, b'\x20\x01')  # field 4, varint, 1
        with self.assertRaises(grpc.RpcError) as caught:
            self.raw.extend(handle, graph_def_of(lambda: tf.constant(2.0, name='c')), 0)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.ABORTED)
        self.assertIn('Current version is 1 but caller expected 0.', caught.exception.details())

    def test_trap_03_dim_is_field_2(self):
        handle = self.raw.create(graph_def_of(lambda: tf.constant([[1.0, 2.0, 3.0]], name='a') + 0.0))
        answer = self.raw.run(handle, ['add:0'])
        self.assertEqual([d.size for d in answer.tensor[0].tensor.tensor_shape.dim], [1, 3])
        x = tf1.placeholder(tf.float32, [2, None])
        self.assertEqual(self.session().run(tf.shape(x), {x: np.zeros([2, 5])}).tolist(), [2, 5])

    def test_trap_08_error_over_3_kb(self):
        name = 'N' * 20000
        graph = tf1.GraphDef()
        graph.node.add(name='a', op=name)
        with self.assertRaises(grpc.RpcError) as caught:
            self.raw.create(graph)
        self.assertLess(len(caught.exception.details()), 4000)
        self.assertIn('NNNN', caught.exception.details())

    def test_trap_09_over_100_mb(self):
        size = 30 << 20  # floats: 120 MB
        x = tf1.placeholder(tf.float32, [size])
        value = np.arange(size, dtype=np.float32)
        session = self.session()
        np.testing.assert_array_equal(session.run(tf.identity(x), {x: value}), value)
        self.assertEqual(session.run(tf.shape(x), {x: value})[0], size)
        self.assertEqual(session.run(tf.fill([size], 7.0)).sum(dtype=np.float64), 7.0 * size)

    def test_trap_09_const_over_64_mb(self):
        value = np.full(20 << 20, 3.0, np.float32)  # 80 MB
        self.assertEqual(self.session().run(tf.constant(value)[-1]), 3.0)

    def test_trap_10_scalars_and_empty_tensors(self):
        session = self.session()
        for dtype, value in ((tf.string, b'text'), (tf.string, b''), (tf.bool, True), (tf.float32, 1.5),
                             (tf.float32, np.zeros([0, 3])), (tf.string, np.zeros([0], object)),
                             (tf.int64, np.zeros([2, 0, 4]))):
            x = tf1.placeholder(dtype, np.shape(value))
            got = session.run(tf.identity(x), {x: value})
            self.assertEqual(np.shape(got), np.shape(value))
            if np.size(value):
                self.assertEqual(got, value)

    def test_trap_18_internal_ops_are_refused(self):
        graph = tf1.GraphDef()
        node = graph.node.add(name='r', op='_Recv')
        node.attr['tensor_type'].type = tf.float32.as_datatype_enum
        for name in 'tensor_name', 'send_device', 'recv_device':
            node.attr[name].s = b'/job:local/replica:0/task:0/device:CPU:0'
        node.attr['send_device_incarnation'].i = 1
        graph.versions.producer = tf.version.GRAPH_DEF_VERSION
        with self.assertRaises(grpc.RpcError) as caught:
            handle = self.raw.create(graph)
            answer = self.raw.run(handle, ['r:0'], store_errors_in_response_body=False)
            del answer
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

    def test_trap_19_compressed_messages(self):
        for algorithm in 'gzip', 'deflate':
            with tf.Graph().as_default():
                x = tf1.placeholder(tf.float32, [None])
                y = x * 2.0
                config = tf1.ConfigProto()
                config.rpc_options.compression_algorithm = algorithm
                config.rpc_options.compression_level = 3
                with tf1.Session(self.target, config=config) as session:
                    self.assertEqual(session.run(y, {x: np.full(100000, 2.0)}).sum(), 400000.0)

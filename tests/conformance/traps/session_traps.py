# SPDX-License-Identifier: Apache-2.0
"""Traps in what a session means: growing graphs, shared state, order, names, errors."""
import threading

import numpy as np

import grpc
from harness import Raw, TrapTest, graph_def_of, tf, tf1, value_of


class SessionTraps(TrapTest):
    def test_trap_04_list_devices_before_there_is_a_graph(self):
        session = self.session()
        devices = session.list_devices()
        self.assertEqual([d.name for d in devices], ['/job:local/replica:0/task:0/device:CPU:0'])
        self.assertEqual(devices[0].device_type, 'CPU')
        self.assertNotEqual(devices[0].incarnation, 0)
        self.assertEqual(session.run(tf.constant(2.0) * 3.0), 6.0)

    def test_trap_05_a_call_before_its_function(self):
        with tf.Graph().as_default() as graph:
            @tf.function
            def twice(x):
                return x + x

            twice(tf.constant(4.0))
            whole = graph.as_graph_def()
        call = next(n for n in whole.node if 'Call' in n.op)
        raw = Raw(self.target)
        self.addCleanup(raw.close)
        bare = tf1.GraphDef()
        bare.CopyFrom(whole)
        bare.ClearField('library')
        empty = tf1.GraphDef()
        handle = raw.create(empty)
        version = 0
        try:
            raw.extend(handle, bare, 0)
            version = 1
            answer = raw.run(handle, [call.name + ':0'], store_errors_in_response_body=True)
            self.assertNotEqual(answer.status_code, 0)
        except grpc.RpcError:  # refused at once is as good, if nothing is left behind
            raw.extend(handle, whole, version)
            answer = raw.run(handle, [call.name + ':0'])
            self.assertEqual(value_of(answer.tensor[0].tensor), 8.0)

    def test_trap_05_functions_that_come_later(self):
        session = self.session()
        self.assertEqual(session.run(tf.constant(1.0)), 1.0)

        @tf.function
        def thrice(x):
            return x + x + x

        self.assertEqual(session.run(thrice(tf.constant(2.0))), 6.0)

    def test_trap_11_fetching_a_variable_that_changes(self):
        variable = tf1.Variable(np.zeros(1000, np.float32), use_resource=False)
        grow = tf1.assign_add(variable, np.ones(1000, np.float32), use_locking=True)
        session = self.session()
        session.run(variable.initializer)
        stop = threading.Event()

        def write():
            while not stop.is_set():
                session.run(grow.op)

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        try:
            last = 0.0
            for _ in range(100):
                value = session.run(variable)
                self.assertGreaterEqual(value.min(), 0.0)
                self.assertGreaterEqual(value.max(), last)
                last = value.max()
        finally:
            stop.set()
            for writer in writers:
                writer.join()

    def test_trap_12_sessions_share_variables_unless_isolated(self):
        with tf1.variable_scope('shared', use_resource=True):
            variable = tf1.get_variable('v', initializer=3.0)
        first = self.session()
        first.run(variable.initializer)
        self.assertEqual(self.session().run(variable), 3.0)
        isolated = self.session(isolate_session_state=True)
        with self.assertRaises(tf.errors.FailedPreconditionError):
            isolated.run(variable)
        isolated.run(variable.assign(5.0))
        self.assertEqual(isolated.run(variable), 5.0)
        self.assertEqual(first.run(variable), 3.0)
        first.close()
        self.assertEqual(self.session().run(variable), 3.0)

    def test_trap_13_reset_by_container(self):
        with tf.Graph().as_default():
            plain = tf1.get_variable('plain', initializer=1.0, use_resource=True)
            with tf1.get_default_graph().container('box'):
                boxed = tf1.get_variable('boxed', initializer=2.0, use_resource=True)
            session = tf1.Session(self.target)
            session.run(tf1.global_variables_initializer())
            tf1.Session.reset(self.target, ['box'])
            with self.assertRaises(tf.errors.AbortedError):
                session.run(plain)
            with tf1.Session(self.target) as session:
                self.assertEqual(session.run(plain), 1.0)
                with self.assertRaises(tf.errors.FailedPreconditionError):
                    session.run(boxed)
            tf1.Session.reset(self.target)
            with tf1.Session(self.target) as session:
                with self.assertRaises(tf.errors.FailedPreconditionError):
                    session.run(plain)

    def test_trap_15_the_same_signature_in_another_order(self):
        a = tf1.placeholder(tf.float32, [], name='a')
        b = tf1.placeholder(tf.float32, [], name='b')
        difference, quotient = a - b, a / b
        session = self.session()
        for _ in range(2):
            self.assertEqual(session.run([difference, quotient], {a: 6.0, b: 2.0}), [4.0, 3.0])
            self.assertEqual(session.run([quotient, difference], {b: 2.0, a: 6.0}), [3.0, 4.0])
            self.assertEqual(session.run({'q': quotient}, {a: 6.0, b: 2.0}), {'q': 3.0})

    def test_trap_16_a_placeholder_that_was_not_fed(self):
        x = tf1.placeholder(tf.float32, [None], name='x')
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError,
                                    r"You must feed a value for placeholder tensor 'x' with dtype float and shape \[\?\]"):
            self.session().run(tf.identity(x))

    def test_trap_17_python_functions_stay_with_the_client(self):
        fine = tf.constant(1.0)
        called = tf1.py_func(lambda: np.float32(1), [], tf.float32)
        session = self.session()
        self.assertEqual(session.run(fine), 1.0)
        with self.assertRaises(tf.errors.OpError) as caught:
            session.run(called)
        self.assertNotIsInstance(caught.exception, (tf.errors.UnavailableError, tf.errors.InternalError))
        self.assertIn('pyfunc', caught.exception.message.lower())

    def test_trap_20_names_with_slashes_and_angles(self):
        with tf1.name_scope('outer'), tf1.name_scope('inner'):
            x = tf.constant(2.0, name='x')
        graph = graph_def_of(lambda: tf.constant(3.0, name='y'))
        graph.node[0].name = 'Part>y.z-1'
        raw = Raw(self.target)
        self.addCleanup(raw.close)
        answer = raw.run(raw.create(graph), ['Part>y.z-1:0'])
        self.assertEqual(value_of(answer.tensor[0].tensor), 3.0)
        self.assertEqual(self.session().run('outer/inner/x:0'), 2.0)
        del x
        graph.node[0].name = '_y'
        with self.assertRaises(grpc.RpcError) as caught:
            raw.create(graph)
        self.assertEqual(caught.exception.code(), grpc.StatusCode.INVALID_ARGUMENT)

        @tf.function
        def scoped(v):
            with tf.name_scope('deep'):
                return tf.identity(v, name='leaf') * 2.0

        self.assertEqual(self.session().run(scoped(tf.constant(4.0))), 8.0)

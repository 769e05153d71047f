#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Bad input and bad luck, over the wire: bad_input_test.py PATH_OF_WEFT [unittest arguments].

Each gives an error that names the node, file or task; the server lives on and keeps nothing.
"""
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.request

import processes

sys.path.insert(0, os.path.join(processes.HERE, 'traps'))
import grpc  # noqa: E402
import tensorflow as tf  # noqa: E402
from harness import Raw, tf1  # noqa: E402

BINARY = None


class Server:
    """One task, with its log and status page."""

    def __init__(self, spec, job, *flags):
        self.port = int(spec[job][0].rsplit(':', 1)[1])
        self.target = 'grpc://127.0.0.1:%d' % self.port
        self.status_port, = processes.free_ports(1)
        self.log = tempfile.TemporaryFile('w+')
        self.process = subprocess.Popen([BINARY, 'server', '--cluster', json.dumps(spec), '--job_name', job,
                                         '--status_port', str(self.status_port), *flags], stderr=self.log,
                                        env=processes.talkative())
        processes.wait_for_port(self.port, self.process)

    def metrics(self):
        with urllib.request.urlopen('http://127.0.0.1:%d/metrics' % self.status_port, timeout=30) as answer:
            return {line.rsplit(' ', 1)[0]: float(line.rsplit(' ', 1)[1])
                    for line in answer.read().decode().splitlines() if not line.startswith('#')}

    def logged(self):
        self.log.seek(0)
        return self.log.read()

    def stop(self):
        processes.stop(self.process)
        self.log.close()


def local_spec(*jobs):
    return {job: ['127.0.0.1:%d' % port] for job, port in zip(jobs, processes.free_ports(len(jobs)))}


class BadInput(unittest.TestCase):
    def start(self, spec, job='local', *flags):
        server = Server(spec, job, *flags)
        self.addCleanup(server.stop)
        return server

    def fails_to_start(self, spec, *words, job='local', flags=()):
        done = subprocess.run([BINARY, 'server', '--cluster', spec, '--job_name', job, '--status_port', '-1', *flags],
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)
        self.assertIn(done.returncode, (1, 2), done.stderr)
        for word in words:
            self.assertIn(word, done.stderr)

    def raises(self, call, *words, code=None):
        """Runs `call`, which must fail over gRPC or in TensorFlow's client with all `words` in its message."""
        with self.assertRaises((grpc.RpcError, tf.errors.OpError)) as raised:
            call()
        error = raised.exception
        text = error.details() if isinstance(error, grpc.RpcError) else error.message
        for word in words:
            self.assertIn(word, text)
        if code is not None:
            number = error.code().value[0] if isinstance(error, grpc.RpcError) else error.error_code
            self.assertIn(number, code if isinstance(code, tuple) else (code,), text)
        return text

    def assert_keeps_nothing(self, server, timeout=30):
        """No session, graph, step or wait is left, and the server still works."""
        names = 'weft_sessions', 'weft_task_sessions', 'weft_graphs', 'weft_running_parts', 'weft_open_steps', 'weft_waits'
        deadline = time.monotonic() + timeout
        while True:
            left = {name: value for name, value in server.metrics().items() if name in names and value}
            if not left:
                break
            self.assertLess(time.monotonic(), deadline, left)
            time.sleep(0.05)
        with tf.Graph().as_default(), tf1.Session(server.target, config=tf1.ConfigProto(
                device_filters=['/job:nobody'])) as session:
            self.assertEqual(session.run(tf.constant(2.0) + 1.0), 3.0)
        self.assertIsNone(server.process.poll())


def graph_of(*nodes, **functions):
    """(name, op, inputs, {attribute: type}, device) each; functions={name: op of its only node}."""
    graph = tf1.GraphDef()
    graph.versions.producer = 1000
    for name, op, inputs, types, *device in nodes:
        node = graph.node.add(name=name, op=op, input=inputs, device=device[0] if device else '')
        for key, value in types.items():
            node.attr[key].type = value.as_datatype_enum
    for name, op in functions.items():
        function = graph.library.function.add()
        function.signature.name = name
        function.node_def.add(name='inner', op=op)
    return graph


ZERO = ('zero', 'NoOp', [], {})
F = {'T': tf.float32}


class MalformedGraphs(BadInput):
    def setUp(self):
        self.server = self.start(local_spec('local'))
        self.raw = Raw(self.server.target)
        self.addCleanup(self.raw.close)

    def tearDown(self):
        self.assert_keeps_nothing(self.server)

    def refused(self, graph, *words, code=(3, 5, 12)):
        self.raises(lambda: self.raw.create(graph), *words, code=code)
        # Extending is no other way in, and all or nothing.
        handle = self.raw.create(graph_of(ZERO))
        try:
            self.raises(lambda: self.raw.extend(handle, graph, 0), *words, code=code)
            self.raw.run(handle, [], target=['zero'])
        finally:
            self.close(handle)

    @staticmethod
    def messages():
        from harness import master_pb2
        return master_pb2

    def test_unknown_ops(self):
        self.refused(graph_of(('n', 'Constt', [], {})), "'n'", 'Constt', 'Const')

    def test_arity_types_and_inputs(self):
        self.refused(graph_of(('p', 'Placeholder', [], {'dtype': tf.float32}), ('n', 'Neg', [], F)), "'n'")
        self.refused(graph_of(('p', 'Placeholder', [], {'dtype': tf.float32}), ('n', 'Neg', ['p', 'p'], F)), "'n'")
        self.refused(graph_of(('p', 'Placeholder', [], {'dtype': tf.int32}), ('n', 'Neg', ['p'], F)), "'n'", 'int32', 'float')
        self.refused(graph_of(('n', 'Neg', ['nowhere'], F)), "'n'", 'nowhere')

    def test_cycles(self):
        self.refused(graph_of(('a', 'Neg', ['b'], F), ('b', 'Neg', ['a'], F)), 'cycle', 'a', 'b')
        self.refused(graph_of(('a', 'NoOp', ['^b'], {}), ('b', 'NoOp', ['^a'], {})), 'cycle')

    def test_devices(self):
        self.refused(graph_of(('n', 'NoOp', [], {}, '/job:a/quark:1')), "'n'", 'quark')
        for device in '/job:local/task:0/device:CPU:9', '/job:nobody/task:3':
            self.refused(graph_of(('n', 'NoOp', [], {}, device)), '{{node n}}', device, '/job:local/replica:0/task:0')

    def close(self, handle):
        self.raw.call('CloseSession', self.messages().CloseSessionRequest(session_handle=handle))

    def test_functions_that_call_themselves(self):
        self.refused(graph_of(('n', 'f', [], {}), f='g', g='f'), 'f', 'g')

    def test_functions_that_are_not_there(self):
        graph = graph_of(('x', 'Placeholder', [], {'dtype': tf.float32}), ('p', 'Placeholder', [], {'dtype': tf.bool}),
                         ('loop', 'While', ['x'], {}), ('branch', 'If', ['p', 'x'], {'Tcond': tf.bool}),
                         ('call', 'PartitionedCall', ['x'], {}))
        for index, lists, functions in ((2, ['T'], ['cond', 'body']), (3, ['Tin', 'Tout'], ['then_branch', 'else_branch']),
                                        (4, ['Tin', 'Tout'], ['f'])):
            for name in lists:
                graph.node[index].attr[name].list.type.append(tf.float32.as_datatype_enum)
            for name in functions:
                graph.node[index].attr[name].func.name = 'lost_' + name
        with tf.Graph().as_default() as program:
            tf.import_graph_def(graph, name='')
        with tf1.Session(self.server.target, graph=program) as session:
            feeds = {'x:0': 1.0, 'p:0': True}
            self.assertEqual(session.run('x:0', feeds), 1.0)
            # The code and first words of each are TensorFlow's own.
            for node, attr, text, code in (('loop', 'cond', 'Function lost_cond is not defined', 5),
                                           ('branch', 'then_branch', 'Function lost_then_branch is not defined', 5),
                                           ('call', 'f', 'Failed to find function "lost_f" in function library', 3)):
                self.raises(lambda: session.run(node + ':0', feeds), text, "'%s'" % node, "'%s'" % attr,  # noqa: B023
                            code=(code,))

    def test_shapes_that_overflow(self):
        graph = graph_of(('n', 'Placeholder', [], {'dtype': tf.float32}))
        for size in 2**62, 4:
            graph.node[0].attr['shape'].shape.dim.add(size=size)
        self.refused(graph, 'n')
        graph = graph_of(('n', 'Const', [], {'dtype': tf.float32}))
        tensor = graph.node[0].attr['value'].tensor
        tensor.dtype = tf.float32.as_datatype_enum
        tensor.float_val.append(1)
        for size in 2**31, 2**31:
            tensor.tensor_shape.dim.add(size=size)
        self.refused(graph, 'n', code=(3, 8))
        with tf.Graph().as_default(), tf1.Session(self.server.target) as session:
            dims = tf1.placeholder(tf.int64, [None])
            full = tf.raw_ops.Fill(dims=dims, value=1.0, name='full')
            for values in [2**62, 4], [2**50], [-1]:
                self.raises(lambda: session.run(full, {dims: values}), 'full', code=(3, 8))  # noqa: B023

    def test_lists_that_memory_does_not_hold(self):
        with tf.Graph().as_default(), tf1.Session(self.server.target) as session:
            n, scalar = tf1.placeholder(tf.int32, []), tf.constant([], tf.int32)
            three = tf.raw_ops.TensorListReserve(element_shape=scalar, num_elements=3, element_dtype=tf.float32)
            for make, inputs in [
                    (tf.raw_ops.TensorListReserve, {'element_shape': scalar, 'num_elements': n, 'element_dtype': tf.float32}),
                    (tf.raw_ops.TensorListResize, {'input_handle': three, 'size': n}),
                    (tf.raw_ops.TensorListSetItem, {'input_handle': three, 'index': n, 'item': 1., 'resize_if_index_out_of_bounds': True}),
                    (tf.raw_ops.TensorListScatter, {'tensor': [1.], 'indices': [n], 'element_shape': scalar})]:
                length = tf.raw_ops.TensorListLength(input_handle=make(name='huge', **inputs))
                self.raises(lambda: session.run(length, {n: 2**31 - 1}), 'huge', 'elements of a list', code=8)  # noqa: B023
                self.assertGreater(session.run(length, {n: 5}), 1)

    def test_feeds_fetches_and_targets(self):
        graph = graph_of(('x', 'Placeholder', [], {'dtype': tf.float32}), ('y', 'Neg', ['x'], F), ZERO)
        graph.node[0].attr['shape'].shape.dim.add(size=2)
        handle = self.raw.create(graph)

        def feed(name, value, dtype=tf.float32):
            message = self.messages().RunStepRequest(session_handle=handle, fetch=['y:0'])
            one = message.feed.add(name=name)
            one.tensor.ParseFromString(tf.make_tensor_proto(value, dtype).SerializeToString())
            return lambda: self.raw.call('RunStep', message)

        self.raises(feed('x:0', [1, 2, 3]), 'x', code=3)
        self.raises(feed('x:0', [1, 2], tf.int32), 'x', code=3)
        self.raises(feed('gone:0', [1, 2]), 'gone', code=(3, 5))
        self.raises(lambda: self.raw.run(handle, ['gone:0']), 'gone', code=(3, 5))
        self.raises(lambda: self.raw.run(handle, ['y:7']), 'y:7', code=(3, 5))
        self.raises(lambda: self.raw.run(handle, [], target=['gone']), 'gone', code=(3, 5))
        self.raises(lambda: self.raw.run(handle, ['y:0']), "'x'", code=3)
        self.raises(lambda: self.raw.run('no such session', ['y:0']), 'no such session', code=10)
        feed('x:0', [1, 2])()
        self.close(handle)

    def test_bytes_that_are_no_message(self):
        for method in 'CreateSession', 'ExtendSession', 'RunStep', 'CloseSession', 'ListDevices', 'RunCallable', 'Reset':
            call = self.raw.channel.unary_unary('/tensorflow.MasterService/' + method)
            self.raises(lambda: call(b'\xff\xff\xff\x7f' * 5, timeout=60), code=3)  # noqa: B023

    def test_variables_without_a_value(self):
        with tf.Graph().as_default(), tf1.Session(self.server.target) as session:
            w = tf1.get_variable('weights', [2], use_resource=True)
            old = tf1.get_variable('biases', [2], use_resource=False)
            self.raises(lambda: session.run(w), 'weights', code=9)
            self.raises(lambda: session.run(old), 'biases', code=9)


class Files(BadInput):
    def test_checkpoints_that_are_torn_missing_or_elsewhere(self):
        with tempfile.TemporaryDirectory() as root, tempfile.TemporaryDirectory() as outside:
            server = self.start(local_spec('local'), 'local', '--file_root', root)
            with tf.Graph().as_default(), tf1.Session(server.target) as session:
                w = tf1.get_variable('w', initializer=tf.ones([1000]), use_resource=True)
                saver = tf1.train.Saver()
                prefix = os.path.join(root, 'model')
                session.run(w.initializer)
                self.raises(lambda: session.run(saver.saver_def.restore_op_name,
                                                {saver.saver_def.filename_tensor_name: prefix}), prefix, code=5)
                session.run(saver.saver_def.save_tensor_name, {saver.saver_def.filename_tensor_name: prefix})
                data = prefix + '.data-00000-of-00001'
                with open(data, 'r+b') as file:
                    file.truncate(2000)
                restore = {saver.saver_def.filename_tensor_name: prefix}
                self.raises(lambda: session.run(saver.saver_def.restore_op_name, restore), data, code=(11, 15))
                with open(prefix + '.index', 'r+b') as file:
                    file.truncate(30)
                self.raises(lambda: session.run(saver.saver_def.restore_op_name, restore), prefix + '.index', code=15)
                away = os.path.join(outside, 'model')
                for path in away, os.path.join(root, '..', os.path.basename(outside), 'model'):
                    self.raises(lambda: session.run(saver.saver_def.save_tensor_name,
                                                    {saver.saver_def.filename_tensor_name: path}), code=7)  # noqa: B023
                self.assertEqual(os.listdir(outside), [])
                self.assertEqual(session.run(w)[0], 1.0)
            self.assert_keeps_nothing(server)


class Clusters(BadInput):
    def test_specs_that_cannot_be(self):
        port, = processes.free_ports(1)
        self.fails_to_start('{"local": ["127.0.0.1:%d"], "ps": ["127.0.0.1:%d"]}' % (port, port), '127.0.0.1:%d' % port)
        self.fails_to_start('{"local": ["127.0.0.1"]}', '127.0.0.1')
        self.fails_to_start('{"local": ["127.0.0.1:99999"]}', '99999')
        self.fails_to_start('{"local": [', '--cluster')
        self.fails_to_start('{"ps": ["127.0.0.1:%d"]}' % port, 'local')
        self.fails_to_start('{"local": ["no-such-host.invalid:%d"]}' % port, 'x y', flags=('--bind', 'x y'))
        with socket.socket() as taken:
            taken.bind(('127.0.0.1', 0))
            taken.listen()
            self.fails_to_start('{"local": ["127.0.0.1:%d"]}' % taken.getsockname()[1], str(taken.getsockname()[1]))

    def test_tasks_that_cannot_be_reached(self):
        for address in '127.0.0.1:1', 'no-such-host.invalid:2222':
            server = self.start(dict(local_spec('worker'), ps=[address]), 'worker')
            with tf.Graph().as_default(), tf.device('/job:ps/task:0'):
                config = tf1.ConfigProto(operation_timeout_in_ms=1500)
                with tf1.Session(server.target, config=config) as session:
                    start = time.monotonic()
                    self.raises(lambda: session.run(tf.constant(1.0)), '/job:ps/task:0', address, code=4)  # noqa: B023
                    self.assertLess(time.monotonic() - start, 30)
            self.assert_keeps_nothing(server)

    def test_a_peer_that_dies_in_mid_step(self):
        spec = local_spec('ps', 'worker')
        ps, worker = self.start(spec, 'ps'), self.start(spec, 'worker')
        with tf.Graph().as_default() as graph:
            with tf.device('/job:ps/task:0'):
                take = tf1.FIFOQueue(1, tf.float32, shapes=[()]).dequeue()
            with tf.device('/job:worker/task:0'):
                double = take + take
            errors = []

            def run():
                with tf1.Session(worker.target, graph) as session:
                    try:
                        session.run(double)
                    except tf.errors.OpError as error:
                        errors.append(error)

            thread = threading.Thread(target=run)
            thread.start()
            deadline = time.monotonic() + 60
            while not ps.metrics()['weft_running_parts'] and time.monotonic() < deadline:
                time.sleep(0.02)
            ps.process.send_signal(signal.SIGKILL)
            thread.join(60)
            self.assertFalse(thread.is_alive())
            self.assertIn(errors[0].error_code, (10, 14))
            self.assertIn('/job:ps', errors[0].message)
        self.assert_keeps_nothing(worker)


class Addresses(BadInput):
    """Which interfaces a server listens at."""

    def own_address(self):
        own = processes.own_address()
        if own is None:
            self.skipTest('there is no network but loopback here')
        return own

    @staticmethod
    def answers(host, port):
        with contextlib.closing(socket.socket()) as probe:
            probe.settimeout(5)
            return probe.connect_ex((host, port)) == 0

    def data_port(self):
        return processes.free_ports(1)[0]

    def test_loopback_stays_on_loopback(self):
        data = self.data_port()
        server = self.start(local_spec('local'), 'local', '--data_port', str(data))
        own = self.own_address()
        for port in server.port, data, server.status_port:
            self.assertTrue(self.answers('127.0.0.1', port))
            self.assertFalse(self.answers(own, port))
        self.assertNotIn('WITHOUT', server.logged())

    def test_other_addresses_are_all_interfaces_and_a_warning(self):
        own, port, data = self.own_address(), processes.free_ports(1)[0], self.data_port()
        spec = {'local': ['%s:%d' % (own, port)]}
        self.fails_to_start(json.dumps(spec), '--task_tls', 'weft secret', '--insecure')
        server = self.start(spec, 'local', '--data_port', str(data), '--insecure')
        for port in server.port, data:
            self.assertTrue(self.answers('127.0.0.1', port))
            self.assertTrue(self.answers(own, port))
        self.assertEqual(1, server.metrics()['weft_insecure'])
        self.assertFalse(self.answers(own, server.status_port))
        self.assertRegex(server.logged(), re.compile(r'^W.*WITHOUT ENCRYPTION', re.M))

    def test_a_secret_keeps_others_than_the_job_out(self):
        own = self.own_address()
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        secrets = [os.path.join(folder.name, name) for name in ('job', 'other')]
        for secret in secrets:
            made = subprocess.run([BINARY, 'secret', secret], capture_output=True, text=True, timeout=60)
            self.assertEqual(0, made.returncode, made.stderr)
            self.assertIn('--task_tls ' + secret, made.stdout)
        again = subprocess.run([BINARY, 'secret', secrets[0]], capture_output=True, text=True, timeout=60)
        self.assertEqual(1, again.returncode)
        self.assertIn('tls.key', again.stderr)
        spec = {job: ['%s:%d' % (own, port)] for job, port in zip(('ps', 'worker'), processes.free_ports(2))}
        self.fails_to_start(json.dumps(spec), 'ca.crt', job='ps', flags=('--task_tls', folder.name))
        self.start(spec, 'ps', '--task_tls', secrets[0])
        worker = self.start(spec, 'worker', '--task_tls', secrets[0])
        with tf.Graph().as_default(), tf1.Session(worker.target) as session:
            with tf.device('/job:ps/task:0'):
                big = tf.fill([1 << 20], 2.)
            with tf.device('/job:worker/task:0'):
                total = tf.reduce_sum(big)
            self.assertEqual(2 << 20, session.run(total))
        self.assertEqual(0, worker.metrics()['weft_insecure'])
        for port in (int(tasks[0].rsplit(':', 1)[1]) for tasks in spec.values()):
            with grpc.insecure_channel('%s:%d' % (own, port)) as channel:
                with self.assertRaises(grpc.RpcError) as raised:
                    channel.unary_unary('/tensorflow.MasterService/ListDevices')(b'', timeout=60)
            self.assertEqual(grpc.StatusCode.UNAUTHENTICATED, raised.exception.code())
            self.assertIn('grpc://127.0.0.1', raised.exception.details())

    def test_bind_overrides(self):
        own, port, data = self.own_address(), processes.free_ports(1)[0], self.data_port()
        server = self.start({'local': ['%s:%d' % (own, port)]}, 'local', '--bind', '127.0.0.1', '--data_port', str(data))
        for port in server.port, data:
            self.assertTrue(self.answers('127.0.0.1', port))
            self.assertFalse(self.answers(own, port))
        self.assertNotIn('WITHOUT', server.logged())


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clients of `weft serve` that are strangers, ask for too much or vanish, and folders that change under it: serving_clients_test.py WEFT [--reloads N]"""
import argparse
import json
import os
import re
import shutil
import socket
import ssl
import struct
import subprocess
import sys
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np
import tensorflow as tf
from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc

import processes
import serving_test
from serving_test import PORT_OF, Served, X, ask, rest, server, states, wait_until

RELOADS = 4
TOKEN = '0123456789abcdef-0123456789abcdef'


def process_of(address):
    """The pid of the server that listens there."""
    port = PORT_OF[address]
    for folder in os.listdir('/proc'):
        if folder.isdigit():
            try:
                with open('/proc/%s/cmdline' % folder, 'rb') as words:
                    if b'--port=%d' % port in words.read().split(b'\0'):
                        return int(folder)
            except OSError:
                continue
    raise AssertionError('nobody has the port %d' % port)


def status_of(pid, name):
    with open('/proc/%d/status' % pid) as file:
        return next(int(line.split()[1]) for line in file if line.startswith(name + ':'))


def descriptors(pid):
    return len(os.listdir('/proc/%d/fd' % pid))


class Base(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base = os.path.join(cls.made, 'line')
        cls.put(cls, cls.base, 1, 1)

    def check_answers(self, channel):
        np.testing.assert_array_equal(tf.make_ndarray(ask(channel, x=X).outputs['y']), X @ [[1.0], [2.0]])


class Strangers(Base):
    """TLS and tokens at a port that others than this machine reach."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.secret = os.path.join(cls.made, 'secret')
        os.mkdir(cls.secret)
        subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', 'tls.key', '-out',
                        'tls.crt', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,IP:127.0.0.1', '-days', '2'],
                       cwd=cls.secret, check=True, capture_output=True, timeout=60)
        cls.tokens = os.path.join(cls.made, 'tokens')
        with open(cls.tokens, 'w') as out:
            out.write(TOKEN + '\n')
        cls.metrics, = processes.free_ports(1)
        cls.plain, cls.rest = cls.enterClassContext(server(
            '--model_name=line', '--model_base_path=' + cls.base, '--tls_folder=' + cls.secret, '--token_file=' + cls.tokens, '--bind=0.0.0.0',
            '--metrics_port=%d' % cls.metrics, '--enable_grpc_healthcheck_service'))
        with open(cls.secret + '/tls.crt', 'rb') as file:
            cls.authority = file.read()

    def channel(self, token=None, authority=None):
        credentials = grpc.ssl_channel_credentials(authority or self.authority)
        if token is not None:
            credentials = grpc.composite_channel_credentials(credentials, grpc.access_token_call_credentials(token))
        return grpc.secure_channel('localhost:%d' % PORT_OF[self.rest], credentials)

    def test_grpc(self):
        with self.channel(TOKEN) as channel:
            self.check_answers(channel)
            self.assertEqual(states(channel), {1: 'AVAILABLE'})
        for token in None, 'x' * 33, TOKEN[:-1], TOKEN + 'f', '':
            with self.subTest(token=token), self.channel(token) as channel:
                self.fails(grpc.StatusCode.UNAUTHENTICATED, 'authorization: Bearer TOKEN', ask, channel, x=X)
                self.fails(grpc.StatusCode.UNAUTHENTICATED, 'authorization: Bearer TOKEN', states, channel)
        self.fails(grpc.StatusCode.UNAVAILABLE, '.', ask, self.plain, x=X)
        other = subprocess.run(['openssl', 'req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-keyout', '/dev/null',
                                '-subj', '/CN=localhost', '-days', '2'], check=True, capture_output=True, timeout=60).stdout
        with self.channel(TOKEN, other) as channel:
            self.fails(grpc.StatusCode.UNAVAILABLE, '.', ask, channel, x=X)

    def test_rest(self):
        context = ssl.create_default_context(cafile=self.secret + '/tls.crt')
        secure = self.rest.replace('http://', 'https://')

        def code(path, body=None, token=None):
            request = urllib.request.Request(secure + path, body, {} if token is None else {'Authorization': 'Bearer ' + token})
            try:
                return urllib.request.urlopen(request, context=context, timeout=60).status
            except urllib.error.HTTPError as error:
                return error.code
        body = json.dumps({'instances': X.tolist()}).encode()
        for path, body in ('/v1/models/line:predict', body), ('/v1/models/line', None), ('/monitoring/prometheus/metrics', None):
            self.assertEqual([code(path, body, token) for token in (TOKEN, None, 'wrong', TOKEN + 'f')], [200, 401, 401, 401], path)
        self.assertEqual(code('/healthz'), 200)
        with self.assertRaises(OSError):
            urllib.request.urlopen(self.rest + '/healthz', timeout=60)

    def test_the_port_of_metrics_has_nothing_else(self):
        address = 'http://127.0.0.1:%d' % self.metrics
        for path in '/healthz', '/livez', '/metrics':
            self.assertEqual(urllib.request.urlopen(address + path, timeout=60).status, 200)
        self.assertIn(b'weft_serving_requests', urllib.request.urlopen(address + '/metrics', timeout=60).read())
        for path in '/v1/models/line', '/v1/models/line/metadata', '/':
            with self.assertRaises(urllib.error.HTTPError) as caught:
                urllib.request.urlopen(address + path, timeout=60)
            self.assertEqual(caught.exception.code, 404)


class TooMuch(Base):
    def test_requests_too_large(self):
        with server('--model_name=line', '--model_base_path=' + self.base, '--max_rest_body=1MB', '--memory_limit=200MB') as (channel, address):
            pid = process_of(address)
            path = address + '/v1/models/line:predict'
            status, reply = rest(path, {'instances': [[1.5, 2.5]] * 200000})
            self.assertEqual(status, 413, reply)
            self.assertIn('error', reply)
            # It says that it is large, and is not.
            with socket.create_connection(('127.0.0.1', int(address.rsplit(':', 1)[1]))) as liar:
                liar.sendall(b'POST /v1/models/line:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: 99999999999\r\n\r\n{')
                liar.settimeout(60)
                self.assertIn(b' 413 ', liar.recv(1000))
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            for sizes, content in (([1 << 40, 2], b'1234'), ([-1, 2], b''), ([1 << 62, 1 << 62], b''), ([3, 2], b'1234')):
                request = predict_pb2.PredictRequest()
                request.model_spec.name = 'line'
                request.inputs['x'].dtype = 1
                for size in sizes:
                    request.inputs['x'].tensor_shape.dim.add(size=size)
                request.inputs['x'].tensor_content = content
                self.fails(grpc.StatusCode.INVALID_ARGUMENT, '.', stub.Predict, request, 60)
            # One value for all elements: 16 GB of them.
            request.inputs['x'].tensor_content = b''
            request.inputs['x'].float_val.append(1)
            request.inputs['x'].tensor_shape.dim[0].size = 2 << 30
            with self.assertRaises(grpc.RpcError) as caught:
                stub.Predict(request, 60)
            self.assertIn(caught.exception.code(), (grpc.StatusCode.RESOURCE_EXHAUSTED, grpc.StatusCode.INVALID_ARGUMENT), caught.exception.details())
            self.check_answers(channel)
            self.assertLess(status_of(pid, 'VmHWM'), 600 << 10)

    def test_nesting_and_numbers(self):
        with server('--model_name=line', '--model_base_path=' + self.base) as (channel, address):
            path = address + '/v1/models/line:predict'
            for body in (b'{"instances": ' + b'[' * 100000 + b']' * 100000 + b'}', b'{"instances": [[1e999, 2]]}', b'{"instances": [[1, 2]', b'\xff\xfe', b'',
                         b'[]', b'{"instances": 7}', b'{"inputs": {"x": [[1, 2]], "x": [[1]]}}'):
                request = urllib.request.Request(path, body)
                try:
                    status = urllib.request.urlopen(request, timeout=60).status
                except urllib.error.HTTPError as error:
                    status = error.code
                self.assertIn(status, (200, 400), body[:40])
            self.check_answers(channel)


class Vanishing(Base):
    def test_clients_that_go_in_mid_request_leave_nothing(self):
        """Half requests over HTTP and HTTP/2, calls that are cancelled while they wait for their batch, deadlines."""
        parameters = os.path.join(self.made, 'waits.txt')
        with open(parameters, 'w') as out:
            out.write('max_batch_size { value: 1000 } batch_timeout_micros { value: 300000 } max_enqueued_batches { value: 100 }')
        with server('--model_name=line', '--model_base_path=' + self.base, '--enable_batching',
                    '--batching_parameters_file=' + parameters) as (channel, address):
            pid = process_of(address)
            self.check_answers(channel)
            before = descriptors(pid), status_of(pid, 'Threads')
            port = int(address.rsplit(':', 1)[1])
            reset = struct.pack('ii', 1, 0)
            body = json.dumps({'instances': X.tolist()}).encode()
            whole = b'POST /v1/models/line:predict HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n' % len(body) + body
            for number in range(60):
                with socket.create_connection(('127.0.0.1', PORT_OF[address] if number % 3 == 0 else port)) as gone:
                    if number % 3 == 0:
                        gone.sendall((b'PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n' + b'\0\0\0\4\0\0\0\0\0' + b'\0\1\0\0\0\0\0\0')[:20 + number % 15])
                    else:  # some whole, so that they wait for their batch when the client goes
                        gone.sendall(whole[:len(whole) if number % 2 else 40 + number])
                    if number % 4 == 0:
                        gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, reset)
            stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
            request = predict_pb2.PredictRequest()
            request.model_spec.name = 'line'
            request.inputs['x'].CopyFrom(tf.make_tensor_proto(X))
            calls = [stub.Predict.future(request, 60) for _ in range(40)]
            for call in calls[::2]:
                call.cancel()
            self.assertTrue(all(call.result().model_spec.version.value == 1 for call in calls[1::2]))
            self.fails(grpc.StatusCode.DEADLINE_EXCEEDED, '.', stub.Predict, request, 0.01)
            self.check_answers(channel)

            def left():
                with urllib.request.urlopen(address + '/monitoring/prometheus/metrics') as page:
                    here, = re.findall(r'^weft_serving_requests(?:{})? (\S+)$', page.read().decode(), re.M)
                # gRPC has a few threads more when it is asked for more.
                return {'requests': float(here), 'descriptors': max(0, descriptors(pid) - before[0] - 3),
                        'threads': max(0, status_of(pid, 'Threads') - before[1] - 16)}
            deadline = time.monotonic() + 60
            while any(left().values()) and time.monotonic() < deadline:
                time.sleep(0.1)
            self.assertEqual(left(), {'requests': 0, 'descriptors': 0, 'threads': 0})

    def test_a_server_that_drains_answers_on(self):
        with server('--model_name=line', '--model_base_path=' + self.base, '--drain=2') as (channel, address):
            pid = process_of(address)
            self.check_answers(channel)
            os.kill(pid, 15)

            def is_unready():
                try:
                    urllib.request.urlopen(address + '/healthz', timeout=60)
                except urllib.error.HTTPError as error:
                    return error.code == 503
                return False
            wait_until(is_unready)
            self.check_answers(channel)


class Folders(Base):
    def test_two_servers_on_one_folder_and_on_one_port(self):
        base = os.path.join(self.made, 'shared')
        self.put(base, 1, 1)
        flags = '--model_name=line', '--model_base_path=' + base
        with server(*flags) as (one, address), server(*flags) as (two, _):
            second = subprocess.run([serving_test.WEFT, 'serve', '--port=%d' % PORT_OF[address], *flags], capture_output=True, text=True, timeout=60)
            self.assertEqual(second.returncode, 1)
            self.assertIn(':%d' % PORT_OF[address], second.stderr)
            self.put(base, 2, 2)
            for channel in one, two:
                wait_until(lambda channel=channel: states(channel) == {2: 'AVAILABLE', 1: 'END'})
                self.assertEqual(ask(channel, x=X[:1]).outputs['y'].float_val[:], ask(one, x=X[:1]).outputs['y'].float_val[:])
            # What is on the disk is only read: who serves it cannot harm the other.
            os.rename(base + '/2', base + '/gone')
            for channel in one, two:
                wait_until(lambda channel=channel: ask(channel, x=X[:1]).model_spec.version.value == 1)

    def test_versions_that_are_written_while_they_are_looked_at(self):
        """File by file, in all orders: what is not whole is not served."""
        base = os.path.join(self.made, 'written')
        self.put(base, 1, 1)
        whole = os.path.join(self.made, '2')
        files = sorted(os.path.relpath(os.path.join(root, name), whole) for root, _, names in os.walk(whole) for name in names)
        with server('--model_name=line', '--model_base_path=' + base, '--load_retry_interval_micros=0', '--max_num_load_retries=2') as (channel, _):
            for version, order in (2, files), (3, files[::-1]):
                for name in order:
                    path = os.path.join(base, str(version), name)
                    os.makedirs(os.path.dirname(path), exist_ok=True)
                    with open(os.path.join(whole, name), 'rb') as source, open(path, 'wb') as out:
                        data = source.read()
                        for at in range(0, len(data), max(1, len(data) // 3)):
                            out.write(data[at:at + max(1, len(data) // 3)])
                            out.flush()
                            reply = ask(channel, x=X[:1])
                            self.assertEqual(float(tf.make_ndarray(reply.outputs['y'])[0, 0]), 5.0 * min(2, reply.model_spec.version.value))
                            self.assertLess(reply.model_spec.version.value, version)
                            time.sleep(0.05)
                wait_until(lambda version=version: states(channel).get(version) == 'AVAILABLE')

    def test_reloads_under_load_lose_nothing_and_keep_nothing(self):
        base = os.path.join(self.made, 'reloads')
        self.put(base, 1, 1)
        # Small files are held for a second before they are believed.
        with server('--model_name=line', '--model_base_path=' + base, '--enable_batching') as (channel, address):
            pid = process_of(address)
            failures, count, stop = [], [0], threading.Event()

            def load():
                while not stop.is_set():
                    try:
                        reply = ask(channel, x=X[:1])
                        value = float(tf.make_ndarray(reply.outputs['y'])[0, 0])
                        if value != (5.0 if reply.model_spec.version.value % 2 else 10.0):
                            failures.append((reply.model_spec.version.value, value))
                        count[0] += 1
                    except grpc.RpcError as error:
                        failures.append(error.details())
                    time.sleep(0.002)
            threads = [threading.Thread(target=load) for _ in range(4)]
            for thread in threads:
                thread.start()
            held = []
            for version in range(2, 2 + RELOADS):
                self.put(base, version, 2 - version % 2)
                wait_until(lambda version=version: states(channel).get(version) == 'AVAILABLE' and states(channel).get(version - 1) == 'END')
                shutil.rmtree('%s/%d' % (base, version - 1))
                held.append(status_of(pid, 'VmRSS') >> 10)
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            print('%d reloads, %d requests, memory %s MB' % (RELOADS, count[0], held[::max(1, RELOADS // 10)]), file=sys.stderr)
            # The first ones fill pools and caches.
            settled = held[len(held) // 2]
            self.assertLessEqual(held[-1], settled * 1.1 + 16, held)
            self.assertLess(descriptors(pid), 200)


if __name__ == '__main__':
    serving_test.WEFT = processes.binary_from(sys.argv)
    parser = argparse.ArgumentParser()
    parser.add_argument('--reloads', type=int, default=RELOADS)
    known, others = parser.parse_known_args()
    RELOADS = known.reloads
    unittest.main(argv=sys.argv[:1] + others, verbosity=2)

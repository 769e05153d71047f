#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Objects of S3, GCS and web servers as files of graphs: stores_test.py WEFT PYTHON_WITH_THE_STORES [unittest arguments].

The stores are local servers of their dialects (tests/requirements-stores.txt): moto's and gcp-storage-emulator. What weft wrote
is read by other clients, and the other way round.
"""
import base64
import contextlib
import functools
import http.server
import json
import os
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import urllib.parse
import urllib.request

import numpy as np
import tensorflow.compat.v1 as tf

import processes

WEFT = processes.binary_from(sys.argv)
STORES = sys.argv.pop(1) if len(sys.argv) > 1 and not sys.argv[1].startswith('-') else sys.executable
tf.disable_v2_behavior()
LARGE = 20 << 20  # more than two parts

_EMULATOR = '''
import sys
from gcp_storage_emulator.server import create_server
server = create_server('127.0.0.1', int(sys.argv[1]), in_memory=True, default_bucket='bucket')
server.run()
'''


def call(method, url, body=None):
    with urllib.request.urlopen(urllib.request.Request(url, data=body, method=method), timeout=30) as answer:
        return answer.read()


class Flaky(http.server.SimpleHTTPRequestHandler):
    """A web server of files whose first answers are 503."""
    failures = 0

    def do_GET(self):
        if type(self).failures > 0:
            type(self).failures -= 1
            self.send_error(503)
            return
        super().do_GET()

    def log_message(self, *args):
        pass


class Stores(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        stack = contextlib.ExitStack()
        cls.addClassCleanup(stack.close)
        s3, gcs = processes.free_ports(2)
        cls.folder = stack.enter_context(tempfile.TemporaryDirectory())
        for port, command in ((s3, ['-m', 'moto.server', '-H', '127.0.0.1', '-p', str(s3)]), (gcs, ['-c', _EMULATOR, str(gcs)])):
            process = subprocess.Popen([STORES, *command], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                       preexec_fn=processes.die_with_parent)
            stack.callback(processes.stop, process)
            processes.wait_for_port(port, process)
        cls.s3, cls.gcs = 'http://127.0.0.1:%d' % s3, 'http://127.0.0.1:%d' % gcs
        cls.web = http.server.ThreadingHTTPServer(('127.0.0.1', 0), functools.partial(Flaky, directory=cls.folder))
        threading.Thread(target=cls.web.serve_forever, daemon=True).start()
        stack.callback(cls.web.shutdown)
        os.environ.update(AWS_ACCESS_KEY_ID='id', AWS_SECRET_ACCESS_KEY='secret', AWS_ENDPOINT_URL=cls.s3,
                          AWS_DEFAULT_REGION='us-east-1', STORAGE_EMULATOR_HOST=cls.gcs)
        cls.boto('create_bucket(Bucket="bucket")')
        cls.target = stack.enter_context(processes.cluster(WEFT, worker=1))['worker'][0]

    @staticmethod
    def boto(what, data=None):
        """A call of Amazon's own client."""
        return subprocess.run([STORES, '-c', 'import boto3, sys; s3 = boto3.client("s3", endpoint_url=sys.argv[1])\n'
                               'data = sys.stdin.buffer.read()\ndone = s3.' + what + '\n'
                               'if "Body" in done: sys.stdout.buffer.write(done["Body"].read())', os.environ['AWS_ENDPOINT_URL']],
                              input=data or b'', stdout=subprocess.PIPE, check=True, timeout=120).stdout

    def setUp(self):
        context = tf.Graph().as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)

    def run_it(self, fetch, feed=None):
        with tf.Session(self.target) as session:
            return session.run(fetch, feed)

    def raw(self, url):
        """An object, by its dialect's own words."""
        bucket, key = url.split('://')[1].split('/', 1)
        if url.startswith('s3'):
            return self.boto('get_object(Bucket=%r, Key=%r)' % (bucket, key))
        return call('GET', '%s/storage/v1/b/%s/o/%s?alt=media' % (self.gcs, bucket, urllib.request.quote(key, safe='')))

    def test_small_objects(self):
        for scheme in 's3', 'gs':
            name = scheme + '://bucket/small/a b+c.txt'
            self.run_it(tf.io.write_file(name, 'some text'))
            self.assertEqual(self.raw(name), b'some text')
            self.assertEqual(self.run_it(tf.io.read_file(name)), b'some text')
            if scheme == 's3':  # the emulator of the other fails for an empty body
                self.run_it(tf.io.write_file(name, ''))
                self.assertEqual(self.run_it(tf.io.read_file(name)), b'')

    def test_large_objects_go_in_parts(self):
        data = np.random.RandomState(0).bytes(LARGE + 5)
        value = tf.placeholder(tf.string, [])
        for scheme in 's3', 'gs':
            name = scheme + '://bucket/large'
            self.run_it(tf.io.write_file(name, value), {value: data})
            self.assertEqual(self.raw(name), data)
            self.assertEqual(self.run_it(tf.io.read_file(name)), data)

    def test_folders(self):
        for scheme in 's3', 'gs':
            for name in 'one', 'two', 'deep/three':
                self.run_it(tf.io.write_file('%s://bucket/folder/%s' % (scheme, name), name))
            found = self.run_it(tf.io.matching_files(scheme + '://bucket/folder/*o*'))
            self.assertEqual(sorted(found), [('%s://bucket/folder/%s' % (scheme, n)).encode() for n in ('one', 'two')])

    def test_what_is_not_there(self):
        for name in 's3://bucket/missing', 'gs://bucket/missing', 'http://127.0.0.1:%d/missing' % self.web.server_port:
            with self.assertRaisesRegex(tf.errors.NotFoundError, 'missing'):
                self.run_it(tf.io.read_file(name))
        with self.assertRaisesRegex(tf.errors.NotFoundError, 'nobody'):
            self.run_it(tf.io.write_file('s3://nobody-has-this/x', 'x'))

    def test_checkpoints(self):
        values = {'w': np.random.RandomState(1).rand(300, 1000).astype(np.float32), 'n': np.arange(5)}
        for scheme in 's3', 'gs':
            with tf.Graph().as_default(), tf.Session(self.target) as session:
                variables = {name: tf.get_variable(name, initializer=value) for name, value in values.items()}
                saver, sharded = tf.train.Saver(variables), tf.train.Saver(variables, sharded=True)
                session.run(tf.global_variables_initializer())
                for one in saver, sharded:
                    # The `checkpoint` file is written by the client's own file system, which knows no store here.
                    prefix = '%s://bucket/run/%s' % (scheme, 'model' if one is saver else 'sharded')
                    session.run(one.saver_def.save_tensor_name, {one.saver_def.filename_tensor_name: prefix})
                    for v in variables.values():
                        session.run(v.assign(tf.zeros_like(v)))
                    session.run(one.saver_def.restore_op_name, {one.saver_def.filename_tensor_name: prefix})
                    for name, value in values.items():
                        np.testing.assert_array_equal(session.run(variables[name]), value)
            # TensorFlow reads what came out.
            for part in 'index', 'data-00000-of-00001':
                with open('%s/%s.%s' % (self.folder, scheme, part), 'wb') as out:
                    out.write(self.raw('%s://bucket/run/model.%s' % (scheme, part)))
            np.testing.assert_array_equal(tf.train.load_variable('%s/%s' % (self.folder, scheme), 'w'), values['w'])

    def test_records(self):
        path = os.path.join(self.folder, 'records')
        with tf.io.TFRecordWriter(path) as writer:
            for i in range(1000):
                writer.write(b'record %d' % i)
        with open(path, 'rb') as file:
            self.boto('put_object(Bucket="bucket", Key="records", Body=data)', file.read())
        for name in 's3://bucket/records', 'http://127.0.0.1:%d/records' % self.web.server_port:
            with tf.Graph().as_default(), tf.Session(self.target) as session:
                queue = tf.FIFOQueue(1, [tf.string], shapes=[[]], shared_name=name)
                session.run([queue.enqueue(name)])
                session.run(queue.close())
                read = tf.TFRecordReader().read_up_to(queue, 600)[1]
                got = list(session.run(read)) + list(session.run(read))
            self.assertEqual(got, [b'record %d' % i for i in range(1000)])

    def test_a_server_that_fails_now_and_then(self):
        with open(os.path.join(self.folder, 'text'), 'w') as out:
            out.write('all of it')
        Flaky.failures = 3
        self.assertEqual(self.run_it(tf.io.read_file('http://127.0.0.1:%d/text' % self.web.server_port)), b'all of it')
        self.assertEqual(Flaky.failures, 0)
        with self.assertRaisesRegex(tf.errors.PermissionDeniedError, 'web servers are read'):
            self.run_it(tf.io.write_file('http://127.0.0.1:%d/text' % self.web.server_port, 'x'))

    def test_a_confined_server_reaches_no_store(self):
        with processes.cluster(WEFT, self.folder, worker=1) as servers, tf.Session(servers['worker'][0]) as session:
            with self.assertRaises((tf.errors.NotFoundError, tf.errors.PermissionDeniedError)):
                session.run(tf.io.read_file('s3://bucket/records'))

    def test_accounts_of_google_log_in(self):
        """The request for a token is signed with the account's key; what it gets stands in the calls behind it."""
        seen = []

        class Google(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                seen.append(urllib.parse.parse_qs(self.rfile.read(int(self.headers['content-length'])).decode()))
                self.answer({'access_token': 'the-token', 'expires_in': 3600})

            def do_GET(self):
                seen.append(self.headers['authorization'])
                self.answer({'size': '0', 'updated': '2020-01-01T00:00:00Z'})

            def answer(self, value):
                body = json.dumps(value).encode()
                self.send_response(200)
                self.send_header('content-length', str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *args):
                pass

        server = http.server.HTTPServer(('127.0.0.1', 0), Google)
        threading.Thread(target=server.serve_forever, daemon=True).start()
        self.addCleanup(server.shutdown)
        address = 'http://127.0.0.1:%d' % server.server_port
        key = subprocess.run(['openssl', 'genpkey', '-algorithm', 'RSA'], capture_output=True, check=True, text=True).stdout
        account = os.path.join(self.folder, 'account.json')
        with open(account, 'w') as out:
            json.dump({'type': 'service_account', 'client_email': 'me@example.com', 'private_key': key,
                       'token_uri': address + '/token'}, out)
        with unittest.mock.patch.dict(os.environ, STORAGE_EMULATOR_HOST=address, GOOGLE_APPLICATION_CREDENTIALS=account):
            with processes.cluster(WEFT, worker=1) as servers, tf.Session(servers['worker'][0]) as session:
                self.assertEqual(session.run(tf.io.read_file('gs://bucket/empty')), b'')
        self.assertEqual(set(seen[1:]), {'Bearer the-token'})
        head, claim, signature = seen[0]['assertion'][0].split('.')
        with tempfile.TemporaryDirectory() as folder:
            for name, data in ('key', key.encode()), ('text', ('%s.%s' % (head, claim)).encode()), (
                    'signature', base64.urlsafe_b64decode(signature + '==')):
                with open(os.path.join(folder, name), 'wb') as out:
                    out.write(data)
            subprocess.run('openssl pkey -in key -pubout -out public && openssl dgst -sha256 -verify public -signature signature text',
                           shell=True, check=True, cwd=folder, stdout=subprocess.DEVNULL)
        self.assertEqual(json.loads(base64.urlsafe_b64decode(claim + '=='))['iss'], 'me@example.com')


if __name__ == '__main__':
    unittest.main(verbosity=2)

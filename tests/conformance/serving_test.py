#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow Serving's published client asks `weft serve`; TensorFlow's own calls say what is right: serving_test.py WEFT."""
import concurrent.futures
import contextlib
import json
import os
import re
import shutil
import ssl
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import grpc
import numpy as np
import tensorflow as tf
from google.protobuf import text_format
from tensorflow.core.protobuf import saved_model_pb2
from tensorflow_serving.apis import (classification_pb2, get_model_metadata_pb2, get_model_status_pb2, inference_pb2,
                                     model_management_pb2, model_service_pb2_grpc, predict_pb2, prediction_log_pb2,
                                     prediction_service_pb2_grpc, regression_pb2)
from tensorflow_serving.config import model_server_config_pb2

import processes

PORT_OF = {}  # of gRPC, by the address of REST
X = np.array([[1, 2], [3, 4], [-5, 6]], np.float32)


class Model(tf.Module):
    def __init__(self, scale):
        self.w = tf.Variable(scale * tf.constant([[1.0], [2.0]]))

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, 'x')])
    def line(self, x):
        return {'y': tf.matmul(x, self.w)}

    @tf.function(input_signature=[tf.TensorSpec([None, 2], tf.float32, 'x'), tf.TensorSpec([None], tf.int64, 'by')])
    def both(self, x, by):
        return {'y': tf.matmul(x, self.w)[:, 0] * tf.cast(by, tf.float32), 'by': by + 1}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, 'words')])
    def words(self, words):
        return {'length': tf.strings.length(words), 'same_bytes': words}

    def parse(self, inputs):
        return tf.matmul(tf.io.parse_example(inputs, {'x': tf.io.FixedLenFeature([2], tf.float32)})['x'], self.w)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, 'inputs')])
    def classify(self, inputs):
        y = self.parse(inputs)
        return {'classes': tf.tile([['high', 'low']], [tf.shape(y)[0], 1]), 'scores': tf.concat([y, -y], 1)}

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, 'inputs')])
    def regress(self, inputs):
        return {'outputs': self.parse(inputs)}

    def save(self, path):
        tf.saved_model.save(self, path, {'serving_default': self.line, 'both': self.both, 'words': self.words,
                                         'classify': self.classify, 'regress': self.regress})


def example(row):
    return tf.train.Example(features=tf.train.Features(feature={
        'x': tf.train.Feature(float_list=tf.train.FloatList(value=row))}))


@contextlib.contextmanager
def server(*flags):
    """(channel, REST's address) of a server that has these flags."""
    port, rest = processes.free_ports(2)
    process = subprocess.Popen([WEFT, 'serve', '--port=%d' % port, '--rest_api_port=%d' % rest,
                                '--file_system_poll_wait_seconds=0.2', *flags], preexec_fn=processes.die_with_parent)
    try:
        processes.wait_for_port(rest, process)
        with grpc.insecure_channel('127.0.0.1:%d' % port) as channel:
            PORT_OF['http://127.0.0.1:%d' % rest] = port
            yield channel, 'http://127.0.0.1:%d' % rest
    finally:
        processes.stop(process)


def rest(address, body=None):
    """(status, JSON) of a GET, or of a POST of `body`."""
    request = urllib.request.Request(address, None if body is None else json.dumps(body).encode())
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        return error.code, json.load(error)


def ask(channel, model='line', signature='', version=None, label=None, outputs=(), **inputs):
    request = predict_pb2.PredictRequest(output_filter=outputs)
    request.model_spec.name, request.model_spec.signature_name = model, signature
    if version is not None:
        request.model_spec.version.value = version
    if label is not None:
        request.model_spec.version_label = label
    for name, value in inputs.items():
        request.inputs[name].CopyFrom(tf.make_tensor_proto(value))
    return prediction_service_pb2_grpc.PredictionServiceStub(channel).Predict(request, 60)


def states(channel, model='line'):
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = model
    reply = model_service_pb2_grpc.ModelServiceStub(channel).GetModelStatus(request, 60)
    return {one.version: get_model_status_pb2.ModelVersionStatus.State.Name(one.state) for one in reply.model_version_status}


def wait_until(holds, seconds=60):
    deadline = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < deadline, 'waited %d s' % seconds
        time.sleep(0.05)


class Served(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.made = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.models = {scale: Model(float(scale)) for scale in (1, 2)}
        for scale, model in cls.models.items():
            model.save(os.path.join(cls.made, str(scale)))

    def put(self, base, version, scale, whole=True):
        """A version by one rename, as those who know what they do write it."""
        os.makedirs(base, exist_ok=True)
        shutil.copytree(os.path.join(self.made, str(scale)), base + '/.new')
        if not whole:
            path = base + '/.new/variables/variables.data-00000-of-00001'
            os.truncate(path, os.path.getsize(path) // 2)
        os.rename(base + '/.new', os.path.join(base, str(version)))

    def fails(self, code, words, call, *args, **kwargs):
        with self.assertRaises(grpc.RpcError) as caught:
            call(*args, **kwargs)
        self.assertEqual(caught.exception.code(), code, caught.exception.details())
        self.assertRegex(caught.exception.details(), words)


class OneModel(Served):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.base = os.path.join(cls.made, 'line')
        cls.put(cls, cls.base, 1, 1)
        cls.channel, cls.rest = cls.enterClassContext(server('--model_name=line', '--model_base_path=' + cls.base))

    def expected(self, signature, **inputs):
        return {name: value.numpy() for name, value in getattr(self.models[1], signature)(**inputs).items()}

    def test_predict(self):
        reply = ask(self.channel, x=X)
        self.assertEqual((reply.model_spec.name, reply.model_spec.version.value, reply.model_spec.signature_name),
                         ('line', 1, 'serving_default'))
        np.testing.assert_allclose(tf.make_ndarray(reply.outputs['y']), self.expected('line', x=X)['y'], rtol=1e-6)
        by = np.array([1, 2, 3], np.int64)
        reply = ask(self.channel, signature='both', x=X, by=by)
        for name, value in self.expected('both', x=X, by=by).items():
            np.testing.assert_allclose(tf.make_ndarray(reply.outputs[name]), value, rtol=1e-6)
        self.assertEqual(list(ask(self.channel, signature='both', outputs=['by'], x=X, by=by).outputs), ['by'])
        words = np.array([b'a', b'\xff\0'], object)
        self.assertEqual(ask(self.channel, signature='words', words=words).outputs['same_bytes'].string_val, words.tolist())

    def test_refusals(self):
        code = grpc.StatusCode
        self.fails(code.NOT_FOUND, r'Servable not found for request: Latest\(other\)', ask, self.channel, model='other', x=X)
        self.fails(code.NOT_FOUND, r'Specific\(line, 9\)', ask, self.channel, version=9, x=X)
        self.fails(code.INVALID_ARGUMENT, 'Unrecognized servable version label: new', ask, self.channel, label='new', x=X)
        self.fails(code.FAILED_PRECONDITION, 'Serving signature key "none" not found', ask, self.channel, signature='none', x=X)
        self.fails(code.INVALID_ARGUMENT, 'Missing but required: {x}', ask, self.channel, z=X)
        self.fails(code.INVALID_ARGUMENT, "The input 'x' is int32 .*expected float", ask, self.channel, x=X.astype(np.int32))
        self.fails(code.INVALID_ARGUMENT, r"'x' is float \[3\], expected float \[\?,2\]", ask, self.channel, x=X[:, 0])
        self.fails(code.INVALID_ARGUMENT, 'output tensor alias not found in signature: z', ask, self.channel, outputs=['z'], x=X)
        self.fails(code.INVALID_ARGUMENT, 'no name specified', ask, self.channel, model='', x=X)

    def test_rest(self):
        path = self.rest + '/v1/models/line'
        y = self.expected('line', x=X)['y'].tolist()
        self.assertEqual(rest(path + ':predict', {'instances': X.tolist()}), (200, {'predictions': y}))
        self.assertEqual(rest(path + '/versions/1:predict', {'inputs': X.tolist()}), (200, {'outputs': y}))
        self.assertEqual(rest(path + ':predict', {'instances': [{'x': row} for row in X.tolist()]}), (200, {'predictions': y}))
        both = [{'x': row, 'by': i} for i, row in enumerate(X.tolist())]
        expected = self.expected('both', x=X, by=np.arange(3))
        self.assertEqual(rest(path + ':predict', {'signature_name': 'both', 'instances': both})[1]['predictions'],
                         [{'by': int(by), 'y': float(y)} for by, y in zip(expected['by'], expected['y'])])
        self.assertEqual(rest(path + ':predict', {'signature_name': 'words', 'inputs': ['é', {'b64': '/w=='}]})[1],
                         {'outputs': {'length': [2, 1], 'same_bytes': [{'b64': 'w6k='}, {'b64': '/w=='}]}})
        self.assertEqual(rest(path)[1], {'model_version_status': [
            {'version': '1', 'state': 'AVAILABLE', 'status': {'error_code': 'OK', 'error_message': ''}}]})
        meta = rest(path + '/metadata')[1]
        self.assertEqual(meta['model_spec'], {'name': 'line', 'signature_name': '', 'version': '1'})
        self.assertEqual(meta['metadata']['signature_def']['signature_def']['serving_default']['inputs']['x']['dtype'], 'DT_FLOAT')
        for path, body, code, words in [
                ('/v1/models/other:predict', {'instances': [1]}, 404, 'Servable not found'),
                ('/v1/models/line:predict', {'instances': [['a', 1]]}, 400, 'is not of expected type: float'),
                ('/v1/models/line:predict', {'instances': [[1, 2], [3]]}, 400, 'shape'),
                ('/v1/models/line:predict', {}, 400, "Missing 'inputs' or 'instances' key"),
                ('/v1/models/line:guess', {}, 400, 'Malformed request: POST'),
                ('/v1/models/other', None, 404, 'Could not find any versions of model other')]:
            with self.subTest(path=path, body=body):
                status, reply = rest(self.rest + path, body)
                self.assertEqual(status, code, reply)
                self.assertIn(words, reply['error'])

    def test_examples(self):
        stub = prediction_service_pb2_grpc.PredictionServiceStub(self.channel)
        examples = [example(row) for row in X]
        bytes_ = tf.constant([one.SerializeToString() for one in examples])
        scores = self.expected('classify', inputs=bytes_)['scores']
        values = self.expected('regress', inputs=bytes_)['outputs'][:, 0]
        request = classification_pb2.ClassificationRequest()
        request.model_spec.name, request.model_spec.signature_name = 'line', 'classify'
        request.input.example_list.examples.extend(examples)
        classes = stub.Classify(request, 60).result.classifications
        self.assertEqual([[(c.label, c.score) for c in one.classes] for one in classes],
                         [list(zip(('high', 'low'), row)) for row in scores.tolist()])
        request = regression_pb2.RegressionRequest()
        request.model_spec.name, request.model_spec.signature_name = 'line', 'regress'
        request.input.example_list_with_context.examples.extend([tf.train.Example()] * 2)
        request.input.example_list_with_context.context.CopyFrom(examples[0])
        self.assertEqual([one.value for one in stub.Regress(request, 60).result.regressions], [values[0]] * 2)
        request = inference_pb2.MultiInferenceRequest()
        request.input.example_list.examples.extend(examples)
        for name in 'classify', 'regress':
            task = request.tasks.add(method_name='tensorflow/serving/' + name)
            task.model_spec.name, task.model_spec.signature_name = 'line', name
        first, second = stub.MultiInference(request, 60).results
        self.assertEqual(first.classification_result.classifications[2].classes[0].score, scores[2, 0])
        self.assertEqual([one.value for one in second.regression_result.regressions], values.tolist())
        rows = [{'x': row} for row in X.tolist()]
        path = self.rest + '/v1/models/line'
        self.assertEqual(rest(path + ':classify', {'signature_name': 'classify', 'examples': rows})[1]['results'],
                         [[[label, score] for label, score in zip(('high', 'low'), row)] for row in scores.tolist()])
        self.assertEqual(rest(path + ':regress', {'signature_name': 'regress', 'examples': rows})[1]['results'], values.tolist())

    def test_metadata(self):
        request = get_model_metadata_pb2.GetModelMetadataRequest(metadata_field=['signature_def'])
        request.model_spec.name = 'line'
        reply = prediction_service_pb2_grpc.PredictionServiceStub(self.channel).GetModelMetadata(request, 60)
        found = get_model_metadata_pb2.SignatureDefMap()
        self.assertTrue(reply.metadata['signature_def'].Unpack(found))
        with open(self.base + '/1/saved_model.pb', 'rb') as file:
            saved = saved_model_pb2.SavedModel.FromString(file.read())
        expected = {name: text_format.MessageToString(one) for name, one in saved.meta_graphs[0].signature_def.items()}
        del expected['__saved_model_init_op']  # nobody's to call
        self.assertEqual({name: text_format.MessageToString(one) for name, one in found.signature_def.items()}, expected)


class Versions(Served):
    def test_a_new_version_loses_no_request_and_a_torn_one_is_never_served(self):
        base = os.path.join(self.made, 'changes')
        self.put(base, 1, 1)
        with server('--model_name=line', '--model_base_path=' + base, '--load_retry_interval_micros=0', '--max_num_load_retries=1') as (channel, _):
            seen, failures, stop = [], [], threading.Event()

            def load():
                while not stop.is_set():
                    try:
                        reply = ask(channel, x=X[:1])
                        seen.append((reply.model_spec.version.value, float(tf.make_ndarray(reply.outputs['y'])[0, 0])))
                    except grpc.RpcError as error:
                        failures.append(error.details())
            threads = [threading.Thread(target=load) for _ in range(3)]
            for thread in threads:
                thread.start()
            self.put(base, 3, 2, whole=False)
            wait_until(lambda: states(channel).get(3) == 'END')
            self.put(base, 2, 2)
            os.rename(base + '/3', base + '/torn')
            wait_until(lambda: states(channel).get(2) == 'AVAILABLE' and states(channel).get(1) == 'END')
            stop.set()
            for thread in threads:
                thread.join()
            self.assertEqual(failures, [])
            self.assertLessEqual(set(seen), {(1, 5.0), (2, 10.0)})
            wait_until(lambda: ask(channel, x=X[:1]).model_spec.version.value == 2)

    def test_a_server_that_starts_answers_with_the_newest_whole_version(self):
        base = os.path.join(self.made, 'starts')
        self.put(base, 1, 2)
        self.put(base, 2, 1)
        self.put(base, 3, 2, whole=False)
        os.makedirs(base + '/4/variables')  # as one that is being copied
        with server('--model_name=line', '--model_base_path=' + base, '--load_retry_interval_micros=0', '--max_num_load_retries=1') as (channel, _):
            reply = ask(channel, x=X[:1])  # when it listens
            self.assertEqual((reply.model_spec.version.value, float(tf.make_ndarray(reply.outputs['y'])[0, 0])), (2, 5.0))
            self.assertEqual((states(channel).get(2), states(channel).get(4)), ('AVAILABLE', 'START'))
            self.put(base, 5, 2)
            wait_until(lambda: states(channel).get(5) == 'AVAILABLE' and states(channel).get(2) == 'END')
            self.assertEqual(ask(channel, x=X[:1]).model_spec.version.value, 5)

    def test_several_models_labels_and_reload(self):
        base = os.path.join(self.made, 'several')
        self.put(base, 1, 1)
        self.put(base, 2, 2)
        config = os.path.join(self.made, 'models.txt')
        with open(config, 'w') as out:
            out.write('model_config_list { config { name: "a" base_path: "%s" model_platform: "tensorflow" '
                      'model_version_policy { all {} } version_labels { key: "stable" value: 1 } } }' % base)
        with server('--model_config_file=' + config) as (channel, address):
            self.assertEqual(states(channel, 'a'), {2: 'AVAILABLE', 1: 'AVAILABLE'})
            self.assertEqual(ask(channel, 'a', label='stable', x=X).model_spec.version.value, 1)
            self.assertEqual(ask(channel, 'a', x=X).model_spec.version.value, 2)
            self.assertEqual(rest(address + '/v1/models/a/labels/stable:predict', {'instances': [[1, 2]]})[1], {'predictions': [[5.0]]})
            request = model_management_pb2.ReloadConfigRequest()
            with open(config) as text:
                text_format.Parse(text.read(), request.config)
            model = request.config.model_config_list.config[0]
            model.version_labels['stable'] = 2
            model.model_version_policy.CopyFrom(model_server_config_pb2.ModelConfig().model_version_policy)
            request.config.model_config_list.config.add(name='b', base_path=base, model_platform='tensorflow')
            stub = model_service_pb2_grpc.ModelServiceStub(channel)
            self.assertEqual(stub.HandleReloadConfigRequest(request, 60).status.error_code, 0)
            self.assertEqual(ask(channel, 'a', label='stable', x=X).model_spec.version.value, 2)
            self.assertEqual(ask(channel, 'b', x=X).model_spec.version.value, 2)
            wait_until(lambda: states(channel, 'a') == {2: 'AVAILABLE', 1: 'END'})
            model.version_labels['stable'] = 7
            self.fails(grpc.StatusCode.FAILED_PRECONDITION, 'version 7 of model a, which is not currently available',
                       stub.HandleReloadConfigRequest, request, 60)


class Batches(Served):
    def test_requests_share_batches(self):
        base = os.path.join(self.made, 'batches')
        self.put(base, 1, 1)
        parameters = os.path.join(self.made, 'batching.txt')
        with open(parameters, 'w') as out:
            out.write('max_batch_size { value: 16 } batch_timeout_micros { value: 100000 } num_batch_threads { value: 2 } '
                      'max_enqueued_batches { value: 100 } allowed_batch_sizes: 4 allowed_batch_sizes: 16')
        with server('--model_name=line', '--model_base_path=' + base, '--enable_batching', '--batching_parameters_file=' + parameters) as (channel, address):
            def one(i):
                rows = np.full([1 + i % 3, 2], i, np.float32)
                return np.array_equal(tf.make_ndarray(ask(channel, x=rows).outputs['y']), rows @ [[1.0], [2.0]])
            with concurrent.futures.ThreadPoolExecutor(12) as pool:
                self.assertTrue(all(pool.map(one, range(60))))
            self.fails(grpc.StatusCode.INVALID_ARGUMENT, 'Task size 17 is larger than maximum input batch size 16', ask, channel,
                       x=np.zeros([17, 2], np.float32))
            with urllib.request.urlopen(address + '/monitoring/prometheus/metrics') as page:
                text = page.read().decode()
            batches = int(re.search(r'^:tensorflow:serving:batching_session:wrapped_run_count(?:{})? (\d+)$', text, re.M).group(1))
            self.assertLess(batches, 50, text)
            self.assertIn(':tensorflow:serving:request_count{model_name="line",status="OK"} 60', text)

    def test_warm_up_comes_before_serving(self):
        base = os.path.join(self.made, 'warm')
        log = prediction_log_pb2.PredictionLog()
        log.predict_log.request.inputs['x'].CopyFrom(tf.make_tensor_proto(X))
        bad = prediction_log_pb2.PredictionLog()
        bad.predict_log.request.inputs['z'].CopyFrom(tf.make_tensor_proto(X))
        for version, record in (1, log), (2, bad):
            self.put(base, version, 1)
            os.makedirs('%s/%d/assets.extra' % (base, version))
            with tf.io.TFRecordWriter('%s/%d/assets.extra/tf_serving_warmup_requests' % (base, version)) as out:
                out.write(record.SerializeToString())
        with server('--model_name=line', '--model_base_path=' + base, '--enable_batching', '--max_num_load_retries=0') as (channel, _):
            self.assertEqual(states(channel), {1: 'AVAILABLE', 2: 'END'})
            np.testing.assert_array_equal(tf.make_ndarray(ask(channel, x=X).outputs['y']), X @ [[1.0], [2.0]])


class Ports(Served):
    def certificates(self):
        """PEM by name: an authority, and a server and a client that it has signed."""
        folder = tempfile.mkdtemp(dir=self.made)

        def openssl(*words):
            subprocess.run(['openssl', *words], cwd=folder, check=True, capture_output=True, timeout=60)
        curve = ('-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes')
        openssl('req', '-x509', *curve, '-keyout', 'ca.key', '-out', 'ca.crt', '-subj', '/CN=authority', '-days', '2')
        for name in 'server', 'client':
            openssl('req', *curve, '-keyout', name + '.key', '-out', name + '.csr', '-subj', '/CN=' + name)
            with open(os.path.join(folder, name + '.ext'), 'w') as out:
                out.write('subjectAltName=DNS:localhost,IP:127.0.0.1\n')
            openssl('x509', '-req', '-in', name + '.csr', '-CA', 'ca.crt', '-CAkey', 'ca.key', '-CAcreateserial', '-days', '2',
                    '-extfile', name + '.ext', '-out', name + '.crt')
        pem = {}
        for name in 'ca.crt', 'server.crt', 'server.key', 'client.crt', 'client.key':
            with open(os.path.join(folder, name)) as file:
                pem[name] = file.read()
        return folder, pem

    @unittest.skipIf(shutil.which('openssl') is None, 'there is no openssl on this machine')
    def test_tls_and_certificates_of_clients(self):
        base = os.path.join(self.made, 'tls')
        self.put(base, 1, 1)
        folder, pem = self.certificates()
        for asks_clients in False, True:
            with self.subTest(asks_clients=asks_clients):
                config = os.path.join(folder, 'ssl.txt')
                with open(config, 'w') as out:
                    out.write('server_key: %s\nserver_cert: %s\n' % (json.dumps(pem['server.key']), json.dumps(pem['server.crt'])))
                    if asks_clients:
                        out.write('custom_ca: %s\nclient_verify: true\n' % json.dumps(pem['ca.crt']))
                with server('--model_name=line', '--model_base_path=' + base, '--ssl_config_file=' + config) as (plain, address):
                    target = 'localhost:%d' % PORT_OF[address]
                    authority = pem['ca.crt'].encode()
                    known = grpc.ssl_channel_credentials(authority, pem['client.key'].encode(), pem['client.crt'].encode())
                    for credentials, is_let_in in (known, True), (grpc.ssl_channel_credentials(authority), not asks_clients):
                        with grpc.secure_channel(target, credentials) as channel:
                            if is_let_in:
                                np.testing.assert_array_equal(tf.make_ndarray(ask(channel, x=X).outputs['y']), X @ [[1.0], [2.0]])
                            else:
                                self.fails(grpc.StatusCode.UNAVAILABLE, '.', ask, channel, x=X)
                    self.fails(grpc.StatusCode.UNAVAILABLE, '.', ask, plain, x=X)
                    context = ssl.create_default_context(cafile=os.path.join(folder, 'ca.crt'))
                    if asks_clients:
                        context.load_cert_chain(os.path.join(folder, 'client.crt'), os.path.join(folder, 'client.key'))
                    secure = address.replace('http://', 'https://') + '/v1/models/line'
                    self.assertEqual(urllib.request.urlopen(secure, context=context, timeout=60).status, 200)
                    with self.assertRaises(OSError):
                        urllib.request.urlopen(secure, context=ssl.create_default_context(), timeout=60)

    def test_tokens_are_asked_for_and_wide_ports_want_secrets(self):
        base = os.path.join(self.made, 'ports')
        self.put(base, 1, 1)
        tokens = os.path.join(self.made, 'tokens')
        with open(tokens, 'w') as out:
            out.write('# ours\n0123456789abcdef\n')
        with server('--model_name=line', '--model_base_path=' + base, '--token_file=' + tokens, '--ssl_config_file=', '--num_unload_threads=1') as (channel, address):
            self.fails(grpc.StatusCode.UNAUTHENTICATED, 'authorization: Bearer TOKEN', ask, channel, x=X)
            self.assertEqual(rest(address + '/v1/models/line')[0], 401)
            request = urllib.request.Request(address + '/v1/models/line', headers={'Authorization': 'Bearer 0123456789abcdef'})
            self.assertEqual(urllib.request.urlopen(request).status, 200)
        for flags, words in [(['--bind=0.0.0.0'], '--ssl_config_file or --tls_folder, and --token_file'),
                             (['--bind=0.0.0.0', '--token_file=' + tokens], 'give --ssl_config_file or --tls_folder, or say'), (['--batching_parameters_file=x'], '--enable_batching')]:
            refused = subprocess.run([WEFT, 'serve', '--model_base_path=' + base, '--port=%d' % processes.free_ports(1)[0], *flags],
                                     capture_output=True, text=True, timeout=60)
            self.assertIn(refused.returncode, (1, 2))
            self.assertIn(words, refused.stderr)


if __name__ == '__main__':
    WEFT = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's side of the row `serving`, and the clients of both sides. What it prints is one line of JSON.

    tensorflow_serving_rounds.py make FOLDER small|large    a version: a perceptron; the large one has 500 MB of weights
    tensorflow_serving_rounds.py serve PORT FOLDER          the model behind a gRPC server of its own, until it is killed
    tensorflow_serving_rounds.py process FOLDER             rounds in this process: reads "BATCH COUNT" lines
    tensorflow_serving_rounds.py clients                    rounds of clients: reads "PORT BATCH CLIENTS COUNT PAUSE_MS" lines
    tensorflow_serving_rounds.py load FOLDER                what loading costs, once
"""
import concurrent.futures
import json
import sys
import threading
import time

import numpy as np


def request(predict_pb2, batch, width):
    x = np.random.default_rng(7).random((batch, width), np.float32)
    made = predict_pb2.PredictRequest()
    made.model_spec.name = 'model'
    made.inputs['x'].dtype = 1
    for size in x.shape:
        made.inputs['x'].tensor_shape.dim.add(size=size)
    made.inputs['x'].tensor_content = x.tobytes()
    return made, x


def make(folder, kind):
    import tensorflow as tf
    width, hidden = (784, 512) if kind == 'small' else (2000, 7600)

    class Model(tf.Module):
        def __init__(self):
            hiddens = 1 if kind == 'small' else 2
            shapes = [(width, hidden)] + [(hidden, hidden)] * hiddens + [(hidden, 10)]
            self.weights = [tf.Variable(tf.random.stateless_normal(shape, [1, i]) / shape[0] ** 0.5) for i, shape in enumerate(shapes)]

        @tf.function(input_signature=[tf.TensorSpec([None, width], tf.float32, 'x')])
        def predict(self, x):
            for weight in self.weights[:-1]:
                x = tf.nn.relu(x @ weight)
            return {'y': tf.nn.softmax(x @ self.weights[-1])}
    model = Model()
    tf.saved_model.save(model, folder, {'serving_default': model.predict})
    return dict(megabytes=sum(4 * int(np.prod(one.shape)) for one in model.weights) / 1e6)


def signature_of(folder):
    import tensorflow as tf
    loaded = tf.saved_model.load(folder)
    signature = loaded.signatures['serving_default']
    width = signature.structured_input_signature[1]['x'].shape[1]
    return loaded, signature, width


def serve(port, folder):
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
    _held, signature, _ = signature_of(folder)

    class Service(prediction_service_pb2_grpc.PredictionServiceServicer):
        def Predict(self, asked, context):
            inputs = {name: tf.constant(tf.make_ndarray(value)) for name, value in asked.inputs.items()}
            reply = predict_pb2.PredictResponse()
            for name, value in signature(**inputs).items():
                reply.outputs[name].CopyFrom(tf.make_tensor_proto(value.numpy()))
            return reply
    server = grpc.server(concurrent.futures.ThreadPoolExecutor(16), options=[('grpc.max_receive_message_length', -1)])
    prediction_service_pb2_grpc.add_PredictionServiceServicer_to_server(Service(), server)
    server.add_insecure_port('127.0.0.1:%d' % port)
    server.start()
    server.wait_for_termination()


def figures(latencies, seconds, check, cpu):
    return dict(p50_us=1e6 * float(np.percentile(latencies, 50)), p99_us=1e6 * float(np.percentile(latencies, 99)),
                us=1e6 * seconds / len(latencies), cpu_us=1e6 * cpu / len(latencies), check=check)


def process(folder):
    import tensorflow as tf
    _held, signature, width = signature_of(folder)
    for line in sys.stdin:
        batch, count = map(int, line.split())
        x = np.random.default_rng(7).random((batch, width), np.float32)
        latencies, begin, cpu = [], time.perf_counter(), time.process_time()
        for _ in range(count):
            start = time.perf_counter()
            y = signature(x=tf.constant(x))['y'].numpy()
            latencies.append(time.perf_counter() - start)
        print(json.dumps(figures(latencies, time.perf_counter() - begin, float(y[0, 0]), time.process_time() - cpu)), flush=True)


def clients():
    """Each asks, waits for the answer and pauses: CLIENTS * 1000 / (PAUSE_MS + latency) requests a second."""
    import grpc
    import tensorflow as tf
    from tensorflow_serving.apis import predict_pb2, prediction_service_pb2_grpc
    for line in sys.stdin:
        port, batch, count_clients, count, pause, width = line.split()
        asked, _ = request(predict_pb2, int(batch), int(width))
        latencies, lock = [], threading.Lock()

        def run(own=int(count) // int(count_clients), pause=float(pause) / 1e3, port=port, asked=asked):
            mine = []
            with grpc.insecure_channel('127.0.0.1:' + port, options=[('grpc.use_local_subchannel_pool', 1)]) as channel:
                stub = prediction_service_pb2_grpc.PredictionServiceStub(channel)
                for _ in range(own):
                    start = time.perf_counter()
                    reply = stub.Predict(asked, 60)
                    mine.append(time.perf_counter() - start)
                    time.sleep(pause)
            with lock:
                latencies.extend(mine)
                checks.append(float(tf.make_ndarray(reply.outputs['y'])[0, 0]))
        checks = []
        threads = [threading.Thread(target=run) for _ in range(int(count_clients))]
        begin = time.perf_counter()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print(json.dumps(figures(latencies, time.perf_counter() - begin, checks[0], 0)), flush=True)


def load(folder):
    import tensorflow as tf
    tf.constant(1.0).numpy()
    begin, cpu = time.perf_counter(), time.process_time()
    _held, signature, width = signature_of(folder)
    signature(x=tf.zeros([1, width]))['y'].numpy()
    return dict(us=1e6 * (time.perf_counter() - begin), cpu_us=1e6 * (time.process_time() - cpu))


if __name__ == '__main__':
    what, arguments = sys.argv[1], sys.argv[2:]
    if what == 'serve':
        serve(int(arguments[0]), arguments[1])
    else:
        told = dict(make=make, process=process, clients=clients, load=load)[what](*arguments)
        if told is not None:
            print(json.dumps(told))

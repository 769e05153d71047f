# SPDX-License-Identifier: Apache-2.0
"""What the tests of the traps share: servers, sessions, and calls below the client."""
import os
import subprocess
import sys
import tempfile
import types
import unittest

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

import processes  # noqa: E402
import grpc  # noqa: E402
import tensorflow as tf  # noqa: E402
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory  # noqa: E402

tf1 = tf.compat.v1
BINARY = None  # set by traps_test.py


def _master_messages():
    """The service's messages, which the package lacks, in a pool of their own beside TensorFlow's."""
    with tempfile.NamedTemporaryFile() as out:
        subprocess.check_call(['protoc', '--proto_path', processes.ROOT, '--include_imports',
                               '--descriptor_set_out', out.name, 'proto/tensorflow/master.proto'], cwd=processes.ROOT)
        files = descriptor_pb2.FileDescriptorSet.FromString(out.read())
    pool = descriptor_pool.DescriptorPool()
    for file in files.file:
        pool.Add(file)
    get_class = getattr(message_factory, 'GetMessageClass', None) or message_factory.MessageFactory(pool).GetPrototype
    names = pool.FindFileByName('proto/tensorflow/master.proto').message_types_by_name
    return types.SimpleNamespace(**{name: get_class(descriptor) for name, descriptor in names.items()})


master_pb2 = _master_messages()


class TrapTest(unittest.TestCase):
    """One cluster for all tests of a class; `jobs` says which."""
    jobs = {'local': 1}

    @classmethod
    def setUpClass(cls):
        cls._cluster = processes.cluster(BINARY, **cls.jobs)
        cls.targets = cls._cluster.__enter__()
        cls.target = next(iter(cls.targets.values()))[0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def setUp(self):
        graph = tf.Graph()
        context = graph.as_default()
        context.__enter__()
        self.addCleanup(context.__exit__, None, None, None)
        # Tests do not see each other's variables and queues.
        tf1.Session.reset(self.target)

    def session(self, **config):
        session = tf1.Session(self.target, config=tf1.ConfigProto(**config))
        self.addCleanup(session.close)
        return session


class Raw:
    """The service without TensorFlow's client in between."""

    def __init__(self, target):
        self.channel = grpc.insecure_channel(target[len('grpc://'):], options=[
            ('grpc.max_receive_message_length', -1), ('grpc.max_send_message_length', -1)])

    def call(self, method, request, path='/tensorflow.MasterService/', timeout=60, raw=False):
        response = getattr(master_pb2, method + 'Response')
        return self.channel.unary_unary(
            path + method, request_serializer=type(request).SerializeToString,
            response_deserializer=(lambda b: b) if raw else response.FromString)(request, timeout=timeout)

    def create(self, graph_def=None, **config):
        request = master_pb2.CreateSessionRequest()
        request.config.ParseFromString(tf1.ConfigProto(**config).SerializeToString())
        if graph_def is not None:
            request.graph_def.ParseFromString(graph_def.SerializeToString())
        return self.call('CreateSession', request).session_handle

    def extend(self, handle, graph_def, version, raw=False):
        request = master_pb2.ExtendSessionRequest(session_handle=handle, current_graph_version=version)
        request.graph_def.ParseFromString(graph_def.SerializeToString())
        return self.call('ExtendSession', request, raw=raw)

    def run(self, handle, fetch, **fields):
        return self.call('RunStep', master_pb2.RunStepRequest(session_handle=handle, fetch=fetch, **fields))

    def close(self):
        self.channel.close()


def value_of(tensor_proto):
    """The array in a message of the service."""
    return tf.make_ndarray(tf1.make_tensor_proto(0).FromString(tensor_proto.SerializeToString()))


def graph_def_of(build):
    """The GraphDef that `build()` makes."""
    with tf.Graph().as_default() as graph:
        build()
        return graph.as_graph_def()

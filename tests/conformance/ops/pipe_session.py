# SPDX-License-Identifier: Apache-2.0
"""As much of a session as ops_test.py needs, on a `local_session` process: the protos of the wire over a pipe."""
import struct
import subprocess

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory
import tensorflow as tf
from tensorflow.core.protobuf import named_tensor_pb2  # noqa: F401  (the pool must know it)
from tensorflow.python.framework import errors_impl


def _messages():
    """What this file uses of RunStepRequest and RunStepResponse; the TensorFlow package does not carry them."""
    strings, tensors, number = (9, 3, None), (11, 3, '.tensorflow.NamedTensorProto'), (5, 1, None)
    layout = {'RunStepRequest': {2: ('feed', tensors), 3: ('fetch', strings), 4: ('target', strings)},
              'RunStepResponse': {1: ('tensor', tensors), 3: ('status_code', number), 4: ('status_error_message', (9, 1, None))}}
    page = descriptor_pb2.FileDescriptorProto(name='weft/pipe.proto', package='weft.pipe', syntax='proto3',
                                              dependency=['tensorflow/core/protobuf/named_tensor.proto'])
    for name, fields in layout.items():
        message = page.message_type.add(name=name)
        for index, (field, (kind, label, type_name)) in fields.items():
            message.field.add(name=field, number=index, type=kind, label=label, type_name=type_name)
    pool = descriptor_pool.Default()
    pool.AddSerializedFile(page.SerializeToString())
    return [message_factory.GetMessageClass(pool.FindMessageTypeByName('weft.pipe.' + name)) for name in layout]


RunStepRequest, RunStepResponse = _messages()


class PipeSession:
    def __init__(self, binary, graph):
        self._process = subprocess.Popen([binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._broken = None
        _, self._broken = self._call(b'N', graph.as_graph_def().SerializeToString())

    def __enter__(self):
        return self

    def __exit__(self, *unused):
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _call(self, kind, data):
        try:
            self._process.stdin.write(kind + struct.pack('<I', len(data)) + data)
            self._process.stdin.flush()
            size, = struct.unpack('<I', self._process.stdout.read(4))
            response = RunStepResponse.FromString(self._process.stdout.read(size))
        except (OSError, struct.error):
            return None, errors_impl.UnavailableError(None, None, 'local_session died (exit code %s)' % self._process.wait())
        if response.status_code:
            make = errors_impl.exception_type_from_error_code(response.status_code)
            return None, make(None, None, response.status_error_message)
        return {t.name: tf.make_ndarray(t.tensor) for t in response.tensor}, None

    def run(self, fetches, feed_dict):
        if self._broken:
            raise self._broken
        request = RunStepRequest()
        for tensor, value in feed_dict.items():
            dtype = tensor.dtype.base_dtype
            request.feed.add(name=tensor.name, tensor=tf.make_tensor_proto(value, dtype))
        for fetch in _flat(fetches):
            if isinstance(fetch, tf.Tensor):
                request.fetch.append(fetch.name)
            else:
                request.target.append(fetch.name)
        names = sorted(set(request.fetch))
        del request.fetch[:]
        request.fetch.extend(names)
        values, error = self._call(b'R', request.SerializeToString())
        if error:
            raise error
        return _like(fetches, values)


def _flat(fetches):
    return [f for part in fetches for f in _flat(part)] if isinstance(fetches, list) else [fetches]


def _like(fetches, values):
    if isinstance(fetches, list):
        return [_like(part, values) for part in fetches]
    return values[fetches.name] if isinstance(fetches, tf.Tensor) else None

# SPDX-License-Identifier: Apache-2.0
"""Records with sequences, and bytes in other forms."""
import gzip
import json
import zlib

import numpy as np
import tensorflow as tf

from cases import Case, Step, cases, numpy_type, script


def feature(values):
    if values is None:
        return tf.train.Feature()
    if not values or isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], float):
        return tf.train.Feature(float_list=tf.train.FloatList(value=values))
    return tf.train.Feature(int64_list=tf.train.Int64List(value=values))


def sequence(context, lists):
    return tf.train.SequenceExample(
        context=tf.train.Features(feature={k: feature(v) for k, v in context.items()}),
        feature_lists=tf.train.FeatureLists(feature_list={
            k: tf.train.FeatureList(feature=[feature(v) for v in steps]) for k, steps in lists.items()})).SerializeToString()


RECORDS = [
    sequence({'id': [b'first'], 'size': [1.0, 2.0], 'tags': [3, 4, 5], 'near': [6, 7]},
             {'words': [[b'a', b'b'], [], [b'c']], 'at': [[1.0, 2.0], [3.0, 4.0]], 'n': [[7], [8], [9]], 'lines': [[b'x'], [b'y', b'z']]}),
    sequence({'id': [b'second'], 'size': [3.0, 4.0], 'far': [0.5]}, {'words': [[b'd']], 'at': [], 'n': [[1]], 'm': [[4, 5, 6]]}),
    sequence({'id': [b'third'], 'size': [5.0, 6.0], 'tags': [9]}, {'at': [[5.0, 6.0]], 'n': [], 'lines': [[]], 'm': [[7], [8]]}),
]


def strings(*items):
    return np.array(items, object)


SPEC = dict(context_sparse_types=['int64'], context_dense_shapes=[[], [2]], feature_list_sparse_types=['string'],
            feature_list_dense_types=['float32', 'int64'], feature_list_dense_shapes=[[2], [1]])
DEFAULTS = [strings(), np.array([], np.float32)]
KEYS = dict(context_sparse_keys=['tags'], context_dense_keys=['id', 'size'], feature_list_sparse_keys=['words'],
            feature_list_dense_keys=['at', 'n'])


def _flat(outputs):
    return [t for output in outputs for t in (output if isinstance(output, (list, tuple)) else [output])]


@script('ParseSequenceExample')
def parse_sequences(b, types):
    def parse(records, names=strings(), defaults=DEFAULTS, missing=(), keys=KEYS, **more):
        return _flat(b.op('ParseSequenceExample', b.hidden(strings(*records)), b.hidden(names), defaults,
                          feature_list_dense_missing_assumed_empty=list(missing), Ncontext_sparse=1, Ncontext_dense=2,
                          Nfeature_list_sparse=1, Nfeature_list_dense=2, **{**SPEC, **keys, **more}))
    lacking = sequence({'size': [1.0, 2.0]}, {'words': [[b'x']], 'n': [[1]]})
    steps = [Step(*parse(RECORDS)), Step(*parse(RECORDS[:1], strings(b'name')))]
    filled = [np.array(b'none', object), np.array([7, 8], np.float32)]
    steps += [Step(*parse([lacking], defaults=filled, missing=['at'])), Step(*parse([lacking], missing=['at']), error=True),
              Step(*parse([lacking], defaults=filled), error=True), Step(*parse([b'\x0a']), error=True),
              Step(*parse(RECORDS, strings(b'one')), error=True)]
    for bad in ({'at': [[1.0]], 'n': []}, {'at': [[1, 2]], 'n': []}, {'at': [None], 'n': []},
                {'at': [], 'n': [], 'words': [[1.0]]}):
        steps.append(Step(*parse([sequence({'id': [b''], 'size': [1.0, 2.0]}, bad)]), error=True))
    return steps


def _alone(outputs):
    """Without what TensorFlow does not set for one record: where the records of the ragged features begin."""
    return [output for number, output in enumerate(outputs) if number not in (7, 8, 18, 19)]


@script('ParseSequenceExampleV2')
def parse_sequences_v2(b, types):
    def parse(records, names=strings(), missing=(False, False), defaults=DEFAULTS):
        return _flat(b.op(
            'ParseSequenceExampleV2', b.hidden(records), b.hidden(names), strings(b'tags'), strings(b'id', b'size'), strings(b'near', b'far'),
            strings(b'words'), strings(b'at', b'n'), strings(b'lines', b'm'), b.hidden(np.array(missing)), defaults, Ncontext_sparse=1,
            Nfeature_list_sparse=1, Nfeature_list_dense=2, context_ragged_value_types=['int64', 'float32'],
            context_ragged_split_types=['int32', 'int64'], feature_list_ragged_value_types=['string', 'int64'],
            feature_list_ragged_split_types=['int64', 'int32'], **SPEC))
    lacking = sequence({'id': [b''], 'size': [1.0, 2.0]}, {'words': [[b'x']], 'n': [[1]]})
    return [Step(*parse(strings(*RECORDS))), Step(*parse(strings(*RECORDS[1:]), strings(b'one', b'two'))),
            Step(*_alone(parse(np.array(RECORDS[0], object)))), Step(*_alone(parse(np.array(RECORDS[2], object)))),
            Step(*parse(strings(lacking), missing=(True, False))), Step(*parse(strings(lacking)), error=True),
            Step(*parse(strings(*RECORDS).reshape(1, 3)), error=True)]


@script('ParseSingleSequenceExample')
def parse_one_sequence(b, types):
    def parse(record, missing=strings(), defaults=DEFAULTS):
        return _flat(b.op('ParseSingleSequenceExample', b.hidden(record), b.hidden(missing), [strings(b'tags').reshape([])],
                          [np.array(b'id', object), np.array(b'size', object)], [np.array(b'words', object)],
                          [np.array(b'at', object), np.array(b'n', object)], defaults, np.array(b'name', object), **SPEC))
    lacking = np.array(sequence({'id': [b''], 'size': [1.0, 2.0]}, {'words': [[b'x']], 'n': [[1]]}), object)
    return [Step(*parse(np.array(r, object))) for r in RECORDS] + [
        Step(*parse(lacking, strings(b'at'))), Step(*parse(lacking), error=True), Step(*parse(strings(*RECORDS)), error=True),
        Step(*parse(np.array(b'\x0a', object)), error=True)]


@cases('DecodePaddedRaw')
def decode_padded(op, types):
    name = types['out_type']
    size = numpy_type(name).itemsize
    texts = strings(bytes(range(size * 3)), b'', bytes(range(size)), bytes(range(200, 200 + size * 2)))
    for length in size * 2, size * 3, size * 5:
        yield Case([texts, np.array(length, np.int32)])
    yield Case([texts[:1], np.array(size * 2, np.int32)], {'little_endian': False})
    yield Case([texts.reshape(2, 2), np.array(size * 3, np.int32)])
    yield Case([strings(b'\x01'), np.array(size, np.int32)])
    yield Case([texts, np.array(0, np.int32)], error=True)
    yield Case([texts, np.array([size], np.int32)], error=True)
    if size > 1:
        yield Case([texts, np.array(size + 1, np.int32)], error=True)


@cases('DecodeCompressed')
def decode_compressed(op, types):
    plain = strings(b'', b'some text' * 50, b'\x00\xff')
    yield Case([plain])
    yield Case([strings(*map(zlib.compress, plain)).reshape(3, 1)], {'compression_type': 'ZLIB'})
    yield Case([strings(*map(gzip.compress, plain))], {'compression_type': 'GZIP'})
    yield Case([strings(b'not compressed')], {'compression_type': 'GZIP'}, error=True)
    yield Case([plain], {'compression_type': 'LZ77'}, error=True)


@script('DecodeJSONExample', 'ParseExample')
def decode_json(b, types):
    text = {'features': {'feature': {'a': {'int64List': {'value': ['1', '-2']}}, 'b': {'floatList': {'value': [0.5, 1e10]}},
                                     'c': {'bytesList': {'value': ['YWJj', '']}}}}}
    one = strings(json.dumps(text).encode(), b'{}')
    dtypes = ['int64', 'float32', 'string']
    keys = [np.array(k, object) for k in (b'a', b'b', b'c')]
    found = b.op('ParseExample', b.op('DecodeJSONExample', b.hidden(one)), strings(), keys, [], [], sparse_types=dtypes, dense_shapes=[])
    return [Step(*_flat(found)), Step(b.op('DecodeJSONExample', b.hidden(strings(b'{"features": 3}'))), error=True),
            Step(b.op('DecodeJSONExample', b.hidden(strings(b'no JSON'))), error=True)]

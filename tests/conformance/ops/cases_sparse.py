# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors, crossed features, candidate samplers and hashed strings: what models of clicks and words are made of."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, Case, Step, cases, numpy_type, script, types_for, values

INDICES = np.array([[0, 1], [0, 3], [2, 0], [3, 4]], np.int64)
SHAPE = np.array([5, 6], np.int64)
SHUFFLED = INDICES[[2, 0, 3, 1]]
EMPTY = np.zeros([0, 2], np.int64)


def longs(*items):
    return np.array(items, np.int64)


def scalar(dtype, value=3):
    return values(dtype, [], value, value)


types_for('T', ALL_TYPES, 'SparseReorder', 'SparseFillEmptyRows', 'SparseToDense', 'SparseConcat', 'SparseSlice')


@cases('SparseReorder')
def reorder(op, types):
    for indices in INDICES, SHUFFLED, EMPTY:
        yield Case([indices, values(types['T'], [len(indices)]), SHAPE])
    yield Case([longs([1, 0, 2], [0, 1, 1], [0, 0, 5]), values(types['T'], [3]), longs(2, 2, 6)])
    yield Case([longs(0, 1), values(types['T'], [2]), SHAPE], error=True)
    yield Case([INDICES, values(types['T'], [2, 2]), SHAPE], error=True)


@cases('SparseReshape')
def reshape(op, types):
    for new in longs(6, 5), longs(-1), longs(3, -1, 2), SHAPE, longs(30), longs(5, 6, 1, 1):
        yield Case([INDICES, SHAPE, new])
    yield Case([EMPTY, longs(0, 4), longs(4, 0)])
    for new in longs(7, 5), longs(-1, -1), longs(4, -1), longs([5, 6]), longs(-2, -15):
        yield Case([INDICES, SHAPE, new], error=True)
    yield Case([INDICES, longs(5, 6, 1), longs(30)], error=True)
    yield Case([EMPTY, longs(0, 4), longs(0, -1)], error=True)


@cases('SparseFillEmptyRows')
def fill_empty_rows(op, types):
    dtype = types['T']
    for indices in INDICES, SHUFFLED, EMPTY:
        yield Case([indices, values(dtype, [len(indices)]), SHAPE, scalar(dtype)])
    yield Case([longs([0, 0], [1, 5]), values(dtype, [2]), longs(2, 6), scalar(dtype)])
    yield Case([EMPTY, values(dtype, [0]), longs(0, 6), scalar(dtype)])
    yield Case([longs([7, 0]), values(dtype, [1]), SHAPE, scalar(dtype)], error=True)
    yield Case([longs([-1, 0]), values(dtype, [1]), SHAPE, scalar(dtype)], error=True)
    yield Case([longs([0, 0]), values(dtype, [1]), longs(0, 6), scalar(dtype)], error=True)
    yield Case([INDICES, values(dtype, [3]), SHAPE, scalar(dtype)], error=True)
    yield Case([INDICES, values(dtype, [4]), SHAPE, values(dtype, [1])], error=True)


@cases('SparseFillEmptyRowsGrad')
def fill_empty_rows_grad(op, types):
    for places in longs(0, 1, 4, 3), longs():
        yield Case([places, values(types['T'], [6])])
    yield Case([longs(6), values(types['T'], [6])], error=True)
    yield Case([longs(-1), values(types['T'], [6])], error=True)
    yield Case([longs([0]), values(types['T'], [6])], error=True)


@cases('SparseToDense')
def to_dense(op, types):
    dtype, index = types['T'], numpy_type(types['Tindices'])
    shape, zero = SHAPE.astype(index), scalar(dtype, 0)
    yield Case([INDICES.astype(index), shape, values(dtype, [4]), scalar(dtype)])
    yield Case([INDICES.astype(index), shape, scalar(dtype), zero])
    yield Case([SHUFFLED.astype(index), shape, values(dtype, [4]), zero], {'validate_indices': False})
    yield Case([np.array([1, 3], index), np.array([5], index), values(dtype, [2]), zero])
    yield Case([np.array(2, index), np.array([5], index), scalar(dtype), zero])
    yield Case([EMPTY.astype(index), shape, values(dtype, [0]), scalar(dtype)])
    yield Case([SHUFFLED.astype(index), shape, values(dtype, [4]), zero], error=True)
    yield Case([INDICES[[0, 0]].astype(index), shape, values(dtype, [2]), zero], error=True)
    yield Case([np.array([[0, 6]], index), shape, values(dtype, [1]), zero], error=True)
    yield Case([INDICES.astype(index), shape, values(dtype, [3]), zero], error=True)
    yield Case([INDICES.astype(index), np.array([5], index), values(dtype, [4]), zero], error=True)


@cases('SparseTensorDenseMatMul')
def matmul(op, types):
    dtype, index = types['T'], numpy_type(types['Tindices'])
    for adjoint_a in False, True:
        for adjoint_b in False, True:
            inner = 5 if adjoint_a else 6
            dense = values(dtype, [3, inner] if adjoint_b else [inner, 3])
            attrs = {'adjoint_a': adjoint_a, 'adjoint_b': adjoint_b}
            for indices in INDICES, SHUFFLED, EMPTY:
                yield Case([indices.astype(index), values(dtype, [len(indices)]), SHAPE, dense], attrs)
    yield Case([INDICES.astype(index), values(dtype, [4]), SHAPE, values(dtype, [5, 3])], error=True)
    yield Case([np.array([[0, 6]], index), values(dtype, [1]), SHAPE, values(dtype, [6, 3])], error=True)
    yield Case([INDICES.astype(index), values(dtype, [4]), SHAPE, values(dtype, [6])], error=True)


@cases('SparseConcat')
def concat(op, types):
    dtype = types['T']
    one, two = values(dtype, [4]), values(dtype, [2], key=1)
    for axis, shape in (0, longs(2, 6)), (1, longs(5, 2)), (-1, longs(5, 2)):
        yield Case([[INDICES, longs([0, 1], [1, 0])], [one, two], [SHAPE, shape]], {'concat_dim': axis})
    yield Case([[INDICES, EMPTY], [one, values(dtype, [0])], [SHAPE, SHAPE]], {'concat_dim': 0})
    yield Case([[INDICES, EMPTY], [one, values(dtype, [0])], [SHAPE, longs(5, 7)]], {'concat_dim': 0}, error=True)
    yield Case([[INDICES, EMPTY], [one, values(dtype, [0])], [SHAPE, SHAPE]], {'concat_dim': 2}, error=True)


@cases('SparseSlice')
def slice_(op, types):
    given = [INDICES, values(types['T'], [4]), SHAPE]
    for start, size in ([0, 0], [5, 6]), ([0, 1], [3, 3]), ([2, 0], [9, 9]), ([4, 5], [0, 0]), ([7, 7], [1, 1]), ([-1, 0], [3, 6]), (
            [-3, -2], [9, 9]):
        yield Case(given + [longs(*start), longs(*size)])
    yield Case(given + [longs(0), longs(1, 1)], error=True)


@cases('SparseSliceGrad')
def slice_grad(op, types):
    yield Case([values(types['T'], [2]), INDICES, longs(0, 1), longs([0, 0], [0, 2])])
    yield Case([values(types['T'], [0]), INDICES, longs(0, 0), EMPTY])
    yield Case([values(types['T'], [1]), INDICES, longs(0, 0), longs([4, 4])], error=True)
    yield Case([values(types['T'], [1]), INDICES, longs(0, 0), EMPTY], error=True)


WORDS = np.array([b'', b'a', b'ab', b'abc', b'abcd', b'weft', b'12345678', b'123456789', b'x' * 15, b'y' * 16, b'z' * 17,
                  b'q' * 31, b'q' * 32, b'q' * 33, bytes(range(63)), bytes(range(64)), bytes(range(65)), bytes(range(127)),
                  bytes(range(128)), bytes(range(129)), bytes(range(256)) * 3, 'dünn'.encode(), b'\xff\xfe'], object)


@cases('StringToHashBucket', 'StringToHashBucketFast', 'StringToHashBucketStrong')
def hash_bucket(op, types):
    keys = [{'key': [1, 2]}, {'key': [-5, 2**62 + 7]}] if op.endswith('Strong') else [{}]
    for attrs in keys:
        for buckets in 1, 10, 2**31 - 1, 2**62 + 3:
            yield Case([WORDS], dict(attrs, num_buckets=buckets))
        yield Case([np.array(b'one', object)], dict(attrs, num_buckets=7))
        yield Case([np.array([], object)], dict(attrs, num_buckets=7))


def _columns(kind):
    """(indices, values, shapes) of two sparse columns and a dense one, each of words or of numbers."""
    def of(items):
        return np.array([str(i).encode() for i in items], object) if kind == 'string' else np.array(items, np.int64)
    sparse = [longs([0, 0], [0, 1], [2, 0]), longs([0, 0], [1, 0], [2, 0], [2, 1])]
    return ([sparse, [of([5, -6, 7]), of([1, 2, 3, 4])], [longs(3, 2), longs(3, 2)]],
            of([11, 12, 13, 14, 15, 16]).reshape(3, 2))


@script('SparseCross')
def cross(b, types):
    made = []
    for kind in 'string', 'int64':
        (indices, words, shapes), dense = _columns(kind)
        for extra in [], [dense]:
            given = [indices, words, shapes, extra]
            made += b.op('SparseCross', *given, hashed_output=True, num_buckets=1000, hash_key=0xDECAFCAFFE,
                         out_type=tf.int64, internal_type=kind)
            made += b.op('SparseCross', *given, hashed_output=True, num_buckets=0, hash_key=7, out_type=tf.int64,
                         internal_type=kind)
            made += b.op('SparseCross', *given, hashed_output=False, num_buckets=0, hash_key=0, out_type=tf.string,
                         internal_type=kind)
    return [Step(*made)]


@script('SparseCrossV2')
def cross_v2(b, types):
    made = []
    for kind in 'string', 'int64':
        (indices, words, shapes), dense = _columns(kind)
        made += b.op('SparseCrossV2', indices, words, shapes, [dense], np.array(b'_and_', object))
    return [Step(*made)]


def _sampler(op):
    def sample(b, types):
        truth = longs([0, 3], [7, 1], [19, 2])
        made = []
        for seeds in (1, 2), (77, 0), (-3, 2**40):
            for unique in True, False:
                attrs = dict(num_true=2, num_sampled=12, unique=unique, seed=seeds[0], seed2=seeds[1])
                for size in (20, 32, 1000) if op != 'AllCandidateSampler' else (20,):
                    if op == 'AllCandidateSampler':
                        attrs['num_sampled'] = size
                    else:
                        attrs['range_max'] = size
                    made += b.op(op, truth, **attrs)
        limit = {} if op == 'AllCandidateSampler' else {'range_max': 20}
        bad = b.op(op, b.hidden(longs([1, 2, 3])), num_true=2, num_sampled=20, unique=True, seed=1, seed2=1, **limit)
        # The second run goes on where the first stopped.
        return [Step(*made), Step(*made), Step(*bad, error=True)]
    sample.__name__ = op
    return sample


for _op in 'UniformCandidateSampler', 'LogUniformCandidateSampler', 'AllCandidateSampler':
    script(_op)(_sampler(_op))


@cases('ComputeAccidentalHits')
def accidental_hits(op, types):
    yield Case([longs([0, 3], [7, 1], [19, 3]), longs(3, 9, 7, 3, 0)], {'num_true': 2})
    yield Case([longs([0, 3], [7, 1]), longs(8, 9)], {'num_true': 2})
    yield Case([longs([0, 3], [7, 1]), longs(8, 9)], {'num_true': 1}, error=True)
    yield Case([longs([0, 3], [7, 1]), longs([8, 9])], {'num_true': 2}, error=True)


@script('Multinomial')
def multinomial(b, types):
    dtype = types['T']
    logits = values(dtype, [3, 7])
    made = [b.op('Multinomial', one, np.int32(n), seed=3, seed2=4, output_dtype=types['output_dtype'])
            for one in (logits, values(dtype, [1, 1])) for n in (1, 5, 0)]
    bad = [b.op('Multinomial', b.hidden(one), b.hidden(np.int32(n)), seed=3, seed2=4, output_dtype=types['output_dtype'])
           for one, n in ((values(dtype, [4]), 1), (logits, -1), (values(dtype, [2, 0]), 1))]
    return [Step(*made), Step(*made)] + [Step(one, error=True) for one in bad]


@cases('DecodeRaw')
def decode_raw(op, types):
    size = tf.as_dtype(types['out_type']).size
    given = bytes(range(1, 1 + 4 * size)) if types['out_type'] != 'bool' else bytes([0, 1, 1, 0])
    for little_endian in True, False:
        attrs = {'out_type': types['out_type'], 'little_endian': little_endian}
        yield Case([np.array([given, given[::-1]], object)], attrs)
        yield Case([np.array(given, object)], attrs)
        yield Case([np.array([b'', b''], object)], attrs)
        yield Case([np.array([], object)], attrs)
        yield Case([np.array([given, given + given], object)], attrs, error=True)
        if size > 1:
            yield Case([np.array([given[1:]], object)], attrs, error=True)


@cases('Bucketize')
def bucketize(op, types):
    for boundaries in [-1.5, 0.0, 0.0, 3.0], [], [2.5]:
        yield Case([np.array([[-9, -1, 0], [1, 3, 4]], numpy_type(types['T']))], {'boundaries': boundaries})
    yield Case([np.array([], numpy_type(types['T']))], {'boundaries': [1.0]})


def _record(**features):
    made = {}
    for key, items in features.items():
        kind = {bytes: 'bytes_list', float: 'float_list', int: 'int64_list'}[type(items[0])] if items else 'int64_list'
        made[key] = tf.train.Feature(**{kind: {'value': items}})
    return tf.train.Example(features=tf.train.Features(feature=made)).SerializeToString()


_RECORDS = np.array([
    _record(words=[b'a', b'bc'], age=[31], scores=[0.5, 1.5], steps=[1.0, 2.0, 3.0, 4.0], marks=[1.5, 2.5], notes=[b'x']),
    _record(words=[], age=[7], scores=[2.0, -1.0]),
    _record(age=[0], scores=[0.0, 9.0], steps=[5.0, 6.0], words=[b''], other=[1, 2, 3], notes=[b'y', b'z'])], object)
_NAMES = np.array([b'first', b'second', b'third'], object)
_EMPTY_TEXT = np.array([], object)
_DEFAULTS = [np.array([], np.int64), np.array([1, 2], np.float32), np.array(-1, np.float32)]
_SHAPES = [[], [2], [None, 2]]


def _texts(*items):
    return np.array([i.encode() for i in items], object)


@script('ParseExample')
def parse_example(b, types):
    def parse(records, names=_EMPTY_TEXT, dense=('age', 'scores', 'steps'), sparse=('words', 'other'), defaults=_DEFAULTS):
        return b.op('ParseExample', b.hidden(records), b.hidden(names), [t for t in _texts(*sparse)], [t for t in _texts(*dense)],
                    defaults, sparse_types=[tf.string, tf.int64], dense_shapes=_SHAPES)
    good = parse(_RECORDS[[0, 2]]) + parse(_RECORDS[[0, 2]], _NAMES[:2]) + parse(_RECORDS[:0])
    bad = [parse(np.array([b'\n\x7f'], object)), parse(_RECORDS[1:2]), parse(_RECORDS[:1], dense=('none', 'scores', 'steps')),
           parse(_RECORDS[:1], dense=('marks', 'scores', 'steps')), parse(_RECORDS[:1], _NAMES), parse(_RECORDS[0]),
           parse(_RECORDS[:1], defaults=[_DEFAULTS[0], np.array([1], np.float32), _DEFAULTS[2]])]
    return [Step(*_flat(good))] + [Step(*_flat(one), error=True) for one in bad]


def _flat(tensors):
    return [t for part in tensors for t in (_flat(part) if isinstance(part, (list, tuple)) else [part])]


@script('ParseExampleV2')
def parse_example_v2(b, types):
    def parse(records, ragged=('marks', 'notes')):
        return b.op('ParseExampleV2', b.hidden(records), b.hidden(_EMPTY_TEXT), _texts('words', 'other'),
                    _texts('age', 'scores', 'steps'), b.hidden(_texts(*ragged)), _DEFAULTS, num_sparse=2,
                    sparse_types=[tf.string, tf.int64], ragged_value_types=[tf.float32, tf.string],
                    ragged_split_types=[tf.int64, tf.int32], dense_shapes=_SHAPES)
    good = [parse(_RECORDS[[0, 2]]), parse(_RECORDS[0]), parse(_RECORDS[:0])]
    bad = [parse(_RECORDS[:1], ['notes', 'none']), parse(_RECORDS[:1], ['notes'])]
    return [Step(*_flat(one)) for one in good] + [Step(*_flat(one), error=True) for one in bad]


@script('ParseSingleExample')
def parse_single_example(b, types):
    def parse(record, dense=('age', 'scores', 'steps')):
        return b.op('ParseSingleExample', b.hidden(record), _DEFAULTS, num_sparse=2, sparse_keys=['words', 'other'],
                    dense_keys=list(dense), sparse_types=[tf.string, tf.int64], dense_shapes=_SHAPES)
    return [Step(*_flat(parse(_RECORDS[0]))),
            Step(*_flat(parse(_RECORDS[0], ('none', 'scores', 'steps'))), error=True),
            Step(*_flat(parse(np.array(b'\n\x7f', object)))[:1], error=True)]


def _rows(name):
    return [np.array([[0, 1], [0, 3], [2, 0]], np.int64), values(name, [3]), np.array([4, 5], np.int64)]


@script('SerializeSparse', 'SerializeManySparse', 'DeserializeSparse', 'DeserializeManySparse')
def serialized(b, types):
    name = types['T']
    steps = []
    for out_type in 'string', 'variant':
        one = b.op('SerializeSparse', *map(b.hidden, _rows(name)), out_type=out_type)
        many = b.op('SerializeManySparse', *map(b.hidden, _rows(name)), out_type=out_type)
        steps.append(Step(*b.op('DeserializeSparse', one, dtype=name), *b.op('DeserializeSparse', many, dtype=name)))
    texts = b.op('SerializeManySparse', *map(b.hidden, _rows(name)))
    steps.append(Step(*b.op('DeserializeManySparse', texts, dtype=name)))
    other = 'int64' if name != 'int64' else 'float32'
    steps += [Step(b.op('DeserializeManySparse', texts, dtype=other)[1], error=True),
              Step(b.op('DeserializeManySparse', b.hidden(np.array([[b'', b'']], object)), dtype=name)[1], error=True),
              Step(b.op('DeserializeSparse', b.hidden(np.array([b'x', b'y', b'z'], object)), dtype=name)[1], error=True),
              Step(b.op('SerializeManySparse', b.hidden(np.zeros([1, 1], np.int64)), b.hidden(values(name, [1])),
                        b.hidden(np.ones([1], np.int64))), error=True)]
    return steps


@script('AddSparseToTensorsMap', 'AddManySparseToTensorsMap', 'TakeManySparseFromTensorsMap')
def kept(b, types):
    name = types['T']
    shared = {'shared_name': b.name('map')}
    one = b.op('AddSparseToTensorsMap', *map(b.hidden, _rows(name)), **shared)
    many = b.op('AddManySparseToTensorsMap', *map(b.hidden, _rows(name)), **shared)

    def take(*numbers):
        return Step(*b.op('TakeManySparseFromTensorsMap', b.hidden(np.array(numbers, np.int64)), dtype=name, **shared))
    missing = take(1)
    missing.error = True
    return [Step(one), Step(many), Step(one), take(0, 5), take(3, 1, 2), missing]


types_for('T', ['float32', 'int64', 'string'], 'SerializeSparse', 'SerializeManySparse', 'AddSparseToTensorsMap', 'AddManySparseToTensorsMap')

# SPDX-License-Identifier: Apache-2.0
"""Seeded draws with parameters, orders and places that seeds say: the same numbers as TensorFlow's."""
import numpy as np
import tensorflow as tf

from cases import Case, Step, cases, numpy_type, script, types_for, values

SEEDS = [(1, 2), (87654321, 0), (-5, 2**40 + 3)]


def _old_graph():
    """The default graph becomes one of a program so old that it may hold deprecated ops."""
    old = tf.compat.v1.GraphDef()
    old.versions.producer = 7
    tf.graph_util.import_graph_def(old, name='')


# mean, deviation, low, high: normal, uniform and exponential proposals, both ways round.
BOUNDS = [(0, 1, -2, 2), (1, 2, 2, 3), (0, 1, 3, 9), (0, 1, -9, -3), (0, 3, -1, np.inf), (2, 1, -np.inf, 0), (5, 0.5, 4.9, 5.1)]


def _bounds(name):
    return [np.array(column, numpy_type(name)) for column in zip(*BOUNDS)]


@script('ParameterizedTruncatedNormal')
def truncated(b, types):
    name, shape_type = types['dtype'], numpy_type(types['T'])
    n = len(BOUNDS)
    made, wrong = [], []
    for seed, seed2 in SEEDS:
        attrs = dict(seed=seed, seed2=seed2)
        for shape in [n], [n, 5], [n, 30, 3]:
            made.append(b.op('ParameterizedTruncatedNormal', np.array(shape, shape_type), *map(b.hidden, _bounds(name)), **attrs))
        for row in range(n):
            one = [b.hidden(column[row]) for column in _bounds(name)]
            made += [b.op('ParameterizedTruncatedNormal', np.array(shape, shape_type), *one, **attrs) for shape in ([7], [3, 90], [0])]
    good = [np.array(x, numpy_type(name)) for x in (0, 1, -1, 1)]
    for k, bad in (1, 0), (2, 2), (0, [1, 2]):
        inputs = list(good)
        inputs[k] = np.array(bad, numpy_type(name))
        wrong.append(b.op('ParameterizedTruncatedNormal', np.array([3], shape_type), *map(b.hidden, inputs), seed=1))
    return [Step(*made), Step(*made)] + [Step(one, error=True) for one in wrong]


@cases('StatelessParameterizedTruncatedNormal')
def stateless_truncated(op, types):
    name, shape_type = types['dtype'], numpy_type(types['S'])
    n = len(BOUNDS)
    attrs = {'dtype': name}
    for seed in [1, 2], [87654321, 2**31 - 1]:
        seed = np.array(seed, numpy_type(types['Tseed']))
        for shape in [n], [20, n], [2, 3, n]:
            yield Case([np.array(shape, shape_type), seed] + _bounds(name), attrs)
        yield Case([np.array([4, 2, 3], shape_type), seed, values(name, [2, 1], 0, 1), values(name, [3], 1, 2), np.array(-1, numpy_type(name)),
                    np.array(2, numpy_type(name))], attrs)
    yield Case([np.array([n + 1], shape_type), seed] + _bounds(name), attrs, error=True)
    yield Case([np.array([n], shape_type), seed[:1]] + _bounds(name), attrs, error=True)


COUNTS, PROBABILITIES = [3, 20, 100, 1000, 50, 7, 0], [0.5, 0.1, 0.3, 0.7, 0.95, 1.0, 0.5]


@cases('StatelessRandomBinomial')
def stateless_binomial(op, types):
    name = types['T']
    pair = [np.array(COUNTS, numpy_type(name)), np.array(PROBABILITIES, numpy_type(name))]
    attrs = {'dtype': types['dtype']}
    n = len(COUNTS)
    for seed in [1, 2], [87654321, 2**31 - 1]:
        seed = np.array(seed, numpy_type(types['Tseed']))
        for shape in [n], [20, n]:
            yield Case([np.array(shape, np.int32), seed] + pair, attrs)
        yield Case([np.array([5, 2, 3], np.int32), seed, np.array([[30], [9]], numpy_type(name)), np.array([.2, .5, .8], numpy_type(name))], attrs)
    yield Case([np.array([n + 1], np.int32), seed] + pair, attrs, error=True)
    yield Case([np.array([n], np.int32), seed, pair[0], pair[1][:2]], attrs, error=True)


types_for('S', ['int32'], 'StatelessRandomBinomial', 'StatefulRandomBinomial')


@script('StatefulRandomBinomial')
def stateful_binomial(b, types):
    handle, initialise, _ = b.variable((np.arange(7, 10) * (2**40 + 1)).astype(np.int64), ref=False)
    pair = [np.array(COUNTS, numpy_type(types['T'])), np.array(PROBABILITIES, numpy_type(types['T']))]
    made = [b.op('StatefulRandomBinomial', handle, b.hidden(np.int64(a)), b.hidden(np.array([4, len(COUNTS)], np.int32)), *map(b.hidden, pair),
                 dtype=types['dtype']) for a in (1, 9)]
    # TensorFlow's own state moves on only where nothing else holds the bytes of the variable.
    return [Step(initialise), Step(made[0]), Step(made[1], error=True)]


@script('StatefulStandardNormal')
def old_normal(b, types):
    _old_graph()
    state = np.array([1, 7 * (2**40 + 1), 9, 2**50 + 5], np.int64)
    handle, initialise, read = b.variable(state, ref=False)
    draw = b.op('StatefulStandardNormal', handle, b.hidden(np.array([3, 5], np.int64)), dtype=types['dtype'])
    return [Step(initialise), Step(draw), Step(draw), Step(read)]


types_for('shape_dtype', ['int64'], 'StatefulStandardNormal', 'NonDeterministicInts')


@cases('StatelessMultinomial')
def stateless_multinomial(op, types):
    attrs = {'output_dtype': types['output_dtype']}
    seed = np.array([3, 4], numpy_type(types['Tseed']))
    for shape, draws in ([2, 5], 9), ([1, 1], 3), ([3, 4], 0), ([0, 2], 5), ([2, 300], 100):
        yield Case([values(types['T'], shape), np.int32(draws), seed], attrs)
    yield Case([values(types['T'], [2, 5]), np.int32(-1), seed], attrs, error=True)
    yield Case([values(types['T'], [2]), np.int32(3), seed], attrs, error=True)
    yield Case([values(types['T'], [2, 3]), np.int32(3), seed[:1]], attrs, error=True)


types_for('T', ['float32', 'string', 'bool', 'int8', 'complex128'], 'StatelessShuffle')


@cases('StatelessShuffle')
def stateless_shuffle(op, types):
    for shape in [9], [5, 2], [0], [1], [2, 3, 2], [200]:
        for key, algorithm in (7, 1), (2**64 - 1, 3):
            yield Case([values(types['T'], shape), np.array([key], np.uint64), np.array([1, 2**63 + 5], np.uint64), np.int32(algorithm)])
    yield Case([values(types['T'], [3]), np.array([1], np.uint64), np.array([1, 2], np.uint64), np.int32(2)], error=True)


@cases('RandomIndexShuffle')
def index_shuffle(op, types):
    index, seed = numpy_type(types['dtype']), numpy_type(types['Tseed'])
    for most in 0, 1, 9, 1000, 2**17 + 1, 2**30:
        at = np.unique(np.array([0, most // 3, most], index))
        for key in [1, 2, 3], [123456789, 0, 2**31 - 1]:
            yield Case([at, np.array(key, seed), np.array(most, index)])
            yield Case([at[:1].reshape([]), np.array(key, seed), np.array(most, index)], {'rounds': 8})
    yield Case([np.array([1, 2], index), np.array([[1, 2, 3], [4, 5, 6]], seed), np.array([7, 8], index)])
    yield Case([np.array([1, 2], index), np.array([1, 2], seed), np.array(7, index)], error=True)


@script('RandomPoisson', 'RandomCrop')
def old_draws(b, types):
    _old_graph()
    name = types['dtype']
    rates = b.hidden(np.array([0.5, 3, 9, 12, 40, 1000], numpy_type(name)))
    made = [b.op('RandomPoisson', np.array(shape, numpy_type(types['S'])), rates, seed=1, seed2=2) for shape in ([], [5], [0])]
    picture = b.hidden(values('float32', [9, 8, 3]))
    made += [b.op('RandomCrop', picture, b.hidden(np.array(size, np.int64)), seed=3, seed2=4) for size in ([2, 3], [9, 8], [1, 8])]
    wrong = [b.op('RandomCrop', picture, b.hidden(np.array(size, np.int64)), seed=3) for size in ([10, 2], [2])]
    return [Step(*made), Step(*made)] + [Step(one, error='any') for one in wrong]


@script('NonDeterministicInts')
def non_deterministic(b, types):
    drawn = b.op('NonDeterministicInts', b.hidden(np.array([3, 40], np.int64)), dtype=types['dtype'])
    flat = tf.reshape(drawn, [-1])
    return [Step(tf.shape(drawn), tf.size(tf.unique(tf.cast(flat, tf.int64))[0]) > 100)]


def _samplers(op, **attrs):
    def sample(b, types):
        truth = b.hidden(np.array([[0, 3], [5, 7], [1, 1]], np.int64))
        made = []
        for unique, count in (True, 4), (False, 12), (True, 6):
            made += b.op(op, truth, num_true=2, num_sampled=count, unique=unique, range_max=8, seed=5, seed2=6, **attrs)
        wrong = [b.op(op, b.hidden(bad), num_true=2, num_sampled=3, unique=True, range_max=8, seed=1, **attrs)[0]
                 for bad in (np.array([[0, 8]], np.int64), np.array([[0]], np.int64), np.array([1, 2], np.int64))]
        return [Step(*made), Step(*made), Step(*made)] + [Step(one, error=True) for one in wrong]
    sample.__name__ = op
    return sample


for _op in 'LearnedUnigramCandidateSampler', 'ThreadUnsafeUnigramCandidateSampler':
    script(_op)(_samplers(_op))
script('FixedUnigramCandidateSampler')(_samplers(
    'FixedUnigramCandidateSampler', unigrams=[3.0, 1, 0.5, 7, 2, 2], num_reserved_ids=2, distortion=0.75))


@script('FixedUnigramCandidateSampler')
def words_of_a_file(b, types):
    truth = np.array([[0, 2]], np.int64)
    made, wrong = [], []
    for attrs in dict(unigrams=[1.0, 2.0, 3.0, 4.0], range_max=2, num_shards=2, shard=1), dict(unigrams=[1.0, 2.0], range_max=2):
        made += b.op('FixedUnigramCandidateSampler', truth % 2, num_true=2, num_sampled=9, unique=False, seed=5, **attrs)
    for attrs in dict(range_max=2), dict(unigrams=[1.0], range_max=2), dict(unigrams=[1.0], vocab_file='x', range_max=1):
        wrong.append(b.op('FixedUnigramCandidateSampler', b.hidden(truth * 0), num_true=2, num_sampled=1, unique=False, seed=5, **attrs)[0])
    return [Step(*made)] + [Step(one, error=True) for one in wrong]

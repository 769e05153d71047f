# SPDX-License-Identifier: Apache-2.0
"""Seeded random ops: the same numbers as TensorFlow's, run after run. Unseeded ones differ, so only shapes could agree."""
import numpy as np

from cases import ALL_TYPES, Case, Step, cases, numpy_type, script, types_for, values

SEEDS = [(1, 2), (87654321, 0), (0, 42), (-5, 2**40 + 3)]


def _random(op):
    def random(b, types):
        shape_type = numpy_type(types['T'])
        made = [b.op(op, np.array(shape, shape_type), dtype=types['dtype'], seed=s, seed2=t)
                for s, t in SEEDS for shape in ([], [1], [7], [0], [3, 5], [2049])]
        hidden = b.hidden(np.array([4], shape_type))
        bad = [b.op(op, b.hidden(np.array(shape).astype(shape_type)), dtype=types['dtype'], seed=1, seed2=2) for shape in ([-1], [[2]])]
        fed = b.op(op, hidden, dtype=types['dtype'], seed=1, seed2=2)
        # The second run goes on where the first stopped.
        return [Step(*made), Step(*made), Step(fed, feeds={hidden: np.array([3, 3], shape_type)}), Step(fed)] + [
            Step(one, error=True) for one in bad]
    random.__name__ = op
    return random


for _op in 'RandomUniform', 'RandomStandardNormal', 'TruncatedNormal':
    script(_op)(_random(_op))


@script('RandomUniformInt')
def random_uniform_int(b, types):
    value_type, shape_type = numpy_type(types['Tout']), numpy_type(types['T'])

    def draw(shape, low, high, seed=3):
        return b.op('RandomUniformInt', b.hidden(np.array(shape, shape_type)), b.hidden(np.array(low, value_type)),
                    b.hidden(np.array(high, value_type)), seed=seed, seed2=4)
    made = [draw(shape, low, high) for shape in ([], [9], [0], [1001]) for low, high in ((0, 10), (-7, 1), (-2**31, 2**31 - 1))]
    return [Step(*made), Step(*made), Step(draw([2], 5, 5), error=True), Step(draw([2], [0, 1], 5), error=True)]


@cases('StatelessRandomGetKeyCounter')
def key_counter(op, types):
    for seed in [1, 2], [0, 0], [-5, 2**31 - 1]:
        yield Case([np.array(seed, numpy_type(types['Tseed']))])
    yield Case([np.array([1], numpy_type(types['Tseed']))], error=True)
    yield Case([np.array([[1, 2]], numpy_type(types['Tseed']))], error=True)


@cases('StatelessRandomGetAlg')
def algorithm(op, types):
    yield Case([])


@cases('StatelessRandomUniformV2', 'StatelessRandomNormalV2', 'StatelessTruncatedNormalV2', 'StatelessRandomUniformIntV2')
def stateless(op, types):
    attrs = {'dtype': types['dtype']}
    limits = [np.array(n, numpy_type(types['dtype'])) for n in (3, 1000)] if 'Int' in op else []
    for key, counter in (7, (1, 2)), (2**64 - 1, (2**64 - 2, 2**40 + 3)):
        generator = [np.array([key], np.uint64), np.array(counter, np.uint64), np.int32(1)]
        for shape in [], [7], [0], [3, 5], [2049]:
            yield Case([np.array(shape, numpy_type(types['Tshape']))] + generator + limits, attrs)
    shape = np.array([3], numpy_type(types['Tshape']))
    yield Case([shape, generator[0], generator[1], np.int32(9)] + limits, attrs, error=True)
    yield Case([shape, generator[1], generator[1], generator[2]] + limits, attrs, error=True)
    if limits:
        yield Case([shape] + generator + limits[::-1], attrs, error=True)


@script('RandomShuffle')
def random_shuffle(b, types):
    made = [b.op('RandomShuffle', b.hidden(values(types['T'], shape)), seed=5, seed2=6) for shape in ([9], [5, 2], [0], [1], [2, 3, 2], [200])]
    return [Step(*made), Step(*made)]


types_for('T', ALL_TYPES, 'RandomShuffle')

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


@cases('StatelessRandomGetKeyCounter', 'StatelessRandomGetKeyCounterAlg')
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


@cases('StatelessRandomUniform', 'StatelessRandomNormal', 'StatelessTruncatedNormal', 'StatelessRandomUniformInt', 'StatelessRandomUniformFullInt')
def seeded(op, types):
    attrs = {'dtype': types['dtype']}
    seed_type, shape_type = numpy_type(types['Tseed']), numpy_type(types['T'])
    limits = [np.array(n, numpy_type(types['dtype'])) for n in (3, 1000)] if op.endswith('UniformInt') else []
    refused = types['Tseed'][0] == 'u'
    for seed in [1, 2], [0, 0], [87654321, 2**31 - 1]:
        for shape in [], [7], [3, 5], [2049]:
            yield Case([np.array(shape, shape_type), np.array(seed, seed_type)] + limits, attrs, error=refused)
    if not refused:
        yield Case([np.array([0], shape_type), np.array([1, 2], seed_type)] + limits, attrs)
    shape, seed = np.array([3], shape_type), np.array([1, 2], seed_type)
    yield Case([shape, seed[:1]] + limits, attrs, error=True)
    yield Case([-shape, seed] + limits, attrs, error=True)
    if limits:
        yield Case([shape, seed] + limits[::-1], attrs, error=True)


@cases('StatelessRandomUniformFullIntV2')
def all_integers(op, types):
    attrs = {'dtype': types['dtype']}
    generator = [np.array([7], np.uint64), np.array([1, 2], np.uint64), np.int32(1)]
    for shape in [], [7], [0], [3, 5], [2049]:
        yield Case([np.array(shape, numpy_type(types['Tshape']))] + generator, attrs)
    yield Case([np.array([3], numpy_type(types['Tshape']))] + generator[:2] + [np.int32(9)], attrs, error=True)


ALPHAS = [0.3, 1.0, 1.5, 7.0, 100.0]
RATES = [0.5, 3.0, 9.0, 12.0, 40.0, 1000.0]


def _drawn(op, parameter_type, parameters):
    def draw(b, types):
        name = types[parameter_type]
        attrs = {'dtype': types['dtype']} if 'dtype' in types else {}
        held = [np.array(parameters, numpy_type(name)), np.array(parameters[:4], numpy_type(name)).reshape([2, 2]),
                np.array(parameters[1], numpy_type(name)), np.zeros([0], numpy_type(name))]
        made = [b.op(op, np.array(shape, numpy_type(types['S'])), b.hidden(one), seed=s, seed2=t, **attrs)
                for s, t in SEEDS[:2] for one in held for shape in ([], [5], [3, 2], [0])]
        return [Step(*made), Step(*made)]
    draw.__name__ = op
    return draw


script('RandomGamma')(_drawn('RandomGamma', 'T', ALPHAS))
script('RandomPoissonV2')(_drawn('RandomPoissonV2', 'R', RATES))


@cases('StatelessRandomGammaV2', 'StatelessRandomGammaV3', 'StatelessRandomPoisson')
def stateless_parameters(op, types):
    name = types['Rtype'] if op.endswith('Poisson') else types['dtype']
    parameters = np.array(RATES if op.endswith('Poisson') else ALPHAS, numpy_type(name))
    shape_type = numpy_type(types['shape_dtype' if op.endswith('V3') else 'T'])
    if op.endswith('V3'):
        generator = [np.array([7], np.uint64), np.array([1, 2], np.uint64), np.int32(1)]
    else:
        generator = [np.array([3, 4], numpy_type(types['Tseed']))]
    attrs = {'dtype': types['dtype']}
    n = len(parameters)
    for shape in [n], [20, n], [2, 3, n], [0, n]:
        yield Case([np.array(shape, shape_type)] + generator + [parameters], attrs)
    yield Case([np.array([9], shape_type)] + generator + [parameters[1]], attrs)
    yield Case([np.array([n + 1], shape_type)] + generator + [parameters], attrs, error=True)


def _generator(b, size=3):
    state = np.arange(7, 7 + size).astype(np.int64) * (2**40 + 1)
    handle, initialise, read = b.variable(state, ref=False)
    return handle, Step(initialise), Step(read)


@script('StatefulUniform', 'StatefulStandardNormalV2', 'StatefulTruncatedNormal')
def from_state(b, types):
    handle, initialise, read = _generator(b)
    steps = [initialise]
    for op in 'StatefulUniform', 'StatefulStandardNormalV2', 'StatefulTruncatedNormal':
        for dtype in 'float32', 'float64', 'float16', 'bfloat16':
            for shape in [5], [], [2, 3]:
                steps += [Step(b.op(op, handle, np.int64(1), np.array(shape, np.int64), dtype=dtype)), read]
        steps.append(Step(b.op(op, handle, b.hidden(np.int64(9)), np.array([2], np.int64)), error=True))
    return steps


@script('StatefulUniformFullInt', 'StatefulUniformInt', 'RngSkip', 'RngReadAndSkip')
def integers_from_state(b, types):
    handle, initialise, read = _generator(b)
    steps = [initialise]
    for dtype in 'int32', 'int64', 'uint32', 'uint64':
        steps += [Step(b.op('StatefulUniformFullInt', handle, np.int64(1), np.array([5], np.int64), dtype=dtype)), read]
        low, high = (np.array(n, numpy_type(dtype)) for n in (3, 99))
        steps += [Step(b.op('StatefulUniformInt', handle, np.int64(1), np.array([5], np.int32), low, high)), read]
    skip = b.op('RngReadAndSkip', handle, b.hidden(np.int32(1)), b.hidden(np.array(2**62, np.uint64)))
    old = b.op('RngSkip', handle, b.hidden(np.int64(1)), b.hidden(np.int64(5)))
    short, initialise_short, _ = _generator(b, 2)
    return steps + [Step(skip), Step(skip), read, Step(old), read, initialise_short,
                    Step(b.op('RngReadAndSkip', short, b.hidden(np.int32(1)), b.hidden(np.array(1, np.uint64))), error=True)]


@cases('SobolSample')
def sobol(op, types):
    for dim, count, skip in (1, 1, 0), (1, 9, 0), (3, 70, 5), (40, 3, 1000000), (1111, 5, 2 ** 24), (2, 3000, 0), (1111, 300, 3):
        yield Case([np.int32(dim), np.int32(count), np.int32(skip)], {'dtype': types['dtype']})
    for dim, count, skip in (0, 1, 0), (21201, 1, 0), (1, 0, 0), (1, 1, -1), (1, 2 ** 31 - 1, 0), (1, 2 ** 31 - 5, 5):
        yield Case([np.int32(dim), np.int32(count), np.int32(skip)], {'dtype': types['dtype']}, error=True)

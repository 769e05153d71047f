# SPDX-License-Identifier: Apache-2.0
"""Floats as integers of few bits, and back; counts of numbers."""
import numpy as np
import tensorflow as tf

from cases import Case, Step, cases, numpy_type, script, types_for, values

QUANTIZED = ['qint8', 'quint8', 'qint16', 'quint16', 'qint32']
PLAIN = {'qint8': tf.int8, 'quint8': tf.uint8, 'qint16': tf.int16, 'quint16': tf.uint16, 'qint32': tf.int32}


def _plain(tensor):
    """Quantised tensors as the integers that they are, which a step can fetch."""
    return tf.bitcast(tensor, PLAIN[tensor.dtype.base_dtype.name])


def _quantized(b, dtype, shape, key=0):
    plain = PLAIN[dtype]
    low, high = max(plain.min, -2**31 + 200), min(plain.max, 2**31 - 200)
    x = np.random.RandomState(key + 5).randint(low, high + 1, shape, np.int64).astype(plain.as_numpy_dtype)
    return tf.bitcast(b.hidden(x), tf.as_dtype(dtype))


@script('QuantizeV2', 'Dequantize')
def quantize(b, types):
    made, wrong = [], []
    f = np.float32
    x = b.hidden(np.concatenate([np.linspace(-3, 3, 61), [-100, 100, 0]]).astype(f))
    wide = b.constant(values('float32', [2, 3, 4]))
    for dtype in QUANTIZED:
        for low, high in (-2, 2), (0, 5), (-3, -1), (0.5, 0.5), (-1, 0):
            for mode, rounding in ('MIN_COMBINED', None), ('MIN_FIRST', None), ('SCALED', None), ('SCALED', 'HALF_TO_EVEN'):
                if dtype == 'qint32' and mode != 'MIN_COMBINED':
                    continue
                attrs = {'round_mode': rounding} if rounding else {}
                if dtype == 'qint32':  # what lies beyond the largest float below 2^31 is not defined
                    continue
                q, least, most = b.op('QuantizeV2', x, f(low), f(high), T=dtype, mode=mode, **attrs)
                made += [_plain(q), least, most, b.op('Dequantize', q, least, most, mode=mode)]
        for low, high in (-2, 2), (0, 5):
            q = _quantized(b, dtype, [17])
            for mode in 'MIN_COMBINED', 'MIN_FIRST', 'SCALED':
                made.append(b.op('Dequantize', q, f(low), f(high), mode=mode))
            made.append(b.op('Dequantize', q, f(low), f(high), dtype=tf.bfloat16))
        if dtype == 'qint32':
            continue
        ranges = [b.hidden(np.array(r, f)) for r in ([-1, -2, 0], [1, 3, 4])]
        for mode in 'MIN_COMBINED', 'SCALED':
            q, least, most = b.op('QuantizeV2', wide, *ranges, T=dtype, mode=mode, axis=1, narrow_range=True)
            made += [_plain(q), least, most, b.op('Dequantize', q, least, most, mode=mode, axis=1, narrow_range=True)]
    wrong += [b.op('QuantizeV2', wide, b.hidden(f(2)), b.hidden(f(1)), T='qint8')[0],
              b.op('QuantizeV2', wide, b.hidden(f([1, 2])), b.hidden(f([2, 3])), T='qint8', axis=1)[0],
              b.op('Dequantize', _quantized(b, 'qint8', [3]), b.hidden(f([1, 2])), b.hidden(f([2, 3]))),
              b.op('QuantizeV2', wide, f(0), f(1), T='qint8', round_mode='HALF_TO_EVEN')[0]]
    return [Step(*made)] + [Step(one, error=True) for one in wrong]


@script('RequantizationRange', 'Requantize', 'QuantizeDownAndShrinkRange')
def requantize(b, types):
    f = np.float32
    made = []
    for key in range(3):
        q = _quantized(b, 'qint32', [50], key)
        for low, high in (-1, 1), (-255, 100), (0, 3):
            made += b.op('RequantizationRange', q, f(low), f(high))
            shrunk = b.op('QuantizeDownAndShrinkRange', q, f(low), f(high), out_type='quint8')
            made += [_plain(shrunk[0]), shrunk[1], shrunk[2]]
            for out in 'quint8', 'qint8':
                again = b.op('Requantize', q, f(low), f(high), f(-2), f(1.5), out_type=out)
                made += [_plain(again[0]), again[1], again[2]]
    return [Step(*made)]


@cases('FakeQuantWithMinMaxArgs', 'FakeQuantWithMinMaxArgsGradient')
def fake_quant(op, types):
    x = np.concatenate([np.linspace(-9, 9, 77), [0, -0.0, 100, -100]]).astype(np.float32)
    inputs = [values('float32', x.shape), x] if op.endswith('Gradient') else [x]
    for low, high in (-6, 6), (0, 3), (-1, 0), (0.5, 2), (-3.3, 5.1):
        for bits in 8, 2, 16:
            for narrow in False, True:
                yield Case(inputs, {'min': low, 'max': high, 'num_bits': bits, 'narrow_range': narrow})
    if len(inputs) > 1:
        yield Case([inputs[0][:3], inputs[1]], error=True)


@cases('FakeQuantWithMinMaxVars', 'FakeQuantWithMinMaxVarsGradient')
def fake_quant_vars(op, types):
    f = np.float32
    x = np.concatenate([np.linspace(-9, 9, 77), [0, 100, -100]]).astype(f)
    inputs = [values('float32', x.shape), x] if op.endswith('Gradient') else [x]
    for low, high in (-6, 6), (0, 3), (-1, 0), (0, 0), (-3.3, 5.1):
        for bits, narrow in (8, False), (4, True):
            yield Case(inputs + [f(low), f(high)], {'num_bits': bits, 'narrow_range': narrow})
    yield Case(inputs + [f([-1, 2]), f(1)], error=True)


@cases('FakeQuantWithMinMaxVarsPerChannel', 'FakeQuantWithMinMaxVarsPerChannelGradient')
def fake_quant_channels(op, types):
    low, high = np.array([-6, 0, 0, -3.3], np.float32), np.array([6, 3, 0, 5.1], np.float32)
    for shape in [4], [9, 4], [2, 3, 4], [2, 2, 3, 4]:
        x = values('float32', shape, -9, 9)
        inputs = [values('float32', shape, key=1), x] if op.endswith('Gradient') else [x]
        for bits, narrow in (8, False), (4, True):
            yield Case(inputs + [low, high], {'num_bits': bits, 'narrow_range': narrow})
    yield Case(inputs + [low[:3], high], error=True)
    yield Case(inputs + [low, high[:3]], error=True)


@cases('QuantizeAndDequantizeV2', 'QuantizeAndDequantizeV4')
def round_trip(op, types):
    name = types['T']
    dtype = numpy_type(name)
    x = np.concatenate([np.linspace(-3, 3, 61), [0]]).astype(dtype)
    for given in False, True:
        for signed in True, False:
            for rounding in 'HALF_TO_EVEN', 'HALF_UP':
                for low, high, bits, narrow in (-2, 2, 8, False), (-1, 3, 4, True), (0, 2.5, 3, False):
                    yield Case([x, np.array(low, dtype), np.array(high, dtype)],
                               {'range_given': given, 'signed_input': signed, 'round_mode': rounding, 'num_bits': bits, 'narrow_range': narrow})
    by_channel = [values(name, [2, 3, 4]), np.array([-1, -2, 0], dtype), np.array([1, 3, 4], dtype)]
    yield Case(by_channel, {'axis': 1})
    yield Case([x, np.array(2, dtype), np.array(1, dtype)], {'range_given': True}, error=True)
    yield Case([x, np.array(0, dtype), np.array(1, dtype)], {'num_bits': 64, 'range_given': True}, error=True)


@cases('QuantizeAndDequantizeV3')
def round_trip_bits(op, types):
    name = types['T']
    dtype = numpy_type(name)
    x = np.linspace(-3, 3, 61).astype(dtype)
    for bits in 2, 8, 12:
        for given in False, True:
            yield Case([x, np.array(-2, dtype), np.array(2, dtype), np.int32(bits)], {'range_given': given})
    yield Case([x, np.array(-2, dtype), np.array(2, dtype), np.int32(0)], error=True)


@cases('QuantizeAndDequantizeV4Grad')
def round_trip_gradient(op, types):
    name = types['T']
    dtype = numpy_type(name)
    x = np.linspace(-3, 3, 61).astype(dtype)
    yield Case([values(name, [61]), x, np.array(-2, dtype), np.array(2, dtype)])
    yield Case([values(name, [2, 3, 4], key=1), values(name, [2, 3, 4]), np.array([-1, -2, 0], dtype), np.array([1, 3, 4], dtype)], {'axis': 1})
    yield Case([values(name, [60]), x, np.array(-2, dtype), np.array(2, dtype)], error=True)


@script('QuantizeAndDequantize')
def old_round_trip(b, types):
    old = tf.compat.v1.GraphDef()
    old.versions.producer = 8
    tf.graph_util.import_graph_def(old, name='')
    x = b.hidden(np.linspace(-3, 3, 61).astype(numpy_type(types['T'])))
    return [Step(*[b.op('QuantizeAndDequantize', x, **attrs) for attrs in (
        {}, {'range_given': True, 'input_min': -2.0, 'input_max': 1.5}, {'signed_input': False, 'num_bits': 4})])]


types_for('output_type', ['int32', 'int64', 'float32', 'float64'], 'DenseCountSparseOutput', 'SparseCountSparseOutput',
          'RaggedCountSparseOutput')
types_for('T', ['int32', 'int64', 'float32', 'float64'], 'SparseBincount', 'RaggedBincount')


def _counting(name):
    for lengths in {}, {'minlength': 9}, {'maxlength': 3}, {'minlength': 2, 'maxlength': 5}:
        for binary in False, True:
            yield {'binary_output': binary, **lengths}


@cases('DenseCountSparseOutput')
def dense_count(op, types):
    name, out = types['T'], types['output_type']
    for attrs in _counting(name):
        for shape in [7], [3, 5], [0]:
            x = values(name, shape, 0, 6)
            yield Case([x, np.zeros([0], numpy_type(out))], attrs)
            yield Case([x, values(out, shape, key=1)], attrs)
    attrs = {'binary_output': False}
    yield Case([np.array([1, -1], numpy_type(name)), np.zeros([0], numpy_type(out))], attrs, error=True)
    yield Case([values(name, []), np.zeros([0], numpy_type(out))], attrs, error=True)
    yield Case([values(name, [2, 2, 2]), np.zeros([0], numpy_type(out))], attrs, error=True)
    yield Case([values(name, [3]), values(out, [2])], attrs, error=True)


@cases('SparseCountSparseOutput')
def sparse_count(op, types):
    name, out = types['T'], types['output_type']
    none = np.zeros([0], numpy_type(out))
    at = np.array([[0, 1], [0, 3], [2, 0], [2, 2]], np.int64)
    for attrs in _counting(name):
        x = values(name, [4], 0, 4)
        yield Case([at, x, np.array([3, 4], np.int64), none], attrs)
        yield Case([at, x, np.array([3, 4], np.int64), values(out, [4])], attrs)
        yield Case([at[:, 1:], x, np.array([4], np.int64), none], attrs)
    attrs = {'binary_output': False}
    yield Case([at, x, np.array([2, 4], np.int64), none], attrs, error=True)
    yield Case([at, x[:3], np.array([3, 4], np.int64), none], attrs, error=True)
    yield Case([at, x, np.array([3], np.int64), none], attrs, error=True)
    yield Case([at, x, np.array([3, 4], np.int64), values(out, [3])], attrs, error=True)


@cases('RaggedCountSparseOutput')
def ragged_count(op, types):
    name, out = types['T'], types['output_type']
    none = np.zeros([0], numpy_type(out))
    for attrs in _counting(name):
        x = values(name, [5], 0, 4)
        for splits in [0, 2, 2, 5], [0, 5]:
            yield Case([np.array(splits, np.int64), x, none], attrs)
            yield Case([np.array(splits, np.int64), x, values(out, [5])], attrs)
    attrs = {'binary_output': False}
    for splits in [0, 3], [1, 5], [0], [0, 7]:
        yield Case([np.array(splits, np.int64), x, none], attrs, error=True)


@cases('SparseBincount', 'RaggedBincount')
def bins(op, types):
    name, out = types['Tidx'], types['T']
    none = np.zeros([0], numpy_type(out))
    x = values(name, [4], 0, 6)
    sparse = op == 'SparseBincount'
    places = [[np.array([[0, 1], [0, 3], [2, 0], [2, 2]], np.int64), np.array([3, 4], np.int64)],
              [np.array([[0], [1], [3], [4]], np.int64), np.array([6], np.int64)]]
    if not sparse:
        places = [[np.array([0, 2, 2, 4], np.int64)], [np.array([0, 4], np.int64)]]
    for place in places:
        for size in 0, 3, 9:
            for weights in none, values(out, [4], key=1):
                for binary in False, True:
                    yield Case(place[:1] + [x] + place[1:] + [np.array(size, numpy_type(name)), weights], {'binary_output': binary})
    yield Case(place[:1] + [x] + place[1:] + [np.array(-1, numpy_type(name)), none], error=True)

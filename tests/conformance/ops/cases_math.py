# SPDX-License-Identifier: Apache-2.0
"""Element-wise arithmetic, comparison, reductions and matrix products."""
import numpy as np

from cases import (ALL_TYPES, COMPLEX, FLOATS, INTS, Case, Step, cases, edges, is_float, is_int, limits, long, nonzero, numpy_type,
                   positive, script, types_for, values)

BROADCASTS = [([], []), ([3], [3]), ([], [3]), ([2, 1, 3], [4, 1]), ([0], [1]), ([0, 3], [3]), ([1], [5]),
              ([2, 3, 4, 5], [5]), ([5], [2, 3, 4, 5]), ([3, 1, 2, 1], [1, 4, 1, 2]), ([64, 10], [10])]


def grid(name, keep=lambda x, y: x == x):
    """All pairs of edge values, as two vectors."""
    x = edges(name)
    a, b = np.repeat(x, len(x)), np.tile(x, len(x))
    with np.errstate(all='ignore'):
        chosen = np.asarray(keep(a, b))
    return a[chosen], b[chosen]


def anything(a, b):
    return np.ones(a.shape, bool)


@cases('Add', 'AddV2', 'Sub', 'Mul', 'Maximum', 'Minimum', 'SquaredDifference', 'Equal', 'NotEqual', 'Less', 'LessEqual',
       'Greater', 'GreaterEqual', 'LogicalAnd', 'LogicalOr', 'Atan2', 'NextAfter', 'BitwiseAnd', 'BitwiseOr',
       'BitwiseXor')
def binary(op, types):
    name = types.get('T', 'bool')
    for i, (a, b) in enumerate(BROADCASTS):
        yield Case([values(name, a, key=i), values(name, b, key=i + 1)])
    yield Case([long(name), long(name, key=1)])
    yield Case([long(name), values(name, [])])
    yield Case([values(name, []), long(name)])
    if name != 'string':
        ordered = op in ('Maximum', 'Minimum')  # the sign of zero and NaN beside a number differ between SIMD widths
        a, b = grid(name, (lambda a, b: ~(np.isnan(a) | np.isnan(b))) if ordered and is_float(name) else anything)
        yield Case([a, b])
    if op not in ('Equal', 'NotEqual'):
        yield Case([values(name, [2]), values(name, [3])], error=True)
        yield Case([values(name, [2, 3]), values(name, [2])], error=True)


@cases('Equal', 'NotEqual')
def unequal_shapes(op, types):
    yield Case([values(types['T'], [2]), values(types['T'], [3])], {'incompatible_shape_error': False})
    yield Case([values(types['T'], [2]), values(types['T'], [3])], error=True)


def _divisible(name):
    """Integer pairs whose quotient exists: neither x / 0 nor lowest / -1."""
    low, _ = limits(name)
    return lambda a, b: (b != 0) & ~((low < 0) & (a == low) & (b == b.dtype.type(-1 if low else 1)))


@cases('Div', 'RealDiv', 'DivNoNan', 'FloorDiv', 'FloorMod', 'Mod', 'TruncateDiv', 'TruncateMod', 'MulNoNan', 'Xdivy', 'Xlogy', 'Xlog1py')
def division(op, types):
    name = types['T']
    for i, (a, b) in enumerate(BROADCASTS):
        yield Case([values(name, a, -9, 9, key=i), nonzero(name, b, key=i + 1)])
    yield Case([long(name, -9, 9), nonzero(name, [1037])])
    if is_int(name):
        yield Case(list(grid(name, _divisible(name))))
        yield Case([values(name, [3]), np.array([1, 0, 2], numpy_type(name))], error=op != 'DivNoNan')
    elif name not in COMPLEX:
        # The remainder of infinities and of far-off magnitudes has no digits to compare.
        near = op in ('FloorMod', 'Mod', 'TruncateMod', 'FloorDiv', 'TruncateDiv')
        yield Case(list(grid(name, (lambda a, b: (np.abs(a) < 50) & (np.abs(b) < 50) & (np.abs(b) > 0.1)) if near else anything)))
    yield Case([values(name, [2]), nonzero(name, [3])], error=True)


@cases('Pow')
def power(op, types):
    name = types['T']
    for i, (a, b) in enumerate(BROADCASTS):
        yield Case([positive(name, a, key=i), values(name, b, 0, 3, key=i)])
    if is_int(name):
        if name[0] != 'u':
            yield Case([values(name, [3]), np.array([1, -1, 2], numpy_type(name))], error=True)
    elif name not in COMPLEX:
        yield Case(list(grid(name)))
    yield Case([values(name, [2]), values(name, [3])], error=True)


@cases('Abs', 'Neg', 'Sign', 'Square', 'Sqrt', 'Rsqrt', 'Exp', 'Expm1', 'Log', 'Log1p', 'Sigmoid', 'Tanh', 'LogicalNot', 'Floor',
       'Ceil', 'Round', 'Rint', 'IsFinite', 'IsNan', 'IsInf', 'Reciprocal', 'Inv', 'Softplus', 'Softsign', 'Relu', 'Relu6', 'Elu',
       'Selu', 'LeakyRelu', 'Erf', 'ZerosLike', 'OnesLike', 'Identity', 'StopGradient', 'PreventGradient', 'Snapshot', 'DeepCopy',
       'Sin', 'Cos', 'Tan', 'Asin', 'Acos', 'Atan', 'Sinh', 'Cosh', 'Asinh', 'Acosh', 'Atanh', 'Erfc', 'Conj', 'Real', 'Imag', 'Angle', 'ComplexAbs', 'PopulationCount', 'Invert', 'GuaranteeConst',
       'DebugGradientIdentity')
def unary(op, types):
    name = types.get('T', 'bool')
    division = op in ('Reciprocal', 'Inv') and is_int(name)
    domain = nonzero if division else values
    attrs = {'Tout': types['Tout']} if 'Tout' in types else {}
    if attrs and (name == 'complex64') != (types['Tout'] == 'float32'):
        yield Case([values(name, [2])], attrs, error=True)  # There are kernels for parts of their own width only.
        return
    for shape in [], [0], [1], [3, 0, 2], [2, 3, 1, 4]:
        yield Case([domain(name, shape)], attrs)
    yield Case([domain(name, [1037])], attrs)
    x = edges(name)
    if op == 'Angle':
        x = x[x.imag != 0]  # the sign of a zero decides
    if op in ('Sin', 'Cos', 'Tan', 'Sinh', 'Cosh') and is_float(name):
        x = x[np.abs(x.astype(np.float64)) < 50]  # beyond, the argument reduction decides
    if name in COMPLEX and op in ('Sqrt', 'Rsqrt', 'Log', 'Log1p', 'Reciprocal', 'Inv', 'Pow', 'Sign'):
        x = x[(x != 0) & (x.imag != 0)]  # on the cut, the sign of zero decides
    if op in ('Erf', 'Erfc') and is_float(name):
        x = x[np.abs(x) < 1e30]  # TensorFlow's erf of more is NaN
    if name in COMPLEX and op[0] == 'A':
        x = x[(x.imag != 0) & (x.real != 0)]
    yield Case([x[x != 0] if division else x], attrs)


types_for('T', FLOATS + COMPLEX, 'Round')  # TensorFlow 2.21 rounds integers to 0
types_for('T', ALL_TYPES, 'GuaranteeConst', 'DebugGradientIdentity')
types_for('T', ALL_TYPES, 'Identity', 'StopGradient', 'PreventGradient', 'IdentityN')


@cases('SigmoidGrad', 'TanhGrad', 'SqrtGrad', 'RsqrtGrad', 'ReciprocalGrad', 'InvGrad', 'ReluGrad', 'Relu6Grad', 'SoftplusGrad',
       'SoftsignGrad', 'EluGrad', 'SeluGrad', 'LeakyReluGrad')
def unary_gradient(op, types):
    name = types['T']
    for shape in [], [0], [2, 3], [1037]:
        yield Case([nonzero(name, shape), values(name, shape, key=2)])
    if is_float(name):
        x = np.array([0.0, -0.0, 0.5, -0.5, 6, 7, 20, -20], numpy_type(name))
        if op in ('SqrtGrad', 'RsqrtGrad', 'ReciprocalGrad', 'InvGrad'):
            x = x[x != 0]
        yield Case([x, values(name, x.shape)])
    if op in ('SigmoidGrad', 'TanhGrad', 'SqrtGrad', 'ReciprocalGrad', 'InvGrad'):  # Only as many elements must agree.
        for shape, other in ([1], []), ([], [1, 1]), ([2, 3], [6]):
            yield Case([nonzero(name, shape), values(name, other, key=2)])
        for shape, other in ([3], []), ([], [3]), ([3], [1]), ([0], []), ([2], [3]):
            yield Case([nonzero(name, shape), values(name, other, key=2)], error=True)
    if op.startswith(('Relu', 'Softplus')):
        yield Case([values(name, [2]), values(name, [3])], error=True)


@cases('AddN')
def add_n(op, types):
    name = types['T']
    for count in 1, 2, 3, 9, 17:
        yield Case([[values(name, [2, 3], key=i) for i in range(count)]])
    yield Case([[values(name, [], key=i) for i in range(3)]])
    yield Case([[values(name, [0, 2]) for i in range(3)]])
    yield Case([[values(name, [2]), values(name, [3])]], error=True)


@script('AccumulateNV2')
def accumulate_n(b, types):
    return [Step(*[b.op('AccumulateNV2', [values(name, [2, 3], key=i) for i in range(count)], shape=[2, 3])
                   for name in ('float32', 'float64', 'int32') for count in (1, 2, 5)])]


@cases('ApproximateEqual')
def approximately_equal(op, types):
    name = types['T']
    for shape in [], [0], [2, 3], [1037]:
        yield Case([values(name, shape), values(name, shape, key=1)], {'tolerance': 1.0})
    yield Case([values(name, [2]), values(name, [3])], error=True)


@cases('Cumsum', 'Cumprod')
def scan(op, types):
    name, index = types['T'], numpy_type(types['Tidx'])
    low, high = (1, 2) if op == 'Cumprod' else (-4, 4)
    for shape, axis in ([5], 0), ([2, 3], 1), ([2, 3, 4], -2), ([0], 0), ([3, 0], 0):
        for attrs in {}, {'exclusive': True}, {'reverse': True}, {'exclusive': True, 'reverse': True}:
            yield Case([values(name, shape, low, high), np.array(axis, index)], attrs)
    yield Case([values(name, [2, 3]), np.array(2, index)], error=True)
    yield Case([values(name, [2, 3]), np.array([0, 1], index)], error=True)


@cases('ClipByValue')
def clip(op, types):
    name = types['T']
    low, high = np.array(-2 if name[0] != 'u' else 1, numpy_type(name)), np.array(2, numpy_type(name))
    if name in COMPLEX:
        return
    for shape in [], [0], [3, 2], [1037]:
        yield Case([values(name, shape, -5, 5), low, high])
    yield Case([values(name, [2, 3]), np.broadcast_to(low, [2, 3]), np.broadcast_to(high, [2, 3])])
    yield Case([values(name, [2, 3]), values(name, [2]), high], error=True)


@cases('Select')
def select(op, types):
    name = types['T']
    for shape in [], [3], [2, 3], [0], [1037]:
        yield Case([values('bool', shape), values(name, shape, key=1), values(name, shape, key=2)])
    yield Case([np.array(True), values(name, [2, 3], key=1), values(name, [2, 3], key=2)])
    yield Case([np.array([True, False]), values(name, [2, 3], key=1), values(name, [2, 3], key=2)])
    yield Case([np.array([True, False]), values(name, [3, 2]), values(name, [3, 2])], error=True)
    yield Case([np.array([True, False]), values(name, [2]), values(name, [3])], error=True)


@cases('SelectV2')
def select_v2(op, types):
    name = types['T']
    for c, a, b in ([], [], []), ([3], [3], [3]), ([2, 1], [3], []), ([], [2, 3], [3]), ([0], [0], [1]), ([4, 1, 1], [2, 1], [3]):
        yield Case([values('bool', c), values(name, a, key=1), values(name, b, key=2)])
    yield Case([values('bool', [1037]), values(name, [1037], key=1), values(name, [1037], key=2)])
    yield Case([values('bool', [2]), values(name, [3]), values(name, [3])], error=True)


@cases('BroadcastGradientArgs', 'BroadcastArgs')
def broadcast_shapes(op, types):
    dtype = numpy_type(types['T'])
    for a, b in ([], []), ([2, 3], [3]), ([2, 1], [1, 3]), ([1], []), ([5, 1, 4], [3, 1]), ([0], [1]), ([1, 1], [1]):
        yield Case([np.array(a, dtype), np.array(b, dtype)])
    yield Case([np.array([2], dtype), np.array([3], dtype)], error=True)


@cases('Cast')
def cast(op, types):
    source, target = types['SrcT'], types['DstT']
    if 'string' in (source, target):
        return
    attrs = {'DstT': target}
    x = long(source, -9, 9)
    if source in FLOATS and (target in INTS):
        yield Case([np.abs(x) if target[0] == 'u' else x], attrs)
    elif source in COMPLEX and target not in COMPLEX:
        x = (np.abs(x.real) if target[0] == 'u' else x.real).astype(x.dtype)
        yield Case([x], attrs)
    else:
        yield Case([x], attrs)
        yield Case([edges(source)], attrs)
    yield Case([values(source, [0, 2])], attrs)
    if source in FLOATS and target in FLOATS:
        yield Case([edges(source)], dict(attrs, Truncate=True))


types_for('SrcT', FLOATS + COMPLEX + INTS + ['bool'], 'Cast')
types_for('DstT', FLOATS + COMPLEX + INTS + ['bool'], 'Cast')


@cases('Sum', 'Prod', 'Mean', 'Max', 'Min', 'All', 'Any', 'EuclideanNorm')
def reduction(op, types):
    name, index = types.get('T', 'bool'), numpy_type(types.get('Tidx', 'int32'))
    low, high = (1, 2) if op == 'Prod' else (-4, 4)
    shapes = [([], []), ([5], [0]), ([5], []), ([2, 3], [0]), ([2, 3], [1]), ([2, 3], [-1]), ([2, 3], [0, 1]), ([2, 3, 4], [1]),
              ([2, 3, 4], [0, 2]), ([2, 3, 4, 5], [1, 3]), ([2, 3, 4, 5, 2], [0, 2, 4]), ([1, 7, 1], [0, 1]), ([1037], [0]),
              ([17, 33], [0]), ([17, 33], [1]), ([3, 4], [1, 0])]
    for shape, axes in shapes:
        if op == 'Mean' and name in ('int8', 'uint8') and 1037 in shape:
            continue  # TensorFlow's count overflows
        yield Case([values(name, shape, low, high), np.array(axes, index)])
    for shape, axes in ([2, 3, 4], [1]), ([2, 3], [0, 1]), ([], []):
        yield Case([values(name, shape, low, high), np.array(axes, index)], {'keep_dims': True})
    yield Case([values(name, [2, 3], low, high), np.array(1, index)])
    if op not in ('Mean', 'Max', 'Min', 'EuclideanNorm'):
        yield Case([values(name, [0, 3]), np.array([0], index)])
        yield Case([values(name, [0]), np.array([0], index)])
    yield Case([values(name, [3, 0]), np.array([0], index)])
    if is_float(name) and op in ('Sum', 'Max', 'Min', 'Mean'):
        special = np.array([[1, np.inf, 2], [np.nan, 0, 1], [-np.inf, 3, 1]], numpy_type(name))
        yield Case([special if op in ('Sum', 'Mean') else special[::2], np.array([1], index)])
    for axes in [2], [-3]:
        yield Case([values(name, [2, 3]), np.array(axes, index)], error=True)
    yield Case([values(name, [2, 3]), np.array([0, 0], index)], error=True)


@cases('ArgMax', 'ArgMin')
def arg_extreme(op, types):
    name, index = types['T'], numpy_type(types.get('Tidx', 'int32'))
    attrs = {'output_type': types.get('output_type', 'int64')}
    for shape, axis in ([5], 0), ([2, 3], 0), ([2, 3], 1), ([2, 3], -1), ([2, 3, 4], 1), ([1, 1], 0), ([1037], 0), ([0, 3], 1):
        yield Case([values(name, shape, -50, 50), np.array(axis, index)], attrs)
    yield Case([np.array([[2, 2, 1], [1, 2, 2]]).astype(numpy_type(name)), np.array(1, index)], attrs)
    yield Case([values(name, [2, 3]), np.array(2, index)], attrs, error=True)
    yield Case([values(name, [2, 0]), np.array(1, index)], attrs, error=True)


types_for('Tidx', ['int32', 'int64'], 'ArgMax', 'ArgMin')
types_for('output_type', ['int64', 'int32'], 'ArgMax', 'ArgMin')


@cases('MatMul')
def matmul(op, types):
    name = types['T']
    for m, k, n in (1, 1, 1), (2, 3, 4), (5, 1, 7), (1, 9, 1), (0, 3, 2), (2, 0, 3), (2, 3, 0), (17, 33, 9), (100, 64, 10):
        yield Case([values(name, [m, k]), values(name, [k, n], key=1)])
    for ta, tb in (True, False), (False, True), (True, True):
        yield Case([values(name, [3, 5] if ta else [5, 3]), values(name, [4, 3] if tb else [3, 4], key=1)],
                   {'transpose_a': ta, 'transpose_b': tb})
    yield Case([values(name, [2, 3]), values(name, [2, 3])], error=True)
    yield Case([values(name, [3]), values(name, [3, 2])], error=True)
    yield Case([values(name, [1, 2, 3]), values(name, [3, 2])], error=True)


@cases('BatchMatMul', 'BatchMatMulV2', 'BatchMatMulV3')
def batch_matmul(op, types):
    name = types.get('T') or types['Ta']
    attrs = {'Tout': types['Tout']} if 'Tout' in types else {}
    if types.get('Tb', name) != name or types.get('Tout', name) != name:
        return
    for a, b in ([2, 3], [3, 4]), ([5, 2, 3], [5, 3, 4]), ([2, 2, 1, 3], [2, 2, 3, 2]), ([0, 2, 3], [0, 3, 4]), ([3, 2, 0], [3, 0, 2]):
        yield Case([values(name, a), values(name, b, key=1)], attrs)
    yield Case([values(name, [2, 4, 3]), values(name, [2, 5, 4], key=1)], dict(attrs, adj_x=True, adj_y=True))
    if op != 'BatchMatMul':
        yield Case([values(name, [4, 1, 2, 3]), values(name, [5, 3, 2], key=1)], attrs)
    yield Case([values(name, [2, 2, 3]), values(name, [2, 2, 3])], attrs, error=True)
    yield Case([values(name, [2, 2, 3]), values(name, [3, 3, 2])], attrs, error=True)
    yield Case([values(name, [3]), values(name, [3, 2])], attrs, error=True)


@cases('L2Loss')
def l2_loss(op, types):
    for shape in [], [0], [3], [2, 3], [1037]:
        yield Case([values(types['T'], shape)])


@cases('Range')
def number_range(op, types):
    dtype = numpy_type(types['Tidx'])
    for start, limit, delta in (0, 5, 1), (3, 18, 3), (0, 0, 1), (2, 3, 1), (10, 0, -3):
        if delta < 0 and types['Tidx'][0] == 'u':
            continue
        yield Case([np.array(v, dtype) for v in (start, limit, delta)])
    if is_float(types['Tidx']):
        for start, limit, delta in (0, 100, 0.1), (0, 3, 0.07), (1, 2000, 1.5), (5, -5, -0.3), (0.5, 0.5, 0.25):
            yield Case([np.array(v, dtype) for v in (start, limit, delta)])
    yield Case([np.array(v, dtype) for v in (0, 5, 0)], error=True)
    yield Case([np.array(v, dtype) for v in (5, 0, 1)], error=True)
    yield Case([np.array([0], dtype), np.array([0, 1], dtype), np.array(1, dtype)], error=True)


@cases('LinSpace')
def lin_space(op, types):
    dtype, index = numpy_type(types['T']), numpy_type(types['Tidx'])
    for start, stop, count in (0, 1, 5), (-2, 3, 1), (1, 1, 3), (4, -4, 9):
        yield Case([np.array(start, dtype), np.array(stop, dtype), np.array(count, index)])
    yield Case([np.array(0, dtype), np.array(1, dtype), np.array(0, index)], error=True)


@cases('Complex')
def complex_number(op, types):
    attrs = {'Tout': 'complex64' if types['T'] == 'float32' else 'complex128'}
    for a, b in BROADCASTS[:6]:
        yield Case([values(types['T'], a), values(types['T'], b, key=1)], attrs)
    yield Case([values(types['T'], [2]), values(types['T'], [3])], attrs, error=True)


types_for('Tout', ['complex64'], 'Complex')


@cases('LeftShift', 'RightShift')
def shift(op, types):
    name = types['T']
    bits = 8 * numpy_type(name).itemsize
    for a, b in BROADCASTS[:6]:
        yield Case([values(name, a, 0, 60), values(name, b, 0, 5, key=1)])
    yield Case([edges(name), np.array(1, numpy_type(name))])
    # Beyond the width TensorFlow clamps the count.
    yield Case([np.full([3], 3, numpy_type(name)), np.array([bits - 1, bits, bits + 1]).astype(numpy_type(name))])


@cases('CumulativeLogsumexp')
def cumulative_logsumexp(op, types):
    for attrs in {}, {'exclusive': True}, {'reverse': True}:
        yield Case([values(types['T'], [3, 5]), np.array(1, numpy_type(types['Tidx']))], attrs)


@cases('Lgamma', 'Digamma', 'Erfinv', 'Ndtri')
def special(op, types):
    name = types['T']
    low, high = {'Erfinv': (-0.99, 0.99), 'Ndtri': (0.01, 0.99)}.get(op, (0.1, 9))
    for shape in [], [0], [2, 3, 4], [1037]:
        yield Case([values(name, shape, low, high)])
    if op in ('Erfinv', 'Ndtri'):
        yield Case([np.array([-1, 0, 0.5, 1, 2, np.nan], numpy_type(name))])
    else:
        yield Case([values(name, [40], -3.9, -3.1)])


@cases('Polygamma', 'Zeta')
def of_orders(op, types):
    name = types['T']
    orders = np.array([1, 2, 3, 7], numpy_type(name)) + (1 if op == 'Zeta' else 0)
    yield Case([orders, values(name, [5, 4], 0.5, 9)])
    yield Case([orders[:1], values(name, [200], 0.5, 30)])
    yield Case([orders, values(name, [3])], error=True)

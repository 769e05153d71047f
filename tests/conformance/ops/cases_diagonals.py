# SPDX-License-Identifier: Apache-2.0
"""Diagonals and bands of matrices."""
import numpy as np

from cases import Case, cases, numpy_type, types_for, values

# One type of each size.
PLAIN = ['bool', 'float16', 'float32', 'int64', 'complex128']
types_for('T', PLAIN, *['Matrix%s%s' % (op, form) for op in ('Diag', 'DiagPart', 'SetDiag') for form in ('', 'V2', 'V3')],
          'MatrixBandPart')
BOUNDS = [0, 1, -2, [-1, 1], [0, 2], [-2, -1], [-1, 0], [1, 1]]


def _aligned(op):
    """Pairs of attributes and diagonals: each alignment where it makes a difference."""
    if not op.endswith('V3'):
        return [({}, k) for k in BOUNDS]
    return [({}, k) for k in BOUNDS] + [({'align': one}, k) for one in ('LEFT_RIGHT', 'LEFT_LEFT', 'RIGHT_RIGHT')
                                        for k in ([-1, 1], [-2, -1])]


def _k(k):
    return np.array(k, np.int32)


def _scalar(dtype, value=0):
    return values(dtype, [], value, value)


def _extent(k, rows, columns):
    """(number of diagonals, longest) of a [rows, columns] matrix."""
    lower, upper = (k, k) if isinstance(k, int) else k
    return upper - lower + 1, min(rows + min(upper, 0), columns + min(-lower, 0))


@cases('MatrixDiagPart', 'MatrixDiagPartV2', 'MatrixDiagPartV3')
def diag_part(op, types):
    dtype = types['T']
    shapes = [[3, 4], [2, 4, 3], [3, 3]]
    if op == 'MatrixDiagPart':
        for shape in shapes + [[0, 0], [0, 2, 2]]:
            yield Case([values(dtype, shape)])
        yield Case([values(dtype, [3])], error=True)
        return
    for attrs, k in _aligned(op):
        for shape in shapes:
            yield Case([values(dtype, shape), _k(k), _scalar(dtype, 1)], attrs)
    for k in 9, [1, 0], [0, 1, 2], [-9, 0]:
        yield Case([values(dtype, [3, 4]), _k(k), _scalar(dtype)], error=True)


@cases('MatrixDiag', 'MatrixDiagV2', 'MatrixDiagV3')
def diag(op, types):
    dtype = types['T']
    if op == 'MatrixDiag':
        for shape in [3], [2, 3], [0], [2, 1, 2]:
            yield Case([values(dtype, shape)])
        yield Case([values(dtype, [])], error=True)
        return
    for attrs, k in _aligned(op):
        count, longest = _extent(k, 3, 4)
        shape = [2] + ([count] if count > 1 else []) + [longest]
        for rows, columns in [(3, 4), (-1, -1), (3, -1), (-1, 4)] if k in ([0, 2], -2) else [(3, 4)]:
            yield Case([values(dtype, shape), _k(k), _k(rows), _k(columns), _scalar(dtype, 1)], attrs)
    for k, rows, columns in (0, 2, -1), (0, 5, 6), ([1, 0], -1, -1), ([0, 2], -1, -1):
        yield Case([values(dtype, [2, 3]), _k(k), _k(rows), _k(columns), _scalar(dtype)], error=True)


@cases('MatrixSetDiag', 'MatrixSetDiagV2', 'MatrixSetDiagV3')
def set_diag(op, types):
    dtype = types['T']
    for attrs, k in _aligned(op) if op != 'MatrixSetDiag' else [({}, 0)]:
        for rows, columns in (3, 4), (4, 3):
            count, longest = _extent(k, rows, columns)
            shape = [2] + ([count] if count > 1 else []) + [longest]
            more = [_k(k)] if op != 'MatrixSetDiag' else []
            yield Case([values(dtype, [2, rows, columns]), values(dtype, shape, key=1)] + more, attrs)
    more = [_k(0)] if op != 'MatrixSetDiag' else []
    yield Case([values(dtype, [2, 3, 4]), values(dtype, [2, 4])] + more, error=True)
    yield Case([values(dtype, [3]), values(dtype, [3])] + more, error=True)


@cases('MatrixBandPart')
def band_part(op, types):
    index = numpy_type(types['Tindex'])
    for shape in [3, 4], [2, 4, 3], [0, 3]:
        for lower, upper in (0, 0), (-1, 0), (0, -1), (1, 2), (-1, -1):
            if lower <= shape[-2] and upper <= shape[-1]:
                yield Case([values(types['T'], shape), np.array(lower, index), np.array(upper, index)])
    yield Case([values(types['T'], [3, 4]), np.array(4, index), np.array(0, index)], error=True)
    yield Case([values(types['T'], [3]), np.array(0, index), np.array(0, index)], error=True)
    yield Case([values(types['T'], [3, 4]), np.array([0], index), np.array(0, index)], error=True)


@cases('Diag')
def tensor_diag(op, types):
    for shape in [3], [2, 3], [0]:
        yield Case([values(types['T'], shape)])
    yield Case([values(types['T'], [])], error=True)


@cases('DiagPart')
def tensor_diag_part(op, types):
    for shape in [3, 3], [2, 3, 2, 3], [0, 0]:
        yield Case([values(types['T'], shape)])
    yield Case([values(types['T'], [])])
    for shape in [3], [2, 3]:
        yield Case([values(types['T'], shape)], error=True)

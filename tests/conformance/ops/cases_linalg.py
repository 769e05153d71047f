# SPDX-License-Identifier: Apache-2.0
"""Decompositions and functions of matrices, systems, sums of products by an equation, Fourier transforms."""
import numpy as np
import tensorflow as tf

from cases import Case, Step, cases, numpy_type, script, types_for, values

types_for('T', ['float32', 'float64', 'complex64', 'complex128'], 'Cholesky', 'CholeskyGrad', 'MatrixInverse', 'MatrixDeterminant',
          'LogMatrixDeterminant', 'MatrixSolve', 'MatrixTriangularSolve', 'MatrixSolveLs', 'Lu', 'Qr', 'Svd', 'SelfAdjointEigV2', 'Eig',
          'MatrixSquareRoot', 'MatrixExponential', 'MatrixLogarithm')
types_for('T', ['complex64', 'complex128'], 'MatrixLogarithm')
SHAPES = [[3, 3], [1, 1], [2, 4, 4], [2, 1, 3, 3], [0, 0], [0, 2, 2], [20, 20]]


def _adjoint(x):
    return np.conj(np.swapaxes(x, -1, -2))


def _regular(name, shape, key=0):
    """Far from singular: values around a diagonal that outweighs them, which is not sorted."""
    n = shape[-1]
    order = np.diag(2 + 3 * ((np.arange(n) * 7) % max(n, 1)))
    return (values(name, shape, -1, 1, key) + order).astype(numpy_type(name))


def _positive(name, shape):
    x = values(name, shape, -1, 1)
    return (x @ _adjoint(x) + np.diag(1 + np.arange(shape[-1]))).astype(numpy_type(name))


def _not_matrices(name, *more):
    yield Case([values(name, [3])] + list(more), error=True)


def _not_square(name, *more):
    yield from _not_matrices(name, *more)
    yield Case([values(name, [2, 3])] + list(more), error=True)


@cases('Cholesky')
def cholesky(op, types):
    name = types['T']
    for shape in SHAPES:
        yield Case([_positive(name, shape)])
    yield Case([np.triu(_positive(name, [3, 3]))])
    yield from _not_square(name)


@cases('CholeskyGrad')
def cholesky_grad(op, types):
    name = types['T']
    for shape in [3, 3], [2, 4, 4], [0, 0]:
        lower = np.tril(_regular(name, shape))
        yield Case([lower, np.tril(values(name, shape, -1, 1, 2))])
    yield from _not_square(name, values(name, [2, 3]))


@cases('MatrixInverse')
def inverse(op, types):
    name = types['T']
    for shape in SHAPES:
        for adjoint in False, True:
            yield Case([_regular(name, shape)], {'adjoint': adjoint})
    yield Case([np.zeros([2, 2], numpy_type(name))], error=True)
    yield from _not_square(name)


@cases('MatrixDeterminant', 'LogMatrixDeterminant')
def determinant(op, types):
    name = types['T']
    for shape in SHAPES:
        yield Case([_regular(name, shape)])
    yield Case([-_regular(name, [3, 3])[::-1]])
    yield Case([np.zeros([2, 2], numpy_type(name))])
    yield from _not_square(name)


@cases('MatrixSolve')
def solve(op, types):
    name = types['T']
    for shape in SHAPES:
        for columns in 1, 3:
            for adjoint in False, True:
                yield Case([_regular(name, shape), values(name, shape[:-1] + [columns])], {'adjoint': adjoint})
    yield Case([_regular(name, [3, 3]), values(name, [3, 0])])
    yield Case([np.zeros([2, 2], numpy_type(name)), values(name, [2, 1])], error=True)
    yield Case([_regular(name, [3, 3]), values(name, [2, 1])], error=True)
    yield Case([_regular(name, [2, 3, 3]), values(name, [3, 1])], error=True)
    yield from _not_square(name, values(name, [2, 1]))


@cases('MatrixTriangularSolve')
def triangular_solve(op, types):
    name = types['T']
    for lower in True, False:
        for adjoint in False, True:
            attrs = {'lower': lower, 'adjoint': adjoint}
            for a, b in ([3, 3], [3, 2]), ([2, 4, 4], [2, 4, 1]), ([4, 4], [2, 4, 1]), ([3, 1, 2, 2], [2, 2, 2]), ([1, 1], [1, 1]):
                yield Case([_regular(name, a), values(name, b)], attrs)
    yield Case([_regular(name, [3, 3]), values(name, [2, 1])], error=True)
    yield Case([_regular(name, [2, 3, 3]), values(name, [3, 3, 1])], error=True)
    yield from _not_square(name, values(name, [2, 1]))


@cases('MatrixSolveLs')
def least_squares(op, types):
    name = types['T']
    for fast in True, False:
        for shape in [4, 2], [3, 3], [2, 5, 2], [2, 4]:
            for regularizer in 0.0, 0.5:
                a = values(name, shape, -1, 1) + np.eye(shape[-2], shape[-1]) * 3
                yield Case([a.astype(numpy_type(name)), values(name, shape[:-1] + [2]), np.float64(regularizer)], {'fast': fast})
    a = values(name, [3, 2])
    yield Case([a, values(name, [2, 1]), np.float64(0)], error=True)
    yield Case([a, values(name, [3, 1]), np.float64(-1)], error=True)
    yield Case([a, values(name, [3, 1]), np.zeros([1])], error=True)
    yield Case([np.zeros([3, 2], numpy_type(name)), values(name, [3, 1]), np.float64(0)], error=True)


@cases('Lu')
def lu(op, types):
    name = types['T']
    for shape in SHAPES:
        yield Case([_regular(name, shape)[..., ::-1, :]], {'output_idx_type': types['output_idx_type']})
    yield Case([np.zeros([2, 2], numpy_type(name))], {'output_idx_type': types['output_idx_type']}, error=True)
    yield from _not_square(name)


@cases('Qr')
def qr(op, types):
    name = types['T']
    for shape in [3, 3], [5, 2], [2, 5], [2, 4, 3], [1, 1], [0, 3, 2], [3, 0]:
        for full in False, True:
            yield Case([values(name, shape)], {'full_matrices': full})
    yield from _not_matrices(name)


# Vectors are told up to a factor of size 1 and, of general matrices, in any order: what they make up is compared.
def _scaled(vectors, sizes):
    return vectors * tf.cast(tf.expand_dims(sizes, -2), vectors.dtype)


def _unit(vectors):
    return tf.matmul(vectors, vectors, adjoint_a=True)


@script('Svd')
def svd(b, types):
    name = types['T']
    made, wrong = [], b.op('Svd', b.hidden(values(name, [3])))[0]
    for shape in [3, 3], [5, 2], [2, 5], [2, 4, 3], [1, 1], [0, 3, 2], [20, 17]:
        k = min(shape[-2:])
        x = b.hidden(values(name, shape))
        for full in False, True:
            s, u, v = b.op('Svd', x, full_matrices=full)
            made += [s, _unit(u), _unit(v), tf.matmul(_scaled(u[..., :k], s), v[..., :k], adjoint_b=True)]
        made.append(b.op('Svd', x, compute_uv=False)[0])
    return [Step(*made), Step(wrong, error=True)]


@script('SelfAdjointEigV2')
def self_adjoint(b, types):
    name = types['T']
    made = []
    for shape in SHAPES:
        x = b.hidden(_positive(name, shape))
        e, v = b.op('SelfAdjointEigV2', x)
        made += [e, _unit(v), tf.matmul(_scaled(v, e), v, adjoint_b=True), b.op('SelfAdjointEigV2', x, compute_v=False)[0]]
    return [Step(*made)] + [Step(b.op('SelfAdjointEigV2', b.hidden(values(name, shape)))[0], error=True) for shape in ([3], [2, 3])]


@script('Eig')
def eigen(b, types):
    name, out = types['T'], types['Tout']
    if out != ('complex64' if name in ('float32', 'complex64') else 'complex128'):
        return []
    made = []
    for shape in SHAPES:
        x = b.hidden(_regular(name, shape))
        e, v = b.op('Eig', x, Tout=out)
        alone = b.op('Eig', x, compute_v=False, Tout=out)[0]
        gap = tf.matmul(tf.cast(x, out), v) - _scaled(v, e)
        made += [tf.abs(gap) < 1e-3, tf.reduce_sum(alone, -1), tf.reduce_sum(alone * alone, -1), tf.reduce_sum(e, -1)]
    return [Step(*made), Step(b.op('Eig', b.hidden(values(name, [2, 3])), Tout=out)[0], error=True)]


@cases('MatrixSquareRoot', 'MatrixLogarithm')
def roots(op, types):
    for shape in SHAPES[:-1]:
        yield Case([_positive(types['T'], shape)])
    yield from _not_square(types['T'])


@cases('BandedTriangularSolve')
def banded_solve(op, types):
    name = types['T']
    for lower in True, False:
        for adjoint in False, True:
            attrs = {'lower': lower, 'adjoint': adjoint}
            for a, b in ([1, 4], [4, 2]), ([2, 4], [4, 2]), ([3, 5], [5, 1]), ([2, 3, 6], [2, 6, 2]), ([2, 4], [3, 4, 1]), (
                    [2, 1, 2, 3], [2, 3, 2]), ([4, 3], [3, 1]):
                yield Case([values(name, a, 1, 3), values(name, b)], attrs)
    yield Case([np.zeros([2, 3], numpy_type(name)), values(name, [3, 1])], error=True)
    yield Case([values(name, [2, 3], 1, 3), values(name, [2, 1])], error=True)
    yield Case([values(name, [2, 2, 3], 1, 3), values(name, [3, 3, 1])], error=True)
    yield Case([values(name, [3]), values(name, [3, 1])], error=True)
    yield Case([values(name, [0, 3]), values(name, [3, 1])], error=True)


@cases('TridiagonalMatMul')
def tridiagonal_product(op, types):
    name = types['T']
    for batch, n, columns in ([], 4, 2), ([2], 3, 1), ([2, 2], 5, 3), ([], 1, 2), ([], 2, 1):
        diagonals = [values(name, batch + [1, n], key=k) for k in range(3)]
        yield Case(diagonals + [values(name, batch + [n, columns])])
    good = [values(name, [1, 3], key=k) for k in range(3)]
    yield Case(good[:2] + [values(name, [1, 4]), values(name, [3, 1])], error=True)
    yield Case(good + [values(name, [4, 1])], error=True)
    yield Case(good + [values(name, [3])], error=True)


@cases('TridiagonalSolve')
def tridiagonal_solve(op, types):
    name = types['T']
    for pivoting in True, False:
        for batch, n, columns in ([], 4, 2), ([2], 3, 1), ([2, 2], 5, 3), ([], 1, 2), ([], 2, 1), ([], 40, 1), ([], 0, 1):
            diagonals = values(name, batch + [3, n])
            diagonals[..., 1, :] += 9
            yield Case([diagonals.astype(numpy_type(name)), values(name, batch + [n, columns])], {'partial_pivoting': pivoting})
    for perturb in False, True:
        x = values(name, [3, 6])
        x[1, 0] = 0  # only rows in another order have a solution
        yield Case([x, values(name, [6, 2])], {'perturb_singular': perturb})
    if name in ('float32', 'float64'):
        for pivoting in True, False:
            yield Case([np.zeros([3, 3], name), values(name, [3, 1])], {'partial_pivoting': pivoting})
            yield Case([np.zeros([3, 1], name), values(name, [1, 1])], {'partial_pivoting': pivoting})
    yield Case([values(name, [3, 3]), values(name, [3, 1])], {'partial_pivoting': False, 'perturb_singular': True}, error=True)
    yield Case([values(name, [2, 3]), values(name, [3, 1])], error=True)
    yield Case([values(name, [3, 3]), values(name, [4, 1])], error=True)
    yield Case([values(name, [2, 3, 3]), values(name, [3, 1])], error=True)
    yield Case([values(name, [3]), values(name, [3, 1])], error=True)


@cases('SparseMatMul')
def sparse_matmul(op, types):
    a, b = types['Ta'], types['Tb']
    for ta in False, True:
        for tb in False, True:
            attrs = {'transpose_a': ta, 'transpose_b': tb, 'a_is_sparse': True, 'b_is_sparse': ta}
            x = values(a, [4, 3] if ta else [3, 4])
            x = np.where(x > 0, x, np.zeros([], x.dtype)).astype(x.dtype)
            yield Case([x, values(b, [2, 4] if tb else [4, 2])], attrs)
    yield Case([values(a, [0, 3]), values(b, [3, 2])])
    yield Case([values(a, [2, 0]), values(b, [0, 2])])
    yield Case([values(a, [2, 3]), values(b, [2, 3])], error=True)
    yield Case([values(a, [3]), values(b, [3, 2])], error=True)


def _old_graph():
    """The default graph becomes one of a program so old that it may hold deprecated ops."""
    old = tf.compat.v1.GraphDef()
    old.versions.producer = 8
    tf.graph_util.import_graph_def(old, name='')


@script('BatchCholesky', 'BatchCholeskyGrad', 'BatchMatrixInverse', 'BatchMatrixSolve', 'BatchMatrixSolveLs',
        'BatchMatrixTriangularSolve', 'BatchMatrixDeterminant', 'BatchMatrixDiag', 'BatchMatrixDiagPart', 'BatchMatrixSetDiag',
        'BatchMatrixBandPart', 'MatrixExponential')
def old_names(b, types):
    _old_graph()
    name = types['T']
    x, y = b.hidden(_positive(name, [2, 3, 3])), b.hidden(values(name, [2, 3, 2]))
    lower = b.op('BatchCholesky', x)
    half = np.int64(1)
    made = [lower, b.op('BatchCholeskyGrad', lower, lower), b.op('BatchMatrixInverse', x), b.op('BatchMatrixSolve', x, y),
            b.op('BatchMatrixSolveLs', x, y, np.float64(0.1)), b.op('BatchMatrixTriangularSolve', lower, y),
            b.op('BatchMatrixDeterminant', x), b.op('BatchMatrixDiag', y), b.op('BatchMatrixDiagPart', x),
            b.op('BatchMatrixSetDiag', x, y[:, :, 0]), b.op('BatchMatrixBandPart', x, half, half), b.op('MatrixExponential', x)]
    wrong = b.op('BatchMatrixInverse', b.hidden(values(name, [2, 3])))
    return [Step(*made), Step(wrong, error=True)]


@script('BatchSelfAdjointEigV2', 'BatchSelfAdjointEig', 'SelfAdjointEig', 'BatchSvd')
def old_decompositions(b, types):
    _old_graph()
    name = types['T']
    x = b.hidden(_positive(name, [2, 3, 3]))
    e, v = b.op('BatchSelfAdjointEigV2', x)
    made = [e, _unit(v), b.op('BatchSvd', x)[0]]
    for op in 'SelfAdjointEig', 'BatchSelfAdjointEig':
        both = b.op(op, x)
        vectors = both[:, 1:, :]
        made += [both[:, 0, :], tf.matmul(_scaled(vectors, both[:, 0, :]), vectors, adjoint_b=True)]
    return [Step(*made), Step(b.op('SelfAdjointEig', b.hidden(values(name, [2, 3]))), error=True)]


@cases('Einsum')
def einsum(op, types):
    name = types['T']
    one = [('ij->ji', [2, 3]), ('ij->', [2, 3]), ('ij->i', [2, 3]), ('ii->i', [3, 3]), ('ii->', [3, 3]), ('i->ii', [3]),
           ('...ij->...ji', [2, 2, 3]), ('...->...', []), ('iij->j', [2, 2, 3]), ('abc->cab', [2, 3, 4]), ('ij->j', [0, 3])]
    two = [('ij,jk->ik', [2, 3], [3, 4]), ('bij,bjk->bik', [2, 3, 4], [2, 4, 2]), ('bij,bkj->bik', [2, 3, 4], [2, 5, 4]),
           ('i,j->ij', [2], [3]), ('i,i->', [3], [3]), ('ij,->ij', [2, 3], []), ('...ij,...jk->...ik', [2, 1, 2, 3], [4, 3, 2]),
           ('...ij,jk->...ik', [2, 2, 3], [3, 2]), ('ijk,k->ij', [2, 3, 4], [4]), ('ab,cb->ca', [2, 3], [4, 3]), ('ij,jk->k', [2, 3], [3, 4]),
           ('bthd,bshd->bhts', [2, 3, 2, 4], [2, 5, 2, 4]), ('ij,jk->ik', [0, 3], [3, 2]), ('ij,jk->ik', [2, 0], [0, 2]),
           ('i...,...->i...', [2, 3], [3])]
    for equation, shape in one:
        yield Case([[values(name, shape)]], {'equation': equation})
    for equation, a, b in two:
        yield Case([[values(name, a), values(name, b, key=1)]], {'equation': equation})
    x, y = values(name, [2, 3]), values(name, [3, 4])
    for equation, inputs in (('ij,jk', [x, y]), ('ij->ij->ij', [x]), ('ij,kl->ij', [x]), ('ijk->i', [x]), ('ij->k', [x]), ('ij,ik->jk', [x, y]),
                             ('i->i', [x])):
        yield Case([inputs], {'equation': equation}, error=True)


types_for('T', ['float32', 'float64', 'bfloat16', 'int32', 'int64', 'complex64', 'complex128'], 'Einsum')
LENGTHS = [1, 2, 3, 8, 12, 17, 30]


def _rank(op):
    return int(op[-2]) if op.endswith('D') else 1


@cases('FFT', 'IFFT', 'FFT2D', 'IFFT2D', 'FFT3D', 'IFFT3D')
def fourier(op, types):
    rank = _rank(op)
    for n in LENGTHS:
        yield Case([values(types['Tcomplex'], [2] + [3, 4, n][-rank:])])
    yield Case([values(types['Tcomplex'], [5, 4, 3])])
    yield Case([values(types['Tcomplex'], [0, 2, 3, 4])])
    yield Case([values(types['Tcomplex'], [3] * (rank - 1))], error=True)


@cases('RFFT', 'RFFT2D', 'RFFT3D', 'IRFFT', 'IRFFT2D', 'IRFFT3D')
def real_fourier(op, types):
    if (types['Treal'] == 'float32') != (types['Tcomplex'] == 'complex64'):
        return
    rank, inverse = _rank(op), op[0] == 'I'
    name = types['Tcomplex' if inverse else 'Treal']
    attrs = {'Treal': types['Treal'], 'Tcomplex': types['Tcomplex']}

    def lengths(*sizes):
        return np.array(sizes, np.int32)
    for n in LENGTHS:
        sizes = [3, 4, n][-rank:]
        held = sizes[:-1] + [n // 2 + 1 if inverse else n]
        yield Case([values(name, [2] + held), lengths(*sizes)], attrs)
        yield Case([values(name, [d + 2 for d in held]), lengths(*sizes)], attrs)
    whole = [4] * rank
    yield Case([values(name, whole), lengths(*whole, 4)], attrs, error=True)
    yield Case([values(name, whole), lengths(*[-1] * rank)], attrs, error=True)
    yield Case([values(name, whole[1:]), lengths(*whole)], attrs, error=True)
    yield Case([values(name, [2] * rank), lengths(*[9] * rank)], attrs, error=True)

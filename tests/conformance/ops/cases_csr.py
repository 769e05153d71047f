# SPDX-License-Identifier: Apache-2.0
"""Sparse matrices by rows in variants: made, multiplied, turned, factored, and taken out again."""
import numpy as np

from cases import Step, numpy_type, script, values


def _matrix(name, shape, key=0):
    """A matrix, or a batch, of which most elements are zero."""
    dense = values(name, shape, key=key)
    mask = np.random.RandomState(key + 5).rand(*shape) < 0.6
    return np.where(mask, np.zeros([], dense.dtype), dense).astype(numpy_type(name))


def _csr(b, dense):
    where = np.argwhere(dense != 0).astype(np.int64)
    picked = dense[tuple(where.T)]
    return b.op('SparseTensorToCSRSparseMatrix', b.constant(where), b.constant(picked), b.constant(np.array(dense.shape, np.int64)))


def _taken_out(b, matrix, name):
    return [b.op('CSRSparseMatrixToDense', matrix, type=name), b.op('SparseMatrixNNZ', matrix),
            *b.op('CSRSparseMatrixToSparseTensor', matrix, type=name),
            *b.op('CSRSparseMatrixComponents', matrix, np.int32(0), type=name)]


@script('SparseTensorToCSRSparseMatrix', 'CSRSparseMatrixToDense', 'CSRSparseMatrixToSparseTensor', 'CSRSparseMatrixComponents',
        'SparseMatrixNNZ', 'DenseToCSRSparseMatrix')
def conversions(b, types):
    name = types['T']
    steps = []
    for shape in [4, 3], [2, 3, 5], [1, 1], [3, 0], [0, 2]:
        dense = _matrix(name, shape)
        steps.append(Step(*_taken_out(b, _csr(b, dense), name)))
        where = np.argwhere(dense != 0).astype(np.int64)
        steps.append(Step(*_taken_out(b, b.op('DenseToCSRSparseMatrix', b.constant(dense), b.constant(where)), name)))
    one = _csr(b, _matrix(name, [2, 3, 3]))
    steps.append(Step(*b.op('CSRSparseMatrixComponents', one, np.int32(1), type=name)))
    steps.append(Step(*b.op('CSRSparseMatrixComponents', one, np.int32(2), type=name), error=True))
    other = 'float64' if name == 'float32' else 'float32'
    steps.append(Step(b.op('CSRSparseMatrixToDense', one, type=other), error=True))
    return steps


@script('SparseMatrixMatMul', 'SparseTensorToCSRSparseMatrix')
def by_dense(b, types):
    name = types['T']
    if name not in ('float32', 'float64', 'complex64', 'complex128'):
        return []
    steps = []
    for lead in [], [2]:
        a, right = _matrix(name, lead + [4, 3]), values(name, lead + [3, 2], key=1)
        square, other = _matrix(name, lead + [3, 3], 2), values(name, lead + [3, 3], key=3)
        steps.append(Step(b.op('SparseMatrixMatMul', _csr(b, a), b.hidden(right))))
        for attrs in ({'transpose_a': True}, {'transpose_b': True}, {'adjoint_a': True}, {'adjoint_b': True},
                      {'transpose_output': True}, {'conjugate_output': True}, {'adjoint_a': True, 'transpose_b': True}):
            steps.append(Step(b.op('SparseMatrixMatMul', _csr(b, square), b.hidden(other), **attrs)))
        steps.append(Step(b.op('SparseMatrixMatMul', _csr(b, a), b.hidden(other[..., :2, :])), error=True))
    return steps


@script('SparseMatrixSparseMatMul', 'SparseTensorToCSRSparseMatrix', 'CSRSparseMatrixToDense')
def by_sparse(b, types):
    name = types['type']
    steps = []
    for lead in [], [2]:
        a, right = _matrix(name, lead + [4, 3]), _matrix(name, lead + [3, 5], 1)
        square, other = _matrix(name, lead + [3, 3], 2), _matrix(name, lead + [3, 3], 3)
        for left_side, right_side, attrs in ((a, right, {}), (square, other, {'transpose_a': True}), (square, other, {'adjoint_b': True}),
                                             (square, other, {'transpose_b': True}), (square, other, {'adjoint_a': True})):
            product = b.op('SparseMatrixSparseMatMul', _csr(b, left_side), _csr(b, right_side), type=name, **attrs)
            steps.append(Step(b.op('CSRSparseMatrixToDense', product, type=name)))
    return steps


@script('SparseMatrixTranspose', 'SparseTensorToCSRSparseMatrix', 'CSRSparseMatrixToDense', 'SparseMatrixNNZ')
def transposes(b, types):
    name = types['type']
    steps = []
    for shape in [4, 3], [2, 3, 5]:
        for conjugate in False, True:
            turned = b.op('SparseMatrixTranspose', _csr(b, _matrix(name, shape)), conjugate=conjugate, type=name)
            steps.append(Step(*_taken_out(b, turned, name)))
        steps.append(Step(*_taken_out(b, b.op('Conj', _csr(b, _matrix(name, shape)), T='variant'), name)))
    return steps


@script('SparseMatrixSparseCholesky', 'SparseMatrixOrderingAMD', 'SparseTensorToCSRSparseMatrix', 'CSRSparseMatrixToDense')
def factors(b, types):
    name = types['type']
    steps = []
    for lead in [], [2]:
        half = _matrix(name, lead + [5, 5])
        positive = (half @ np.conj(np.swapaxes(half, -1, -2)) + 60 * np.eye(5)).astype(half.dtype)
        matrix = _csr(b, positive)
        order = b.op('SparseMatrixOrderingAMD', matrix)
        factor = b.op('SparseMatrixSparseCholesky', matrix, order, type=name)
        steps.append(Step(order, b.op('CSRSparseMatrixToDense', factor, type=name)))
        bad = b.op('SparseMatrixSparseCholesky', _csr(b, -positive), order, type=name)
        steps.append(Step(b.op('CSRSparseMatrixToDense', bad, type=name), error=True))
    return steps

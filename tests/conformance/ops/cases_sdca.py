# SPDX-License-Identifier: Apache-2.0
"""Linear models by dual ascent. Examples have features of their own, because their order is random."""
import numpy as np

from cases import Case, Step, cases, script, values

LOSSES = ['logistic_loss', 'squared_loss', 'hinge_loss', 'smooth_hinge_loss', 'poisson_loss']


def _state():
    """TensorFlow writes into what is fed where it need not copy it: this lies where it must."""
    state = np.zeros([13], np.float32)[1:].reshape([3, 4])
    state[:2, 0] = 0.2, -0.1
    return state


def _inputs(labels=(1, 0, 1), numbers=(5, 7, 9), dense=None):
    """Three examples: one sparse feature each, the first group with values, and a dense one of which one example has parts."""
    owners = np.array([0, 1, 2], np.int64)
    numbers = np.array(numbers, np.int64)
    dense = np.array([[0, 0], [0.5, -2], [0, 0]], np.float32) if dense is None else dense
    return [[owners, owners], [numbers, numbers], [values('float32', [3], 0.5, 2)], [dense], np.array([1, 2, 0.5], np.float32),
            np.array(labels, np.float32), [np.array([9, 5, 7], np.int64)] * 2, [values('float32', [3], -1, 1, 1), values('float32', [3], -1, 1, 2)],
            [values('float32', [2], -1, 1, 3)], _state()]


@cases('SdcaOptimizer', 'SdcaOptimizerV2')
def optimizer(op, types):
    attrs = {'num_sparse_features': 2, 'num_sparse_features_with_values': 1, 'num_dense_features': 1, 'num_inner_iterations': 1}
    for loss in LOSSES:
        for l1, l2, partitions in (0.0, 1.0, 1), (0.3, 2.0, 3):
            yield Case(_inputs(), {**attrs, 'loss_type': loss, 'l1': l1, 'l2': l2, 'num_loss_partitions': partitions})
    attrs.update(l1=0.0, l2=1.0, num_loss_partitions=1, loss_type='logistic_loss')
    yield Case(_inputs(labels=(1, 0.5, 1)), attrs, error=True)
    yield Case(_inputs(numbers=(5, 7, 8)), attrs, error=True)
    yield Case(_inputs(dense=np.zeros([3, 5], np.float32)), attrs, error=True)
    yield Case(_inputs(labels=(1, 0)), attrs, error=True)


@cases('SdcaFprint')
def fingerprint(op, types):
    texts = [bytes((i * 37 + n) % 256 for i in range(n)) for n in (0, 1, 3, 4, 7, 8, 15, 16, 17, 31, 32, 33, 64, 143, 144, 145, 200, 271, 272, 500)]
    yield Case([np.array(texts, object)])
    yield Case([np.array(b'a', object)], error=True)


@script('SdcaShrinkL1')
def shrink(b, types):
    first, init_first, read_first = b.variable(values('float32', [7], -2, 2))
    second, init_second, read_second = b.variable(values('float32', [3], -2, 2, 1))
    return [Step(init_first, init_second), Step(b.op('SdcaShrinkL1', [first, second], l1=1.0, l2=2.0)), Step(read_first, read_second)]

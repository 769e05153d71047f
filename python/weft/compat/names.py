# SPDX-License-Identifier: Apache-2.0
"""The module that stands for `tensorflow`: TensorFlow 1's names, those of 0.x beside them, and contrib."""
import sys

import tensorflow as real
import tensorflow.compat.v1 as tf

from weft.compat import contrib, mnist, orders, overlay, summaries

# A name of TensorFlow 0.x and what does the same in TensorFlow 1.
_RENAMED = {
    'mul': 'multiply', 'sub': 'subtract', 'neg': 'negative', 'inv': 'reciprocal', 'pack': 'stack', 'unpack': 'unstack',
    'select': 'where', 'listdiff': 'setdiff1d', 'complex_abs': 'abs',
    'batch_matmul': 'matmul', 'batch_cholesky': 'cholesky', 'batch_cholesky_solve': 'cholesky_solve',
    'batch_matrix_determinant': 'matrix_determinant', 'batch_matrix_inverse': 'matrix_inverse',
    'batch_matrix_solve': 'matrix_solve', 'batch_matrix_solve_ls': 'matrix_solve_ls',
    'batch_matrix_triangular_solve': 'matrix_triangular_solve', 'batch_matrix_diag': 'matrix_diag',
    'batch_matrix_diag_part': 'matrix_diag_part', 'batch_matrix_set_diag': 'matrix_set_diag',
    'batch_matrix_band_part': 'matrix_band_part', 'batch_matrix_transpose': 'matrix_transpose',
    'batch_self_adjoint_eig': 'self_adjoint_eig', 'batch_self_adjoint_eigvals': 'self_adjoint_eigvals', 'batch_svd': 'svd',
    'batch_fft': 'fft', 'batch_ifft': 'ifft', 'batch_fft2d': 'fft2d', 'batch_ifft2d': 'ifft2d', 'batch_fft3d': 'fft3d',
}
_RENAMED_IN_TRAIN = {'SummaryWriter': 'summary.FileWriter', 'SummaryWriterCache': 'summary.FileWriterCache'}
_RENAMED_IN_NN = {'rnn': 'nn.static_rnn', 'state_saving_rnn': 'nn.static_state_saving_rnn',
                  'bidirectional_rnn': 'nn.static_bidirectional_rnn'}
_RENAMED_IN_IMAGE = {'per_image_whitening': 'image.per_image_standardization'}

# What stands in `tensorflow` beside TensorFlow 1's names, by module. weft/program_names.py reads the names alone.
_OWN = {
    '': dict(concat=orders.concat, split=orders.split, sparse_split=orders.sparse_split, reverse=orders.reverse,
             **{name: getattr(summaries, name) for name in (
                 'scalar_summary', 'histogram_summary', 'image_summary', 'audio_summary', 'merge_summary',
                 'merge_all_summaries')}),
    'nn': {name: getattr(orders, name) for name in (
        'softmax_cross_entropy_with_logits', 'sparse_softmax_cross_entropy_with_logits',
        'sigmoid_cross_entropy_with_logits', 'sampled_softmax_loss', 'nce_loss')},
    'train': {'SyncReplicasOptimizer': orders.SyncReplicasOptimizer,
              'SyncReplicasOptimizerV2': orders.SyncReplicasOptimizer},
    'image': {'resize_images': orders.resize_images},
}


def _found(path):
    """The object at `path` of TensorFlow 1, or None where this release of the package has none (2.21 lacks RNNs)."""
    thing = tf
    for part in path.split('.'):
        thing = getattr(thing, part, None)
    return thing


def _renamed(names):
    found = {old: _found(new) for old, new in names.items()}
    return {old: thing for old, thing in found.items() if thing is not None}


def _module():
    inner = {
        'train': overlay.Overlay('tensorflow.train', {**_renamed(_RENAMED_IN_TRAIN), **_OWN['train']}, tf.train),
        'nn': overlay.Overlay('tensorflow.nn', {**_renamed(_RENAMED_IN_NN), **_OWN['nn']}, tf.nn),
        'image': overlay.Overlay('tensorflow.image', {**_renamed(_RENAMED_IN_IMAGE), **_OWN['image']}, tf.image),
        'contrib': contrib.module(),
        'examples': mnist.examples(),
    }
    own = {name: value for name, value in vars(real).items()
           if name in ('__path__', '__file__', '__version__', '__spec__', '__package__', '__doc__', '__loader__')}
    return overlay.Overlay('tensorflow', {**own, **_renamed(_RENAMED), **_OWN[''], **inner}, tf, real)


_installed = None


def install():
    global _installed
    if _installed is None:
        tf.disable_v2_behavior()
        _installed = _module()
        for name in 'contrib', 'examples', 'train', 'nn', 'image':
            overlay.register(getattr(_installed, name))
    sys.modules['tensorflow'] = _installed
    return _installed

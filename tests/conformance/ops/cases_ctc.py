# SPDX-License-Identifier: Apache-2.0
"""Labels in time: the loss, decoders, and how far sequences lie apart."""
import numpy as np

from cases import Case, cases, types_for, values


def _logits(name, steps, batch, classes, key=0):
    return values(name, [steps, batch, classes], -3, 3, key)


def _sparse(rows):
    indices = [[i, j] for i, row in enumerate(rows) for j in range(len(row))]
    return np.array(indices, np.int64).reshape([-1, 2]), np.array([x for row in rows for x in row], np.int32)


def _lengths(*lengths):
    return np.array(lengths, np.int32)


@cases('CTCLoss')
def ctc_loss(op, types):
    name = types['T']
    labels = [[0, 1, 1], [2], [3, 3, 0, 1]]
    for attrs in {}, {'ctc_merge_repeated': False}, {'preprocess_collapse_repeated': True}, {
            'preprocess_collapse_repeated': True, 'ctc_merge_repeated': False}:
        for lengths in _lengths(7, 7, 7), _lengths(5, 2, 7):
            yield Case([_logits(name, 7, 3, 5), *_sparse(labels), lengths], attrs)
    yield Case([_logits(name, 7, 3, 5), *_sparse([[0, 1], [2, 4], [3, 4, 4]]), _lengths(3, 3, 3)])
    yield Case([_logits(name, 3, 3, 5), *_sparse(labels), _lengths(3, 2, 3)], {'ignore_longer_outputs_than_inputs': True})
    yield Case([_logits(name, 3, 2, 5), *_sparse([[1], [2]]), _lengths(0, 3)], {'ignore_longer_outputs_than_inputs': True})
    yield Case([_logits(name, 3, 3, 5), *_sparse(labels), _lengths(3, 2, 3)], error=True)
    yield Case([_logits(name, 7, 3, 5), *_sparse([[0], [4, 1], [2]]), _lengths(7, 7, 7)], error=True)
    yield Case([_logits(name, 7, 3, 5), *_sparse([[0], [-1], [2]]), _lengths(7, 7, 7)], error=True)
    yield Case([_logits(name, 7, 3, 5), *_sparse(labels), _lengths(7, 7)], error=True)
    yield Case([_logits(name, 7, 3, 5), *_sparse(labels), _lengths(8, 7, 7)], error=True)
    yield Case([_logits(name, 7, 3, 5)[0], *_sparse(labels), _lengths(7, 7, 7)], error=True)
    indices, numbers = _sparse(labels)
    yield Case([_logits(name, 7, 3, 5), indices[:-1], numbers, _lengths(7, 7, 7)], error=True)
    yield Case([_logits(name, 7, 2, 5), indices, numbers, _lengths(7, 7)], error=True)


@cases('CTCGreedyDecoder')
def greedy(op, types):
    name = types['T']
    for attrs in {}, {'merge_repeated': True}, {'blank_index': 1}, {'blank_index': -3, 'merge_repeated': True}:
        yield Case([_logits(name, 12, 3, 3), _lengths(12, 0, 7)], attrs)
    yield Case([_logits(name, 4, 2, 3), _lengths(4, 4)], {'blank_index': 3}, error=True)
    yield Case([_logits(name, 4, 2, 3), _lengths(4, 5)], error=True)
    yield Case([_logits(name, 4, 2, 3), _lengths(4)], error=True)
    yield Case([_logits(name, 0, 2, 3), _lengths(0, 0)], error=True)
    yield Case([_logits(name, 4, 2, 3)[0], _lengths(4, 4)], error=True)


@cases('CTCBeamSearchDecoder')
def beams(op, types):
    name = types['T']
    for width, paths in (1, 1), (4, 2), (30, 5), (100, 3):
        for merges in False, True:
            for key in range(3):
                yield Case([_logits(name, 9, 3, 4, key), _lengths(9, 5, 7)],
                           {'beam_width': width, 'top_paths': paths, 'merge_repeated': merges})
    yield Case([_logits(name, 4, 2, 3), _lengths(0, 4)], {'beam_width': 3, 'top_paths': 1})
    yield Case([_logits(name, 4, 2, 3), _lengths(4, 4)], {'beam_width': 2, 'top_paths': 3}, error=True)
    yield Case([_logits(name, 4, 2, 3), _lengths(0, 4)], {'beam_width': 3, 'top_paths': 2}, error=True)
    yield Case([_logits(name, 4, 2, 3), _lengths(4, 5)], {'beam_width': 3, 'top_paths': 2}, error=True)


types_for('T', ['int64', 'int32', 'float32', 'bool', 'complex64', 'string'], 'EditDistance')


def _sequences(name, rows, size, key):
    indices = [[i, j, k] for (i, j), length in rows for k in range(length)]
    return [np.array(indices, np.int64).reshape([-1, 3]), values(name, [len(indices)], 0, 2, key), np.array(size, np.int64)]


@cases('EditDistance')
def edit_distance(op, types):
    name = types['T']
    hypothesis = [((0, 0), 4), ((0, 2), 3), ((1, 1), 1)]
    truth = [((0, 0), 5), ((0, 1), 2), ((1, 1), 3), ((1, 2), 2)]
    for normalize in False, True:
        yield Case(_sequences(name, hypothesis, [2, 3, 6], 0) + _sequences(name, truth, [2, 3, 7], 1), {'normalize': normalize})
        yield Case(_sequences(name, [], [2, 2, 3], 0) + _sequences(name, truth[:1], [1, 3, 7], 1), {'normalize': normalize})
        yield Case(_sequences(name, hypothesis, [2, 3, 6], 0) + _sequences(name, [], [2, 3, 7], 1), {'normalize': normalize})
    good = _sequences(name, hypothesis, [2, 3, 6], 0) + _sequences(name, truth, [2, 3, 7], 1)
    for wrong, value in (0, good[0][:, 0]), (1, good[1][:, None]), (2, good[2][:2]), (5, good[5][:, None]):
        yield Case([value if i == wrong else x for i, x in enumerate(good)], error=True)

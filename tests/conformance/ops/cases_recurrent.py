# SPDX-License-Identifier: Apache-2.0
"""Recurrent cells whose gates are one matrix product."""
import numpy as np

from cases import Case, Step, cases, script, values

BATCH, INPUTS, UNITS, STEPS = 3, 4, 5, 6


def _lstm_inputs(name, *lead):
    weights = [([INPUTS + UNITS, 4 * UNITS], 3), ([UNITS], 4), ([UNITS], 5), ([UNITS], 6), ([4 * UNITS], 7)]
    return [values(name, [*lead, BATCH, INPUTS], -1, 1), values(name, [BATCH, UNITS], -1, 1, 1), values(name, [BATCH, UNITS], -1, 1, 2)] + [
        values(name, shape, -1, 1, key) for shape, key in weights]


def _attrs():
    for peephole in False, True:
        yield {'use_peephole': peephole}
        yield {'use_peephole': peephole, 'cell_clip': 0.5}


@cases('LSTMBlockCell')
def lstm_cell(op, types):
    inputs = _lstm_inputs(types['T'])
    for attrs in _attrs():
        yield Case(inputs, {**attrs, 'forget_bias': 0.25})
    for wrong in 0, 1, 3, 7:
        yield Case([x[:-1] if i == wrong else x for i, x in enumerate(inputs)], error=True)


@cases('LSTMBlockCellGrad')
def lstm_cell_gradient(op, types):
    name = types['T']
    made = [values(name, [BATCH, UNITS], 0, 1, 10 + i) for i in range(8)]
    for peephole in False, True:
        yield Case(_lstm_inputs(name) + made, {'use_peephole': peephole})
    yield Case(_lstm_inputs(name) + made[:-1] + [made[-1][:2]], {'use_peephole': True}, error=True)


@cases('BlockLSTM', 'BlockLSTMV2')
def lstm_block(op, types):
    inputs = _lstm_inputs(types['T'], STEPS)
    for attrs in _attrs():
        yield Case([np.int64(STEPS)] + inputs, attrs)
    yield Case([np.int64(STEPS)] + inputs[:3] + [inputs[3][1:]] + inputs[4:], error=True)
    yield Case([np.int64(STEPS)] + [inputs[0][0]] + inputs[1:], error=True)


@script('BlockLSTM', 'BlockLSTMV2')
def short_sequences(b, types):
    """After the last step TensorFlow leaves all outputs but cs and h as they were."""
    steps = []
    for op in 'BlockLSTM', 'BlockLSTMV2':
        for length in 0, 2:
            outputs = b.op(op, np.int64(length), *_lstm_inputs(types['T'], STEPS))
            steps.append(Step(outputs[1], outputs[6]))
    return steps


@cases('BlockLSTMGrad', 'BlockLSTMGradV2')
def lstm_block_gradient(op, types):
    name = types['T']
    made = [values(name, [STEPS, BATCH, UNITS], 0, 1, 10 + i) for i in range(9)]
    for peephole in False, True:
        for length in STEPS, 2:
            yield Case([np.int64(length)] + _lstm_inputs(name, STEPS) + made, {'use_peephole': peephole})


def _gru_inputs():
    shapes = [[BATCH, INPUTS], [BATCH, UNITS], [INPUTS + UNITS, 2 * UNITS], [INPUTS + UNITS, UNITS], [2 * UNITS], [UNITS]]
    return [values('float32', shape, -1, 1, key) for key, shape in enumerate(shapes)]


@cases('GRUBlockCell')
def gru_cell(op, types):
    yield Case(_gru_inputs())
    for wrong in range(1, 6):
        yield Case([x[:-1] if i == wrong else x for i, x in enumerate(_gru_inputs())], error=True)


@cases('GRUBlockCellGrad')
def gru_cell_gradient(op, types):
    made = [values('float32', [BATCH, UNITS], 0, 1, 10 + i) for i in range(4)]
    yield Case(_gru_inputs() + made)
    yield Case(_gru_inputs() + made[:-1] + [made[-1][1:]], error=True)

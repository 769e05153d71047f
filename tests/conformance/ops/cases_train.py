# SPDX-License-Identifier: Apache-2.0
"""The seven optimizers: dense and sparse, on reference and on resource variables, through one generator."""
import numpy as np

from cases import Step, numpy_type, positive, script, values
from signatures import op_def

HYPERPARAMETERS = {'alpha': 0.1, 'lr': 0.1, 'momentum': 0.9, 'beta1_power': 0.9, 'beta2_power': 0.99, 'beta1': 0.9, 'beta2': 0.99,
                   'rho': 0.9, 'epsilon': 0.01, 'l1': 0.1, 'l2': 0.1, 'l2_shrinkage': 0.05, 'lr_power': -0.5,
                   'sign_decay': 0.9, 'beta': 0.9, 'logbase': 2.7}
POSITIVE_SLOTS = {'accum', 'accum_update', 'v', 'ms'}  # of which a root is taken
VARIANTS = [{}, {'use_locking': True}, {'use_nesterov': True}, {'update_slots': False}, {'multiply_linear_by_lr': True}]
DENSE = [[2, 3], [1037], []]
SPARSE = [[6, 3], [40, 17]]


def _inputs(b, op, shape, types, resource):
    """The op's inputs in order, and the variables among them."""
    name = types['T']
    inputs, variables = [], []
    ids = np.array([shape[0] - 1, 0, 2] if 'Sparse' in op else [], numpy_type(types.get('Tindices', 'int32')))
    for arg in op_def(op).input_arg:
        if arg.is_ref or arg.name in ('var', 'accum', 'accum_update', 'm', 'v', 'ms', 'mg', 'mom', 'linear', 'vhat'):
            # The centered second moment must exceed the square of the first, whose root is taken.
            start = positive(name, shape, key=arg.name) if arg.name in POSITIVE_SLOTS else values(name, shape, -1, 1, key=arg.name)
            start = (start * 3 + 2).astype(start.dtype) if arg.name == 'ms' else start
            variables.append(b.variable(start, ref=not resource))
            inputs.append(variables[-1][0])
        elif arg.name in ('grad', 'delta'):
            inputs.append(values(name, ([3] + shape[1:]) if 'Sparse' in op else shape, -1, 1, key='grad'))
        elif arg.name == 'indices':
            inputs.append(ids)
        else:
            inputs.append(np.array(HYPERPARAMETERS[arg.name]).astype(numpy_type(name)))
    return inputs, variables


def _optimizer(op, resource):
    sparse = 'Sparse' in op
    names = [arg.name for arg in op_def(op).input_arg]
    attrs = {attr.name for attr in op_def(op).attr}

    def steps_of(b, shape, types, variant):
        inputs, variables = _inputs(b, op, shape, types, resource)
        apply = b.op(op, *inputs, **variant)
        return [Step(*[start for _, start, _ in variables])] + [
            step for _ in range(3) for step in (Step(apply), Step(*[read for _, _, read in variables]))]

    def wrong(b, types):
        """Bad shapes and indices leave an error and the variables as they were."""
        shape = (SPARSE if sparse else DENSE)[0]
        inputs, variables = _inputs(b, op, shape, types, resource)
        bad = {'grad': values(types['T'], [5, 5]), 'delta': values(types['T'], [5, 5])}
        if sparse:
            bad['indices'] = np.array([shape[0], 0, 1], inputs[names.index('indices')].dtype)
        if 'lr' in names:
            bad['lr'] = np.array([0.1, 0.2]).astype(numpy_type(types['T']))
        steps = [Step(*[start for _, start, _ in variables])]
        for arg, value in bad.items():
            if arg in names:
                changed = list(inputs)
                changed[names.index(arg)] = b.hidden(value)
                steps += [Step(b.op(op, *changed), error=True)]
        return steps + [Step(*[read for _, _, read in variables])]

    def uninitialized(b, types):
        shape = (SPARSE if sparse else DENSE)[0]
        inputs, _ = _inputs(b, op, shape, types, resource)
        return [Step(b.op(op, *inputs), error=True)]

    def run(b, types):
        steps = []
        for shape in SPARSE if sparse else DENSE:
            for variant in VARIANTS if types['T'] == 'float32' else VARIANTS[:1]:
                if attrs.issuperset(variant):
                    steps += steps_of(b, shape, types, variant)
        return steps + wrong(b, types) + uninitialized(b, types)
    run.__name__ = op
    return run


DENSE_RULES = ['GradientDescent', 'ProximalGradientDescent', 'ProximalAdagrad', 'AdaMax', 'AddSign', 'PowerSign',
                'Momentum', 'Adam', 'Adagrad', 'AdagradV2', 'RMSProp', 'CenteredRMSProp', 'Ftrl', 'FtrlV2', 'Adadelta']
SPARSE_RULES = ['ProximalGradientDescent', 'ProximalAdagrad', 'Momentum', 'Adagrad', 'AdagradV2', 'RMSProp', 'CenteredRMSProp', 'Ftrl', 'FtrlV2', 'Adadelta']
for _resource, _prefix in (False, ''), (True, 'Resource'):
    for _kind, _rules in ('Apply', DENSE_RULES), ('SparseApply', SPARSE_RULES):
        for _rule in _rules:
            _op = _prefix + _kind + _rule
            script(_op)(_optimizer(_op, _resource))

# SPDX-License-Identifier: Apache-2.0
"""The rarer optimizers, and what all of them do with repeated rows, flags and odd exponents."""
import numpy as np

from cases import Step, numpy_type, script, values

# rule: variables, then the other inputs in order, with the scalars' values.
RULES = {
    'GradientDescent': (['var'], [('alpha', 0.1), 'delta']),
    'ProximalGradientDescent': (['var'], [('alpha', 0.1), ('l1', 0.2), ('l2', 0.3), 'grad']),
    'Momentum': (['var', 'accum'], [('lr', 0.1), 'grad', ('momentum', 0.9)]),
    'KerasMomentum': (['var', 'accum'], [('lr', 0.1), 'grad', ('momentum', 0.9)]),
    'Adam': (['var', 'm', 'v'], [('beta1_power', 0.81), ('beta2_power', 0.998), ('lr', 0.01), ('beta1', 0.9),
                                 ('beta2', 0.999), ('epsilon', 0.01), 'grad']),
    'AdamWithAmsgrad': (['var', 'm', 'v', 'vhat'], [('beta1_power', 0.81), ('beta2_power', 0.998), ('lr', 0.01),
                                                    ('beta1', 0.9), ('beta2', 0.999), ('epsilon', 0.01), 'grad']),
    'AdaMax': (['var', 'm', 'v'], [('beta1_power', 0.81), ('lr', 0.01), ('beta1', 0.9), ('beta2', 0.999),
                                   ('epsilon', 0.01), 'grad']),
    'Adagrad': (['var', 'accum'], [('lr', 0.1), 'grad']),
    'AdagradV2': (['var', 'accum'], [('lr', 0.1), ('epsilon', 0.01), 'grad']),
    'AdagradDA': (['var', 'sum', 'squares'], ['grad', ('lr', 0.1), ('l1', 0.2), ('l2', 0.3), ('global_step', 3)]),
    'ProximalAdagrad': (['var', 'accum'], [('lr', 0.1), ('l1', 0.2), ('l2', 0.3), 'grad']),
    'RMSProp': (['var', 'ms', 'mom'], [('lr', 0.1), ('rho', 0.9), ('momentum', 0.5), ('epsilon', 0.01), 'grad']),
    'CenteredRMSProp': (['var', 'mg', 'ms', 'mom'], [('lr', 0.1), ('rho', 0.9), ('momentum', 0.5), ('epsilon', 0.01),
                                                     'grad']),
    'Ftrl': (['var', 'accum', 'linear'], ['grad', ('lr', 0.1), ('l1', 0.2), ('l2', 0.3), ('lr_power', -0.5)]),
    'FtrlV2': (['var', 'accum', 'linear'], ['grad', ('lr', 0.1), ('l1', 0.2), ('l2', 0.3), ('shrinkage', 0.1),
                                            ('lr_power', -0.5)]),
    'Adadelta': (['var', 'accum', 'update'], [('lr', 0.5), ('rho', 0.9), ('epsilon', 0.01), 'grad']),
    'AddSign': (['var', 'm'], [('lr', 0.1), ('alpha', 1.0), ('sign_decay', 0.9), ('beta', 0.8), 'grad']),
    'PowerSign': (['var', 'm'], [('lr', 0.1), ('logbase', 1.0), ('sign_decay', 0.9), ('beta', 0.8), 'grad']),
}
FLAGS = {'Momentum': 'use_nesterov', 'KerasMomentum': 'use_nesterov', 'Adam': 'use_nesterov', 'Adagrad': 'update_slots',
         'AdagradV2': 'update_slots', 'Ftrl': 'multiply_linear_by_lr', 'FtrlV2': 'multiply_linear_by_lr'}
SLOTS_ABOVE_ZERO = ('accum', 'v', 'vhat', 'ms', 'squares', 'update')
ONLY_DENSE = ('GradientDescent', 'Adam', 'AdamWithAmsgrad', 'AdaMax', 'AddSign', 'PowerSign')
ONLY_RESOURCE = ('KerasMomentum', 'AdamWithAmsgrad')


def first_values(name, slot, shape):
    if slot == 'mg':
        return values(name, shape, 0, 0.2, key=slot)
    return values(name, shape, 1.5 if slot in SLOTS_ABOVE_ZERO else -2, 3, key=slot)


def add(op, rule, ref, sparse):
    slots, inputs = RULES[rule]

    def apply(b, types, handles, gradient, indices=None, scalars=(), **attrs):
        name = types['T']
        arguments = list(handles)
        for entry in inputs:
            if isinstance(entry, str):
                arguments += [gradient] + ([indices] if sparse else [])
            else:
                key, value = entry
                value = dict(scalars).get(key, value)
                dtype = 'int64' if key == 'global_step' else name
                arguments.append(value if hasattr(value, 'op') else b.constant(np.array(value).astype(numpy_type(dtype)), dtype))
        result = b.op(op, *arguments, **attrs)
        return result.op if ref else result

    @script(op)
    def optimizer(b, types):
        name = types['T']
        shape = [5, 3]
        made = [b.variable(first_values(name, slot, shape), ref=ref) for slot in slots]
        # Another shape, which the client does not see.
        start = b.constant(first_values(name, slots[len(slots) > 1], [5, 2]), name)
        other = b.op('VariableV2' if ref else 'VarHandleOp', shape=None, dtype=name, shared_name=b.name('other'))
        init_other = b.op('Assign', other, start, validate_shape=False).op if ref else b.op('AssignVariableOp', other, start)
        handles, init, reads = ([m[k] for m in made] for k in range(3))
        gradient, scalar = (b.op('Placeholder', dtype=name, shape=None) for _ in range(2))
        indices = b.op('Placeholder', dtype=types['Tindices'], shape=None) if sparse else None

        def feeds(rows, *rest, **more):
            fed = {gradient: values(name, [len(rows), *rest] if sparse else [5, *rest], -2, 2, key=str(rows))}
            if sparse:
                fed[indices] = np.array(rows, numpy_type(types['Tindices']))
            return {**fed, **more}

        update = apply(b, types, handles, gradient, indices)
        steps = [Step(*init, init_other), Step(update, feeds=feeds([3, 0], 3)), Step(*reads),
                 Step(update, feeds=feeds([4, 1], 3)), Step(*reads)]
        if rule in FLAGS:
            flagged = apply(b, types, handles, gradient, indices, **{FLAGS[rule]: FLAGS[rule] != 'update_slots'})
            steps += [Step(flagged, feeds=feeds([2, 0], 3)), Step(*reads)]
        if rule in ('Ftrl', 'FtrlV2'):
            powered = apply(b, types, handles, gradient, indices, scalars={'lr_power': -0.6})
            steps += [Step(*init), Step(powered, feeds=feeds([2, 0], 3)), Step(*reads)]
        if sparse:
            steps += [Step(*init), Step(update, feeds=feeds([1, 1, 4, 1], 3)), Step(*reads), Step(update, feeds=feeds([], 3)),
                      Step(*reads)]
            steps += [Step(update, feeds=feeds(rows, 3), error=True) for rows in ([5], [-1])]
        steps += [Step(update, feeds=feeds([0, 1], 2), error=True)]
        first_scalar = next(entry[0] for entry in inputs if not isinstance(entry, str))
        wrong = apply(b, types, handles, gradient, indices, scalars={first_scalar: scalar}) if rule != 'AdagradDA' else None
        if wrong is not None:
            bad = feeds([0, 1], 3)
            bad[scalar] = values(name, [1])
            steps.append(Step(wrong, feeds=bad, error=True))
        if len(slots) > 1:
            steps.append(Step(apply(b, types, handles[:1] + [other] + handles[2:], gradient, indices), feeds=feeds([0, 1], 3), error=True))
        return steps


for rule in RULES:
    for sparse in (False, True):
        if sparse and rule in ONLY_DENSE:
            continue
        kind = ('Sparse' if sparse else '') + 'Apply' + rule
        add('Resource' + kind, rule, False, sparse)
        if rule not in ONLY_RESOURCE:
            add(kind, rule, True, sparse)

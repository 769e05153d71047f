#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Which assignments a step makes where only some results of a conditional or loop are wanted:
wanted_results_test.py PATH_OF_WEFT [unittest arguments].

Each program counts in variables what ran. Each of its fetches runs in a session of its own, in TensorFlow's own
process and behind a server; the variables must be the same.
"""
import sys
import unittest

import processes
import status_test
from status_test import tasks, tf, tf1
from tensorflow.python.framework import function


def counter(name):
    return tf1.get_variable(name, initializer=0., use_resource=True)


def is_taken():
    return tf1.placeholder_with_default(True, [])


def other():
    return tf.constant(2.), tf.constant(3.)


def raised(variable):
    return tf.identity(tf1.assign_add(variable, 1.))


def two_results():
    v, w = counter('v'), counter('w')
    first, second = tf.cond(is_taken(), lambda: (raised(v), raised(w)), other)
    return [v, w], {'first': first, 'second': second, 'both': [first, second], 'node': second.op}


def nobody_reads_it():
    v = counter('v')

    def branch():
        tf1.assign_add(v, 1.)
        return tf.constant(1.)
    return [v], {'result': tf.cond(is_taken(), branch, lambda: tf.constant(2.))}


def waits_for_it():
    v = counter('v')

    def branch():
        with tf1.control_dependencies([tf1.assign_add(v, 1.)]):
            return tf.identity(1.), tf.constant(7.)
    first, second = tf.cond(is_taken(), branch, other)
    return [v], {'first': first, 'second': second}


def branch_ends_with_a_node():
    v, w = counter('v'), counter('w')

    def branch():
        tf1.assign_add(w, 1.)
        return tf1.assign_add(v, 1.).op
    mixed = tf.cond(is_taken(), lambda: (tf1.assign_add(v, 1.).op, tf.constant(5.)), lambda: (tf.no_op(), tf.constant(6.)))
    return [v, w], {'node': tf.cond(is_taken(), branch, tf.no_op), 'first': mixed[0], 'second': mixed[1]}


def who_waits_for_the_conditional():
    v = counter('v')
    first, _ = tf.cond(is_taken(), lambda: (tf.constant(1.), raised(v)), other)
    with tf1.control_dependencies([first]):
        behind_result = tf.constant(1.)
    with tf1.control_dependencies([first.op.inputs[0].op]):
        behind_node = tf.constant(1.)
    return [v], {'result': behind_result, 'node': behind_node, 'sum': first + 1.}


def nested():
    v, w = counter('v'), counter('w')

    def outer():
        with tf1.control_dependencies([tf1.assign_add(w, 1.)]):
            inner = tf.identity(True)
        return tf.cond(inner, lambda: (tf.constant(1.), raised(v)), other)
    first, second = tf.cond(is_taken(), outer, other)
    return [v, w], {'first': first, 'second': second}


def inputs():
    """What only another result needs is not computed, and need not be fed."""
    v = counter('v')
    outside, fed = raised(v), tf1.placeholder(tf.float32, [])
    first, second, _ = tf.cond(is_taken(), lambda: (tf.constant(1.), outside + 1., fed + 1.), lambda: (2., 3., 4.))
    return [v], {'first': first, 'second': second}


def one_of_several():
    v, w = counter('v'), counter('w')
    results = tf.switch_case(tf1.placeholder_with_default(1, []), [other, lambda: (raised(v), raised(w))])
    with tf1.control_dependencies([results[0].op.inputs[0].op]):
        behind = tf.constant(1.)
    return [v, w], {'first': results[0], 'second': results[1], 'behind': behind}


def loop():
    v, w, c, d = counter('v'), counter('w'), counter('c'), counter('d')

    def condition(i, *_):
        tf1.assign_add(d, 1.)
        with tf1.control_dependencies([tf1.assign_add(c, 1.)]):
            return i < 3

    def body(i, x, y):
        tf1.assign_add(w, 1.)
        return i + 1, x + 1., y + raised(v)
    results = tf.while_loop(condition, body, [tf.constant(0), tf.constant(0.), tf.constant(0.)])
    with tf1.control_dependencies([results[0].op.inputs[0].op]):
        behind = tf.constant(1.)
    return [v, w, c, d], {'counter': results[0], 'second': results[1], 'third': results[2], 'behind': behind}


def variables_of_a_loop():
    """One that another one needs is needed."""
    v = counter('v')
    results = tf.while_loop(lambda i, *_: i < 3, lambda i, x, y, z: (i + 1, x + y, y, z + 1.),
                            [tf.constant(0), tf.constant(0.), raised(v), tf.constant(0.)])
    return [v], {str(i): result for i, result in enumerate(results)}


def conditional_in_a_loop():
    v, w = counter('v'), counter('w')

    def body(i, x):
        later, _ = tf.cond(i < 2, lambda: (i + 1, raised(w)), lambda: (i + 1, raised(v)))
        return later, x + 1.
    results = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.constant(0.)])
    return [v, w], {'counter': results[0], 'second': results[1]}


def in_a_function():
    """TensorFlow's functions wait for all that their Python code does."""
    v, w = counter('v'), counter('w')

    @tf.function
    def run(taken):
        def branch():
            w.assign_add(1.)
            return tf.constant(1.), v.assign_add(1.)
        return tf.cond(taken, branch, other)

    @tf.function
    def count():
        def body(i, _):
            w.assign_add(1.)
            return i + 1, v.assign_add(1.)
        return tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.constant(0.)])[0]
    first, second = run(is_taken())
    return [v, w], {'first': first, 'second': second, 'count': count()}


def in_an_old_function():
    v, w = counter('v'), counter('w')

    @function.Defun(tf.resource, tf.resource, tf.bool)
    def run(one, another, taken):
        def after(handle):
            with tf1.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=handle, value=1.)]):
                return tf.raw_ops.ReadVariableOp(resource=handle, dtype=tf.float32)
        return tf.cond(taken, lambda: (after(one), after(another)), other)[0]
    return [v, w], {'result': run(v.handle, w.handle, is_taken())}


def branches_made_by_hand(lowered):
    v, w = counter('v'), counter('w')

    @function.Defun(tf.resource, tf.resource)
    def taken(one, another):
        tf.raw_ops.AssignAddVariableOp(resource=another, value=1.)
        with tf1.control_dependencies([tf.raw_ops.AssignAddVariableOp(resource=one, value=1.)]):
            return tf.constant(1.), tf.raw_ops.ReadVariableOp(resource=one, dtype=tf.float32)

    @function.Defun(tf.resource, tf.resource)
    def not_taken(one, another):
        return other()
    for branch in taken, not_taken:
        branch.add_to_graph(tf1.get_default_graph())
    first, second = tf.raw_ops.If(cond=is_taken(), input=[v.handle, w.handle], Tout=[tf.float32, tf.float32],
                                  then_branch=taken, else_branch=not_taken)
    if lowered:
        first.op._set_attr('_lower_using_switch_merge', tf1.AttrValue(b=True))
    return [v, w], {'first': first, 'second': second, 'node': first.op}


def marked_by_hand():
    return branches_made_by_hand(True)


def not_marked():
    """Such a node is run as it is, with all that its branch does."""
    return branches_made_by_hand(False)


def gradient():
    """The gradient reads what the forward pass keeps, and only that."""
    v = counter('v')
    x = tf1.placeholder_with_default(3., [])
    first, second = tf.cond(is_taken(), lambda: (x * x * x, x * raised(v)), lambda: (x, x))
    return [v], {'first': tf.gradients(first, x)[0], 'second': tf.gradients(second, x)[0]}


def called(use, nested=False):
    """A function runs whole; what computes an argument that it never looks at does not run."""
    v, w = counter('v'), counter('w')
    fed = tf1.placeholder(tf.float32, [])

    @tf.function
    def inner(x, y, _):
        return use(x, y, w)

    @tf.function
    def outer(x, y, z):
        return inner(x, y + 1., tf.reshape(z, [1, 1]))
    results = (outer if nested else inner)(tf.constant(2.), raised(v), fed)
    return [v, w], {'first': results[0], 'second': results[1], 'both': list(results)}


def a_function_ignores_its_argument():
    return called(lambda x, y, w: (x * 2., x * 3.))


def a_function_of_a_function_does():
    return called(lambda x, y, w: (x * 2., x * 3.), nested=True)


def another_result_reads_it():
    return called(lambda x, y, w: (x * 2., y * 3.), nested=True)


def an_effect_reads_it():
    return called(lambda x, y, w: (x * 2., x + w.assign_add(y)))


def calls_in_a_loop_and_a_branch():
    """The function ignores one of its arguments, or all of them, and counts how often it runs."""
    v, w = counter('v'), counter('w')

    @tf.function
    def of_one(x, y):
        del y
        return x + raised(v)

    @tf.function
    def of_none(x):
        del x
        return raised(w)

    def body(i, x):
        return i + 1, of_one(x, x * 2.) + of_none(x * 3.)

    def branch():
        return of_one(tf.ones([]), tf.zeros([])) + of_none(tf.ones([]))
    looped = tf.while_loop(lambda i, _: i < 3, body, [tf.constant(0), tf.constant(0.)])[1]
    taken = tf.cond(is_taken(), branch, lambda: tf.zeros([]))
    refused = tf.cond(tf.logical_not(is_taken()), branch, lambda: tf.zeros([]))
    return [v, w], {'looped': looped, 'taken': taken, 'refused': refused}


def over_devices():
    v, w = counter('v'), counter('w')

    def branch():
        with tf.device('/cpu:1'):
            return tf.square(raised(v)), tf.square(raised(w))

    def body(i, x, y):
        with tf.device('/cpu:1'):
            return i + 1, x + 1., y + raised(v)
    first, second = tf.cond(is_taken(), branch, other)
    results = tf.while_loop(lambda i, *_: i < 3, body, [tf.constant(0), tf.constant(0.), tf.constant(0.)])
    return [v, w], {'first': first, 'second': second, 'counter': results[0], 'third': results[2]}


PROGRAMS = (two_results, nobody_reads_it, waits_for_it, branch_ends_with_a_node, who_waits_for_the_conditional, nested, inputs,
            one_of_several, loop, variables_of_a_loop, conditional_in_a_loop, in_a_function, in_an_old_function,
            marked_by_hand, not_marked, gradient, a_function_ignores_its_argument, a_function_of_a_function_does,
            another_result_reads_it, an_effect_reads_it, calls_in_a_loop_and_a_branch, over_devices)


def counted(program, target, **config):
    """{fetch: (what it gave, what the variables count then)}"""
    told = {}
    with tf.Graph().as_default():
        variables, fetches = program()
        init = tf1.global_variables_initializer()
        for name, fetch in fetches.items():
            options = tf1.ConfigProto(isolate_session_state=True, allow_soft_placement=True, **config)
            with tf1.Session(target, config=options) as session:
                session.run(init)
                got = session.run(fetch)
                told[name] = got, [float(value) for value in session.run(variables)]
    return told


# These read the node of a conditional or a loop, which TensorFlow's first control flow has not.
FUNCTIONAL = who_waits_for_the_conditional, loop


class WantedResults(unittest.TestCase):
    def check(self, programs):
        with tasks('--cpu_devices', '2') as cluster:
            for program in programs:
                with self.subTest(program.__name__):
                    expected = counted(program, '', device_count={'CPU': 2})
                    self.assertEqual(counted(program, cluster['worker'].target), expected)

    def test_functional_control_flow(self):
        tf1.enable_control_flow_v2()
        try:
            self.check(PROGRAMS)
        finally:
            tf1.disable_control_flow_v2()

    def test_first_control_flow(self):
        tf1.disable_control_flow_v2()
        self.check([program for program in PROGRAMS if program not in FUNCTIONAL])


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    tf1.disable_eager_execution()
    unittest.main()

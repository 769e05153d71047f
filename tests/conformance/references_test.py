#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Reference variables that loops and branches update while they read them: references_test.py PATH_OF_WEFT
[unittest arguments].

TensorFlow hands such a variable's memory on, through Identity, reshapes and a loop's own variables. Each program
runs in TensorFlow's own process and behind a server. Rounds of the loops do not overlap: TensorFlow's results
would else differ from run to run.
"""
import sys
import unittest

import numpy as np

import processes
import status_test
from status_test import tasks, tf, tf1


def variable(value):
    return tf1.get_variable('w', initializer=value, use_resource=False)


def loop(rounds, body, *start):
    return list(tf.while_loop(lambda i, *_: i < rounds, lambda i, *values: [i + 1] + body(*values), [tf.constant(0), *start],
                              parallel_iterations=1))[1:]


def raised(w):
    return tf1.control_dependencies([tf1.assign_add(w, tf.ones_like(w))])


def a_loop_that_starts_with_it():
    w = variable(1.)

    def body(x):
        with raised(w):
            return [tf.identity(x)]
    return loop(3, body, w)


def a_loop_that_adds_it_up():
    w = variable(1.)

    def body(x, total):
        with raised(w):
            return [x, total + tf.identity(x)]
    return loop(3, body, w, tf.constant(0.))


def one_loop_after_another():
    w = variable(1.)

    def body(x, total):
        with raised(w):
            return [x, total + tf.identity(x)]
    first = loop(2, body, w, tf.constant(0.))
    with tf1.control_dependencies(first):
        start = tf.constant(0.)
    return loop(2, body, w, start)


def a_loop_variable_of_another_shape():
    w = variable([1., 2.])

    def body(x, total):
        with raised(w):
            return [x, total + tf.reduce_sum(x + 0.)]
    return loop(3, body, tf.reshape(w, [2, 1]), tf.constant(0.))


def outside(view, value):
    w = variable(value)
    seen = view(w)

    def body(total):
        with raised(w):
            return [total + tf.reduce_sum(seen + 0.)]
    return loop(3, body, tf.constant(0.))


def reshaped():
    return outside(lambda w: tf.reshape(w, [2, 1]), [1., 2.])


def squeezed():
    return outside(tf.squeeze, [[1., 2.]])


def expanded():
    return outside(lambda w: tf.expand_dims(w, 0), [1., 2.])


def reshaped_twice():
    return outside(lambda w: tf.expand_dims(tf.reshape(w, [2, 1]), 0), [1., 2.])


def reshaped_before_two_loops():
    """The view goes into a loop within a loop."""
    w = variable([1., 2.])
    seen = tf.reshape(w, [2, 1])

    def outer(total):
        def inner(inside):
            with raised(w):
                return [inside + tf.reduce_sum(seen + 0.)]
        return loop(2, inner, total)
    return loop(2, outer, tf.constant(0.))


def reshaped_before_a_branch():
    w = variable([1., 2.])
    seen = tf.reshape(w, [2, 1])

    def branch():
        with raised(w):
            return tf.reduce_sum(seen + 0.)
    return [tf.cond(tf1.placeholder_with_default(True, []), branch, lambda: tf.reduce_sum(seen))]


def trained_by_its_own_value():
    w = variable(1.)
    return loop(5, lambda x: [tf.identity(tf1.assign_sub(w, 0.2 * x))], w)


def changed_by_the_body():
    """Its first round sees the variable, the later ones what the body gave."""
    w = variable(1.)

    def body(x):
        with raised(w):
            return [x + 10.]
    return loop(3, body, w)


def changed_and_added_up():
    w = variable(1.)

    def body(x, total):
        with raised(w):
            return [x * 10., total + x]
    return loop(3, body, w, tf.constant(0.))


def set_to_what_the_update_gives():
    w = variable(1.)

    def body(x, total):
        updated = tf1.assign_add(w, x)
        with tf1.control_dependencies([updated]):
            return [tf.identity(updated), total + tf.identity(x)]
    return loop(3, body, w, tf.constant(0.))


def set_to_the_variable():
    w = variable(1.)

    def body(x, total):
        with raised(w):
            read = w.read_value()
        with tf1.control_dependencies([read]):
            return [tf.identity(w), total + x]
    return loop(3, body, w, tf.constant(0.))


def set_to_a_copy():
    w = variable(1.)

    def body(x, total):
        with raised(w):
            return [w + 0., total + x]
    return loop(3, body, w, tf.constant(0.))


PROGRAMS = (a_loop_that_starts_with_it, a_loop_that_adds_it_up, one_loop_after_another, a_loop_variable_of_another_shape,
            reshaped, squeezed, expanded, reshaped_twice, reshaped_before_two_loops, reshaped_before_a_branch,
            trained_by_its_own_value, changed_by_the_body, changed_and_added_up, set_to_what_the_update_gives,
            set_to_the_variable, set_to_a_copy)


def results(program, target):
    with tf.Graph().as_default():
        fetches = program()
        with tf1.Session(target, config=tf1.ConfigProto(isolate_session_state=True)) as session:
            session.run(tf1.global_variables_initializer())
            return session.run(fetches) + session.run(tf1.global_variables())


class References(unittest.TestCase):
    def test_loops_and_branches(self):
        with tasks() as cluster:
            for program in PROGRAMS:
                with self.subTest(program.__name__):
                    expected = results(program, '')
                    for _ in range(5):
                        for got, wanted in zip(results(program, cluster['worker'].target), expected):
                            np.testing.assert_allclose(got, wanted, rtol=1e-6)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    tf1.disable_eager_execution()
    tf1.disable_control_flow_v2()
    unittest.main()

# SPDX-License-Identifier: Apache-2.0
"""Programs made of a number: loops, branches, calls, maps, scans and updates of variables, spread over devices.

The same number and as many places give the same program, whatever the places are called. An ordered program makes
every op wait for the one before it, so that what it computes is defined although it updates variables; others read
their variables only, and have gradients.
"""
import random

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
_MOST_STATEMENTS = 50


class Program:
    """`kinds`: a set of 'ordered', 'references' (variables by reference), 'functions' (control flow of version 2)."""

    def __init__(self, number, places, kinds):
        self._random = random.Random(number)
        self._places = places
        self._ordered, self._references, self._functions = (kind in kinds for kind in ('ordered', 'references', 'functions'))
        self._last = None  # the op that all later ones wait for
        self._statements = 0
        self._pure = False  # in a body that takes values alone
        self.variables = []
        for i in range(self._random.randint(1, 3)):
            first = np.random.RandomState(number * 7 + i).uniform(-1, 1, [2, 2]).astype(np.float32)
            with tf.device(self._place()):
                self.variables.append(tf1.get_variable('v%d' % i, initializer=first, use_resource=not self._references))

    def build(self):
        """What is fetched."""
        values = self._body([], 2, self._random.randint(4, 10), updates=self._ordered)
        return [self._op(lambda value=value: value + 0.) for value in values[-4:]]

    def _place(self):
        return self._random.choice(self._places)

    def _after_last(self):
        return tf1.control_dependencies([self._last] if self._ordered and self._last is not None else [])

    def _did(self, value):
        if self._ordered:
            self._last = value.op
        return value

    def _op(self, make):
        with tf.device(self._place()), self._after_last():
            return self._did(make())

    def _whole(self, make):
        """A loop, branch or call, whose own ops wait for each other."""
        with tf.device(self._place()), self._after_last():
            last = self._last
            value = make()
            self._last = last
        return self._did(value)

    def _read(self):
        variable = self._random.choice(self.variables)
        shares = self._references and self._random.random() < 0.7
        return self._op(lambda: tf.identity(variable) if shares else variable.read_value())

    def _value(self, values):
        return self._random.choice(values) if values and (self._pure or self._random.random() < 0.8) else self._read()

    def _body(self, values, depth, count, updates):
        values = list(values)
        for _ in range(count):
            self._statement(values, depth, updates)
        return values

    def _statement(self, values, depth, updates):
        kind = self._random.random()
        self._statements += 1
        if self._statements > _MOST_STATEMENTS:
            kind *= 0.5
        if kind < 0.12:
            values.append(self._value(values) if self._pure else self._read())
        elif kind < 0.5:
            values.append(self._arithmetic(self._value(values), self._value(values)))
        elif kind < 0.66 and updates:
            values.extend(self._update(values))
        elif depth <= 0:
            values.append(self._value(values) if self._pure else self._read())
        else:
            make = self._random.choice([self._branch, self._branch, self._loop, self._loop, self._call, self._map, self._scan, self._case])
            values.extend(make(values, depth, updates))

    def _arithmetic(self, a, b):
        return self._op(self._random.choice([
            lambda: tf.tanh(a), lambda: a * 0.5 + b * 0.25, lambda: tf.matmul(a, b) * 0.3,
            lambda: tf.reduce_mean(a, 0, keepdims=True) + b * 0.1, lambda: tf.where(a > b, a * 0.9, b), lambda: tf.transpose(a),
            lambda: tf.concat([a[:1], b[1:]], 0), lambda: tf.identity(a), lambda: tf.reshape(tf.reshape(a, [4]), [2, 2]),
            lambda: tf.stop_gradient(a) + b * 0.1, lambda: tf.maximum(a, b)]))

    def _update(self, values):
        variable, value = self._random.choice(self.variables), self._value(values)
        update, scale = self._random.choice([(tf1.assign, 0.5), (tf1.assign_add, 0.1), (tf1.assign_sub, 0.1)])
        with tf.device(None), self._after_last():
            updated = update(variable, value * scale)
            updated = updated if self._references else tf.convert_to_tensor(updated)
        self._did(updated)
        return [self._op(lambda: tf.identity(updated))] if self._random.random() < 0.5 else []

    def _inner(self, values, depth, updates, count, pure=False):
        """`count` results of a body within this one."""
        last, was_pure = self._last, self._pure
        if self._functions:
            self._last = None
        self._pure = was_pure or pure
        made = self._body(values, depth - 1, self._random.randint(1, 4), updates)
        results = [self._op(lambda value=self._value(made): value * 1.) for _ in range(count)]
        if self._ordered and self._last is not None:
            with tf1.control_dependencies([self._last]):
                results = [tf.identity(result) for result in results]
        self._last, self._pure = last, was_pure
        return results

    def _branch(self, values, depth, updates):
        condition = self._op(lambda value=self._value(values): tf.reduce_sum(value) > self._random.uniform(-1, 1))

        def branch():
            return self._inner(values, depth, updates, 1)[0]
        return [self._whole(lambda: tf.cond(tf.identity(condition), branch, branch))]

    def _loop(self, values, depth, updates):
        count, rounds = self._random.randint(1, 3), self._random.randint(0, 4)
        starts, limit = [self._value(values) for _ in range(count)], tf.constant(rounds)
        if self._random.random() < 0.3:
            limit = self._op(lambda value=self._value(values): tf.cast(tf.reduce_sum(value) > 0, tf.int32) + rounds)

        def body(i, *inside):
            results = self._inner(list(inside) + ([] if self._random.random() < 0.5 else values), depth, updates, count)
            with tf1.control_dependencies(results if self._ordered else []):
                return [i + 1] + [tf.identity(result) for result in results]
        with tf.device(self._place()), self._after_last():
            last = self._last
            ends = tf.while_loop(lambda i, *_: i < limit, body, [tf.constant(0)] + [tf.identity(start) for start in starts],
                                 parallel_iterations=1 if self._ordered else self._random.choice([1, 10]))[1:]
            self._last = last
        if self._ordered:
            self._last = tf.group(*ends)
        return list(ends)

    def _call(self, values, depth, updates):
        arguments = [tf.identity(self._value(values)) for _ in range(self._random.randint(1, 3))]
        outside = self._functions

        def body(*inside):
            self._functions = True
            result = self._inner(list(inside), depth, updates and not self._references, 1, pure=self._references)[0]
            self._functions = outside
            return result
        return [self._whole(lambda: tf.function(body)(*arguments))]

    def _of_row(self, before, row, depth):
        return self._inner(before + [tf.stack([row, row])], depth, False, 1, pure=True)[0]

    def _map(self, values, depth, updates):
        del updates
        value = self._value(values)
        return [self._whole(lambda: tf.reshape(tf.map_fn(lambda row: self._of_row([], row, depth)[0], tf.identity(value)), [2, 2]))]

    def _scan(self, values, depth, updates):
        del updates
        value, first = self._value(values), self._value(values)
        return [self._whole(lambda: tf.scan(lambda sum_, row: self._of_row([sum_], row, depth), tf.identity(value),
                                            initializer=tf.identity(first))[-1])]

    def _case(self, values, depth, updates):
        value = self._value(values)
        index = self._op(lambda: tf.cast(tf.reduce_sum(value) * 2, tf.int32) % 3)
        # Functions take the value of a reference.
        inside = [tf.identity(value) for value in values[-2:] + [value]] if self._references else values

        def branch():
            return self._inner(inside, depth, updates and not self._references, 1, pure=self._references)[0]
        return [self._whole(lambda: tf.switch_case(tf.identity(index), [branch] * 3))]


def build(number, places, kinds):
    """(what to fetch, the variables). Kind 'trained' takes a step down the gradient."""
    (tf1.enable_control_flow_v2 if 'functions' in kinds else tf1.disable_control_flow_v2)()
    program = Program(number, places, kinds)
    fetches = program.build()
    if 'trained' in kinds:
        loss = tf.add_n([tf.reduce_mean(tf.square(fetch)) for fetch in fetches])
        pairs = [(gradient, variable) for gradient, variable in zip(tf.gradients(loss, program.variables), program.variables)
                 if gradient is not None]
        if pairs:
            gradients = [gradient for gradient, _ in pairs]
            # No gradient waits for what is read behind a stop_gradient.
            with tf1.control_dependencies([loss] + gradients):
                pairs = [(tf.identity(gradient), variable) for gradient, variable in pairs]
            fetches = [loss] + gradients + [tf1.train.GradientDescentOptimizer(0.1).apply_gradients(pairs)]
    return fetches, program.variables

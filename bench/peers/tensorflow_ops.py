#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Single ops of TensorFlow 1 on values that stay in variables, on a server or in this process.

    tensorflow_ops.py [TARGET PID]

Reads the name of a case (ops.py) a line and answers with a round of it. With TARGET the ops run on that server, and the
CPU time of process PID counts as well.
"""
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from ops import case_of  # noqa: E402
from rounds import measured  # noqa: E402

tf1 = tf.compat.v1


class Cases:
    def __init__(self, target):
        tf1.disable_v2_behavior()
        self.target, self.name, self.session, self.step, self.check, self.bytes = target, None, None, None, 0, 0

    def open(self, name):
        """The step of a case; that of the case before is forgotten with all its values."""
        if name == self.name:
            return
        if self.session is not None:
            self.session.close()
            self.step = None
        case = case_of(name)
        generator = np.random.default_rng(3)
        with tf1.Graph().as_default() as graph:
            tf1.set_random_seed(7)
            with tf1.container(name.replace(' ', '_')):
                variables = [tf1.get_variable('v%d' % i, initializer=given(generator), use_resource=True)
                             for i, given in enumerate(case.inputs)]
                outputs, tasted = [], []
                for _ in range(case.copies):  # each reads anew, so that no two are one
                    with tf1.control_dependencies(tasted[-len(outputs):] if outputs else []):
                        outputs = list(case.build(tf1, *[one.read_value() for one in variables]))
                    # One element of each is read, without which TensorFlow computes nothing.
                    tasted += [tf1.cast(tf1.reshape(one, [-1])[0], tf1.float32) for one in outputs]
            self.bytes = sum(one.dtype.size * one.shape.num_elements() for one in [one.read_value() for one in variables] + outputs
                             if one.shape.is_fully_defined())
            done = tf1.add_n(tasted)
            shown = [one for one in outputs if one.dtype.is_floating] if case.is_checked else []
            check = tf1.add_n([tf1.reduce_mean(tf1.cast(one, tf1.float32)) for one in shown]) if shown else tf1.constant(0.0)
            start = tf1.global_variables_initializer()
            self.session = tf1.Session(self.target, graph=graph)
            self.session.run(start)
            self.check = float(self.session.run(check))
            self.step = self.session.make_callable(done)
            self.name = name
        for _ in range(5):
            self.step()


def main(arguments):
    cases = Cases(arguments[0] if arguments else '')
    server = int(arguments[1]) if len(arguments) > 1 else None
    for line in sys.stdin:
        cases.open(line.strip())
        measured(cases.step, cases.check, server, bytes=cases.bytes)


if __name__ == '__main__':
    main(sys.argv[1:])

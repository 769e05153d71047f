# SPDX-License-Identifier: Apache-2.0
"""Gradients through functions, made in C++, against TensorFlow's of the same graphs.

function_gradients_test.py PROGRAM WEFT: PROGRAM writes the graphs. TensorFlow runs the gradients that it makes itself and
those that the graph brings; a weft server runs the latter.
"""
import os
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import processes

PROGRAM, WEFT = sys.argv[1:3]
tf1 = tf.compat.v1
tf1.disable_eager_execution()
tf1.disable_control_flow_v2()  # its arrays would be lists
PLACES = np.array([[0.5, 0.75], [-1.5, 0.25], [1.25, 0.5], [3.0, -7.0]])
# What TensorFlow makes of these it cannot differentiate again, or gives wrong numbers for (arrays), or is constant (ragged).
ONCE = {'call', 'if_in_while', 'tensor_array', 'ragged'}
# TensorFlow names a function of its own twice when it differentiates this one from a GraphDef.
NOT_BY_TENSORFLOW = {'if_in_while'}


def read(path):
    graph_def = tf1.GraphDef()
    with open(path, 'rb') as file:
        graph_def.ParseFromString(file.read())
    return graph_def


def run(graph, fetches, target=''):
    with tf1.Session(target, graph=graph) as session:
        return [session.run(fetches, {'x:0': place}) for place in PLACES]


class FunctionGradients(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        done = subprocess.run([PROGRAM, cls.folder.name], stdout=subprocess.PIPE, text=True, check=True)
        cls.cases = [line.split() for line in done.stdout.splitlines()]

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def brought(self, name):
        with tf.Graph().as_default() as graph:
            tf.import_graph_def(read(os.path.join(self.folder.name, name + '.pb')), name='')
        return graph

    def test_same_as_tensorflows(self):
        self.assertEqual(len(self.cases), 7)
        for name, *tensors in self.cases:
            if name in NOT_BY_TENSORFLOW:
                continue
            with self.subTest(name):
                with tf.Graph().as_default() as graph:
                    tf.import_graph_def(read(os.path.join(self.folder.name, name + '.forward.pb')), name='')
                    x, y = (graph.get_tensor_by_name(word + ':0') for word in 'xy')
                    theirs = tf1.gradients(y, x)
                    if name not in ONCE:
                        theirs += tf1.gradients(theirs[0], x)
                expected = run(graph, [y, *theirs])
                found = run(self.brought(name), ['y:0', *tensors[:len(theirs)]])
                np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)

    def test_weft_computes_what_tensorflow_does(self):
        with processes.cluster(WEFT, worker=1) as targets:
            for name, *tensors in self.cases:
                with self.subTest(name):
                    graph = self.brought(name)
                    # TensorFlow makes no gradient of an array of gradients.
                    known = tensors[:1] if name == 'tensor_array' else tensors
                    fetches = ['y:0', *(tensor for tensor in known if tensor != '-')]
                    np.testing.assert_allclose(run(graph, fetches, targets['worker'][0]), run(graph, fetches),
                                               rtol=1e-9, atol=1e-12)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

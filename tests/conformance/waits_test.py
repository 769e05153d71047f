#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Whatever a step waits for stands in /waits of the task where it waits: waits_test.py PATH_OF_WEFT [unittest arguments].

Each case waits for what never comes, by a kernel of its own or inside of a function, a branch or a loop, at the
master's task and at another one. When the session is closed the step ends and the wait is gone.
"""
import json
import sys
import threading
import unittest

import processes
import status_test
from status_test import tasks, tf, tf1, wait_until

FLOAT = [tf.float32]


def queue():
    return tf1.FIFOQueue(1, FLOAT, shapes=[[]], name='queue')


def dequeue():
    return queue().dequeue(), 'FIFOQueue'


def dequeue_many():
    return queue().dequeue_many(3), 'FIFOQueue'


def enqueue():
    made = queue()
    with tf1.control_dependencies([made.enqueue(1.)]):
        return made.enqueue(2.), 'FIFOQueue'


def priority():
    return tf1.PriorityQueue(3, FLOAT, shapes=[[]], name='queue').dequeue()[1], 'PriorityQueue'


def shuffled():
    return tf1.RandomShuffleQueue(3, 1, FLOAT, shapes=[[]], name='queue').dequeue(), 'RandomShuffleQueue'


def padded():
    return tf1.PaddingFIFOQueue(3, FLOAT, shapes=[[None]], name='queue').dequeue(), 'PaddingFIFOQueue'


def barrier():
    handle = tf.raw_ops.Barrier(component_types=FLOAT, shapes=[[]], name='barrier')
    taken = tf.raw_ops.BarrierTakeMany(handle=handle, num_elements=1, component_types=FLOAT)
    return taken.values[0], 'Barrier'


def staging_area():
    return tf.raw_ops.Unstage(dtypes=FLOAT, shared_name='area'), 'area'


def staging_area_peek():
    return tf.raw_ops.StagePeek(index=2, dtypes=FLOAT, shared_name='area'), 'area'


def staging_area_without_room():
    with tf1.control_dependencies([tf.raw_ops.Stage(values=[1.], capacity=1, shared_name='full')]):
        return tf.raw_ops.Stage(values=[2.], capacity=1, shared_name='full'), 'full'


def accumulator():
    return tf1.ConditionalAccumulator(tf.float32, shape=[], name='sums').take_grad(2), 'sums'


def sparse_accumulator():
    return tf1.SparseConditionalAccumulator(tf.float32, shape=[4], name='sums').take_grad(2), 'sums'


def reader():
    names = tf1.FIFOQueue(1, [tf.string], shapes=[[]], name='queue')
    return tf1.WholeFileReader(name='reader').read(names), 'FIFOQueue'


def function():
    made = queue()

    @tf.function
    def take():
        return made.dequeue() + 1.
    return take(), 'FIFOQueue'


def function_in_a_function():
    made = queue()

    @tf.function
    def take():
        return made.dequeue() + 1.

    @tf.function
    def twice():
        return take() * 2.
    return twice(), 'FIFOQueue'


def branch():
    made = queue()
    return tf.cond(tf1.placeholder_with_default(True, []), made.dequeue, lambda: 1.), 'FIFOQueue'


def one_of_several():
    made = queue()
    return tf.switch_case(tf1.placeholder_with_default(1, []), [lambda: 1., made.dequeue]), 'FIFOQueue'


def body():
    made = queue()
    return tf.while_loop(lambda x: x < 3., lambda x: [x + made.dequeue()], [tf.constant(0.)]), 'FIFOQueue'


def condition():
    made = queue()
    return tf.while_loop(lambda x: x < made.dequeue(), lambda x: [x + 1.], [tf.constant(0.)]), 'FIFOQueue'


def branch_in_a_loop():
    made = queue()

    def step(x):
        return [tf.cond(x < 1., made.dequeue, lambda: x + 1.)]
    return tf.while_loop(lambda x: x < 3., step, [tf.constant(0.)]), 'FIFOQueue'


KERNELS = (dequeue, dequeue_many, enqueue, priority, shuffled, padded, barrier, staging_area, staging_area_peek,
           staging_area_without_room, accumulator, sparse_accumulator, reader)
INSIDE = function, function_in_a_function, branch, one_of_several, body, condition, branch_in_a_loop
OWN, OTHER = '/job:worker/task:0', '/job:ps/task:0'


class Waits(unittest.TestCase):
    def check(self, cluster, build, place, functional=False):
        (tf1.enable_control_flow_v2 if functional else tf1.disable_control_flow_v2)()
        try:
            with tf.Graph().as_default() as graph:
                with tf.device(place):
                    fetch, subject = build()
                self.expect_wait(cluster, graph, fetch, subject, place)
        finally:
            tf1.disable_control_flow_v2()

    def expect_wait(self, cluster, graph, fetch, subject, place):
        task = cluster['ps' if place == OTHER else 'worker']
        session = tf1.Session(cluster['worker'].target, graph=graph, config=tf1.ConfigProto(isolate_session_state=True))
        ended = []

        def run():
            try:
                ended.append(session.run(fetch))
            except tf.errors.OpError as error:
                ended.append(error)
        thread = threading.Thread(target=run)
        thread.start()

        def shown():
            self.assertFalse(ended, ended)
            return [wait for wait in json.loads(task.get('/waits?json')[1]) if subject in json.dumps(wait)]
        try:
            wait_until(shown, 'a wait for ' + subject)
            for wait in shown():
                self.assertIn(place.replace('/task', '/replica:0/task'), wait['waiter'])
                self.assertGreater(wait['step'], 0)
        finally:
            session.close()
            thread.join()
        self.assertIsInstance(ended[0], (tf.errors.CancelledError, tf.errors.AbortedError))
        wait_until(lambda: task.get('/waits?json')[1] == '[]\n', 'the end of the waits')

    def test_kernels(self):
        with tasks() as cluster:
            for place in OWN, OTHER:
                for build in KERNELS:
                    with self.subTest(build.__name__, place=place):
                        self.check(cluster, build, place)

    def test_inside_of_functions_branches_and_loops(self):
        with tasks() as cluster:
            for place in OWN, OTHER:
                for functional in False, True:
                    for build in INSIDE:
                        with self.subTest(build.__name__, place=place, functional=functional):
                            self.check(cluster, build, place, functional)

    def test_a_function_at_another_task(self):
        with tasks() as cluster, tf.Graph().as_default() as graph:
            @tf.function(autograph=False, input_signature=[tf.TensorSpec([], tf.float32)])
            def take(x):
                handle = tf.raw_ops.FIFOQueueV2(component_types=FLOAT, shared_name='there')
                return x + tf.raw_ops.QueueDequeueV2(handle=handle, component_types=FLOAT)[0]
            with tf.device(OWN):
                fetch = tf.raw_ops.RemoteCall(target=OTHER.replace('/task', '/replica:0/task') + '/device:CPU:0', args=[1.],
                                              Tout=FLOAT, f=take.get_concrete_function())
            self.expect_wait(cluster, graph, fetch, 'FIFOQueue', OTHER)


if __name__ == '__main__':
    status_test.BINARY = processes.binary_from(sys.argv)
    tf1.disable_eager_execution()
    unittest.main()

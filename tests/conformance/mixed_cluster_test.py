#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Clusters of which some tasks are TensorFlow's own servers and some ours: mixed_cluster_test.py PATH_OF_WEFT [unittest arguments].

Each program runs on a cluster of TensorFlow's own tasks first: the same numbers are expected of every mixture.
"""
import contextlib
import json
import subprocess
import sys
import threading
import time
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import processes

WEFT = processes.binary_from(sys.argv)
THEIRS = processes.binary_from(sys.argv[:1])
tf.disable_v2_behavior()


@contextlib.contextmanager
def mixture(**kinds):
    """mixture(chief='tf', ps='weft', worker='weft'): yields {job: target}, and the processes as `processes`."""
    ports = dict(zip(kinds, processes.free_ports(len(kinds))))
    spec = json.dumps({job: ['127.0.0.1:%d' % port] for job, port in ports.items()})
    started = {job: subprocess.Popen(
        [THEIRS if kind == 'tf' else WEFT, 'server', '--cluster', spec, '--job_name', job, '--task_index', '0'],
        preexec_fn=processes.die_with_parent) for job, kind in kinds.items()}
    try:
        for job, process in started.items():
            processes.wait_for_port(ports[job], process)
        yield dict({job: 'grpc://127.0.0.1:%d' % port for job, port in ports.items()}, processes=started)
    finally:
        for process in started.values():
            processes.stop(process)


def unfused():
    """What a client tells a master of TensorFlow's own whose workers are ours: to fuse no nodes for TensorFlow's kernels."""
    config = tf.ConfigProto()
    config.graph_options.rewrite_options.remapping = config.graph_options.rewrite_options.OFF
    return config


def mlp(target, steps=12, resource=False):
    """Losses and last weights of an MLP whose variables are on ps, its first layer on chief, its second on worker."""
    random = np.random.RandomState(0)
    x, y = random.rand(32, 8).astype(np.float32), random.randint(0, 4, 32)
    start = {name: random.randn(*shape).astype(np.float32) * 0.3 for name, shape in (
        ('w1', (8, 16)), ('b1', (16,)), ('w2', (16, 4)), ('b2', (4,)))}
    with tf.Graph().as_default():
        with tf.device('/job:ps/task:0'):
            v = {name: tf.get_variable(name, initializer=value, use_resource=resource) for name, value in start.items()}
            step = tf.train.get_or_create_global_step()
        inputs, labels = tf.placeholder(tf.float32, [None, 8]), tf.placeholder(tf.int64, [None])
        with tf.device('/job:chief/task:0'):
            hidden = tf.nn.relu(tf.matmul(inputs, v['w1']) + v['b1'])
        with tf.device('/job:worker/task:0'):
            logits = tf.nn.bias_add(tf.matmul(hidden, v['w2']), v['b2'])
            loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
        train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step, colocate_gradients_with_ops=True)
        with tf.Session(target, config=unfused()) as session:
            session.run(tf.global_variables_initializer())
            losses = [session.run([loss, train], {inputs: x, labels: y})[0] for _ in range(steps)]
            return losses, session.run(v), session.run(step)


def branches(target):
    """A branch not taken crosses tasks as a dead tensor."""
    with tf.Graph().as_default():
        choose = tf.placeholder(tf.bool, [])
        with tf.device('/job:chief/task:0'):
            no, yes = tf.raw_ops.Switch(data=tf.constant([1., 2.]), pred=choose)
        with tf.device('/job:ps/task:0'):
            far_no, far_yes = no * 3., yes * 5.
        with tf.device('/job:worker/task:0'):
            merged = tf.raw_ops.Merge(inputs=[far_no, far_yes])[0] + 1.
        with tf.Session(target) as session:
            return [session.run(merged, {choose: value}).tolist() for value in (False, True, False)]


class MixedCluster(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        with mixture(chief='tf', ps='tf', worker='tf') as cluster:
            cls.wanted = mlp(cluster['chief'])
            cls.wanted_resource = mlp(cluster['chief'], resource=True)
            cls.wanted_branches = branches(cluster['chief'])

    def same(self, got, wanted):
        np.testing.assert_allclose(got[0], wanted[0], rtol=1e-4)
        for name, value in wanted[1].items():
            np.testing.assert_allclose(got[1][name], value, rtol=1e-3, atol=1e-5)
        self.assertEqual(got[2], wanted[2])

    def check(self, master='chief', **kinds):
        with mixture(**kinds) as cluster:
            self.same(mlp(cluster[master]), self.wanted)
            self.same(mlp(cluster[master], resource=True), self.wanted_resource)
            self.assertEqual(branches(cluster[master]), self.wanted_branches)

    def test_their_chief_with_our_parameter_server(self):
        self.check(chief='tf', ps='weft', worker='tf')

    def test_their_chief_with_our_workers(self):
        self.check(chief='tf', ps='weft', worker='weft')

    def test_our_chief_with_their_parameter_server(self):
        self.check(chief='weft', ps='tf', worker='weft')

    def test_our_chief_with_their_workers(self):
        self.check(chief='weft', ps='tf', worker='tf')

    def test_our_chief_with_our_parameter_server_and_their_worker(self):
        self.check(chief='weft', ps='weft', worker='tf')

    def test_masters_of_both_kinds_share_the_parameter_server(self):
        for kind in 'weft', 'tf':
            with mixture(chief='tf', worker='weft', ps=kind) as cluster, tf.Graph().as_default():
                with tf.device('/job:ps/task:0'):
                    total = tf.get_variable('total', initializer=tf.zeros([3]), use_resource=True)
                    add = total.assign_add(tf.ones([3]))
                with tf.Session(cluster['chief']) as session:
                    session.run(total.initializer)

                def client(target):
                    with tf.Session(target, graph=add.graph) as session:
                        for _ in range(20):
                            session.run(add)
                threads = [threading.Thread(target=client, args=[cluster[job]]) for job in ('chief', 'worker')]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join(100)
                with tf.Session(cluster['worker']) as session:
                    self.assertEqual(session.run(total).tolist(), [40.] * 3)

    def test_errors_cross_with_their_code(self):
        for kinds in dict(chief='tf', ps='weft'), dict(chief='weft', ps='tf'):
            with mixture(**kinds) as cluster, tf.Graph().as_default():
                x = tf.placeholder(tf.float32, [None, 2])
                with tf.device('/job:ps/task:0'):
                    checked = tf.check_numerics(x, 'not a number here')
                with tf.device('/job:chief/task:0'):
                    result = tf.reduce_sum(checked)
                with tf.Session(cluster['chief']) as session:
                    with self.assertRaisesRegex(tf.errors.InvalidArgumentError, 'not a number here'):
                        session.run(result, {x: [[1., np.nan]]})
                    self.assertEqual(session.run(result, {x: [[1., 2.]]}), 3)

    def test_collectives_of_both_kinds_end_at_once(self):
        """At TensorFlow's chief: our worker says why."""
        with mixture(chief='tf', worker='weft') as cluster, tf.Graph().as_default():
            sums = []
            for job in 'chief', 'worker':
                with tf.device('/job:%s/task:0/device:CPU:0' % job):
                    sums.append(tf.raw_ops.CollectiveReduce(
                        input=tf.ones([4]), group_size=2, group_key=1, instance_key=1, merge_op='Add', final_op='Id',
                        subdiv_offsets=[0]))
            config = unfused()
            config.experimental.collective_group_leader = '/job:chief/replica:0/task:0'
            with tf.Session(cluster['chief'], config=config) as session:
                begun = time.monotonic()
                with self.assertRaisesRegex(tf.errors.UnimplementedError, "weft's servers only, or TensorFlow's own"):
                    session.run(sums)
                self.assertLess(time.monotonic() - begun, 8)

    def test_a_step_that_waits_is_cancelled_at_all_tasks(self):
        for kinds in dict(chief='tf', ps='weft'), dict(chief='weft', ps='tf'):
            with mixture(**kinds) as cluster, tf.Graph().as_default():
                with tf.device('/job:ps/task:0'):
                    queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='q')
                    value, put = queue.dequeue(), queue.enqueue(7.)
                with tf.device('/job:chief/task:0'):
                    doubled = value * 2
                with tf.Session(cluster['chief']) as session:
                    with self.assertRaises(tf.errors.DeadlineExceededError):
                        session.run(doubled, options=tf.RunOptions(timeout_in_ms=1000))
                    # Its dequeue is gone with it: the element is the next one's.
                    session.run(put)
                    self.assertEqual(session.run(doubled), 14)

    def test_a_killed_task_ends_the_step(self):
        """At our chief. TensorFlow's waits for a task that is gone to come back."""
        with mixture(chief='weft', ps='tf') as cluster, tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                queue = tf.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='q')
                value = queue.dequeue()
            with tf.device('/job:chief/task:0'):
                doubled = value * 2
            with tf.Session(cluster['chief']) as session:
                session.run(queue.size())
                killer = threading.Timer(1.0, cluster['processes']['ps'].kill)
                killer.start()
                with self.assertRaises((tf.errors.UnavailableError, tf.errors.AbortedError, tf.errors.CancelledError)):
                    session.run(doubled)
                killer.join()


if __name__ == '__main__':
    unittest.main(verbosity=2)

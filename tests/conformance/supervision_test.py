#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What TensorFlow 1 wraps around a training loop, on two parameter servers and a worker: supervision_test.py [WEFT].

Supervisor, every parameter of MonitoredTrainingSession, partitions that are restored at another count, a strategy that
balances parameter servers by bytes, and servers that are killed under a session which goes on.
"""
import glob
import json
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import processes

tf.disable_v2_behavior()


class Servers:
    """Tasks at fixed addresses, each of which may be killed and started again."""

    def __init__(self, folder, **jobs):
        self.folder = folder
        self.spec = {job: ['127.0.0.1:%d' % port for port in processes.free_ports(count)] for job, count in jobs.items()}
        self.running = {}
        for job, addresses in self.spec.items():
            for index in range(len(addresses)):
                self.start(job, index)

    def start(self, job, index):
        self.running[job, index] = process = subprocess.Popen(
            [BINARY, 'server', '--cluster', json.dumps(self.spec), '--job_name', job, '--task_index', str(index), '--root', self.folder],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, preexec_fn=processes.die_with_parent)
        processes.wait_for_port(int(self.spec[job][index].rpartition(':')[2]), process)

    def kill(self, job, index):
        self.running[job, index].send_signal(signal.SIGKILL)
        self.running[job, index].wait()

    def target(self, job='worker', index=0):
        return 'grpc://' + self.spec[job][index]

    def stop(self):
        for process in self.running.values():
            processes.stop(process)


def by_bytes(count):
    """What contrib's GreedyLoadBalancingStrategy with byte_size_load_fn did: the next goes where least lies."""
    loads = [0] * count

    def choose(op):
        task = int(np.argmin(loads))
        loads[task] += int(np.prod(op.outputs[0].shape.as_list() or [1])) * op.outputs[0].dtype.base_dtype.size
        return task
    choose.loads = loads
    return choose


def regression(partitions=None, strategy=None, use_resource=False):
    """(train, loss, w): a step that always takes the same data."""
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker/task:0', ps_strategy=strategy)
    with tf.device(setter), tf.variable_scope('', use_resource=use_resource):
        step = tf.train.get_or_create_global_step()
        x = tf.constant(np.random.RandomState(1).rand(16, 6), tf.float32)
        partitioner = tf.fixed_size_partitioner(partitions) if partitions else None
        w = tf.get_variable('w', [6, 2], initializer=tf.zeros_initializer(), partitioner=partitioner)
        b = tf.get_variable('b', [2], initializer=tf.zeros_initializer())
        whole = tf.convert_to_tensor(w)
        loss = tf.reduce_mean(tf.square(tf.matmul(x, whole) + b - tf.reduce_sum(x, 1, keepdims=True)))
        train = tf.train.AdamOptimizer(0.05).minimize(loss, global_step=step)
        tf.summary.scalar('loss', loss)
    return train, loss, whole


class SupervisionTest(unittest.TestCase):
    def setUp(self):
        self.folder = self.enterContext(tempfile.TemporaryDirectory())
        self.servers = Servers(self.folder, ps=2, worker=2)
        self.addCleanup(self.servers.stop)

    def test_partitions_are_restored_at_another_count(self):
        path = os.path.join(self.folder, 'saved')
        for use_resource in False, True:
            values = {}
            for count in 3, 2, 6, None:
                with tf.Graph().as_default():
                    train, loss, whole = regression(count, use_resource=use_resource)
                    # Optimizers name their slots by part, so it is the model that moves.
                    variables = tf.trainable_variables() + [tf.train.get_global_step()]
                    saver = tf.train.Saver(variables)
                    with tf.Session(self.servers.target()) as session:
                        session.run(tf.global_variables_initializer())
                        if count == 3:
                            for _ in range(4):
                                session.run(train)
                            saver.save(session, path)
                        else:
                            saver.restore(session, path)
                        values[count] = session.run([whole, loss, tf.train.get_global_step()])
                tf.Session.reset(self.servers.target())
            for count in 2, 6, None:
                for got, expected in zip(values[count], values[3]):
                    np.testing.assert_allclose(got, expected, rtol=1e-6, err_msg=str(count))

    def test_parameter_servers_are_balanced_by_bytes(self):
        with tf.Graph().as_default():
            strategy = by_bytes(2)
            train, loss, _ = regression(strategy=strategy)
            tasks = {tf.DeviceSpec.from_string(v.device).task for v in tf.global_variables()}
            self.assertEqual(tasks, {0, 1})
            self.assertLess(abs(strategy.loads[0] - strategy.loads[1]), 60)
            with tf.Session(self.servers.target()) as session:
                session.run(tf.global_variables_initializer())
                losses = [session.run([loss, train])[0] for _ in range(10)]
            self.assertLess(losses[-1], losses[0])

    def test_supervisor(self):
        """A chief that initialises, saves and writes summaries; a worker that waits for it; both train."""
        folder, seen, errors, saved = os.path.join(self.folder, 'log'), {}, [], []

        def run(index):
            try:
                with tf.Graph().as_default():
                    train, _, _ = regression()
                    step, summary = tf.train.get_global_step(), tf.summary.merge_all()
                    supervisor = tf.train.Supervisor(is_chief=index == 0, logdir=folder if index == 0 else None, global_step=step,
                                                     recovery_wait_secs=0.1, save_model_secs=600, save_summaries_secs=600,
                                                     summary_op=summary, saver=tf.train.Saver())
                    with supervisor.managed_session(self.servers.target('worker', index)) as session:
                        while not supervisor.should_stop():
                            seen[index] = session.run([train, step])[1]
                            if seen[index] >= 30:
                                break
                        if index == 0:
                            supervisor.summary_computed(session, session.run(summary))
                            saved.append(supervisor.saver.save(session, supervisor.save_path, global_step=step))
            except Exception as error:  # for the main thread
                errors.append(error)
        threads = [threading.Thread(target=run, args=(index,)) for index in (1, 0)]
        for thread in threads:
            thread.start()
            time.sleep(0.2)
        for thread in threads:
            thread.join(120)
        self.assertEqual(errors, [])
        self.assertTrue(all(value >= 30 for value in seen.values()), seen)
        self.assertGreaterEqual(int(tf.train.load_variable(saved[0], 'global_step')), 30)
        tags = {value.tag for path in glob.glob(folder + '/events.*') for event in tf.train.summary_iterator(path)
                for value in event.summary.value}
        self.assertIn('loss', tags)

    def test_monitored_training_session_by_seconds_and_by_steps(self):
        folder, summaries = os.path.join(self.folder, 'monitored'), os.path.join(self.folder, 'summaries')
        for last in 6, 12:
            with tf.Graph().as_default():
                train, loss, _ = regression()
                step = tf.train.get_global_step()
                ready = tf.report_uninitialized_variables()
                scaffold = tf.train.Scaffold(init_fn=lambda scaffold, session: None, ready_op=ready, saver=tf.train.Saver(max_to_keep=3),
                                             summary_op=tf.summary.merge_all(), local_init_op=tf.local_variables_initializer())
                with tf.train.MonitoredTrainingSession(
                        self.servers.target(), is_chief=True, checkpoint_dir=folder, scaffold=scaffold,
                        hooks=[tf.train.StopAtStepHook(last_step=last), tf.train.NanTensorHook(loss),
                               tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=5), tf.train.StepCounterHook(every_n_steps=3)],
                        chief_only_hooks=[tf.train.SummarySaverHook(save_steps=2, output_dir=summaries, summary_op=tf.summary.merge_all())],
                        save_checkpoint_secs=0.001 if last == 6 else None, save_checkpoint_steps=None if last == 6 else 4,
                        save_summaries_steps=3, config=tf.ConfigProto(device_filters=['/job:ps', '/job:worker/task:0']),
                        stop_grace_period_secs=2, log_step_count_steps=2, max_wait_secs=60, summary_dir=summaries) as session:
                    first = session.run(step)
                    while not session.should_stop():
                        session.run(train)
                self.assertEqual(first, last - 6)
            self.assertEqual(int(tf.train.load_variable(tf.train.latest_checkpoint(folder), 'global_step')), last)
            tf.Session.reset(self.servers.target())
        self.assertTrue(glob.glob(summaries + '/events.*'))

    def train_through(self, when, what):
        """Trains to step 40 while what() happens after step `when`; the steps that sessions began with."""
        folder, began = os.path.join(self.folder, 'model'), []

        class Begins(tf.train.SessionRunHook):
            def after_create_session(self, session, coord):
                began.append(int(session.run(tf.train.get_global_step())))
        with tf.Graph().as_default():
            train, loss, _ = regression()
            step, happened = tf.train.get_global_step(), []
            with tf.train.MonitoredTrainingSession(
                    self.servers.target(), checkpoint_dir=folder, save_checkpoint_steps=5, save_summaries_steps=None, save_summaries_secs=None,
                    hooks=[Begins(), tf.train.StopAtStepHook(last_step=40)], log_step_count_steps=None) as session:
                while not session.should_stop():
                    at = session.run([train, step])[1]
                    if at >= when and not happened:
                        happened.append(at)
                        what()
        self.assertEqual(len(began), 2, began)
        self.assertEqual(began[0], 0)
        self.assertGreaterEqual(began[1], when - 6)
        self.assertGreaterEqual(int(tf.train.load_variable(tf.train.latest_checkpoint(folder), 'global_step')), 40)

    def restart(self, job, index):
        self.servers.kill(job, index)
        self.servers.start(job, index)

    def test_a_parameter_server_is_killed(self):
        self.train_through(17, lambda: self.restart('ps', 1))

    def test_the_worker_is_killed(self):
        self.train_through(17, lambda: self.restart('worker', 0))

    def test_all_are_killed(self):
        self.train_through(17, lambda: [self.restart(*task) for task in list(self.servers.running)])


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)

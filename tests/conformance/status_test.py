#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What a running server tells of itself: status_test.py PATH_OF_WEFT [unittest arguments]."""
import contextlib
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
import unittest
import urllib.error
import urllib.request

import processes
import tensorflow as tf

tf1 = tf.compat.v1
BINARY = None


class Task:
    """A server process with a known status port; its log is a file."""

    def __init__(self, spec, job, folder, *flags):
        self.job = job
        self.log_path = os.path.join(folder, job + '.log')
        self.target = 'grpc://' + spec[job][0]
        self.status_port = processes.free_ports(1)[0]
        self._command = [BINARY, 'server', '--cluster', json.dumps(spec), '--job_name', job,
                         '--status_port', str(self.status_port), *flags]
        self._start()

    def _start(self):
        with open(self.log_path, 'a') as log:
            self.process = subprocess.Popen(self._command, stderr=log, env=processes.talkative())

    def kill(self):
        self.process.kill()
        self.process.wait()

    def start_again(self):
        """Another process at the same address; it listens when this returns."""
        self._start()
        processes.wait_for_port(int(self.target.rsplit(':', 1)[1]), self.process)

    def get(self, path):
        try:
            with urllib.request.urlopen('http://127.0.0.1:%d%s' % (self.status_port, path), timeout=30) as answer:
                return answer.status, answer.read().decode()
        except urllib.error.HTTPError as error:
            return error.code, error.read().decode()

    def metrics(self):
        """{name with labels: value}"""
        lines = self.get('/metrics')[1].splitlines()
        return {line.rsplit(' ', 1)[0]: float(line.rsplit(' ', 1)[1]) for line in lines if not line.startswith('#')}

    def log(self):
        with open(self.log_path) as log:
            return log.read().splitlines()


@contextlib.contextmanager
def tasks(*flags):
    with tempfile.TemporaryDirectory() as folder:
        spec = {job: ['127.0.0.1:%d' % port] for job, port in zip(('ps', 'worker'), processes.free_ports(2))}
        started = {job: Task(spec, job, folder, *flags) for job in spec}
        try:
            for task in started.values():
                processes.wait_for_port(int(task.target.rsplit(':', 1)[1]), task.process)
            yield started
        finally:
            for task in started.values():
                processes.stop(task.process)


def wait_until(condition, what, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError('waited %d s for %s' % (seconds, what))
        time.sleep(0.02)


class StatusTest(unittest.TestCase):
    def test_metrics_count_what_a_client_does(self):
        with tasks() as cluster, tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.zeros([1000]), use_resource=True)
            with tf.device('/job:worker/task:0'):
                unset = tf1.get_variable('unset', [1], use_resource=True).read_value()
                grow = tf1.assign_add(w, tf1.placeholder_with_default(tf.ones([1000]), [1000], 'x'))
            worker, ps = cluster['worker'], cluster['ps']
            wait_until(lambda: worker.get('/healthz') == (200, 'ok\n'), 'a healthy worker')
            before = worker.metrics()
            with tf1.Session(worker.target) as session:
                session.run(w.initializer)
                for _ in range(10):
                    session.run(grow)
                with self.assertRaises(tf.errors.FailedPreconditionError):
                    session.run(unset)
                now = worker.metrics()
                self.assertEqual(now['weft_sessions'], 1)
                self.assertGreaterEqual(now['weft_graphs'], 1)
                self.assertGreaterEqual(ps.metrics()['weft_task_sessions'], 1)
                self.assertEqual(now['weft_steps_total'] - before['weft_steps_total'], 12)
                self.assertEqual(now['weft_failed_steps_total'], 1)
                self.assertEqual(now['weft_step_seconds_count'], now['weft_steps_total'])
                self.assertEqual(now['weft_step_seconds_bucket{le="+Inf"}'], now['weft_steps_total'])
                self.assertGreater(now['weft_data_sent_bytes_total'], 10 * 4000)
                self.assertGreater(ps.metrics()['weft_data_received_bytes_total'], 10 * 4000)
                for name in 'process_resident_memory_bytes', 'process_threads', 'process_uptime_seconds':
                    self.assertGreater(now[name], 0)
            wait_until(lambda: worker.metrics()['weft_sessions'] == 0, 'the end of the session')
            wait_until(lambda: ps.metrics()['weft_graphs'] == 0, 'the end of its graphs elsewhere')
            self.assertEqual(ps.metrics()['weft_open_steps'], 0)

    def test_staleness_counts_updates_since_a_step_has_read(self):
        with tasks() as cluster, tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                w = tf1.get_variable('w', initializer=tf.zeros([]), use_resource=True)
                go_on = tf1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='go_on')
                read = w.read_value()
                has_read = tf1.get_variable('has_read', initializer=tf.zeros([]), use_resource=True)
                with tf.control_dependencies([tf1.assign(has_read, read + 1.0)]):
                    held = go_on.dequeue()
                late = tf1.assign_add(w, held + 0 * read)
                quick = tf1.assign_add(w, 1.0)
            worker, ps = cluster['worker'], cluster['ps']
            with tf1.Session(worker.target) as session:
                session.run([w.initializer, has_read.initializer])
                steps = threading.Thread(target=lambda: session.run(late))
                steps.start()
                wait_until(lambda: session.run(has_read) == 1, 'a step that has read')
                before = ps.metrics()
                for _ in range(3):
                    session.run(quick)
                session.run(go_on.enqueue(10.0))
                steps.join()
                self.assertEqual(session.run(w), 13)
            now = ps.metrics()
            grown = lambda name: now['weft_update_staleness' + name] - before['weft_update_staleness' + name]
            self.assertEqual(grown('_sum'), 3)
            self.assertEqual(grown('_count'), 4)
            self.assertEqual(grown('_bucket{le="0"}'), 3)
            self.assertEqual(worker.metrics()['weft_update_staleness_count'], 0)

    def test_waits_say_who_waits_for_whom(self):
        with tasks() as cluster, tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                queue = tf1.FIFOQueue(1, [tf.float32], shapes=[[]], shared_name='q')
                value = queue.dequeue(name='take')
            with tf.device('/job:worker/task:0'):
                doubled = tf.add(value, value, name='doubled')
            worker, ps = cluster['worker'], cluster['ps']
            with tf1.Session(worker.target) as session:
                results = []
                thread = threading.Thread(target=lambda: results.append(session.run(doubled)))
                thread.start()
                wait_until(lambda: "'take" in worker.get('/waits')[1], 'a wait for the tensor')
                waits = json.loads(worker.get('/waits?json')[1])
                self.assertTrue(all(wait['waiter'].startswith('/job:worker/replica:0/task:0') for wait in waits), waits)
                self.assertTrue(any(wait['on'].startswith('/job:ps/replica:0/task:0') and 'take' in wait['what']
                                    for wait in waits), waits)
                self.assertGreaterEqual(worker.metrics()['weft_waits'], 1)
                session.run(queue.enqueue(3.0))
                thread.join(60)
                self.assertEqual(results, [6.0])
            wait_until(lambda: worker.get('/waits?json')[1] == '[]\n', 'the end of the waits')
            self.assertEqual(ps.get('/waits')[1], '')

    def test_json_logs_name_their_task(self):
        with tasks('--log_format', 'json') as cluster:
            ps = cluster['ps']
            processes.stop(ps.process)
            self.assertEqual(ps.process.returncode, 0)
            lines = [json.loads(line) for line in ps.log()]
        self.assertGreaterEqual(len(lines), 3)
        for line in lines:
            self.assertEqual((line['job'], line['task']), ('ps', 0), line)
        text = ' '.join(line['msg'] for line in lines)
        self.assertIn('serves at ' + ps.target, text)
        self.assertIn('http://127.0.0.1:%d/metrics' % ps.status_port, text)

    def test_the_page_lists_what_there_is(self):
        with open(os.path.join(processes.ROOT, 'docs', 'operating.md')) as page:
            words = set(re.findall(r'`(?:weft server )?([\w-]+)[^`]*`', page.read()))
        with tasks() as cluster:
            wait_until(lambda: cluster['ps'].get('/healthz')[0] == 200, 'a healthy server')
            types = re.findall(r'^# TYPE (\w+)', cluster['ps'].get('/metrics')[1], re.M)
        self.assertGreater(len(types), 15)
        self.assertEqual({word for word in words if word.startswith(('weft_', 'process_'))}, set(types))
        usage = subprocess.run([BINARY, 'server', '--help'], stdout=subprocess.PIPE, text=True, check=True).stdout
        flags = set(re.findall(r'--\w+', usage)) - {'--help', '--root', '--job_name', '--task_index'}
        self.assertEqual(flags - words, set())

    def test_version(self):
        out = subprocess.run([BINARY, '--version'], stdout=subprocess.PIPE, text=True, check=True).stdout
        self.assertRegex(out, re.compile(r'^weft \d+\.\d+\.\d+$', re.M))


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs for one device on servers that distribute them: the losses are those of one device, in TensorFlow itself.

    distribution_test.py BINARY

The tolerance is for the order in which sums over the batch are taken: 2e-5 relative, in float32.
"""
import itertools
import json
import os
import re
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf

import distribution_programs
import processes
from distribution_programs import cross_entropy, dense, images, labels, numbers, rows, weights

BINARY = processes.binary_from(sys.argv)
tf1 = tf.compat.v1
BATCH, STEPS = 12, 6
COUNTER = itertools.count()  # of containers: sessions on one cluster share variables by name
TOLERANCE = 2e-5


def perceptron(optimizer):
    def build():
        hidden = dense(dense(rows(), 'one', 16, tf.nn.relu), 'two', 12, tf.tanh)
        loss = cross_entropy(dense(hidden, 'three', 4), labels())
        return loss, optimizer().minimize(loss)
    return build


def regression():
    """The oldest of all: a line, and the sum of squares."""
    x, y = tf1.placeholder(tf.float32, [None], 'x'), tf1.placeholder(tf.float32, [None], 'y')
    loss = tf.reduce_sum(tf.square(x * weights('slope') + weights('offset') - y))
    return loss, tf1.train.GradientDescentOptimizer(.01).minimize(loss)


def convolutions():
    x = tf.nn.relu(tf.nn.conv2d(images(), weights('c1', 3, 3, 2, 8), 1, 'SAME') + weights('c1b', 8))
    x = tf.nn.max_pool2d(x, 2, 2, 'SAME')
    x = tf1.nn.bias_add(tf.nn.conv2d(x, weights('c2', 3, 3, 8, 8), 2, 'VALID'), weights('c2b', 8))
    x = tf.reshape(tf.nn.avg_pool2d(tf.nn.relu(x), 1, 1, 'VALID'), [-1, 8])
    loss = cross_entropy(dense(x, 'last', 4), labels())
    return loss, tf1.train.MomentumOptimizer(.1, .9).minimize(loss)


def embeddings():
    """Sparse updates, once with duplicates that the optimizer adds up."""
    ids = tf1.placeholder(tf.int32, [None, 3], 'ids')
    words = tf.nn.embedding_lookup(weights('table', 20, 5), ids)
    loss = cross_entropy(dense(tf.reshape(words, [-1, 15]), 'last', 4), labels())
    return loss, tf1.train.AdagradOptimizer(.1).minimize(loss)


def embeddings_by_momentum():
    ids = tf1.placeholder(tf.int32, [None, 3], 'ids')
    words = tf.reduce_mean(tf.nn.embedding_lookup(weights('table', 20, 5), ids), 1)
    loss = cross_entropy(dense(words, 'last', 4), labels())
    return loss, tf1.train.AdamOptimizer(.01).minimize(loss)


def clipped_and_regularised():
    x = dense(rows(), 'one', 16, tf.sigmoid)
    loss = cross_entropy(dense(x, 'two', 4), labels())
    loss += .01 * tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables()])
    optimizer = tf1.train.GradientDescentOptimizer(.5)
    gradients, variables = zip(*optimizer.compute_gradients(loss))
    clipped, _ = tf.clip_by_global_norm(gradients, .1)
    return loss, optimizer.apply_gradients(zip(clipped, variables), global_step=tf1.train.get_or_create_global_step())


def falling_rate_and_two_losses():
    x = rows()
    y = tf1.placeholder(tf.float32, [None, 4], 'soft')
    rate = tf1.placeholder(tf.float32, [], 'rate')
    logits = dense(tf.concat([dense(x, 'a', 6, tf.nn.elu), dense(x, 'b', 5, tf.nn.softplus)], 1), 'c', 4)
    loss = tf.reduce_mean(tf1.nn.softmax_cross_entropy_with_logits_v2(labels=y, logits=logits))
    loss += tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    step = tf1.train.get_or_create_global_step()
    return loss, tf1.train.RMSPropOptimizer(rate * tf1.train.exponential_decay(1., step, 2, .9)).minimize(loss, step)


def unrolled_recurrence():
    x = tf1.placeholder(tf.float32, [None, 4, 6], 'series')
    state, cell = tf.zeros([tf.shape(x)[0], 7]), weights('cell', 13, 7)
    for t in range(4):
        state = tf.tanh(tf.matmul(tf.concat([x[:, t], state], 1), cell))
    loss = cross_entropy(dense(state, 'last', 4), labels())
    return loss, tf1.train.GradientDescentOptimizer(.5).minimize(loss)


def resource_variables():
    tf1.enable_resource_variables()
    try:
        return perceptron(lambda: tf1.train.AdamOptimizer(.01))()
    finally:
        tf1.disable_resource_variables()


SPLIT = {
    'regression': regression, 'descent': perceptron(lambda: tf1.train.GradientDescentOptimizer(.5)),
    'adam': perceptron(lambda: tf1.train.AdamOptimizer(.01)), 'ftrl': perceptron(lambda: tf1.train.FtrlOptimizer(.1)),
    'convolutions': convolutions, 'embeddings': embeddings, 'embeddings_by_momentum': embeddings_by_momentum,
    'clipped_and_regularised': clipped_and_regularised,
    'falling_rate_and_two_losses': falling_rate_and_two_losses,
    'unrolled_recurrence': unrolled_recurrence, 'resource_variables': resource_variables,
    **{program.__name__: program for program in distribution_programs.PROGRAMS},
}


def feeds_of(graph, step, batch=BATCH):
    random = np.random.RandomState(step)
    values = {'images:0': lambda: random.rand(batch, 8, 8, 2), 'labels:0': lambda: random.randint(4, size=batch),
              'ids:0': lambda: random.randint(20, size=(batch, 3)), 'rate:0': lambda: .01,
              'soft:0': lambda: random.dirichlet([1.] * 4, batch), 'tokens:0': lambda: random.rand(batch, 5, 8),
              'series:0': lambda: random.rand(batch, 4, 6), 'y:0': lambda: random.rand(batch),
              'other:0': lambda: random.rand(batch, 7)}
    feeds = {}
    for operation in graph.get_operations():
        if operation.type == 'Placeholder':
            tensor = operation.outputs[0]
            make = values.get(tensor.name)
            feeds[tensor] = make() if make else random.rand(*([batch] + [int(d) for d in tensor.shape[1:]]))
    return feeds


def losses(build, target='', config=None, batches=(BATCH,) * STEPS):
    """The loss of each step, and all variables after the last."""
    with tf.Graph().as_default() as graph, graph.container('container%d' % next(COUNTER)):
        loss, train, *rest = build()
        wanted = [loss] + [tensor for more in rest for tensor in more]
        initializer = tf.group(tf1.global_variables_initializer(), tf1.local_variables_initializer())
        with tf1.Session(target, config=config) as session:
            session.run(initializer)
            found = [session.run([wanted, train], feeds_of(graph, step, batch))[0] for step, batch in enumerate(batches)]
            return found, session.run({v.name: v for v in tf1.global_variables()})


def asking(how):
    config = tf1.ConfigProto()
    optimizer = config.graph_options.rewrite_options.custom_optimizers.add(name='weft')
    optimizer.parameter_map['distribution'].s = how.encode()
    return config


def places_of(metadata):
    """The task of each node that ran."""
    return {node.node_name.split(':')[0]: device.device.split('/device')[0]
            for device in metadata.step_stats.dev_stats for node in device.node_stats}


def cutting(least_bytes):
    """A configuration that cuts variables of so many bytes over the servers."""
    config = asking('auto')
    config.graph_options.rewrite_options.custom_optimizers[0].parameter_map['cut_bytes'].i = least_bytes
    return config


def changed_by_hand():
    """Rows that are added to, overwritten and asked about by ops of one's own."""
    ids = tf1.placeholder(tf.int32, [None, 3], 'ids')
    table = tf1.get_variable('table', initializer=numbers(20, 2, 2), use_resource=True)
    other = tf1.get_variable('other', initializer=numbers(20, 5), use_resource=False)
    found = tf.reshape(tf.nn.embedding_lookup(table, ids), [-1, 12])
    loss = cross_entropy(dense(tf.concat([found, tf.nn.embedding_lookup(other, ids[:, 0])], 1), 'last', 4), labels())
    loss += .01 * tf.nn.l2_loss(table)
    train = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
    changes = [train]
    for change in (lambda: tf1.scatter_add(other, [[1, 19], [7, 1]], tf.ones([2, 2, 5])), lambda: tf1.scatter_update(other, [3, 12], 0.),
                   lambda: table.scatter_sub(tf.IndexedSlices(tf.ones([2, 2, 2]), tf.constant([0, 19]))),
                   lambda: tf1.assign_add(other, tf.ones([20, 5]))):
        with tf.control_dependencies(changes[-1:]):  # one after the other
            changes.append(change())
    with tf.control_dependencies(changes):
        after = [tf.reduce_sum(table.read_value()), tf.shape(table), tf1.is_variable_initialized(other),
                 tf.gather(other, [[0], [19]]), tf.gather(other, tf.zeros([0], tf.int64))]
    return loss, train, after


# More than these with CUT=all in the environment.
CUT = ['adam', 'ftrl', 'embeddings', 'embeddings_by_momentum', 'clipped_and_regularised', 'resource_variables', 'keras_lstm']


class DistributionTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.log = tempfile.NamedTemporaryFile('r')
        cls.addClassCleanup(cls.log.close)
        cls.written = open(cls.log.name, 'w')
        cls.addClassCleanup(cls.written.close)
        context = processes.cluster(BINARY, flags=['--distribution', 'auto'], log=cls.written, ps=2, worker=3)
        cls.cluster = context.__enter__()
        cls.addClassCleanup(context.__exit__, None, None, None)
        cls.target = cls.cluster['worker'][0]

    def said(self):
        """What the log said of distribution since the last call."""
        return [line for line in self.log.read().splitlines() if 'Distribution:' in line]

    def assert_same(self, build, config=None, **more):
        self.said()
        found = losses(build, self.target, config, **more)
        said = self.said()
        self.assert_equal(found, losses(build, **more))
        return said

    def assert_equal(self, found, expected):
        for here, there in zip(found[0], expected[0]):
            for value, wanted in zip(here, there):
                np.testing.assert_allclose(value, wanted, rtol=TOLERANCE, atol=TOLERANCE)
        for name, value in expected[1].items():
            np.testing.assert_allclose(found[1][name], value, rtol=1e-4, atol=1e-4, err_msg=name)

    def test_batches_that_do_not_split(self):
        """The last batch of an epoch runs on one device."""
        said = self.assert_same(SPLIT['descent'], batches=(12, 12, 7, 12, 6, 5, 12))
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], 'run on each of 3 workers, on a share of 12 rows')

    def test_batches_that_split_later(self):
        said = self.assert_same(SPLIT['adam'], batches=(7, 12, 12))
        self.assertRegex(said[0], 'runs as it is: a batch of 7 does not split over 3 workers evenly')
        self.assertRegex(said[1], 'run on each of 3 workers')

    def test_dropout_drops_what_one_device_drops(self):
        def build():
            tf1.set_random_seed(7)
            x = tf1.nn.dropout(dense(rows(), 'one', 16, tf.nn.relu), rate=.5)
            loss = cross_entropy(dense(x, 'two', 4), labels())
            return loss, tf1.train.GradientDescentOptimizer(.5).minimize(loss)
        said = self.assert_same(build)
        self.assertRegex(said[0], 'drawn once for all rows: dropout/random_uniform')

    def refusal(self, build):
        said = self.assert_same(build)
        self.assertEqual(len(said), 1, said)
        return said[0]

    def test_what_cannot_be_split_is_named(self):
        def fixed():
            x = tf1.placeholder(tf.float32, [BATCH, 10], 'x')
            loss = tf.reduce_mean(tf.square(dense(x, 'one', 3)))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        self.assertRegex(self.refusal(fixed), r"first size of what is fed is fixed \('x:0' of \[12,10\]\)")

        def as_often_as_a_row_says():
            x = rows()
            _, y = tf.while_loop(lambda i, y: y[0, 0] < 3, lambda i, y: (i + 1, y + 1), (0, x),
                                 shape_invariants=(tf.TensorShape([]), x.shape))
            loss = tf.reduce_mean(tf.square(dense(y, 'one', 3)))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        self.assertRegex(self.refusal(as_often_as_a_row_says), r"in a loop over the batch, the rows of 'while")

        def iterator():
            data = tf.data.Dataset.from_tensor_slices(numbers(24, 10)).repeat().batch(6)
            x = tf1.data.make_one_shot_iterator(data).get_next()
            loss = tf.reduce_mean(tf.square(dense(x, 'one', 3)))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        self.assertRegex(self.refusal(iterator), r"input comes from 'OneShotIterator'.* state is in one process")

    def test_rows_that_do_not_stay_apart_are_named(self):
        """Each row compared with each: nothing of it is one worker's."""
        def build():
            x = dense(rows(), 'one', 5)
            loss = tf.reduce_mean(tf.square(tf.matmul(x, x, transpose_b=True) - 1))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        self.assertRegex(self.refusal(build), r"'MatMul_1' \(MatMul\) brings each row of the batch together with all of its rows \('add' with 'add'\)")

    def test_programs_that_are_refused(self):
        for program, why in distribution_programs.REFUSED.items():
            with self.subTest(program.__name__):
                self.assertRegex(self.refusal(program), why)

    def test_loops_on_threads_of_their_own_are_traced(self):
        """Two loops that run side by side: each has its beginning, from which plans take what it costs."""
        with tf.Graph().as_default():
            x = distribution_programs.series()
            cell = weights('cell', 13, 7)

            def tower(x):
                first = tf.zeros([tf.shape(x)[0], 7])
                return tf.while_loop(lambda t, _: t < 4, lambda t, h: (t + 1, tf.tanh(tf.matmul(tf.concat([x[:, t], h], 1), cell))), (0, first))[1]
            loss = tf.reduce_mean(tf.square(tower(x) - tower(-x)))
            train = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
            fed, traced = {x: numbers(240, 4, 6)}, set()
            with tf1.Session(self.target, config=asking('written')) as session:
                session.run(tf1.global_variables_initializer())
                for _ in range(40):
                    metadata = tf1.RunMetadata()
                    session.run(train, fed, options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), run_metadata=metadata)
                    for node in (node for device in metadata.step_stats.dev_stats for node in device.node_stats):
                        self.assertLess(node.all_end_rel_micros, 60e6, node)
                        if 'While(' in node.timeline_label:
                            traced.add(node.node_name)
            self.assertEqual(len(traced), 4, traced)

    def test_written_distributions_stay(self):
        def build():
            with tf.device('/job:ps/task:1'):
                w = weights('w', 10, 3)
            loss = tf.reduce_mean(tf.square(tf.matmul(rows(), w)))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        self.said()
        losses(build, self.target)
        self.assertRegex(self.said()[0], "asks for /job:ps/task:1: the distribution of this graph is written")

    def test_sessions_ask_for_themselves(self):
        build = SPLIT['descent']
        self.said()
        losses(build, self.target, asking('written'))
        self.assertEqual(self.said(), [])
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "expected written, auto or required"):
            losses(build, self.target, asking('always'))

        def fixed():
            loss = tf.reduce_mean(tf.square(dense(tf1.placeholder(tf.float32, [BATCH, 10], 'x'), 'one', 3)))
            return loss, tf1.train.GradientDescentOptimizer(.1).minimize(loss)
        with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "requires that its training is distributed.*is fixed"):
            losses(fixed, self.target, asking('required'))

    def test_the_largest_variable_is_cut_and_saved_whole(self):
        """A table of a megabyte, and a checkpoint that TensorFlow itself reads, and writes."""
        def build():
            table = tf1.get_variable('table', [9001, 32], initializer=tf1.random_uniform_initializer(seed=3))
            ids = tf1.placeholder(tf.int32, [None], 'ids')
            loss = cross_entropy(dense(tf.nn.embedding_lookup(table, ids), 'last', 4), labels())
            return loss, tf1.train.AdagradOptimizer(.1).minimize(loss)
        with tempfile.TemporaryDirectory() as folder, tf.Graph().as_default() as graph, graph.container('saved'):
            loss, train = build()
            everything, saver = tf1.global_variables(), tf1.train.Saver()
            feeds = {'ids:0': [0, 9000, 4501, 4500], 'labels:0': [0, 1, 2, 3]}
            self.said()
            with tf1.Session(self.target) as session:
                session.run(tf1.global_variables_initializer())
                metadata = tf1.RunMetadata()
                for _ in range(3):
                    session.run(train, feeds, tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE), metadata)
                updates = {name: place for name, place in places_of(metadata).items() if re.search('SparseApplyAdagrad/of_server_[01]$', name)}
                self.assertEqual(sorted(updates.values()), ['/job:ps/replica:0/task:0', '/job:ps/replica:0/task:1'], updates)
                path = saver.save(session, os.path.join(folder, 'ours'))
                ours = session.run([loss, everything], feeds)
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, r'indices\[0\] = .* is not in \[0, '):
                    session.run(loss, {'ids:0': [9001], 'labels:0': [0]})
            said = self.said()
            self.assertEqual([re.search("variable '(.*)' of", line).group(1) for line in said[:2]], ['table', 'table/Adagrad'])
            with tf1.Session() as session:
                saver.restore(session, path)
                theirs = session.run([loss, everything], feeds)
                np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
                for one, other in zip(ours[1], theirs[1]):
                    np.testing.assert_array_equal(one, other)
                for _ in range(3):
                    session.run(train, feeds)
                path, theirs = saver.save(session, os.path.join(folder, 'theirs')), session.run(everything)
            with tf1.Session(self.target) as session:
                saver.restore(session, path)
                for one, other in zip(session.run(everything), theirs):
                    np.testing.assert_array_equal(one, other)

    def test_nodes_that_come_later_cannot_take_what_is_cut(self):
        with tf.Graph().as_default() as graph, graph.container('later'):
            table = tf1.get_variable('table', initializer=numbers(20, 5))
            with tf1.Session(self.target, config=cutting(1)) as session:
                session.run(table.initializer)
                changed = tf1.scatter_nd_update(table, [[1, 2]], [0.])
                with self.assertRaisesRegex(tf.errors.InvalidArgumentError, "takes the variable 'table', which is cut into 2 parts"):
                    session.run(changed)

    def test_variables_lie_on_the_servers(self):
        with tf.Graph().as_default() as graph, graph.container('traced'):
            loss, train = SPLIT['descent']()
            with tf1.Session(self.target) as session:
                session.run(tf1.global_variables_initializer())
                metadata = tf1.RunMetadata()
                session.run([loss, train], feeds_of(graph, 0), run_metadata=metadata,
                            options=tf1.RunOptions(trace_level=tf1.RunOptions.FULL_TRACE))
        ran = places_of(metadata)
        updates = {name: ran[name] for name in ran if name.endswith('ApplyGradientDescent')}
        self.assertEqual({task.split('/')[1] for task in updates.values()}, {'job:ps'}, updates)
        computed = {ran[name] for name in ran if not re.search('_(send|recv)', name)}
        self.assertLessEqual({'/job:worker/replica:0/task:%d' % worker for worker in range(3)}, computed, sorted(ran.items()))


def _add(name, build):
    def test(self):
        said = self.assert_same(build)
        self.assertEqual(len(said), 1, said)
        self.assertRegex(said[0], 'nodes run on each of 3 workers, on a share of %d rows' % BATCH)
    setattr(DistributionTest, 'test_equals_one_device_' + name, test)


def _add_cut(name, build):
    def test(self):
        said = self.assert_same(build, cutting(1))
        self.assertRegex(said[0], "variable '.*' of [0-9]* bytes is cut by rows over 2 servers")
        self.assertRegex(said[-1], 'nodes run on each of 3 workers, on a share of %d rows' % BATCH)
    setattr(DistributionTest, 'test_cut_variables_' + name, test)


for _name, _build in SPLIT.items():
    _add(_name, _build)
    if _name in CUT or (os.environ.get('CUT') == 'all' and _name != 'regression'):  # that has no rows
        _add_cut(_name, _build)
_add_cut('changed_by_hand', changed_by_hand)


class ProgramTest(unittest.TestCase):
    PROGRAM = '''
import numpy as np, tensorflow as tf
tf1 = tf.compat.v1
tf1.disable_eager_execution()
x = tf1.placeholder(tf.float32, [None, 4]); y = tf1.placeholder(tf.float32, [None, 1])
w = tf1.get_variable('w', initializer=np.ones([4, 1], np.float32))
loss = tf.reduce_mean(tf.square(tf.matmul(x, w) - y))
train = tf1.train.GradientDescentOptimizer(.1).minimize(loss)
with tf1.train.MonitoredTrainingSession() as session:
    for step in range(5):
        at = np.random.RandomState(step).rand(8, 4)
        last = session.run([loss, train], {x: at, y: at.sum(1, keepdims=True) * 2})[0]
print('loss %.4f' % last)
'''

    def run_tasks(self, command, **environment):
        """Each task of a job of one server and two workers runs the command; what the first worker said."""
        ports = processes.free_ports(3)
        cluster = {'ps': ['127.0.0.1:%d' % ports[0]], 'worker': ['127.0.0.1:%d' % port for port in ports[1:]]}
        tasks = {}
        try:
            for job, index in ('ps', 0), ('worker', 1), ('worker', 0):
                tasks[job, index] = subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, preexec_fn=processes.die_with_parent,
                    env=dict(processes.talkative(), WEFT_BINARY=BINARY, PYTHONPATH=os.path.join(processes.ROOT, 'python'),
                             TF_CPP_MAX_LOG_LEVEL='3', TF_CONFIG=json.dumps({
                                 'cluster': cluster, 'task': {'type': job, 'index': index}}), **environment))
            said, _ = tasks['worker', 0].communicate(timeout=120)
            self.assertEqual(tasks['worker', 0].returncode, 0, said)
            for task in ('ps', 0), ('worker', 1):
                self.assertIsNone(tasks[task].poll(), 'the others serve until they are told to end')
            return said
        finally:
            for process in tasks.values():
                processes.stop(process)
                process.stdout.close()

    def test_a_program_for_one_device_as_all_tasks_of_a_job(self):
        with tempfile.TemporaryDirectory() as folder:
            path = os.path.join(folder, 'train.py')
            with open(path, 'w') as out:
                out.write(self.PROGRAM)
            alone = subprocess.run([sys.executable, path], text=True, capture_output=True, timeout=120)
            loss = alone.stdout.splitlines()[-1]
            under_the_shim = self.run_tasks([sys.executable, '-m', 'weft', '--distribution=auto', path])
            self.assertIn(loss, under_the_shim)
            self.assertRegex(under_the_shim, 'nodes run on each of 2 workers')
            beside_a_server = self.run_tasks([BINARY, 'server', '--distribution', 'auto', '--',
                                              sys.executable, '-m', 'weft', path])
            self.assertIn(loss, beside_a_server)
            self.assertRegex(beside_a_server, 'nodes run on each of 2 workers')


if __name__ == '__main__':
    unittest.main()

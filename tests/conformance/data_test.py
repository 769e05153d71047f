#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Datasets of the real client beside TensorFlow's own: data_test.py PATH_OF_WEFT [unittest arguments]."""
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
import unittest

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

import data_pipelines  # noqa: E402
import processes  # noqa: E402

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
BINARY = None
MOST = 60  # elements of a pipeline that are compared
PLAIN = tf1.ConfigProto()
PLAIN.graph_options.optimizer_options.opt_level = -1


def plain(value):
    """What two sessions give alike, in a form that compares."""
    if isinstance(value, (tf1.SparseTensorValue, tuple, list)):
        return [plain(part) for part in value]
    if isinstance(value, dict):
        return {key: plain(part) for key, part in value.items()}
    if hasattr(value, 'to_list'):
        return value.to_list()
    array = np.asarray(value)
    return 'string' if array.dtype.kind in 'OS' else str(array.dtype), array.tolist()


def walk(target, build, folder, one_shot):
    """The elements of a pipeline in two ways through it, and how each ends."""
    ways = []
    with tf.Graph().as_default():
        tf1.set_random_seed(7)
        dataset = build(folder)
        if one_shot:
            iterator = tf1.data.make_one_shot_iterator(dataset)
        else:
            iterator = tf1.data.make_initializable_iterator(dataset)
        following = iterator.get_next()
        with tf1.Session(target, config=PLAIN) as session:
            for _ in range(1 if one_shot else 2):
                elements, end = [], None
                try:
                    if not one_shot:
                        session.run([iterator.initializer, tf1.tables_initializer()])
                    while len(elements) < MOST and end is None:
                        elements.append(plain(session.run(following)))
                except tf.errors.OpError as error:
                    end = error.error_code
                ways.append((elements, end))
    return ways


class PipelinesTest(unittest.TestCase):
    """Made of data_pipelines.PIPELINES: one test each."""

    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='weft-data-')
        data_pipelines.write_files(cls.folder)
        cls._cluster = processes.cluster(BINARY, folder=cls.folder, local=1)
        cls.target = cls._cluster.__enter__()['local'][0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def check(self, name):
        build = data_pipelines.PIPELINES[name]
        for one_shot in False, True:
            if one_shot and name in data_pipelines.NOT_ONE_SHOT:
                continue
            wanted = walk('', build, tempfile.mkdtemp(dir=self.folder, prefix='theirs-'), one_shot)
            got = walk(self.target, build, tempfile.mkdtemp(dir=self.folder, prefix='ours-'), one_shot)
            self.assertEqual(got, wanted)


for _name in data_pipelines.PIPELINES:
    setattr(PipelinesTest, 'test_' + _name, lambda self, name=_name: self.check(name))


class IteratorsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.mkdtemp(prefix='weft-data-')
        cls._cluster = processes.cluster(BINARY, folder=cls.folder, local=1)
        cls.cluster = cls._cluster.__enter__()
        cls.target = cls.cluster['local'][0]

    @classmethod
    def tearDownClass(cls):
        cls._cluster.__exit__(None, None, None)

    def test_an_iterator_that_has_not_begun_says_so(self):
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            following = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(3)).get_next()
            with self.assertRaisesRegex(tf.errors.FailedPreconditionError, 'has not been initialized'):
                session.run(following)

    def test_an_iterator_begins_with_another_dataset(self):
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            first, second = tf1.data.Dataset.range(3), tf1.data.Dataset.range(10, 12)
            iterator = tf1.data.Iterator.from_structure(tf1.data.get_output_types(first), tf1.data.get_output_shapes(first))
            following = iterator.get_next()
            begin = [iterator.make_initializer(dataset) for dataset in (first, second)]
            for dataset, wanted in (0, [0, 1, 2]), (1, [10, 11]), (0, [0, 1, 2]):
                session.run(begin[dataset])
                self.assertEqual([session.run(following) for _ in wanted], wanted)
                for _ in range(2):
                    with self.assertRaises(tf.errors.OutOfRangeError):
                        session.run(following)

    def test_an_iterator_is_fed(self):
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            training = tf1.data.make_one_shot_iterator(tf1.data.Dataset.range(5))
            checking = tf1.data.make_initializable_iterator(tf1.data.Dataset.range(100, 103))
            handle = tf1.placeholder(tf.string, [])
            following = tf1.data.Iterator.from_string_handle(
                handle, tf1.data.get_output_types(training), tf1.data.get_output_shapes(training)).get_next()
            names = session.run([training.string_handle(), checking.string_handle()])
            self.assertEqual([session.run(following, {handle: names[0]}) for _ in range(2)], [0, 1])
            session.run(checking.initializer)
            self.assertEqual([session.run(following, {handle: names[1]}) for _ in range(3)], [100, 101, 102])
            self.assertEqual(session.run(following, {handle: names[0]}), 2)
            with self.assertRaises(tf.errors.InvalidArgumentError):
                session.run(following, {handle: b'no handle'})

    def test_other_elements_than_the_iterator_takes_are_refused(self):
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            iterator = tf1.data.Iterator.from_structure(tf.int64, tf.TensorShape([None]))
            wrong = tf1.data.Dataset.from_tensors(tf.constant([1.5]))
            begin = tf.raw_ops.MakeIterator(dataset=wrong._variant_tensor, iterator=iterator._iterator_resource)
            with self.assertRaises(tf.errors.InvalidArgumentError):
                session.run(begin)

    def test_a_saver_saves_where_an_iterator_stands(self):
        folder = tempfile.mkdtemp(prefix='saved-', dir=self.folder)

        def build():
            dataset = tf1.data.Dataset.range(40).shuffle(20).map(lambda x: x * 2).batch(3).prefetch(2)
            iterator = tf1.data.make_initializable_iterator(dataset)
            saver = tf1.train.Saver({'pipeline': tf.data.experimental.make_saveable_from_iterator(iterator)})
            return iterator, iterator.get_next(), saver
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            iterator, following, saver = build()
            session.run(iterator.initializer)
            for _ in range(4):
                session.run(following)
            path = saver.save(session, os.path.join(folder, 'model'))
            rest = [session.run(following).tolist() for _ in range(10)]
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            iterator, following, saver = build()
            session.run(iterator.initializer)
            saver.restore(session, path)
            self.assertEqual([session.run(following).tolist() for _ in range(10)], rest)
            with self.assertRaises(tf.errors.OutOfRangeError):
                session.run(following)

    def blocked(self):
        """A graph whose iterator waits for a queue that nobody fills, and for one that is fed."""
        queue = tf1.FIFOQueue(10, [tf.int64], [[]], shared_name='data_test_%s' % self.id())
        dataset = tf1.data.Dataset.range(5).map(lambda x: x + queue.dequeue()).prefetch(1)
        iterator = tf1.data.make_initializable_iterator(dataset)
        return queue, iterator, iterator.get_next()

    def test_a_step_that_waits_for_an_element_ends_with_its_session(self):
        with tf.Graph().as_default():
            _, iterator, following = self.blocked()
            session = tf1.Session(self.target, config=PLAIN)
            session.run(iterator.initializer)
            ended = []

            def wait():
                try:
                    session.run(following)
                except tf.errors.OpError as error:
                    ended.append(error)
            thread = threading.Thread(target=wait)
            thread.start()
            time.sleep(0.3)
            session.close()
            thread.join(30)
            self.assertFalse(thread.is_alive())
            self.assertIsInstance(ended[0], tf.errors.CancelledError)

    def test_a_step_that_gives_up_leaves_the_element_to_the_next(self):
        with tf.Graph().as_default(), tf1.Session(self.target, config=PLAIN) as session:
            queue, iterator, following = self.blocked()
            more = queue.enqueue(np.int64(100))
            session.run(iterator.initializer)
            with self.assertRaises(tf.errors.DeadlineExceededError):
                session.run(following, options=tf1.RunOptions(timeout_in_ms=200))
            session.run(more)
            self.assertEqual(session.run(following), 100)

    def test_a_server_that_is_told_to_end_does_not_wait_for_elements(self):
        with processes.cluster(BINARY, local=1) as cluster, tf.Graph().as_default():
            _, iterator, following = self.blocked()
            # TensorFlow's client waits for ever to close a session of a server that has gone, unless told how long.
            config = tf1.ConfigProto(operation_timeout_in_ms=8000)
            config.MergeFrom(PLAIN)
            session = tf1.Session(cluster['local'][0], config=config)
            session.run(iterator.initializer)
            thread = threading.Thread(target=lambda: self.assertRaises(tf.errors.OpError, session.run, following))
            thread.start()
            time.sleep(0.3)
            server = cluster['processes']['local', 0]
            server.send_signal(signal.SIGTERM)
            try:
                server.wait(30)
            except subprocess.TimeoutExpired:
                self.fail('the server goes on')
            thread.join(30)
            self.assertFalse(thread.is_alive())

    def test_many_iterators_leave_no_threads(self):
        server = self.cluster['processes']['local', 0]

        def threads():
            return len(os.listdir('/proc/%d/task' % server.pid))

        def use():
            with tf.Graph().as_default():
                for _ in range(5):
                    dataset = tf1.data.Dataset.range(100).map(lambda x: x + 1, num_parallel_calls=2).prefetch(4)
                    following = tf1.data.make_one_shot_iterator(dataset).get_next()
                    with tf1.Session(self.target, config=PLAIN) as session:
                        self.assertEqual(session.run(following), 1)
        use()
        before = threads()
        for _ in range(6):
            use()
        deadline = time.monotonic() + 20
        while threads() > before + 5 and time.monotonic() < deadline:
            time.sleep(0.1)
        self.assertLessEqual(threads(), before + 5)

    def test_a_monitored_session_trains_to_the_end_of_a_dataset(self):
        with tf.Graph().as_default():
            x = np.arange(48, dtype=np.float32).reshape(24, 2)
            dataset = tf1.data.Dataset.from_tensor_slices((x, x.sum(1))).shuffle(24, seed=3).repeat(2).batch(8)
            iterator = tf1.data.make_initializable_iterator(dataset)
            tf1.add_to_collection(tf1.GraphKeys.TABLE_INITIALIZERS, iterator.initializer)
            features, labels = iterator.get_next()
            weights = tf1.get_variable('w', [2, 1], initializer=tf1.zeros_initializer())
            loss = tf.reduce_mean(tf.square(tf.squeeze(tf.matmul(features, weights), 1) - labels))
            step = tf1.train.get_or_create_global_step()
            train = tf1.train.GradientDescentOptimizer(1e-5).minimize(loss, step)
            losses = []
            with tf1.train.MonitoredTrainingSession(self.target, config=PLAIN, log_step_count_steps=2) as session:
                while not session.should_stop():
                    losses.append(session.run([train, loss])[1])
            self.assertEqual(len(losses), 6)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

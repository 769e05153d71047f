# SPDX-License-Identifier: Apache-2.0
"""Programs in the style of TensorFlow 1, each in TensorFlow's own session and on weft servers: the same numbers.

What stands here once came out differently; tf1_programs.py has what people wrote in those days. A program is a function
of a session target, run in a graph of its own.
"""
import concurrent.futures
import os
import sys
import tempfile
import unittest

import numpy as np
import tensorflow.compat.v1 as tf

import processes
import tf1_programs

tf.disable_v2_behavior()


def reads_behind_updates(target):
    """What waits for an update sees it, through reads that were made before."""
    x = tf.Variable(1.0)
    y = tf.Variable([1, 2], dtype=tf.int64)
    with tf.control_dependencies([tf.assign_add(x, 1.0)]):
        same, twice = tf.identity(x), x * 2.0
    with tf.control_dependencies([tf.assign(y, [5, 6])]):
        set_y = tf.identity(y)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run(t) for t in (same, twice, set_y, x)]


def moving_averages(target):
    """ExponentialMovingAverage.apply behind the training op averages the new weights."""
    w = tf.Variable([1.0, 2.0])
    step = tf.train.get_or_create_global_step()
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(w * w), global_step=step)
    averages = tf.train.ExponentialMovingAverage(0.9, step)
    with tf.control_dependencies([train]):
        both = averages.apply([w])
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        for _ in range(5):
            session.run(both)
        return session.run([w, averages.average(w), step])


def loop_gradients(target):
    """while_loop keeps what its gradient needs on stacks; map_fn, scan and foldl use TensorArrays."""
    x = tf.Variable(2.0)
    power = tf.while_loop(lambda i, y: i < 5, lambda i, y: (i + 1, y * x), [0, 1.0])[1]
    branching = tf.while_loop(
        lambda i, y: i < 6,
        lambda i, y: (i + 1, tf.cond(tf.equal(i % 2, 0), lambda: tf.sin(y), lambda: y * x)), [0, x])[1]
    nested = tf.while_loop(lambda i, y: i < 3, lambda i, y: (
        i + 1, tf.while_loop(lambda j, z: j < i, lambda j, z: (j + 1, z * x), [0, y])[1]), [0, 1.0])[1]
    ys = [power, branching, nested, tf.reduce_sum(tf.map_fn(lambda e: e * x * e, tf.constant([1.0, 2.0, 3.0]))),
          tf.reduce_sum(tf.scan(lambda a, e: a * e + x, tf.constant([1.0, 2.0, 3.0])))]
    with tf.Session(target) as session:
        session.run(x.initializer)
        return session.run(ys + [tf.gradients(y, x)[0] for y in ys])


def recurrent_net(target):
    """What dynamic_rnn builds: a loop over time that reads one TensorArray and writes another, trained."""
    x = tf.placeholder(tf.float32, [None, 5, 3])
    lengths = tf.placeholder(tf.int32, [None])
    w = tf.get_variable('w', [7, 4], initializer=tf.glorot_uniform_initializer(seed=1))
    inputs = tf.TensorArray(tf.float32, 5).unstack(tf.transpose(x, [1, 0, 2]))

    def body(time, state, outputs):
        new = tf.tanh(tf.matmul(tf.concat([inputs.read(time), state], 1), w))
        state = tf.where(time < lengths, new, state)
        return time + 1, state, outputs.write(time, state)
    _, state, outputs = tf.while_loop(lambda time, *_: time < 5, body, [
        0, tf.zeros([tf.shape(x)[0], 4]), tf.TensorArray(tf.float32, 5)])
    loss = tf.reduce_sum(state * state) + tf.reduce_sum(outputs.stack())
    train = tf.train.AdamOptimizer(0.01).minimize(loss)
    feeds = {x: np.random.RandomState(1).rand(2, 5, 3), lengths: [5, 3]}
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], feeds)[0] for _ in range(4)] + [session.run(w)]


def sparse_lookups(target):
    """embedding_lookup_sparse with each combiner, with weights and without, trained."""
    table = tf.get_variable('table', [10, 4], initializer=tf.random_uniform_initializer(seed=3))
    ids, weights = tf.sparse_placeholder(tf.int64), tf.sparse_placeholder(tf.float32)
    found = [tf.nn.embedding_lookup_sparse(table, ids, w, combiner=c) for c in ('sum', 'mean', 'sqrtn') for w in (None, weights)]
    loss = tf.add_n([tf.reduce_sum(tf.square(f)) for f in found])
    train = tf.train.AdagradOptimizer(0.1).minimize(loss)
    where, shape = [[0, 0], [0, 1], [2, 0]], [3, 2]
    feeds = {ids: tf.SparseTensorValue(where, [1, 2, 1], shape), weights: tf.SparseTensorValue(where, [1.0, 2.0, 0.5], shape)}
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, train], feeds)[0] for _ in range(3)] + session.run(found, feeds) + [session.run(table)]


def waits_for_feeds(target):
    """What waits for a fed placeholder, as tf.metrics does, does not run the placeholder."""
    x = tf.placeholder(tf.float32, [None])
    total = tf.Variable(0.0)
    with tf.control_dependencies([x]):
        grown, constant = tf.assign_add(total, 2.0), tf.identity(3.0)
    with tf.Session(target) as session:
        session.run(total.initializer)
        return session.run([grown, constant], {x: [1.0]})


def conditional_updates(target):
    """A variable that only one branch updates, read by another task."""
    x = tf.placeholder(tf.float32, [])
    device = '/job:ps/task:0' if target else None
    with tf.device(device):
        total = tf.Variable(1.0)
    with tf.device('/job:worker/task:0' if target else None):
        y = tf.cond(x > 0, lambda: tf.assign_add(total, x), lambda: total * 2)
    with tf.Session(target) as session:
        session.run(total.initializer)
        return [session.run(y, {x: one}) for one in (2.0, -1.0, 3.0, -5.0)]


def slices_of_variables(target):
    x, y = tf.Variable(tf.zeros([4, 3])), tf.Variable(tf.zeros([5]), use_resource=True)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return session.run([x[1:3, 0].assign([1.0, 2.0]), y[::2].assign(7.0)]) + session.run([x[:, 2].assign(x[:, 0] + 1), y])


def conditionals_in_conditionals(target):
    """Differentiated only after they ran: what their gradient needs travels as optionals of optionals."""
    x = tf.Variable(3.0)
    tf.enable_control_flow_v2()
    tf.experimental.output_all_intermediates(True)
    try:
        def inner():
            return tf.cond(x > 2.0, lambda: x * x * x, lambda: tf.sin(x))
        y = tf.cond(x > 0.0, lambda: inner() * inner() + x, lambda: tf.exp(x))
        with tf.Session(target) as session:
            session.run(x.initializer)
            before = session.run(y)
            slopes = tf.gradients([y, y * 2.0], x)
            return [before] + [session.run(slopes, {x: value}) for value in (3.0, 1.0, -1.0)]
    finally:
        tf.experimental.output_all_intermediates(False)
        tf.disable_control_flow_v2()


def constants_of_no_elements(target):
    """A string constant of no elements that has a value all the same, as tf.zeros makes it."""
    v = tf.Variable(tf.zeros([0], tf.string), use_resource=True)
    with tf.Session(target) as session:
        session.run(v.initializer)
        return [session.run(tf.shape(v))]


def gradients_of_defuns(target):
    """A Defun without a gradient of its own: the server differentiates it, also inside another one."""
    from tensorflow.python.framework import function

    @function.Defun(tf.float32, tf.float32, tf.int32)
    def layer(x, w, n):
        return tf.tanh(tf.matmul(x, w)) * tf.cast(n, tf.float32), tf.reduce_sum(w)

    @function.Defun(tf.float32, tf.float32)
    def slope(x, w):
        y, total = layer(x, w, 3)
        return tf.gradients(tf.reduce_sum(y) + total, [x, w])
    x, w = tf.constant([[0.25, -1.0], [0.5, 2.0]]), tf.Variable([[0.5, 1.0], [-0.25, 0.75]])
    y, total = layer(x, w, 2)
    slopes = tf.gradients(tf.reduce_sum(y * y) + total, [x, w])
    train = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(layer(x, w, 1)[0]))
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return session.run([y, slopes, slope(x, w)]) + [session.run(train)] + [session.run(w)]


def calls_in_batches(target):
    """Calls of steps that run at once, put together: two of two rows fill a batch of four, one is padded."""
    x = tf.placeholder(tf.float32, [None, 2])

    @tf.nondifferentiable_batch_function(1, 4, 3000000, allowed_batch_sizes=[3, 4])
    def model(rows):
        return rows * 2.0, tf.fill([tf.shape(rows)[0]], tf.shape(rows)[0])
    (rows, index, number) = tf.raw_ops.Batch(in_tensors=[x], num_batch_threads=1, max_batch_size=4, batch_timeout_micros=3000000,
                                             grad_timeout_micros=1000)
    back = tf.raw_ops.Unbatch(batched_tensor=rows[0] + 1.0, batch_index=index, id=number, timeout_micros=60000000)
    with tf.Session(target) as session:
        def together(fetches, *feeds):
            with concurrent.futures.ThreadPoolExecutor(len(feeds)) as pool:
                return list(pool.map(lambda feed: session.run(fetches, {x: feed}), feeds))
        a, b = [[1.0, 2.0], [3.0, 4.0]], [[5.0, 6.0], [7.0, 8.0]]
        asked = model(x)
        sizes = [shape for shape, in together([tf.shape(rows[0])], a, b)]
        return [together(asked, a, b), session.run(asked, {x: a}), sorted(size[0] for size in sizes), together(back, a, b)]


PROGRAMS = [calls_in_batches, gradients_of_defuns, conditionals_in_conditionals, constants_of_no_elements, waits_for_feeds, conditional_updates, slices_of_variables, sparse_lookups, reads_behind_updates, moving_averages, loop_gradients, recurrent_net]


def flat(values):
    return [one for value in values for one in (flat(value) if isinstance(value, (list, tuple)) else [value])]


class UserProgramsTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, folder=cls.folder, ps=1, worker=1))

    def run_program(self, program, target, device=None):
        folder = os.path.join(self.folder, program.__name__ + ('_here' if not target else '_there'))
        os.mkdir(folder)
        with tf.Graph().as_default(), tf.device(device):
            tf.set_random_seed(3)
            return flat(program(target, folder) if program in tf1_programs.PROGRAMS else program(target))


def _add(program):
    def test(self):
        expected = self.run_program(program, '')
        # The variables of the next program may have these names.
        self.addCleanup(tf.Session.reset, self.cluster['worker'][0])
        # Variables and tables at the parameter server, as every example of those days has it.
        device = tf.train.replica_device_setter(ps_tasks=1, worker_device='/job:worker/task:0')
        got = self.run_program(program, self.cluster['worker'][0], device if program in tf1_programs.PROGRAMS else None)
        self.assertEqual(len(expected), len(got))
        for one, other in zip(expected, got):
            if np.asarray(one).dtype == object:
                self.assertEqual(np.asarray(one).tolist(), np.asarray(other).tolist())
            else:
                np.testing.assert_allclose(np.asarray(one), np.asarray(other), rtol=1e-4, atol=1e-5)
    setattr(UserProgramsTest, 'test_' + program.__name__, test)


for _program in PROGRAMS + tf1_programs.PROGRAMS:
    _add(_program)


class TwoServersTest(unittest.TestCase):
    def test_steps_that_share_a_part_of_the_graph(self):
        """A step that fetches more, then one that does not: what goes to which server is theirs alone."""
        tables = [[1.0, 2.0], [10.0, 20.0]]
        with processes.cluster(BINARY, ps=2, worker=1) as cluster:
            variables = []
            for task, table in enumerate(tables):
                with tf.device('/job:ps/task:%d' % task):
                    variables.append(tf.Variable(table))
            with tf.device('/job:worker/task:0'):
                ids = tf.placeholder(tf.int32, [None])
                parts = tf.dynamic_partition(ids // 2, ids % 2, 2)
                seen = tf.identity(variables[1])
            found = []
            for task, part in enumerate(parts):
                with tf.device('/job:ps/task:%d' % task):
                    found.append(tf.gather(variables[task], part))
            options = tf.RunOptions(timeout_in_ms=60000)
            with tf.Session(cluster['worker'][0]) as session:
                session.run(tf.global_variables_initializer())
                for fetches in [found, seen], [found], [seen, found], [found[::-1]], [found]:
                    flat(session.run(fetches, {ids: [0, 1, 3]}, options=options))
                got = session.run(found, {ids: [0, 1, 3]}, options=options)
        self.assertEqual([[1.0], [10.0, 20.0]], [one.tolist() for one in got])

    def test_lists_of_tensors_go_from_task_to_task(self):
        """What map_fn and gradients of TensorFlow 2's loops keep of each round, where its reader is placed elsewhere."""
        with processes.cluster(BINARY, ps=1, worker=1) as cluster, tf.Graph().as_default():
            with tf.device('/job:ps/task:0'):
                rows = tf.raw_ops.TensorListFromTensor(tensor=[[1.0, 2.0], [3.0, 4.0]], element_shape=[2])
                holes = tf.raw_ops.TensorListReserve(element_shape=[2], num_elements=3, element_dtype=tf.float32)
                holes = tf.raw_ops.TensorListSetItem(input_handle=holes, index=1, item=[5.0, 6.0])
                nested = tf.raw_ops.EmptyTensorList(element_shape=-1, max_num_elements=-1, element_dtype=tf.variant)
                nested = tf.raw_ops.TensorListPushBack(input_handle=nested, tensor=rows)
            with tf.device('/job:worker/task:0'):
                more = tf.raw_ops.TensorListPushBack(input_handle=rows, tensor=[7.0, 8.0])
                inner = tf.raw_ops.TensorListPopBack(input_handle=nested, element_shape=-1, element_dtype=tf.variant)[1]

                def stacked(handle):
                    return tf.raw_ops.TensorListStack(input_handle=handle, element_shape=[2], element_dtype=tf.float32, num_elements=-1)
                with tf.Session(cluster['worker'][0]) as session:
                    got = session.run([stacked(more), stacked(holes), stacked(inner)])
        self.assertEqual([one.tolist() for one in got], [[[1, 2], [3, 4], [7, 8]], [[0, 0], [5, 6], [0, 0]], [[1, 2], [3, 4]]])

    def test_the_gradient_of_a_loop_that_is_placed_elsewhere(self):
        """minimize() outside of tf.device gives the loop's counters and its gradient no device."""
        def train(target, ps, worker):
            with tf.Graph().as_default():
                with tf.device(ps):
                    w = tf.get_variable('w', initializer=[1.5, 0.5])
                with tf.device(worker):
                    x = tf.constant([0.25, 1.0])
                    y = tf.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, tf.tanh(y * w + x)), [0, x])[1]
                step = tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
                with tf.Session(target) as session:
                    session.run(w.initializer)
                    for _ in range(3):
                        session.run(step)
                    return session.run([w, y])

        expected = train('', None, None)
        with processes.cluster(BINARY, ps=1, worker=2) as cluster:
            got = train(cluster['worker'][0], '/job:ps/task:0', '/job:worker/task:1')
        np.testing.assert_allclose(expected, got, rtol=1e-5)


if __name__ == '__main__':
    os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

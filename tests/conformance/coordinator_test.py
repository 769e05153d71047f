#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A program of TensorFlow 2 trains by ParameterServerStrategy and ClusterCoordinator on weft servers: coordinator_test.py [WEFT].

Each case runs in a process of its own: a program of TensorFlow 2 connects once.
"""
import os
import signal
import subprocess
import sys
import time
import unittest

import processes

ROWS = 8


def data():
    import numpy as np
    rows = np.random.RandomState(5)
    x = rows.randn(64, 3).astype(np.float32)
    return x, (x @ np.array([[1.0], [-2.0], [0.5]], np.float32) + 0.25).astype(np.float32)


def connect(cluster, **options):
    """(tf, strategy, coordinator)"""
    import tensorflow as tf
    spec = {job: [target[len('grpc://'):] for target in cluster[job]] for job in ('worker', 'ps')}
    resolver = tf.distribute.cluster_resolver.SimpleClusterResolver(tf.train.ClusterSpec(spec), rpc_layer='grpc')
    strategy = tf.distribute.ParameterServerStrategy(resolver, **options)
    return tf, strategy, tf.distribute.coordinator.ClusterCoordinator(strategy)


class Model(object):
    """Linear, by hand: the same on every TensorFlow."""

    def __init__(self, tf):
        self.w, self.b = tf.Variable(tf.zeros([3, 1])), tf.Variable(tf.zeros([1]))
        self.steps = tf.Variable(0, dtype=tf.int64)

        @tf.function
        def step(iterator):
            x, y = next(iterator)
            with tf.GradientTape() as tape:
                loss = tf.reduce_mean(tf.square(tf.matmul(x, self.w) + self.b - y))
            for variable, gradient in zip((self.w, self.b), tape.gradient(loss, (self.w, self.b))):
                variable.assign_sub(0.1 * gradient)
            self.steps.assign_add(1)
            return loss
        self.step = step


def dataset(tf):
    return tf.data.Dataset.from_tensor_slices(data()).batch(ROWS).repeat()


def trains(cluster):
    """The losses are those of the same program without a cluster; then without waiting for each step."""
    import numpy as np
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        model = Model(tf)
    assert {v.device.split('/')[1] for v in (model.w, model.b)} == {'job:ps'}, model.w.device
    iterator = iter(coordinator.create_per_worker_dataset(lambda: dataset(tf)))
    here = Model(tf)
    own = iter(dataset(tf))
    # Of one worker at a time: the other has the same data, so that what it skips is not seen.
    expected = [here.step(own).numpy() for _ in range(4)]
    losses = []
    for _ in expected:
        loss = coordinator.schedule(model.step, args=(iterator,))
        coordinator.join()
        losses.append(loss.fetch())
    # Which worker takes a step is the coordinator's affair: what it computes is one of its own batches.
    assert abs(losses[0] - expected[0]) < 1e-5, (losses, expected)
    for _ in range(300):
        coordinator.schedule(model.step, args=(iterator,))
    coordinator.join()
    assert model.steps.numpy() == 304, model.steps
    np.testing.assert_allclose(model.w.numpy(), [[1.0], [-2.0], [0.5]], atol=1e-2)
    # Variables of parameter servers in a function of the program's own process.
    total = tf.function(lambda: tf.reduce_sum(model.w * 2.0) + model.b[0])()
    np.testing.assert_allclose(total.numpy(), 2.0 * model.w.numpy().sum() + model.b.numpy()[0], rtol=1e-5)
    print('TRAINED', losses, flush=True)


def equal_losses(cluster):
    """One worker: every loss is that of the same program without a cluster."""
    import numpy as np
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        model = Model(tf)
    iterator = iter(coordinator.create_per_worker_dataset(lambda: dataset(tf)))
    scheduled = [coordinator.schedule(model.step, args=(iterator,)) for _ in range(40)]
    coordinator.join()
    here, own = Model(tf), iter(dataset(tf))
    expected = [here.step(own).numpy() for _ in range(40)]
    np.testing.assert_allclose(coordinator.fetch(scheduled), expected, rtol=1e-5, atol=1e-7)
    assert expected[-1] < expected[0] / 100, expected
    datasets_as_objects(tf, coordinator)


def datasets_as_objects(tf, coordinator):
    """They travel as graphs, with the functions that they call: of functions, of captured tensors, with a shuffle."""
    shift = tf.constant(5, tf.int64)
    numbers = tf.data.Dataset.range(6).map(lambda x: x * x + shift).filter(lambda x: x % 2 == 0)
    nested = tf.data.Dataset.range(3).interleave(lambda x: tf.data.Dataset.range(x, x + 2).map(lambda y: 10 * y), cycle_length=1)

    @tf.function
    def take(iterator):
        return next(iterator)
    for made in numbers, nested, tf.data.Dataset.range(6).map(lambda x: -x).shuffle(6, seed=3).batch(6).map(tf.sort):
        iterator = iter(coordinator.create_per_worker_dataset(made))
        expected = [x.tolist() for x in made.as_numpy_iterator()]
        got = [coordinator.schedule(take, args=(iterator,)) for _ in expected]
        coordinator.join()
        assert [x.tolist() for x in coordinator.fetch(got)] == expected, (got, expected)


def shards(cluster):
    """Variables in parts over both parameter servers, looked up, trained and saved."""
    import numpy as np
    tf, strategy, coordinator = connect(
        cluster, variable_partitioner=None)
    import tempfile
    partitioner = tf.distribute.experimental.partitioners.FixedShardsPartitioner(2)
    strategy.extended._variable_partitioner = partitioner
    with strategy.scope():
        table = tf.Variable(tf.reshape(tf.range(12, dtype=tf.float32), [6, 2]))
    assert len({part.device for part in table.variables}) == 2, table

    @tf.function
    def step(ids):
        with tf.GradientTape() as tape:
            rows = tf.nn.embedding_lookup(table, ids)
            loss = tf.reduce_sum(rows)
        for part, gradient in zip(table.variables, tape.gradient(loss, table.variables)):
            part.scatter_sub(tf.IndexedSlices(gradient.values, gradient.indices))
        return rows
    rows = coordinator.schedule(step, args=(tf.constant([0, 5, 5]),))
    np.testing.assert_array_equal(rows.fetch(), [[0, 1], [10, 11], [10, 11]])
    expected = np.arange(12, dtype=np.float32).reshape(6, 2)
    expected[0] -= 1
    expected[5] -= 2
    np.testing.assert_array_equal(tf.concat([v.read_value() for v in table.variables], 0).numpy(), expected)
    with tempfile.TemporaryDirectory() as folder:
        path = tf.train.Checkpoint(table=table).write(folder + '/c')
        for part in table.variables:
            part.assign(tf.zeros_like(part))
        tf.train.Checkpoint(table=table).read(path).assert_consumed()
        np.testing.assert_array_equal(tf.concat([v.read_value() for v in table.variables], 0).numpy(), expected)


def errors(cluster):
    """An error of a function comes out of join, what was scheduled behind it is cancelled, and the next ones run."""
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        count = tf.Variable(0)

    @tf.function
    def fine():
        count.assign_add(1)

    @tf.function
    def bad():
        tf.debugging.assert_equal(count.read_value(), -1, message='not so')
    coordinator.schedule(fine)
    coordinator.join()
    for _ in range(10):
        coordinator.schedule(bad)
    try:
        coordinator.join()
        raise AssertionError('no error')
    except tf.errors.InvalidArgumentError as error:
        assert 'not so' in str(error), error
    before = count.numpy()
    coordinator.schedule(fine)
    coordinator.join()
    assert count.numpy() == before + 1, count


def keras(cluster):
    """Keras's layers and optimizer, whose variables lie at the parameter servers."""
    tf, strategy, _ = connect(cluster)
    x, y = data()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(8, 'relu', input_shape=(3,)), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.05), 'mse')
    history = model.fit(tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16), epochs=2,
                        steps_per_epoch=40, verbose=0)
    losses = history.history['loss']
    assert losses[-1] < 0.7 * losses[0], losses
    evaluated = model.evaluate(tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16), steps=4, verbose=0)
    assert evaluated < losses[0], (evaluated, losses)


def keras_steps(cluster):
    """Several steps an execution: a loop over variables of both parameter servers, with metrics and dropout in it."""
    tf, strategy, _ = connect(cluster)
    x, y = data()
    with strategy.scope():
        model = tf.keras.Sequential([tf.keras.layers.Dense(8, 'relu', input_shape=(3,)), tf.keras.layers.Dropout(0.1),
                                     tf.keras.layers.BatchNormalization(), tf.keras.layers.Dense(1)])
        model.compile(tf.keras.optimizers.Adam(0.05), 'mse', metrics=['mae'], steps_per_execution=4)
    assert len({variable.device for variable in model.variables}) == 2, [variable.device for variable in model.variables]
    rows = tf.data.Dataset.from_tensor_slices((x, y)).repeat().batch(16)
    history = model.fit(rows, epochs=2, steps_per_epoch=40, verbose=0)
    losses = history.history['loss']
    assert losses[-1] < 0.7 * losses[0], losses
    assert model.optimizer.iterations.numpy() == 80, model.optimizer.iterations
    assert model.evaluate(rows, steps=8, verbose=0)[0] < losses[0]


def looping(cluster):
    """Loops and branches over variables of several parameter servers: sums are those of the same program alone."""
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        small, large, steps = tf.Variable(1.0), tf.Variable(2.0), tf.Variable(0)
    assert len({variable.device for variable in (small, large, steps)}) == 2

    @tf.function
    def turn(count):
        for i in tf.range(count):
            if i % 3 == 0:
                small.assign_add(large * 0.5)
            elif large < 8.0:
                large.assign_add(small)
                steps.assign_add(1)
            else:
                large.assign(tf.sqrt(large))
        while small > 4.0:
            small.assign_sub(1.5)
        return small + large
    a, b, n = 1.0, 2.0, 0
    for count in (4, 1, 7):
        told = coordinator.schedule(turn, args=(count,))
        coordinator.join()
        for i in range(count):
            if i % 3 == 0:
                a += b * 0.5
            elif b < 8.0:
                b, n = b + a, n + 1
            else:
                b = b ** 0.5
        while a > 4.0:
            a -= 1.5
        assert abs(told.fetch() - (a + b)) < 1e-4, (count, told.fetch(), a, b)
    assert int(steps.numpy()) == n, (steps, n)


def worker_killed(cluster):
    """A worker dies in the middle of the work and is started again: nothing is lost, and what it had is made anew."""
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        model = Model(tf)
    iterator = iter(coordinator.create_per_worker_dataset(lambda: dataset(tf)))
    for at in range(400):
        coordinator.schedule(model.step, args=(iterator,))
        if at == 200:
            print('KILL worker 0', flush=True)
    coordinator.join()
    assert model.steps.numpy() >= 400, model.steps
    print('ALL RAN', flush=True)


def ps_killed(cluster):
    """A parameter server dies: the program hears that it was one."""
    tf, strategy, coordinator = connect(cluster)
    with strategy.scope():
        model = Model(tf)
    iterator = iter(coordinator.create_per_worker_dataset(lambda: dataset(tf)))
    coordinator.schedule(model.step, args=(iterator,))
    coordinator.join()
    print('KILL ps 0', flush=True)
    try:
        for _ in range(1000):
            for _ in range(20):
                coordinator.schedule(model.step, args=(iterator,))
            coordinator.join()
        raise AssertionError('no error')
    except (tf.errors.UnavailableError, tf.errors.AbortedError) as error:
        assert '/job:ps/replica:0/task:0' in str(error), error
    print('HEARD OF IT', flush=True)
    os._exit(0)  # TensorFlow's own process waits for the dead one at its end


class CoordinatorTest(unittest.TestCase):
    def run_case(self, name, workers=2, ps=2):
        with processes.cluster(BINARY, worker=workers, ps=ps) as cluster:
            targets = repr({job: cluster[job] for job in ('worker', 'ps')})
            program = subprocess.Popen([sys.executable, os.path.abspath(__file__), '--case', name, targets],
                                       stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       preexec_fn=processes.die_with_parent)
            lines = []
            try:
                for line in program.stdout:
                    lines.append(line)
                    if line.startswith('KILL '):
                        _, job, index = line.split()
                        self.kill(cluster, job, int(index))
                self.assertEqual(program.wait(60), 0, ''.join(lines[-60:]))
            finally:
                processes.stop(program)
                program.stdout.close()

    def kill(self, cluster, job, index):
        """A worker comes back at the same address; a parameter server does not."""
        old = cluster['processes'][job, index]
        old.send_signal(signal.SIGKILL)
        old.wait()
        if job == 'worker':
            time.sleep(1)
            cluster['processes'][job, index] = subprocess.Popen(old.args, preexec_fn=processes.die_with_parent)

    def test_trains(self):
        self.run_case('trains')

    def test_losses_are_those_of_the_program_alone(self):
        self.run_case('equal_losses', workers=1, ps=1)

    def test_variables_in_parts(self):
        self.run_case('shards')

    def test_errors_come_out_of_join(self):
        self.run_case('errors')

    @unittest.skipIf('tfnew' in sys.prefix, 'Keras 3 has no ParameterServerStrategy')
    def test_keras_fits(self):
        self.run_case('keras')

    @unittest.skipIf('tfnew' in sys.prefix, 'Keras 3 has no ParameterServerStrategy')
    def test_keras_fits_several_steps_an_execution(self):
        self.run_case('keras_steps')

    def test_loops_and_branches_over_variables_of_several_servers(self):
        self.run_case('looping')

    def test_a_worker_that_is_killed_comes_back(self):
        self.run_case('worker_killed')

    def test_a_parameter_server_that_is_killed_is_named(self):
        self.run_case('ps_killed', workers=1)


if __name__ == '__main__':
    if '--case' in sys.argv:
        import ast
        globals()[sys.argv[-2]](ast.literal_eval(sys.argv[-1]))
        sys.exit(0)
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)

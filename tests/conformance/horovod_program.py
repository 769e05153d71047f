# SPDX-License-Identifier: Apache-2.0
"""A Horovod program as people have them: horovod_program.py ops|train|estimator|elastic|open [FOLDER]. Prints what horovod_test.py compares."""
import json
import os
import sys
import time

import horovod.tensorflow as hvd
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_eager_execution()
hvd.init()
rank, size = hvd.rank(), hvd.size()


def say(what, value):
    print('said %s %s' % (what, json.dumps(np.asarray(value).tolist())), flush=True)


def try_ops():
    say('topology', [rank, size, hvd.local_rank(), hvd.local_size(), hvd.cross_rank(), hvd.cross_size()])
    own = tf.constant([rank + 1.0, 2.0])
    rows = tf.constant([[float(rank)]] * (rank + 1))
    slices = tf.IndexedSlices(tf.constant([[1.0 * rank]]), tf.constant([rank]), tf.constant([4, 1]))
    summed = hvd.allreduce(slices, op=hvd.Sum)
    fetches = {
        'average': hvd.allreduce(own, name='own'), 'sum': hvd.allreduce(own, op=hvd.Sum, name='own'),
        'min': hvd.allreduce(own, op=hvd.Min), 'max': hvd.allreduce(own, op=hvd.Max), 'product': hvd.allreduce(own, op=hvd.Product),
        'half': hvd.allreduce(own, compression=hvd.Compression.fp16), 'bytes': hvd.allreduce(tf.constant([rank], tf.uint8), op=hvd.Sum),
        'gathered': hvd.allgather(rows), 'flags': hvd.allgather(tf.constant([rank == 0])), 'broadcast': hvd.broadcast(own * 10, 1),
        'alltoall': hvd.alltoall(tf.range(2 * size) + 100 * rank), 'values': summed.values, 'indices': summed.indices}
    with tf1.Session() as session:
        for name, value in sorted(session.run(fetches).items()):
            say(name, value)
    hvd.barrier()
    say('objects', [o['rank'] for o in hvd.allgather_object({'rank': rank})])
    say('object', hvd.broadcast_object({'from': rank} if rank == 0 else None)['from'])


def model():
    features = np.random.RandomState(1).randn(12 * size, 3).astype('f')
    labels = features.dot(np.array([[1.0], [-2.0], [3.0]], 'f')) + 0.5
    x = tf.constant(features[rank::size])
    # Every rank starts from numbers of its own: those of rank 0 must win.
    w = tf1.get_variable('w', initializer=tf.fill([3, 1], 0.1 + rank), use_resource=False)
    b = tf1.get_variable('b', initializer=tf.constant([float(rank)]), use_resource=True)
    return tf.reduce_mean(tf.square(tf.matmul(x, w) + b - labels[rank::size]))


def train(folder):
    loss = model()
    step = tf1.train.get_or_create_global_step()
    optimizer = hvd.DistributedOptimizer(tf1.train.AdamOptimizer(0.05 * size))
    update = optimizer.minimize(loss, global_step=step)
    average = hvd.allreduce(loss, name='loss')
    hooks = [hvd.BroadcastGlobalVariablesHook(0), tf1.train.StopAtStepHook(last_step=20)]
    losses = []
    config = tf1.ConfigProto()
    config.gpu_options.visible_device_list = str(hvd.local_rank())
    with tf1.train.MonitoredTrainingSession(checkpoint_dir=folder if rank == 0 else None, hooks=hooks, config=config) as session:
        while not session.should_stop():
            losses.append(float(session.run([average, update])[0]))
    say('losses', losses)


def estimator(folder):
    losses = []

    class Note(tf1.train.SessionRunHook):
        def before_run(self, context):
            return tf1.train.SessionRunArgs(tf1.get_default_graph().get_tensor_by_name('average:0'))

        def after_run(self, context, values):
            losses.append(float(values.results))

    def model_fn(features, labels, mode):
        loss = model()
        optimizer = hvd.DistributedOptimizer(tf1.train.MomentumOptimizer(0.05, 0.9))
        tf.identity(hvd.allreduce(loss, name='loss'), 'average')
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=optimizer.minimize(loss, tf1.train.get_global_step()))

    trained = tf1.estimator.Estimator(model_fn, os.path.join(folder, str(rank)))
    trained.train(lambda: tf1.data.Dataset.from_tensors(0).repeat(), hooks=[hvd.BroadcastGlobalVariablesHook(0), Note()], steps=20)
    say('losses', losses)


def elastic(folder):
    loss = model()
    optimizer = hvd.DistributedOptimizer(tf1.train.GradientDescentOptimizer(0.05))
    update = optimizer.minimize(loss)
    average = hvd.allreduce(loss, name='loss')
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, step=0, losses=[])

        @hvd.elastic.run
        def loop(state):
            while state.step < 30:
                if rank == 1 and state.step == 12 and not os.path.exists(os.path.join(folder, 'died')):
                    open(os.path.join(folder, 'died'), 'w').close()
                    os.kill(os.getpid(), 9)
                value = session.run([average, update])[0]
                state.losses = state.losses + [float(value)]
                state.step += 1
                state.commit()

        loop(state)
        say('losses', state.losses)


def ranks_that_come_and_go(folder):
    """Two ranks wait for a third at step 10; at step 20 the first task dies, and the others go on without it."""
    features = np.random.RandomState(1).randn(36, 3).astype('f')
    labels = features.dot(np.array([[1.0], [-2.0], [3.0]], 'f')) + 0.5
    x, y = tf1.placeholder(tf.float32, [None, 3]), tf1.placeholder(tf.float32, [None, 1])
    w = tf1.get_variable('w', initializer=tf.fill([3, 1], 0.1))
    b = tf1.get_variable('b', initializer=tf.constant([0.0]))
    loss = tf.reduce_mean(tf.square(tf.matmul(x, w) + b - y))
    update = hvd.DistributedOptimizer(tf1.train.MomentumOptimizer(0.05, 0.9)).minimize(loss)
    average = hvd.allreduce(loss, name='loss')
    task = json.loads(os.environ['WEFT_TEST_TASK'])
    sizes = []
    with tf1.Session() as session:
        session.run(tf1.global_variables_initializer())
        state = hvd.elastic.TensorFlowState(session=session, step=0, losses=[])

        @hvd.elastic.run
        def loop(state):
            sizes.append(hvd.size())
            while state.step < 30:
                if state.step == 10 and hvd.size() < 3:
                    open(os.path.join(folder, 'ten'), 'w').close()
                    time.sleep(0.1)
                    state.check_host_updates()
                    continue
                if task == 0 and state.step == 20:
                    open(os.path.join(folder, 'died'), 'w').write(str(time.time()))
                    os.kill(os.getpid(), 9)
                mine = slice(hvd.rank(), None, hvd.size())
                value = session.run([average, update], {x: features[mine], y: labels[mine]})[0]
                if state.step == 20:
                    say('seconds', time.time() - float(open(os.path.join(folder, 'died')).read()))
                state.losses = state.losses + [float(value)]
                state.step += 1
                state.commit()

        loop(state)
        say('losses', state.losses)
        say('sizes', sizes)
        say('rank', hvd.rank())


if sys.argv[1] == 'ops':
    try_ops()
else:
    {'train': train, 'estimator': estimator, 'elastic': elastic,
     'open': ranks_that_come_and_go}[sys.argv[1]](sys.argv[2])

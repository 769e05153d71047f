# SPDX-License-Identifier: Apache-2.0
"""Synchronous between-graph training as programs for TensorFlow 1 wrote it; see sync_replicas_test.py.

Each worker trains on its own rows, the same each step, so that the result can be computed without a cluster. It knows
nothing of weft; run it with `python -m weft`.
"""
import numpy as np
import tensorflow as tf

tf = tf.compat.v1
tf.disable_v2_behavior()
tf.enable_resource_variables()  # a token must not be made of a global step that was read before the update
tf.logging.set_verbosity('ERROR')

flags = tf.app.flags
flags.DEFINE_string('ps_hosts', '', 'Addresses, with commas')
flags.DEFINE_string('worker_hosts', '', 'Addresses, with commas')
flags.DEFINE_string('job_name', '', 'ps or worker')
flags.DEFINE_integer('task_index', 0, 'Of the job')
flags.DEFINE_integer('aggregate', 2, 'Gradients a step')
flags.DEFINE_integer('steps', 20, 'Global steps')
flags.DEFINE_string('model_dir', '', 'For checkpoints')
FLAGS = flags.FLAGS

RATE, FEATURES, ROWS = 0.1, 4, 8
TABLE = 10


def rows_of(worker):
    """Inputs, targets and the ids of a table's rows. Workers share some ids and not others.

    Ids are sorted and come once: TensorFlow merges gradients of rows as if they were.
    """
    random = np.random.RandomState(worker)
    x = random.randn(ROWS, FEATURES).astype(np.float32)
    return x, x @ np.arange(FEATURES, dtype=np.float32) + 1, np.sort(random.permutation(TABLE)[:ROWS])


def main(_):
    hosts = {'ps': FLAGS.ps_hosts.split(','), 'worker': FLAGS.worker_hosts.split(',')}
    cluster = tf.train.ClusterSpec(hosts)
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == 'ps':
        server.join()
    me = '/job:worker/task:%d' % FLAGS.task_index
    is_chief = FLAGS.task_index == 0
    with tf.device(tf.train.replica_device_setter(cluster=cluster, worker_device=me)):
        step = tf.train.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, FEATURES])
        y = tf.placeholder(tf.float32, [None])
        ids = tf.placeholder(tf.int64, [None])
        weights = tf.get_variable('weights', [FEATURES], initializer=tf.zeros_initializer())
        table = tf.get_variable('table', [TABLE], initializer=tf.zeros_initializer())
        out = tf.linalg.matvec(x, weights) + tf.nn.embedding_lookup(table, ids)
        loss = tf.reduce_mean(tf.square(out - y))
        optimizer = tf.train.SyncReplicasOptimizer(tf.train.GradientDescentOptimizer(RATE), FLAGS.aggregate,
                                                   total_num_replicas=len(hosts['worker']))
        train = optimizer.minimize(loss, global_step=step)
    # Without tokens at the start each step is one gradient of each worker.
    hooks = [optimizer.make_session_run_hook(is_chief, num_tokens=0), tf.train.StopAtStepHook(last_step=FLAGS.steps)]
    config = tf.ConfigProto(device_filters=['/job:ps', me])
    inputs, targets, rows = rows_of(FLAGS.task_index)
    with tf.train.MonitoredTrainingSession(server.target, is_chief, FLAGS.model_dir, hooks=hooks, config=config,
                                           save_checkpoint_steps=FLAGS.steps, save_summaries_steps=None,
                                           save_summaries_secs=None, log_step_count_steps=None,
                                           stop_grace_period_secs=1) as session:  # the chief's queue runner waits
        print('ready', flush=True)
        while not session.should_stop():
            print('loss %g' % session.run([loss, train], {x: inputs, y: targets, ids: rows})[0], flush=True)
    print('done', flush=True)


if __name__ == '__main__':
    tf.app.run()

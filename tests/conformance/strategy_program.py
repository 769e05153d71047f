# SPDX-License-Identifier: Apache-2.0
"""tf.distribute's strategies in graph mode: strategy_program.py mirrored TARGET | workers | ps | estimator FOLDER.

Prints the losses of 15 steps, of all data of a step.
"""
import json
import os
import sys

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
STEPS = 15
ROWS = 8  # of a replica in a step


def rows_of(replica, replicas):
    features = np.random.RandomState(3).randn(ROWS * replicas, 3).astype('f')
    labels = features.dot(np.array([[1.0], [-2.0], [3.0]], 'f')) + 0.5
    return features[replica::replicas], labels[replica::replicas]


def model(features, labels):
    w = tf1.get_variable('w', [3, 1], initializer=tf1.constant_initializer(0.1))
    b = tf1.get_variable('b', [1], initializer=tf1.zeros_initializer())
    return tf.reduce_mean(tf.square(tf.matmul(features, w) + b - labels))


def step_of(strategy, optimizer):
    """An op that makes a step at all replicas, whose value is their mean loss."""
    def replica():
        context = tf.distribute.get_replica_context()
        number, count = context.replica_id_in_sync_group, strategy.num_replicas_in_sync
        number = number if isinstance(number, int) else int(tf.get_static_value(number))
        loss = model(*map(tf.constant, rows_of(number, count)))
        with tf.control_dependencies([optimizer.minimize(loss / count, global_step=tf1.train.get_or_create_global_step())]):
            return tf.identity(loss)
    return strategy.reduce(tf.distribute.ReduceOp.MEAN, strategy.extended.call_for_each_replica(replica), axis=None)


def say(losses):
    print('losses %s' % json.dumps([float(loss) for loss in losses]), flush=True)


def train(strategy, target, is_chief=True, config=None):
    with tf.Graph().as_default(), strategy.scope():
        loss = step_of(strategy, tf1.train.AdamOptimizer(0.1))
        with tf1.train.MonitoredTrainingSession(target, is_chief, config=config) as session:
            say([session.run(loss) for _ in range(STEPS)])


def own_server():
    resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
    return resolver, tf.distribute.Server(resolver.cluster_spec(), resolver.task_type, resolver.task_id)


def mirrored(target):
    train(tf.distribute.MirroredStrategy(['/cpu:0', '/cpu:1'], cross_device_ops=tf.distribute.ReductionToOneDevice()), target)


def workers():
    resolver, server = own_server()
    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
    train(strategy, server.target, config=strategy.update_config_proto(tf1.ConfigProto()))


def ps():
    resolver, server = own_server()
    if resolver.task_type == 'ps':
        server.join()
    strategy = tf1.distribute.experimental.ParameterServerStrategy()
    train(strategy, server.target, resolver.task_type == 'chief', strategy.update_config_proto(tf1.ConfigProto()))


def estimator(folder):
    """Estimator starts the task's server itself."""
    losses = []

    class Note(tf1.train.SessionRunHook):
        def __init__(self, loss):
            self.loss = loss

        def before_run(self, context):
            return tf1.train.SessionRunArgs(self.loss)

        def after_run(self, context, values):
            losses.append(values.results)

    def model_fn(features, labels, mode):
        loss = model(features, labels)
        update = tf1.train.AdamOptimizer(0.1).minimize(loss, tf1.train.get_global_step())
        return tf1.estimator.EstimatorSpec(mode, loss=loss, train_op=update, training_hooks=[Note(loss)])

    def input_fn(input_context=None):
        worker, count = (input_context.input_pipeline_id, input_context.num_input_pipelines) if input_context else (0, 1)
        return tf.data.Dataset.from_tensors(rows_of(worker, count)).repeat()

    strategy = tf1.distribute.experimental.MultiWorkerMirroredStrategy()
    run = tf1.estimator.RunConfig(folder, train_distribute=strategy, save_summary_steps=None)
    tf1.estimator.train_and_evaluate(tf1.estimator.Estimator(model_fn, config=run), tf1.estimator.TrainSpec(input_fn, max_steps=STEPS),
                                     tf1.estimator.EvalSpec(input_fn, steps=1))
    say(losses)
    os._exit(0)  # its server would wait for ever


if __name__ == '__main__':
    {'mirrored': mirrored, 'workers': workers, 'ps': ps, 'estimator': estimator}[sys.argv[1]](*sys.argv[2:])

# SPDX-License-Identifier: Apache-2.0
"""One task of train_and_evaluate, as TF_CONFIG says: estimator_program.py MODEL_FOLDER. Knows nothing of weft."""
import sys

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
tf.logging.set_verbosity(tf.logging.INFO)
SLOPE = np.array([[1.0], [-2.0], [0.5]], np.float32)
STEPS = 60


def input_fn():
    x = tf.random_uniform([16, 3])
    return {'x': x}, tf.matmul(x, tf.constant(SLOPE)) + 0.25


def serving_input_receiver_fn():
    x = tf.placeholder(tf.float32, [None, 3])
    return tf.estimator.export.ServingInputReceiver({'x': x}, {'x': x})


def model_fn(features, labels, mode):
    w = tf.get_variable('w', [3, 1], initializer=tf.zeros_initializer(), partitioner=tf.fixed_size_partitioner(2))
    b = tf.get_variable('b', [1], initializer=tf.zeros_initializer())
    guess = tf.matmul(features['x'], tf.convert_to_tensor(w)) + b
    if mode == tf.estimator.ModeKeys.PREDICT:
        return tf.estimator.EstimatorSpec(mode, predictions={'y': guess}, export_outputs={
            'serving_default': tf.estimator.export.PredictOutput({'y': guess})})
    loss = tf.reduce_mean(tf.square(guess - labels))
    if mode == tf.estimator.ModeKeys.EVAL:
        return tf.estimator.EstimatorSpec(mode, loss=loss, eval_metric_ops={'off': tf.metrics.mean_absolute_error(labels, guess)})
    train = tf.train.GradientDescentOptimizer(0.2).minimize(loss, tf.train.get_global_step())
    return tf.estimator.EstimatorSpec(mode, loss=loss, train_op=train)


def main(folder):
    config = tf.estimator.RunConfig(model_dir=folder, save_checkpoints_steps=20, save_summary_steps=10, log_step_count_steps=10)
    estimator = tf.estimator.Estimator(model_fn, config=config)
    exporter = tf.estimator.FinalExporter('final', serving_input_receiver_fn)
    tf.estimator.train_and_evaluate(
        estimator, tf.estimator.TrainSpec(input_fn, max_steps=STEPS),
        tf.estimator.EvalSpec(input_fn, steps=2, exporters=exporter, start_delay_secs=0, throttle_secs=0))
    print('%s ends well' % config.task_type, flush=True)


if __name__ == '__main__':
    main(sys.argv[1])

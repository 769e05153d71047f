# SPDX-License-Identifier: Apache-2.0
"""Listing: the pieces before this in one file, which its flags divide: a parameter server joins its server, a worker builds
the graph and trains."""
import tensorflow as tf

tf.app.flags.DEFINE_string('ps_hosts', 'localhost:2224', 'host:port of each parameter server, with commas')
tf.app.flags.DEFINE_string('worker_hosts', 'localhost:2222,localhost:2223', 'host:port of each worker, with commas')
tf.app.flags.DEFINE_string('job_name', '', "Either 'ps' or 'worker'")
tf.app.flags.DEFINE_integer('task_index', 0, 'Index of the task within its job')
tf.app.flags.DEFINE_string('data_dir', 'MNIST_data', "Where MNIST's four IDX files lie")
tf.app.flags.DEFINE_string('train_dir', '', 'Where checkpoints go; none when empty')
tf.app.flags.DEFINE_integer('steps', 400, 'Steps of all workers together')
FLAGS = tf.app.flags.FLAGS


def train(cluster, server):
    from tensorflow.examples.tutorials.mnist import input_data
    mnist = input_data.read_data_sets(FLAGS.data_dir, one_hot=True, validation_size=0)
    pixels = mnist.train.images.shape[1]
    with tf.device(tf.train.replica_device_setter(
            worker_device='/job:worker/task:%d' % FLAGS.task_index, cluster=cluster)):
        global_step = tf.contrib.framework.get_or_create_global_step()
        x = tf.placeholder(tf.float32, [None, pixels])
        y_ = tf.placeholder(tf.float32, [None, 10])
        hidden = tf.contrib.layers.fully_connected(x, 100)
        y = tf.contrib.layers.linear(hidden, 10)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(y, y_))
        accuracy = tf.reduce_mean(tf.cast(tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1)), tf.float32))
        train_op = tf.train.AdagradOptimizer(0.1).minimize(loss, global_step=global_step)

    # What holds no variable of a parameter server stays here: the chief waits for no other worker.
    config = tf.ConfigProto(device_filters=['/job:ps', '/job:worker/task:%d' % FLAGS.task_index])
    hooks = [tf.train.StopAtStepHook(last_step=FLAGS.steps)]
    with tf.train.MonitoredTrainingSession(server.target, is_chief=FLAGS.task_index == 0, hooks=hooks, config=config,
                                           checkpoint_dir=FLAGS.train_dir or None) as sess:
        while not sess.should_stop():
            batch_x, batch_y = mnist.train.next_batch(100)
            _, cost, right = sess.run([train_op, loss, accuracy], feed_dict={x: batch_x, y_: batch_y})
    print('Cost: %.4f, Accuracy: %.3f' % (cost, right))


def main(_):
    cluster = tf.train.ClusterSpec({'ps': FLAGS.ps_hosts.split(','), 'worker': FLAGS.worker_hosts.split(',')})
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)
    if FLAGS.job_name == 'ps':
        server.join()
    elif FLAGS.job_name == 'worker':
        train(cluster, server)


if __name__ == '__main__':
    tf.app.run()

# SPDX-License-Identifier: Apache-2.0
"""Between-graph replication as TensorFlow 1's users wrote it: one parameter-server task, an MLP, a Supervisor,
asynchronous SGD, two summaries. It knows nothing of weft; run it with `python -m weft`.

Only the loader differs from the classic program (digits instead of MNIST), and the four functions that
TensorFlow 2 renamed (summary.scalar, summary.merge_all, summary.FileWriter, global_variables_initializer).
"""
import os
import sys
import time

import tensorflow.compat.v1 as tf

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), '../../examples/digits'))
import digits as input_data  # noqa: E402

# cluster specification
tf.app.flags.DEFINE_string('ps_hosts', 'localhost:2222', 'host:port of each parameter server, with commas')
tf.app.flags.DEFINE_string('worker_hosts', 'localhost:2223', 'host:port of each worker, with commas')
tf.app.flags.DEFINE_string('job_name', '', "Either 'ps' or 'worker'")
tf.app.flags.DEFINE_integer('task_index', 0, 'Index of task within the job')
tf.app.flags.DEFINE_string('logs_path', '/tmp/mnist/1', 'Where the summaries go')
tf.app.flags.DEFINE_string('train_dir', '', 'Where the checkpoint goes; none when empty')
tf.app.flags.DEFINE_integer('training_epochs', 20, 'Epochs of each worker')
tf.app.flags.DEFINE_integer('batch_size', 100, 'Images a step')
tf.app.flags.DEFINE_float('learning_rate', 0.001, 'Of plain SGD')
tf.app.flags.DEFINE_boolean('resource_variables', False, 'Keep TensorFlow 2 variables and control flow')
FLAGS = tf.app.flags.FLAGS


def main(_):
    if FLAGS.resource_variables:
        tf.disable_eager_execution()
    else:
        tf.disable_v2_behavior()
    tf.set_random_seed(1)

    parameter_servers = FLAGS.ps_hosts.split(',')
    workers = FLAGS.worker_hosts.split(',')
    cluster = tf.train.ClusterSpec({'ps': parameter_servers, 'worker': workers})

    # start a server for a specific task
    server = tf.train.Server(cluster, job_name=FLAGS.job_name, task_index=FLAGS.task_index)

    if FLAGS.job_name == 'ps':
        server.join()
        return

    mnist = input_data.read_data_sets(one_hot=True)

    # Between-graph replication
    with tf.device(tf.train.replica_device_setter(worker_device='/job:worker/task:%d' % FLAGS.task_index,
                                                  cluster=cluster)):
        # count the number of updates
        global_step = tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)

        x = tf.placeholder(tf.float32, shape=[None, 64], name='x-input')
        y_ = tf.placeholder(tf.float32, shape=[None, 10], name='y-input')

        W1 = tf.Variable(tf.random_normal([64, 100]))
        W2 = tf.Variable(tf.random_normal([100, 10]))
        b1 = tf.Variable(tf.zeros([100]))
        b2 = tf.Variable(tf.zeros([10]))

        # Softmax
        z2 = tf.add(tf.matmul(x, W1), b1)
        a2 = tf.nn.sigmoid(z2)
        z3 = tf.add(tf.matmul(a2, W2), b2)
        y = tf.nn.softmax(z3)

        cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
        grad_op = tf.train.GradientDescentOptimizer(FLAGS.learning_rate)
        train_op = grad_op.minimize(cross_entropy, global_step=global_step)
        correct_prediction = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct_prediction, tf.float32))

        # create a summary for our cost and accuracy
        tf.summary.scalar('cost', cross_entropy)
        tf.summary.scalar('accuracy', accuracy)
        summary_op = tf.summary.merge_all()
        init_op = tf.global_variables_initializer()

    sv = tf.train.Supervisor(is_chief=(FLAGS.task_index == 0), global_step=global_step, init_op=init_op,
                             logdir=FLAGS.train_dir or None, recovery_wait_secs=1)

    with sv.prepare_or_wait_for_session(server.target) as sess:
        writer = tf.summary.FileWriter(FLAGS.logs_path, graph=tf.get_default_graph())
        start = time.time()
        for epoch in range(FLAGS.training_epochs):
            batch_count = int(mnist.train.num_examples / FLAGS.batch_size)
            for i in range(batch_count):
                batch_x, batch_y = mnist.train.next_batch(FLAGS.batch_size)
                _, cost, summary, step = sess.run([train_op, cross_entropy, summary_op, global_step],
                                                  feed_dict={x: batch_x, y_: batch_y})
                writer.add_summary(summary, step)
            print('Step: %d,' % (step + 1), ' Epoch: %2d,' % (epoch + 1), ' Batch: %3d of %3d,' % (i + 1, batch_count),
                  ' Cost: %.4f,' % cost, flush=True)
        print('Total Time: %3.2fs' % (time.time() - start))
        print('Test-Accuracy: %2.2f' % sess.run(accuracy, feed_dict={x: mnist.test.images, y_: mnist.test.labels}))
        writer.close()
        if FLAGS.task_index == 0 and FLAGS.train_dir:
            sv.saver.save(sess, sv.save_path, global_step=global_step)
    print('done', flush=True)


if __name__ == '__main__':
    tf.app.run()

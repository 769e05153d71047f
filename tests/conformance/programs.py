# SPDX-License-Identifier: Apache-2.0
"""The programs whose ops weft owes its users, each a function that builds a graph with real TensorFlow.

dump_ops.py walks PROGRAMS to learn which ops the real client sends. Where a training session adds ops
of its own (ready ops, savers, queue runners), the program opens one on a local session.
"""
import tempfile

import tensorflow.compat.v1 as tf

FEATURES, CLASSES, VOCABULARY = 64, 10, 100


def _digits_inputs():
    x = tf.placeholder(tf.float32, shape=[None, FEATURES], name='x-input')
    y_ = tf.placeholder(tf.float32, shape=[None, CLASSES], name='y-input')
    return x, y_


def _global_step():
    return tf.get_variable('global_step', [], initializer=tf.constant_initializer(0), trainable=False)


def _dense(x, name, inputs, outputs, activation=None):
    with tf.variable_scope(name):
        w = tf.get_variable('w', [inputs, outputs], initializer=tf.glorot_uniform_initializer(seed=1))
        b = tf.get_variable('b', [outputs], initializer=tf.zeros_initializer())
        z = tf.nn.bias_add(tf.matmul(x, w), b)
        return activation(z) if activation else z


def seed_mlp():
    """Between-graph replication, Supervisor, plain SGD, two scalar summaries."""
    with tf.device(tf.train.replica_device_setter(
            worker_device='/job:worker/task:0', cluster={'ps': ['a:1'], 'worker': ['b:1', 'c:1']})):
        global_step = _global_step()
        x, y_ = _digits_inputs()
        w1 = tf.Variable(tf.random_normal([FEATURES, 100]))
        w2 = tf.Variable(tf.random_normal([100, CLASSES]))
        b1 = tf.Variable(tf.zeros([100]))
        b2 = tf.Variable(tf.zeros([CLASSES]))
        z2 = tf.add(tf.matmul(x, w1), b1)
        z3 = tf.add(tf.matmul(tf.nn.sigmoid(z2), w2), b2)
        y = tf.nn.softmax(z3)
        cross_entropy = tf.reduce_mean(-tf.reduce_sum(y_ * tf.log(y), reduction_indices=[1]))
        tf.train.GradientDescentOptimizer(0.001).minimize(cross_entropy, global_step=global_step)
        correct = tf.equal(tf.argmax(y, 1), tf.argmax(y_, 1))
        accuracy = tf.reduce_mean(tf.cast(correct, tf.float32))
        tf.summary.scalar('cost', cross_entropy)
        tf.summary.scalar('accuracy', accuracy)
        tf.summary.merge_all()
        init_op = tf.global_variables_initializer()
    tf.train.Supervisor(is_chief=True, global_step=global_step, init_op=init_op, logdir=tempfile.mkdtemp())


def mlp_variants():
    """The usual ways to write the same model: initialisers, activations, losses, clipping of logits."""
    x, y_ = _digits_inputs()
    labels = tf.placeholder(tf.int64, [None])
    h = _dense(x, 'relu', FEATURES, 32, tf.nn.relu)
    h = _dense(h, 'tanh', 32, 32, tf.nn.tanh)
    with tf.variable_scope('init'):
        for i, init in enumerate([tf.truncated_normal_initializer(stddev=0.1), tf.random_uniform_initializer(-1, 1),
                                  tf.random_normal_initializer(), tf.ones_initializer(),
                                  tf.variance_scaling_initializer()]):
            tf.get_variable('v%d' % i, [32, 32], initializer=init)
    logits = _dense(h, 'logits', 32, CLASSES)
    losses = [
        tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels=y_, logits=logits)),
        tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits)),
        tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits)),
        -tf.reduce_sum(y_ * tf.log(tf.clip_by_value(tf.nn.softmax(logits), 1e-10, 1.0))),
        tf.reduce_mean(tf.square(y_ - logits)),
        tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y_, logits=logits)),
        -tf.reduce_mean(y_ * tf.nn.log_softmax(logits)),
        tf.losses.softmax_cross_entropy(y_, logits),
        tf.losses.mean_squared_error(y_, logits),
        0.01 * tf.add_n([tf.nn.l2_loss(v) for v in tf.trainable_variables()]),
    ]
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.add_n(losses), global_step=tf.train.get_or_create_global_step())
    tf.nn.in_top_k(tf.nn.softmax(logits), labels, 1)
    tf.global_variables_initializer()
    tf.report_uninitialized_variables()


def linear_regression():
    x = tf.placeholder(tf.float32, [None])
    y = tf.placeholder(tf.float32, [None])
    w, b = tf.Variable(0.0), tf.Variable(0.0)
    loss = tf.reduce_mean(tf.square(w * x + b - y))
    tf.train.GradientDescentOptimizer(0.1).minimize(loss)
    tf.global_variables_initializer()


def convnet():
    x = tf.placeholder(tf.float32, [None, FEATURES])
    labels = tf.placeholder(tf.int32, [None])
    image = tf.reshape(x, [-1, 8, 8, 1])
    k1 = tf.get_variable('k1', [3, 3, 1, 8])
    k2 = tf.get_variable('k2', [3, 3, 8, 16])
    b1 = tf.get_variable('b1', [8])
    h = tf.nn.relu(tf.nn.bias_add(tf.nn.conv2d(image, k1, strides=1, padding='SAME'), b1))
    h = tf.nn.max_pool2d(h, 2, 2, 'SAME')
    h = tf.nn.relu(tf.nn.conv2d(h, k2, strides=1, padding='SAME'))
    h = tf.nn.avg_pool2d(h, 2, 2, 'VALID')
    h = tf.reshape(h, [-1, 2 * 2 * 16])
    keep = tf.placeholder_with_default(0.8, [])
    h = tf.nn.dropout(h, rate=1.0 - keep, seed=3)
    logits = _dense(h, 'logits', 64, CLASSES)
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    tf.train.AdamOptimizer(0.01).minimize(loss)
    tf.global_variables_initializer()


def in_graph_replication():
    x, y_ = _digits_inputs()
    with tf.device('/job:ps/task:0/cpu:0'):
        w = tf.Variable(tf.zeros([FEATURES, CLASSES]))
        b = tf.Variable(tf.zeros([CLASSES]))
    losses = []
    for i, (xs, ys) in enumerate(zip(tf.split(x, 2, 0), tf.split(y_, 2, 0))):
        with tf.device('/job:worker/task:%d' % i):
            logits = tf.matmul(xs, w) + b
            losses.append(tf.nn.softmax_cross_entropy_with_logits_v2(labels=ys, logits=logits))
    tf.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_mean(tf.concat(losses, 0)))
    tf.global_variables_initializer()


def model_split():
    x, y_ = _digits_inputs()
    with tf.device('/job:worker/task:0'):
        h = _dense(x, 'front', FEATURES, 32, tf.nn.relu)
    with tf.device('/job:worker/task:1'):
        logits = _dense(h, 'back', 32, CLASSES)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits))
    tf.train.MomentumOptimizer(0.1, 0.9).minimize(loss, colocate_gradients_with_ops=True)
    tf.global_variables_initializer()


def recommender():
    """Embeddings sharded over two parameter servers, looked up by id, sparse Adagrad."""
    users = tf.placeholder(tf.int64, [None])
    items = tf.placeholder(tf.int64, [None])
    rating = tf.placeholder(tf.float32, [None])
    setter = tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker/task:0')
    with tf.device(setter), tf.variable_scope('tables', partitioner=tf.fixed_size_partitioner(2)):
        user_table = tf.get_variable('user', [VOCABULARY, 8])
        item_table = tf.get_variable('item', [VOCABULARY, 8])
    losses = []
    for strategy in 'div', 'mod':
        u = tf.nn.embedding_lookup(user_table, users, partition_strategy=strategy)
        v = tf.nn.embedding_lookup(item_table, items, partition_strategy=strategy)
        losses.append(tf.reduce_mean(tf.square(tf.reduce_sum(u * v, axis=1) - rating)))
    tf.train.AdagradOptimizer(0.1).minimize(tf.add_n(losses), global_step=tf.train.get_or_create_global_step())
    tf.global_variables_initializer()
    tf.train.Saver(sharded=True)


def _optimizers():
    return {
        'sgd': tf.train.GradientDescentOptimizer(0.1),
        'momentum': tf.train.MomentumOptimizer(0.1, 0.9),
        'nesterov': tf.train.MomentumOptimizer(0.1, 0.9, use_nesterov=True),
        'adam': tf.train.AdamOptimizer(0.1),
        'adagrad': tf.train.AdagradOptimizer(0.1),
        'rmsprop': tf.train.RMSPropOptimizer(0.1),
        'rmsprop_centered': tf.train.RMSPropOptimizer(0.1, centered=True),
        'ftrl': tf.train.FtrlOptimizer(0.1),
        'ftrl_shrinkage': tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
        'adadelta': tf.train.AdadeltaOptimizer(0.1),
    }


def optimizers_dense():
    for dtype in tf.float32, tf.float64:
        for name, optimizer in _optimizers().items():
            with tf.variable_scope('%s_%s' % (name, dtype.name)):
                w = tf.get_variable('w', [4, 3], dtype)
                optimizer.minimize(tf.reduce_sum(w * w), var_list=[w])
    tf.global_variables_initializer()


def optimizers_sparse():
    ids = tf.placeholder(tf.int32, [None])
    for name, optimizer in _optimizers().items():
        with tf.variable_scope(name):
            w = tf.get_variable('w', [VOCABULARY, 3])
            optimizer.minimize(tf.reduce_sum(tf.square(tf.nn.embedding_lookup(w, ids))), var_list=[w])
            optimizer.minimize(tf.reduce_sum(tf.gather(w, tf.constant([1, 2], tf.int64))), var_list=[w])
    tf.global_variables_initializer()


def saver():
    """Full, sharded, partitioned, by name, optimistic; written and read back once."""
    with tf.device('/job:ps/task:0'):
        a = tf.get_variable('a', [10, 4], initializer=tf.zeros_initializer())
    with tf.device('/job:ps/task:1'):
        tf.get_variable('b', [3], tf.int64, initializer=tf.zeros_initializer())
        tf.get_variable('c', [10, 4], partitioner=tf.fixed_size_partitioner(2))
    tf.train.Saver()
    tf.train.Saver(sharded=True)
    tf.train.Saver({'renamed': a}, reshape=True)
    tf.train.Saver(sharded=True, restore_sequentially=True, allow_empty=True)


def summaries():
    x = tf.placeholder(tf.float32, [None, FEATURES])
    tf.summary.scalar('mean', tf.reduce_mean(x))
    tf.summary.histogram('values', x)
    tf.summary.image('digits', tf.reshape(x, [-1, 8, 8, 1]), max_outputs=3)
    tf.summary.audio('wave', tf.clip_by_value(x, -1.0, 1.0), 8000)
    tf.summary.text('note', tf.constant('digits'))
    tf.summary.merge_all()


def monitored_training():
    """MonitoredTrainingSession with the usual hooks, run for two steps."""
    x, y_ = _digits_inputs()
    logits = _dense(x, 'logits', FEATURES, CLASSES)
    loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits))
    tf.summary.scalar('loss', loss)
    step = tf.train.get_or_create_global_step()
    train_op = tf.train.AdamOptimizer(0.01).minimize(loss, global_step=step)
    hooks = [tf.train.StopAtStepHook(last_step=2), tf.train.NanTensorHook(loss),
             tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=1), tf.train.StepCounterHook(every_n_steps=1)]
    batch = {x: [[0.5] * FEATURES] * 4, y_: [[0.1] * CLASSES] * 4}
    with tf.train.MonitoredTrainingSession(checkpoint_dir=tempfile.mkdtemp(), hooks=hooks, save_checkpoint_steps=1,
                                           save_summaries_steps=1, log_step_count_steps=1) as session:
        while not session.should_stop():
            session.run(train_op, feed_dict=batch)


def _sync_replicas(sparse):
    x, y_ = _digits_inputs()
    ids = tf.placeholder(tf.int64, [None])
    with tf.device(tf.train.replica_device_setter(ps_tasks=2, worker_device='/job:worker/task:0')):
        step = tf.train.get_or_create_global_step()
        h = x
        if sparse:
            table = tf.get_variable('table', [VOCABULARY, FEATURES])
            h = h + tf.nn.embedding_lookup(table, ids)
        logits = _dense(h, 'logits', FEATURES, CLASSES)
        loss = tf.reduce_mean(tf.nn.softmax_cross_entropy_with_logits_v2(labels=y_, logits=logits))
        optimizer = tf.train.SyncReplicasOptimizer(
            tf.train.GradientDescentOptimizer(0.1), replicas_to_aggregate=2, total_num_replicas=3)
        optimizer.minimize(loss, global_step=step)
    for is_chief in True, False:
        hook = optimizer.make_session_run_hook(is_chief, num_tokens=2)
        hook.begin()
    scaffold = tf.train.Scaffold(local_init_op=optimizer.chief_init_op,
                                 ready_for_local_init_op=optimizer.ready_for_local_init_op)
    scaffold.finalize()


def sync_dense():
    _sync_replicas(sparse=False)


def sync_sparse():
    _sync_replicas(sparse=True)


def clipping_and_decay():
    """What most training scripts add around an optimizer."""
    x, y_ = _digits_inputs()
    loss = tf.reduce_mean(tf.square(_dense(x, 'out', FEATURES, CLASSES) - y_))
    step = tf.train.get_or_create_global_step()
    rates = [tf.train.exponential_decay(0.1, step, 100, 0.96), tf.train.exponential_decay(0.1, step, 9, 0.9, staircase=True),
             tf.train.inverse_time_decay(0.1, step, 10, 0.5)]
    optimizer = tf.train.GradientDescentOptimizer(tf.add_n(rates))
    pairs = optimizer.compute_gradients(loss)
    clipped, _ = tf.clip_by_global_norm([g for g, _ in pairs], 1.0)
    clipped = [tf.clip_by_norm(g, 1.0) for g in clipped]
    train = optimizer.apply_gradients(zip(clipped, [v for _, v in pairs]), global_step=step)
    with tf.control_dependencies([train]):
        tf.train.ExponentialMovingAverage(0.99, step).apply(tf.trainable_variables())


PROGRAMS = [seed_mlp, mlp_variants, linear_regression, convnet, in_graph_replication, model_split, recommender,
            optimizers_dense, optimizers_sparse, saver, summaries, monitored_training, sync_dense, sync_sparse,
            clipping_and_decay]

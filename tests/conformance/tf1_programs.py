# SPDX-License-Identifier: Apache-2.0
"""What people wrote with TensorFlow 1: each program trains something small and gives its losses.

A program is a function of a session target and of a folder that the server may write to.
"""
import glob
import os

import numpy as np
import tensorflow.compat.v1 as tf


def _train(target, train, loss, feeds=None, steps=5, more=(), local=()):
    """Losses of some steps, then the values of `more`."""
    feeds = feeds or [{}]
    with tf.Session(target) as session:
        session.run([tf.global_variables_initializer(), tf.tables_initializer(), *local])
        losses = [session.run([loss, train], feeds[i % len(feeds)])[0] for i in range(steps)]
        return losses + [session.run(one, feeds[0]) for one in more]


def _normal(seed, *shape):
    return np.random.RandomState(seed).normal(size=shape).astype(np.float32)


def word2vec(target, folder):
    words, labels = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None, 1])
    table = tf.get_variable('table', [50, 8], initializer=tf.random_uniform_initializer(-1, 1, seed=1))
    weights = tf.get_variable('weights', [50, 8], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=2))
    biases = tf.get_variable('biases', [50], initializer=tf.zeros_initializer())
    found = tf.nn.embedding_lookup(table, words)
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, labels, found, num_sampled=6, num_classes=50))
    train = tf.train.GradientDescentOptimizer(0.5).minimize(loss)
    norm = tf.sqrt(tf.reduce_sum(tf.square(table), 1, keepdims=True))
    similar = tf.nn.top_k(tf.matmul(table / norm, table / norm, transpose_b=True), 3).indices
    random = np.random.RandomState(5)
    feeds = [{words: random.randint(0, 50, 12), labels: random.randint(0, 50, [12, 1])} for _ in range(4)]
    return _train(target, train, loss, feeds, 8, [table, similar])


def sampled_softmax(target, folder):
    x, labels = tf.constant(_normal(1, 6, 4)), tf.constant([[1], [0], [9], [1], [3], [2]], tf.int64)
    weights = tf.get_variable('w', [30, 4], initializer=tf.random_normal_initializer(seed=3),
                              partitioner=tf.fixed_size_partitioner(2))
    biases = tf.get_variable('b', [30], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.nn.sampled_softmax_loss(weights, biases, labels, x, num_sampled=10, num_classes=30))
    return _train(target, tf.train.AdagradOptimizer(0.3).minimize(loss), loss, more=[biases])


def wide_and_deep(target, folder):
    """Hashed and crossed features under Ftrl, embeddings in two parts under Adagrad; a row without any word."""
    words = tf.sparse_placeholder(tf.string)
    city, age, label = tf.placeholder(tf.string, [None, 1]), tf.placeholder(tf.float32, [None, 1]), tf.placeholder(tf.float32, [None, 1])
    hashed = tf.SparseTensor(words.indices, tf.string_to_hash_bucket_fast(words.values, 20), words.dense_shape)
    buckets = tf.as_string(tf.cast(age / 10, tf.int64))
    crossed = tf.sparse.cross_hashed([words, city, buckets], num_buckets=40)
    wide = tf.get_variable('wide', [40, 1], initializer=tf.zeros_initializer())
    deep = tf.get_variable('deep', [20, 6], initializer=tf.truncated_normal_initializer(seed=4),
                           partitioner=tf.fixed_size_partitioner(2))
    table = tf.nn.safe_embedding_lookup_sparse(deep, hashed, combiner='mean')
    kernel = tf.get_variable('kernel', [7, 1], initializer=tf.glorot_uniform_initializer(seed=5))
    logits = tf.matmul(tf.concat([table, age / 100], 1), kernel) + tf.nn.safe_embedding_lookup_sparse(
        [wide], crossed, combiner='sum')
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=label, logits=logits))
    deep_parts = list(deep) + [kernel]
    train = tf.group(tf.train.FtrlOptimizer(0.2, l1_regularization_strength=0.01).minimize(loss, var_list=[wide]),
                     tf.train.AdagradOptimizer(0.1).minimize(loss, var_list=deep_parts))
    value = tf.SparseTensorValue([[0, 0], [0, 1], [2, 0], [3, 0]], [b'red', b'blue', b'red', b'green'], [4, 2])
    feeds = {words: value, city: [[b'x'], [b'y'], [b'x'], [b'z']], age: [[31], [8], [55], [42]], label: [[1], [0], [1], [0]]}
    return _train(target, train, loss, [feeds], 6, [wide, logits, crossed.values])


def text_classifier(target, folder):
    lines = tf.placeholder(tf.string, [None])
    split = tf.string_split(tf.strings.regex_replace(tf.strings.lower(lines), '[^a-z ]', ''))
    vocabulary = tf.constant(['good', 'bad', 'film', 'plot', 'a'])
    table = tf.lookup.StaticVocabularyTable(tf.lookup.KeyValueTensorInitializer(
        vocabulary, tf.range(5, dtype=tf.int64)), num_oov_buckets=3)
    ids = table.lookup(split)
    dense = tf.sparse.to_dense(ids, default_value=0)
    weights = tf.cast(tf.sparse.to_dense(tf.SparseTensor(ids.indices, tf.ones_like(ids.values), ids.dense_shape)), tf.float32)
    embeddings = tf.get_variable('e', [8, 3], initializer=tf.random_uniform_initializer(seed=2))
    bag = tf.reduce_sum(tf.nn.embedding_lookup(embeddings, dense) * weights[:, :, None], 1) / (
        tf.reduce_sum(weights, 1, keepdims=True) + 1e-6)
    logits = tf.matmul(bag, tf.get_variable('k', [3, 2], initializer=tf.glorot_uniform_initializer(seed=3)))
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=[1, 0, 1], logits=logits))
    feeds = {lines: [b'A good, good film!', b'bad plot', b'']}
    return _train(target, tf.train.AdamOptimizer(0.1).minimize(loss), loss, [feeds], more=[dense, logits])


def sparse_regression(target, folder):
    x = tf.sparse_placeholder(tf.float32, [None, 9])
    w = tf.get_variable('w', [9, 1], initializer=tf.random_normal_initializer(seed=1))
    y = tf.sparse_tensor_dense_matmul(tf.sparse_reorder(x), w)
    loss = tf.reduce_sum(tf.square(y - [[1.0], [2.0], [3.0]])) + 0.1 * tf.nn.l2_loss(w)
    value = tf.SparseTensorValue([[2, 1], [0, 0], [0, 8], [1, 3]], [1.0, 2.0, 0.5, -1.0], [3, 9])
    # Nothing else says whether TensorFlow squares the old or the new w for the loss.
    with tf.control_dependencies([loss]):
        train = tf.train.ProximalAdagradOptimizer(0.1).minimize(loss)
    return _train(target, train, loss, [{x: value}], more=[w])


class _Lstm:
    """A cell as tf.nn.dynamic_rnn wants it."""

    def __init__(self, size, inputs):
        self.state_size, self.output_size = (size, size), size
        self._kernel = tf.get_variable('kernel', [inputs + size, 4 * size], initializer=tf.glorot_uniform_initializer(seed=6))
        self._bias = tf.get_variable('bias', [4 * size], initializer=tf.zeros_initializer())

    def zero_state(self, batch, dtype):
        return tuple(tf.zeros([batch, size], dtype) for size in self.state_size)

    def get_initial_state(self, inputs=None, batch_size=None, dtype=None):
        return self.zero_state(batch_size, dtype)

    def __call__(self, x, state, scope=None):
        c, h = state
        gates = tf.nn.bias_add(tf.matmul(tf.concat([x, h], 1), self._kernel), self._bias)
        i, j, f, o = tf.split(gates, 4, 1)
        c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, (c, h)


def lstm(target, folder):
    """Unrolled, and by dynamic_rnn with lengths; gradients clipped by their common norm."""
    x = tf.constant(_normal(3, 4, 6, 3))
    cell = _Lstm(5, 3)
    state = cell.zero_state(4, tf.float32)
    for step in tf.unstack(x, axis=1):
        output, state = cell(step, state)
    outputs, last = tf.nn.dynamic_rnn(cell, x, sequence_length=[6, 2, 0, 5], dtype=tf.float32)
    loss = tf.reduce_sum(output) + tf.reduce_sum(tf.square(outputs)) + tf.reduce_sum(last[0])
    variables = tf.trainable_variables()
    gradients, norm = tf.clip_by_global_norm(tf.gradients(loss, variables), 1.0)
    train = tf.train.RMSPropOptimizer(0.05, momentum=0.5).apply_gradients(zip(gradients, variables))
    return _train(target, train, loss, more=[norm, outputs])


def gan(target, folder):
    def dense(x, name, units):
        w = tf.get_variable(name + '_w', [x.shape[1], units], initializer=tf.glorot_uniform_initializer(seed=len(name)))
        return tf.matmul(x, w) + tf.get_variable(name + '_b', [units], initializer=tf.zeros_initializer())

    def judge(x):
        with tf.variable_scope('judge', reuse=tf.AUTO_REUSE):
            return dense(tf.nn.leaky_relu(dense(x, 'one', 6)), 'second', 1)

    real = tf.constant(_normal(8, 16, 2) + 3)
    with tf.variable_scope('maker'):
        made = dense(tf.nn.relu(dense(tf.random_normal([16, 3], seed=9), 'one', 6)), 'second', 2)
    score_real, score_made = judge(real), judge(made)

    def entropy(logits, label):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(logits=logits, labels=label * tf.ones_like(logits)))
    loss_judge, loss_maker = entropy(score_real, 1.0) + entropy(score_made, 0.0), entropy(score_made, 1.0)
    judge_step = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss_judge, var_list=tf.trainable_variables('judge'))
    maker_step = tf.train.AdamOptimizer(0.01, beta1=0.5).minimize(loss_maker, var_list=tf.trainable_variables('maker'))
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([loss, step])[0] for _ in range(4) for loss, step in (
            (loss_judge, judge_step), (loss_maker, maker_step))]


def batch_norm(target, folder):
    """Moving mean and variance by hand, behind UPDATE_OPS; another path for evaluation."""
    x, training = tf.placeholder(tf.float32, [None, 4, 4, 3]), tf.placeholder(tf.bool, [])
    scale, offset = (tf.get_variable(n, [3], initializer=tf.constant_initializer(v)) for n, v in (('scale', 1.0), ('offset', 0.0)))
    mean, variance = (tf.get_variable(n, [3], initializer=tf.constant_initializer(v), trainable=False)
                      for n, v in (('mean', 0.0), ('variance', 1.0)))

    def while_training():
        y, m, v = tf.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3)
        return y, m, v

    y, m, v = tf.cond(training, while_training, lambda: (
        tf.nn.fused_batch_norm(x, scale, offset, mean, variance, epsilon=1e-3, is_training=False)[0], mean, variance))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(mean, (mean - m) * 0.1))
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(variance, (variance - v) * 0.1))
    loss = tf.reduce_sum(tf.square(y - 0.5))
    with tf.control_dependencies(tf.get_collection(tf.GraphKeys.UPDATE_OPS)):
        train = tf.train.MomentumOptimizer(0.001, 0.9, use_nesterov=True).minimize(loss)
    batch = _normal(2, 5, 4, 4, 3)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        losses = [session.run([loss, train], {x: batch, training: True})[0] for _ in range(4)]
        return losses + session.run([loss, mean, variance], {x: batch, training: False})


def schedules(target, folder):
    step = tf.train.get_or_create_global_step()
    rates = [tf.train.exponential_decay(0.1, step, 2, 0.5, staircase=True), tf.train.polynomial_decay(0.1, step, 4, 0.01),
             tf.train.piecewise_constant(step, [1, 3], [0.1, 0.05, 0.01]), tf.train.inverse_time_decay(0.1, step, 2, 0.5),
             tf.train.natural_exp_decay(0.1, step, 2, 0.5), tf.train.cosine_decay(0.1, step, 5),
             tf.train.cosine_decay_restarts(0.1, step, 2), tf.train.linear_cosine_decay(0.1, step, 5)]
    w = tf.get_variable('w', [3], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(w))
    # Before the update: nothing else says whether TensorFlow squares the old or the new w.
    with tf.control_dependencies([tf.identity(rate) for rate in rates] + [loss]):
        train = tf.train.GradientDescentOptimizer(tf.add_n(rates)).minimize(loss, global_step=step)
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        return [session.run([rates, loss, train])[:2] for _ in range(6)]


def optimizers(target, folder):
    """Each of TensorFlow 1's, on dense and on looked-up weights."""
    made = [tf.train.AdadeltaOptimizer(0.5), tf.train.AdagradDAOptimizer(0.1, tf.train.get_or_create_global_step()),
            tf.train.ProximalGradientDescentOptimizer(0.1, l1_regularization_strength=0.01),
            tf.train.RMSPropOptimizer(0.1, centered=True), tf.train.FtrlOptimizer(0.1, l2_shrinkage_regularization_strength=0.1),
            tf.train.AdamOptimizer(0.1), tf.train.MomentumOptimizer(0.1, 0.9), tf.train.AdagradOptimizer(0.1)]
    losses, steps = [], []
    for number, optimizer in enumerate(made):
        with tf.variable_scope('v%d' % number):
            dense = tf.get_variable('dense', [4], initializer=tf.constant_initializer([1.0, -2.0, 0.5, 3.0]))
            table = tf.get_variable('table', [5, 4], initializer=tf.random_normal_initializer(seed=7))
            loss = tf.reduce_sum(tf.square(tf.nn.embedding_lookup(table, [1, 3, 1]) - dense))
            losses.append(loss)
            steps.append(optimizer.minimize(loss))
    return _train(target, tf.group(*steps), losses, steps=4)


def saver(target, folder):
    """Some of the variables saved and read back under other names; kept checkpoints; a list of them."""
    a, b = tf.get_variable('a', initializer=[1.0, 2.0]), tf.get_variable('b', initializer=[[3, 4]])
    change = tf.group(tf.assign(a, a * 10), tf.assign(b, b + 1))
    some, every = tf.train.Saver({'old/a': a}, max_to_keep=2), tf.train.Saver(sharded=True)
    path = os.path.join(folder, 'model')
    with tf.Session(target) as session:
        session.run(tf.global_variables_initializer())
        names = [os.path.basename(some.save(session, path, step)) for step in (1, 2, 3)]
        whole = every.save(session, os.path.join(folder, 'all'))
        session.run(change)
        changed = session.run([a, b])
        some.restore(session, path + '-3')
        restored = session.run([a, b])
        session.run(change)
        every.restore(session, whole)
        shapes = [int(np.prod(shape)) for _, shape in tf.train.list_variables(path + '-3')]
        return changed + restored + session.run([a, b]) + shapes + [
            len(names), len(glob.glob(path + '-*.index'))]


def summaries(target, folder):
    x = tf.get_variable('x', initializer=_normal(1, 20))
    tf.summary.scalar('average', tf.reduce_mean(x))
    tf.summary.histogram('all', x)
    tf.summary.image('picture', tf.reshape(tf.sigmoid(x), [1, 4, 5, 1]))
    tf.summary.text('words', tf.as_string(x[:2]))
    with tf.Session(target) as session:
        session.run(x.initializer)
        summary = tf.Summary.FromString(session.run(tf.summary.merge_all()))
    values = {value.tag: value for value in summary.value}
    return [values['average'].simple_value, len(values), list(values['all'].histo.bucket), values['all'].histo.sum,
            values['picture/image/0'].image.height, len(values['words'].tensor.string_val)]


def unknown_shapes(target, folder):
    x = tf.placeholder(tf.float32)
    rows = tf.placeholder(tf.float32, [None, None])
    flat = tf.reshape(x, [tf.shape(x)[0], -1])
    padded = tf.pad(rows, [[0, 2 - tf.minimum(tf.shape(rows)[0], 2)], [1, 0]])
    printed = tf.Print(flat, [tf.shape(flat)], 'shape: ', first_n=1)
    tiled = tf.tile(padded, tf.stack([1, tf.size(x) // tf.size(x) + 1]))
    picked = tf.boolean_mask(rows, rows[:, 0] > 0)
    where = tf.where(tf.greater(x, 0))
    out = []
    with tf.Session(target) as session:
        for one, two in ((_normal(1, 2, 3, 4), _normal(2, 3, 2)), (_normal(3, 5, 1), _normal(4, 1, 7))):
            out += session.run([printed, padded, tiled, picked, where], {x: one, rows: two})
    return out


def input_queue(target, folder):
    """Queue runners feed batches; the coordinator ends them."""
    numbers = tf.train.range_input_producer(7, shuffle=False, num_epochs=2).dequeue()
    batch, squares = tf.train.batch([numbers, numbers * numbers], 4, allow_smaller_final_batch=True)
    out = []
    with tf.Session(target) as session:
        session.run([tf.global_variables_initializer(), tf.local_variables_initializer()])
        coordinator = tf.train.Coordinator()
        threads = tf.train.start_queue_runners(session, coordinator)
        try:
            while not coordinator.should_stop():
                out += session.run([batch, squares])
        except tf.errors.OutOfRangeError:
            out.append(-1)
        coordinator.request_stop()
        coordinator.join(threads)
    return out


def record_input(target, folder):
    """Each record once in an epoch. The order is one of chance, and not the same."""
    for number in range(3):
        with tf.python_io.TFRecordWriter(os.path.join(folder, 'part-%d' % number)) as writer:
            for record in range(4):
                writer.write(b'%d/%d' % (number, record))
    records = tf.raw_ops.RecordInput(file_pattern=os.path.join(folder, 'part-*'), batch_size=6, file_buffer_size=5)
    empty = tf.raw_ops.RecordInput(file_pattern=os.path.join(folder, 'other-*'))
    with tf.Session(target) as session:
        epochs = [np.concatenate([session.run(records), session.run(records)]) for _ in range(3)]
        try:
            session.run(empty)
        except tf.errors.NotFoundError:
            epochs.append(np.array(b'not found', object))
        return [np.sort(epoch) for epoch in epochs[:3]] + epochs[3:]


def csv_files(target, folder):
    """Files named by one queue, their lines read, decoded and batched by others."""
    paths = [os.path.join(folder, name) for name in ('one.csv', 'two.csv')]
    for path, lines in zip(paths, ('1.5,2,x\n2.5,,"y, z"\n', '-1,4,z\n')):
        with open(path, 'w') as out:
            out.write(lines)
    names = tf.train.string_input_producer(paths, num_epochs=2, shuffle=False)
    _, line = tf.TextLineReader().read(names)
    batch = tf.train.batch(tf.decode_csv(line, [[0.0], [7], ['']]), 4, allow_smaller_final_batch=True)
    out = []
    with tf.train.MonitoredSession(tf.train.ChiefSessionCreator(master=target)) as session:
        while not session.should_stop():
            out += session.run(batch)
    return out


def metrics(target, folder):
    """Streamed over batches, with weights; ranked ones use sets."""
    labels, score, weight = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.float32, [None]), tf.placeholder(tf.float32, [None])
    guess, ranks = tf.cast(score > 0.5, tf.int64), tf.placeholder(tf.float32, [None, 4])
    made = [tf.metrics.accuracy(labels, guess, weight), tf.metrics.precision(labels, guess), tf.metrics.recall(labels, guess),
            tf.metrics.auc(labels, score), tf.metrics.auc(labels, score, curve='PR', summation_method='careful_interpolation'),
            tf.metrics.mean(score, weight), tf.metrics.root_mean_squared_error(tf.cast(labels, tf.float32), score),
            tf.metrics.mean_iou(labels, guess, 2), tf.metrics.false_negatives_at_thresholds(labels, score, [0.2, 0.6]),
            tf.metrics.recall_at_k(labels[:, None], ranks, 2), tf.metrics.precision_at_k(labels[:, None], ranks, 2),
            tf.metrics.average_precision_at_k(labels[:, None], ranks, 3)]
    random = np.random.RandomState(1)
    with tf.Session(target) as session:
        session.run(tf.local_variables_initializer())
        for _ in range(3):
            session.run([update for _, update in made], {labels: random.randint(0, 2, 6), score: random.rand(6),
                                                         weight: random.rand(6), ranks: random.rand(6, 4)})
        return session.run([value for value, _ in made])


def policy_gradient(target, folder):
    state = tf.constant(_normal(1, 10, 4))
    logits = tf.matmul(state, tf.get_variable('w', [4, 3], initializer=tf.glorot_uniform_initializer(seed=1)))
    action = tf.multinomial(logits, 1, seed=11)
    chosen = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.squeeze(action, 1), logits=logits)
    loss = tf.reduce_mean(chosen * tf.cast(tf.squeeze(action, 1), tf.float32))
    return _train(target, tf.train.GradientDescentOptimizer(0.5).minimize(loss), loss, more=[logits])


def convolutions(target, folder):
    x = tf.constant(_normal(1, 2, 8, 8, 3))

    def filters(name, *shape):
        return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=0.2, seed=len(name)))
    y = tf.nn.relu(tf.nn.conv2d(x, filters('a', 3, 3, 3, 4), strides=[1, 1, 1, 1], padding='SAME'))
    y = tf.nn.lrn(tf.nn.max_pool(y, [1, 2, 2, 1], [1, 2, 2, 1], 'SAME'), 2)
    y = tf.nn.depthwise_conv2d(y, filters('bb', 2, 2, 4, 1), [1, 1, 1, 1], 'VALID')
    y = tf.nn.conv2d_transpose(y, filters('ccc', 2, 2, 5, 4), [2, 6, 6, 5], [1, 2, 2, 1], 'SAME')
    y = tf.nn.dropout(tf.reshape(tf.nn.avg_pool(y, [1, 3, 3, 1], [1, 3, 3, 1], 'VALID'), [2, -1]), rate=0.25, seed=5)
    loss = tf.losses.softmax_cross_entropy(tf.one_hot([3, 1], 20), y, label_smoothing=0.1) + tf.losses.absolute_difference(
        tf.zeros_like(y), y, weights=0.1)
    return _train(target, tf.train.AdamOptimizer(0.01).minimize(loss), loss, more=[y])


def monitored(target, folder):
    """MonitoredTrainingSession: hooks, a checkpoint, a second session that goes on from it."""
    step = tf.train.get_or_create_global_step()
    w = tf.get_variable('w', [3], initializer=tf.ones_initializer())
    loss = tf.reduce_sum(tf.square(w - [1.0, 2.0, 3.0]))
    tf.summary.scalar('loss', loss)
    train = tf.train.GradientDescentOptimizer(0.1).minimize(loss, global_step=step)
    seen = []

    class Notes(tf.train.SessionRunHook):
        def before_run(self, context):
            return tf.train.SessionRunArgs([loss, step])

        def after_run(self, context, values):
            seen.append(float(values.results[0]))

    for last in 4, 7:
        hooks = [tf.train.StopAtStepHook(last_step=last), tf.train.NanTensorHook(loss), Notes(),
                 tf.train.LoggingTensorHook({'loss': loss}, every_n_iter=100), tf.train.StepCounterHook(every_n_steps=2)]
        with tf.train.MonitoredTrainingSession(target, checkpoint_dir=folder, hooks=hooks, save_checkpoint_steps=2,
                                               save_summaries_steps=2, log_step_count_steps=None) as session:
            while not session.should_stop():
                session.run(train)
        if target:
            tf.Session.reset(target)
    return [seen, len(seen), int(len(glob.glob(os.path.join(folder, 'model.ckpt-*.index'))) > 0)]


def gradient_penalty(target, folder):
    """A critic whose slope is part of its loss: second derivatives, two optimizers."""
    noise, real = tf.placeholder(tf.float32, [None, 3]), tf.placeholder(tf.float32, [None, 2])

    def net(x, name, units):
        with tf.variable_scope(name, reuse=tf.AUTO_REUSE):
            first = tf.get_variable('first', [x.shape[1], 8], initializer=tf.glorot_normal_initializer(seed=1))
            second = tf.get_variable('second', [8, units], initializer=tf.glorot_normal_initializer(seed=2))
            return tf.matmul(tf.nn.softplus(tf.matmul(x, first)), second)
    made = net(noise, 'generator', 2)
    between = 0.25 * real + 0.75 * made
    slope = tf.norm(tf.gradients(net(between, 'critic', 1), between)[0], axis=1)
    loss = tf.reduce_mean(net(made, 'critic', 1)) - tf.reduce_mean(net(real, 'critic', 1)) + 10 * tf.reduce_mean(tf.square(slope - 1))
    critic, generator = tf.train.AdamOptimizer(0.01, beta1=0.0), tf.train.RMSPropOptimizer(0.01, centered=True)
    slopes = [critic.compute_gradients(loss, tf.trainable_variables('critic')),
              generator.compute_gradients(-tf.reduce_mean(net(made, 'critic', 1)), tf.trainable_variables('generator'))]
    # Each is of the weights before the step: TensorFlow may update the critic's while the generator's gradient reads them.
    with tf.control_dependencies([loss] + [slope for pairs in slopes for slope, _ in pairs]):
        train = tf.group(critic.apply_gradients(slopes[0]), generator.apply_gradients(slopes[1]))
    feeds = [{noise: _normal(i, 6, 3), real: _normal(i + 9, 6, 2) + 1} for i in range(3)]
    return _train(target, train, loss, feeds, 6)


def prints_and_asserts(target, folder):
    """tf.print, tf.Print and all ways to check a value: what passes, and which check stops what does not."""
    x = tf.placeholder(tf.float32, [None])
    out = os.path.join(folder, 'printed')
    checks = [tf.assert_positive(x, message='must be positive'),
              tf.debugging.assert_less(tf.size(x), 5, data=[x], message='too many'),
              tf.Assert(tf.reduce_all(x < 100), [x], summarize=2)]
    with tf.control_dependencies(checks):
        shown = tf.print('x is', x, {'a': x}, output_stream='file://' + out)
    with tf.control_dependencies([shown]):
        y = tf.Print(tf.sqrt(x), [x], 'again ', first_n=2, summarize=3)
    finite, number = tf.verify_tensor_all_finite(tf.log(x - 1), 'not finite'), tf.check_numerics(1 / (x - 2), 'no number')
    found = []
    with tf.Session(target) as session:
        for fetch, value in (y, [1.0, 4.0]), (y, [-1.0]), (y, [1.0] * 6), (y, [400.0]), (finite, [0.5]), (number, [2.0]), (finite, [3.0]):
            try:
                found.append(session.run(fetch, {x: value}))
            except tf.errors.InvalidArgumentError as error:
                words = 'must be positive', 'too many', 'assertion failed', 'not finite', 'no number'
                found.append(np.array([word in str(error) for word in words]))
    with open(out) as printed:
        return found + [np.array(printed.readlines(), object)]


def wrong_programs(target, folder):
    """What is wrong in a step has TensorFlow's type of error."""
    x, v = tf.placeholder(tf.float32, None), tf.get_variable('v', [2], initializer=tf.ones_initializer())
    r, text = tf.get_variable('r', [2], use_resource=True), tf.as_string(x[0, 0])
    wrong = [tf.matmul(x, [[1.0, 2.0]]), tf.reshape(x, [7]), tf.gather([1.0, 2.0], tf.cast(x, tf.int32)), tf.concat([x, [[1.0]]], 0),
             tf.linalg.cholesky(x), v + 1, r + 1, tf.split(x, 3, 0)[0], tf.strided_slice(x, [0, 0, 0], [1, 1, 1]),
             tf.decode_raw(text, tf.int32), tf.image.decode_png(text), tf.segment_sum(x, [1, 0]), tf.read_file(folder + '/nothing'),
             tf.parse_single_example(tf.constant('zz'), {'a': tf.FixedLenFeature([], tf.int64)}), tf.string_to_number(['q']),
             tf.constant(1) // tf.cast(x[0, 0] * 0, tf.int32), tf.random_uniform(tf.cast(x[0] * -1, tf.int32))]
    found = []
    with tf.Session(target) as session:
        for fetch in wrong:
            try:
                session.run(fetch, {x: [[5.0, 2.0], [1.0, 9.0]]})
                found.append('ran')
            except tf.errors.OpError as error:
                found.append(type(error).__name__)
    return [np.array(found, object)]


PROGRAMS = [word2vec, sampled_softmax, wide_and_deep, text_classifier, sparse_regression, lstm, gan, batch_norm, schedules,
            optimizers, saver, summaries, unknown_shapes, input_queue, csv_files, record_input, metrics, policy_gradient,
            convolutions, monitored, gradient_penalty, prints_and_asserts, wrong_programs]

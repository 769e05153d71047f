# SPDX-License-Identifier: Apache-2.0
"""Models that people train with TensorFlow 1's style, small: each adds its graph and gives its loss and its feeds.

A model is a function that returns (loss, feeds); `feeds` has a dictionary for each step. Values come from seeds, so that
two sessions train from the same ones.
"""
import numpy as np
import tensorflow.compat.v1 as tf


def _random(seed):
    return np.random.RandomState(seed)


def _weight(name, shape, scale=None):
    deviation = scale or (2.0 / max(1, int(np.prod(shape[:-1])))) ** 0.5
    return tf.get_variable(name, shape, initializer=tf.truncated_normal_initializer(stddev=deviation, seed=len(name) + sum(shape)))


def _dense(x, units, name, activation=None):
    with tf.variable_scope(name):
        y = tf.matmul(x, _weight('w', [int(x.shape[-1]), units])) + tf.get_variable('b', [units], initializer=tf.zeros_initializer())
    return activation(y) if activation else y


def _dense_of_sequences(x, units, name, activation=None):
    """The same for each place of [batch, length, depth]."""
    flat = _dense(tf.reshape(x, [-1, int(x.shape[-1])]), units, name, activation)
    return tf.reshape(flat, tf.concat([tf.shape(x)[:-1], [units]], 0)), flat


def _norm(x, scale=1.0):
    """Batch normalisation of a training step, with its moving averages."""
    with tf.variable_scope(None, 'norm'):
        depth = int(x.shape[-1])
        scale = tf.get_variable('scale', [depth], initializer=tf.constant_initializer(scale))
        offset = tf.get_variable('offset', [depth], initializer=tf.zeros_initializer())
        y, mean, _ = tf.nn.fused_batch_norm(x, scale, offset, epsilon=1e-3)
        moving = tf.get_variable('mean', [depth], initializer=tf.zeros_initializer(), trainable=False)
        tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_sub(moving, 0.1 * (moving - mean)))
    return y


def _conv(x, depth, size, stride=1, normed=True, activation=tf.nn.relu, scale=1.0):
    with tf.variable_scope(None, 'conv'):
        y = tf.nn.conv2d(x, _weight('w', [size, size, int(x.shape[-1]), depth]), [1, stride, stride, 1], 'SAME')
        y = _norm(y, scale) if normed else tf.nn.bias_add(y, tf.get_variable('b', [depth], initializer=tf.zeros_initializer()))
    return activation(y) if activation else y


def _classified(logits, images, classes, batch, size):
    labels = tf.placeholder(tf.int64, [None])
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=labels, logits=logits))
    random = _random(7)
    return loss, [{images: random.rand(batch, size, size, 3).astype(np.float32), labels: random.randint(0, classes, batch)}
                  for _ in range(2)]


def vgg16(size=32, width=16, batch=4):
    images = x = tf.placeholder(tf.float32, [None, size, size, 3])
    for depth, count in (1, 2), (2, 2), (4, 3), (8, 3), (8, 3):
        for _ in range(count):
            x = _conv(x, depth * width, 3, normed=False)
        x = tf.nn.max_pool2d(x, 2, 2, 'VALID')
    x = tf.reshape(x, [-1, (size // 32) ** 2 * 8 * width])
    x = tf.nn.dropout(_dense(x, 64, 'first', tf.nn.relu), rate=0.5, seed=11)
    x = tf.nn.dropout(_dense(x, 64, 'second', tf.nn.relu), rate=0.5, seed=12)
    return _classified(_dense(x, 10, 'last'), images, 10, batch, size)


def resnet50(size=32, width=8, batch=8):
    images = tf.placeholder(tf.float32, [None, size, size, 3])
    x = tf.nn.max_pool2d(_conv(images, width, 7, 2), 3, 2, 'SAME')
    for stage, count in enumerate((3, 4, 6, 3)):
        depth = width << stage
        for block in range(count):
            stride = 2 if stage and not block else 1
            short = x if block else _conv(x, 4 * depth, 1, stride, activation=None)
            y = _conv(_conv(_conv(x, depth, 1, stride), depth, 3), 4 * depth, 1, activation=None, scale=0.2)
            x = tf.nn.relu(short + y)
    return _classified(_dense(tf.reduce_mean(x, [1, 2]), 10, 'last'), images, 10, batch, size)


def inception(size=16, batch=4):
    images = tf.placeholder(tf.float32, [None, size, size, 3])
    x = _conv(images, 8, 3)
    for _ in range(2):
        fifth = _conv(_conv(x, 4, 1), 8, 5)
        factors = _conv(_conv(_conv(x, 4, 1), 8, 3), 8, 3)
        pooled = _conv(tf.nn.avg_pool2d(x, 3, 1, 'SAME'), 4, 1)
        x = tf.concat([_conv(x, 8, 1), fifth, factors, pooled], 3)
        x = tf.nn.max_pool2d(x, 3, 2, 'VALID')
    x = tf.nn.local_response_normalization(x, depth_radius=2)
    return _classified(_dense(tf.reduce_mean(x, [1, 2]), 10, 'last'), images, 10, batch, size)


def mobilenet_v2(size=32, batch=4):
    images = tf.placeholder(tf.float32, [None, size, size, 3])
    x = _conv(images, 8, 3, 2, activation=tf.nn.relu6)
    for depth, stride, expand in (8, 1, 1), (12, 2, 6), (12, 1, 6), (16, 2, 6), (16, 1, 6):
        y = _conv(x, int(x.shape[-1]) * expand, 1, activation=tf.nn.relu6)
        with tf.variable_scope(None, 'depthwise'):
            y = tf.nn.depthwise_conv2d(y, _weight('w', [3, 3, int(y.shape[-1]), 1], 0.3), [1, stride, stride, 1], 'SAME')
            y = tf.nn.relu6(_norm(y))
        y = _conv(y, depth, 1, activation=None)
        x = x + y if stride == 1 and int(x.shape[-1]) == depth else y
    return _classified(_dense(tf.reduce_mean(_conv(x, 32, 1), [1, 2]), 10, 'last'), images, 10, batch, size)


def _lstm_step(x, state, units):
    c, h = state
    i, j, f, o = tf.split(_dense(tf.concat([x, h], 1), 4 * units, 'gates'), 4, 1)
    c = c * tf.sigmoid(f + 1.0) + tf.sigmoid(i) * tf.tanh(j)
    return c, tf.tanh(c) * tf.sigmoid(o)


def _gru_step(x, state, units):
    h, = state
    r, z = tf.split(_dense(tf.concat([x, h], 1), 2 * units, 'gates', tf.sigmoid), 2, 1)
    new = _dense(tf.concat([x, r * h], 1), units, 'new', tf.tanh)
    return (z * h + (1 - z) * new,)


def _over_time(step, xs, lengths, units, states):
    """A loop over time on TensorArrays: (all outputs [batch, time, units], the last states)."""
    steps = tf.shape(xs)[1]
    inputs = tf.TensorArray(tf.float32, steps).unstack(tf.transpose(xs, [1, 0, 2]))
    zeros = tuple(tf.zeros([tf.shape(xs)[0], units]) for _ in range(states))

    def body(time, state, outputs):
        x = inputs.read(time)
        x.set_shape([None, int(xs.shape[-1])])
        new = step(x, state, units)
        new = tuple(tf.where(time < lengths, one, other) for one, other in zip(new, state))
        return time + 1, new, outputs.write(time, new[-1])
    _, last, outputs = tf.while_loop(lambda time, *_: time < steps, body, [0, zeros, tf.TensorArray(tf.float32, steps)])
    outputs = tf.transpose(outputs.stack(), [1, 0, 2])
    outputs.set_shape([None, None, units])
    return outputs, last


def _text(step, states):
    words, lengths, labels = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    found = tf.nn.embedding_lookup(_weight('table', [40, 8], 0.2), words)
    _, last = _over_time(step, found, lengths, 12, states)
    logits = tf.squeeze(_dense(last[-1], 1, 'last'), 1)
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    random = _random(3)
    return loss, [{words: random.randint(0, 40, [6, time]), lengths: random.randint(1, time + 1, 6), labels: random.randint(0, 2, 6)}
                  for time in (7, 5)]


def lstm_text():
    return _text(_lstm_step, 2)


def gru_text():
    return _text(_gru_step, 1)


def seq2seq():
    """An encoder, a decoder that attends to it and is taught with the wanted words, a masked loss."""
    units, words = 10, 20
    source, wanted = tf.placeholder(tf.int32, [None, None]), tf.placeholder(tf.int32, [None, 4])
    lengths = tf.reduce_sum(tf.cast(source > 0, tf.int32), 1)
    table = _weight('table', [words, 6], 0.3)
    with tf.variable_scope('encoder'):
        memory, state = _over_time(_lstm_step, tf.nn.embedding_lookup(table, source), lengths, units, 2)
    mask = tf.cast(tf.sequence_mask(lengths, tf.shape(source)[1]), tf.float32)
    given = tf.concat([tf.ones_like(wanted[:, :1]), wanted[:, :-1]], 1)
    loss, context = 0.0, tf.zeros([tf.shape(source)[0], units])
    with tf.variable_scope('decoder', reuse=tf.AUTO_REUSE):
        for time in range(4):
            x = tf.concat([tf.nn.embedding_lookup(table, given[:, time]), context], 1)
            state = _lstm_step(x, state, units)
            scores = tf.reduce_sum(memory * tf.expand_dims(_dense(state[1], units, 'query'), 1), 2)
            weights = tf.nn.softmax(scores + (mask - 1.0) * 1e9)
            context = tf.reduce_sum(memory * tf.expand_dims(weights, 2), 1)
            logits = _dense(tf.concat([state[1], context], 1), words, 'word')
            losses = tf.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted[:, time], logits=logits)
            counted = tf.cast(wanted[:, time] > 0, tf.float32)
            loss += tf.reduce_sum(losses * counted) / (tf.reduce_sum(counted) + 1e-6)
    random = _random(4)
    return loss, [{source: random.randint(1, words, [5, 6]) * (np.arange(6) < random.randint(2, 7, [5, 1])),
                   wanted: random.randint(0, words, [5, 4])} for _ in range(2)]


def transformer():
    """Two blocks of multi-head attention that look back only, layer normalisation, a loss of the next word."""
    words, depth, heads, length = 25, 12, 3, 6
    tokens = tf.placeholder(tf.int32, [None, length + 1])
    x = tf.gather(_weight('table', [words, depth], 0.3), tokens[:, :-1]) + _weight('places', [length, depth], 0.1)
    later = tf.constant(np.triu(np.full([length, length], -1e9, np.float32), 1))

    def normed(y, name):
        mean, variance = tf.nn.moments(y, [-1], keepdims=True)
        scale, offset = (tf.get_variable(name + part, [depth], initializer=tf.constant_initializer(value))
                         for part, value in (('scale', 1.0), ('offset', 0.0)))
        return (y - mean) * tf.rsqrt(variance + 1e-6) * scale + offset
    for block in range(2):
        with tf.variable_scope('block%d' % block):
            y = normed(x, 'before')
            q, k, v = (tf.transpose(tf.reshape(_dense_of_sequences(y, depth, name)[0], [-1, length, heads, depth // heads]), [0, 2, 1, 3])
                       for name in ('query', 'key', 'value'))
            weights = tf.nn.softmax(tf.matmul(q, k, transpose_b=True) / (depth / heads) ** 0.5 + later)
            attended = tf.reshape(tf.transpose(tf.matmul(tf.nn.dropout(weights, rate=0.1, seed=5), v), [0, 2, 1, 3]), [-1, length, depth])
            x += _dense_of_sequences(attended, depth, 'out')[0]
            y = _dense_of_sequences(normed(x, 'between'), 2 * depth, 'wide', tf.nn.elu)[0]
            y = tf.reshape(y, [-1, length, 2 * depth])
            x += _dense_of_sequences(y, depth, 'narrow')[0]
            x = tf.reshape(x, [-1, length, depth])
    logits = _dense_of_sequences(normed(x, 'last'), words, 'words')[1]
    loss = tf.reduce_mean(tf.nn.sparse_softmax_cross_entropy_with_logits(labels=tf.reshape(tokens[:, 1:], [-1]), logits=logits))
    random = _random(6)
    return loss, [{tokens: random.randint(0, words, [4, length + 1])} for _ in range(2)]


def _clicks(logits, feeds, count=8):
    labels = tf.placeholder(tf.float32, [None])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=labels, logits=logits))
    random = _random(9)
    return loss, [feeds(random, count) | {labels: random.randint(0, 2, count)} for _ in range(3)]


def wide_and_deep():
    ids, dense = tf.placeholder(tf.int32, [None, 4]), tf.placeholder(tf.float32, [None, 3])
    wide = tf.reduce_sum(tf.nn.embedding_lookup(tf.get_variable('wide', [60, 1], initializer=tf.zeros_initializer()), ids), [1, 2])
    table = tf.get_variable('deep', [60, 5], initializer=tf.truncated_normal_initializer(stddev=0.3, seed=2),
                            partitioner=tf.fixed_size_partitioner(3))
    x = tf.concat([tf.reshape(tf.nn.embedding_lookup(table, ids, partition_strategy='div'), [-1, 20]), dense], 1)
    x = _dense(_dense(x, 16, 'one', tf.nn.relu), 8, 'two', tf.nn.relu)
    return _clicks(wide + tf.squeeze(_dense(x, 1, 'last'), 1),
                   lambda random, count: {ids: random.randint(0, 60, [count, 4]), dense: random.rand(count, 3)})


def deep_fm():
    fields, depth = 5, 4
    ids, values = tf.placeholder(tf.int64, [None, fields]), tf.placeholder(tf.float32, [None, fields])
    first = tf.reduce_sum(tf.squeeze(tf.gather(_weight('first', [50, 1], 0.1), ids), 2) * values, 1)
    found = tf.gather(_weight('factors', [50, depth], 0.2), ids) * tf.expand_dims(values, 2)
    second = 0.5 * tf.reduce_sum(tf.square(tf.reduce_sum(found, 1)) - tf.reduce_sum(tf.square(found), 1), 1)
    deep = _dense(tf.reshape(found, [-1, fields * depth]), 16, 'one', tf.nn.relu)
    return _clicks(first + second + tf.squeeze(_dense(deep, 1, 'last'), 1),
                   lambda random, count: {ids: random.randint(0, 50, [count, fields]), values: random.rand(count, fields)})


def din():
    """Deep interest network: what was bought is weighed by how it fits what is offered; Dice activations."""
    offered, bought, lengths = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None, 6]), tf.placeholder(tf.int32, [None])
    table = _weight('items', [30, 6], 0.3)
    query, keys = tf.gather(table, offered), tf.gather(table, bought)
    queries = tf.tile(tf.expand_dims(query, 1), [1, 6, 1])

    def dice(x, name):
        alpha = tf.get_variable(name + '_alpha', [int(x.shape[-1])], initializer=tf.constant_initializer(0.2))
        mean, variance = tf.nn.moments(x, [0])
        gate = tf.sigmoid((x - mean) * tf.rsqrt(variance + 1e-6))
        return gate * x + (1.0 - gate) * alpha * x
    pairs = tf.concat([queries, keys, queries - keys, queries * keys], 2)
    scores = _dense(dice(_dense_of_sequences(pairs, 8, 'fit')[1], 'fit'), 1, 'score')
    scores = tf.where(tf.sequence_mask(lengths, 6), tf.reshape(scores, [-1, 6]), tf.fill([tf.shape(offered)[0], 6], -1e9))
    interest = tf.squeeze(tf.matmul(tf.expand_dims(tf.nn.softmax(scores), 1), keys), 1)
    x = dice(_dense(tf.concat([interest, query], 1), 12, 'one'), 'one')
    return _clicks(tf.squeeze(_dense(x, 1, 'last'), 1), lambda random, count: {
        offered: random.randint(0, 30, count), bought: random.randint(0, 30, [count, 6]), lengths: random.randint(1, 7, count)})


def _pictures(x, seed=2):
    random = _random(seed)
    return [{x: (random.rand(6, 20) > 0.5).astype(np.float32)} for _ in range(2)]


def autoencoder():
    x = tf.placeholder(tf.float32, [None, 20])
    noisy = x + tf.random_normal(tf.shape(x), stddev=0.1, seed=3)
    code = _dense(_dense(noisy, 12, 'one', tf.nn.elu), 4, 'code', tf.nn.tanh)
    return tf.losses.mean_squared_error(x, _dense(_dense(code, 12, 'two', tf.nn.elu), 20, 'back', tf.sigmoid)), _pictures(x)


def vae():
    x = tf.placeholder(tf.float32, [None, 20])
    mean, log_variance = tf.split(_dense(_dense(x, 12, 'one', tf.nn.softplus), 8, 'code'), 2, 1)
    z = mean + tf.exp(0.5 * log_variance) * tf.random_normal(tf.shape(mean), seed=4)
    logits = _dense(_dense(z, 12, 'two', tf.nn.softplus), 20, 'back')
    told = tf.reduce_sum(tf.nn.sigmoid_cross_entropy_with_logits(labels=x, logits=logits), 1)
    apart = -0.5 * tf.reduce_sum(1 + log_variance - tf.square(mean) - tf.exp(log_variance), 1)
    return tf.reduce_mean(told + apart), _pictures(x)


def gan():
    """Both players' losses in one: the gradient of the other's variables is stopped by two copies of the judge."""
    x = tf.placeholder(tf.float32, [None, 20])
    with tf.variable_scope('maker'):
        made = _dense(_dense(tf.random_uniform([6, 5], -1, 1, seed=6), 10, 'one', tf.nn.relu), 20, 'two', tf.sigmoid)

    def judged(y, reuse):
        with tf.variable_scope('judge', reuse=reuse):
            return _dense(_dense(y, 10, 'one', tf.nn.leaky_relu), 1, 'two')

    def told(logits, value):
        return tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=tf.fill(tf.shape(logits), value), logits=logits))
    judge = told(judged(x, False), 1.0) + told(judged(tf.stop_gradient(made), True), 0.0)
    return judge + told(judged(made, True), 1.0), _pictures(x)


def word2vec():
    words, near = tf.placeholder(tf.int64, [None]), tf.placeholder(tf.int64, [None, 1])
    weights, biases = _weight('weights', [40, 6], 0.3), tf.get_variable('biases', [40], initializer=tf.zeros_initializer())
    loss = tf.reduce_mean(tf.nn.nce_loss(weights, biases, near, tf.gather(_weight('table', [40, 6], 0.5), words), 5, 40,
                                         sampled_values=tf.random.log_uniform_candidate_sampler(near, 1, 5, True, 40, seed=8)))
    random = _random(5)
    return loss, [{words: random.randint(0, 40, 10), near: random.randint(0, 40, [10, 1])} for _ in range(3)]


def matrix_factorisation():
    users, items, stars = tf.placeholder(tf.int32, [None]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    found = [tf.nn.embedding_lookup(tf.get_variable(name, [24, size], initializer=tf.random_normal_initializer(stddev=0.2, seed=size),
                                                    partitioner=tf.fixed_size_partitioner(2)), ids)
             for name, ids, size in (('user', users, 5), ('item', items, 5), ('user_bias', users, 1), ('item_bias', items, 1))]
    guess = tf.reduce_sum(found[0] * found[1], 1) + found[2][:, 0] + found[3][:, 0] + 3.0
    loss = tf.reduce_mean(tf.square(guess - stars)) + 0.01 * tf.add_n([tf.nn.l2_loss(one) for one in found])
    random = _random(8)
    return loss, [{users: random.randint(0, 24, 12), items: random.randint(0, 24, 12), stars: random.randint(1, 6, 12)} for _ in range(3)]


def policy_gradient():
    seen, done, gained = tf.placeholder(tf.float32, [None, 4]), tf.placeholder(tf.int32, [None]), tf.placeholder(tf.float32, [None])
    logits = _dense(_dense(seen, 10, 'one', tf.tanh), 3, 'actions')
    chosen = tf.reduce_sum(tf.one_hot(done, 3) * tf.nn.log_softmax(logits), 1)
    value = tf.squeeze(_dense(_dense(seen, 10, 'value', tf.tanh), 1, 'worth'), 1)
    surprise = tf.exp(tf.nn.log_softmax(logits)) * tf.nn.log_softmax(logits)
    loss = (-tf.reduce_mean(chosen * tf.stop_gradient(gained - value)) + 0.5 * tf.reduce_mean(tf.square(gained - value))
            + 0.01 * tf.reduce_mean(tf.reduce_sum(surprise, 1)))
    random = _random(1)
    rewards = [np.array([sum(0.9 ** (j - i) for j in range(i, 8)) for i in range(8)], np.float32) + random.rand(8) for _ in range(2)]
    return loss, [{seen: random.randn(8, 4), done: random.randint(0, 3, 8), gained: one} for one in rewards]


MODELS = [vgg16, resnet50, inception, mobilenet_v2, lstm_text, gru_text, seq2seq, transformer, wide_and_deep, deep_fm, din, autoencoder,
          vae, gan, word2vec, matrix_factorisation, policy_gradient]

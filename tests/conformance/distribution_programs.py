# SPDX-License-Identifier: Apache-2.0
"""Training graphs for one device as people write them, for distribution_test.py: each gives (loss, train op[, more to fetch])."""
import keras
import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).uniform(-.5, .5, shape).astype(np.float32)


def weights(name, *shape):
    return tf1.get_variable(name, initializer=numbers(*shape, seed=len(name) + sum(shape)))


def dense(x, name, size, activation=None):
    y = tf.matmul(x, weights(name + '_w', int(x.shape[1]), size)) + weights(name + '_b', size)
    return activation(y) if activation else y


def images():
    return tf1.placeholder(tf.float32, [None, 8, 8, 2], 'images')


def tokens():
    return tf1.placeholder(tf.float32, [None, 5, 8], 'tokens')


def series():
    return tf1.placeholder(tf.float32, [None, 4, 6], 'series')


def rows(size=10):
    return tf1.placeholder(tf.float32, [None, size], 'x')


def labels():
    return tf1.placeholder(tf.int32, [None], 'labels')


def cross_entropy(logits, y):
    return tf.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def descend(loss, rate=.2):
    return loss, tf1.train.GradientDescentOptimizer(rate).minimize(loss)


def attention():
    x = tokens()
    def heads(name):
        return tf.reshape(tf.matmul(tf.reshape(x, [-1, 8]), weights(name, 8, 8)), [-1, 5, 8])
    scores = tf.nn.softmax(tf.matmul(heads('query'), heads('key'), transpose_b=True) / 3)
    mixed = tf.reduce_mean(tf.matmul(scores, heads('value')), 1)
    loss = cross_entropy(dense(mixed, 'last', 4), labels())
    return loss, tf1.train.AdamOptimizer(.01).minimize(loss)


def layer_norm(x, name):
    mean, variance = tf.nn.moments(x, [-1], keepdims=True)
    return (x - mean) * tf1.rsqrt(variance + 1e-5) * weights(name + '_g', 8) + weights(name + '_s', 8)


def transformer():
    """Two heads, sizes by tf.shape, positions, layer norm before, a causal mask, a feed-forward part with GELU."""
    x = tokens()
    size = tf.shape(x)
    x = x + weights('positions', 5, 8)
    y = layer_norm(x, 'first')
    def heads(name):
        z = tf.tensordot(y, weights(name, 8, 8), 1)
        return tf.transpose(tf.reshape(z, tf.stack([size[0], size[1], 2, 4])), [0, 2, 1, 3])
    scores = tf.matmul(heads('query'), heads('key'), transpose_b=True) * .5
    mask = tf.linalg.band_part(tf.ones([5, 5]), -1, 0)
    scores = tf.nn.softmax(scores * mask - 1e4 * (1 - mask))
    mixed = tf.reshape(tf.transpose(tf.matmul(scores, heads('value')), [0, 2, 1, 3]), tf.stack([-1, size[1], 8]))
    x = x + tf.tensordot(mixed, weights('out', 8, 8), 1)
    x = x + tf.tensordot(tf.nn.gelu(tf.tensordot(layer_norm(x, 'second'), weights('up', 8, 16), 1)), weights('down', 16, 8), 1)
    loss = cross_entropy(dense(tf.reshape(layer_norm(x, 'third'), [-1, 40]), 'last', 4), labels())
    return loss, tf1.train.AdamOptimizer(.01).minimize(loss)


def attention_by_einsum():
    x = tokens()
    def heads(name):
        return tf.einsum('btd,dhe->bthe', x, weights(name, 8, 2, 4))
    scores = tf.nn.softmax(tf.einsum('bthe,bshe->bhts', heads('query'), heads('key')))
    mixed = tf.einsum('bhts,bshe->bthe', scores, heads('value'))
    return descend(cross_entropy(dense(tf.reshape(tf.einsum('bthe,hed->btd', mixed, weights('out', 2, 4, 8)), [-1, 40]), 'last', 4), labels()))


def attention_of_keras():
    x = tokens()
    y = tf.keras.layers.MultiHeadAttention(2, 4, kernel_initializer='ones')(x, x)
    y = tf.keras.layers.LayerNormalization()(y * weights('scale', 5, 8) + x)
    return descend(cross_entropy(dense(tf.reshape(y, [-1, 40]), 'last', 4), labels()))


def language_model():
    """Every token's next one, with an embedding that is also the last layer."""
    ids = tf1.placeholder(tf.int32, [None, 3], 'ids')
    table = weights('table', 20, 8)
    words = tf.nn.embedding_lookup(table, ids)
    hidden = tf.tanh(tf.tensordot(words, weights('hidden', 8, 8), 1))
    logits = tf.tensordot(hidden, table, [[2], [1]])
    wanted = tf.concat([ids[:, 1:], ids[:, :1]], 1)
    return descend(tf.reduce_mean(tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=wanted, logits=logits)))


def moments():
    """Batch normalization by hand."""
    x = dense(rows(), 'one', 16)
    mean, variance = tf.nn.moments(x, [0])
    x = tf.nn.relu(tf.nn.batch_normalization(x, mean, variance, weights('beta', 16), weights('gamma', 16), 1e-3))
    return descend(cross_entropy(dense(x, 'two', 4), labels()))


def fused_batch_norm():
    x, _, _ = tf1.nn.fused_batch_norm(tf.nn.conv2d(images(), weights('c1', 3, 3, 2, 4), 1, 'SAME'), weights('scale', 4), weights('shift', 4))
    return descend(cross_entropy(dense(tf.reduce_mean(tf.nn.relu(x), [1, 2]), 'last', 4), labels()))


def batch_norm_with_running_statistics():
    """Two layers of tf.layers, whose running means are updated beside the training."""
    x = tf1.nn.relu(tf1.layers.batch_normalization(tf.nn.conv2d(images(), weights('c1', 3, 3, 2, 4), 1, 'SAME'), training=True))
    x = tf1.layers.batch_normalization(tf.nn.conv2d(x, weights('c2', 3, 3, 4, 4), 2, 'SAME'), training=True, name='second')
    loss = cross_entropy(dense(tf.reduce_mean(tf.nn.relu(x), [1, 2]), 'last', 4), labels())
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        return loss, tf1.train.MomentumOptimizer(.1, .9).minimize(loss)


def batch_norm_by_placeholder():
    """Whether it trains is fed."""
    training = tf1.placeholder_with_default(True, [], 'training')
    x = tf1.layers.batch_normalization(tf.nn.conv2d(images(), weights('c1', 3, 3, 2, 4), 1, 'SAME'), training=training)
    loss = cross_entropy(dense(tf.reduce_mean(tf.nn.relu(x), [1, 2]), 'last', 4), labels())
    with tf.control_dependencies(tf1.get_collection(tf1.GraphKeys.UPDATE_OPS)):
        return loss, tf1.train.GradientDescentOptimizer(.2).minimize(loss)


def residual_net():
    """Projections, batch norm before and after, a global mean, decay of weights."""
    x = tf.nn.conv2d(images(), weights('stem', 3, 3, 2, 4), 1, 'SAME')
    for i in range(2):
        y = x
        for part in 'ab':
            name = 'block%d%s' % (i, part)
            y, _, _ = tf1.nn.fused_batch_norm(y, weights(name + 'scale', 4) + 1, weights(name + 'shift', 4))
            y = tf.nn.conv2d(tf.nn.relu(y), weights(name, 3, 3, 4, 4), 1, 'SAME')
        x = x + y
    loss = cross_entropy(dense(tf.reduce_mean(x, [1, 2]), 'last', 4), labels())
    loss += 1e-3 * tf.add_n([tf.nn.l2_loss(v) for v in tf1.trainable_variables()])
    return loss, tf1.train.MomentumOptimizer(.05, .9).minimize(loss)


def dropout():
    x = tf1.nn.dropout(dense(rows(), 'one', 16, tf.nn.relu), rate=.5, seed=3)
    x = tf1.nn.dropout(dense(x, 'two', 16, tf.nn.relu), rate=.2, seed=4)
    return descend(cross_entropy(dense(x, 'three', 4), labels()))


def metrics():
    """Running accuracy, mean and precision beside the training."""
    y = labels()
    logits = dense(rows(), 'one', 4)
    loss = cross_entropy(logits, y)
    predictions = tf.argmax(logits, 1, output_type=tf.int32)
    _, accuracy = tf1.metrics.accuracy(y, predictions)
    _, mean = tf1.metrics.mean(tf.reduce_max(logits, 1))
    _, precision = tf1.metrics.precision(y > 1, predictions > 1)
    return loss, tf1.train.GradientDescentOptimizer(.5).minimize(loss), [accuracy, mean, precision]


def deep_fm():
    """Tables of several fields, their pairwise products, and a perceptron."""
    ids = tf1.placeholder(tf.int32, [None, 3], 'ids')
    y = tf1.placeholder(tf.float32, [None], 'y')
    fields = [tf.nn.embedding_lookup(weights('table%d' % i, 20, 4), ids[:, i]) for i in range(3)]
    first = tf.add_n([tf.nn.embedding_lookup(weights('wide%d' % i, 20, 1), ids[:, i]) for i in range(3)])
    stacked = tf.stack(fields, 1)
    second = .5 * tf.reduce_sum(tf.square(tf.reduce_sum(stacked, 1)) - tf.reduce_sum(tf.square(stacked), 1), 1, keepdims=True)
    deep = dense(dense(tf.concat(fields, 1), 'one', 8, tf.nn.relu), 'two', 1)
    logits = tf.squeeze(first + second + deep, [1])
    loss = tf.reduce_mean(tf.nn.sigmoid_cross_entropy_with_logits(labels=y, logits=logits))
    return loss, tf1.train.AdagradOptimizer(.1).minimize(loss)


def loop_over_time():
    """A cell of one's own in a while loop, functional or in version-1 form, and its gradient."""
    x, cell = series(), weights('cell', 13, 7)
    by_time = tf.transpose(x, [1, 0, 2])
    def body(t, state):
        return t + 1, tf.tanh(tf.matmul(tf.concat([by_time[t], state], 1), cell))
    _, state = tf.while_loop(lambda t, _: t < 4, body, (0, tf.zeros([tf.shape(x)[0], 7])))
    return descend(cross_entropy(dense(state, 'last', 4), labels()))


def loop_with_outputs():
    """As dynamic_rnn writes it: arrays of inputs and outputs."""
    x, cell = series(), weights('cell', 13, 7)
    inputs = tf.TensorArray(tf.float32, 4, element_shape=[None, 6]).unstack(tf.transpose(x, [1, 0, 2]))
    outputs = tf.TensorArray(tf.float32, 4, element_shape=[None, 7])
    def body(t, state, outputs):
        state = tf.tanh(tf.matmul(tf.concat([inputs.read(t), state], 1), cell))
        return t + 1, state, outputs.write(t, state)
    _, _, outputs = tf.while_loop(lambda t, *_: t < 4, body, (0, tf.zeros([tf.shape(x)[0], 7]), outputs))
    all_states = tf.transpose(outputs.stack(), [1, 0, 2])
    return descend(cross_entropy(dense(tf.reshape(all_states, [-1, 28]), 'last', 4), labels()))


def lstm_of_keras():
    y = tf.keras.layers.LSTM(7, kernel_initializer=tf.keras.initializers.Constant(.1), recurrent_initializer=tf.keras.initializers.Constant(.2))(series())
    return descend(cross_entropy(dense(y, 'last', 4), labels()))


def gru_of_keras():
    y = tf.keras.layers.GRU(6, kernel_initializer=tf.keras.initializers.Constant(.1), recurrent_initializer=tf.keras.initializers.Constant(.2))(series())
    return descend(cross_entropy(dense(y, 'last', 4), labels()))


def weighted_rows():
    """tf.losses checks at run time that weights broadcast, since the batch's size is open."""
    loss = tf1.losses.sparse_softmax_cross_entropy(labels(), dense(rows(), 'one', 4), weights=tf1.placeholder(tf.float32, [None], 'y'))
    return descend(loss)


def channels_to_pixels():
    x = images()
    y = tf.nn.depth_to_space(tf.nn.conv2d(x, weights('up', 3, 3, 2, 8), 1, 'SAME'), 2)
    return descend(tf.reduce_mean(tf.abs(tf1.image.resize_bilinear(y, [8, 8]) - x)))


def called_functions():
    """Layers in functions that are called, twice over."""
    @tf.function
    def layer(x, w):
        return tf.nn.relu(tf.matmul(x, w))
    @tf.function
    def net(x, one, two):
        return layer(layer(x, one), two)
    y = net(rows(), weights('one', 10, 8), weights('two', 8, 8))
    loss = cross_entropy(dense(y, 'last', 4), labels())
    optimizer = tf1.train.GradientDescentOptimizer(.2)
    gradients = optimizer.compute_gradients(loss)
    # The functions' gradients read their variables anew: in TensorFlow also after an update, where nothing keeps that back.
    with tf.control_dependencies([gradient for gradient, _ in gradients]):
        return loss, optimizer.apply_gradients(gradients)


def conditional():
    """Two losses by what is fed; rows go into both branches."""
    x, rate = rows(), tf1.placeholder(tf.float32, [], 'rate')
    y = dense(x, 'one', 8)
    y = tf.cond(rate > .5, lambda: tf.nn.relu(y), lambda: tf.tanh(y) * 2)
    return descend(cross_entropy(dense(y, 'last', 4), labels()))


def transposed_convolutions():
    """An autoencoder whose sizes come from tf.shape."""
    x = images()
    code = tf.nn.relu(tf.nn.conv2d(x, weights('down', 3, 3, 2, 4), 2, 'SAME'))
    size = tf.shape(x)
    y = tf.nn.conv2d_transpose(code, weights('up', 3, 3, 2, 4), tf.stack([size[0], 8, 8, 2]), 2)
    return descend(tf.reduce_mean(tf.square(y - x)))


def convolutions_over_time():
    y = tf.nn.relu(tf.nn.conv1d(series(), weights('c', 3, 6, 5), 1, 'SAME'))
    return descend(cross_entropy(dense(tf.reduce_max(y, 1), 'last', 4), labels()))


def two_towers():
    """Sampled with the other rows of the batch: each row is compared with each, which is no worker's."""
    a = dense(rows(), 'a', 6)
    b = dense(tf1.placeholder(tf.float32, [None, 7], 'other'), 'b', 6)
    logits = tf.matmul(a, b, transpose_b=True)
    return descend(cross_entropy(logits, tf.range(tf.shape(logits)[0])))


def contrastive():
    """Two views of each example, which are to find each other among the views of all (NT-Xent, as SimCLR has it)."""
    views = [tf.math.l2_normalize(dense(x, name, 6), 1)
             for x, name in ((rows(), 'a'), (tf1.placeholder(tf.float32, [None, 7], 'other'), 'b'))]
    both = tf.concat(views, 0)
    similarities = tf.matmul(both, both, transpose_b=True, name='similarities') / .5
    half, count = tf.shape(views[0])[0], tf.shape(both)[0]
    pairs = tf.math.floormod(tf.range(count) + half, count)
    return descend(cross_entropy(similarities - 1e9 * tf.eye(count), pairs))


def pairwise_ranking():
    """Each row's score against each other's."""
    scores, wanted = dense(rows(), 'one', 1), labels()
    better = tf.nn.relu(1 - (scores - tf.transpose(scores)))
    return descend(tf.reduce_mean(better * tf.cast(wanted[:, None] > wanted[None, :], tf.float32)))


def sampled_softmax():
    """Rows of the weights of the true classes and of some that are drawn once for all rows."""
    w, b = weights('w', 20, 6), weights('b', 20)
    true = tf.cast(tf1.placeholder(tf.int32, [None, 3], 'ids')[:, :1], tf.int64)
    drawn = tf.random.log_uniform_candidate_sampler(true, 1, 5, True, 20, seed=8)
    return descend(tf.reduce_mean(tf.nn.sampled_softmax_loss(w, b, true, dense(rows(), 'one', 6), 5, 20, sampled_values=drawn)))


def row_by_row():
    """What is done to each row, by tf.map_fn."""
    scaled = tf.map_fn(lambda row: tf.tanh(row) * 1.5, dense(rows(), 'one', 5))
    return descend(cross_entropy(dense(scaled, 'two', 4), labels()))


def sorted_rows():
    """Hard examples: the rows with the greatest losses."""
    losses = tf1.nn.sparse_softmax_cross_entropy_with_logits(labels=labels(), logits=dense(rows(), 'one', 4))
    return descend(tf.reduce_mean(tf.nn.top_k(losses, 4)[0]))


def in_frames(build):
    """With the control flow of version 1: Enter, Merge and their kin."""
    def program():
        tf1.disable_control_flow_v2()
        try:
            return build()
        finally:
            tf1.enable_control_flow_v2()
    program.__name__ = build.__name__ + '_in_frames'
    return program


def dynamic_rnn():
    """tf.nn.dynamic_rnn over sequences of different lengths, with a cell of one's own."""
    class Cell(tf1.nn.rnn_cell.RNNCell):
        state_size = output_size = 7

        def __call__(self, x, state, scope=None):
            with tf1.variable_scope('cell', reuse=tf1.AUTO_REUSE):
                w = tf1.get_variable('w', [13, 7], initializer=tf1.constant_initializer(numbers(13, 7)))
            state = tf.tanh(tf.matmul(tf.concat([x, state], 1), w))
            return state, state
    x, y = series(), labels()
    outputs, state = tf1.nn.dynamic_rnn(Cell(), x, sequence_length=y + 1, dtype=tf.float32)
    return descend(cross_entropy(dense(state + tf.reduce_sum(outputs, 1), 'last', 4), y))


PROGRAMS = [attention, transformer, attention_by_einsum, attention_of_keras, language_model, moments, fused_batch_norm,
            batch_norm_with_running_statistics, batch_norm_by_placeholder, residual_net, dropout, metrics, deep_fm,
            sorted_rows, weighted_rows, pairwise_ranking, channels_to_pixels, gru_of_keras, loop_over_time, lstm_of_keras, loop_with_outputs, in_frames(loop_over_time), in_frames(loop_with_outputs), in_frames(dynamic_rnn), in_frames(conditional),
            dynamic_rnn, called_functions, conditional, transposed_convolutions, convolutions_over_time]

# Run as they are, and why.
REFUSED = {
    two_towers: r"'MatMul_2' \(MatMul\) brings each row of the batch together with all of its rows \('add' with 'add_1'\)",
    contrastive: r"'similarities' \(MatMul\) would have to run on the whole batch, .* because of 'concat' \(ConcatV2\)",
    row_by_row: r"'map/while/\S+' \(Less\) counts the rows of the batch: its loop runs once for each of them",
    sampled_softmax: r"'sampled_softmax_loss/MatMul_1' \(MatMul\) .* because of 'LogUniformCandidateSampler'",
}

# Layers of version 1 and Keras' variables within a graph: with Keras 3 they do not come.
NEEDS_KERAS_2 = ('attention_of_keras', 'batch_norm_with_running_statistics', 'dynamic_rnn', 'dynamic_rnn_in_frames', 'batch_norm_by_placeholder',
                 'lstm_of_keras', 'gru_of_keras')
if not keras.__version__.startswith('2.'):
    PROGRAMS = [program for program in PROGRAMS if program.__name__ not in NEEDS_KERAS_2]
    REFUSED = {program: why for program, why in REFUSED.items() if program.__name__ not in NEEDS_KERAS_2}

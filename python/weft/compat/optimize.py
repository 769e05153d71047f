# SPDX-License-Identifier: Apache-2.0
"""tf.contrib.layers.optimize_loss: an optimizer with what usually stands around it."""
import tensorflow.compat.v1 as tf

OPTIMIZER_CLS_NAMES = {
    'Adagrad': tf.train.AdagradOptimizer, 'Adam': tf.train.AdamOptimizer, 'Ftrl': tf.train.FtrlOptimizer,
    'Momentum': lambda learning_rate: tf.train.MomentumOptimizer(learning_rate, momentum=0.9),
    'RMSProp': tf.train.RMSPropOptimizer, 'SGD': tf.train.GradientDescentOptimizer,
}
OPTIMIZER_SUMMARIES = ['learning_rate', 'loss', 'gradients', 'gradient_norm', 'global_gradient_norm']


def _learning_rate(learning_rate, decay, step):
    """A tensor of the rate, decayed if asked for; None when the optimizer brings its own."""
    if learning_rate is None:
        return None
    if isinstance(learning_rate, (float, int)):
        if learning_rate < 0:
            raise ValueError('Invalid learning_rate %s.' % learning_rate)
        learning_rate = tf.get_variable('learning_rate', [], trainable=False,
                                        initializer=tf.constant_initializer(learning_rate))
    elif not tf.is_tensor(learning_rate) or learning_rate.shape.ndims not in (0, None):
        raise ValueError('Learning rate should be 0d Tensor or float. Got %s of type %s' % (
            learning_rate, type(learning_rate)))
    if decay is not None:
        if step is None:
            raise ValueError('global_step is required for learning_rate_decay_fn.')
        learning_rate = decay(learning_rate, step)
    return learning_rate


def _optimizer(optimizer, learning_rate):
    if isinstance(optimizer, str):
        if learning_rate is None:
            raise ValueError('Learning rate is None, but should be specified if optimizer is string (%s).' % optimizer)
        if optimizer not in OPTIMIZER_CLS_NAMES:
            raise ValueError('Optimizer name should be one of [%s], you provided %s.' % (
                ', '.join(OPTIMIZER_CLS_NAMES), optimizer))
        return OPTIMIZER_CLS_NAMES[optimizer](learning_rate=learning_rate)
    if isinstance(optimizer, type) and issubclass(optimizer, tf.train.Optimizer):
        if learning_rate is None:
            raise ValueError('Learning rate is None, but should be specified if optimizer is class (%s).' % optimizer)
        return optimizer(learning_rate=learning_rate)
    if isinstance(optimizer, tf.train.Optimizer):
        return optimizer
    if callable(optimizer):
        made = optimizer(learning_rate) if learning_rate is not None else optimizer()
        if isinstance(made, tf.train.Optimizer):
            return made
    raise ValueError('Unrecognized optimizer: should be string, subclass of Optimizer, instance of subclass of Optimizer '
                     'or function with one argument. Got %s.' % optimizer)


def _with_noise(pairs, scale):
    """Adds normal noise of this standard deviation to each gradient, to embeddings' gradients as well."""
    def noisy(gradient):
        if isinstance(gradient, tf.IndexedSlices):
            values = gradient.values
            return tf.IndexedSlices(values + tf.truncated_normal(tf.shape(values), dtype=values.dtype) * scale,
                                    gradient.indices, gradient.dense_shape)
        return gradient + tf.truncated_normal(tf.shape(gradient), dtype=gradient.dtype) * scale
    return [(g if g is None else noisy(g), v) for g, v in pairs]


def _multiplied(pairs, multipliers):
    def factor(v):
        return next((by for key, by in multipliers.items() if key is v or isinstance(key, str) and key in (
            v.name, v.op.name)), None)

    def times(gradient, by):
        by = tf.cast(by, gradient.dtype)
        if isinstance(gradient, tf.IndexedSlices):
            return tf.IndexedSlices(gradient.values * by, gradient.indices, gradient.dense_shape)
        return gradient * by
    return [(g if g is None or factor(v) is None else times(g, factor(v)), v) for g, v in pairs]


def _clipped(pairs, how):
    if how is None:
        return pairs
    if callable(how):
        return how(pairs)
    if isinstance(how, (float, int)):
        gradients, variables = zip(*pairs)
        return list(zip(tf.clip_by_global_norm(gradients, how)[0], variables))
    raise ValueError('Unknown type %s for clip_gradients' % type(how))


def _summarize(pairs, wanted, suffix=''):
    for gradient, variable in pairs:
        if gradient is None:
            continue
        values = gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
        name = variable.name.replace(':', '_')
        if 'gradients' in wanted:
            tf.summary.histogram('gradients%s/%s' % (suffix, name), values)
        if 'gradient_norm' in wanted:
            tf.summary.scalar('gradient_norm%s/%s' % (suffix, name), tf.global_norm([values]))


def optimize_loss(loss, global_step, learning_rate, optimizer, gradient_noise_scale=None, gradient_multipliers=None,
                  clip_gradients=None, learning_rate_decay_fn=None, update_ops=None, variables=None, name=None,
                  summaries=None, colocate_gradients_with_ops=False, increment_global_step=True):
    """The loss as it was before this step's update; to fetch it is to make the update.

    update_ops (default: the collection UPDATE_OPS) run before the loss is taken. summaries is a list of
    OPTIMIZER_SUMMARIES, by default the learning rate, the loss and the norm of all gradients.
    """
    loss = tf.convert_to_tensor(loss)
    if loss.shape.ndims not in (0, None):
        raise ValueError('loss should be a scalar, got shape %s' % loss.shape)
    step = tf.train.get_global_step() if global_step is None else global_step
    wanted = ['learning_rate', 'loss', 'global_gradient_norm'] if summaries is None else summaries
    for summary in wanted:
        if summary not in OPTIMIZER_SUMMARIES:
            raise ValueError('Summaries should be one of [%s], you provided %s.' % (', '.join(OPTIMIZER_SUMMARIES), summary))
    with tf.variable_scope(name, 'OptimizeLoss', [loss, step]):
        update_ops = set(tf.get_collection(tf.GraphKeys.UPDATE_OPS) if update_ops is None else update_ops)
        if update_ops:
            with tf.control_dependencies(list(update_ops)):
                loss = tf.identity(loss)
        rate = _learning_rate(learning_rate, learning_rate_decay_fn, step)
        if rate is not None and 'learning_rate' in wanted:
            tf.summary.scalar('learning_rate', rate)
        optimizer = _optimizer(optimizer, rate)
        pairs = optimizer.compute_gradients(loss, tf.trainable_variables() if variables is None else variables,
                                            colocate_gradients_with_ops=colocate_gradients_with_ops)
        if gradient_noise_scale is not None:
            pairs = _with_noise(pairs, gradient_noise_scale)
        if gradient_multipliers is not None:
            pairs = _multiplied(pairs, gradient_multipliers)
        if 'global_gradient_norm' in wanted or 'gradient_norm' in wanted:
            tf.summary.scalar('global_norm/gradient_norm', tf.global_norm([g for g, _ in pairs]))
        unclipped = pairs
        pairs = _clipped(pairs, clip_gradients)
        _summarize(pairs, wanted)
        if clip_gradients is not None and pairs is not unclipped and 'global_gradient_norm' in wanted:
            tf.summary.scalar('global_norm/clipped_gradient_norm', tf.global_norm([g for g, _ in pairs]))
        if 'loss' in wanted:
            tf.summary.scalar('loss', loss)
        # The update waits for the loss, so that what is returned is the loss before it also where they share no product.
        with tf.control_dependencies([loss]):
            update = optimizer.apply_gradients(pairs, global_step=step if increment_global_step else None, name='train')
        with tf.control_dependencies([update]):
            return tf.identity(loss, name='control_dependency')

# SPDX-License-Identifier: Apache-2.0
"""Rows of several calls, put together and given back. That calls of several steps meet: user_programs_test.py."""
import numpy as np
import tensorflow as tf
import tensorflow.compat.v1 as tf1

from cases import Step, script, values

LIMITS = dict(num_batch_threads=1, max_batch_size=4, batch_timeout_micros=1000)


@script('Batch', 'Unbatch', 'UnbatchGrad')
def alone(b, types):
    """One call is a batch of its own; its number differs each time."""
    x, y = values('float32', [3, 2]), np.array([b'a', b'', b'c'], object)
    (rows, texts), index, number = b.op('Batch', [x, y], grad_timeout_micros=1000, shared_name=b.name('batch'), **LIMITS)
    back = b.op('Unbatch', rows, index, number, timeout_micros=1000000, shared_name=b.name('unbatch'))
    slope = b.op('UnbatchGrad', rows, index, back * 2.0, number, shared_name=b.name('slope'))
    same = [tf.reduce_all(tf.equal(index[0, 0], number)), index[:, 1:]]

    def wrong(*inputs, **attrs):
        return b.op('Batch', list(inputs), grad_timeout_micros=1000, shared_name=b.name('wrong%s' % len(attrs)), **{**LIMITS, **attrs})[2]
    short = b.hidden(values('float32', [2, 1]))
    return [Step(rows, texts, back, slope, *same), Step(wrong(b.hidden(x), short), error=True), Step(wrong(b.hidden(np.float32(1))), error=True),
            Step(wrong(b.hidden(values('float32', [5, 1]))), error=True), Step(wrong(short, allowed_batch_sizes=[2, 1, 4]), error=True),
            Step(wrong(short, allowed_batch_sizes=[1, 2]), error=True),
            Step(b.op('Unbatch', b.hidden(x), b.hidden(np.zeros([0, 3], np.int64)), b.hidden(np.int64(3)), timeout_micros=1000,
                      shared_name=b.name('late')), error=True),
            Step(b.op('Unbatch', b.hidden(x), b.hidden(np.zeros([4, 3], np.int64)), b.hidden(np.int64(3)), timeout_micros=1000,
                      shared_name=b.name('many')), error=True)]


@script('BatchFunction')
def function(b, types):
    x, offset = tf1.placeholder(tf.float32, [None, 2]), tf.constant([0.5, -1.0])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([2], tf.float32)])
    def padded(rows, more):
        return rows * 2.0 + more, tf.fill([tf.shape(rows)[0]], tf.shape(rows)[0])

    @tf.function(autograph=False, input_signature=[tf.TensorSpec([None, 2], tf.float32), tf.TensorSpec([2], tf.float32)])
    def total(rows, more):
        return tf.reduce_sum(rows, keepdims=True), more[:1]

    def call(f, **attrs):
        return b.op('BatchFunction', [x], [offset], Tout=['float32', f.structured_outputs[1].dtype.name], f=f,
                    shared_name=b.name('f%d' % len(attrs)), **{**LIMITS, **attrs})
    f, wrong = padded.get_concrete_function(), total.get_concrete_function()
    plain, sized, split = call(f), call(f, allowed_batch_sizes=[1, 3, 4]), call(
        f, allowed_batch_sizes=[1, 2], enable_large_batch_splitting=True, batching_queue='q')
    fed = {x: values('float32', [2, 2])}
    return [Step(*plain, feeds=fed), Step(*sized, feeds=fed), Step(*split, feeds={x: values('float32', [4, 2])}),
            Step(*split, feeds={x: values('float32', [3, 2])}), Step(*plain, feeds={x: values('float32', [5, 2])}, error=True),
            Step(*call(wrong, max_enqueued_batches=9), feeds=fed, error='any')]

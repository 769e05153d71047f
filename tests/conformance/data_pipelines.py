# SPDX-License-Identifier: Apache-2.0
"""Pipelines that data_test.py runs on weft and on TensorFlow: each a function of a folder that gives a dataset."""
import gzip
import os
import zlib

import numpy as np
import tensorflow as tf

tf1 = tf.compat.v1
D = tf1.data.Dataset
X = tf.data.experimental
PIPELINES = {}
NOT_ONE_SHOT = set()  # those whose graph a function cannot hold


def pipeline(build):
    PIPELINES[build.__name__] = build
    return build


def write_files(folder):
    """What the pipelines of files read: it lies beside the folder of each."""
    for kind in 'NONE', 'GZIP', 'ZLIB':
        for part in range(2):
            path = os.path.join(folder, 'records-%s-%d' % (kind, part))
            with tf.io.TFRecordWriter(path, None if kind == 'NONE' else kind) as out:
                for i in range(5):
                    out.write(b'record %d of %d' % (i, part))
    text = b'first\nsecond\r\n\nfourth\nwithout end'
    for name, data in ('text', text), ('text.gz', gzip.compress(text)), ('text.z', zlib.compress(text)):
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(data)
    with open(os.path.join(folder, 'fixed'), 'wb') as out:
        out.write(b'head' + b''.join(b'%03d' % i for i in range(7)) + b'tt')


def beside(folder, *names):
    return [os.path.join(os.path.dirname(folder), name) for name in names]


def numbers(n=10):
    return D.range(n)


PIPELINES.update({
    'range': lambda f: D.range(5),
    'range_of_steps': lambda f: D.range(20, 3, -4),
    'range_of_nothing': lambda f: D.range(3, 3),
    'tensors': lambda f: D.from_tensors((tf.constant([1, 2]), {'a': tf.constant('text')})),
    'slices': lambda f: D.from_tensor_slices((np.arange(6).reshape(3, 2), np.array([b'a', b'b', b'c']))),
    'slices_of_sparse': lambda f: D.from_tensor_slices(tf.SparseTensor([[0, 0], [1, 1], [3, 0]], [1., 2., 3.], [4, 2])),
    'map': lambda f: numbers().map(lambda x: (x * 2, tf.strings.as_string(x))),
    'map_of_control_flow': lambda f: numbers().map(lambda x: tf.cond(x > 4, lambda: x * 10, lambda: -x)),
    'map_of_loop': lambda f: numbers(5).map(lambda x: tf.while_loop(lambda i, s: i < x, lambda i, s: (i + 1, s + i), [tf.constant(0, tf.int64)] * 2)[1]),
    'map_in_parallel': lambda f: numbers(30).map(lambda x: x * x, num_parallel_calls=3),
    'map_as_many_as_seem_good': lambda f: numbers(30).map(lambda x: x + 1, num_parallel_calls=tf.data.AUTOTUNE),
    'map_that_fails': lambda f: numbers().map(lambda x: tf1.debugging.check_numerics(tf.math.log(3.0 - tf.cast(x, tf.float32)), 'no')),
    'map_that_fails_in_parallel': lambda f: numbers().map(
        lambda x: tf1.debugging.check_numerics(tf.math.log(3.0 - tf.cast(x, tf.float32)), 'no'), num_parallel_calls=4),
    'errors_ignored': lambda f: numbers().map(
        lambda x: tf1.debugging.check_numerics(1.0 / tf.cast(x % 3, tf.float32), 'no')).apply(X.ignore_errors()),
    'map_with_random_numbers': lambda f: numbers(5).map(lambda x: tf1.random_uniform([2], seed=4)).repeat(2),
    'filter': lambda f: numbers().filter(lambda x: x % 3 > 0),
    'take_while': lambda f: numbers().apply(X.take_while(lambda x: x < 4)),
    'batch': lambda f: numbers().batch(4),
    'batch_without_remainder': lambda f: numbers().batch(4, drop_remainder=True),
    'batch_of_strings': lambda f: D.from_tensor_slices([b'a', b'bb', b'ccc']).batch(2),
    'batch_of_unequal_shapes': lambda f: numbers().map(lambda x: tf.fill([x % 3], x)).batch(2),
    'map_and_batch': lambda f: numbers().apply(X.map_and_batch(lambda x: (x, x * 2), 3, num_parallel_calls=2)),
    'padded_batch': lambda f: numbers().map(lambda x: tf.fill([x % 4], x)).padded_batch(4, [None]),
    'padded_batch_to_a_size': lambda f: numbers().map(lambda x: (tf.fill([x % 4, 2], x), x)).padded_batch(
        3, ([5, 3], []), (tf.constant(-1, tf.int64), tf.constant(0, tf.int64)), drop_remainder=True),
    'padded_batch_that_is_too_small': lambda f: numbers().map(lambda x: tf.fill([x], x)).padded_batch(4, [2]),
    'shuffle': lambda f: numbers(30).shuffle(8, seed=5),
    'shuffle_of_all': lambda f: numbers(12).shuffle(100, seed=11),
    'shuffle_by_the_graphs_seed': lambda f: numbers(20).shuffle(20, seed=2).map(lambda x: x),
    'shuffle_in_each_epoch': lambda f: numbers(7).shuffle(4, seed=3).repeat(4),
    'shuffle_alike_in_each_epoch': lambda f: numbers(7).shuffle(4, seed=3, reshuffle_each_iteration=False).repeat(4),
    'shuffle_and_repeat': lambda f: numbers(9).apply(X.shuffle_and_repeat(5, 3, seed=8)),
    'shuffle_and_repeat_for_ever': lambda f: numbers(4).apply(X.shuffle_and_repeat(6, seed=8)),
    'repeat': lambda f: numbers(3).repeat(4),
    'repeat_for_ever': lambda f: numbers(3).repeat(),
    'repeat_of_nothing': lambda f: numbers(0).repeat(),
    'repeat_no_times': lambda f: numbers(3).repeat(0),
    'take_and_skip': lambda f: numbers(20).skip(3).take(6),
    'take_all': lambda f: numbers(3).take(-1),
    'skip_all': lambda f: numbers(3).skip(-1),
    'shard': lambda f: numbers(11).shard(3, 1),
    'zip': lambda f: D.zip((numbers(5), D.from_tensor_slices(['a', 'b', 'c']), numbers(9).batch(2))),
    'concatenate': lambda f: numbers(3).concatenate(D.range(10, 12)),
    'prefetch': lambda f: numbers(30).map(lambda x: x * 3).prefetch(4),
    'flat_map': lambda f: numbers(5).flat_map(lambda x: D.range(x).map(lambda y: x * 10 + y)),
    'interleave': lambda f: numbers(6).interleave(lambda x: D.from_tensors(x).repeat(x), cycle_length=3, block_length=2),
    'interleave_in_parallel': lambda f: numbers(7).interleave(
        lambda x: D.range(x).map(lambda y: x * 10 + y), cycle_length=3, block_length=2, num_parallel_calls=3),
    'interleave_as_before': lambda f: numbers(7).apply(X.parallel_interleave(
        lambda x: D.from_tensors(x).repeat(3), cycle_length=2, block_length=2)),
    'cache': lambda f: numbers(5).map(lambda x: tf1.random_uniform([], seed=1)).cache().repeat(3),
    'cache_in_files': lambda f: numbers(5).map(lambda x: (x, tf.strings.as_string(x))).cache(os.path.join(f, 'cache')).repeat(2),
    'window': lambda f: numbers(7).window(3, shift=2, drop_remainder=False).flat_map(lambda w: w.batch(3)),
    'window_of_strides': lambda f: numbers(14).window(3, 4, 2, True).flat_map(lambda w: w.batch(3)),
    'window_of_pairs': lambda f: D.zip((numbers(5), numbers(5))).window(2).flat_map(lambda a, b: D.zip((a.batch(2), b.batch(2)))),
    'unbatch': lambda f: numbers(7).batch(3).map(lambda x: (x, x * 2)).apply(X.unbatch()),
    'rebatch': lambda f: numbers(10).batch(4).rebatch(3),
    'scan': lambda f: numbers(6).apply(X.scan(tf.constant(1, tf.int64), lambda s, x: (s + x, s * 100 + x))),
    'group_by_window': lambda f: numbers(15).apply(X.group_by_window(lambda x: x % 3, lambda k, w: w.batch(4), 4)),
    'group_by_reducer': lambda f: numbers(15).apply(X.group_by_reducer(
        lambda x: x % 4, X.Reducer(lambda k: (k, tf.constant(0, tf.int64)), lambda s, x: (s[0], s[1] + x), lambda k, s: (k, s)))),
    'bucket_by_length': lambda f: numbers(12).map(lambda x: tf.fill([x % 5], x)).apply(X.bucket_by_sequence_length(
        lambda x: tf.shape(x)[0], [2, 4], [2, 3, 2])),
    'unique': lambda f: D.from_tensor_slices([3, 1, 3, 2, 1]).apply(X.unique()),
    'random': lambda f: X.RandomDataset(seed=3).take(6),
    'chosen': lambda f: X.choose_from_datasets([numbers(3), D.range(10, 15)], D.from_tensor_slices(np.array([1, 0, 1, 1, 0, 0, 0, 1]))),
    'enumerated': lambda f: D.from_tensor_slices(['a', 'b']).apply(X.enumerate_dataset(5)),
    'cardinality_asserted': lambda f: numbers(4).filter(lambda x: x >= 0).apply(X.assert_cardinality(4)),
    'cardinality_asserted_wrong': lambda f: numbers(4).filter(lambda x: x >= 0).apply(X.assert_cardinality(3)),
    'records': lambda f: tf1.data.TFRecordDataset(beside(f, 'records-NONE-0', 'records-NONE-1')),
    'records_gzip': lambda f: tf1.data.TFRecordDataset(beside(f, 'records-GZIP-0', 'records-GZIP-1'), 'GZIP'),
    'records_zlib': lambda f: tf1.data.TFRecordDataset(beside(f, 'records-ZLIB-0'), 'ZLIB'),
    'records_in_parallel': lambda f: tf1.data.TFRecordDataset(beside(f, 'records-NONE-0', 'records-NONE-1'), num_parallel_reads=2),
    'records_that_are_not_there': lambda f: tf1.data.TFRecordDataset(beside(f, 'records-NONE-0', 'missing')),
    'records_of_other_bytes': lambda f: tf1.data.TFRecordDataset(beside(f, 'text')),
    'lines': lambda f: tf1.data.TextLineDataset(beside(f, 'text')).skip(1),
    'lines_gzip': lambda f: tf1.data.TextLineDataset(beside(f, 'text.gz', 'text.gz'), 'GZIP'),
    'fixed_length': lambda f: tf1.data.FixedLengthRecordDataset(beside(f, 'fixed'), 3, 4, 2),
    'fixed_length_with_rest': lambda f: tf1.data.FixedLengthRecordDataset(beside(f, 'fixed'), 4, 4, 0),
    'files': lambda f: D.list_files(os.path.join(os.path.dirname(f), 'records-*-0'), shuffle=False).map(
        lambda x: tf.strings.regex_replace(x, '.*/', '')),
    'sparse_elements': lambda f: numbers(5).map(lambda x: tf.SparseTensor([[x]], [x * 2], [5])).batch(2),
    'ragged_elements': lambda f: D.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3]])).batch(2),
})


@pipeline
def reduced(folder):
    total = numbers(10).reduce(tf.constant(0, tf.int64), lambda s, x: s + x)
    return D.from_tensors(total)


@pipeline
def reduced_inside(folder):
    return numbers(4).map(lambda x: D.range(x).reduce(tf.constant(0, tf.int64), lambda s, y: s + y))


@pipeline
def single_element(folder):
    return D.from_tensors(X.get_single_element(numbers(9).batch(9)))


@pipeline
def looked_up(folder):
    table = tf1.lookup.StaticHashTable(tf1.lookup.KeyValueTensorInitializer(
        tf.constant([0, 2], tf.int64), tf.constant(['zero', 'two'])), 'none')
    return numbers(4).map(table.lookup)


NOT_ONE_SHOT |= {'looked_up', 'reduced', 'single_element'}


@pipeline
def options_set(folder):
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = True
    options.threading.private_threadpool_size = 2
    return numbers(5).map(lambda x: x + 1).with_options(options)

# SPDX-License-Identifier: Apache-2.0
"""Pipelines that data_test.py runs on weft and on TensorFlow: each a function of a folder that gives a dataset."""
import gzip
import os
import sqlite3
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
    write_tables(folder)
    with open(os.path.join(folder, 'fixed'), 'wb') as out:
        out.write(b'head' + b''.join(b'%03d' % i for i in range(7)) + b'tt')


def write_tables(folder):
    rows = b'id,score,name\r\n1,2.5,"a, ""b"""\n2,,c\r\n3,n/a,"two\nlines"\n'
    for name, data in ('rows.csv', rows), ('bad.csv', b'1,2\n3\n4,x\n5,"6"7\n8,9,10\n11,12'), ('rows.csv.gz', gzip.compress(rows)):
        with open(os.path.join(folder, name), 'wb') as out:
            out.write(data)
    base = sqlite3.connect(os.path.join(folder, 'base.sqlite'))
    base.execute('create table people (name text, age integer, height real, photo blob)')
    base.executemany('insert into people values (?, ?, ?, ?)',
                     [('Ada', 36, 1.65, b'\x00\x01'), ('Bo', -5, None, b''), ('Cy', 300, 2.0, None)])
    base.commit()
    base.close()


def beside(folder, *names):
    return [os.path.join(os.path.dirname(folder), name) for name in names]


def numbers(n=10):
    return D.range(n)


def example(i):
    features = {'x': tf.train.Feature(float_list=tf.train.FloatList(value=[i, i + 0.5])),
                'n': tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 3))),
                'm': tf.train.Feature(int64_list=tf.train.Int64List(value=range(i % 4))),
                's': tf.train.Feature(bytes_list=tf.train.BytesList(value=[b'v%d' % i] * (i % 2)))}
    return tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString()


FEATURES = {'x': tf.io.FixedLenFeature([2], tf.float32), 'n': tf.io.VarLenFeature(tf.int64),
            's': tf.io.FixedLenFeature([], tf.string, default_value='none'), 'r': tf.io.RaggedFeature(tf.int64, value_key='m')}


def examples(batch):
    return D.from_tensor_slices([example(i) for i in range(7)]).batch(batch)


def rows(f, name, kinds, **options):
    return X.CsvDataset(beside(f, name), kinds, **options)


def sql(f, query, *kinds):
    return X.SqlDataset('sqlite', beside(f, 'base.sqlite')[0], query, kinds)


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
    'rows': lambda f: rows(f, 'rows.csv', [tf.int64, tf.constant([-1.0], tf.float64), tf.string], header=True, na_value='n/a'),
    'rows_gzip': lambda f: rows(f, 'rows.csv.gz', [tf.constant([0], tf.int32), tf.string], header=True, select_cols=[0, 2],
                                compression_type='GZIP'),
    'rows_without_quotes': lambda f: rows(f, 'bad.csv', [tf.string, tf.string], use_quote_delim=False).apply(X.ignore_errors()),
    'rows_of_which_some_are_bad': lambda f: rows(f, 'bad.csv', [tf.int32, tf.int32]).apply(X.ignore_errors()),
    'rows_that_are_bad': lambda f: rows(f, 'bad.csv', [tf.int32, tf.int32]),
    'rows_but_some_columns': lambda f: rows(f, 'rows.csv', [tf.string], exclude_cols=[0, 1]),
    'query': lambda f: sql(f, 'select name, age, height, photo from people order by name', tf.string, tf.int32, tf.float64, tf.string),
    'query_of_small_numbers': lambda f: sql(f, 'select age, age, age from people order by age', tf.uint8, tf.int16, tf.bool),
    'query_that_is_wrong': lambda f: sql(f, 'select nothing from people', tf.string),
    'query_of_other_columns': lambda f: sql(f, 'select name from people', tf.string, tf.int64),
    'parsed_examples': lambda f: examples(3).apply(X.parse_example_dataset(FEATURES)),
    'parsed_examples_in_parallel': lambda f: examples(2).apply(X.parse_example_dataset(FEATURES, num_parallel_calls=3)),
    'parsed_examples_that_are_none': lambda f: D.from_tensor_slices([[b'no example']]).apply(X.parse_example_dataset(FEATURES)),
    'parsed_examples_that_lack_a_feature': lambda f: examples(2).apply(
        X.parse_example_dataset({'y': tf.io.FixedLenFeature([2], tf.float32)})),
    'dense_to_sparse_batch': lambda f: numbers().map(lambda x: tf.fill([x % 4], x)).apply(X.dense_to_sparse_batch(4, [6])),
    'dense_to_sparse_batch_of_any_size': lambda f: numbers(7).map(lambda x: tf.fill([x % 4, 2], x)).apply(
        X.dense_to_sparse_batch(3, [None, 2])),
    'dense_to_sparse_batch_that_is_too_small': lambda f: numbers().map(lambda x: tf.fill([x], x)).apply(
        X.dense_to_sparse_batch(4, [2])),
    'snapshot': lambda f: numbers(8).map(lambda x: x * 2).snapshot(os.path.join(f, 'snapshot')).repeat(2),
    'sparse_elements': lambda f: numbers(5).map(lambda x: tf.SparseTensor([[x]], [x * 2], [5])).batch(2),
    'ragged_elements': lambda f: D.from_tensor_slices(tf.ragged.constant([[1, 2], [], [3]])).batch(2),
})


@pipeline
def a_graph_and_back(folder):
    dataset = numbers(6).map(lambda x: x * x + 1).filter(lambda x: x % 2 > 0).batch(2)
    graph = tf.raw_ops.DatasetToGraphV2(input_dataset=dataset._variant_tensor)
    return tf.data.experimental.from_variant(tf.raw_ops.DatasetFromGraph(graph_def=graph), dataset.element_spec)


def fingerprints(folder):
    def of(n):
        return tf.raw_ops.DatasetFingerprint(input_dataset=numbers(n).batch(2)._variant_tensor)
    return D.from_tensors(tf.stack([tf.equal(of(3), of(3)), tf.equal(of(3), of(4))]))


if hasattr(tf.raw_ops, 'DatasetFingerprint'):  # newer than 2.15
    pipeline(fingerprints)


if hasattr(tf.raw_ops, 'GlobalShuffleDataset'):  # newer than 2.15
    from tensorflow.python.data.experimental.ops import global_shuffle_op
    from tensorflow.python.data.ops import structured_function

    def globally(dataset, **options):
        return global_shuffle_op._global_shuffle(dataset, **options)

    def index_flat_map(dataset, of, place, count=-2):
        """`of` gives vectors; `place` says which of them, and which element of it, comes i-th."""
        of = structured_function.StructuredFunctionWrapper(of, 'index_flat_map', dataset=dataset)
        place = structured_function.StructuredFunctionWrapper(place, 'index_flat_map', input_structure=tf.TensorSpec([], tf.int64))
        spec = tf.TensorSpec([], of.output_types)
        return X.from_variant(tf.raw_ops.IndexFlatMapDataset(
            input_dataset=dataset._variant_tensor, map_func_other_args=of.function.captured_inputs, map_func=of.function,
            index_map_func_other_args=place.function.captured_inputs, index_map_func=place.function, output_cardinality=count,
            output_types=[spec.dtype], output_shapes=[spec.shape]), spec)

    def weighted_flat_map(datasets, weights):
        spec = datasets[0].element_spec
        return X.from_variant(tf.raw_ops.WeightedFlatMapDataset(
            input_datasets=[dataset._variant_tensor for dataset in datasets], weights=[tf.constant(w, tf.float64) for w in weights],
            output_types=[spec.dtype], output_shapes=[spec.shape]), spec)
    PIPELINES.update({
        'global_shuffle': lambda f: globally(tf.data.Dataset.range(30).map(lambda x: x * 2), seed=5).batch(4),
        'global_shuffle_of_a_number_that_is_not_known': lambda f: globally(numbers(30).map(lambda x: x * 2), seed=5),
        'global_shuffle_in_each_epoch': lambda f: globally(numbers(9).batch(2, drop_remainder=True), seed=3).repeat(3),
        'global_shuffle_alike_in_each_epoch': lambda f: globally(
            numbers(300).skip(3).take(200), seed=3, reshuffle_each_iteration=False).repeat(2),
        'global_shuffle_of_one': lambda f: globally(numbers(1), seed=2).repeat(2),
        'global_shuffle_of_nothing': lambda f: globally(numbers(0), seed=2),
        'global_shuffle_of_a_remainder': lambda f: globally(numbers(9).batch(2), seed=2),
        'global_shuffle_of_a_filter': lambda f: globally(numbers(9).filter(lambda x: x > 3), seed=2),
        'global_shuffle_for_ever': lambda f: globally(numbers(9).repeat(), seed=2),
        'index_flat_map': lambda f: index_flat_map(
            D.from_tensor_slices([[1, 2], [3, 4], [5, 6]]), lambda x: x * 10, lambda i: (i // 2, i % 2)),
        'index_flat_map_shuffled': lambda f: globally(index_flat_map(
            D.from_tensor_slices([[1, 2], [3, 4], [5, 6]]), lambda x: x * 10, lambda i: (i // 2, i % 2), 6), seed=6),
        'weighted_flat_map': lambda f: weighted_flat_map(
            [numbers(10), D.range(100, 120), D.range(200, 230)], [0.25, 0.25, 0.5]),
    })
    NOT_ONE_SHOT |= {name for name in PIPELINES if name.startswith('global_shuffle')} | {'index_flat_map_shuffled'}


@pipeline
def batch_sizes(folder):
    def of(dataset):
        return tf.raw_ops.ComputeBatchSize(input_dataset=dataset._variant_tensor)
    batched = numbers().batch(4)
    return D.from_tensors(tf.stack([of(batched), of(numbers()), of(batched.repeat(2).prefetch(1)), of(batched.unbatch()),
                                    of(D.zip((batched, batched)))]))


@pipeline
def a_table_of_a_dataset(folder):
    pairs = D.zip((D.from_tensor_slices(['a', 'b', 'c']), D.range(5, 8)))
    table = tf.lookup.StaticHashTable(tf.data.experimental.DatasetInitializer(pairs), -1)
    return D.from_tensor_slices(['c', 'x', 'a']).map(table.lookup)


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


NOT_ONE_SHOT |= {'a_table_of_a_dataset', 'looked_up', 'reduced', 'single_element'}


@pipeline
def options_set(folder):
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = True
    options.threading.private_threadpool_size = 2
    return numbers(5).map(lambda x: x + 1).with_options(options)

# SPDX-License-Identifier: Apache-2.0
"""The estimators that estimator_test.py compares with those of estimator_tool.cc, and their data."""
import numpy as np
import tensorflow as tf

E, F, O = tf.compat.v1.estimator, tf.feature_column, tf.compat.v1.train
CITIES = ['Aachen', 'Bonn', 'Chur', 'Delft']
EXAMPLES, BATCH = 27, 6

age = F.numeric_column('age')
size = F.numeric_column('size', shape=[2], normalizer_fn=lambda x: x * 0.5)
ages = F.bucketized_column(age, [-0.5, 0.2, 1.0])
sizes = F.bucketized_column(size, [0.0, 0.4])
city = F.categorical_column_with_vocabulary_list('city', CITIES, num_oov_buckets=2)
known_city = F.categorical_column_with_vocabulary_list('city', CITIES)
words = F.categorical_column_with_hash_bucket('words', 20)
number = F.categorical_column_with_identity('number', 6)
codes = F.categorical_column_with_hash_bucket('codes', 7, tf.int64)
levels = F.categorical_column_with_vocabulary_list('number', [3, 1, 4], dtype=tf.int64, default_value=1)
cross = F.crossed_column(['city', ages], 30)
word_cross = F.crossed_column(['words', 'city', number], 50)
weighted_words = F.weighted_categorical_column(words, 'word_weights')

DEEP = [age, size, F.embedding_column(words, 4), F.indicator_column(city)]
MANY_DEEP = [ages, sizes, F.embedding_column(words, 3, 'sqrtn'), F.embedding_column(city, 2, 'sum', max_norm=0.5),
             F.embedding_column(word_cross, 3), F.embedding_column(codes, 2), F.embedding_column(weighted_words, 2, 'sqrtn'),
             F.indicator_column(number)]
WIDE = [age, ages, known_city, words, number, cross, word_cross]

CASES = {
    'dnn_classifier': lambda c: E.DNNClassifier([8, 4], DEEP, config=c),
    'dnn_classes': lambda c: E.DNNClassifier([6], MANY_DEEP, n_classes=3, weight_column='weight', activation_fn=tf.tanh,
                                             optimizer=lambda: O.AdamOptimizer(0.01), config=c),
    'dnn_words': lambda c: E.DNNClassifier([6], DEEP, n_classes=3, label_vocabulary=['red', 'green', 'blue'], config=c,
                                           optimizer=lambda: O.MomentumOptimizer(0.05, 0.9),
                                           loss_reduction=tf.compat.v1.losses.Reduction.SUM_OVER_BATCH_SIZE),
    'dnn_regressor': lambda c: E.DNNRegressor([8, 4], DEEP, label_dimension=2, optimizer=lambda: O.RMSPropOptimizer(0.01), config=c),
    'dnn_batch_norm': lambda c: E.DNNClassifier([8, 4], DEEP, batch_norm=True, config=c,
                                                optimizer=lambda: O.GradientDescentOptimizer(0.02)),
    'linear_classifier': lambda c: E.LinearClassifier(WIDE, config=c),
    'linear_mean': lambda c: E.LinearClassifier([words, size, levels], n_classes=3, sparse_combiner='mean', config=c),
    'linear_sqrtn': lambda c: E.LinearRegressor([weighted_words, sizes, codes], sparse_combiner='sqrtn', config=c,
                                                optimizer=lambda: O.GradientDescentOptimizer(0.01)),
    'wide_and_deep': lambda c: E.DNNLinearCombinedClassifier(linear_feature_columns=WIDE, dnn_feature_columns=DEEP,
                                                             dnn_hidden_units=[8, 4], config=c),
    'wide_and_deep_regressor': lambda c: E.DNNLinearCombinedRegressor(
        linear_feature_columns=[cross, known_city], dnn_feature_columns=[age, F.embedding_column(words, 2)],
        dnn_hidden_units=[4], weight_column='weight', config=c, dnn_optimizer=lambda: O.AdagradOptimizer(0.05),
        linear_optimizer=lambda: O.FtrlOptimizer(0.05, l1_regularization_strength=0.001, l2_regularization_strength=0.002)),
}

SPEC = {
    'age': tf.io.FixedLenFeature([1], tf.float32), 'size': tf.io.FixedLenFeature([2], tf.float32),
    'city': tf.io.FixedLenFeature([1], tf.string), 'number': tf.io.VarLenFeature(tf.int64),
    'words': tf.io.VarLenFeature(tf.string), 'word_weights': tf.io.VarLenFeature(tf.float32),
    'codes': tf.io.VarLenFeature(tf.int64), 'weight': tf.io.FixedLenFeature([1], tf.float32),
}


def label_of(case):
    if case == 'dnn_words':
        return 'label_of_' + case, tf.io.FixedLenFeature([1], tf.string)
    if 'regressor' in case or case == 'linear_sqrtn':
        return 'label_of_' + case, tf.io.FixedLenFeature([2 if case == 'dnn_regressor' else 1], tf.float32)
    return 'label_of_' + case, tf.io.FixedLenFeature([1], tf.int64)


def feature(values):
    if isinstance(values[0], bytes):
        return tf.train.Feature(bytes_list=tf.train.BytesList(value=values))
    if isinstance(values[0], (int, np.integer)):
        return tf.train.Feature(int64_list=tf.train.Int64List(value=values))
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def write_records(path):
    """Some examples have no words or codes; some cities and numbers are in no vocabulary."""
    random = np.random.default_rng(5)
    texts = [b'sun', b'rain', b'snow', b'wind', b'fog']
    cities = [name.encode() for name in CITIES] + [b'Essen', b'']
    records = []
    with tf.io.TFRecordWriter(path) as writer:
        for i in range(EXAMPLES):
            said = [texts[k] for k in random.integers(0, 5, i % 4)]
            values = {
                'age': [float(random.normal())], 'size': [float(v) for v in random.normal(size=2)],
                'city': [cities[random.integers(0, 6)]], 'number': [int(v) for v in random.integers(0, 6, 1 + i % 2)],
                'weight': [float(random.uniform(0.2, 2))], 'words': said, 'word_weights': [float(random.uniform(-0.3, 2)) for _ in said],
                'codes': [int(v) for v in random.integers(0, 100, i % 3)],
            }
            score = values['age'][0] + values['size'][0] + len(said) - 1
            for case in CASES:
                key, spec = label_of(case)
                if spec.dtype == tf.string:
                    values[key] = [[b'red', b'green', b'blue'][min(2, max(0, int(score + 1)))]]
                elif spec.dtype == tf.int64:
                    values[key] = [min(2, max(0, int(score + 1))) if case in ('dnn_classes', 'linear_mean') else int(score > 0)]
                else:
                    values[key] = [score, -score][:spec.shape[0]]
            example = tf.train.Example(features=tf.train.Features(
                feature={key: feature(value) for key, value in values.items() if value}))
            records.append(example.SerializeToString())
            writer.write(records[-1])
    return records


def input_fn(case, path, training):
    def batches():
        records = tf.data.TFRecordDataset(path)
        if training:
            records = records.repeat()
        key, label = label_of(case)

        def parse(serialized):
            features = tf.io.parse_example(serialized, dict(SPEC, **{key: label}))
            return features, features.pop(key)
        return records.batch(BATCH).map(parse)
    return batches

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Estimator 2.15 unmodified on weft servers: estimator_test.py [WEFT].

Each estimator trains in TensorFlow's own session and on one parameter server and one worker: the same losses,
evaluations and predictions. train_and_evaluate runs as chief, worker, parameter server and evaluator by TF_CONFIG.
"""
import glob
import json
import os
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf
from tensorflow_estimator import estimator as estimators

import processes

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
columns = tf1.feature_column
ROWS = 12
CITIES = ['Oslo', 'Bergen', 'Tromso', 'elsewhere']


def rows():
    random = np.random.RandomState(1)
    return {'age': random.randint(10, 80, [ROWS, 1]).astype(np.float32), 'height': random.rand(ROWS, 2).astype(np.float32),
            'city': np.array([[CITIES[i]] for i in random.randint(0, 4, ROWS)]), 'shop': random.randint(0, 6, [ROWS, 1]),
            'other_shop': random.randint(0, 6, [ROWS, 1]), 'tag_weights': random.rand(ROWS, 3).astype(np.float32),
            'tags': np.array([['tag%d' % i for i in row] for row in random.randint(0, 9, [ROWS, 3])]),
            'weight': 0.5 + random.rand(ROWS, 1).astype(np.float32)}


def inputs(labels=None, batch=6):
    """An input_fn of tensors: slices of constants that move on with the global step."""
    def input_fn():
        start = tf.cast(tf1.train.get_or_create_global_step(), tf.int32) * batch % ROWS
        features = {name: tf.slice(tf.constant(value), tf.stack([start, 0]), [batch, -1]) for name, value in rows().items()}
        return features if labels is None else (features, tf.slice(tf.constant(labels), tf.stack([start, 0]), [batch, -1]))
    return input_fn


def binary():
    return np.random.RandomState(2).randint(0, 2, [ROWS, 1])


def classes():
    return np.random.RandomState(3).randint(0, 3, [ROWS, 1])


def amounts():
    return np.random.RandomState(4).rand(ROWS, 1).astype(np.float32)


def wide_columns():
    age = columns.numeric_column('age')
    city = columns.categorical_column_with_vocabulary_list('city', CITIES[:3], num_oov_buckets=1)
    shop = columns.categorical_column_with_identity('shop', 6)
    tags = columns.categorical_column_with_hash_bucket('tags', 7)
    buckets = columns.bucketized_column(age, [20, 40, 60])
    return [city, shop, tags, buckets, columns.crossed_column(['city', buckets], 11),
            columns.numeric_column('height', shape=[2], normalizer_fn=lambda x: x - 0.5)]


def deep_columns(folder):
    words = os.path.join(folder, 'cities.txt')
    with open(words, 'w') as out:
        out.write('\n'.join(CITIES[:3]) + '\n')
    from_file = columns.categorical_column_with_vocabulary_file('city', words, 3, default_value=0)
    tags = columns.categorical_column_with_hash_bucket('tags', 7)
    shop = columns.categorical_column_with_identity('shop', 6)
    constant = tf1.initializers.constant
    return [columns.numeric_column('age', normalizer_fn=lambda x: x / 50.0), columns.indicator_column(from_file),
            columns.embedding_column(tags, 3, combiner='sqrtn', initializer=constant(0.1)),
            *columns.shared_embedding_columns([shop, columns.categorical_column_with_identity('other_shop', 6)], 2,
                                              initializer=constant(0.2)),
            columns.indicator_column(columns.weighted_categorical_column(tags, 'tag_weights')),
            columns.indicator_column(columns.bucketized_column(columns.numeric_column('age'), [30.0, 60.0]))]


def model_fn(features, labels, mode, params):
    """With metrics, summaries, a hook and an export output of its own."""
    net = tf1.feature_column.input_layer({'height': features['height'], 'age': features['age']}, [
        columns.numeric_column('height', shape=[2]), columns.numeric_column('age', normalizer_fn=lambda x: x / 50.0)])
    w = tf1.get_variable('w', [3, 1], initializer=tf1.constant_initializer(0.3))
    guess = tf.matmul(net, w)
    if mode == estimators.ModeKeys.PREDICT:
        return estimators.EstimatorSpec(mode, predictions={'guess': guess},
                                        export_outputs={'serving_default': estimators.export.PredictOutput({'guess': guess})})
    loss = tf.reduce_mean(tf.square(guess - labels))
    if mode == estimators.ModeKeys.EVAL:
        return estimators.EstimatorSpec(mode, loss=loss, eval_metric_ops={'off': tf1.metrics.mean_absolute_error(labels, guess)})
    tf1.summary.scalar('guess', tf.reduce_mean(guess))
    train = tf1.train.AdamOptimizer(params['rate']).minimize(loss, tf1.train.get_global_step())
    return estimators.EstimatorSpec(mode, loss=loss, train_op=train)


def dnn_classifier(config, folder):
    return tf1.estimator.DNNClassifier([8, 4], deep_columns(folder), n_classes=3, config=config, optimizer='Adagrad',
                                       dropout=None), classes()


def dnn_regressor(config, folder):
    return tf1.estimator.DNNRegressor([6], deep_columns(folder), config=config, weight_column='weight',
                                      optimizer=lambda: tf1.train.AdamOptimizer(0.01)), amounts()


def linear_classifier(config, folder):
    return tf1.estimator.LinearClassifier(wide_columns(), config=config, weight_column='weight'), binary()


def linear_regressor(config, folder):
    return tf1.estimator.LinearRegressor(wide_columns(), config=config, partitioner=tf1.fixed_size_partitioner(2)), amounts()


def combined_classifier(config, folder):
    return tf1.estimator.DNNLinearCombinedClassifier(
        linear_feature_columns=wide_columns(), dnn_feature_columns=deep_columns(folder), dnn_hidden_units=[6, 3],
        batch_norm=True, config=config), binary()


def baseline_classifier(config, folder):
    return tf1.estimator.BaselineClassifier(config=config, n_classes=3), classes()


def custom(config, folder):
    return estimators.Estimator(model_fn, config=config, params={'rate': 0.05}), amounts()


BUILDERS = [dnn_classifier, dnn_regressor, linear_classifier, linear_regressor, combined_classifier, baseline_classifier, custom]


def run_config(folder, cluster=None):
    """For a worker alone with its parameter server, or for this process."""
    if cluster is None:
        os.environ.pop('TF_CONFIG', None)
    else:
        addresses = {job: [target[len('grpc://'):] for target in cluster[job]] for job in ('ps', 'chief')}
        os.environ['TF_CONFIG'] = json.dumps({'cluster': addresses, 'task': {'type': 'chief', 'index': 0}})
    return tf1.estimator.RunConfig(model_dir=folder, tf_random_seed=3, save_summary_steps=2, save_checkpoints_steps=3,
                                   log_step_count_steps=2)


def scalars(folder):
    """What the event files of training have, by tag and step."""
    found = {}
    for path in glob.glob(os.path.join(folder, 'events.*')):
        for event in tf1.train.summary_iterator(path):
            for value in event.summary.value:
                if value.tag == 'loss' or value.tag.endswith('guess'):
                    found[value.tag, event.step] = value.simple_value
    return found


class EstimatorTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.cluster = cls.enterClassContext(processes.cluster(BINARY, folder=cls.folder, ps=1, chief=1))

    def setUp(self):
        self.addCleanup(os.environ.pop, 'TF_CONFIG', None)

    def life(self, build, name, cluster):
        """Training in two parts, an evaluation, predictions, an export: what came of each."""
        folder = os.path.join(self.folder, name)
        os.makedirs(folder)
        if cluster:
            tf1.Session.reset(cluster['chief'][0])
        estimator, labels = build(run_config(os.path.join(folder, 'model'), cluster), folder)
        self.assertEqual(estimator.config.master, cluster['chief'][0] if cluster else '')
        estimator.train(inputs(labels), steps=4)
        estimator.train(inputs(labels), steps=3)
        found = {'scalars': scalars(estimator.model_dir)}
        # Evaluation and prediction run in a session of this process, as TensorFlow does it.
        found['evaluated'] = {key: value for key, value in estimator.evaluate(inputs(labels), steps=2).items()}
        predictions = estimator.predict(inputs(), yield_single_examples=False)
        found['predicted'] = next(predictions)
        predictions.close()
        # Slots of parts are read as parts, which this reader does not do by their own names.
        found['values'] = {key: estimator.get_variable_value(key) for key in estimator.get_variable_names() if '/part_' not in key}
        return estimator, found

    def assert_same(self, got, expected):
        self.assertEqual(sorted(map(str, got)), sorted(map(str, expected)))
        for key, value in expected.items():
            if isinstance(value, dict):
                self.assert_same(got[key], value)
            elif np.asarray(value).dtype == object:
                self.assertEqual(np.asarray(got[key]).tolist(), np.asarray(value).tolist(), key)
            else:
                np.testing.assert_allclose(got[key], value, rtol=1e-4, atol=1e-6, err_msg=str(key))

    def test_an_export_serves_what_was_trained(self):
        estimator, found = self.life(custom, 'exported', self.cluster)
        receiver = tf1.estimator.export.build_raw_serving_input_receiver_fn(
            {'height': tf1.placeholder(tf.float32, [None, 2]), 'age': tf1.placeholder(tf.float32, [None, 1])})
        path = estimator.export_saved_model(os.path.join(self.folder, 'export'), receiver).decode()
        for target in '', self.cluster['chief'][0]:
            with tf.Graph().as_default(), tf1.Session(target) as session:
                signature = tf1.saved_model.load(session, ['serve'], path).signature_def['serving_default']
                got = session.run(signature.outputs['guess'].name, {
                    signature.inputs[name].name: rows()[name][6:] for name in ('height', 'age')})
                np.testing.assert_allclose(got, found['predicted']['guess'], rtol=1e-5)

    def test_warm_start(self):
        first, _ = self.life(dnn_classifier, 'cold', self.cluster)
        values = {}
        for name, cluster in ('warm_here', None), ('warm_there', self.cluster):
            folder = os.path.join(self.folder, name)
            os.makedirs(folder)
            if cluster:
                tf1.Session.reset(cluster['chief'][0])
            second = tf1.estimator.DNNClassifier([8, 4], deep_columns(folder), n_classes=3, optimizer='Adagrad',
                                                 config=run_config(os.path.join(folder, 'model'), cluster),
                                                 warm_start_from=first.model_dir)
            second.train(inputs(classes()), steps=2)
            values[name] = {key: second.get_variable_value(key) for key in second.get_variable_names()}
        self.assert_same(values['warm_there'], values['warm_here'])

    def test_boosted_trees_are_refused_in_words(self):
        """Estimator 2.15 has none; TensorFlow has their ops still."""
        with tf.Graph().as_default(), tf1.Session(self.cluster['chief'][0]) as session:
            trees = tf.raw_ops.BoostedTreesEnsembleResourceHandleOp(container='', shared_name='trees')
            made = tf.raw_ops.BoostedTreesCreateEnsemble(tree_ensemble_handle=trees, stamp_token=0, tree_ensemble_serialized='')
            with self.assertRaisesRegex(tf.errors.NotFoundError, 'Op type not registered: .BoostedTrees'):
                session.run(made)


def _add(build):
    def test(self):
        _, expected = self.life(build, build.__name__ + '_here', None)
        _, got = self.life(build, build.__name__ + '_there', self.cluster)
        self.assert_same(got, expected)
    setattr(EstimatorTest, 'test_' + build.__name__, test)


for _build in BUILDERS:
    _add(_build)

if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main(verbosity=2)

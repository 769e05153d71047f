#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tf.data's side of the benchmark of pipelines (see data_rounds.cc): a step takes 16 batches, more than lie ready.

    tensorflow_data_rounds.py write FOLDER                                   writes what the pipelines read
    tensorflow_data_rounds.py (records|examples|jpeg|shuffle|map) FOLDER THREADS SETTING

SETTING is session (an iterator in a graph) or eager (Python's loop over the dataset, TensorFlow 2's way).
"""
import os
import sys

os.environ['TF_CPP_MIN_LOG_LEVEL'] = '3'
os.environ['CUDA_VISIBLE_DEVICES'] = ''

import numpy as np  # noqa: E402
import tensorflow as tf  # noqa: E402

from rounds import serve  # noqa: E402

tf1 = tf.compat.v1


def write(folder):
    random = np.random.RandomState(1)
    with tf.io.TFRecordWriter(folder + '/records') as out:
        for _ in range(10000):
            out.write(random.bytes(1000))
    with tf.io.TFRecordWriter(folder + '/examples') as out:
        for i in range(10000):
            features = {'x': tf.train.Feature(float_list=tf.train.FloatList(value=random.rand(64))),
                        'y': tf.train.Feature(int64_list=tf.train.Int64List(value=[i]))}
            out.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())
    with tf.io.TFRecordWriter(folder + '/jpegs') as out:
        for _ in range(64):
            smooth = tf.image.resize(random.randint(0, 255, (16, 16, 3)), (224, 224))
            out.write(tf.io.encode_jpeg(tf.cast(smooth, tf.uint8)).numpy())


def parse(batch):
    features = {'x': tf.io.FixedLenFeature([64], tf.float32), 'y': tf.io.FixedLenFeature([], tf.int64)}
    parsed = tf.io.parse_example(batch, features)
    return parsed['x'], parsed['y']


def picture(record):
    image = tf.io.decode_jpeg(record, channels=3)
    return tf.reshape(tf.image.resize(image[None], (64, 64)), (64, 64, 3))


def pipeline(kind, folder, threads):
    def records(name):
        return tf.data.TFRecordDataset(folder + '/' + name).repeat()
    numbers = tf.data.Dataset.range(1 << 40)
    return {'records': lambda: records('records').batch(256).prefetch(2),
            'examples': lambda: records('examples').batch(256).map(parse, threads).prefetch(2),
            'jpeg': lambda: records('jpegs').map(picture, threads).batch(8).prefetch(2),
            'shuffle': lambda: numbers.shuffle(10000, seed=5).batch(256),
            'map': lambda: numbers.map(lambda x: x * 2 + 1, threads).batch(256).prefetch(2)}[kind]()


def check_of(batch):
    """What of a batch both sides compare."""
    if batch.dtype == object:
        return sum(len(record) + record[0] for record in batch)
    flat = batch.reshape(-1)
    return flat[0] + flat[flat.size // 2] if batch.dtype == np.float32 else flat[3]


def sixteen(take):
    return lambda: check_of([take() for _ in range(16)][-1])


def main(kind, folder, threads, setting):
    threads = int(threads)
    tf.config.threading.set_intra_op_parallelism_threads(threads)
    tf.config.threading.set_inter_op_parallelism_threads(threads)
    tf1.set_random_seed(5)
    if setting == 'eager':
        elements = iter(pipeline(kind, folder, threads))

        def take():
            element = next(elements)
            return (element[0] if isinstance(element, tuple) else element).numpy()
        return sixteen(take)
    tf1.disable_eager_execution()
    tf1.set_random_seed(5)  # of the default graph, which is another one now
    iterator = tf1.data.make_initializable_iterator(pipeline(kind, folder, threads))
    element = iterator.get_next()
    session = tf1.Session(config=tf1.ConfigProto(intra_op_parallelism_threads=threads, inter_op_parallelism_threads=threads))
    session.run(iterator.initializer)
    return sixteen(session.make_callable(element[0] if isinstance(element, tuple) else element))


if __name__ == '__main__':
    if sys.argv[1] == 'write':
        write(sys.argv[2])
    else:
        serve(main(*sys.argv[1:]))

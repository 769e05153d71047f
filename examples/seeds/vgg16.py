# SPDX-License-Identifier: Apache-2.0
"""Listings: VGG16's blocks, of which two are printed, with its weights saved as `net.save_weights('easy_checkpoint')` and
loaded again. vgg16.py TARGET FOLDER [--side 224] needs TensorFlow 2.15, whose Keras runs in graphs."""
import argparse
import os

import numpy as np
import tensorflow.compat.v1 as tf

tf.disable_v2_behavior()
layers = tf.keras.layers
parser = argparse.ArgumentParser()
parser.add_argument('target')
parser.add_argument('folder')
parser.add_argument('--side', type=int, default=32)
parser.add_argument('--classes', type=int, default=10)
FLAGS = parser.parse_args()


def vgg16():
    img_input = layers.Input([FLAGS.side, FLAGS.side, 3])
    x = img_input
    for block, (convolutions, filters) in enumerate([(2, 64), (2, 128), (3, 256), (3, 512), (3, 512)], 1):
        for i in range(convolutions):
            x = layers.Conv2D(filters, (3, 3),
                              activation='relu',
                              padding='same',
                              name='block%d_conv%d' % (block, i + 1))(x)
        x = layers.MaxPooling2D((2, 2), strides=(2, 2), name='block%d_pool' % block)(x)
    x = layers.Flatten(name='flatten')(x)
    for name in 'fc1', 'fc2':
        x = layers.Dense(4096 if FLAGS.side == 224 else 256, activation='relu', name=name)(x)
    return tf.keras.Model(img_input, layers.Dense(FLAGS.classes, activation='softmax', name='predictions')(x))


tf.set_random_seed(1)
with tf.Session(FLAGS.target) as sess:
    tf.keras.backend.set_session(sess)
    net = vgg16()
    images = np.random.RandomState(0).rand(2, FLAGS.side, FLAGS.side, 3).astype(np.float32)
    before = net.predict(images)
    net.save_weights(os.path.join(FLAGS.folder, 'easy_checkpoint'))
    net.get_layer('block1_conv1').set_weights([w * 0 for w in net.get_layer('block1_conv1').get_weights()])
    zeroed = net.predict(images)
    net.load_weights(os.path.join(FLAGS.folder, 'easy_checkpoint'))
    after = net.predict(images)
    print('%d layers, the same after loading: %s, without its first: %s' % (
        len(net.layers), np.allclose(before, after, atol=1e-6), np.allclose(before, zeroed, atol=1e-6)))

# SPDX-License-Identifier: Apache-2.0
"""Summaries of TensorFlow 0.x: the tag is written as it was given, and may be a tensor of tags."""
import tensorflow.compat.v1 as tf


def _collected(summary, collections):
    for collection in [tf.GraphKeys.SUMMARIES] if collections is None else collections:
        tf.add_to_collection(collection, summary)
    return summary


def scalar_summary(tags, values, collections=None, name=None):
    with tf.name_scope(name, 'ScalarSummary', [tags, values]) as scope:
        return _collected(tf.raw_ops.ScalarSummary(tags=tags, values=values, name=scope), collections)


def histogram_summary(tag, values, collections=None, name=None):
    with tf.name_scope(name, 'HistogramSummary', [tag, values]) as scope:
        return _collected(tf.raw_ops.HistogramSummary(tag=tag, values=values, name=scope), collections)


def image_summary(tag, tensor, max_images=3, collections=None, name=None):
    with tf.name_scope(name, 'ImageSummary', [tag, tensor]) as scope:
        return _collected(tf.raw_ops.ImageSummary(tag=tag, tensor=tensor, max_images=max_images, name=scope), collections)


def audio_summary(tag, tensor, sample_rate, max_outputs=3, collections=None, name=None):
    with tf.name_scope(name, 'AudioSummary', [tag, tensor]) as scope:
        rate = tf.convert_to_tensor(sample_rate, dtype=tf.float32, name='sample_rate')
        return _collected(tf.raw_ops.AudioSummaryV2(tag=tag, tensor=tensor, max_outputs=max_outputs, sample_rate=rate,
                                                    name=scope), collections)


def merge_summary(inputs, collections=None, name=None):
    with tf.name_scope(name, 'MergeSummary', inputs) as scope:
        return _collected(tf.raw_ops.MergeSummary(inputs=inputs, name=scope), collections or [])


def merge_all_summaries(key=tf.GraphKeys.SUMMARIES):
    """One summary of all that were made so far, or None when there are none."""
    summaries = tf.get_collection(key)
    return merge_summary(summaries) if summaries else None

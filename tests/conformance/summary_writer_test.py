#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Event files that a graph writes itself: summary_writer_test.py [PATH_OF_WEFT] [unittest arguments].

The same program runs in TensorFlow's own session and on a server; TensorFlow's reader must find the same events in both files,
and TensorBoard's must read ours.
"""
import glob
import os
import sys
import tempfile
import unittest

os.environ.setdefault('TF_CPP_MIN_LOG_LEVEL', '3')

import numpy as np
import processes
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator

tf1 = tf.compat.v1
tf1.disable_v2_behavior()
raw = tf.raw_ops
BINARY = None


class SummaryWriterTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory(prefix='weft-summaries-')
        self.addCleanup(folder.cleanup)
        self.root = folder.name

    def write(self, target, logdir):
        with tf.Graph().as_default():
            writer = raw.SummaryWriter(shared_name='writer')
            start = raw.CreateSummaryFileWriter(writer=writer, logdir=logdir, max_queue=2, flush_millis=120000, filename_suffix='.v2')
            step = tf1.placeholder(tf.int64, [])
            pictures = (np.arange(2 * 4 * 5 * 3) * 2).reshape(2, 4, 5, 3)
            wave = np.sin(np.arange(200.0) / 7).reshape(2, 100).astype(np.float32)
            metadata = tf1.SummaryMetadata(plugin_data=tf1.SummaryMetadata.PluginData(plugin_name='scalars')).SerializeToString()
            one = tf1.Summary(value=[tf1.Summary.Value(tag='raw', simple_value=7)]).SerializeToString()
            event = tf1.Event(step=77, wall_time=5.0, summary=tf1.Summary(value=[tf1.Summary.Value(tag='imported', simple_value=8)]))
            writes = [
                raw.WriteScalarSummary(writer=writer, step=step, tag='loss', value=tf.constant(2.5, tf.float64)),
                raw.WriteScalarSummary(writer=writer, step=step, tag='count', value=tf.constant(3, tf.int16)),
                raw.WriteHistogramSummary(writer=writer, step=step, tag='weights', values=np.arange(-50, 50, dtype=np.float32)),
                raw.WriteImageSummary(writer=writer, step=step, tag='digits', tensor=pictures.astype(np.uint8),
                                      bad_color=np.array([255, 0, 0, 255], np.uint8)),
                raw.WriteAudioSummary(writer=writer, step=step, tag='wave', tensor=wave, sample_rate=8000.0, max_outputs=1),
                raw.WriteSummary(writer=writer, step=step, tensor=tf.constant([1.0, 2.0]), tag='tensor', summary_metadata=metadata),
                raw.WriteRawProtoSummary(writer=writer, step=step, tensor=[one]),
                raw.WriteGraphSummary(writer=writer, step=step, tensor=tf1.GraphDef(versions=dict(producer=7)).SerializeToString()),
                raw.ImportEvent(writer=writer, event=event.SerializeToString())]
            bad = [raw.ImportEvent(writer=writer, event=b'\xff'), raw.WriteRawProtoSummary(writer=writer, step=step, tensor=[b'\xff']),
                   raw.WriteHistogramSummary(writer=writer, step=step, tag='bad', values=[np.nan]),
                   raw.WriteImageSummary(writer=writer, step=step, tag='bad', tensor=np.zeros([2, 2], np.float32), bad_color=[1, 2, 3])]
            flush, close = raw.FlushSummaryWriter(writer=writer), raw.CloseSummaryWriter(writer=writer)
            codes = []
            with tf1.Session(target) as session:
                codes.append(self.code(session, writes[0], {step: 1}))  # before there is a file
                session.run(start)
                session.run(start)
                for write in writes:
                    session.run(write, {step: 3})
                codes += [self.code(session, write, {step: 4}) for write in bad]
                session.run(flush)
                flushed = len(self.events(logdir))
                session.run(close)
                codes.append(self.code(session, writes[0], {step: 5}))
            return codes, flushed

    @staticmethod
    def code(session, op, feeds):
        try:
            session.run(op, feeds)
        except tf.errors.OpError as error:
            return error.error_code
        return 0

    @staticmethod
    def events(logdir):
        found = glob.glob(os.path.join(logdir, 'events.out.tfevents.*.v2'))
        assert len(found) == 1, found
        events = []
        for event in tf1.train.summary_iterator(found[0]):
            event.ClearField('wall_time')
            event.ClearField('source_metadata')
            events.append(event)
        return events

    def test_the_same_events(self):
        theirs, ours = (os.path.join(self.root, name) for name in ('theirs', 'ours'))
        wanted = self.write('', theirs)
        with processes.cluster(BINARY, folder=self.root, local=1) as cluster:
            self.assertEqual(self.write(cluster['local'][0], ours), wanted)
        for mine, other in zip(self.events(ours), self.events(theirs)):
            if mine.summary.value and mine.summary.value[0].HasField('image'):
                for a, b in zip(mine.summary.value, other.summary.value):  # two ways of packing one picture
                    np.testing.assert_array_equal(tf1.Session().run(tf.image.decode_png(a.image.encoded_image_string)),
                                                  tf1.Session().run(tf.image.decode_png(b.image.encoded_image_string)))
                    b.image.encoded_image_string = a.image.encoded_image_string
            self.assertEqual(mine, other)
        read = event_accumulator.EventAccumulator(ours, size_guidance={'tensors': 0})
        read.Reload()
        tags = read.Tags()
        self.assertIn('wave/audio', tags['audio'])
        self.assertIn('digits/image/0', tags['images'])
        self.assertEqual(set(tags['scalars']), {'loss', 'count', 'raw', 'imported'})
        self.assertIn('weights', tags['histograms'])

    def test_there_is_no_database(self):
        with processes.cluster(BINARY, local=1) as cluster, tf.Graph().as_default():
            op = raw.CreateSummaryDbWriter(writer=raw.SummaryWriter(), db_uri='file:x', experiment_name='', run_name='', user_name='')
            with tf1.Session(cluster['local'][0]) as session, self.assertRaises(tf.errors.UnimplementedError):
                session.run(op)


if __name__ == '__main__':
    BINARY = processes.binary_from(sys.argv)
    unittest.main()

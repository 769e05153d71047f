# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, records, events and tensors, in both directions between TensorFlow and formats_tool.

    formats_test.py TOOL [unittest arguments]

Where the tool copies a file, TensorFlow wrote the original and reads the copy: one test, both ways.
"""
import glob
import os
import shutil
import subprocess
import sys
import tempfile
import unittest

import numpy as np
import tensorflow as tf
from tensorboard.backend.event_processing import event_accumulator
from tensorflow.core.framework import tensor_pb2
from tensorflow.python.checkpoint import checkpoint_management
from tensorflow.python.framework import tensor_util

tf1 = tf.compat.v1
TOOL = None

PLAIN = [tf.float32, tf.float64, tf.int32, tf.uint8, tf.int16, tf.int8, tf.complex64, tf.int64, tf.bool,
         tf.bfloat16, tf.uint16, tf.complex128, tf.half, tf.uint32, tf.uint64]
QUANTIZED = [tf.qint8, tf.quint8, tf.qint16, tf.quint16, tf.qint32]


def tool(*args):
    done = subprocess.run([TOOL, *args], capture_output=True, text=True)
    if done.returncode != 0:
        raise AssertionError('%s: %s' % (' '.join(args), done.stderr))
    return done.stdout


def tool_error(*args):
    done = subprocess.run([TOOL, *args], capture_output=True, text=True)
    assert done.returncode == 1, done
    return done.stderr


def sample(dtype, shape, seed=1):
    """Numbers of any plain dtype, extremes among them."""
    random = np.random.RandomState(seed)
    if dtype == tf.bool:
        return random.rand(*shape) < 0.5
    numpy_type = dtype.as_numpy_dtype
    if dtype.is_complex:
        return (random.randn(*shape) + 1j * random.randn(*shape)).astype(numpy_type)
    if dtype.is_floating:
        values = random.randn(*shape).astype(numpy_type)
        values.flat[:3] = [np.inf, -0.0, np.nan]
        return values
    values = random.randint(0, 100, shape).astype(numpy_type)
    values.flat[:2] = [dtype.max, dtype.min]
    return values


def plain(value):
    """What two equal tensors have in common, NaNs included."""
    if isinstance(value, bytes):
        return value
    return value.tolist() if value.dtype == object else (value.dtype, value.shape, value.tobytes())


def save(prefix, values):
    """Writes tensors through SaveV2, straight from TensorFlow's op."""
    with tf1.Graph().as_default(), tf1.Session() as session:
        names, specs, tensors = [], [], []
        for name, value, spec in values:
            names.append(name)
            specs.append(spec)
            tensors.append(value if isinstance(value, tf.Tensor) else tf.constant(value))
        session.run(tf.raw_ops.SaveV2(prefix=prefix, tensor_names=names, shape_and_slices=specs,
                                      tensors=tensors))


def values_field(dtype, values):
    """The *_val field that belongs to dtype, and the values as it holds them."""
    if dtype in (tf.half, tf.bfloat16):
        return 'half_val', [int(x) for x in values.view(np.uint16)]
    if dtype.is_complex:
        pairs = np.stack([values.real, values.imag], 1).ravel().tolist()
        return 'scomplex_val' if dtype == tf.complex64 else 'dcomplex_val', pairs
    field = {tf.float32: 'float_val', tf.float64: 'double_val', tf.int64: 'int64_val', tf.bool: 'bool_val',
             tf.uint32: 'uint32_val', tf.uint64: 'uint64_val'}.get(dtype, 'int_val')
    return field, values.tolist()


class FormatsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp(prefix='formats-')
        self.addCleanup(shutil.rmtree, self.folder)

    def at(self, *parts):
        return os.path.join(self.folder, *parts)

    def assert_same_bundle(self, a, b):
        old, new = tf.train.load_checkpoint(a), tf.train.load_checkpoint(b)
        self.assertEqual(old.get_variable_to_shape_map(), new.get_variable_to_shape_map())
        self.assertEqual(old.get_variable_to_dtype_map(), new.get_variable_to_dtype_map())
        for name in old.get_variable_to_shape_map():
            self.assertEqual(plain(old.get_tensor(name)), plain(new.get_tensor(name)), name)


class CheckpointTest(FormatsTest):
    def mixed(self):
        values = [(t.name, sample(t, (5, 3)), '') for t in PLAIN]
        values += [('scalar', np.float32(3), ''), ('empty', np.zeros((0, 4), np.float32), ''),
                   ('names', np.array([[b'a', b''], [b'\x00\xff', b'x' * 1000]], object), ''),
                   ('one', np.array(b'text', object), '')]
        return values

    def test_every_dtype_both_ways(self):
        save(self.at('tf'), self.mixed())
        tool('copy-bundle', self.at('tf'), self.at('sub', 'ours'))
        self.assert_same_bundle(self.at('tf'), self.at('sub', 'ours'))
        # The same tensors in the same order make the same data file, byte by byte.
        sorted_names = self.at('sorted')
        save(sorted_names, sorted(self.mixed(), key=lambda value: value[0].encode()))
        for end in ('.data-00000-of-00001', '.index'):
            with open(sorted_names + end, 'rb') as theirs, open(self.at('sub', 'ours') + end, 'rb') as ours:
                self.assertEqual(theirs.read(), ours.read(), end)

    def test_quantized_and_variant_tensors(self):
        with tf1.Graph().as_default(), tf1.Session() as session:
            raw = tf.constant([0, 1, 100], tf.uint8)
            tensors = [tf.bitcast(raw, tf.quint8), tf.bitcast(raw, tf.qint8)]
            variants = tf.raw_ops.EmptyTensorList(element_shape=[2], max_num_elements=-1, element_dtype=tf.float32)
            tensors.append(tf.raw_ops.TensorListPushBack(input_handle=variants, tensor=[1., 2.]))
            session.run(tf.raw_ops.SaveV2(prefix=self.at('tf'), tensor_names=['a', 'b', 'list'],
                                          shape_and_slices=[''] * 3, tensors=tensors))
            tool('copy-bundle', self.at('tf'), self.at('ours'))
            for prefix in (self.at('tf'), self.at('ours')):
                a, b, variants = tf.raw_ops.RestoreV2(
                    prefix=prefix, tensor_names=['a', 'b', 'list'], shape_and_slices=[''] * 3,
                    dtypes=[tf.quint8, tf.qint8, tf.variant])
                items = tf.raw_ops.TensorListStack(input_handle=variants, element_shape=[2],
                                                   element_dtype=tf.float32)
                got = session.run([tf.bitcast(a, tf.uint8), tf.bitcast(b, tf.uint8), items])
                np.testing.assert_array_equal(got[0], [0, 1, 100])
                np.testing.assert_array_equal(got[1], [0, 1, 100])
                np.testing.assert_array_equal(got[2], [[1, 2]])

    def test_savers_sharded_partitioned_checkpoint_restores(self):
        """A Saver's sharded, partitioned checkpoint is copied; the Saver restores from the copy."""
        with tf1.Graph().as_default():
            with tf1.device('/cpu:0'):
                part = tf1.get_variable('part', [10, 4], tf.float32, tf1.random_normal_initializer(seed=1),
                                        partitioner=tf1.fixed_size_partitioner(3), use_resource=False)
                columns = tf1.get_variable('columns', [4, 9], tf.float32, tf1.random_normal_initializer(seed=2),
                                           partitioner=tf1.fixed_size_partitioner(2, axis=1))
            step = tf1.train.get_or_create_global_step()
            words = tf1.get_variable('words', initializer=tf.constant(['x', 'yy']))
            saver = tf1.train.Saver(sharded=True)
            read = [part.as_tensor(), columns.as_tensor(), step, words]
            with tf1.Session() as session:
                session.run(tf1.global_variables_initializer())
                want = session.run(read)
                prefix = saver.save(session, self.at('model.ckpt'), global_step=3)
            for command in (['copy-bundle'], ['partition-bundle', '4'], ['partition-bundle', '1']):
                copy = self.at('-'.join(command))
                tool(command[0], prefix, copy, *command[1:])
                self.assert_same_bundle(prefix, copy)
                with tf1.Session() as session:
                    saver.restore(session, copy)
                    for a, b in zip(want, session.run(read)):
                        np.testing.assert_array_equal(a, b)
        self.assertEqual(tool('print-latest', self.folder).strip(), prefix)

    def test_slices_of_slices(self):
        whole = np.arange(60, dtype=np.int32).reshape(10, 6)
        save(self.at('tf'), [('p', whole[:3], '10 6 0,3:-'), ('p', whole[3:, :2], '10 6 3,7:0,2'),
                             ('p', whole[3:, 2:], '10 6 3,7:2,4'), ('q', whole, '')])
        for name in ('p', 'q'):
            for spec, want in (('-:-', whole), ('2,3:1,4', whole[2:5, 1:5]), ('9,1:5,1', whole[9:, 5:])):
                tool('cut-bundle', self.at('tf'), name, spec, self.at('cut'))
                np.testing.assert_array_equal(tf.train.load_variable(self.at('cut'), name), want)

    def test_merging_what_tasks_saved(self):
        """Our merge of TensorFlow's parts equals TensorFlow's own merge of the same parts."""
        def parts(folder):
            os.mkdir(folder)
            prefixes = [os.path.join(folder, 'part-%05d-of-00002' % i) for i in range(2)]
            rows = np.arange(8, dtype=np.float32).reshape(4, 2)
            for i, prefix in enumerate(prefixes):
                save(prefix, [('own%d' % i, np.float32(i), ''), ('rows', rows[2 * i:2 * i + 2], '4 2 %d,2:-' % (2 * i))])
            return prefixes
        theirs, ours = parts(self.at('t_temp')), parts(self.at('o_temp'))
        with tf1.Graph().as_default(), tf1.Session() as session:
            session.run(tf.raw_ops.MergeV2Checkpoints(checkpoint_prefixes=theirs, destination_prefix=self.at('theirs'),
                                                      delete_old_dirs=True))
        tool('merge-bundle', self.at('ours'), *ours)
        self.assert_same_bundle(self.at('theirs'), self.at('ours'))
        self.assertFalse(os.path.exists(self.at('o_temp')))
        for path in glob.glob(self.at('theirs*')):
            with open(path, 'rb') as a, open(path.replace('theirs', 'ours'), 'rb') as b:
                self.assertEqual(a.read(), b.read(), path)

    def test_ten_thousand_variables(self):
        save(self.at('tf'), [('v/%d/kernel' % i, np.full(3, i, np.float32), '') for i in range(10000)])
        tool('copy-bundle', self.at('tf'), self.at('ours'))
        reader = tf.train.load_checkpoint(self.at('ours'))
        self.assertEqual(len(reader.get_variable_to_shape_map()), 10000)
        for i in range(0, 10000, 501):
            np.testing.assert_array_equal(reader.get_tensor('v/%d/kernel' % i), np.full(3, i, np.float32))

    def test_object_based_checkpoint(self):
        module = tf.Module()
        module.v = tf.Variable([1., 2.])
        prefix = tf.train.Checkpoint(m=module).write(self.at('tf'))
        tool('copy-bundle', prefix, self.at('ours'))
        other = tf.Module()
        other.v = tf.Variable([0., 0.])
        tf.train.Checkpoint(m=other).read(self.at('ours')).assert_consumed()
        np.testing.assert_array_equal(other.v.numpy(), [1, 2])

    def test_damage_is_seen_by_both(self):
        save(self.at('tf'), [('w', np.arange(100, dtype=np.float32), '')])
        tool('copy-bundle', self.at('tf'), self.at('ours'))
        with open(self.at('ours.data-00000-of-00001'), 'r+b') as data:
            data.seek(17)
            data.write(b'\xee')
        self.assertIn("DATA_LOSS: Tensor 'w' is damaged", tool_error('copy-bundle', self.at('ours'), self.at('x')))
        with self.assertRaisesRegex(Exception, 'Checksum does not match'):
            tf.train.load_checkpoint(self.at('ours')).get_tensor('w')

    def test_checkpoint_state(self):
        save(self.at('m-1'), [('w', np.float32(1), '')])
        save(self.at('m-2'), [('w', np.float32(2), '')])
        tool('write-state', self.folder, self.at('m-1'), self.at('m-2'))
        self.assertEqual(tf.train.latest_checkpoint(self.folder), self.at('m-2'))
        self.assertEqual(list(tf.train.get_checkpoint_state(self.folder).all_model_checkpoint_paths),
                         [self.at('m-1'), self.at('m-2')])
        for relative in (False, True):
            checkpoint_management.update_checkpoint_state_internal(
                self.folder, self.at('m-1'), [self.at('m-2'), self.at('m-1')], save_relative_paths=relative,
                all_model_checkpoint_timestamps=[1.5, 2.5], last_preserved_timestamp=1.0)
            self.assertEqual(tool('print-latest', self.folder).strip(), self.at('m-1'))


class RecordTest(FormatsTest):
    def test_records_under_every_compression(self):
        records = [b'first', b'', bytes(range(256)) * 2000, b'last']
        for theirs in ('', 'ZLIB', 'GZIP'):
            with tf.io.TFRecordWriter(self.at('tf'), theirs) as writer:
                for record in records:
                    writer.write(record)
            for ours in ('', 'ZLIB', 'GZIP'):
                tool('copy-records', self.at('tf'), theirs, self.at('ours'), ours)
                got = [r.numpy() for r in tf.data.TFRecordDataset(self.at('ours'), ours)]
                self.assertEqual(got, records)
            got = list(tf1.python_io.tf_record_iterator(self.at('ours'), tf1.python_io.TFRecordOptions(
                tf1.python_io.TFRecordCompressionType.GZIP)))
            self.assertEqual(got, records)

    def test_examples(self):
        example = tf.train.Example()
        example.features.feature['x'].float_list.value.extend([1.5, 2.5])
        with tf.io.TFRecordWriter(self.at('tf')) as writer:
            writer.write(example.SerializeToString())
        tool('copy-records', self.at('tf'), '', self.at('ours'), '')
        for record in tf.data.TFRecordDataset(self.at('ours')):
            parsed = tf.io.parse_single_example(record, {'x': tf.io.FixedLenFeature([2], tf.float32)})
            self.assertEqual(parsed['x'].numpy().tolist(), [1.5, 2.5])


class EventTest(FormatsTest):
    def test_tensorboard_reads_our_events(self):
        values = np.array([-3.5, 0, 0.001, 1, 1, 1e9, 1e25], np.float64)
        with open(self.at('t'), 'wb') as file:
            file.write(tf.make_tensor_proto(values).SerializeToString())
        tool('write-events', self.at('t'), self.at('logs'))
        events = event_accumulator.EventAccumulator(self.at('logs')).Reload()
        self.assertEqual([(e.step, e.value) for e in events.Scalars('loss')],
                         [(0, 1.0), (1, 0.5), (2, np.float32(1 / 3))])
        self.assertEqual(events.Histograms('values')[0].histogram_value.num, 7)
        self.assertEqual(events.Tensors('note')[0].tensor_proto.string_val, [b'hello'])
        self.assertEqual(events.file_version, 2.0)
        # The same histogram, bucket by bucket, as TensorFlow's op makes.
        with tf1.Graph().as_default(), tf1.Session() as session:
            summary = tf1.Summary.FromString(session.run(tf1.summary.histogram('values', values)))
        path, = glob.glob(self.at('logs', '*tfevents*'))
        ours = [v.histo for e in tf1.train.summary_iterator(path) for v in e.summary.value if v.tag == 'values']
        self.assertEqual(len(ours), 3)
        self.assertEqual(ours[0], summary.value[0].histo)

    def test_their_events_are_read_by_us(self):
        with tf1.Graph().as_default() as graph:
            tf.constant(1, name='node')
            with tf1.summary.FileWriter(self.at('tf'), graph) as writer:
                for step in range(5):
                    writer.add_summary(tf1.Summary(value=[tf1.Summary.Value(tag='x', simple_value=step)]), step)
                writer.add_session_log(tf1.SessionLog(status=tf1.SessionLog.START), 3)
        writer = tf.summary.create_file_writer(self.at('tf2'))
        with writer.as_default():
            tf.summary.scalar('y', 0.25, step=9)
        writer.close()
        for source in ('tf', 'tf2'):
            path, = glob.glob(self.at(source, '*tfevents*'))
            tool('copy-events', path, self.at(source + '-copy'))
            copy, = glob.glob(self.at(source + '-copy', '*tfevents*'))
            theirs = list(tf1.train.summary_iterator(path))
            ours = list(tf1.train.summary_iterator(copy))
            self.assertGreater(len(theirs), 1)
            self.assertEqual(ours[0].file_version, 'brain.Event:2')
            self.assertEqual(ours[1:], theirs[1:])


class TensorTest(FormatsTest):
    def round_trip(self, proto):
        with open(self.at('in'), 'wb') as file:
            file.write(proto.SerializeToString())
        tool('copy-tensor', self.at('in'), self.at('out'))
        with open(self.at('out'), 'rb') as file:
            return tensor_pb2.TensorProto.FromString(file.read())

    def assert_same(self, proto, want):
        self.assertEqual(plain(tensor_util.MakeNdarray(self.round_trip(proto))), plain(want))

    def test_every_dtype_in_content_and_in_values(self):
        for dtype in PLAIN:
            want = sample(dtype, (4, 5))
            self.assert_same(tf.make_tensor_proto(want), want)
            few = sample(dtype, (3,))
            proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
            proto.tensor_shape.dim.add(size=7)
            field, values = values_field(dtype, few)
            getattr(proto, field).extend(values)
            self.assert_same(proto, np.concatenate([few, np.repeat(few[-1:], 4)]))

    def test_types_that_numpy_lacks(self):
        extra = ['float8_e5m2', 'float8_e4m3fn', 'int4', 'uint4']
        extra = [getattr(tf.dtypes.experimental, name) for name in extra if hasattr(tf.dtypes.experimental, name)]
        for dtype in QUANTIZED + extra:
            proto = tensor_pb2.TensorProto(dtype=dtype.as_datatype_enum)
            proto.tensor_shape.dim.add(size=6)
            if 'float8' in dtype.name:
                proto.float8_val = b'\x03\x05'
            else:
                proto.int_val.extend([3, 5])
            width = dtype.size
            want = b''.join(x.to_bytes(width, 'little') for x in [3, 5, 5, 5, 5, 5])
            copy = self.round_trip(proto)
            self.assertEqual(copy.tensor_content, want, dtype)
            # TensorFlow sees the same in both.
            self.assertEqual(str(tensor_util.MakeNdarray(copy)), str(tensor_util.MakeNdarray(proto)))

    def test_strings(self):
        want = np.array([b'a', b'', b'\x00\xff', b'x' * 200], object)
        self.assert_same(tf.make_tensor_proto(want), want)
        self.assert_same(tensor_pb2.TensorProto.FromString(tf.io.serialize_tensor(want).numpy()), want)


if __name__ == '__main__':
    TOOL = sys.argv.pop(1)
    unittest.main(verbosity=2)

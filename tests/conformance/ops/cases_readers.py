# SPDX-License-Identifier: Apache-2.0
"""Files read by readers, lines of separated values, histograms: input pipelines of TensorFlow 1's days."""
import gzip
import struct

import numpy as np
import tensorflow as tf

from cases import Case, Path, Step, cases, numpy_type, script, types_for, values

LINES = b'head,line\none,1\r\n\nlast,2'


def _tfrecord(*records):
    def masked(data):
        crc = 0xffffffff
        for byte in data:
            crc ^= byte
            for _ in range(8):
                crc = (crc >> 1) ^ (0x82f63b78 if crc & 1 else 0)
        crc ^= 0xffffffff
        return struct.pack('<I', (((crc >> 15) | (crc << 17)) + 0xa282ead8) & 0xffffffff)
    out = b''
    for record in records:
        size = struct.pack('<Q', len(record))
        out += size + masked(size) + record + masked(record)
    return out


RECORDS = _tfrecord(b'one', b'', b'three')
FIXED = b'hh' + bytes(range(1, 11)) + b'f'
# reader -> [(attributes, contents of two files, how many of three reads find something)]
READERS = {
    'TextLineReaderV2': [({}, LINES, b'second\n', 3), ({'skip_header_lines': 1}, LINES, b'', 2),
                         ({'skip_header_lines': 9}, b'a\nb', b'', 0)],
    'TFRecordReaderV2': [({}, RECORDS, b'', 2), ({'compression_type': 'GZIP'}, gzip.compress(RECORDS), gzip.compress(b''), 2)],
    'WholeFileReaderV2': [({}, LINES, b'', 2)],
    'IdentityReaderV2': [({}, b'a', b'b', 2)],
    'FixedLengthRecordReaderV2': [({'record_bytes': 3, 'header_bytes': 2, 'footer_bytes': 2}, FIXED, FIXED, 3),
                                  ({'record_bytes': 4, 'header_bytes': 1, 'footer_bytes': 2, 'hop_bytes': 2}, FIXED, FIXED, 3)],
}
USES = ['ReaderReadV2', 'ReaderReadUpToV2', 'ReaderNumRecordsProducedV2', 'ReaderNumWorkUnitsCompletedV2', 'ReaderResetV2']


def _reader(op):
    @script(op, *USES)
    def read(b, types):
        path = b.op('Placeholder', dtype='string', shape=[])

        def queue(name, dtype='string'):
            return b.op('FIFOQueueV2', component_types=[dtype], shapes=[[]], shared_name=b.name(name))

        def put(names, contents, name):
            feeds = {path: Path(b.name(name))}
            return [Step(b.op('WriteFile', path, contents), feeds=feeds), Step(b.op('QueueEnqueueV2', names, [path]), feeds=feeds)]
        steps = []
        for number, (attrs, first, second, good) in enumerate(READERS[op]):
            reader, names = b.op(op, shared_name=b.name('r%d' % number), **attrs), queue('q%d' % number)
            # Names without their folder, which differs.
            one, some = ([b.op('RegexReplace', t, '.*/', '') for t in tensors] for tensors in (
                b.op('ReaderReadV2', reader, names), b.op('ReaderReadUpToV2', reader, names, np.int64(2))))
            counts = [b.op(use, reader) for use in USES[2:4]]
            steps += put(names, first, 'a%d' % number) + put(names, second, 'b%d' % number) + [Step(b.op('QueueCloseV2', names))]
            for at, part in enumerate((one, some, one)):
                steps += [Step(*part, error=at >= good), Step(*counts)]
            steps += [Step(b.op('ReaderResetV2', reader)), Step(*counts)]
        if op != 'IdentityReaderV2':
            none = queue('none')
            steps += [Step(b.op('QueueEnqueueV2', none, [path]), feeds={path: Path('missing')}),
                      Step(*b.op('ReaderReadV2', reader, none), error=True)]
        bad, fresh = queue('bad', 'int32'), b.op(op, shared_name=b.name('fresh'), **attrs)
        return steps + [Step(b.op('QueueEnqueueV2', bad, [np.int32(1)])), Step(*b.op('ReaderReadV2', fresh, bad), error=True)]
    return read


for _op in READERS:
    _reader(_op)


@script('DecodeCSV')
def decode_csv(b, types):
    steps = []

    def decode(records, defaults, error=False, **attrs):
        steps.append(Step(*b.op('DecodeCSV', b.hidden(np.array(records, object)), [b.hidden(d) for d in defaults],
                                **attrs), error=error))
    number, real, word = np.array([7], np.int32), np.array([2.5], np.float32), np.array([b'none'], object)
    wanted = np.array([], np.int64)
    decode([[b'1,2.5,a', b' 2 ,1e3,']], [number, real, word])
    decode(b',,', [number, real, word])
    decode([b'"a, ""b""","c\nd"', b'"",x'], [word, word])
    decode([b'a|"b|3', b'c|d|NA'], [word, word, number], field_delim='|', use_quote_delim=False, na_value='NA')
    decode([b'1,2,3,4', b'5,6,7,8'], [wanted, number], select_cols=[1, 3])
    decode([b'\n1,2', b'1,9223372036854775807'], [number, wanted])
    decode(np.zeros([0], object), [number, word])
    decode([b'nan,inf', b'-INF,1e-400'], [real, np.array([1.0])])
    for bad in b'1', b'1,2,3', b'', b'x,1', b'99999999999,1', b'1.5,1', b'1,"a"b', b'1,"a', b'1,a"b', b'1,a\nb':
        decode([bad], [number, word if b'"' in bad or b'\n' in bad else wanted], error=True)
    decode([b',1'], [wanted, number], error=True)
    decode([b'1,2'], [np.array([1, 2], np.int32), number], error=True)
    return steps


types_for('OUT_TYPE', ['float32'], 'DecodeCSV')


@cases('HistogramFixedWidth')
def histogram(op, types):
    name = types['T']
    edges = np.array([-3, 4], numpy_type(name))
    for shape in [17], [0], [2, 3], []:
        for bins in 1, 5, 7:
            yield Case([values(name, shape, -6, 6), edges, np.int32(bins)])
    yield Case([values(name, [3]), edges, np.int32(0)], error=True)
    yield Case([values(name, [3]), edges[::-1], np.int32(3)], error=True)
    yield Case([values(name, [3]), edges[:1], np.int32(3)], error=True)


def _state_of(reader, form):
    def state(b, types):
        handle = b.op(reader + form, shared_name=b.name('reader'))
        first, second = (tf.compat.v1.placeholder(tf.string, []) for _ in range(2))
        queue = b.op('FIFOQueue' + form, component_types=['string'], shapes=[[]], shared_name=b.name('queue'))
        write = [b.op('WriteFile', name, np.array(text, object)) for name, text in ((first, b'one'), (second, b'two'))]
        put = [b.op('QueueEnqueue' + form, queue, [name]) for name in (first, second)]
        counts = [b.op('ReaderNumRecordsProduced' + form, handle), b.op('ReaderNumWorkUnitsCompleted' + form, handle)]
        read, save = b.op('ReaderRead' + form, handle, queue), b.op('ReaderSerializeState' + form, handle)
        fed = tf.compat.v1.placeholder(tf.string)
        restore = b.op('ReaderRestoreState' + form, handle, fed)
        feeds = {first: Path(b.name('a')), second: Path(b.name('b'))}
        value = lambda text: {fed: np.array(text, object)}
        return [Step(*write, feeds=feeds), Step(put[0], feeds=feeds), Step(put[1], feeds=feeds), Step(save), Step(read[1]), Step(*counts),
                Step(restore, feeds=value(b'\x08\x07\x10\x07\x18\x09')), Step(*counts), Step(save), Step(read[1]), Step(*counts),
                Step(restore, feeds=value(b'\x08'), error=True), Step(restore, feeds=value([b'']), error=True),
                Step(restore, feeds=value(b'\x10\x07')), Step(b.op('ReaderReset' + form, handle)), Step(save), Step(*counts)]
    state.__name__ = reader + form
    return state


for _reader in 'IdentityReaderV2', 'WholeFileReaderV2', 'WholeFileReader':
    _form = 'V2' if _reader.endswith('V2') else ''
    script(_reader, *('Reader%s%s' % (_op, _form) for _op in ('SerializeState', 'RestoreState', 'Read', 'NumRecordsProduced',
                                                              'NumWorkUnitsCompleted', 'Reset')))(
        _state_of(_reader[:-2] if _form else _reader, _form))


@script('WholeFileReader', 'ReaderReadUpTo')
def read_up_to_by_name(b, types):
    handle = b.op('WholeFileReader', shared_name=b.name('reader'))
    queue = b.op('FIFOQueue', component_types=['string'], shapes=[[]], shared_name=b.name('queue'))
    name = tf.compat.v1.placeholder(tf.string, [])
    feeds = {name: Path(b.name('a'))}
    return [Step(b.op('WriteFile', name, np.array(b'text', object)), feeds=feeds), Step(b.op('QueueEnqueue', queue, [name]), feeds=feeds),
            Step(b.op('ReaderReadUpTo', handle, queue, np.int64(3))[1])]


@script('TextLineReaderV2', 'ReaderSerializeStateV2')
def lines_have_no_state(b, types):
    return [Step(b.op('ReaderSerializeStateV2', b.op('TextLineReaderV2', shared_name=b.name('reader'))), error=True)]

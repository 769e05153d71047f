# SPDX-License-Identifier: Apache-2.0
"""Protocol buffer messages of a program's own: their fields as tensors, and tensors as their fields."""
import numpy as np
import tensorflow as tf
from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

from cases import Case, cases

KINDS = ['DOUBLE', 'FLOAT', 'INT64', 'UINT64', 'INT32', 'FIXED64', 'FIXED32', 'BOOL', 'STRING', 'MESSAGE', 'BYTES', 'UINT32',
         'ENUM', 'SFIXED32', 'SFIXED64', 'SINT32', 'SINT64']
TYPES = dict(zip(KINDS, 'float64 float32 int64 uint64 int32 uint64 uint32 bool string string string uint32 int32 int32 int64 int32 '
                        'int64'.split()))
WIDER = {'FLOAT': 'float64', 'INT32': 'int64', 'UINT32': 'uint64', 'FIXED32': 'uint64', 'SFIXED32': 'int64', 'SINT32': 'int64'}
LABELS = {'one': 'LABEL_OPTIONAL', 'many': 'LABEL_REPEATED', 'packed': 'LABEL_REPEATED'}


def _descriptors():
    """A message with a field of each kind: `one_int32`, `many_int32`, `packed_int32`, and some with defaults."""
    file = descriptor_pb2.FileDescriptorProto(name='f.proto', package='p', syntax='proto2')
    file.enum_type.add(name='E').value.add(name='ZERO', number=0)
    file.enum_type[0].value.add(name='MINUS', number=-3)
    file.message_type.add(name='Inner').field.add(name='a', number=1, type='TYPE_INT32', label='LABEL_REPEATED')
    outer = file.message_type.add(name='Outer')
    number = 0
    for label in LABELS:
        for kind in KINDS:
            number += 3 if kind == 'BOOL' else 1
            field = outer.field.add(name='%s_%s' % (label, kind.lower()), number=number, type='TYPE_' + kind, label=LABELS[label])
            if kind == 'MESSAGE':
                field.type_name = '.p.Inner'
            elif kind == 'ENUM':
                field.type_name = '.p.E'
            if label == 'packed' and TYPES[kind] != 'string':
                field.options.packed = True
    for kind, default in ('INT32', '-7'), ('FLOAT', '1.5'), ('STRING', 'none'), ('BOOL', 'true'), ('ENUM', 'MINUS'):
        number += 1
        field = outer.field.add(name='default_' + kind.lower(), number=number, type='TYPE_' + kind, label='LABEL_OPTIONAL',
                                default_value=default)
        if kind == 'ENUM':
            field.type_name = '.p.E'
    outer.extension_range.add(start=1000, end=2000)
    file.extension.add(name='more', number=1001, type='TYPE_INT32', label='LABEL_REPEATED', extendee='.p.Outer')
    return file


FILE = _descriptors()
SOURCE = b'bytes://' + descriptor_pb2.FileDescriptorSet(file=[FILE]).SerializeToString()
POOL = descriptor_pool.DescriptorPool()
POOL.Add(FILE)
OUTER = message_factory.GetMessageClass(POOL.FindMessageTypeByName('p.Outer')) if hasattr(
    message_factory, 'GetMessageClass') else message_factory.MessageFactory(POOL).GetPrototype(POOL.FindMessageTypeByName('p.Outer'))
VALUES = {'float64': [0.5, -1e300], 'float32': [0.25, -3.5], 'int64': [-5, 2 ** 60], 'uint64': [7, 2 ** 64 - 1], 'int32': [-6, 2 ** 31 - 1],
          'uint32': [8, 2 ** 32 - 1], 'bool': [True, False], 'string': [b'\xc3\xa4b', b'']}


def _messages():
    full, empty, some = OUTER(), OUTER(), OUTER()
    for label in LABELS:
        for kind in KINDS:
            name = '%s_%s' % (label, kind.lower())
            of = [0, -3] if kind == 'ENUM' else VALUES[TYPES[kind]]
            if kind == 'STRING':
                of = [one.decode() for one in of]
            if kind == 'MESSAGE':
                for message, count in (full, 2), (some, 1):
                    for _ in range(count):
                        inner = getattr(message, name) if label == 'one' else getattr(message, name).add()
                        inner.a.append(count)
            elif label == 'one':
                setattr(full, name, of[0])
                setattr(some, name, of[1])
            else:
                getattr(full, name).extend(of)
                getattr(some, name).extend(of[1:])
    full.default_int32 = 4
    return full, empty, some


FULL, EMPTY, SOME = _messages()
FIELDS = ['%s_%s' % (label, kind.lower()) for label in LABELS for kind in KINDS]
FIELD_TYPES = [TYPES[kind] for _ in LABELS for kind in KINDS]
DEFAULTED = ['default_int32', 'default_float', 'default_string', 'default_bool', 'default_enum']


def _strings(items, shape=None):
    return np.array(items, object).reshape(shape or [len(items)])


def _varint(n):
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


@cases('DecodeProtoV2')
def decode(op, types):
    def case(messages, fields, field_types, shape=None, error=False, **attrs):
        return Case([_strings(messages, shape)], {**dict(message_type='p.Outer', field_names=fields, output_types=field_types,
                                                         descriptor_source=SOURCE), **attrs}, error=error)
    all_three = [m.SerializeToString(deterministic=True) for m in (FULL, EMPTY, SOME)]
    yield case(all_three, FIELDS, FIELD_TYPES)
    yield case(all_three, FIELDS[::-1], FIELD_TYPES[::-1], [1, 3])
    yield case(all_three[:1], FIELDS, FIELD_TYPES, [1])
    yield case([all_three[2]], ['many_int32'], ['int32'], [])
    for label in LABELS:  # TensorFlow gives packed integers that are negative no sign when they become wider.
        wide = [kind for kind in WIDER if label != 'packed' or kind != 'INT32']
        yield case(all_three, ['%s_%s' % (label, kind.lower()) for kind in wide], [WIDER[kind] for kind in wide])
    yield case(all_three, DEFAULTED, ['int32', 'float32', 'string', 'bool', 'int32'])
    yield case(all_three, DEFAULTED[:2], ['int64', 'float64'], sanitize=True)
    yield case([str(m) for m in (FULL, EMPTY)], FIELDS, FIELD_TYPES, message_format='text')
    yield case([all_three[0] + all_three[2], all_three[0] * 3], FIELDS, FIELD_TYPES)
    yield case([_varint(1001 << 3) + b'\x05' + _varint(900 << 3) + b'\x01'], ['p.more', 'one_int32'], ['int32', 'int32'])
    # A field that is not packed in packed form and the other way round, one of another wire type, and what is no message.
    number = {f.name: f.number for f in FILE.message_type[1].field}
    packed = _varint(number['many_int32'] << 3 | 2) + b'\x03\x01\x02\x03'
    single = _varint(number['packed_int32'] << 3) + b'\x09'
    yield case([packed + single, b''], ['many_int32', 'packed_int32'], ['int32'] * 2)
    yield case([_varint(number['one_int32'] << 3 | 5) + b'\x01\x00\x00\x00'], ['one_int32'], ['int32'])
    for bad in b'\x08', b'\xff' * 12, _varint(number['one_string'] << 3 | 2) + b'\x7fab', packed[:-1], b'\x0c', \
            _varint(number['packed_double'] << 3 | 2) + b'\x03abc':
        yield case([bad], ['many_int32', 'one_string', 'packed_double'], ['int32', 'string', 'float64'], error=True)
        yield case([bad], ['many_int32'], ['int32'], sanitize=True, error=True)
    yield case(['many_int32: x'], ['many_int32'], ['int32'], message_format='text', error=True)
    yield case([], ['many_int32'], ['int32'], [0], error=True)
    yield case([b''], ['nothing'], ['int32'], error=True)
    yield case([b''], ['many_int32'], ['float32'], error=True)
    yield case([b''], ['many_int32'], ['int32'], message_type='p.Missing', error=True)
    yield case([b''], ['many_int32'], ['int32'], descriptor_source=b'bytes://x', error=True)
    record = tf.train.Example(features=tf.train.Features(feature={'k': tf.train.Feature(float_list=tf.train.FloatList(value=[1]))}))
    yield case([record.SerializeToString()], ['features'], ['string'], message_type='tensorflow.Example', descriptor_source='local://')


@cases('EncodeProto')
def encode(op, types):
    def case(fields, values, sizes, error=False, **attrs):
        return Case([np.array(sizes, np.int32), values], {**dict(field_names=fields, message_type='p.Outer', descriptor_source=SOURCE),
                                                         **attrs}, error=error)

    def of(kind, wide=False):
        name = WIDER[kind] if wide else TYPES[kind]
        if name == 'string':
            inner = [b'\x08\x05', b''] if kind == 'MESSAGE' else VALUES['string']
            return _strings(inner * 2, [2, 2])
        source = [0, -3] if kind == 'ENUM' else VALUES[TYPES[kind]]
        return np.array([source, source[::-1]], name)
    for label in LABELS:
        sizes = [[1] * len(KINDS), [0] * len(KINDS)] if label == 'one' else [[2] * len(KINDS), [1] * len(KINDS)]
        names = ['%s_%s' % (label, kind.lower()) for kind in KINDS]
        yield case(names, [of(kind) for kind in KINDS], sizes)
        yield case(names[::-1], [of(kind) for kind in KINDS[::-1]], sizes)
        wide = ['%s_%s' % (label, kind.lower()) for kind in WIDER]
        yield case(wide, [of(kind, True) for kind in WIDER], [row[:len(wide)] for row in sizes])
    ints = np.array([[[1, 2], [3, 4]]], np.int32)
    yield case(['many_int32'], [ints], [[[2], [0]]])
    yield case(['many_int32'], [ints[0]], [[3], [0]], error=True)
    yield case(['many_int32'], [ints[0]], [[1]], error=True)
    yield case(['many_int32', 'one_int32'], [ints[0], ints[0][:1]], [[1, 1], [1, 1]], error=True)
    yield case(['many_int32'], [ints[0, 0]], [2], error=True)
    yield case(['many_float'], [ints[0]], [[1], [1]], error=True)
    yield case(['missing'], [ints[0]], [[1], [1]], error=True)
    yield case(['many_int32'], [ints[0]], [[1], [1]], message_type='p.Missing', error=True)

# SPDX-License-Identifier: Apache-2.0
"""What debuggers put into graphs, and what warm starts do."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, Case, Path, Step, cases, edges, is_float, numpy_type, script, types_for, values

types_for('T', ALL_TYPES, 'DebugIdentity', 'DebugIdentityV2', 'DebugIdentityV3', 'Copy', 'CopyHost')


@cases('DebugIdentity', 'DebugIdentityV3', 'Copy', 'CopyHost')
def passes(op, types):
    attrs = {'tensor_name': 'x:0'}
    yield Case([values(types['T'], [2, 3])], attrs)
    yield Case([values(types['T'], [])], attrs)


@cases('DebugIdentityV2')
def passes_v2(op, types):
    yield Case([values(types['T'], [2, 3])], {'tensor_debug_mode': 2})


@script('DebugGradientRefIdentity')
def passes_reference(b, types):
    handle, start, _ = b.variable(np.arange(3, dtype=np.float32))
    again = b.op('DebugGradientRefIdentity', handle)
    return [Step(start), Step(b.op('Identity', again)), Step(b.op('AssignAdd', again, np.ones(3, np.float32)))]


@cases('DebugNanCount')
def nan_count(op, types):
    name = types['T']
    yield Case([edges(name)], {'tensor_name': 'x:0'})
    yield Case([values(name, [0])], {'tensor_name': 'x:0'})
    if is_float(name):
        yield Case([np.array([[np.nan, 1], [np.nan, np.inf]], numpy_type(name))], {'tensor_name': 'x:0'})


@cases('DebugNumericSummary')
def numeric_summary(op, types):
    name = types['T']
    few = values(name, [2, 3])
    for more in {}, {'mute_if_healthy': True}, {'lower_bound': -1.0, 'upper_bound': 2.0}:
        yield Case([few], {'tensor_name': 'x:0', **more})
    yield Case([np.zeros([2, 0], numpy_type(name))], {'tensor_name': 'x:0'})
    if is_float(name):
        yield Case([np.array([np.nan, 1, -np.inf, 3, np.inf, 0], numpy_type(name))], {'tensor_name': 'x:0', 'mute_if_healthy': True})


@script('GenerateVocabRemapping')
def remapping(b, types):
    new, old, fed = (tf.compat.v1.placeholder(tf.string, []) for _ in range(3))
    text = tf.compat.v1.placeholder(tf.string, [])
    write = b.op('WriteFile', fed, text)
    paths = {new: Path(b.name('new')), old: Path(b.name('old'))}

    def put(which, words):
        return Step(write, feeds={fed: paths[which], text: np.array(words, object)})

    def remap(**attrs):
        return b.op('GenerateVocabRemapping', new, old, **attrs)
    steps = [put(new, b'c\na\nnew\nb\n'), put(old, b'a\nb\nc\nd')]
    for attrs in (dict(new_vocab_offset=0, num_new_vocab=4), dict(new_vocab_offset=1, num_new_vocab=2),
                  dict(new_vocab_offset=0, num_new_vocab=4, old_vocab_size=2), dict(new_vocab_offset=0, num_new_vocab=0)):
        steps.append(Step(*remap(**attrs), feeds=paths))
    for attrs in dict(new_vocab_offset=2, num_new_vocab=3), dict(new_vocab_offset=0, num_new_vocab=1, old_vocab_size=9):
        steps.append(Step(*remap(**attrs), feeds=paths, error='any'))
    return steps + [put(old, b'a\na\n'), Step(*remap(new_vocab_offset=0, num_new_vocab=1), feeds=paths, error='any')]


@script('LoadAndRemapMatrix')
def load_and_remap(b, types):
    prefix = tf.compat.v1.placeholder(tf.string, [])
    feeds = {prefix: Path(b.name('checkpoint'))}
    save = b.op('SaveV2', prefix, np.array([b'm', b'i', b'v'], object), np.array([b'', b'', b''], object),
                [values('float32', [4, 3]), values('int32', [4, 3]), values('float32', [4])])

    def load(rows, columns, initial, name=b'm', **attrs):
        shape = dict(num_rows=len(rows), num_cols=len(columns) or 3)
        return b.op('LoadAndRemapMatrix', prefix, np.array(name, object), b.hidden(np.array(rows, np.int64)),
                    b.hidden(np.array(columns, np.int64)), b.hidden(np.array(initial, np.float32)), **{**shape, **attrs})
    good = [load([0, 1, 2, 3], [], []), load([2, -1, 0], [], [7, 8, 9]), load([3, -1], [1, -1, 0, 2], [1, 2, 3, 4, 5]),
            load([-1], [], [1, 2, 3]), load([2, 0], [1], [], max_rows_in_memory=1)]
    bad = [load([0, 0], [], []), load([0], [1, 1], []), load([0, -1], [], [1, 2]), load([0], [], [1]), load([9], [], []),
           load([0], [], [], b'i'), load([0], [], [], b'v'), load([0], [], [], b'nothing'), load([0, 1], [], [], num_rows=3),
           load([0], [], [], num_cols=2)]
    return [Step(save, feeds=feeds)] + [Step(x, feeds=feeds) for x in good] + [Step(x, feeds=feeds, error='any') for x in bad]


@cases('NearestNeighbors')
def nearest(op, types):
    points, centers = values('float32', [5, 3]), values('float32', [4, 3], key=1)
    for k in 0, 1, 3, 9:
        yield Case([points, centers, np.int64(k)])
    yield Case([points[:0], centers, np.int64(2)], error=True)
    yield Case([points, values('float32', [4, 2]), np.int64(1)], error=True)
    yield Case([points[0], centers, np.int64(1)], error=True)


@script('CompositeTensorVariantFromComponents', 'CompositeTensorVariantToComponents')
def composite(b, types):
    spec = tf.RaggedTensorSpec([None, None], tf.float32)
    from tensorflow.core.protobuf import composite_tensor_variant_pb2
    from tensorflow.python.saved_model import nested_structure_coder
    metadata = composite_tensor_variant_pb2.CompositeTensorVariantMetadata()
    metadata.type_spec_proto.CopyFrom(nested_structure_coder.encode_structure(spec).type_spec_value)
    said = metadata.SerializeToString()
    made = b.op('CompositeTensorVariantFromComponents', [values('float32', [3]), np.array([0, 1, 3], np.int64)], metadata=said)

    def parts(*dtypes):
        return b.op('CompositeTensorVariantToComponents', made, metadata=said, Tcomponents=list(dtypes))
    return [Step(*parts('float32', 'int64')), Step(*parts('float32'), error='any'), Step(*parts('float32', 'int32'), error='any')]


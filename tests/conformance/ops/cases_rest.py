# SPDX-License-Identifier: Apache-2.0
"""Ops that few programs use: For, devices by number, fingerprints, scripts of characters, first checkpoints, clusters."""
import numpy as np
import tensorflow as tf

from cases import Case, Path, Step, cases, edges, is_float, numpy_type, script, types_for, values

types_for('T', ['float32', 'int32', 'string', 'bool', 'complex64'], 'Fingerprint')
types_for('dtype', ['float32'], 'HostConst')
types_for('Tvalues', ['float32'], 'RaggedTensorToVariantGradient')
types_for('T', ['float32', 'float64', 'int32', 'uint8', 'bool', 'string'], 'ToBool')
types_for('T', ['float32', 'int64', 'string'], 'RaggedFillEmptyRows')
types_for('T', ['float32', 'float64', 'bfloat16', 'int32', 'bool'], 'DebugNumericSummaryV2')
types_for('output_dtype', ['float32', 'float64'], 'IsotonicRegression')


@script('For')
def for_loop(b, types):
    @tf.function(input_signature=[tf.TensorSpec([], tf.int32), tf.TensorSpec([], tf.float32), tf.TensorSpec([None], tf.int32)])
    def body(i, x, y):
        return x * 2 + tf.cast(i, tf.float32), tf.concat([y, [i]], 0)
    body = body.get_concrete_function()
    body.add_to_graph(tf.compat.v1.get_default_graph())
    steps = []
    for start, limit, delta, error in ((0, 5, 1, False), (5, 0, -2, False), (3, 3, 0, False), (0, 7, 3, False), (0, 5, 0, True),
                                       (5, 0, 1, True), (0, 5, -1, True)):
        numbers = [b.hidden(np.int32(x)) for x in (start, limit, delta)]
        steps.append(Step(*b.op('For', *numbers, [tf.constant(1.5), tf.constant([9])], body=body), error=error))
    return steps


@script('DeviceIndex')
def device_index(b, types):
    return [Step(*(b.op('DeviceIndex', device_names=names) for names in (['CPU', 'GPU'], ['GPU', 'CPU'], ['GPU', 'TPU'], [])))]


@script('SyncDevice')
def sync_device(b, types):
    return [Step(b.op('SyncDevice'))]


@script('HostConst')
def host_const(b, types):
    return [Step(b.op('HostConst', value=tf.make_tensor_proto([1.5, 2]), dtype=tf.float32),
                 b.op('HostConst', value=tf.make_tensor_proto('text'), dtype=tf.string))]


@cases('Fingerprint')
def fingerprint(op, types):
    method = np.array(b'farmhash64', object)
    for shape in [4], [3, 2], [2, 3, 2], [0, 3]:
        yield Case([values(types['T'], shape), method])
    yield Case([values(types['T'], []), method], error=True)
    yield Case([values(types['T'], [2]), np.array(b'other', object)], error=True)


@cases('CheckNumericsV2')
def check_numerics(op, types):
    number = numpy_type(types['T'])
    attrs = {'message': 'here'}
    yield Case([values(types['T'], [3, 2])], attrs)
    for bad in [1, np.inf], [-np.inf, 2], [np.nan], [np.nan, np.inf, -np.inf]:
        yield Case([np.array(bad, number)], attrs, error=True)


@cases('UnicodeScript')
def unicode_script(op, types):
    text = 'aZ1 \n.äßЖעبคहა中かカ한😀œΩ'
    yield Case([np.array([ord(c) for c in text], np.int32)])
    yield Case([np.arange(0, 0x800, 7, dtype=np.int32)])
    yield Case([np.array([[0x10FFFF, 0x110000], [-1, 0x378]], np.int32)])
    yield Case([np.array([], np.int32)])


@cases('ToBool')
def to_bool(op, types):
    name = types['T']
    yield Case([values(name, [])])
    yield Case([np.zeros([], numpy_type(name)) if name != 'string' else np.array(b'', object)])
    yield Case([values(name, [0])])
    yield Case([values(name, [2, 2])])
    if is_float(name):
        yield Case([np.array(np.nan, numpy_type(name))])


@cases('IsotonicRegression')
def isotonic(op, types):
    attrs = {'output_dtype': types['output_dtype']}
    yield Case([values(types['T'], [3, 7])], attrs)
    yield Case([values(types['T'], [1])], attrs)
    yield Case([values(types['T'], [2, 0])], attrs)
    yield Case([values(types['T'], [2, 2, 40], key=1)], attrs)


@script('ApproxTopK')
def approx_top_k(b, types):
    x = b.constant(np.random.RandomState(3).permutation(60).reshape(3, 20).astype(numpy_type(types['T'])))
    return [Step(*(t for k in (0, 1, 5, 20) for t in b.op('ApproxTopK', x, k=k)))]


@cases('RaggedFillEmptyRows')
def fill_empty_rows(op, types):
    name = types['T']
    default = values(name, [], key=3)
    for rows, count in ([0, 0, 3], 5), ([3, 0, 0], 4), ([], 2), ([1], 2):
        yield Case([np.array(rows, np.int64), values(name, [len(rows)]), np.int64(count), default])
    yield Case([np.array([0, 5]), values(name, [2]), np.int64(2), default], error=True)
    yield Case([np.array([0, -1]), values(name, [2]), np.int64(2), default], error=True)


@cases('RaggedFillEmptyRowsGrad')
def fill_empty_rows_gradient(op, types):
    name = types['T']
    yield Case([np.array([0, 1, 4]), values(name, [6])])
    yield Case([np.array([], np.int64), values(name, [2])])
    yield Case([np.array([0, 6]), values(name, [6])], error=True)


@script('RaggedTensorToVariantGradient', 'RaggedTensorToVariant')
def to_variant_gradient(b, types):
    name = types['Tvalues']
    splits, shape = np.array([0, 2, 2, 5]), np.array([5, 2], np.int32)
    rows = b.op('RaggedTensorToVariant', [b.hidden(splits)], b.hidden(values('float32', [5, 2])), batched_input=True)
    whole = b.op('RaggedTensorToVariant', [], b.hidden(values('float32', [5, 2])), batched_input=False, Tsplits=tf.int64)
    each = b.op('RaggedTensorToVariant', [], b.hidden(values('float32', [5, 2])), batched_input=True, Tsplits=tf.int64)
    if name != 'float32':
        return []

    def gradient(encoded, cuts):
        return b.op('RaggedTensorToVariantGradient', encoded, cuts, b.hidden(shape), Tvalues=name)
    return [Step(gradient(rows, b.hidden(splits))), Step(gradient(whole, np.int64(0))), Step(gradient(each, np.int64(0)))]


@cases('DebugNumericSummaryV2')
def numeric_summary(op, types):
    name = types['T']
    sick = edges(name) if is_float(name) else values(name, [7])
    for mode in 2, 3, 4, 5, 8:
        for x in sick, values(name, [2, 3]), values(name, []), values(name, [2, 0, 1, 1, 2, 3, 4]):
            yield Case([x], {'tensor_debug_mode': mode, 'tensor_id': 7, 'output_dtype': 'float64'})


@cases('KmeansPlusPlusInitialization')
def k_means(op, types):
    # Distances that floats hold exactly, so that every order of sums is the same.
    points = np.random.RandomState(4).randint(-9, 10, [30, 2]).astype(np.float32)
    for seed in 0, 1, 77:
        for retries in 0, 2, -1:
            yield Case([points, np.int64(5), np.int64(seed), np.int64(retries)])
    yield Case([points, np.int64(0), np.int64(1), np.int64(0)], error=True)
    yield Case([points, np.int64(31), np.int64(1), np.int64(0)], error=True)


@cases('KMC2ChainInitialization')
def chain(op, types):
    for seed in 0, 5, 123456789:
        yield Case([np.random.RandomState(seed % 100).rand(40).astype(np.float32), np.int64(seed)])
    yield Case([np.zeros([0], np.float32), np.int64(0)], error=True)


@script('SaveSlices', 'Save', 'Restore', 'RestoreSlice', 'RestoreV2')
def first_checkpoints(b, types):
    name, plain, pattern = (tf.compat.v1.placeholder(tf.string) for _ in range(3))
    feeds = {name: Path('slices'), plain: Path('plain'), pattern: Path('sl*')}
    kinds = ['float32', 'float64', 'int32', 'int64', 'int16', 'int8', 'uint8', 'bool', 'string', 'float16', 'complex64', 'complex128']
    tensors = [b.constant(values(kind, [2, 3]), tf.as_dtype(kind)) for kind in kinds]
    half = b.constant(values('float32', [2, 2]))
    parts = b.op('SaveSlices', name, kinds + ['part', 'part'], [''] * len(kinds) + ['4 2 0,2:-', '4 2 2,2:-'], tensors + [half, half])
    whole = b.op('Save', plain, kinds, tensors)
    steps = [Step(parts, whole, feeds=feeds)]
    for kind in kinds:
        steps.append(Step(b.op('Restore', pattern, kind, dt=kind), b.op('Restore', plain, kind, dt=kind), feeds=feeds))
    steps.append(Step(b.op('Restore', pattern, 'part', dt='float32'), b.op('RestoreSlice', pattern, 'part', '4 2 1,2:-', dt='float32'),
                      b.op('RestoreSlice', name, 'float32', '2 3 -:1,2', dt='float32'), feeds=feeds))
    steps.append(Step(*b.op('RestoreV2', plain, ['float32', 'string'], ['', ''], dtypes=['float32', 'string']), feeds=feeds))
    steps.append(Step(b.op('Restore', pattern, 'missing', dt='float32'), feeds=feeds, error=True))
    steps.append(Step(b.op('Restore', pattern, 'float32', dt='int32'), feeds=feeds, error=True))
    return steps


@script('CompressElement', 'UncompressElement')
def compressed(b, types):
    parts = [values('float32', [300]), values('string', [3]), values('int64', [])]
    kinds = ['float32', 'string', 'int64']
    squeezed = b.op('CompressElement', [b.constant(p, tf.as_dtype(k)) for p, k in zip(parts, kinds)])
    shapes = [[300], [3], []]
    return [Step(*b.op('UncompressElement', squeezed, output_types=kinds, output_shapes=shapes)),
            Step(*b.op('UncompressElement', squeezed, output_types=kinds[:2], output_shapes=shapes[:2]), error=True),
            Step(*b.op('UncompressElement', squeezed, output_types=kinds[::-1], output_shapes=shapes[::-1]), error=True)]

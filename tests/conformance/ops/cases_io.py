# SPDX-License-Identifier: Apache-2.0
"""Checkpoints, strings and summaries."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, Case, Path, Step, cases, edges, is_float, numpy_type, script, types_for, values


def strings(*items):
    return np.array([i.encode() if isinstance(i, str) else i for i in items], object)


def text(item):
    return np.array(item.encode() if isinstance(item, str) else item, object)


@script('SaveV2', 'RestoreV2')
def save_restore(b, types):
    prefix = b.op('Placeholder', dtype='string', shape=None)
    feeds = {prefix: Path(b.name('all'))}
    tensors = [values(t, [2, 3]) for t in ALL_TYPES] + [values('float32', []), values('int64', [0, 2]), values('string', []), values('float32', [300, 40])]
    names = strings(*['t%d/%s' % (i, 'x' * i) for i in range(len(tensors))])
    none = strings(*[''] * len(tensors))
    save = b.op('SaveV2', prefix, names, none, tensors)
    dtypes = ALL_TYPES + ['float32', 'int64', 'string', 'float32']
    restore = b.op('RestoreV2', prefix, names, none, dtypes=dtypes)
    missing = b.op('RestoreV2', prefix, strings('nothing'), strings(''), dtypes=['float32'])
    wrong_type = b.op('RestoreV2', prefix, strings('t0/'), strings(''), dtypes=['int32'])
    part = b.op('RestoreV2', prefix, strings('t2/xx'), strings('2 3 0,1:1,2'), dtypes=[ALL_TYPES[2]])
    bad_slice = b.op('RestoreV2', prefix, strings('t2/xx'), b.hidden(strings('2 3 0,5:1,2')), dtypes=[ALL_TYPES[2]])
    elsewhere = {prefix: Path(b.name('nowhere'))}
    counts = b.op('SaveV2', prefix, b.hidden(strings('a', 'b')), b.hidden(strings('', '')), [values('float32', [1])])
    return [Step(save, feeds=feeds), Step(*restore, feeds=feeds), Step(*part, feeds=feeds), Step(*missing, feeds=feeds, error=True),
            Step(*wrong_type, feeds=feeds, error=True), Step(*bad_slice, feeds=feeds, error=True),
            Step(*missing, feeds=elsewhere, error=True), Step(counts, feeds=elsewhere, error=True)]


@script('MergeV2Checkpoints')
def merge_checkpoints(b, types):
    first, second, merged = (b.op('Placeholder', dtype='string', shape=[]) for _ in range(3))
    feeds = {first: Path(b.name('part0')), second: Path(b.name('part1')), merged: Path(b.name('merged'))}

    def save(prefix, key):
        return b.op('SaveV2', prefix, strings('v%d' % key, 'w'), strings('', '4 2 %d,2:0,2' % (2 * key)),
                    [values('float32', [3], key=key), values('float32', [2, 2], key=key)])
    merge = b.op('MergeV2Checkpoints', b.op('Pack', [first, second]), merged, delete_old_dirs=False)
    restore = b.op('RestoreV2', merged, strings('v0', 'v1', 'w', 'w'), strings('', '', '', '4 2 1,2:0,2'), dtypes=['float32'] * 4)
    return [Step(save(first, 0), feeds=feeds), Step(save(second, 1), feeds=feeds), Step(merge, feeds=feeds), Step(*restore, feeds=feeds),
            Step(merge, feeds={**feeds, first: Path('nowhere')}, error=True)]


@cases('ShardedFilename')
def sharded_filename(op, types):
    for shard, count in (0, 1), (3, 12), (99999, 100000):
        yield Case([text('/tmp/model.ckpt'), np.array(shard, np.int32), np.array(count, np.int32)])


@cases('ShardedFilespec')
def sharded_filespec(op, types):
    yield Case([text('/tmp/model.ckpt'), np.array(7, np.int32)])


@cases('StringJoin')
def string_join(op, types):
    yield Case([[strings('a', 'b'), strings('c', 'd')]])
    yield Case([[strings('a', 'b'), text('c'), strings('', '\x00')]], {'separator': ', '})
    yield Case([[text('a')]], {'separator': '-'})
    yield Case([[strings(), strings()]])
    yield Case([[strings('a', 'b'), strings('c', 'd', 'e')]], error=True)


@cases('StaticRegexFullMatch')
def static_regex(op, types):
    for pattern in '^s3://.*', '', 'a+b?', '(a|b)*', '.*\\d{2}', '[^x]*':
        yield Case([strings('', 's3://bucket', 'aab', 'abab', 'x12', 'a\nb')], {'pattern': pattern})
    yield Case([text('ab')], {'pattern': 'ab'})
    yield Case([text('ab')], {'pattern': '(ab'}, error=True)


@cases('RegexFullMatch')
def regex(op, types):
    yield Case([strings('', 'aab', 'b'), text('a*b')])
    yield Case([strings('a'), text('(')], error=True)
    yield Case([strings('a'), strings('a', 'b')], error=True)


@cases('ScalarSummary')
def scalar_summary(op, types):
    name = types['T']
    yield Case([text('loss'), values(name, [])])
    yield Case([strings('a', 'b/c'), values(name, [2])])
    if is_float(name):
        yield Case([text('nan'), np.array(np.nan, numpy_type(name))])
    yield Case([strings('a', 'b'), values(name, [3])], error=True)
    yield Case([strings('a'), values(name, [])], error=True)


@cases('HistogramSummary')
def histogram_summary(op, types):
    name = types['T']
    yield Case([text('values'), values(name, [1037])])
    yield Case([text('few'), values(name, [2, 3])])
    yield Case([text('empty'), values(name, [0])])
    yield Case([text('zeros'), np.zeros([4], numpy_type(name))])
    if is_float(name):
        yield Case([text('small'), (values('float64', [50]) * 1e-4).astype(numpy_type(name))])
        yield Case([text('bad'), np.array([1, np.nan], numpy_type(name))], error=True)
        yield Case([text('bad'), np.array([1, np.inf], numpy_type(name))], error=True)


@script('MergeSummary')
def merge_summary(b, types):
    parts = [b.op('ScalarSummary', text(tag), np.float32(i)) for i, tag in enumerate(['a', 'b', 'c/d'])]
    return [Step(b.op('MergeSummary', parts)), Step(b.op('MergeSummary', parts[:1])),
            Step(b.op('MergeSummary', [parts[0], parts[0]]), error=True),
            Step(b.op('MergeSummary', [b.hidden(text('no summary'))]), error=True)]


@cases('ImageSummary')
def image_summary(op, types):
    name = types['T']
    for shape in [1, 4, 4, 1], [5, 8, 8, 3], [2, 3, 5, 4]:
        x = values(name, shape, 0, 255)
        yield Case([text('digits'), x])
    if is_float(name):
        yield Case([text('signed'), values(name, [2, 4, 4, 3])], {'max_images': 1})
        x = values(name, [1, 3, 3, 1]).copy()
        x[0, 1, 1, 0] = np.nan
        yield Case([text('bad'), x])
    yield Case([text('flat'), values(name, [4, 4], 0, 255)], error=True)
    yield Case([text('two'), values(name, [1, 4, 4, 2], 0, 255)], error=True)


@cases('AudioSummaryV2')
def audio_summary(op, types):
    for shape in [1, 100], [4, 50, 2], [2, 30, 1]:
        yield Case([text('wave'), values('float32', shape, -1, 1), np.array(8000, np.float32)])
    yield Case([text('flat'), values('float32', [8], -1, 1), np.array(8000, np.float32)], error=True)


@cases('TensorSummaryV2')
def tensor_summary_v2(op, types):
    metadata = tf.compat.v1.SummaryMetadata(summary_description='note').SerializeToString()
    yield Case([text('note'), values(types['T'], [2, 3]), text(metadata)])
    yield Case([text('note'), values(types['T'], []), text('')])


@cases('TensorSummary')
def tensor_summary(op, types):
    yield Case([values(types['T'], [2])], {'description': 'note', 'display_name': 'notes'})


types_for('T', ALL_TYPES, 'TensorSummaryV2', 'TensorSummary')

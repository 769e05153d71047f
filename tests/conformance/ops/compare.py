# SPDX-License-Identifier: Apache-2.0
"""Compares what weft returned with what TensorFlow returned."""
import numpy as np
import tensorflow as tf

from tolerances import EPSILON, tolerance

SUMMARIES = {'ScalarSummary', 'HistogramSummary', 'MergeSummary', 'ImageSummary', 'AudioSummaryV2', 'TensorSummaryV2',
             'TensorSummary'}


def _float_gap(op, name, got, want):
    """None, or what is wrong between two float64 arrays that hold values of dtype `name`."""
    limit = tolerance(op, name)
    info = tf.as_dtype(name)
    tiny = float(np.finfo(np.float32 if name == 'bfloat16' else info.as_numpy_dtype).tiny)
    finite = np.isfinite(want)
    same = (np.isnan(got) & np.isnan(want)) | (got == want)
    with np.errstate(all='ignore'):
        gap = np.abs(got - want)
        allowed = limit.ulps * EPSILON[name] * np.abs(want)
        allowed = np.maximum(allowed, limit.floor * EPSILON[name])
        if limit.scale and finite.any():
            allowed = np.maximum(allowed, limit.scale * EPSILON[name] * np.abs(want[finite]).max())
    near = finite & np.isfinite(got) & (gap <= np.maximum(allowed, tiny))
    # What rounds to infinity in one order of operations may stay the largest number in another.
    if limit.ulps:
        top = float(info.max) * (1 - 4 * EPSILON[name])
        near |= (np.abs(got) >= top) & (np.abs(want) >= top) & (np.sign(got) == np.sign(want))
    bad = ~(same | near)
    if not bad.any():
        return None
    with np.errstate(all='ignore'):
        ulps = gap / np.maximum(np.abs(want) * EPSILON[name], tiny)
    worst = np.unravel_index(np.argmax(np.where(bad, np.where(np.isfinite(ulps), ulps, 1e300), -1)), want.shape)
    return '%d of %d values differ; at %s got %r, want %r (%.3g ulp; allowed %s ulp, %s of the largest, %s of 1)' % (
        bad.sum(), want.size, list(map(int, worst)), float(got[worst]), float(want[worst]), ulps[worst], *limit)


def _summary(data):
    proto = tf.compat.v1.Summary.FromString(data)
    rows = []
    for value in proto.value:
        kind = value.WhichOneof('value')
        row = {'tag': value.tag, 'kind': kind, 'metadata': value.metadata.SerializeToString()}
        if kind == 'simple_value':
            row['numbers'] = [value.simple_value]
        elif kind == 'histo':
            h = value.histo
            row['numbers'] = [h.min, h.max, h.num, h.sum, h.sum_squares] + list(h.bucket_limit) + list(h.bucket)
        elif kind == 'image':
            image = value.image
            row['fields'] = (image.height, image.width, image.colorspace)
            with tf.Graph().as_default(), tf.compat.v1.Session() as session:
                row['fields'] += (session.run(tf.io.decode_png(image.encoded_image_string)).tobytes(),)
        else:
            row['fields'] = value.SerializeToString()
        rows.append(row)
    return rows


def _summary_gap(op, got, want):
    got_rows, want_rows = _summary(got), _summary(want)
    if len(got_rows) != len(want_rows):
        return 'the summary has %d values, want %d' % (len(got_rows), len(want_rows))
    for mine, theirs in zip(got_rows, want_rows):
        a, b = mine.pop('numbers', []), theirs.pop('numbers', [])
        if mine != theirs or len(a) != len(b):
            return 'the summary differs: got %.200r, want %.200r' % ((mine, a), (theirs, b))
        why = _float_gap(op, 'float32', np.array(a, np.float64), np.array(b, np.float64)) if b else None
        if why:
            return 'in the summary %s: %s' % (theirs['tag'], why)
    return None


def difference(op, got, want, replace):
    """None if `got` is what TensorFlow returned, else what differs. `replace` is ((ours, theirs) folder)."""
    # numpy's own byte strings lose trailing zeros.
    got, want = (np.array(x, object) if isinstance(x, bytes) else np.asarray(x) for x in (got, want))
    if got.dtype != want.dtype and not (got.dtype.kind in 'OSU' and want.dtype.kind in 'OSU'):
        return 'dtype %s, want %s' % (got.dtype, want.dtype)
    if got.shape != want.shape:
        return 'shape %s, want %s' % (list(got.shape), list(want.shape))
    if want.dtype.kind in 'OSU':
        ours, theirs = (folder.encode() for folder in replace)
        for a, b in zip(got.reshape(-1), want.reshape(-1)):
            a, b = (s.encode() if isinstance(s, str) else bytes(s) for s in (a, b))
            if op in SUMMARIES:
                why = _summary_gap(op, a, b)
                if why:
                    return why
            elif a.replace(ours, b'') != b.replace(theirs, b''):
                return 'got %.200r, want %.200r' % (a, b)
        return None
    name = tf.as_dtype(want.dtype).name
    if name in EPSILON:
        return _float_gap(op, name, got.astype(np.float64), want.astype(np.float64))
    if name in ('complex64', 'complex128'):
        part = 'float32' if name == 'complex64' else 'float64'
        pair = [np.stack([x.real, x.imag]).astype(np.float64) for x in (got, want)]
        # Parts may cancel, so the size of the whole number counts.
        size = np.abs(want)
        finite = np.isfinite(size)
        with np.errstate(all='ignore'):
            gap = np.abs(got - want)
        if (gap[finite] <= max(8, tolerance(op, name).ulps) * EPSILON[part] * np.maximum(size[finite], 1e-30)).all() and (
                np.isfinite(got) == np.isfinite(want)).all():
            return None
        return _float_gap(op, part, *pair)
    bad = got != want
    if not bad.any():
        return None
    at = tuple(int(i) for i in np.argwhere(bad)[0])
    return '%d of %d values differ; at %s got %r, want %r' % (bad.sum(), want.size, list(at), got[at], want[at])

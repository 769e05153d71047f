# SPDX-License-Identifier: Apache-2.0
"""What weft's catalogue says of its ops, and what TensorFlow's registries say of theirs."""
import functools
import itertools
import json
import subprocess

from google.protobuf import json_format
from tensorflow.core.framework import op_def_pb2
from tensorflow.python.framework import kernels, op_def_registry
import tensorflow as tf

from cases import ALL_TYPES, DEFAULT_TYPES

_INDEX_TYPES = {'int16', 'int32', 'int64', 'uint16'}
_FLAGS = ('is_aggregate', 'is_stateful', 'is_commutative', 'allows_uninitialized_input', 'is_distributed_communication')


@functools.lru_cache(None)
def op_def(op):
    return op_def_registry.get(op)


def read_catalogue(binary):
    """{name: OpDef}, or None if the server is not weft. `weft inspect --ops` prints OpDefs as protobuf's JSON."""
    run = subprocess.run([binary, 'inspect', '--ops'], stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    if run.returncode:
        if b'stand_in.py' in run.stderr:
            return None
        raise RuntimeError('%s inspect --ops: %s' % (binary, run.stderr.decode()))
    ops = [json_format.ParseDict(op, op_def_pb2.OpDef(), ignore_unknown_fields=True) for op in json.loads(run.stdout)]
    return {op.name: op for op in ops}


def _names(types):
    return [tf.as_dtype(t).name for t in types]


def _args(args):
    return [(a.name, a.type and tf.as_dtype(a.type).name, a.type_attr, a.number_attr, a.type_list_attr, a.is_ref) for a in args]


def _default(attr):
    if not attr.HasField('default_value'):
        return None
    if attr.type == 'tensor':  # whose values have two forms
        value = tf.make_ndarray(attr.default_value.tensor)
        return value.dtype.name, value.tolist()
    return attr.default_value.SerializeToString(deterministic=True)


def _attr(attr):
    allowed = attr.allowed_values.list
    return {'type': attr.type,
            'default': _default(attr),
            'minimum': attr.minimum if attr.has_minimum else None,
            'allowed types': sorted(_names(allowed.type)), 'allowed strings': sorted(allowed.s)}


def signature_gaps(mine):
    """How an OpDef of ours differs from TensorFlow's. Ours are those of the newest: an older one may lack attributes."""
    theirs = op_def(mine.name)
    if tuple(map(int, tf.__version__.split('.')[:2])) < (2, 21):
        return []
    if theirs is None:
        return [] if mine.name.startswith('_') else ['TensorFlow %s has no such op' % tf.__version__]
    gaps = []
    for what, a, b in (('inputs', _args(mine.input_arg), _args(theirs.input_arg)),
                       ('outputs', _args(mine.output_arg), _args(theirs.output_arg)),
                       ('attributes', sorted(x.name for x in mine.attr), sorted(x.name for x in theirs.attr))):
        if a != b:
            gaps.append('%s are %s, TensorFlow has %s' % (what, a, b))
    ours = {a.name: _attr(a) for a in mine.attr}
    for attr in theirs.attr:
        a, b = ours.get(attr.name), _attr(attr)
        for key in b if a else ():
            if a[key] != b[key]:
                gaps.append('attribute %s: %s is %s, TensorFlow has %s' % (attr.name, key, a[key], b[key]))
    for flag in _FLAGS:
        if getattr(mine, flag) != getattr(theirs, flag):
            gaps.append('%s is %s, TensorFlow has %s' % (flag, getattr(mine, flag), getattr(theirs, flag)))
    if mine.deprecation.version != theirs.deprecation.version:
        gaps.append('deprecated since %d, TensorFlow says %d' % (mine.deprecation.version, theirs.deprecation.version))
    return gaps


def type_sets(op):
    """The sets of types {attr: dtype name} to try: those of TensorFlow's CPU kernels. The second attribute and those after
    it take their other values only beside the first type, so that their number stays small."""
    definition = op_def(op)
    type_attrs = [a for a in definition.attr if a.type == 'type']
    rows = []
    for kernel in kernels.get_registered_kernels_for_op(op).kernel:
        if kernel.device_type not in ('CPU', 'DEFAULT') or kernel.label:
            continue
        fixed = {c.name: _names(c.allowed_values.list.type) for c in kernel.constraint}
        choices = []
        for attr in type_attrs:
            if (op, attr.name) in DEFAULT_TYPES:
                choice = DEFAULT_TYPES[op, attr.name]
                choice = [t for t in choice if t in fixed.get(attr.name, choice)]
            elif attr.name in fixed:
                choice = fixed[attr.name]
            else:
                choice = _names(attr.allowed_values.list.type) or ALL_TYPES
            legal = _names(attr.allowed_values.list.type) or ALL_TYPES
            choices.append([t for t in choice if t in ALL_TYPES and t in legal])
        rows += itertools.product(*choices)
    rows = sorted(set(rows), key=lambda row: [ALL_TYPES.index(t) for t in row])
    names = [a.name for a in type_attrs]
    lead = 'float32' if any(row and row[0] == 'float32' for row in rows) else rows[0][0] if rows and rows[0] else None
    first = {}
    kept = []
    for row in rows:
        rest = row[1:]
        full = any((op, n) in DEFAULT_TYPES for n in names[1:])
        if full or row[:1] == (lead,) or first.setdefault(row[:1], rest) == rest:
            kept.append(dict(zip(names, row)))
    return kept or [{}]

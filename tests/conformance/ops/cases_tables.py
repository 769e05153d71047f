# SPDX-License-Identifier: Apache-2.0
"""Lookup tables: entries given once, at any time, or by a file."""
import numpy as np
import tensorflow as tf

from cases import Path, Step, numpy_type, script

FORMS = [('HashTable', ''), ('HashTableV2', 'V2')]


def _keys(dtype, *numbers):
    if dtype == 'string':
        return np.array([('k%d' % n).encode() for n in numbers], object)
    return np.array(numbers, numpy_type(dtype))


def _values(dtype, *numbers):
    if dtype == 'string':
        return np.array([('v%d' % n).encode() for n in numbers], object)
    return np.array([n % 2 for n in numbers] if dtype == 'bool' else numbers, numpy_type(dtype))


def _fixed(form):
    def fixed(b, types):
        key, value = types['key_dtype'], types['value_dtype']
        table = b.op('HashTable' + form, key_dtype=key, value_dtype=value, shared_name=b.name('t'))
        fallback = _values(value, 9).reshape([])
        find = b.op('LookupTableFind' + form, table, b.hidden(_keys(key, 1, 5, 3).reshape(1, 3)), fallback)
        size = b.op('LookupTableSize' + form, table)
        start = b.op('InitializeTable' + form, table, _keys(key, 1, 2, 3), _values(value, 10, 21, 30))
        other = b.op('InitializeTable' + form, table, _keys(key, 1), _values(value, 10))
        ragged = b.op('InitializeTable' + form, table, b.hidden(_keys(key, 1, 2)), b.hidden(_values(value, 1)))
        bad_fallback = b.op('LookupTableFind' + form, table, _keys(key, 1), b.hidden(_values(value, 9, 8)))
        of_each = b.op('LookupTableFind' + form, table, _keys(key, 7, 3), b.hidden(_values(value, 9, 8)))
        return [Step(find, error=True), Step(size), Step(start), Step(find), Step(size), Step(start),
                Step(other, error=True), Step(ragged, error=True), Step(find), Step(bad_fallback, error=True), Step(of_each)]
    fixed.__name__ = 'HashTable' + form
    return fixed


def _mutable(form):
    def mutable(b, types):
        key, value = types['key_dtype'], types['value_dtype']
        table = b.op('MutableHashTable' + form, key_dtype=key, value_dtype=value, shared_name=b.name('t'))
        fallback = _values(value, 9).reshape([])
        find = b.op('LookupTableFind' + form, table, _keys(key, 1, 5, 3), fallback)
        size = b.op('LookupTableSize' + form, table)
        insert = b.op('LookupTableInsert' + form, table, _keys(key, 1, 2, 1), _values(value, 10, 20, 12))
        replace = b.op('LookupTableImport' + form, table, _keys(key, 5), _values(value, 50))
        export = b.op('LookupTableExport' + form, table, Tkeys=key, Tvalues=value)
        steps = [Step(find), Step(insert), Step(find), Step(size), Step(replace), Step(find), Step(size), Step(*export)]
        if form:
            steps += [Step(b.op('LookupTableRemoveV2', table, _keys(key, 5, 6))), Step(find), Step(size)]
        return steps
    mutable.__name__ = 'MutableHashTable' + form
    return mutable


for _form in '', 'V2':
    _uses = [_op + _form for _op in ('LookupTableFind', 'LookupTableSize')]
    script('HashTable' + _form, 'InitializeTable' + _form, *_uses)(_fixed(_form))
    _more = [_op + _form for _op in ('LookupTableInsert', 'LookupTableImport', 'LookupTableExport')]
    script('MutableHashTable' + _form, *(_more + (['LookupTableRemoveV2'] if _form else [])))(_mutable(_form))


def _from_file(form):
    def from_file(b, types):
        path = Path(b.name('vocabulary'))
        fed = tf.compat.v1.placeholder(tf.string, [])
        write = b.op('WriteFile', fed, np.array(b'red\t4\ngreen\t5\nblue\t-6\n', object))
        steps = [Step(write, feeds={fed: path})]
        wanted = np.array([b'green', b'red\t4', b'blue', b'none'], object)
        for i, (key, value, size, dtype) in enumerate([(0, -1, -1, tf.int64), (0, 1, -1, tf.int64), (-2, -1, 2, tf.int64),
                                                       (0, 1, 3, tf.float32), (0, -2, -1, tf.string)]):
            table = b.op('HashTable' + form, key_dtype=tf.string, value_dtype=dtype, shared_name=b.name('t%d' % i))
            name = tf.compat.v1.placeholder(tf.string, [])
            start = b.op('InitializeTableFromTextFile' + form, table, name, key_index=key, value_index=value,
                         vocab_size=size)
            fallback = np.array(b'-' if dtype == tf.string else -1, object if dtype == tf.string else dtype.as_numpy_dtype)
            find = b.op('LookupTableFind' + form, table, wanted, fallback)
            steps += [Step(start, feeds={name: path}), Step(find), Step(start, feeds={name: path})]
        table = b.op('HashTable' + form, key_dtype=tf.string, value_dtype=tf.int64, shared_name=b.name('bad'))
        for attrs in dict(key_index=0, value_index=2), dict(key_index=0, value_index=-1, vocab_size=9), \
                dict(key_index=1, value_index=0):
            name = tf.compat.v1.placeholder(tf.string, [])
            steps.append(Step(b.op('InitializeTableFromTextFile' + form, table, name, **attrs), feeds={name: path}, error='any'))
        return steps
    from_file.__name__ = 'InitializeTableFromTextFile' + form
    return from_file


for _form in '', 'V2':
    script('InitializeTableFromTextFile' + _form, 'HashTable' + _form)(_from_file(_form))


def _own_fixed(b, types):
    key, value = types['key_dtype'], types['value_dtype']
    table = b.op('AnonymousHashTable', key_dtype=key, value_dtype=value)
    start = b.op('InitializeTableV2', table, _keys(key, 1, 2, 3), _values(value, 10, 21, 30))
    with tf.control_dependencies([start]):
        find = b.op('LookupTableFindV2', table, b.hidden(_keys(key, 1, 5, 3)), _values(value, 9).reshape([]))
        size = b.op('LookupTableSizeV2', table)
    early = b.op('LookupTableFindV2', b.op('AnonymousHashTable', key_dtype=key, value_dtype=value), _keys(key, 1),
                 _values(value, 9).reshape([]))
    return [Step(find, size), Step(find), Step(early, error=True)]


def _own_mutable(b, types):
    key, value = types['key_dtype'], types['value_dtype']
    table = b.op('AnonymousMutableHashTable', key_dtype=key, value_dtype=value)
    with tf.control_dependencies([b.op('LookupTableInsertV2', table, _keys(key, 1, 2), _values(value, 10, 21))]):
        find = b.op('LookupTableFindV2', table, b.hidden(_keys(key, 1, 5)), _values(value, 9).reshape([]))
        size = b.op('LookupTableSizeV2', table)
    return [Step(find, size), Step(size)]


script('AnonymousHashTable')(_own_fixed)
script('AnonymousMutableHashTable')(_own_mutable)


def _of_vectors(op):
    def of_vectors(b, types):
        key, value = types['key_dtype'], types['value_dtype']
        form = '' if op == 'MutableHashTableOfTensors' else 'V2'
        own = op.startswith('Anonymous')
        shared = {} if own else dict(shared_name=b.name('t'))
        table = b.op(op, key_dtype=key, value_dtype=value, value_shape=[2], **shared)
        rows = _values(value, 1, 2, 3, 4).reshape(2, 2)
        insert = b.op('LookupTableInsert' + form, table, _keys(key, 1, 2), rows)
        with tf.control_dependencies([insert] if own else []):
            find = b.op('LookupTableFind' + form, table, b.hidden(_keys(key, 1, 5, 2, 2).reshape(2, 2)), _values(value, 7, 8))
            size = b.op('LookupTableSize' + form, table)
        each = b.op('LookupTableFind' + form, table, _keys(key, 6, 7), b.hidden(rows))
        short = b.op('LookupTableFind' + form, table, _keys(key, 6), b.hidden(_values(value, 9)))
        flat = b.op('LookupTableInsert' + form, table, _keys(key, 1, 2), b.hidden(_values(value, 1, 2)))
        steps = [Step(insert), Step(find, size), Step(each), Step(short, error=True), Step(flat, error=True)]
        replace = b.op('LookupTableImport' + form, table, _keys(key, 5), rows[:1])
        if not own:
            steps += [Step(replace), Step(find, size), Step(*b.op('LookupTableExport' + form, table, Tkeys=key, Tvalues=value))]
        scalar = b.op(op, key_dtype=key, value_dtype=value, **({} if own else dict(shared_name=b.name('s'))))
        return steps + [Step(scalar.op, error=True)]
    of_vectors.__name__ = op
    return of_vectors


for _op in 'MutableHashTableOfTensors', 'MutableHashTableOfTensorsV2', 'AnonymousMutableHashTableOfTensors':
    script(_op)(_of_vectors(_op))


def _dense(op):
    def dense(b, types):
        key, value = types['key_dtype'], types['value_dtype']
        own = op.startswith('Anonymous')

        def make(name, empty, deleted, **attrs):
            return b.op(op, b.hidden(empty), b.hidden(deleted), key_dtype=key, value_dtype=value,
                        **dict(attrs, **({} if own else dict(shared_name=b.name(name)))))
        one = _keys(key, 90).reshape([]), _keys(key, 91).reshape([])
        table = make('t', *one, initial_num_buckets=8)
        insert = b.op('LookupTableInsertV2', table, _keys(key, 1, 2, 3), _values(value, 10, 21, 30))
        with tf.control_dependencies([insert] if own else []):
            find = b.op('LookupTableFindV2', table, b.hidden(_keys(key, 1, 5, 3)), _values(value, 9).reshape([]))
            size = b.op('LookupTableSizeV2', table)
        empty, deleted = (b.op('LookupTableFindV2', table, b.hidden(_keys(key, k)), _values(value, 9).reshape([])) for k in (90, 91))
        remove = b.op('LookupTableRemoveV2', table, _keys(key, 1, 8))
        steps = [Step(insert), Step(find, size), Step(empty, error=True), Step(deleted, error=True),
                 Step(b.op('LookupTableInsertV2', table, b.hidden(_keys(key, 90)), _values(value, 1)), error=True), Step(remove)]
        if not own:
            last = b.op('LookupTableRemoveV2', table, _keys(key, 2))
            # The table is exported with its room: in which order is its own affair.
            room = [tf.shape(part) for part in b.op('LookupTableExportV2', table, Tkeys=key, Tvalues=value)]
            more = b.op('LookupTableInsertV2', table, _keys(key, *range(11, 21)), _values(value, *range(10)))
            steps += [Step(find, size), Step(last), Step(find, size), Step(*room), Step(more), Step(*room)]
        # Keys and values that are vectors.
        wide = make('w', _keys(key, 90, 90), _keys(key, 91, 90), value_shape=[3])
        rows = _values(value, 1, 2, 3, 4, 5, 6).reshape(2, 3)
        fill = b.op('LookupTableInsertV2', wide, _keys(key, 1, 2, 3, 4).reshape(2, 2), rows)
        with tf.control_dependencies([fill]):
            steps.append(Step(b.op('LookupTableFindV2', wide, b.hidden(_keys(key, 3, 4, 2, 1).reshape(2, 2)), _values(value, 7, 8, 9))))
        for bad in (make('a', one[0], one[0]), make('b', one[0], _keys(key, 1, 2)), make('c', *one, initial_num_buckets=3),
                    make('d', *one, max_load_factor=1.5), make('e', _keys(key, 1).reshape(1, 1), _keys(key, 2).reshape(1, 1))):
            steps.append(Step(bad.op, error=True))
        return steps
    dense.__name__ = op
    return dense


for _op in 'MutableDenseHashTableV2', 'AnonymousMutableDenseHashTable':
    script(_op)(_dense(_op))


@script('InitializeTableFromTextFileV2', 'HashTableV2')
def whole_lines_are_numbers(b, types):
    path = Path(b.name('numbers'))
    fed, name = (tf.compat.v1.placeholder(tf.string, []) for _ in range(2))
    write = b.op('WriteFile', fed, np.array(b'7\n-3\n42\n', object))
    table = b.op('HashTableV2', key_dtype=tf.int64, value_dtype=tf.int64, shared_name=b.name('t'))
    start = b.op('InitializeTableFromTextFileV2', table, name, key_index=-2, value_index=-1)
    find = b.op('LookupTableFindV2', table, np.array([42, 7, 1], np.int64), np.int64(-1))
    return [Step(write, feeds={fed: path}), Step(start, feeds={name: path}), Step(find)]


@script('MutableDenseHashTable')
def dense_of_names(b, types):
    table = b.op('MutableDenseHashTable', np.int64(-1), key_dtype='int64', value_dtype='int64', shared_name=b.name('t'))
    return [Step(table.op, error='any')]

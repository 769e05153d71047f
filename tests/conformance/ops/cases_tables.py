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

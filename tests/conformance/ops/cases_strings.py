# SPDX-License-Identifier: Apache-2.0
"""Strings cut, joined, matched and read as numbers; files and serialized tensors."""
import numpy as np
import tensorflow as tf

from cases import ALL_TYPES, Case, Path, Step, cases, edges, is_float, is_int, numpy_type, script, types_for, values

TEXTS = ['', 'a', ' hello  world ', 'x,y,,z', 'a\tb\nc', 'dünn', '日本語', '\x00\x01', 'ABC def']


def strings(*items):
    return np.array([i.encode() if isinstance(i, str) else i for i in items], object)


def text(item):
    return np.array(item.encode() if isinstance(item, str) else item, object)


@cases('StringStrip')
def strip(op, types):
    yield Case([strings(*TEXTS)])
    yield Case([text(' a ')])
    yield Case([strings('\x0b\x0c a \r\n')])
    yield Case([strings()])


@cases('StringLower', 'StringUpper')
def change_case(op, types):
    yield Case([strings(*TEXTS)])
    yield Case([strings()])


@cases('StringLength')
def length(op, types):
    for unit in 'BYTE', 'UTF8_CHAR':
        yield Case([strings(*TEXTS)], {'unit': unit})
        yield Case([text('dünn')], {'unit': unit})


@cases('Substr')
def substr(op, types):
    index = numpy_type(types['T'])
    words = strings('hello', 'dünn', 'weftweft')
    for unit in 'BYTE', 'UTF8_CHAR':
        for pos, count in (0, 2), (1, 100), (-2, 1), (3, 0):
            yield Case([words, np.array(pos, index), np.array(count, index)], {'unit': unit})
        yield Case([words, np.array([0, 1, -3], index), np.array([1, 2, 3], index)], {'unit': unit})
        yield Case([text('hello'), np.array([0, 4], index), np.array([1, 2], index)], {'unit': unit})
        yield Case([words, np.array(9, index), np.array(1, index)], {'unit': unit}, error=True)
        yield Case([words, np.array(-9, index), np.array(1, index)], {'unit': unit}, error=True)
    yield Case([words, np.array([0], index), np.array([0, 1, 2], index)], error=True)


@cases('StringSplit')
def split(op, types):
    for delimiter in ' ', ',', ' ,', '':
        for skip_empty in True, False:
            yield Case([strings(*TEXTS[:5]), text(delimiter)], {'skip_empty': skip_empty})
    yield Case([strings(), text(' ')])
    yield Case([text('a b'), text(' ')], error=True)
    yield Case([strings('a b'), strings(' ', ',')], error=True)


@cases('StringSplitV2')
def split_v2(op, types):
    for separator in '', ' ', ',', ',,', 'xyz':
        for most in -1, 0, 1, 2:
            yield Case([strings(*TEXTS[:5]), text(separator)], {'maxsplit': most})
    yield Case([strings(), text(' ')])
    yield Case([text('a b'), text(' ')], error=True)


@cases('RegexReplace')
def regex_replace(op, types):
    for every in True, False:
        yield Case([strings('aab', '', 'b', 'xaax'), text('a+'), text('<\\0>')], {'replace_global': every})
        yield Case([strings('aab', 'cab'), text('(a)(b)'), text('\\2\\1')], {'replace_global': every})
    yield Case([strings('a'), text('('), text('')], error=True)
    yield Case([strings('a'), text('a'), text('\\7')])
    yield Case([strings('a'), strings('a', 'b'), text('')], error=True)


@cases('StaticRegexReplace')
def static_regex_replace(op, types):
    for every in True, False:
        yield Case([strings('aab', '', 'b'), ], {'pattern': 'a', 'rewrite': 'xy', 'replace_global': every})
    yield Case([text('2026-11-21')], {'pattern': '(\\d+)-(\\d+)', 'rewrite': '\\2/\\1'})


types_for('T', ALL_TYPES, 'AsString', 'SerializeTensor')


@cases('AsString')
def as_string(op, types):
    name = types['T']
    yield Case([values(name, [2, 3])])
    yield Case([edges(name)])
    # Older TensorFlows end a string at its first zero byte when they pad it.
    some = strings('', 'a', 'bc', 'longer than twelve') if name == 'string' else values(name, [4])
    yield Case([some], {'width': 12})
    yield Case([some], {'width': 12, 'fill': '-'})
    if is_float(name) or 'complex' in name:
        for attrs in {'precision': 2}, {'scientific': True}, {'shortest': True}, {'shortest': True, 'precision': 3}, \
                {'width': 12, 'fill': '0'}, {'fill': '+'}, {'fill': ' '}:
            yield Case([values(name, [5])], attrs)
        yield Case([values(name, [1])], {'scientific': True, 'shortest': True}, error=True)
    if is_int(name):
        for fill in ('0', ' ', '+') if name[0] != 'u' else ('0',):
            yield Case([values(name, [5])], {'width': 6, 'fill': fill})
        yield Case([values(name, [1])], {'scientific': True}, error=True)
        yield Case([values(name, [1])], {'precision': 2}, error=True)
    yield Case([values(name, [1])], {'fill': 'ab'}, error=True)
    yield Case([values(name, [1])], {'fill': 'x'}, error=True)


@cases('StringToNumber')
def to_number(op, types):
    name = types['out_type']
    yield Case([strings('1', ' 23 ', '0', '007')], types)
    if name[0] != 'u':
        yield Case([strings('-1', '-0')], types)
    if is_float(name):
        yield Case([strings('1.5', '-2e3', '.25', 'inf', '-inf', '1e-3', '+7')], types)
    else:
        yield Case([strings('1.5')], types, error=True)
        yield Case([strings(str(2**70))], types, error=True)
    for bad in '', 'x', '1 2', '--1':
        yield Case([strings(bad)], types, error=True)


@cases('SerializeTensor')
def serialize(op, types):
    for shape in [], [0], [2, 3]:
        yield Case([values(types['T'], shape)])


@script('ParseTensor')
def parse(b, types):
    source = b.op('Placeholder', dtype='string', shape=None)
    whole = tf.make_tensor_proto(np.arange(6, dtype=np.float32).reshape(2, 3)).SerializeToString()
    parsed = b.op('ParseTensor', source, out_type='float32')
    other = b.op('ParseTensor', source, out_type='int32')
    steps = [Step(parsed, feeds={source: text(whole)})]
    steps += [Step(parsed, feeds={source: text(bad)}, error=True) for bad in (b'\xff', b'')]
    return steps + [Step(other, feeds={source: text(whole)}, error=True),
                    Step(parsed, feeds={source: strings(whole)}, error=True)]


@script('WriteFile', 'ReadFile', 'MatchingFiles')
def files(b, types):
    name, pattern, contents = (b.op('Placeholder', dtype='string', shape=None) for _ in range(3))
    write, read, match = b.op('WriteFile', name, contents), b.op('ReadFile', name), b.op('MatchingFiles', pattern)

    def at(path, what='x'):
        return {name: Path(path), contents: text(what)}
    steps = [Step(write, feeds=at(path, what)) for path, what in (('f/a.txt', 'alpha'), ('f/b.txt', ''), ('f/g/c.bin', b'\x00\xff'))]
    steps += [Step(read, feeds={name: Path(path)}) for path in ('f/a.txt', 'f/b.txt', 'f/g/c.bin')]
    steps += [Step(match, feeds={pattern: Path(p)}) for p in ('f/*', 'f/?.txt', 'f/[ab].txt', 'f/*/*', 'f/nothing*', 'f/a.txt')]
    return steps + [Step(read, feeds={name: Path('f/none')}, error=True), Step(write, feeds=at('f/a.txt', 'again')),
                    Step(read, feeds={name: Path('f/a.txt')})]

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the page of what each op has and how it is tested: coverage_page.py OPS_MD CASES_FOLDER OUTPUT.

OPS_MD is the generated reference of all ops. CASES_FOLDER holds the cases that run beside TensorFlow
(tests/conformance/ops), which are read as text.
"""
import ast
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def refused():
    """[(patterns of op names, why)]: what src/weft/graph/refused_ops.cc says of ops that are not here."""
    with open(os.path.join(ROOT, 'src/weft/graph/refused_ops.cc')) as source:
        table = re.search(r'kRefused\[\] = \{\n(.*?)\n\};', source.read(), re.DOTALL)[1]
    entries = []
    for entry in re.findall(r'\{((?:\s*"[^"]*"\s*,?)+)\}', table):
        # Literals side by side are one text; the comma between two is that of the entry.
        names, why = (''.join(re.findall(r'"([^"]*)"', part)) for part in re.sub(r'"\s*,\s*"', '"\0"', entry, count=1).split('\0'))
        entries.append((names.split(), why))
    return entries


def reference(text):
    """Of each op of the reference: {'kernels': ..., 'gradient': ...}."""
    found = {}
    for section in re.split(r'^## ', text, flags=re.MULTILINE)[1:]:
        name = section.split('\n', 1)[0].strip()
        lines = dict(re.findall(r'^- (kernels|gradient): (.*)$', section, flags=re.MULTILINE))
        found[name] = lines
    return found


def _names(call):
    return [node.value for node in ast.walk(call) if isinstance(node, ast.Constant) and isinstance(node.value, str)]


def tested(folder):
    """{op: how}: cases give inputs for one op, scripts run it among others."""
    how = {}
    for name in sorted(os.listdir(folder)):
        if not re.fullmatch(r'cases_\w+\.py', name):
            continue
        with open(os.path.join(folder, name)) as source:
            tree = ast.parse(source.read())
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for mark in function.decorator_list:
                if isinstance(mark, ast.Call) and getattr(mark.func, 'id', '') in ('cases', 'script'):
                    for op in _names(mark):
                        how.setdefault(op, set()).add('cases' if mark.func.id == 'cases' else 'scripts')
    with open(os.path.join(folder, 'ops_test.py')) as source:
        tree = ast.parse(source.read())
    for node in ast.walk(tree):
        if isinstance(node, ast.Assign) and getattr(node.targets[0], 'id', '') == 'ELSEWHERE':
            for key, value in zip(node.value.keys, node.value.values):
                if key is not None:
                    how.setdefault(key.value, set()).add(value.value)
                else:  # **dict.fromkeys([...], why)
                    ops, why = value.args
                    for op in ' '.join(_names(ops)).split():
                        how.setdefault(op, set()).add(why.value)
    return how


def _of(lines):
    kernels = lines.get('kernels', '')
    parts = [re.fullmatch(r'([A-Z]+)[:,] (.*)', part) for part in kernels.split('; ')]
    devices = ', '.join(part[1] for part in parts if part) or 'every'
    types = '; '.join(dict.fromkeys(part[2] for part in parts if part))
    return devices, types


def page(ops, how):
    rows = ['# Coverage', '', 'Each of the %d ops of this build: the devices that have kernels, for which types, whether it has a'
            % len(ops), 'gradient in C++, and what runs it beside TensorFlow. The rest is in the [reference](ops.md).', '',
            '| op | devices | types | gradient | tested |', '|---|---|---|---|---|']
    for name, lines in sorted(ops.items()):
        devices, types = _of(lines)
        # ops_test fails for an op without a case: one whose name is not read here is one of a list.
        words = {'cases': 'beside TensorFlow, by inputs', 'scripts': 'beside TensorFlow, in graphs'}
        proof = '; '.join(sorted(words.get(h, h) for h in how.get(name, ['cases'])))
        rows.append('| [%s](ops.md#%s) | %s | %s | %s | %s |' % (
            name, name.lower(), devices, types or 'as the graph says', lines.get('gradient', 'no'), proof))
    rows += ['', '## Refused by name', '',
             "TensorFlow's other ops. Graphs that hold one of these are refused with NotFound and these words before a step runs; "
             '`weft check` names them.', '', '| ops | why |', '|---|---|']
    rows += ['| %s | %s |' % (' '.join('`%s`' % name for name in names), why) for names, why in refused()]
    return '\n'.join(rows) + '\n'


def main():
    with open(sys.argv[1]) as source:
        ops = reference(source.read())
    text = page(ops, tested(sys.argv[2]))
    with open(sys.argv[3], 'w') as out:
        out.write(text)


if __name__ == '__main__':
    main()

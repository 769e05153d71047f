#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Sums up results of run.py:  table.py results.jsonl ... [--page docs/tensorflow_tests.md] [--failures failures.txt]

The page has the text above its first table as it was written by hand; the tables are made.
"""
import argparse
import collections
import json
import pathlib
import re

# What a case that fails is counted under: a pattern in its kind and words, and the reason as the page has it.
REASONS = [
    (r'Op type not registered', 'an op that weft does not have'),
    (r'[Pp]artial runs', 'partial runs'),
    (r'stuck', 'no answer in time'),
    (r'Unavailable|Connection reset|Socket closed', 'the server ended'),
    (r'not supported for|No kernel|no kernel|is not in the list of allowed values|not implemented', 'a dtype or form of an op that weft does not have'),
    (r'does not match|not raised|Regex|Exception of type', 'an error of another kind or in other words'),
    (r'Not equal to tolerance|Arrays are not|not equal|!=|differ', 'other values'),
]


def folder_of(path):
    parts = pathlib.Path(path).parent.parts
    return '/'.join(part for part in parts if part not in ('tensorflow', 'python', 'tensorflow_estimator'))


def reason_of(line):
    words = '%s %s %s' % (line.get('weft'), line.get('kind', ''), line.get('words', ''))
    return next((reason for pattern, reason in REASONS if re.search(pattern, words)), 'something else')


def missing_ops(line):
    words = line.get('words', '')
    found = re.findall(r"Op type not registered: '(\w+)'", words)
    more = re.search(r'nor are these ops of the graph: ([\w, ]+)', words)
    return found + (more.group(1).split(', ') if more else [])


def tables(lines):
    folders = collections.defaultdict(lambda: [set(), 0, 0])
    reasons, ops = collections.Counter(), collections.Counter()
    for line in lines:
        row = folders[folder_of(line['file'])]
        row[0].add(line['file'])
        if 'weft' not in line:
            continue
        row[1] += 1
        row[2] += line['weft'] == 'passed'
        if line['weft'] != 'passed':
            reasons[reason_of(line)] += 1
            ops.update(missing_ops(line))
    yield '| Folder | Files drawn | Applicable cases | Passed | Ratio |'
    yield '|---|---|---|---|---|'
    total = [0, 0, 0]
    for folder, (files, applicable, passed) in sorted(folders.items()):
        total = [total[0] + len(files), total[1] + applicable, total[2] + passed]
        yield '| %s | %d | %d | %d | %s |' % (folder, len(files), applicable, passed, share(passed, applicable))
    yield '| all | %d | %d | %d | %s |' % (*total, share(total[2], total[1]))
    yield ''
    here = total[1] - reasons[REASONS[0][1]]
    yield 'Of the %d cases that want only ops which weft has, %d pass: %s.' % (here, total[2], share(total[2], here))
    yield ''
    yield '| Why the others do not pass | Cases |'
    yield '|---|---|'
    for reason, count in reasons.most_common():
        yield '| %s | %d |' % (reason, count)
    if ops:
        yield ''
        text = 'Ops that these cases want and weft does not have: ' + ', '.join('%s (%d)' % one for one in ops.most_common()) + '.'
        yield from wrapped(text)


def share(passed, applicable):
    return '%.1f%%' % (100 * passed / applicable) if applicable else ''


def wrapped(text, width=128):
    line = ''
    for word in text.split(' '):
        if line and len(line) + 1 + len(word) > width:
            yield line
            line = ''
        line += ' ' * bool(line) + word
    yield line


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('results', nargs='+')
    parser.add_argument('--page')
    parser.add_argument('--failures', help='every case that fails, by reason, for who mends them')
    options = parser.parse_args()
    lines = [json.loads(line) for path in options.results for line in open(path)]
    made = '\n'.join(tables(lines)) + '\n'
    if options.page:
        page = pathlib.Path(options.page)
        text = page.read_text()
        page.write_text(text[:text.index('\n| ') + 1] + made)
    else:
        print(made, end='')
    if options.failures:
        failed = sorted((reason_of(line), line['file'], line['case'], line.get('kind', ''), line.get('words', ''))
                        for line in lines if line.get('weft', 'passed') != 'passed')
        pathlib.Path(options.failures).write_text(''.join('%s\n  %s %s\n    %s: %s\n' % one for one in failed))


if __name__ == '__main__':
    main()

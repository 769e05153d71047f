# SPDX-License-Identifier: Apache-2.0
"""Figures of `./dev bench`: printed as a table, kept row by row in a JSON file, and written from it into docs/performance.md.

    bench/record.py [--json bench/performance.json] [--page docs/performance.md] [--check]

A run with --json replaces the rows that it measured and leaves the others, each with its day, machine, peers and rounds.
"""
import argparse
import datetime
import json
import os
import pathlib
import statistics
import sys

HERE = pathlib.Path(__file__).resolve().parent
BEGIN, END = '<!-- figures: written by bench/record.py -->\n', '<!-- end of the figures -->\n'
LONG = 20  # lines; a longer table is folded


def text_of(us):
    return '%.1f us' % us if us < 1e4 else '%.2f ms' % (us / 1e3) if us < 1e6 else '%.2f s' % (us / 1e6)


class Table:
    def __init__(self):
        self.lines, self.title = [], ''

    def section(self, title):
        self.title = title
        print('\n%s' % title, flush=True)

    def add(self, what, ours, peer_name, peers, goal, note=''):
        """`ours` and `peers`: (median, least) in us. The goal: ours is at most this part of the peer's time."""
        ratio, ratio_least = ours[0] / peers[0], ours[1] / peers[1]
        met = max(ratio, ratio_least) <= goal
        line = '  %-40s %11s  |  %-28s %11s  |  %7.3fx (min %.3fx)  goal %.3gx  %s%s' % (
            what, text_of(ours[0]), peer_name, text_of(peers[0]), ratio, ratio_least, goal, 'met' if met else 'MISSED',
            '  ' + note if note else '')
        print(line, flush=True)
        self.lines.append(dict(section=self.title, what=what, us=ours[0], peer=peer_name, peer_us=peers[0], ratio=ratio,
                               ratio_least=ratio_least, goal=goal, met=met, note=note))

    def say(self, text):
        print('  ' + text, flush=True)


def processor():
    """What the processors call themselves, and the widest vectors that they have."""
    name, flags = 'unknown', ''
    with open('/proc/cpuinfo', encoding='utf-8') as file:
        for line in file:
            key, _, value = line.partition(':')
            if key.strip() in ('model name', 'Processor'):
                name = value.strip()
            if key.strip() in ('flags', 'Features'):
                flags = value.split()
                break
    widest = next((text for flag, text in (('avx512f', 'AVX-512'), ('avx2', 'AVX2'), ('asimd', 'NEON')) if flag in flags), '')
    return name + (' with ' + widest if widest else '')


def others():
    """How many other processes wanted a processor in the last minute, before the row began."""
    return round(os.getloadavg()[0], 1)


def keep(path, row, lines, rounds, peers, waiting):
    """Replaces one row of the JSON file at `path`, as a whole: a run that is killed leaves the file as it was."""
    path = pathlib.Path(path)
    known = json.loads(path.read_text()) if path.exists() else {}
    known[row] = dict(date=datetime.date.today().isoformat(), processor=processor(), processors=os.cpu_count(), others=waiting,
                      rounds=rounds, peers=peers, lines=[kept(line) for line in lines])
    beside = path.with_suffix('.writing')
    beside.write_text(json.dumps(dict(sorted(known.items())), indent=1) + '\n')
    beside.replace(path)


def kept(value):
    """What goes into the file: numbers of four places are enough."""
    if isinstance(value, dict):
        return {key: kept(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [kept(each) for each in value]
    return float('%.4g' % value) if isinstance(value, float) else value


def cpu_ratio(line):
    if 'cpu_ratio' in line:
        return line['cpu_ratio']
    return line['cpu_us'] / line['cpu_peer_us'] if line.get('cpu_peer_us') else None


def number(value):
    """Two places that count: 0.36, 1.2, 27."""
    return '' if value is None else '%.2f' % value if value >= 0.1 or value == 0 else '%.2g' % value


def table_of(lines):
    timed, cpu = any('us' in line for line in lines), any(cpu_ratio(line) is not None for line in lines)
    memory = any('server_megabytes' in line for line in lines)
    beside = any('memory' in line for line in lines)
    head = ['What'] + (['weft', 'best peer', 'its time'] if timed else []) + ['ratio'] + (['of the least'] if timed else []) + (
        ['of CPU time'] if cpu else []) + (['peak MB'] if memory else []) + (
        ['of the model, beside the least of a peer'] if beside else []) + ['goal', '']
    out = ['| %s |' % ' | '.join(head), '|' + '---|' * len(head)]
    for line in lines:
        cells = [line['what']]
        if timed:
            cells += [text_of(line['us']), line['peer'], text_of(line['peer_us'])]
        cells.append(number(line['ratio']))
        if timed:
            cells.append(number(line['ratio_least']))
        if cpu:
            cells.append(number(cpu_ratio(line)))
        if memory:
            cells.append(str(line.get('server_megabytes', '')))
        if beside:
            cells.append(number(line['memory']['model_ratio']) if 'memory' in line else '')
        cells += ['%.2g' % line['goal'], 'met' if line['met'] else 'missed']
        out.append('| %s |' % ' | '.join(cells))
    return '\n'.join(out) + '\n'


def section_of(row, kept_row):
    """One row of the bench: where and beside whom it was measured, and a table for each of its sections."""
    peers = ', '.join('%s %s' % item for item in sorted(kept_row['peers'].items()))
    head = '`--rows %s`, %s, %d rounds, %d processors (%s), on average %.1f other processes before it%s.\n' % (
        row, kept_row['date'], kept_row['rounds'], kept_row['processors'], kept_row['processor'], kept_row['others'],
        '; beside ' + peers if peers else '')
    parts = []
    for title in dict.fromkeys(line.get('section', '') for line in kept_row['lines']):
        lines = [line for line in kept_row['lines'] if line.get('section', '') == title]
        middle = statistics.geometric_mean(line['ratio'] for line in lines)
        table = table_of(lines)
        if len(lines) > LONG:
            table = '<details><summary>%d lines, geometric mean of the ratios %.2f</summary>\n\n%s\n</details>\n' % (len(lines), middle, table)
        parts.append('### %s\n\n%s\n%s' % (title, head, table))
    return '\n'.join(parts)


def page_of(page, known):
    """The text of the page with its figures written anew."""
    before, begin, rest = page.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError('the page has no place for figures: expected the lines %r and %r' % (BEGIN.strip(), END.strip()))
    return before + BEGIN + '\n' + '\n'.join(section_of(row, kept_row) for row, kept_row in known.items()) + '\n' + END + after


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--json', type=pathlib.Path, default=HERE / 'performance.json')
    parser.add_argument('--page', type=pathlib.Path, default=HERE.parent / 'docs' / 'performance.md')
    parser.add_argument('--check', action='store_true', help='write nothing; fail where the page is not what would be written')
    flags = parser.parse_args()
    old = flags.page.read_text()
    new = page_of(old, json.loads(flags.json.read_text()))
    if flags.check:
        if new != old:
            sys.exit('%s does not say what %s says: run bench/record.py' % (flags.page, flags.json))
        print('%s says what %s says' % (flags.page.name, flags.json.name))
    else:
        flags.page.write_text(new)


if __name__ == '__main__':
    main()

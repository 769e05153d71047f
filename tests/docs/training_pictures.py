#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""docs/six_programs.md and its pictures: training_pictures.py BIN_FOLDER ROOT runs the six programs and draws what they tell.

The programs are those of examples/; docs_test.py holds the page's code and pictures against them."""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

# Folder, title, how it is run, what there is to see.
PROGRAMS = [
    ('image_model', 'Images', '{bin}/image_model --data {root}/examples/digits/digits.csv --model {tmp}/digits.keras',
     'Convolutions over handwritten digits, an early stop, a file that Keras opens.'),
    ('text_model', 'Text', '{bin}/text_model', 'Words padded with 0, an embedding that masks them, an LSTM in both directions.'),
    ('tabular_model', 'Tables', '{bin}/tabular_model {tmp}/flats.weights.h5',
     'Numbers and a category that meet in a graph of layers, a falling learning rate, weights in HDF5.'),
    ('recommender_model', 'A recommender on parameter servers', '{bin}/weft run --ps 2 --workers 2 -- {bin}/recommender_model',
     'Embeddings spread by rows over two parameter servers, two workers that train side by side. The curve is worker 0\'s.'),
    ('eager', 'Ops at once', '{bin}/eager', 'Tapes, variables, and the same step traced to a graph.'),
    ('serving', 'A model that answers', '{bin}/serving {tmp}/line/1',
     'A line is fitted and written as a version that `weft serve` answers with; [serving](serving.md) goes on from here.'),
]
WIDTH, HEIGHT, LEFT, TOP = 420, 200, 46, 26
COLOURS = ['#1a6fb5', '#d1651b', '#3c8d40', '#8a4fa3', '#a0303f']


def curves(text):
    """{name: [(x, value)]} of lines such as "epoch 3  loss 0.5  accuracy 0.9" and "step 7 loss 0.2"."""
    found, word = {}, 'epoch'
    for kind, at, rest in re.findall(r'(epoch|step) +(\d+) +(.*)', text):
        word = kind.lower()
        for name, value in re.findall(r'([a-z]\w*) (-?[\d.]+(?:e[-+]?\d+)?)', rest):
            found.setdefault(name, []).append((int(at), float(value)))
    return found, word


def panel(lines, left, word):
    """One pair of axes with a line a name."""
    points = [point for line in lines.values() for point in line]
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(0.0, min(ys)), max(ys)
    if min(ys) > 0.4:  # of an accuracy the upper part tells more
        low = int(10 * min(ys)) / 10
    first, last, span = min(xs), max(xs), (high - low) or 1

    def place(x, y):
        return (left + LEFT + (x - first) / max(1, last - first) * (WIDTH - LEFT - 20), TOP + (high - y) / span * (HEIGHT - TOP - 36))
    base = HEIGHT - 36
    out = ['<path d="M%d %dV%dH%d" fill="none" stroke="#888"/>' % (left + LEFT, TOP, base, left + WIDTH - 20)]
    for value in (low, (low + high) / 2, high):
        out.append('<text x="%d" y="%.1f" text-anchor="end">%.3g</text>' % (left + LEFT - 6, place(first, value)[1] + 4, value))
    for x, anchor in (first, 'start'), (last, 'end'):
        out.append('<text x="%.1f" y="%d" text-anchor="%s">%s %d</text>' % (place(x, low)[0], base + 16, anchor, word, x))
    for number, (name, line) in enumerate(lines.items()):
        colour = COLOURS[number % len(COLOURS)]
        told = ' '.join('%.1f,%.1f' % place(x, y) for x, y in line)
        out.append('<polyline points="%s" fill="none" stroke="%s" stroke-width="2"/>' % (told, colour))
        out.append('<text x="%d" y="16" fill="%s">%s</text>' % (left + LEFT + 130 * number, colour, name))
    return out


def picture(found, word):
    losses = {name: line for name, line in found.items() if name in ('loss', 'val_loss')}
    others = {name: line for name, line in found.items() if name.endswith(('accuracy', 'auc', 'r2_score'))}
    panels = [lines for lines in (losses, others) if lines]
    body = [line for number, lines in enumerate(panels) for line in panel(lines, number * WIDTH, word)]
    return '\n'.join(['<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" '
                      'font-size="12" fill="#333">' % (2 * (WIDTH * len(panels), HEIGHT)),
                      '<rect width="100%" height="100%" fill="#fff"/>', *body, '</svg>', ''])


def source_of(root, name):
    text = (root / 'examples' / name / 'main.cc').read_text()
    return text.split('\n', 1)[1]


def page(root):
    parts = ['''# Six whole programs

Each is at most 60 lines, runs in the tests, and trains in seconds; below it is how it did, drawn from what it told in a run
(`tests/docs/training_pictures.py build/bin .` makes this page and its pictures anew).''']
    for name, title, command, about in PROGRAMS:
        plain = command.format(bin='build/bin', root='.', tmp='/tmp').replace('./', '')
        parts.append('## %s\n\n%s\n\n```text\n%s\n```\n\n![Training of %s](pictures/training_%s.svg)\n\n```cpp\n%s```' % (
            title, about, plain, name, name, source_of(root, name)))
    return '\n\n'.join(parts) + '\n'


def main(bin_folder, root):
    root = pathlib.Path(root)
    for name, _, command, _ in PROGRAMS:
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run(command.format(bin=os.path.abspath(bin_folder), root=root.resolve(), tmp=folder).split(), text=True,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=200, check=True)
        found, word = curves(done.stdout)
        (root / 'docs/pictures' / ('training_%s.svg' % name)).write_text(picture(found, word))
        print(name, {key: len(line) for key, line in found.items()})
    (root / 'docs/six_programs.md').write_text(page(root))


if __name__ == '__main__':
    main(*sys.argv[1:])

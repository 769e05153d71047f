# SPDX-License-Identifier: Apache-2.0
"""Pages say what is so: docs_test.py WEFT BIN_FOLDER DOCS_FOLDER REFERENCE DEVICE_LIBRARY OP_LIBRARY"""
import contextlib
import json
import os
import pathlib
import re
import socket
import subprocess
import sys
import tempfile
import tomllib
import unittest
import xml.etree.ElementTree

import training_pictures
from extract import blocks

WEFT, BIN, DOCS, REFERENCE, DEVICE, OP_LIBRARY = (pathlib.Path(word) for word in sys.argv[1:7])
PROGRAMS = {'first_program': (), 'write_an_op': (), 'functions': (), 'write_a_device': (DEVICE,), 'datasets': (), 'estimator': (), 'layers': (),
            'saved_models': (), 'training_together': ()}


def run(*command):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          text=True, timeout=120)
    assert done.returncode == 0, (done.stdout + done.stderr)[-3000:]
    return done.stdout


class Pages(unittest.TestCase):
    def test_programs_print_what_their_pages_say(self):
        for name, arguments in PROGRAMS.items():
            with self.subTest(name):
                promised = blocks((DOCS / (name + '.md')).read_text(), 'output')
                self.assertEqual(len(promised), 1)
                self.assertEqual(run(BIN / ('docs_' + name), *arguments), promised[0])

    def test_the_library_is_what_its_page_says(self):
        promised = blocks((DOCS / 'op_library.md').read_text(), 'output')
        self.assertEqual([run(WEFT, 'op-library', OP_LIBRARY)], promised)

    def test_a_model_is_served_as_its_page_says(self):
        """The page's commands, in one shell, with ports and a folder of the test's own."""
        page = (DOCS / 'serving.md').read_text()
        with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as ports:
            script, promised = '\n'.join(blocks(page, 'sh')), ''.join(blocks(page, 'output'))
            for port in '8500', '8501':
                taken = ports.enter_context(socket.socket())
                taken.bind(('127.0.0.1', 0))
                script = script.replace(port, str(taken.getsockname()[1]))
            script, promised = (re.sub('/tmp/(line|records|predictions)', folder + r'/\1', text) for text in (script, promised))
            ports.close()
            done = subprocess.run(['bash', '-euc', script], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=120,
                                  env=dict(os.environ, PATH='%s:%s' % (BIN, os.environ['PATH'])))
            # The line is fitted: the last digits are the machine's.
            told, promised = (re.sub(r'\d+\.\d+', lambda number: '%.2f' % float(number[0]), text) for text in (done.stdout, promised))
            self.assertEqual((done.returncode, told), (0, promised), done.stderr[-3000:])

    def test_the_horovod_program_is_the_example(self):
        program = (DOCS.parent / 'examples/horovod/train.py').read_text()
        (promised,) = blocks((DOCS / 'training_together.md').read_text(), 'python')
        self.assertEqual(program.split('"""\n', 1)[1], promised)

    def test_six_programs_are_the_examples_with_pictures_of_runs(self):
        """The page is what its maker makes of the examples; a picture has a line for each number that a run told, epoch by epoch."""
        root = DOCS.parent
        self.assertEqual((DOCS / 'six_programs.md').read_text(), training_pictures.page(root))
        found, word = training_pictures.curves(run(BIN / 'eager'))
        self.assertEqual(word, 'step')
        self.assertGreater(len(found['loss']), 5)
        for name, *_ in training_pictures.PROGRAMS:
            picture = xml.etree.ElementTree.parse(DOCS / 'pictures' / ('training_%s.svg' % name)).getroot()
            lines = picture.findall('{http://www.w3.org/2000/svg}polyline')
            self.assertGreaterEqual(len(lines), 1, name)
            for line in lines:
                self.assertGreater(len(line.get('points').split()), 5, name)
        # Of the program that draws nothing at random the picture is the run's.
        self.assertEqual(training_pictures.picture(found, word), (DOCS / 'pictures/training_eager.svg').read_text())

    def test_links_lead_somewhere(self):
        readme = DOCS.parent / 'README.md'
        for page in [readme, *DOCS.glob('*.md')]:
            for link in re.findall(r'\]\(([^)#]+)[^)]*\)', re.sub(r'^```.*?^```$', '', page.read_text(), flags=re.M | re.S)):
                if '://' in link or link == 'ops.md':
                    continue
                self.assertTrue((page.parent / link).exists(), '%s: %s' % (page.name, link))

    def test_the_architecture_names_what_is_there(self):
        page = (DOCS / 'architecture.md').read_text()
        root = DOCS.parent
        rooms = tomllib.loads((root / 'layers.toml').read_text())['rooms']
        told = set(re.findall(r'^\| `(\w+)` \|', page, re.M))
        halves = ('src/weft/', 'src/platform/')
        self.assertEqual(told, {room.rsplit('/', 1)[1] for room in rooms if room.startswith(halves)})
        files = re.findall(r'`([a-z_]+/[a-z_/]+\.(?:cc|h))`', page)
        self.assertGreater(len(files), 40)
        for file in files:
            places = [root / top / file for top in ('src/weft', 'src/platform', '.')]
            self.assertTrue(any(place.exists() for place in places), file)

    def test_the_reference_has_every_op(self):
        listed = {op['name'] for op in json.loads(run(WEFT, 'inspect', '--ops'))}
        told = set(re.findall(r'^## (\w+)$', REFERENCE.read_text(), re.M))
        self.assertGreater(len(told), 300)
        self.assertEqual(told ^ listed, set())


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""One script of kubectl commands on `weft up` and on a real API server with `weft operator` and `weft node`.

    parity_test.py WEFT DIGITS

What both print is the same but for UIDs, times, versions and generated names. A line that differs must be listed in
docs/differential.md, and each row there must be needed.
"""
import difflib
import fnmatch
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import threading
import unittest

import cluster
import control_plane
import parity_script

WEFT, DIGITS = sys.argv[1:3]
PAGE = cluster.HERE.parent.parent / 'docs' / 'differential.md'
ROW = re.compile(r'^\| `([^`|]*)` \| `([^`|]*)` \| ([^|]*) \|$')
NORMAL = [
    (re.compile(r'[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}'), 'UID'),
    (re.compile(r'\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z'), 'TIME'),
    (re.compile(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d+ [+-]\d{4}'), 'TIME'),
    (re.compile(r'\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}'), 'TIME'),
    (re.compile(r'("?resourceVersion"?: ?)"\d+"'), r'\1"VERSION"'),
    (re.compile(r'"continue": ?"[^"]*"'), '"continue":"TOKEN"'),
    (re.compile(r'Resource Version: +\d+'), 'Resource Version: VERSION'),
    (re.compile(r'\bmade-[a-z0-9]{5}\b'), 'made-SUFFIX'),
    (re.compile(r'https://127\.0\.0\.1:\d+'), 'SERVER'),
    (re.compile(r'/tmp/[\w./-]+'), 'FILE'),
    # Ages.
    (re.compile(r'(?<![\w.-])(\d+[smhd])+(?![\w.-])|<invalid>'), 'AGE'),
    (re.compile(r'[ \t]+'), ' '),
    (re.compile(r' $', re.M), ''),
]


def normal(text):
    for pattern, to in NORMAL:
        text = pattern.sub(to, text)
    return text


def plain(text):
    """JSON in one form, without what only the writer of a field is told by."""
    try:
        parsed = json.loads(text)
    except ValueError:
        return text
    for item in [parsed, *parsed.get('items', [])]:
        item.get('metadata', {}).pop('managedFields', None)
        if item is not parsed:
            # Items of a list say what they are only here.
            item.pop('kind', None)
            item.pop('apiVersion', None)
    return json.dumps(parsed, sort_keys=True) + '\n'


def words_of(line):
    return [word.replace("'", '') for word in re.findall(r"(?:[^\s']|'[^']*')+", line)]


class Side:
    def __init__(self, kubectl, kubeconfig, folder):
        self.kubectl = kubectl
        self.folder = pathlib.Path(folder)
        self.folder.mkdir()
        for name, text in parity_script.FILES.items():
            (self.folder / name).write_text(text)
        self.environment = dict(os.environ, KUBECONFIG=str(kubeconfig), HOME=str(folder), KUBECTL_EXTERNAL_DIFF='diff -u0')

    def run(self, line):
        done = subprocess.run([self.kubectl, *words_of(line)], env=self.environment, cwd=self.folder,
                              capture_output=True, text=True, timeout=120)
        gone = done.returncode == 0 or 'no matching resources found' in done.stderr or 'NotFound' in done.stderr
        if line.startswith('wait --for=delete ') and gone:
            return 'gone'  # before kubectl looked, or while it did: that is told in different words
        stdout = plain(done.stdout) if ' --raw ' in line else done.stdout
        if line.startswith('describe cm '):  # kubectl prints its data in any order
            stdout = '\n'.join(sorted(stdout.splitlines())) + '\n'
        if line.startswith('describe pod '):  # events of one second come in any order
            head, separator, events = stdout.partition('\nEvents:')
            stdout = head + separator + '\n'.join(sorted(events.splitlines())) + '\n'
        return normal('exit %d\n%s%s' % (done.returncode, stdout, done.stderr))

    def watch(self, line):
        return subprocess.Popen([self.kubectl, *words_of(line)], env=self.environment, cwd=self.folder,
                                stdout=subprocess.PIPE, text=True)


class ParityTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        folder = pathlib.Path(cls.temporary.name)
        for name in ('up', 'real'):
            (folder / name).mkdir()
        cls.up = control_plane.ControlPlane(WEFT, folder / 'up', DIGITS)
        cls.real = cluster.Cluster(folder / 'real')
        try:
            cls.up.start()
            cls.real.start()
            cls.real.spawn_operator(WEFT)
            cls.real.spawn('node', WEFT, 'node', '--bind_pods', '--state', str(folder / 'node'))
            # The API server makes this address some time after it is ready.
            cluster.wait_for(lambda: cls.real.api.get('default', 'services', 'kubernetes'), 'service kubernetes')
        except BaseException:
            cls.tearDownClass()
            raise
        cls.here = Side(cls.real.kubectl, cls.up.kubeconfig, folder / 'here')
        cls.there = Side(cls.real.kubectl, cls.real.plane.kubeconfig, folder / 'there')
        cls.rows = [ROW.match(line).groups() for line in PAGE.read_text().splitlines() if ROW.match(line)]
        cls.used = set()

    @classmethod
    def tearDownClass(cls):
        cls.up.stop()
        cls.real.stop()
        cls.temporary.cleanup()

    def is_listed(self, command, line):
        known = False
        for index, (commands, pattern, _) in enumerate(self.rows):
            if fnmatch.fnmatchcase(command, commands) and fnmatch.fnmatchcase(line, pattern):
                self.used.add(index)
                known = True
        return known

    def unlisted(self, command, here, there):
        lines = []
        for line in difflib.ndiff(here.splitlines(), there.splitlines()):
            side = {'-': 'here: ', '+': 'there: '}.get(line[0])
            if side is not None and not self.is_listed(command, side + line[2:]):
                lines.append('    ' + side + line[2:])
        return lines

    def test_one_script(self):
        found = []
        for command in parity_script.commands():
            lines = self.unlisted(command, self.here.run(command), self.there.run(command))
            if lines:
                found += ['kubectl ' + command, *lines]
        if found:
            self.fail('not listed in %s:\n%s' % (PAGE.name, '\n'.join(found)))
        unused = [row[:2] for index, row in enumerate(self.rows) if index not in self.used]
        self.assertFalse(unused, 'rows of %s that nothing needs' % PAGE.name)

    def test_watches(self):
        watched = 'get cm -l app=seen --watch --output-watch-events --no-headers'
        steps = ('patch cm seen --type=merge -p {"data":{"a":"2"}}', 'label cm seen app=unseen --overwrite',
                 'label cm seen app=seen --overwrite', 'delete cm seen')
        texts = []
        for side in (self.here, self.there):
            seen = parity_script.FILES['conf.yaml'].replace('conf', 'seen').replace('app: a', 'app: seen')
            (side.folder / 'seen.yaml').write_text(seen)
            side.run('apply -f seen.yaml')
            process = side.watch(watched)
            # A change that is never shown ends the reading below.
            timer = threading.Timer(120, process.kill)
            timer.start()
            try:
                # Each change once the one before it has been shown.
                text = process.stdout.readline()
                for step in steps:
                    side.run(step)
                    text += process.stdout.readline()
                texts.append(normal(text))
            finally:
                timer.cancel()
                process.kill()
                process.communicate()
        self.assertEqual(texts[0], texts[1])
        self.assertEqual([line.split()[0] for line in texts[0].splitlines()],
                         ['ADDED', 'MODIFIED', 'DELETED', 'ADDED', 'DELETED'])


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2, warnings='ignore')

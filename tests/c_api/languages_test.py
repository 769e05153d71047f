#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Programs in C, Go, Java and Python ask a model through libweft_c: languages_test.py SOURCE LIBRARY SERVING_EXAMPLE.

What has no compiler on this machine is skipped, and said to be.
"""
import os
import re
import shutil
import subprocess
import sys
import tempfile
import unittest


def run(*command, **options):
    return subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=240, **options)


class LanguagesTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = cls.enterClassContext(tempfile.TemporaryDirectory())
        cls.model = os.path.join(cls.folder, 'line')
        cls.examples = os.path.join(SOURCE, 'examples', 'c_abi')
        cls.flags = ['-I' + os.path.join(SOURCE, 'src', 'weft', 'c_api'), '-L' + os.path.dirname(LIBRARY),
                     '-Wl,-rpath,' + os.path.dirname(LIBRARY)]
        cls.built(run(SERVING, os.path.join(cls.model, '1'), '--slope', '3'))

    @staticmethod
    def built(done):
        if done.returncode != 0:
            raise AssertionError('%s\n%s\n%s' % (done.args, done.stdout, done.stderr))

    def asks(self, *program, **options):
        """The program answers, and tells of a model that is not there."""
        done = run(*program, self.model, '10', '20', **options)
        self.assertEqual(done.returncode, 0, done.stderr)
        missing = run(*program, os.path.join(self.folder, 'nowhere'), '1', **options)
        self.assertEqual(missing.returncode, 1, missing.stderr)
        self.assertIn('nowhere/1', missing.stderr)
        return done.stdout

    def needs(self, tool):
        if shutil.which(tool) is None:
            self.skipTest('there is no %s on this machine' % tool)

    def test_c(self):
        self.needs('cc')
        program = os.path.join(self.folder, 'c')
        self.built(run('cc', '-std=c11', '-Wall', '-Wextra', '-Werror', '-pedantic', os.path.join(self.examples, 'predict.c'),
                       *self.flags, '-lweft_c', '-o', program))
        self.assertEqual(self.asks(program), 'y of x: 32.0 62.0\nserves: yes\n')

    def test_go(self):
        self.needs('go')
        self.needs('cc')
        program = os.path.join(self.folder, 'go')
        environment = dict(os.environ, CGO_ENABLED='1', CGO_CFLAGS=self.flags[0], CGO_LDFLAGS=' '.join(self.flags[1:]),
                           CGO_LDFLAGS_ALLOW='.*', GOFLAGS='-mod=mod', GO111MODULE='off')
        self.built(run('go', 'build', '-o', program, os.path.join(self.examples, 'predict.go'), env=environment))
        self.assertEqual(self.asks(program), 'y of x: 32.0 62.0\n')

    def test_java(self):
        self.needs('javac')
        self.needs('cc')
        home = re.search(r'java.home = (.*)', run('java', '-XshowSettings:properties', '-version').stderr).group(1)
        include = os.path.join(home, 'include')
        if not os.path.exists(os.path.join(include, 'jni.h')):
            self.skipTest('there is no jni.h in ' + include)
        self.built(run('cc', '-shared', '-fPIC', '-I' + include, '-I' + os.path.join(include, 'linux'),
                       os.path.join(self.examples, 'predict_jni.c'), *self.flags, '-lweft_c',
                       '-o', os.path.join(self.folder, 'libpredict_jni.so')))
        self.built(run('javac', '-d', self.folder, os.path.join(self.examples, 'Predict.java')))
        out = self.asks('java', '-Xmx64m', '-XX:TieredStopAtLevel=1', '-Djava.library.path=' + self.folder, '-cp', self.folder,
                        'Predict')
        self.assertEqual(out, 'y of x: 32.0 62.0\n')

    def test_python(self):
        """Without a package: ctypes, in this interpreter."""
        out = self.asks(sys.executable, os.path.join(self.examples, 'predict.py'), env=dict(os.environ, LIBWEFT_C=LIBRARY))
        self.assertEqual(out, 'y of x: 32.0 62.0\n')

    def test_only_the_functions_of_the_header_are_visible(self):
        self.needs('nm')
        with open(os.path.join(SOURCE, 'src', 'weft', 'c_api', 'weft_c.h')) as header:
            declared = set(re.findall(r'^WEFT_API [^;(]*?(weft_\w+)\(', header.read(), re.M))
        self.assertGreater(len(declared), 30)
        shown = run('nm', '-D', '--defined-only', LIBRARY).stdout.split('\n')
        names = {line.split()[-1] for line in shown if line and ' A ' not in line}
        self.assertEqual(names, {'%s@@WEFT_C_0.1' % name for name in declared})


if __name__ == '__main__':
    SOURCE, LIBRARY, SERVING = (os.path.abspath(word) for word in sys.argv[1:4])
    del sys.argv[1:4]
    unittest.main(verbosity=2)

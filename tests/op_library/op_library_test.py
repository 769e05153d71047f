# SPDX-License-Identifier: Apache-2.0
"""What is said of libraries of ops that cannot be loaded: op_library_test.py WEFT FOLDER"""
import os
import pathlib
import subprocess
import sys
import tempfile
import unittest

WEFT, FOLDER = sys.argv[1], pathlib.Path(sys.argv[2])


def weft(*words):
    return subprocess.run([WEFT, *map(str, words)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60)


class OpLibraries(unittest.TestCase):
    def refused(self, library, *words):
        """Every command that loads it says so in one line, and ends."""
        server = ['--cluster', '{"worker": ["127.0.0.1:1"]}', '--job_name', 'worker', '--op_library', library]
        for command in ['op-library', library], ['inspect', '--ops', '--op_library', library], ['server', *server]:
            done = weft(*command)
            with self.subTest(command):
                self.assertGreater(done.returncode, 0, done.stdout)
                self.assertEqual(done.stderr.count('\n'), 1, done.stderr)
                for word in ("Op library '%s'" % library, *words):
                    self.assertIn(word, done.stderr)

    def built(self, name):
        return FOLDER / ('op_library_%s.so' % name)

    def test_a_good_one(self):
        done = weft('op-library', self.built('good'))
        self.assertEqual(done.stdout, 'Twice(x: float) -> (y: float)\n', done.stderr)

    def test_two_of_them(self):
        once, again = weft('inspect', '--ops', '--op_library', self.built('good')), weft(
            'inspect', '--ops', '--op_library', self.built('good'), '--op_library', self.built('good'))
        self.assertIn('"Twice"', once.stdout)
        self.assertIn('Op Twice', again.stderr)

    def test_from_the_environment(self):
        done = subprocess.run([WEFT, 'inspect', '--ops'], stdout=subprocess.PIPE, text=True, timeout=60,
                              env={**os.environ, 'WEFT_OP_LIBRARY': str(self.built('good'))})
        self.assertIn('"Twice"', done.stdout)

    def test_one_that_is_not_there(self):
        self.refused('/no/such/library.so', 'No such file or directory')

    def test_a_folder(self):
        self.refused(FOLDER, 'It is not a file')

    def test_what_is_no_op_library(self):
        self.refused(self.built('no_entry'), 'It is no op library', 'WEFT_OP_LIBRARY')

    def test_a_foreign_build(self):
        bytes_ = self.built('good').read_bytes()
        mark = b'weft op library: headers '
        at = bytes_.index(mark) + len(mark)
        with tempfile.TemporaryDirectory() as folder:
            foreign = pathlib.Path(folder, 'foreign.so')
            foreign.write_bytes(bytes_[:at] + b'0123456789abcdef' + bytes_[at + 16:])
            self.refused(foreign, 'built for another weft', 'headers 0123456789abcdef', bytes_[at:at + 16].decode())

    def test_one_cut_short(self):
        bytes_ = self.built('good').read_bytes()
        with tempfile.TemporaryDirectory() as folder:
            part = pathlib.Path(folder, 'part.so')
            part.write_bytes(bytes_[:bytes_.index(b'weft op library: headers ') + 200])
            self.refused(part, 'It c')  # cannot be linked, or crashes the child: as the loader finds it

    def test_an_op_that_exists(self):
        self.refused(self.built('exists'), 'Op MatMul')

    def test_a_signature_that_is_wrong(self):
        self.refused(self.built('bad_signature'), 'Op Bad', 'Missing')

    def test_an_op_without_a_kernel(self):
        self.refused(self.built('no_kernel'), 'Op Idle has no kernel')

    def test_one_without_ops(self):
        self.refused(self.built('no_ops'), 'It registers no ops')

    def test_one_that_crashes(self):
        self.refused(self.built('crash'), 'It crashes while it is loaded (Segmentation fault)')

    def test_one_that_throws(self):
        self.refused(self.built('throws'), 'It threw an exception while it was loaded: stoi')

    def test_one_that_ends_the_process(self):
        self.refused(self.built('exits'), 'exit code 7')

    def test_one_that_lacks_a_function(self):
        self.refused(self.built('unlinked'), 'It cannot be linked', 'FromElsewhere')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

# SPDX-License-Identifier: Apache-2.0
"""`weft server --device_plugin` with libraries that are no good: server_test.py WEFT LIBRARY"""
import os
import subprocess
import sys
import unittest

WEFT, LIBRARY = sys.argv[1:3]


def start(library, fault=''):
    """The exit code and what the server says."""
    done = subprocess.run([WEFT, 'server', '--cluster', '{"local": ["127.0.0.1:0"]}', '--job_name', 'local',
                           '--device_plugin', library], env={**os.environ, 'WEFT_ASIC_FAULT': fault},
                          capture_output=True, text=True, timeout=100)
    return done.returncode, done.stderr


class BadLibraries(unittest.TestCase):
    def expect(self, answer, *texts):
        code, said = answer
        self.assertEqual(code, 2, said)
        self.assertEqual(len(said.splitlines()), 1, said)
        for text in ('weft server: --device_plugin: ',) + texts:
            self.assertIn(text, said)

    def test_missing(self):
        self.expect(start('/nowhere/libasic.so'), '/nowhere/libasic.so: No such file or directory')

    def test_another_version(self):
        self.expect(start(LIBRARY, 'version'), LIBRARY, 'version 42', 'this weft has version 1')

    def test_a_crash_when_it_is_loaded(self):
        self.expect(start(LIBRARY, 'crash'), LIBRARY, 'crashed when it was tried: Segmentation fault')

    def test_nonsense(self):
        self.expect(start(LIBRARY, 'no_memory'), 'ASIC:0 has no memory')
        self.expect(start(LIBRARY, 'twins'), 'two devices of one name')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

# SPDX-License-Identifier: Apache-2.0
"""An installed weft: install_test.py BUILD_FOLDER EXAMPLES_FOLDER [PYTHON ...] installs, moves it elsewhere, builds, runs.

Each PYTHON has a TensorFlow of its own.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import unittest

BUILD, EXAMPLES, *PYTHONS = sys.argv[1:]


def run(*command, **options):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          timeout=300, **options)
    assert done.returncode == 0, '%s\n%s' % (command, done.stdout[-4000:])
    return done.stdout


class Installed(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.folder = tempfile.TemporaryDirectory()
        root = pathlib.Path(cls.folder.name)
        run('cmake', '--install', BUILD, '--prefix', root / 'first')
        cls.prefix = root / 'weft'
        os.rename(root / 'first', cls.prefix)
        cls.root = root
        cls.library = next(cls.prefix.rglob('libweft.so'))

    @classmethod
    def tearDownClass(cls):
        cls.folder.cleanup()

    def build(self, source, *programs):
        """Builds the project in `source`, a copy of what lies in examples/."""
        copy, build = self.root / ('source-' + programs[0]), self.root / ('build-' + programs[0])
        shutil.copytree(os.path.join(EXAMPLES, source), copy)
        run('cmake', '-G', 'Ninja', '-S', copy, '-B', build, '-DCMAKE_PREFIX_PATH=%s' % self.prefix)
        run('cmake', '--build', build, '--target', *programs)
        return build

    def test_the_program_runs(self):
        self.assertRegex(run(self.prefix / 'bin' / 'weft', '--version'), r'\d+\.\d+')

    def test_a_project_of_its_own_trains(self):
        program = self.build('linear_regression', 'linear_regression') / 'linear_regression'
        text = run(program, '--model_dir', self.root / 'model')
        self.assertAlmostEqual(float(re.search(r'at 10: (\S+)', text)[1]), 32, delta=0.05)

    def test_the_examples_build_elsewhere(self):
        build = self.build('.', 'custom_op', 'recommender')
        self.assertLess(float(re.search(r'(\S+) at last', run(build / 'custom_op'))[1]), 0.005)
        self.assertGreater(float(re.search(r'AUC after: +(\S+)', run(build / 'recommender'))[1]), 0.85)

    def test_op_libraries_build_elsewhere(self):
        build = self.build('.', 'op_library', 'lion')
        self.assertIn('y = 3.00 x + -1.00', run(build / 'op_library', build / 'lion.so'))
        # The installed program loads them too, and makes a header of them that a project can use.
        weft, header = self.prefix / 'bin' / 'weft', self.root / 'lion_ops.h'
        self.assertIn('ResourceApplyLion(var: resource, m: resource', run(weft, 'op-library', build / 'lion.so'))
        run(weft, 'op-library', build / 'lion.so', '--cpp_header', header)
        source = self.root / 'uses_lion.cc'
        source.write_text('#include "lion_ops.h"\nusing weft::Endpoint;\nweft::Node* Lion(weft::GraphBuilder& b, Endpoint v, '
                          'Endpoint x) {\n  return weft::op::ResourceApplyLion(b, v, v, x, x, x, x, x);\n}\n')
        run('c++', '-std=c++20', '-fsyntax-only', '-I', self.prefix / 'include' / 'weft', source)
        self.assertIn('ResourceApplyLion', run(weft, 'inspect', '--ops', '--op_library', build / 'lion.so'))

    def test_only_weft_is_exported(self):
        names = run('nm', '-D', '-C', '--defined-only', self.library).splitlines()
        foreign = [line for line in names if ' weft::' not in line and 'for weft::' not in line and 'to weft::' not in line]
        self.assertEqual(foreign[:5], [])
        inner = [line for line in names if re.search(r'[ABDRTVW] weft::(ops|executor|compile|transport|storage|wire|worker|master)', line)]
        self.assertEqual(inner[:5], [])
        self.assertGreater(len(names), 500)

    def test_tensorflow_may_come_after_it_in_a_process(self):
        program = """
import ctypes
catalogue = ctypes.CDLL(%r)._ZN4weft17StandardCatalogueEv
catalogue.restype = ctypes.c_void_p
assert catalogue()
import tensorflow as tf
print('sum', int(tf.constant(20) + 3))
""" % str(self.library)
        for python in PYTHONS:
            with self.subTest(python):
                self.assertIn('sum 23', run(python, '-c', program))

    def test_headers_stand_alone(self):
        headers = self.prefix / 'include' / 'weft'
        for path in headers.rglob('*.h'):
            text = path.read_text()
            self.assertNotRegex(text, r'#include [<"](grpc|google/protobuf|proto/|dnnl|nlohmann|spdlog)', path)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

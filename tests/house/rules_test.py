#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Plants one violation of each house rule in a small tree and expects the check to name it."""
import contextlib
import io
import pathlib
import sys
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / 'tools'))
import check_layers  # noqa: E402
import check_size  # noqa: E402
import check_unused  # noqa: E402

LAYERS = '''
[rooms]
"proto" = 1
"src/base" = 0
"src/net" = 1
"src/weft/tensor" = 2
"src/weft/graph" = 3
"src/weft/storage" = 3
"src/weft/api" = 7
"src/platform/jobs" = 5
"apps" = 11
[licensed]
"nlohmann" = ["src/net"]
"zlib" = ["src/weft/storage"]
[oversize]
[allowed]
'''
SPDX = '// SPDX-License-Identifier: Apache-2.0\n'
README = '# a room\n'


def run(check, files, layers=LAYERS):
    """The problems that `check` finds in a tree of `files` {path: text}."""
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder)
        (root / 'layers.toml').write_text(layers)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            code = check.main([folder])
        problems = out.getvalue().splitlines()[:-1]
        assert (code == 0) == (not problems), 'exit code %d with %r' % (code, problems)
        return problems


class LayersTest(unittest.TestCase):
    def include(self, path, header):
        return run(check_layers, {path: SPDX + '#include %s\n' % header})

    def assert_fails(self, path, header, expected):
        problems = self.include(path, header)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(expected, problems[0])
        self.assertTrue(problems[0].startswith(path + ':2: '), problems[0])

    def test_what_is_allowed_passes(self):
        for path, header in [('src/weft/graph/a.cc', '"weft/tensor/b.h"'), ('src/weft/graph/a.cc', '"base/b.h"'),
                             ('src/weft/graph/a.cc', '"proto/tensorflow/core/b.pb.h"'), ('src/net/a.cc', '<nlohmann/json.hpp>'),
                             ('src/weft/storage/a.cc', '<zlib.h>'), ('src/base/a.cc', '<sys/mman.h>'),
                             ('src/base/a.cc', '<vector>'), ('src/base/a_test.cc', '<gtest/gtest.h>'),
                             ('src/weft/graph/deep/a.cc', '"weft/graph/b.h"'), ('apps/a.cc', '"weft/api/generated/b.h"'),
                             ('tests/cluster/a.cc', '"weft/api/b.h"')]:
            self.assertEqual(self.include(path, header), [], (path, header))

    def test_upward_include(self):
        self.assert_fails('src/base/a.cc', '"weft/tensor/b.h"', 'higher room')

    def test_upward_include_of_a_generated_header(self):
        self.assert_fails('src/weft/graph/a.cc', '"weft/api/generated/math_ops.h"', 'higher room')
        self.assert_fails('src/base/a.cc', '"proto/tensorflow/core/framework/graph.pb.h"', 'higher room')

    def test_upward_include_in_a_test(self):
        self.assert_fails('src/weft/tensor/a_test.cc', '"weft/graph/b.h"', 'higher room')

    def test_strangers(self):
        self.assert_fails('src/weft/graph/a.h', '"weft/storage/b.h"', 'strangers')

    def test_platform_and_runtime_never_meet(self):
        self.assert_fails('src/platform/jobs/a.cc', '"weft/tensor/b.h"', 'never meet')
        self.assert_fails('src/weft/api/a.cc', '"platform/jobs/b.h"', 'never meet')

    def test_unknown_room(self):
        self.assert_fails('src/weft/graph/a.cc', '"weft/novel/b.h"', 'no room')
        self.assertIn('no room', run(check_layers, {'src/weft/novel/a.cc': SPDX})[0])
        self.assertIn('no room', run(check_layers, {'src/weft/a.cc': SPDX})[0])

    def test_include_without_a_folder(self):
        self.assert_fails('src/weft/graph/a.cc', '"b.h"', 'from src/')

    def test_third_party_outside_its_room(self):
        self.assert_fails('src/weft/graph/a.cc', '<nlohmann/json.hpp>', 'licensed for src/net')
        self.assert_fails('src/weft/graph/a.cc', '"nlohmann/json.hpp"', 'licensed for src/net')
        self.assert_fails('src/weft/graph/a.cc', '<zlib.h>', 'licensed for src/weft/storage')

    def test_third_party_without_a_licence(self):
        self.assert_fails('src/net/a.cc', '<boost/any.hpp>', '[licensed]')
        self.assert_fails('src/net/a.cc', '<lmdb.h>', '[licensed]')

    def test_test_headers_in_the_product(self):
        self.assert_fails('src/net/a.cc', '<gtest/gtest.h>', 'tests')

    def test_header_cycle(self):
        problems = run(check_layers, {'src/base/a.h': '#include "base/b.h"\n', 'src/base/b.h': '#include "base/a.h"\n'})
        self.assertEqual(len(problems), 1)
        self.assertIn('include cycle: a.h -> b.h -> a.h', problems[0])

    def test_folder_cycle(self):
        files = {'src/base/disk/a.h': '', 'src/base/clock/b.h': '', 'src/base/disk/a.cc': '#include "base/clock/b.h"\n'}
        self.assertEqual(run(check_layers, files), [])
        tested = {**files, 'src/base/clock/b_test.cc': '#include "base/disk/a.h"\n'}
        self.assertEqual(run(check_layers, tested), [])
        problems = run(check_layers, {**files, 'src/base/clock/c.cc': '#include "base/disk/a.h"\n'})
        self.assertEqual(len(problems), 1, problems)
        self.assertIn('folder cycle: clock -> disk -> clock', problems[0])
        self.assertIn('src/base/clock/c.cc includes disk/', problems[0])

    def test_cmake_deps(self):
        def cmake(text):
            return run(check_layers, {'src/weft/graph/CMakeLists.txt': text})
        self.assertEqual(cmake('weft_room(graph DEPS base tensor proto LIBS absl::span)\n'), [])
        self.assertIn('strangers', cmake('weft_room(graph\n  DEPS base storage)\n')[0])
        self.assertIn('higher room', cmake('weft_room(graph DEPS base TEST_DEPS api)\n')[0])
        self.assertIn('no room', cmake('weft_room(graph DEPS novel)\n')[0])
        self.assertIn('of that name', cmake('weft_room(tensor DEPS base)\n')[0])
        self.assertIn('under DEPS', cmake('weft_room(graph DEPS base LIBS weft_api)\n')[0])
        self.assertIn('under DEPS', cmake('weft_room(graph DEPS base LIBS weft::api)\n')[0])


class SizeTest(unittest.TestCase):
    def assert_fails(self, files, expected, layers=LAYERS):
        files.setdefault('src/base/README.md', README)
        problems = run(check_size, files, layers)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(expected, problems[0])

    def assert_symbol(self, line, expected, path='src/net/a.cc'):
        self.assert_fails({path: SPDX + 'void F() {\n  %s\n}\n' % line}, expected)

    def test_a_clean_tree_passes(self):
        text = SPDX + '// throw abort() std::thread\nconst char* F() {\n  static_assert(1);\n  return "throw std::endl";\n}\n'
        self.assertEqual(run(check_size, {'src/base/a.cc': text, 'src/base/a.h': SPDX, 'src/base/README.md': README}), [])
        self.assertEqual(run(check_size, {'src/base/b.cc': SPDX + 'std::thread t;\n'}), [])

    def test_sizes(self):
        self.assert_fails({'src/base/a.cc': SPDX + 'int x;\n' * 600}, '601 lines (stops at 600)')
        self.assert_fails({'src/base/a.h': SPDX + 'int x;\n' * 200}, '201 lines (stops at 200)')
        self.assertEqual(run(check_size, {'src/base/a.cc': SPDX + 'int x;\n' * 599}), [])

    def test_functions(self):
        def function(head, lines):
            return {'src/base/a.cc': SPDX + head + '  int x;\n' * lines + '}\n\nint y;\n'}
        self.assert_fails(function('int Long(int a) {\n', 79), 'Long is 81 lines')
        self.assert_fails(function('Status Room::Long(int a,\n         int b) const {\n', 79), 'Room::Long is 82 lines')
        self.assert_fails(function('TEST(RoomTest, Long) {\n', 79), 'Long is 81 lines')
        self.assertEqual(run(check_size, function('int Long(int a) {\n', 78)), [])
        self.assertEqual(run(check_size, function('namespace weft {\n', 200)), [])
        self.assertEqual(run(check_size, function('constexpr int kTable[] = {\n', 200)), [])

    def test_functions_of_classes(self):
        def member(head, lines, end='  }\n'):
            body = head + '    int x;\n' * lines + end
            return {'src/base/a.cc': SPDX + 'namespace weft {\nclass Room : public Base {\n public:\n' + body + '};\n}\n'}
        self.assert_fails(member('  int Long(int a) override {\n', 79), 'a.cc:5: Long is 81 lines')
        self.assert_fails(member('  Room() : a_{1}, b_(2) {\n', 79), 'Room is 81 lines')
        self.assert_fails(member('  struct Inner {\n  void Long() {\n', 79, '  }\n  };\n'), 'Long is 81 lines')
        self.assert_fails(member('  bool operator<(const Room& o) const {\n', 79), 'operator< is 81 lines')
        self.assertEqual(run(check_size, member('  int Long(int a) {\n', 78)), [])
        self.assertEqual(run(check_size, member('  struct Inner {\n', 100, '  };\n')), [])
        self.assertEqual(run(check_size, member('  std::vector<int> table_ = {\n', 100, '  };\n')), [])

    def test_exceptions(self):
        files = {'src/base/a.cc': SPDX + 'int x;\n' * 600}
        good = LAYERS.replace('[oversize]', '[oversize]\n"src/base/a.cc" = "2026-01-31: one table"')
        self.assertEqual(run(check_size, files, good), [])
        self.assert_fails(files, 'YYYY-MM-DD', LAYERS.replace('[oversize]', '[oversize]\n"src/base/a.cc" = "a table"'))
        self.assert_fails({'src/base/a.cc': SPDX}, 'no longer needed', good)

    def test_names(self):
        for path in 'src/base/string_util.cc', 'src/net/manager.cc', 'src/base/helpers/a.cc', 'tests/a_v2.py':
            comment = SPDX if path.endswith('.cc') else SPDX.replace('//', '#')
            self.assert_fails({path: comment}, 'the name says nothing')

    def test_licence_line(self):
        self.assert_fails({'src/base/a.cc': '\n' + SPDX}, 'first line')
        self.assert_fails({'tools/a.py': 'import os\n'}, 'first line')
        self.assert_fails({'dev': '#!/bin/bash\necho\n'}, 'first line')
        self.assertEqual(run(check_size, {'dev': '#!/bin/bash\n' + SPDX.replace('//', '#')}), [])

    def test_banned_symbols(self):
        self.assert_symbol('std::thread t;', 'naked std::thread')
        self.assert_symbol('std::mutex m;', 'absl::Mutex')
        self.assert_symbol('throw 1;', 'return a Status')
        self.assert_symbol('std::cout << std::endl;', "'\\n'")
        self.assert_symbol('using namespace std;', 'name what you use')
        self.assert_symbol('std::abort();', 'nothing aborts')
        self.assert_symbol('assert(1);', 'nothing asserts')
        self.assert_symbol('int x = Read().value();', '.value() aborts')
        self.assert_symbol('StatusOr<int> x = Read(); return x.value();', '.value() aborts')
        self.assert_symbol('int x; /* TODO: y */', 'finish it')

    def test_readmes(self):
        self.assert_fails({'src/net/a.h': SPDX}, 'missing')
        self.assert_fails({'src/net/a.h': SPDX, 'src/net/README.md': 'x\n' * 41}, 'longer than 40')


class UnusedTest(unittest.TestCase):
    LAYERS = '[rooms]\n"src/base" = 0\n"src/net" = 1\n"apps" = 2\n[licensed]\n'
    HOUSE = {'src/base/a.h': 'class Shelf {\n public:\n  virtual ~Shelf() = default;\n  virtual int Put() = 0;\n};\n',
             'src/net/b.h': '#include "base/a.h"\nclass Board final : public Shelf {\n  int Put() override;\n};\n',
             'apps/main.cc': '#include "net/b.h"\n'}

    def problems(self, files, layers=LAYERS):
        return run(check_unused, {path: text for path, text in {**self.HOUSE, **files}.items() if text is not None}, layers)

    def assert_fails(self, files, expected, layers=LAYERS):
        problems = self.problems(files, layers)
        self.assertEqual(len(problems), 1, problems)
        self.assertIn(expected, problems[0])

    def test_a_house_in_use_passes(self):
        self.assertEqual(self.problems({}), [])
        public = 'foreach(header net/c.h)\n'  # of an installed library
        self.assertEqual(self.problems({'src/net/c.h': '', 'cmake/public.cmake': public}), [])

    def test_rooms(self):
        self.assert_fails({}, 'room src/novel has no code', self.LAYERS.replace('"apps"', '"src/novel" = 1\n"apps"'))
        alone = self.LAYERS.replace('"apps"', '"src/novel" = 1\n"apps"')
        novel = {'src/novel/c.cc': '#include "novel/c.h"\n', 'src/novel/c.h': '', 'src/novel/d.cc': '#include "novel/c.h"\n'}
        self.assert_fails(novel, 'nobody outside of room src/novel', alone)
        tested = {**novel, 'tests/c_test.cc': '#include "novel/c.h"\n'}
        self.assert_fails(tested, 'nobody outside of room src/novel', alone)
        self.assertEqual(self.problems({**novel, 'apps/c.cc': '#include "novel/c.h"\n'}, alone), [])

    def test_interfaces(self):
        expected = 'a.h:1: interface Shelf has no implementer outside tests'
        self.assert_fails({'src/net/b.h': '#include "base/a.h"\n'}, expected)
        fake = 'class Fake : public Shelf {\n  int Put() override;\n};\n'
        self.assert_fails({'src/net/b.h': '#include "base/a.h"\n', 'src/net/b_test.cc': fake}, expected)
        # Through another interface, and from another namespace.
        between = ('#include "base/a.h"\nclass Half : public base::Shelf {\n  virtual int Take() = 0;\n};\n'
                   'class Whole : public Half {\n};\n')
        self.assertEqual(self.problems({'src/net/b.h': between}), [])
        half = between.replace('class Whole : public Half {\n};\n', '')
        self.assertEqual(len(self.problems({'src/net/b.h': half})), 2)

    def test_declarations(self):
        declared = self.HOUSE['src/net/b.h'] + 'namespace weft {\nclass Lamp;\nLamp* Light();\n}\n'
        self.assert_fails({'src/net/b.h': declared}, 'b.h:6: class Lamp is declared and nowhere defined')
        self.assertEqual(self.problems({'src/net/b.h': declared, 'src/net/b.cc': 'class Lamp final {\n};\n'}), [])
        self.assertEqual(self.problems({'src/net/b.h': declared.replace('weft', 'tensorflow')}), [])

    def test_headers(self):
        self.assert_fails({'src/net/c.h': ''}, 'src/net/c.h:1: nobody includes it')
        self.assert_fails({'src/net/c.h': '', 'src/net/c.cc': '#include "net/c.h"\n'}, 'nobody includes it')
        self.assert_fails({'src/net/c.h': '', 'src/net/b_test.cc': '#include "net/c.h"\n'}, 'only tests include it')

    def test_what_is_for_tests(self):
        layers = self.LAYERS + '[for_tests]\n"src/net/c.h" = "a stand-in"\n'
        self.assertEqual(self.problems({'src/net/c.h': '', 'src/net/b_test.cc': '#include "net/c.h"\n'}, layers), [])
        used = self.problems({'src/net/c.h': '', 'apps/main.cc': '#include "net/b.h"\n#include "net/c.h"\n'}, layers)
        self.assertIn('apps/main.cc includes it, which is for tests alone', used[0])
        self.assert_fails({}, 'the line for "src/net/c.h" under [for_tests] is not needed', layers)


if __name__ == '__main__':
    unittest.main()

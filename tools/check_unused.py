#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Finds what stands in the house although nobody lives in it.

    check_unused.py [ROOT]     prints `file:line: what is wrong` and exits 1, or prints one line and exits 0

A room of layers.toml has code, and somebody outside of it includes it; an interface (a class with pure virtual
functions) has an implementer; a class that is declared is defined; a header is included by somebody. Tests do not count as somebody. What is meant for
tests stands under [for_tests] in layers.toml, "header or room" = "reason"; a line that is not needed there is a
problem too, and so is a product that includes what is for tests.
"""
import pathlib
import re
import sys
import tomllib

from check_size import COMMENTS, blank

CPP = {'.h', '.hpp', '.cc', '.cu'}
TESTS = ('tests/', 'bench/', 'examples/')
TEST_NAME = re.compile(r'_(test|fuzz|benchmark)\.\w+$')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*"([^"]+)"', re.M)
CLASS = re.compile(r'\b(?:class|struct)\s+(?:[A-Z_]+(?:\([^()]*\))?\s+)?([\w:]+)(?:<[^{};]*?>)?(?:\s+final)?\s*(?::(?!:)([^{;]*))?\{')
BASE = re.compile(r'(?:public|protected|private)\s+(?:virtual\s+)?((?:::)?[\w:]+)')
DECLARED = re.compile(r'\bnamespace ([\w:]+) \{|^[ \t]*(?:class|struct) (\w+);', re.M)
PURE = re.compile(r'(?:\bvirtual\b[^;{}]*|\boverride\s*)=\s*0\s*;')
# Programs include them or nobody does: there is no room above.
ROOFS = ('apps', 'src/weft', 'src/weft/c_api', 'proto')


def body_of(code, start):
    """The text from `start`, just inside a brace, to its closing brace, without what stands in braces there."""
    depth, out = 1, []
    for match in re.finditer(r'[{}]|[^{}]+', code[start:]):
        depth += {'{': 1, '}': -1}.get(match[0], 0)
        if depth == 0:
            break
        if depth == 1 and match[0] not in '{}':
            out.append(match[0])
    return ''.join(out)


class House:
    def __init__(self, root):
        self.root = root
        page = tomllib.loads((root / 'layers.toml').read_text())
        self.rooms = page['rooms']
        self.for_tests = page.get('for_tests', {})
        self.needed = set()    # keys of for_tests that only tests use
        self.problems = []
        self.users = {}        # header: {files that include it}
        self.interfaces = {}   # class: (path, line)
        self.bases = {}        # class: {(derived class, path)}
        self.headers = []
        self.declared = {}     # class: (path, line) of a declaration alone
        self.defined = set()

    def complain(self, path, line, text):
        self.problems.append('%s:%d: %s' % (path, line, text))

    def room_of(self, path):
        parts = path.split('/')
        for n in range(len(parts) - 1, 0, -1):
            if '/'.join(parts[:n]) in self.rooms:
                return '/'.join(parts[:n])
        return None

    def is_test(self, path):
        return bool(TEST_NAME.search(path)) or path.startswith(TESTS) or '/testing/' in path or any(
            path in (key, key.removesuffix('.h') + '.cc') or path.startswith(key + '/') for key in self.for_tests)

    def read(self, file):
        path = str(file.relative_to(self.root))
        text = file.read_text(errors='replace')
        for match in INCLUDE.finditer(text):
            inside = 'src/' + match[1]
            other = inside if (self.root / inside).exists() or self.room_of(inside) else match[1]
            self.users.setdefault(other, set()).add(path)
        if path.startswith('src/') and file.suffix in ('.h', '.hpp'):
            self.headers.append(path)
        code = COMMENTS.sub(blank, text)
        scope = ''
        for match in DECLARED.finditer(code):
            scope = match[1] or scope
            if match[2] and scope.startswith('weft'):  # others are libraries' and generated
                self.declared.setdefault(match[2], (path, code.count('\n', 0, match.start(2)) + 1))
        for match in CLASS.finditer(code):
            name = match[1].split('::')[-1]
            self.defined.add(name)
            for base in BASE.findall(match[2] or ''):
                self.bases.setdefault(base.split('::')[-1], set()).add((name, path))
            if not self.is_test(path) and PURE.search(body_of(code, match.end())):
                self.interfaces[name] = (path, code.count('\n', 0, match.start()) + 1)

    def is_implemented(self, name, seen=()):
        for derived, path in self.bases.get(name, ()):
            if self.is_test(path) or derived in seen:
                continue
            if derived not in self.interfaces or self.is_implemented(derived, seen + (name,)):
                return True
        return False

    def check_interfaces(self):
        for name, (path, line) in sorted(self.interfaces.items()):
            if not self.is_implemented(name):
                self.complain(path, line, 'interface %s has no implementer outside tests' % name)

    def check_declarations(self):
        for name, (path, line) in sorted(self.declared.items()):
            if name not in self.defined:
                self.complain(path, line, 'class %s is declared and nowhere defined' % name)

    def check_headers(self, public):
        for header in sorted(self.headers):
            if TEST_NAME.search(header) or '/testing/' in header or header.removeprefix('src/') in public:
                continue
            users = self.users.get(header, set()) - {header.removesuffix('.h') + '.cc'}
            if any(not self.is_test(user) for user in users):
                if header in self.for_tests:
                    self.complain(header, 1, '%s includes it, which is for tests alone' % min(
                        user for user in users if not self.is_test(user)))
                continue
            self.needed.add(header)
            if not self.is_test(header):
                self.complain(header, 1, 'only tests include it' if users else 'nobody includes it')

    def check_rooms(self):
        for room in self.rooms:
            if not any(p.suffix in CPP | {'.proto'} for p in (self.root / room).rglob('*')):
                self.complain('layers.toml', 1, 'room %s has no code' % room)
                continue
            outside = {user for header, users in self.users.items() if self.room_of(header) == room
                       for user in users if self.room_of(user) != room and not self.is_test(user)}
            if room in self.for_tests:
                self.needed.add(room)
                for user in sorted(outside):
                    self.complain(user, 1, 'it includes room %s, which is for tests alone' % room)
            elif not outside and room not in ROOFS:
                self.complain('layers.toml', 1, 'nobody outside of room %s includes it' % room)

    def run(self):
        files = [p for top in ('src', 'apps', 'tests', 'bench', 'examples')
                 for p in sorted((self.root / top).rglob('*')) if p.suffix in CPP]
        for file in files:
            self.read(file)
        public = ''.join(p.read_text() for p in sorted((self.root / 'cmake').glob('*.cmake')))
        self.check_interfaces()
        self.check_declarations()
        self.check_headers(set(re.findall(r'[\w/]+\.h\b', public)))
        self.check_rooms()
        for key in sorted(set(self.for_tests) - self.needed):
            self.complain('layers.toml', 1, 'the line for "%s" under [for_tests] is not needed' % key)
        return len(files)


def main(args):
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    house = House(root)
    count = house.run()
    for problem in house.problems:
        print(problem)
    print('unused: %d files, %d interfaces, %d problems' % (count, len(house.interfaces), len(house.problems)))
    return 1 if house.problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

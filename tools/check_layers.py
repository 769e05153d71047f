#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds every #include and every weft_room() against layers.toml.

    check_layers.py [ROOT]     prints `file:line: what is wrong` and exits 1, or prints one line and exits 0

A room may include rooms with a smaller number and itself; rooms of one number are strangers; the platform
and the runtime never meet; a third-party header is used only in the rooms that it is licensed for. Headers do
not include each other in a circle, nor do the folders of a room.
"""
import pathlib
import re
import sys
import tomllib

SOURCES = {'.h', '.hpp', '.cc', '.cu', '.inc'}
ABOVE_THE_ROOMS = ('tests', 'bench', 'examples')
HOUSE_TOPS = ('base/', 'net/', 'supervisor/', 'weft/', 'platform/', 'proto/', 'apps/') + tuple(
    top + '/' for top in ABOVE_THE_ROOMS)
STRANGERS = ('src/weft', 'src/platform')
INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*(?:"([^"]+)"|<([^>]+)>)', re.M)
TEST_NAME = re.compile(r'_(test|fuzz|benchmark)\.\w+$')
CMAKE_KEYWORDS = {'DEPS', 'LIBS', 'PRIVATE_LIBS', 'DIRS', 'TEST_DEPS', 'TEST_LIBS', 'EXTRA_SOURCES'}
SYSTEM_PREFIXES = ('sys/', 'linux/', 'netinet/', 'arpa/', 'net/', 'bits/', 'sanitizer/')
SYSTEM_HEADERS = set('''
aio.h alloca.h assert.h cpuid.h ctype.h cxxabi.h dirent.h dlfcn.h elf.h endian.h errno.h execinfo.h fcntl.h
features.h fenv.h float.h fnmatch.h getopt.h glob.h grp.h ifaddrs.h immintrin.h inttypes.h libgen.h limits.h
link.h locale.h malloc.h math.h memory.h netdb.h numaif.h numa.h poll.h pthread.h pwd.h resolv.h sched.h
semaphore.h setjmp.h signal.h spawn.h stdarg.h stdatomic.h stddef.h stdint.h stdio.h stdlib.h string.h
strings.h sysexits.h syslog.h termios.h time.h ucontext.h ulimit.h unistd.h utime.h wchar.h x86intrin.h
arm_neon.h emmintrin.h nmmintrin.h xmmintrin.h poll.h pty.h
'''.split())


def circles(edges):
    """Paths [a, b, ..., a] through `edges` {a: {b: ...}}, one for each edge that closes a circle."""
    done, stack, found = set(), [], []

    def visit(node):
        if node in stack:
            found.append(stack[stack.index(node):] + [node])
        elif node not in done:
            stack.append(node)
            for other in sorted(edges.get(node, ())):
                visit(other)
            stack.pop()
            done.add(node)
    for node in sorted(edges):
        visit(node)
    return found


class Layers:
    def __init__(self, root):
        self.root = root
        page = tomllib.loads((root / 'layers.toml').read_text())
        self.rooms = page['rooms']
        self.licensed = page['licensed']
        self.by_name = {room.rsplit('/', 1)[-1]: room for room in self.rooms}
        self.problems = []

    def complain(self, path, line, text):
        self.problems.append('%s:%d: %s' % (path.relative_to(self.root), line, text))

    def room_of(self, path):
        """The longest room that `path` (a string relative to the root) lies in, or None."""
        parts = path.split('/')
        for n in range(len(parts) - 1, 0, -1):
            if '/'.join(parts[:n]) in self.rooms:
                return '/'.join(parts[:n])
        return None

    def may_see(self, room, other):
        if room is None or room == other:
            return None
        mine, theirs = self.rooms[room], self.rooms[other]
        if theirs > mine:
            return 'room %s (%d) may not include the higher room %s (%d)' % (room, mine, other, theirs)
        if theirs == mine:
            return 'rooms %s and %s are strangers (both %d)' % (room, other, mine)
        for a, b in (STRANGERS, STRANGERS[::-1]):
            if room.startswith(a + '/') and other.startswith(b + '/'):
                return 'room %s may not include %s: platform and runtime never meet' % (room, other)
        return None

    def check_house_include(self, path, line, room, header):
        if '/' not in header:
            if room is None:  # examples stand beside the house, as a user's programs do
                return None
            return self.complain(path, line, '"%s": write the path from src/' % header)
        other = self.room_of('src/' + header) or self.room_of(header)
        if other is None:
            if header.startswith(ABOVE_THE_ROOMS) and room is None:
                return None
            return self.complain(path, line, '"%s" is in no room of layers.toml' % header)
        why = self.may_see(room, other)
        return self.complain(path, line, why) if why else None

    def licence_of(self, header):
        keys = [k for k in self.licensed if header == k or header.startswith((k + '/', k + '.', k + '-'))]
        return max(keys, key=len, default=None)

    def check_outside_include(self, path, line, room, header):
        if room is None or header.startswith(SYSTEM_PREFIXES) or header in SYSTEM_HEADERS:
            return None
        if re.fullmatch(r'[a-z_0-9]+', header):
            return None
        if header.startswith(('gtest/', 'gmock/')):
            if path.name.endswith(('_test.cc', '_test.h', '_fuzz.cc')):
                return None
            return self.complain(path, line, '<%s> belongs to tests' % header)
        if header.startswith('benchmark/') and path.name.endswith('_benchmark.cc'):
            return None
        key = self.licence_of(header)
        if key is None:
            return self.complain(path, line, '<%s> has no line under [licensed] in layers.toml' % header)
        for allowed in self.licensed[key]:
            if allowed == '*' or room == allowed or str(path.relative_to(self.root)).startswith(allowed + '/'):
                return None
        rooms = ', '.join(self.licensed[key])
        return self.complain(path, line, '<%s> is licensed for %s only' % (header, rooms))

    def check_file(self, path):
        relative = str(path.relative_to(self.root))
        room = self.room_of(relative)
        if room is None and relative.split('/')[0] not in ABOVE_THE_ROOMS:
            return self.complain(path, 1, 'the folder is no room of layers.toml')
        text = path.read_text(errors='replace')
        for match in INCLUDE.finditer(text):
            line = text.count('\n', 0, match.start()) + 1
            if match[1] and (match[1].startswith(HOUSE_TOPS) or '/' not in match[1]):
                self.check_house_include(path, line, room, match[1])
            else:
                self.check_outside_include(path, line, room, match[1] or match[2])

    def included_files(self, path):
        """The house's files that `path` includes."""
        headers = (m[1] for m in INCLUDE.finditer(path.read_text(errors='replace')) if m[1])
        candidates = (self.root / top / header for header in headers for top in ('src', ''))
        return [p for p in candidates if p.exists()]

    def check_header_cycles(self, headers):
        edges = {path: {p: path for p in self.included_files(path) if p in headers} for path in headers}
        for loop in circles(edges):
            self.complain(loop[0], 1, 'include cycle: ' + ' -> '.join(p.name for p in loop))

    def check_folder_cycles(self, files):
        edges = {}
        for path in files:
            room = self.room_of(str(path.relative_to(self.root)))
            for other in self.included_files(path):
                if room and other.parent != path.parent and room == self.room_of(str(other.relative_to(self.root))):
                    edges.setdefault(path.parent, {}).setdefault(other.parent, path)
        for loop in circles(edges):
            why = ', '.join('%s includes %s/' % (edges[a][b].relative_to(self.root), b.name)
                            for a, b in zip(loop, loop[1:]))
            self.complain(edges[loop[0]][loop[1]], 1, 'folder cycle: %s: %s' % (
                ' -> '.join(p.name for p in loop), why))

    def check_cmake(self, path):
        text = re.sub(r'#.*', '', path.read_text())
        room = self.room_of(str(path.relative_to(self.root)))
        for match in re.finditer(r'\bweft_room\s*\(([^)]*)\)', text):
            line = text.count('\n', 0, match.start()) + 1
            name, *words = match[1].split()
            if room is None or room.rsplit('/', 1)[-1] != name:
                self.complain(path, line, 'weft_room(%s) does not stand in the room of that name' % name)
                continue
            keyword = None
            for word in words:
                if word in CMAKE_KEYWORDS:
                    keyword = word
                elif keyword in ('DEPS', 'TEST_DEPS'):
                    self.check_dep(path, line, room, keyword, word)
                elif word.startswith(('weft_', 'weft::')) and word[5:].lstrip(':') in self.by_name:
                    self.complain(path, line, '%s: rooms are named under DEPS, not %s' % (word, keyword))

    def check_dep(self, path, line, room, keyword, word):
        other = self.by_name.get(word)
        if other is None:
            return self.complain(path, line, '%s names %s, which is no room of layers.toml' % (keyword, word))
        why = self.may_see(room, other)
        return self.complain(path, line, '%s: %s' % (keyword, why)) if why else None

    def run(self):
        files = []
        for top in ('src', 'apps') + ABOVE_THE_ROOMS:
            files += [p for p in sorted((self.root / top).rglob('*')) if p.suffix in SOURCES]
        for path in files:
            self.check_file(path)
        self.check_header_cycles({p for p in files if p.suffix in ('.h', '.hpp')})
        self.check_folder_cycles([p for p in files if not TEST_NAME.search(p.name)])
        for top in ('src', 'proto'):
            for path in sorted((self.root / top).rglob('CMakeLists.txt')):
                self.check_cmake(path)
        return len(files)


def main(args):
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    layers = Layers(root)
    count = layers.run()
    for problem in layers.problems:
        print(problem)
    print('layers: %d files, %d rooms, %d problems' % (count, len(layers.rooms), len(layers.problems)))
    return 1 if layers.problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Holds sizes, names, banned symbols, licence lines and room READMEs against the house rules.

    check_size.py [ROOT]     prints `file:line: what is wrong` and exits 1, or prints one line and exits 0

Files stop at 600 lines, headers at 200, functions at 80. Exceptions stand under [oversize] in layers.toml as
"path" or "path:Function" = "2026-01-31: reason", for banned symbols under [allowed] as "path:symbol"; one that
is no longer needed is a problem too.
"""
import pathlib
import re
import sys
import tomllib

TOPS = ('src', 'apps', 'proto', 'tests', 'bench', 'examples', 'tools', 'python', 'cmake', 'docs', '.ci')
CPP = {'.h', '.hpp', '.cc', '.cu'}
CODE = CPP | {'.py', '.sh', '.cmake', '.proto', '.js', '.ts', '.css', '.html'}
HEADERS = {'.h', '.hpp'}
FILE_LIMIT, HEADER_LIMIT, FUNCTION_LIMIT, README_LIMIT = 600, 200, 80, 40
SPDX = 'SPDX-License-Identifier: Apache-2.0'
BANNED_WORDS = {'util', 'utils', 'utility', 'utilities', 'common', 'misc', 'helper', 'helpers', 'manager',
                'managers', 'impl', 'v2'}
# A library of devices is built without weft, as anybody's would be.
STANDALONE = 'tests/devices/asic/'
BANNED = [  # pattern, what to write instead, where it is allowed (a prefix, or a suffix such as _test.cc)
    (r'\bstd::(jthread|thread)\b(?!::)', 'naked std::thread: use the threads of base/', ('src/base/', STANDALONE)),
    (r'\bstd::((recursive_|shared_|timed_)*mutex|condition_variable\w*)\b', 'use absl::Mutex', ('src/base/', STANDALONE)),
    (r'\bthrow\b', 'errors are values: return a Status', ()),
    (r'\bstd::endl\b', "write '\\n'", ()),
    (r'\busing\s+namespace\b', 'name what you use', ()),
    (r'(?<![\w.>])abort\s*\(', 'nothing aborts: return a Status', ('_fuzz.cc',)),
    (r'(?<!\w)assert\s*\(', 'nothing asserts: return a Status, or static_assert', ()),
    (r'\)\s*\.\s*value\(\)', '.value() aborts on error: WEFT_ASSIGN_OR_RETURN', ('_test.cc',)),
]
COMMENTS = re.compile(r'//[^\n]*|/\*.*?\*/|R"(\w*)\(.*?\)\1"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\'', re.S)
UNFINISHED = re.compile(r'\b(TODO|FIXME|XXX)\b')
STATUS_OR = re.compile(r'\b(?:StatusOr|std::optional)<[^;={}()]*>\s+(\w+)\s*[;=({]')


def blank(match):
    """Comments and literals become as many lines of nothing."""
    return '""' if '\n' not in match[0] else '\n' * match[0].count('\n')


def kind_of(head):
    """What the brace after `head` opens where a namespace or a class stands around it."""
    if re.match(r'(inline\s+)?namespace\b|extern\s*$', head):
        return 'scope'
    bare = re.sub(r'template\s*<[^{}]*?>\s*(?=(class|struct|union)\b)', '', head)
    if re.match(r'(typedef\s+)?(class|struct|union)\b(?!.*\)\s*(const|noexcept|override|final)*\s*$)', bare, re.S):
        return 'scope'
    if '(' not in head or re.match(r'enum\b', head) or re.search(r'(?<![=!<>])=\s*$', head):
        return 'value'
    if re.search(r'\)\s*(noexcept)?\s*:(?!:)', head) and re.search(r'[\w>]\s*$', head):
        return 'initialiser'
    return 'function'


def functions_of(code):
    """(line, name, lines) of each function whose body stands in a namespace or a class of `code`."""
    code = code.replace('""', '  ')  # what is left of comments and literals
    code = re.sub(r'^[ \t]*#(?:[^\n]*\\\n)*[^\n]*', lambda m: '\n' * m[0].count('\n'), code, flags=re.M)
    found, stack, head = [], [], 0  # of each open brace: its kind, where its head began
    for match in re.finditer(r'[{};]|\b(?:public|private|protected)\s*:(?!:)', code):
        inside = stack[-1][0] if stack else 'scope'
        at, mark = match.start(), match[0]
        if mark == '{':
            text = code[head:at].strip()
            stack.append((kind_of(text) if inside == 'scope' else 'inner', head, text))
            if inside == 'scope' and stack[-1][0] not in ('initialiser', 'value'):
                head = match.end()
        elif mark == '}':
            kind, began, text = stack.pop() if stack else ('scope', 0, '')
            if kind == 'function':
                first = code.count('\n', 0, began + re.match(r'\s*', code[began:]).end()) + 1
                macro = re.match(r'TEST\w*\(\s*\w+,\s*(\w+)', text)
                name = macro or re.search(r'((?:[\w~]+(?:<[^<>()]*>)?::)*(?:operator\W+|[\w~]+))\s*\(', text)
                found.append((first, name[1] if name else text.split('(')[0].strip(), code.count('\n', 0, at) + 2 - first))
            if kind in ('function', 'scope'):
                head = match.end()
        elif inside == 'scope':
            head = match.end()
    return found


class House:
    def __init__(self, root):
        self.root = root
        page = tomllib.loads((root / 'layers.toml').read_text())
        self.rooms = page['rooms']
        self.exceptions = {**page.get('oversize', {}), **page.get('allowed', {})}
        self.used = set()
        self.problems = []

    def complain(self, path, line, text):
        self.problems.append('%s:%d: %s' % (path, line, text))

    def complain_unless(self, key, path, line, text):
        self.used.add(key)
        if key not in self.exceptions:
            self.complain(path, line, text)

    def check_name(self, path):
        for part in path.split('/'):
            bad = BANNED_WORDS.intersection(re.split(r'[_.\-]', part.lower()))
            if bad:
                self.complain(path, 1, 'the name says nothing: "%s"' % '", "'.join(sorted(bad)))

    def check_licence(self, path, text):
        first = text.split('\n', 2)[:2]
        if SPDX not in (first[1:] if first[0].startswith(('#!', '<!')) else first[:1] or [''])[0]:
            self.complain(path, 1, 'the first line is not "%s"' % SPDX)

    def check_functions(self, path, code):
        """Functions of namespaces and of classes; lambdas and local classes count into what holds them."""
        for start, name, length in functions_of(code):
            if length > FUNCTION_LIMIT:
                self.complain_unless('%s:%s' % (path, name), path, start,
                                     '%s is %d lines (a function stops at %d)' % (name, length, FUNCTION_LIMIT))

    def check_symbols(self, path, text, code):
        for pattern, instead, allowed in BANNED:
            if path.startswith(tuple(a for a in allowed if a.endswith('/'))) or path.endswith(
                    tuple(a for a in allowed if not a.endswith('/')) or ('\0',)):
                continue
            for match in re.finditer(pattern, code):
                symbol = match[0].strip()
                self.complain_unless('%s:%s' % (path, symbol), path, code.count('\n', 0, match.start()) + 1,
                                     '%s: %s' % (symbol, instead))
        if not path.endswith('_test.cc'):
            for name in set(STATUS_OR.findall(code)):
                for match in re.finditer(r'(?<![\w.>])%s\.value\(\)' % re.escape(name), code):
                    self.complain(path, code.count('\n', 0, match.start()) + 1,
                                  '%s: .value() aborts on error: WEFT_ASSIGN_OR_RETURN' % match[0])
        for match in UNFINISHED.finditer(text):
            self.complain(path, text.count('\n', 0, match.start()) + 1, '%s: finish it or open an issue' % match[0])

    def check_file(self, file):
        path = str(file.relative_to(self.root))
        self.check_name(path)
        if file.suffix not in CODE and file.name != 'CMakeLists.txt':
            with open(file, 'rb') as stream:
                if stream.read(2) != b'#!':
                    return
        text = file.read_text(errors='replace')
        if text:
            self.check_licence(path, text)
        lines = text.split('\n')
        count = len(lines) - (1 if lines and lines[-1] == '' else 0)
        limit = HEADER_LIMIT if file.suffix in HEADERS else FILE_LIMIT
        if count > limit:
            self.complain_unless(path, path, 1, '%d lines (stops at %d)' % (count, limit))
        if file.suffix in CPP:
            code = COMMENTS.sub(blank, text)
            self.check_symbols(path, text, code)
            self.check_functions(path, code)

    def check_readmes(self):
        for room in self.rooms:
            folder = self.root / room
            if not room.startswith('src/') or not any(folder.rglob('*.h')):
                continue
            readme = folder / 'README.md'
            if not readme.exists():
                self.complain(room + '/README.md', 1, 'missing: what the room is for, which types to read first')
            elif len(readme.read_text().splitlines()) > README_LIMIT:
                self.complain(room + '/README.md', 1, 'longer than %d lines' % README_LIMIT)

    def check_exceptions(self):
        for key, reason in self.exceptions.items():
            if not re.match(r'\d{4}-\d\d-\d\d: \S', reason):
                self.complain('layers.toml', 1, 'exception "%s" wants "YYYY-MM-DD: reason"' % key)
            if key not in self.used:
                self.complain('layers.toml', 1, 'exception "%s" is no longer needed: remove it' % key)

    def run(self):
        files = []
        for top in TOPS:
            files += [p for p in sorted((self.root / top).rglob('*'))
                      if p.is_file() and '__pycache__' not in p.parts and not p.name.endswith('.egg-info')]
        if (self.root / 'dev').exists():
            files.append(self.root / 'dev')
        for file in files:
            self.check_file(file)
        self.check_readmes()
        self.check_exceptions()
        return len(files)


def main(args):
    root = pathlib.Path(args[0] if args else pathlib.Path(__file__).parent.parent).resolve()
    house = House(root)
    count = house.run()
    for problem in house.problems:
        print(problem)
    print('size: %d files, %d problems' % (count, len(house.problems)))
    return 1 if house.problems else 0


if __name__ == '__main__':
    sys.exit(main(sys.argv[1:]))

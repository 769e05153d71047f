#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Each of these bugs, planted into membership, leases or open groups, is found by the tests of its room.

    planted_bugs_test.py SOURCE_FOLDER BUILD_FOLDER [NAME ...]
"""
import json
import os
import re
import shlex
import subprocess
import sys
import tempfile
import unittest

SOURCE, BUILD = (os.path.abspath(folder) for folder in sys.argv[1:3])
ONLY = sys.argv[3:]

# Name, file, what stands there, what stands there instead.
BUGS = [
    ('contradicts with the same incarnation', 'membership/swim.cc', 'self_.incarnation = news.incarnation() + 1;',
     'self_.incarnation = news.incarnation();'),
    ('believes old news of a life', 'membership/swim.cc', 'news.incarnation() <= known->incarnation', 'news.incarnation() < known->incarnation'),
    ('does not tell the accused', 'membership/swim.cc', 'peer->state != State::kAlive) *message', 'false) *message'),
    ('halves of a network stay apart', 'membership/swim.cc', 'if (dead_.empty()) return;', 'if (!dead_.empty()) return;\n  if (dead_.empty()) return;'),
    ('a broken connection is a death', 'membership/swim.cc', 'if (!broken_.insert(name).second) {', 'if (true) {'),
    ('blames others for its own pause', 'membership/swim.cc', 'if (options_.lifeguard &&\n      stood_still > Slow', 'if (false &&\n      stood_still > Slow'),
    ('has no patience with suspects', 'membership/swim.cc', 'options_.interval * options_.suspicion * std::max', 'options_.interval * 1 * std::max'),
    ('an earlier process keeps the name', 'membership/swim.cc', 'superseded_ = true;', 'superseded_ = false;'),
    ('some are never probed', 'membership/roster.cc', 'while (std::gcd(step_, size) != 1)', 'while (false)'),
    ('forgets who is dead', 'membership/swim.cc', '  dead_.insert(gone.name);\n  roster_.Put(gone);\n  MemberNews', '  roster_.Put(gone);\n  MemberNews'),
    ('counts what another holds', 'lease/lease_queue.cc', 'if (held != held_.end() && (held->second', 'if (false && held != held_.end() && (held->second'),
    ('does not write what is done', 'lease/lease_book.cc', 'if (counts) WEFT', 'if (false) WEFT'),
    ('goes on behind half a line', 'lease/lease_book.cc', 'WEFT_RETURN_IF_ERROR(WriteFileAtomically(*files, path, book->Snapshot()));', ''),
    ('counts twice', 'lease/lease_queue.cc', 'if (found == epochs_.end() || found->second.done[static_cast<size_t>(index)]) return false;',
     'if (found == epochs_.end()) return false;\n  if (found->second.done[static_cast<size_t>(index)]) return true;'),
    ('loses what a lost worker held', 'lease/lease_queue.h', 'epochs_.at(it->first.first).to_do.push_front(it->first.second);', ''),
    ('leases for ever', 'lease/lease_queue.cc', 'return now >= held.until;', 'return now < held.until && false;'),
    ('forgets which epochs are over', 'lease/lease_book.cc', 'if (queue.epochs_over() > 0) {', 'if (false) {'),
    ('forgets who waits', 'collective/leader.cc', 'next.members = std::move(group->second.waiting);', ''),
]
FILTERS = {'membership': '*Simulation*:Swim*:RoundRobin*', 'lease': '*', 'collective': 'OpenGroup*'}
MOST_SECONDS = 300


class Room:
    """How the library of a room is compiled and its test linked."""

    def __init__(self, name):
        self.name = name
        target = 'src/weft/%s/CMakeFiles/weft_%s.dir/' % (name, name)
        with open(os.path.join(BUILD, 'compile_commands.json')) as commands:
            (entry,) = [each for each in json.load(commands) if target + 'Unity' in each['command']]
        self.compile, self.unity = shlex.split(entry['command']), entry['file']
        listed = subprocess.run(['ninja', '-C', BUILD, '-t', 'commands', 'bin/%s_test' % name], capture_output=True, text=True, check=True)
        (line,) = re.findall(r'^.* -o bin/%s_test .*$' % name, listed.stdout, re.M)
        self.link = shlex.split(line[line.index('/usr/bin/'):line.index(' && :', line.index('/usr/bin/'))])

    def with_bug(self, folder, file, there, instead):
        """The program; the file is a copy beside which its header is one as well."""
        path = os.path.join(SOURCE, 'src/weft', file)
        with open(path) as source:
            text = source.read()
        assert text.count(there) == 1, '%s has %d times: %s' % (file, text.count(there), there)
        copy = os.path.join(folder, 'weft', file)
        os.makedirs(os.path.dirname(copy))
        with open(copy, 'w') as out:
            out.write(text.replace(there, instead))
        with open(self.unity) as unity:
            text = unity.read().replace(path, copy)
        unity, program = os.path.join(folder, 'unity.cc'), os.path.join(folder, 'program')
        with open(unity, 'w') as out:
            out.write(text)
        compiled = list(self.compile)
        compiled[compiled.index('-c') + 1] = unity
        compiled[compiled.index('-o') + 1] = program + '.o'
        compiled[1:1] = ['-I', folder]
        compiled.append('-Wno-error')
        subprocess.run(compiled, cwd=BUILD, check=True, capture_output=True, text=True)
        linked = list(self.link)
        linked[linked.index('-o') + 1] = program
        linked.insert(linked.index('-o'), program + '.o')
        subprocess.run(linked, cwd=BUILD, check=True, capture_output=True, text=True)
        return program


class PlantedBugs(unittest.TestCase):
    def test_each_is_found(self):
        rooms = {}
        for name, file, there, instead in BUGS:
            if ONLY and name not in ONLY:
                continue
            with self.subTest(name), tempfile.TemporaryDirectory() as folder:
                room = rooms.setdefault(file.split('/')[0], None) or Room(file.split('/')[0])
                rooms[room.name] = room
                program = room.with_bug(folder, file, there, instead)
                try:
                    code = subprocess.run([program, '--gtest_filter=' + FILTERS[room.name], '--gtest_fail_fast'], timeout=MOST_SECONDS,
                                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
                except subprocess.TimeoutExpired:
                    code = 'no end'
                print('%s: %s' % (name, 'NOT FOUND' if code == 0 else 'found'), flush=True)
                self.assertNotEqual(code, 0, 'nothing noticed it')


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

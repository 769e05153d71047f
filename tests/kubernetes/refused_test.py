#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Wrong and right objects, to `weft up` and to kube-apiserver: the same code, reason and causes, field by field.

    refused_test.py WEFT

docs/differential.md lists the rows that are meant to differ. What is right is kept alike, defaults and quantities
included.
"""
import fnmatch
import json
import pathlib
import re
import sys
import tempfile
import unittest

import api_client
import more_refused_objects
import policy_objects
import refused_objects
import two_planes

WEFT = sys.argv[1]
ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
TYPES = ROOT / 'src' / 'platform' / 'object' / 'kubernetes_types.txt'
PAGE = ROOT / 'docs' / 'differential.md'
# "- `object NAME`: `difference`: why"
ROW = re.compile(r'- `object ([^`]+)`: `([^`]+)`: .')
sys.path.insert(0, str(ROOT / 'tools'))
import kubernetes_types  # noqa: E402


def causes(answer):
    details = answer.get('details', {})
    return sorted({(cause.get('field', ''), cause.get('reason', ''), cause.get('message', ''))
                   for cause in details.get('causes', [])})


class Server:
    def __init__(self, api):
        self.api = api

    def ask(self, method, path, thing):
        """(code, reason, causes or what was kept)"""
        try:
            kept = self.api.request(method, path + '?fieldValidation=Strict', thing)
            return 200, '', kept
        except api_client.ApiError as error:
            answer = json.loads(error.text)
            return error.code, answer.get('reason', ''), answer


def differences(ours, theirs):
    """Lines; those of a body that cannot be read are compared where the server names fields that it does not know."""
    if ours[:2] != theirs[:2]:
        return ['code: %s here, %s there: %s' % (ours[:2], theirs[:2],
                                                 (ours[2] if ours[0] != 200 else theirs[2]).get('message', ''))]
    if ours[0] == 200:
        return ['spec: ' + line for line in spec_differences(ours[2], theirs[2])]
    if 'strict decoding error' in theirs[2]['message'] or ours[0] == 403:
        mine, yours = ours[2]['message'], theirs[2]['message']
        return [] if mine == yours else ['message: %s here, %s there' % (mine, yours)]
    mine, yours = causes(ours[2]), causes(theirs[2])
    return ['here: %s: %s: %s' % row for row in mine if row not in yours] + [
        'there: %s: %s: %s' % row for row in yours if row not in mine]


def spec_differences(ours, theirs, path=''):
    """Of what both keep: only what does not follow from chance or from who runs it."""
    if not path:
        parts = ('spec', 'data', 'binaryData', 'type', 'immutable')
        ours, theirs = ({part: thing[part] for part in parts if part in thing} for thing in (ours, theirs))
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted(set(ours) | set(theirs)):
            if key not in ours or key not in theirs:
                yield '%s.%s %s' % (path, key, 'is not kept here' if key in theirs else 'is kept here alone')
            else:
                yield from spec_differences(ours[key], theirs[key], '%s.%s' % (path, key))
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for index, pair in enumerate(zip(ours, theirs)):
            yield from spec_differences(*pair, '%s[%d]' % (path, index))
    elif ours != theirs and not re.fullmatch(r'[0-9a-f-]{36}', str(ours)):
        yield '%s is %s here, %s there' % (path, json.dumps(ours), json.dumps(theirs))


class RefusedTest(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.temporary = tempfile.TemporaryDirectory()
        cls.planes = two_planes.TwoPlanes(WEFT, cls.temporary.name)
        cls.ours = Server(cls.planes.ours)
        cls.theirs = Server(cls.planes.theirs)

    @classmethod
    def tearDownClass(cls):
        cls.planes.stop()
        cls.temporary.cleanup()

    def test_types_are_those_of_the_server(self):
        api = self.planes.theirs
        self.assertEqual(TYPES.read_text(), kubernetes_types.collect(lambda path: api.request('GET', '/openapi/v3/' + path)))

    def test_answers_are_those_of_the_server(self):
        self.rows = [match.groups() for match in map(ROW.match, PAGE.read_text().splitlines()) if match]
        self.used = set()
        self.unknown = []
        for name, path, thing in refused_objects.creations(
                refused_objects.PODS + more_refused_objects.PODS, refused_objects.OTHERS + more_refused_objects.OTHERS + policy_objects.OTHERS):
            self.compare(name, 'POST', path, thing)
        for name, path, thing, changes in refused_objects.UPDATES + more_refused_objects.UPDATES:
            thing = refused_objects.changed(thing, {'metadata.name': 'update-' + name})
            for server in (self.ours, self.theirs):
                self.assertEqual(server.ask('POST', path, thing)[0], 200, name)
            self.compare('update-' + name, 'PUT', '%s/%s' % (path, thing['metadata']['name']),
                         refused_objects.changed(thing, changes))
        self.assertEqual(self.unknown, [], '\n'.join(self.unknown))
        self.assertEqual([row for row in self.rows if row not in self.used], [], 'rows that nothing needs')

    def compare(self, name, method, path, thing):
        for difference in differences(self.ours.ask(method, path, thing), self.theirs.ask(method, path, thing)):
            known = [row for row in self.rows
                     if fnmatch.fnmatchcase(name, row[0]) and fnmatch.fnmatchcase(difference, row[1])]
            self.used.update(known)
            if not known:
                self.unknown.append('%s: %s' % (name, difference))


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Attach and exec on `weft up` by a WebSocket client of our own, message by message; kubectl's is in reach_test.py.

    attach_test.py WEFT
"""
import base64
import json
import os
import pathlib
import re
import socket
import ssl
import struct
import sys
import tempfile
import unittest
import urllib.parse

import control_plane

WEFT = sys.argv[1]
INPUT, OUTPUT, ERROR, STATUS, RESIZE, CLOSE = 0, 1, 2, 3, 4, 255


class Channels:
    """v5.channel.k8s.io: each message begins with its channel."""

    def __init__(self, server, authority, token, path):
        address = urllib.parse.urlsplit(server)
        context = ssl.create_default_context(cafile=authority)
        context.check_hostname = False
        self.socket = context.wrap_socket(socket.create_connection((address.hostname, address.port), timeout=60))
        key = base64.b64encode(os.urandom(16)).decode()
        lines = ['GET %s HTTP/1.1' % path, 'Host: %s' % address.netloc, 'Authorization: Bearer ' + token, 'Connection: Upgrade',
                 'Upgrade: websocket', 'Sec-WebSocket-Version: 13', 'Sec-WebSocket-Key: ' + key,
                 'Sec-WebSocket-Protocol: v5.channel.k8s.io', '', '']
        self.socket.sendall('\r\n'.join(lines).encode())
        head = b''
        while not head.endswith(b'\r\n\r\n'):
            head += self.exactly(1)
        self.code = int(head.split()[1])
        length = re.search(rb'content-length: (\d+)', head.lower())
        self.refusal = '' if self.code == 101 else json.loads(self.exactly(int(length.group(1))))['message']

    def exactly(self, count):
        held = b''
        while len(held) < count:
            more = self.socket.recv(count - len(held))
            if not more:
                raise EOFError
            held += more
        return held

    def send(self, channel, data):
        message, mask = bytes([channel]) + data, os.urandom(4)
        size = bytes([0x80 | len(message)]) if len(message) < 126 else bytes([0xfe]) + struct.pack('>H', len(message))
        self.socket.sendall(b'\x82' + size + mask + bytes(byte ^ mask[i % 4] for i, byte in enumerate(message)))

    def read(self, until=None):
        """What came by channel, until its text is there or all is over."""
        held = {}
        while until is None or until not in b''.join(held.values()):
            try:
                kind, size = self.exactly(2)
                if size == 126:
                    size, = struct.unpack('>H', self.exactly(2))
                elif size == 127:
                    size, = struct.unpack('>Q', self.exactly(8))
                message = self.exactly(size)
            except EOFError:
                break
            if kind & 15 == 8:
                break
            if message:
                held[message[0]] = held.get(message[0], b'') + message[1:]
        return held


class AttachTest(unittest.TestCase):
    def setUp(self):
        self.temporary = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.temporary.name)
        self.plane = control_plane.ControlPlane(WEFT, self.temporary.name, WEFT)
        self.plane.start()
        config = self.plane.kubeconfig.read_text()

        def field(name):
            return re.search(name + r': "?([^"\s]+)', config).group(1)
        self.server, self.token = field('server'), field('token')
        self.authority = str(self.folder / 'authority.pem')
        pathlib.Path(self.authority).write_bytes(base64.b64decode(field('certificate-authority-data')))

    def tearDown(self):
        # Nothing that clients did has ended it.
        self.assertEqual(self.plane.stop(), 0)
        self.temporary.cleanup()

    def apply(self, name, command, **more):
        container = {'name': 'main', 'image': 'i', 'command': ['sh', '-c', command], **more}
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps({
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': name},
            'spec': {'restartPolicy': 'Never', 'terminationGracePeriodSeconds': 0, 'containers': [container]}}))
        self.plane.run(WEFT, 'wait', '--for=condition=Ready', 'pod/' + name, '--timeout=60s')

    def reach(self, name, *asks, verb='attach'):
        query = '&'.join(each if '=' in each else each + '=true' for each in asks)
        made = Channels(self.server, self.authority, self.token, '/api/v1/namespaces/default/pods/%s/%s?%s' % (name, verb, query))
        self.addCleanup(made.socket.close)
        return made

    def await_end(self, name):
        self.plane.run(WEFT, 'wait', '--for=jsonpath={.status.phase}=Succeeded', 'pod/' + name, '--timeout=60s')

    def test_what_is_printed_from_then_on(self):
        end = self.folder / 'end'
        self.apply('talks', 'until test -e %s; do echo out; echo err >&2; sleep 0.05; done' % end)
        both = [self.reach('talks', 'stdout', 'stderr') for _ in range(2)]
        for each in both:
            self.assertEqual(each.read(b'err\n')[ERROR][-4:], b'err\n')
        end.touch()
        for each in both:
            self.assertEqual(json.loads(each.read()[STATUS])['status'], 'Success')
        self.await_end('talks')
        self.assertIn('container main does not run', self.reach('talks', 'stdout').refusal)

    def test_input(self):
        """Whoever goes leaves it open, but where the container is given one writer."""
        loop = 'while read line; do echo got $line; done; echo end'
        self.apply('reads', loop, stdin=True)
        for word in (b'one', b'two'):
            held = self.reach('reads', 'stdin', 'stdout')
            held.send(INPUT, word + b'\n')
            self.assertEqual(held.read(b'\n')[OUTPUT], b'got %s\n' % word)
            held.socket.close()
        self.apply('once', loop, stdin=True, stdinOnce=True)
        held = self.reach('once', 'stdin', 'stdout')
        self.assertIn('the input of container main has ended', self.reach('once', 'stdin', 'stdout').refusal)
        held.send(INPUT, b'three\n')
        held.send(CLOSE, bytes([INPUT]))
        self.assertEqual(held.read()[OUTPUT], b'got three\nend\n')
        self.await_end('once')
        self.apply('deaf', 'exec sleep 1000')
        refused = self.reach('deaf', 'stdin', 'stdout')
        self.assertEqual(refused.code, 400)
        self.assertIn('container main reads no input', refused.refusal)

    def test_a_terminal_and_its_size(self):
        self.apply('shell', 'exec sh -i', stdin=True, tty=True)
        held = self.reach('shell', 'stdin', 'stdout', 'tty')
        held.send(RESIZE, b'{"Width":77,"Height":33}')
        held.send(INPUT, b'until stty size | grep "^33 77"; do sleep 0.1; done; tty; exit\n')
        output = held.read()[OUTPUT]
        self.assertIn(b'\n33 77\r\n', output)
        self.assertIn(b'\n/dev/pts/', output)
        self.await_end('shell')

    def test_a_program_that_reads_no_more(self):
        self.apply('box', 'exec sleep 1000')
        held = self.reach('box', 'stdin', 'stdout', 'command=sh', 'command=-c', 'command=' + urllib.parse.quote('exec <&-; sleep 1'),
                          verb='exec')
        for _ in range(20):
            held.send(INPUT, b'x' * 60000)
        self.assertEqual(json.loads(held.read()[STATUS])['status'], 'Success')

    def test_a_pod_of_another_machine(self):
        self.plane.run(WEFT, 'apply', '-f', '-', stdin=json.dumps({
            'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'far'},
            'spec': {'nodeName': 'elsewhere', 'containers': [{'name': 'main', 'image': 'i', 'command': ['sleep', '9']}]}}))
        for verb in ('attach', 'exec'):
            refused = self.reach('far', 'stdout', 'command=true', verb=verb)
            self.assertEqual(refused.code, 501)
            self.assertIn('runs on node elsewhere', refused.refusal)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1])

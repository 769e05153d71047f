#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The image of deploy/image/build.sh: image_test.py BUILD_SH WEFT."""
import gzip
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import unittest

BUILD, WEFT = sys.argv[1:3]


class ImageTest(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def build(self, name, *flags, check=True):
        done = subprocess.run(['bash', BUILD, '--weft', WEFT, '--output', str(self.folder / name), *flags],
                              capture_output=True, text=True)
        if check:
            self.assertEqual(done.returncode, 0, done.stderr)
        return done

    def test_is_a_valid_layout_whose_program_runs(self):
        done = self.build('image.tar', '--tag', 'team/weft:1.2', '--program', '/bin/true')
        self.assertIn('docker.io/team/weft:1.2', done.stdout)
        self.assertIn('ctr --namespace k8s.io images import', done.stdout)
        with tarfile.open(self.folder / 'image.tar') as archive:
            files = {os.path.normpath(m.name): archive.extractfile(m).read() for m in archive if m.isfile()}
        self.assertEqual(json.loads(files['oci-layout']), {'imageLayoutVersion': '1.0.0'})

        def blob(descriptor):
            kind, digest = descriptor['digest'].split(':')
            data = files['blobs/%s/%s' % (kind, digest)]
            self.assertEqual(hashlib.sha256(data).hexdigest(), digest)
            self.assertEqual(len(data), descriptor['size'])
            return data
        entry, = json.loads(files['index.json'])['manifests']
        self.assertEqual(entry['annotations'], {'io.containerd.image.name': 'docker.io/team/weft:1.2',
                                                'org.opencontainers.image.ref.name': '1.2'})
        manifest = json.loads(blob(entry))
        config = json.loads(blob(manifest['config']))
        self.assertEqual(config['config']['User'], '65532:65532')
        self.assertEqual(config['config']['Entrypoint'], ['weft'])
        layer, = manifest['layers']
        tree = gzip.decompress(blob(layer))
        self.assertEqual(config['rootfs']['diff_ids'], ['sha256:' + hashlib.sha256(tree).hexdigest()])
        root = self.folder / 'root'
        with tarfile.open(fileobj=io.BytesIO(tree)) as archive:
            self.assertEqual({(m.uid, m.gid) for m in archive}, {(0, 0)})
            archive.extractall(root)
        # By the image's own loader and libraries alone, as in a container.
        loader = next(root.glob('lib64/ld-*')) if list(root.glob('lib64/ld-*')) else next(root.glob('lib/ld-*'))
        libraries = next((root / 'usr/lib').glob('*-linux-gnu'))
        listed = subprocess.run([loader, '--inhibit-cache', '--library-path', libraries, '--list', root / 'usr/bin/weft'],
                                capture_output=True, text=True, env={})
        self.assertNotIn('not found', listed.stdout)
        for line in listed.stdout.splitlines():
            if '=>' in line:
                self.assertIn(str(root), line.split('=>')[1], 'comes from outside of the image')
        self.assertEqual(listed.returncode, 0, listed.stderr)
        ran = subprocess.run([loader, '--inhibit-cache', '--library-path', libraries, root / 'usr/bin/weft', '--version'],
                             capture_output=True, text=True, env={})
        self.assertRegex(ran.stdout, r'^weft \d+\.\d+', ran.stderr)

    def test_the_same_input_gives_the_same_bytes(self):
        self.build('one.tar')
        self.build('two.tar')
        self.assertEqual((self.folder / 'one.tar').read_bytes(), (self.folder / 'two.tar').read_bytes())

    def test_says_what_is_wrong(self):
        for flags, text in (('--tagg', 'x'), 'there is no option --tagg'), (('--weft', '/none'), 'there is no program /none'), \
                (('--tag',), '--tag wants a value'):
            done = self.build('bad.tar', *flags, check=False)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(text, done.stderr)


if __name__ == '__main__':
    unittest.main(argv=sys.argv[:1], verbosity=2)

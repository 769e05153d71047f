# SPDX-License-Identifier: Apache-2.0
"""An image without a registry: programs of this machine, the libraries they need, and files, as a docker archive."""
import hashlib
import io
import json
import pathlib
import re
import subprocess
import tarfile


def libraries(program):
    """Paths that the program is linked to, the loader too."""
    listed = subprocess.run(['ldd', program], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r'(?:=> )?(/\S+) \(0x', listed))


def add_bytes(archive, name, content, mode=0o644):
    entry = tarfile.TarInfo(name)
    entry.size, entry.mode = len(content), mode
    archive.addfile(entry, io.BytesIO(content))


def layer(programs, files):
    """`programs` go to /usr/bin, their libraries where they lie here; `files` maps paths in the image to paths here."""
    contents = dict(files)
    for program in programs:
        contents['/usr/bin/' + pathlib.Path(program).name] = program
        contents.update({path: path for path in libraries(program)})
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode='w') as archive:
        for folder in ('tmp', 'etc', 'proc', 'sys', 'dev'):
            entry = tarfile.TarInfo(folder)
            entry.type, entry.mode = tarfile.DIRTYPE, 0o1777 if folder == 'tmp' else 0o755
            archive.addfile(entry)
        for name, source in sorted(contents.items()):
            add_bytes(archive, name.lstrip('/'), pathlib.Path(source).read_bytes(), 0o755)
    return buffer.getvalue()


def write(path, tag, command, programs, files=None):
    """For `ctr images import`."""
    content = layer(programs, files or {})
    config = json.dumps({
        'architecture': 'amd64', 'os': 'linux',
        'config': {'Cmd': command, 'Env': ['PATH=/usr/bin']},
        'rootfs': {'type': 'layers', 'diff_ids': ['sha256:' + hashlib.sha256(content).hexdigest()]},
        'history': [{'created_by': 'image_archive'}],
    }).encode()
    manifest = json.dumps([{'Config': 'config.json', 'RepoTags': [tag], 'Layers': ['layer.tar']}]).encode()
    with tarfile.open(path, 'w') as archive:
        add_bytes(archive, 'manifest.json', manifest)
        add_bytes(archive, 'config.json', config)
        add_bytes(archive, 'layer.tar', content)

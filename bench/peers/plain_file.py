#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The limit of a checkpoint: plain_file.py (save|restore) FOLDER MEGABYTES writes so much memory to one file and syncs it, or reads it."""
import json
import os
import sys
import time

BLOCK = 8 << 20


def main(what, folder, megabytes):
    path, blocks = os.path.join(folder, 'plain'), int(megabytes) * (1 << 20) // BLOCK
    memory = memoryview(bytearray(os.urandom(BLOCK)) * blocks)

    def save():
        file = os.open(path, os.O_CREAT | os.O_TRUNC | os.O_WRONLY, 0o600)
        for i in range(blocks):
            os.write(file, memory[i * BLOCK:(i + 1) * BLOCK])
        os.fsync(file)
        os.close(file)

    def restore():
        with open(path, 'rb', buffering=0) as file:
            for i in range(blocks):
                file.readinto(memory[i * BLOCK:(i + 1) * BLOCK])
    if what == 'restore':
        save()
    for _ in sys.stdin:
        begin, cpu = time.perf_counter(), time.process_time()
        save() if what == 'save' else restore()
        print(json.dumps({'us': (time.perf_counter() - begin) * 1e6, 'cpu_us': (time.process_time() - cpu) * 1e6, 'check': 0}), flush=True)


main(*sys.argv[1:])

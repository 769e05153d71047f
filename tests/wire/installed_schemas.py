# SPDX-License-Identifier: Apache-2.0
"""Reads the protobuf schemas inside an installed TensorFlow, without importing it.

A FileDescriptorProto of every message is embedded in the package twice: as a bytes literal in the
generated *_pb2.py modules, and in the shared libraries, which also hold the master's and worker's
messages that Python never sees.
"""

import ast
import glob
import mmap
import os
import re

from google.protobuf import descriptor_pb2
from google.protobuf.message import DecodeError

# Wire type of each field of FileDescriptorProto: where the pattern breaks, the file has ended.
_WIRE_TYPES = {1: 2, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2, 7: 2, 8: 2, 9: 2, 10: 0, 11: 0, 12: 2}
_ONCE = (1, 2, 8, 9, 12)
_START = re.compile(rb"\x0a(.)((?:tensorflow|tsl|xla)/[\w/.-]+\.proto)", re.DOTALL)
_METHOD = re.compile(rb"/tensorflow\.(?:Master|Worker)Service/\w+")
_LITERAL = re.compile(r"AddSerializedFile\((b'(?:[^'\\]|\\.)*'|b\"(?:[^\"\\]|\\.)*\")\)")


def _varint(data, at):
    value = shift = 0
    while shift < 64:
        byte = data[at]
        at += 1
        value |= (byte & 0x7F) << shift
        if byte < 0x80:
            return value, at
        shift += 7
    raise ValueError("varint too long")


def _end_of_file(data, start):
    """The end of the FileDescriptorProto that begins at start; fields are written in order."""
    end, previous = start, 0
    while end < len(data):
        tag, at = _varint(data, end)
        number, wire_type = tag >> 3, tag & 7
        # Indices of public and weak imports (10, 11) stand right after the imports (3).
        out_of_order = number < previous and number not in (10, 11) and previous not in (10, 11)
        twice = number == previous and number in _ONCE
        if _WIRE_TYPES.get(number) != wire_type or out_of_order or twice:
            break
        value, at = _varint(data, at)
        end = at + value if wire_type == 2 else at
        previous = number
    return end


def _from_library(path):
    with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
        for match in _START.finditer(data):
            if match.group(1)[0] != len(match.group(2)):
                continue
            try:
                end = _end_of_file(data, match.start())
                yield descriptor_pb2.FileDescriptorProto.FromString(data[match.start():end])
            except (DecodeError, IndexError, ValueError):
                continue  # Looked like a schema and is none.


def _from_module(path):
    with open(path, encoding="utf-8") as file:
        for match in _LITERAL.finditer(file.read()):
            yield descriptor_pb2.FileDescriptorProto.FromString(ast.literal_eval(match.group(1)))


def _libraries(package):
    return sorted(glob.glob(os.path.join(package, "libtensorflow_*.so*")))


def read_methods(package):
    """The RPC paths that the TensorFlow in the folder `package` calls and serves."""
    methods = set()
    for path in _libraries(package):
        with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as data:
            methods.update(found.decode() for found in _METHOD.findall(data))
    return methods


def read(package):
    """The schemas of the TensorFlow in the folder `package`, by file name."""
    files = {}
    for path in glob.glob(os.path.join(package, "**", "*_pb2.py"), recursive=True):
        for schema in _from_module(path):
            files.setdefault(schema.name, schema)
    for path in _libraries(package):
        for schema in _from_library(path):
            files.setdefault(schema.name, schema)
    return files

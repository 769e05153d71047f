# SPDX-License-Identifier: Apache-2.0
"""Holds proto/tensorflow/*.proto against the schemas inside an installed TensorFlow.

Every message and enum of ours must exist there, with the same numbers, names, types and labels;
every field that exists there must exist here or stand in CARRIED with a reason. The services must
have exactly the paths that TensorFlow's own stubs call.
"""

import argparse
import glob
import os
import subprocess
import sys
import tempfile
import unittest

from google.protobuf import descriptor_pb2

import installed_schemas

Field = descriptor_pb2.FieldDescriptorProto

# The release that the files were written against. An older one lacks some of our fields, so what
# we have too much is judged by releases from this one on.
WRITTEN_AGAINST = (2, 21)

# Fields of TensorFlow that we leave in the unknown fields of a message, and why.
CARRIED = {
    "tensorflow.eager.CreateContextRequest.clear_existing_contexts":
        "contexts share nothing but devices, so that a new one needs no other to go",
}

_UNPACKABLE = (Field.TYPE_STRING, Field.TYPE_BYTES, Field.TYPE_MESSAGE, Field.TYPE_GROUP)


def _packed(field, syntax):
    if field.label != Field.LABEL_REPEATED or field.type in _UNPACKABLE:
        return False
    return field.options.packed if field.options.HasField("packed") else syntax == "proto3"


def _field(field, message, syntax):
    # The name of a oneof is not on the wire and has changed: its first member stands for it.
    siblings = [f for f in message.field if field.HasField("oneof_index") and
                f.HasField("oneof_index") and f.oneof_index == field.oneof_index]
    return {
        "number": field.number,
        "type": Field.Type.Name(field.type),
        "label": Field.Label.Name(field.label),
        "type name": field.type_name,
        "oneof of": min(siblings, key=lambda f: f.number).name if siblings else "",
        "presence": syntax == "proto2" or field.proto3_optional,
        "packed": _packed(field, syntax),
    }


def _add_enum(enum, scope, shapes):
    shapes[f"{scope}.{enum.name}"] = {v.name: {"number": v.number} for v in enum.value}


def _add_message(message, scope, syntax, shapes):
    name = f"{scope}.{message.name}"
    shapes[name] = {field.name: _field(field, message, syntax) for field in message.field}
    for nested in message.nested_type:  # Entries of maps are nested messages too.
        _add_message(nested, name, syntax, shapes)
    for enum in message.enum_type:
        _add_enum(enum, name, shapes)


def shapes_of(files):
    """Full name of each message and enum -> member name -> what must agree."""
    shapes = {}
    for file in files:
        for message in file.message_type:
            _add_message(message, file.package, file.syntax or "proto2", shapes)
        for enum in file.enum_type:
            _add_enum(enum, file.package, shapes)
    return shapes


def differences(ours, theirs):
    """What keeps ours from being theirs; members that only ours has are not reported."""
    for name, members in ours.items():
        if name not in theirs:
            yield f"{name}: not in this TensorFlow"
            continue
        for member, their_traits in theirs[name].items():
            path = f"{name}.{member}"
            if member not in members:
                if path not in CARRIED:
                    yield f"{path} = {their_traits['number']}: missing here"
            elif members[member] != their_traits:
                yield f"{path}: {members[member]} here, {their_traits} there"


def surplus(ours, all_theirs):
    """Members that no given TensorFlow has."""
    for name, members in ours.items():
        for member in members:
            if not any(member in theirs.get(name, {}) for theirs in all_theirs):
                yield f"{name}.{member}: in no TensorFlow"


def compile_ours(protoc, root):
    with tempfile.TemporaryDirectory() as folder:
        out = os.path.join(folder, "ours.pb")
        protos = sorted(glob.glob(os.path.join(root, "proto", "tensorflow", "*.proto")))
        subprocess.run([protoc, f"--proto_path={root}", f"--descriptor_set_out={out}", *protos],
                       check=True)
        with open(out, "rb") as file:
            return descriptor_pb2.FileDescriptorSet.FromString(file.read()).file


def methods_of(files):
    """The RPC paths of the services in files."""
    return {f"/{file.package}.{service.name}/{method.name}"
            for file in files for service in file.service for method in service.method}


def find_package(python):
    """Folder and version of the TensorFlow that an interpreter would import."""
    code = ("import importlib.metadata as m, importlib.util as u\n"
            "spec = u.find_spec('tensorflow')\n"
            "names = m.packages_distributions()['tensorflow']\n"
            "found = [m.version(n) for n in names if n.startswith('tensorflow')]\n"
            "print(spec.submodule_search_locations[0], found[0])")
    folder, version = subprocess.check_output([python, "-c", code], text=True).split()
    return folder, tuple(int(part) for part in version.split(".")[:2])


class ParityTest(unittest.TestCase):
    ours: dict = {}
    our_methods: set = set()
    releases: dict = {}  # (major, minor) -> shapes
    methods: dict = {}  # (major, minor) -> RPC paths

    def test_every_release_agrees(self):
        self.assertIn("tensorflow.TensorProto", self.ours)
        for release, theirs in self.releases.items():
            with self.subTest(release=release):
                if release >= WRITTEN_AGAINST:
                    found = differences(self.ours, theirs)
                else:
                    found = differences({n: m for n, m in self.ours.items() if n in theirs}, theirs)
                self.assertEqual(list(found), [])

    def test_nothing_of_ours_is_invented(self):
        newest = [theirs for release, theirs in self.releases.items() if release >= WRITTEN_AGAINST]
        if not newest:
            self.skipTest(f"needs TensorFlow {WRITTEN_AGAINST} or later")
        self.assertEqual(list(surplus(self.ours, self.releases.values())), [])

    def test_services_have_the_paths_that_tensorflow_calls(self):
        for release, methods in self.methods.items():
            self.assertEqual(self.our_methods, methods, release)

    def test_an_older_release_lacks_few_messages(self):
        # Guards the reader of schemas: if it missed files, an old release would agree by silence.
        for release, theirs in self.releases.items():
            lacking = [name for name in self.ours if name not in theirs]
            self.assertLessEqual(len(lacking), 5, f"{release} lacks {lacking}")

    def test_carried_fields_exist_and_are_not_ours(self):
        for path in CARRIED:
            name, member = path.rsplit(".", 1)
            self.assertNotIn(member, self.ours.get(name, {}), path)
            known = [theirs for theirs in self.releases.values() if member in theirs.get(name, {})]
            self.assertTrue(known, f"{path} is in no TensorFlow")

    def test_a_difference_is_seen(self):
        theirs = next(iter(self.releases.values()))
        name, member = "tensorflow.TensorProto", "tensor_shape"
        for trait, value in (("number", 99), ("type", "TYPE_BYTES"), ("label", "LABEL_REPEATED"),
                             ("type name", ".tensorflow.GraphDef"), ("oneof of", "other")):
            changed = {name: {**theirs[name], member: {**theirs[name][member], trait: value}}}
            self.assertEqual(len(list(differences(changed, theirs))), 1, trait)
        without = {name: {m: t for m, t in theirs[name].items() if m != member}}
        self.assertEqual(len(list(differences(without, theirs))), 1)
        extra = {name: {**theirs[name], "invented": {"number": 1}}}
        self.assertEqual(len(list(surplus(extra, [theirs]))), 1)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--protoc", default="protoc")
    parser.add_argument("--root", required=True, help="the project's root folder")
    parser.add_argument("pythons", nargs="+", help="interpreters that have TensorFlow installed")
    options = parser.parse_args()
    ours = compile_ours(options.protoc, options.root)
    ParityTest.ours = shapes_of(ours)
    ParityTest.our_methods = methods_of(ours)
    for python in options.pythons:
        folder, release = find_package(python)
        ParityTest.releases[release] = shapes_of(installed_schemas.read(folder).values())
        ParityTest.methods[release] = installed_schemas.read_methods(folder)
        print(f"TensorFlow {release}: {len(ParityTest.releases[release])} messages and enums, "
              f"{len(ParityTest.ours)} of ours", file=sys.stderr)
    unittest.main(argv=[sys.argv[0], "-v"])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes what a pod template may hold into the CRDs, from the facts of kubernetes_types.txt.

    crd_templates.py [--check]    rewrites deploy/crds/tfjobs.yaml; with --check exits 1 where it would

A server with these CRDs refuses, or leaves out, the fields of a template that no pod has.
"""
import json
import pathlib
import re
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
FACTS = ROOT / 'src' / 'platform' / 'object' / 'kubernetes_types.txt'
CRD = ROOT / 'deploy' / 'crds' / 'tfjobs.yaml'
QUANTITY = {'x-kubernetes-int-or-string': True, 'anyOf': [{'type': 'integer'}, {'type': 'string'}],
            'pattern': r'^[+]?([0-9]+([.][0-9]*)?|[.][0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$'}
PLAIN = {'string': {'type': 'string'}, 'time': {'type': 'string', 'format': 'date-time'},
         'bytes': {'type': 'string', 'format': 'byte'}, 'bool': {'type': 'boolean'},
         'int32': {'type': 'integer', 'format': 'int32'}, 'int64': {'type': 'integer', 'format': 'int64'},
         'number': {'type': 'number'}, 'quantity': QUANTITY, 'int-or-string': {'x-kubernetes-int-or-string': True},
         'any': {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}}
# The server fills these in itself, or they belong to objects that are kept.
WITHOUT = {'ObjectMeta': ('managedFields', 'selfLink', 'uid', 'resourceVersion', 'generation',
                          'deletionTimestamp', 'deletionGracePeriodSeconds'),
           'PodSpec': ('ephemeralContainers',)}


def read_facts():
    types = {}
    fields = {}
    for line in FACTS.read_text().splitlines():
        if line.startswith(' '):
            name, held = line.split()
            fields[name] = held
        else:
            fields = types[line] = {}
    return types


def schema_of(types, held):
    if held.startswith('[]'):
        return {'type': 'array', 'items': schema_of(types, held[2:])}
    if held.startswith('{}'):
        return {'type': 'object', 'additionalProperties': schema_of(types, held[2:])}
    if held in PLAIN:
        return dict(PLAIN[held])
    schema = {'type': 'object'}
    fields = {name: inner for name, inner in types[held].items() if name.rstrip('!') not in WITHOUT.get(held, ())}
    required = [name[:-1] for name in fields if name.endswith('!')]
    if required:
        schema['required'] = required
    schema['properties'] = {name.rstrip('!'): schema_of(types, inner) for name, inner in fields.items()}
    return schema


def template():
    schema = schema_of(read_facts(), 'PodTemplateSpec')
    schema['description'] = 'The pod of a task. The container named tensorflow gets TF_CONFIG.'
    schema['required'] = ['spec']
    # Programs that write templates leave it empty.
    schema['properties']['metadata']['properties']['creationTimestamp']['nullable'] = True
    containers = schema['properties']['spec']['properties']['containers']
    containers.update({'minItems': 1, 'maxItems': 32, 'x-kubernetes-validations': [{
        'rule': "self.exists(c, c.name == 'tensorflow')",
        'message': "no container is named 'tensorflow'; the one that trains must have that name"}]})
    container = containers['items']
    container['required'] = ['name', 'image']
    container['properties']['name']['maxLength'] = 63
    container['properties']['image']['minLength'] = 1
    return schema


def lines_of(schema, indent):
    """One line for what holds no mappings with fields of their own, else a block."""
    for key, value in schema.items():
        text = json.dumps(value)
        if isinstance(value, dict) and len(text) > 100:
            yield '%s%s:' % (indent, key)
            yield from lines_of(value, indent + '  ')
        else:
            yield '%s%s: %s' % (indent, key, text)


def rewritten(text):
    """The first template of the file in full, the second as the same again."""
    block = re.compile(r'^( +)template:.*\n(?:\1 +.*\n)*', re.M)
    places = iter(('&pod_template', '*pod_template'))

    def replace(match):
        place = next(places)
        head = '%stemplate: %s\n' % (match[1], place)
        if place.startswith('*'):
            return head
        return head + '\n'.join(lines_of(template(), match[1] + '  ')) + '\n'
    return block.sub(replace, text)


if __name__ == '__main__':
    before = CRD.read_text()
    after = rewritten(before)
    if '--check' in sys.argv:
        sys.exit(0 if before == after else '%s is not what %s makes of it' % (CRD, sys.argv[0]))
    CRD.write_text(after)

#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The fields of Kubernetes' own kinds, in short, from the OpenAPI of an API server.

    kubernetes_types.py FOLDER > src/platform/object/kubernetes_types.txt

FOLDER holds the pages of /openapi/v3, as `api__v1_openapi.json` and `apis__apps__v1_openapi.json`; the sources of
Kubernetes have them in api/openapi-spec/v3. tests/kubernetes/types_test.py asks a running server instead.

A line without a blank is a type, the lines below its fields: a name, with '!' where it must be there, and what it
holds: string, bool, int32, int64, number, bytes, time, micro-time, quantity, int-or-string, any, a type, [] of one, {} of one.
"""
import json
import pathlib
import sys

PAGES = {
    'api/v1': ('Pod', 'Service', 'ConfigMap', 'Secret', 'PersistentVolumeClaim', 'PersistentVolume', 'Namespace',
               'Node', 'Event', 'Endpoints', 'ServiceAccount', 'Binding'),
    'apis/apps/v1': ('Deployment', 'ReplicaSet', 'StatefulSet', 'ControllerRevision'),
    'apis/batch/v1': ('Job',),
    'apis/coordination.k8s.io/v1': ('Lease',),
    'apis/discovery.k8s.io/v1': ('EndpointSlice',),
    'apis/scheduling.k8s.io/v1': ('PriorityClass',),
    'apis/apiextensions.k8s.io/v1': ('CustomResourceDefinition',),
}
PLAIN = {'Quantity': 'quantity', 'IntOrString': 'int-or-string', 'Time': 'time', 'MicroTime': 'micro-time',
         'FieldsV1': 'any', 'RawExtension': 'any', 'JSON': 'any', 'JSONSchemaPropsOrBool': 'any',
         'JSONSchemaPropsOrArray': 'any', 'JSONSchemaPropsOrStringArray': 'any'}
FORMATS = {'int32': 'int32', 'int64': 'int64', 'byte': 'bytes', 'date-time': 'time', 'double': 'number'}


# Where two groups call their types alike.
RENAMED = {'io.k8s.api.discovery.v1.EndpointPort': 'SlicePort'}


def last_part(reference):
    whole_name = reference.rsplit('/', 1)[-1]
    return RENAMED.get(whole_name, whole_name.rsplit('.', 1)[-1])


class Types:
    def __init__(self):
        self.types = {}
        self.origin = {}

    def holds(self, schema, page):
        if 'allOf' in schema:
            schema = schema['allOf'][0]
        if '$ref' in schema:
            name = last_part(schema['$ref'])
            if name in PLAIN:
                return PLAIN[name]
            self.add(schema['$ref'].rsplit('/', 1)[-1], page)
            return name
        kind = schema.get('type')
        if kind == 'array':
            return '[]' + self.holds(schema['items'], page)
        if kind == 'object':
            return '{}' + self.holds(schema['additionalProperties'], page) if 'additionalProperties' in schema else 'any'
        if kind == 'boolean':
            return 'bool'
        if kind == 'integer':
            return FORMATS.get(schema.get('format'), 'int64')
        if kind == 'number':
            return 'number'
        if kind == 'string':
            return FORMATS.get(schema.get('format'), 'string')
        return 'any'

    def add(self, whole_name, page):
        name = last_part(whole_name)
        if self.origin.setdefault(name, whole_name) != whole_name:
            sys.exit('kubernetes_types: %s and %s have the same last name' % (whole_name, self.origin[name]))
        if name in self.types:
            return
        schema = page['components']['schemas'][whole_name]
        fields = self.types[name] = {}
        for field, value in schema.get('properties', {}).items():
            required = '!' if field in schema.get('required', ()) else ''
            fields[field + required] = self.holds(value, page)

    def add_page(self, page, kinds):
        for whole_name, schema in page['components']['schemas'].items():
            kind = schema.get('x-kubernetes-group-version-kind')
            if kind and last_part(whole_name) in kinds:
                self.add(whole_name, page)

    def text(self):
        lines = []
        for name in sorted(self.types):
            lines.append(name)
            lines += [' %s %s' % field for field in sorted(self.types[name].items())]
        return '\n'.join(lines) + '\n'


def collect(find_page):
    """`find_page` gives the OpenAPI of "apis/apps/v1"."""
    types = Types()
    for path, kinds in PAGES.items():
        types.add_page(find_page(path), kinds)
    return types.text()


if __name__ == '__main__':
    folder = pathlib.Path(sys.argv[1])
    sys.stdout.write(collect(lambda path: json.loads(
        (folder / (path.replace('/', '__') + '_openapi.json')).read_text())))

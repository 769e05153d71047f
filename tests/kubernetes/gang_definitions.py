# SPDX-License-Identifier: Apache-2.0
"""The kinds of gang schedulers, as far as an API server needs them."""


def definition(group, version):
    schema = {'type': 'object', 'properties': {each: {'type': 'object', 'x-kubernetes-preserve-unknown-fields': True}
                                               for each in ('spec', 'status')}}
    return {'apiVersion': 'apiextensions.k8s.io/v1', 'kind': 'CustomResourceDefinition',
            # The second group is protected: whoever defines it there names its review.
            'metadata': {'name': 'podgroups.' + group,
                         'annotations': {'api-approved.kubernetes.io': 'https://github.com/kubernetes-sigs/scheduler-plugins/pull/50'}},
            'spec': {'group': group, 'scope': 'Namespaced', 'names': {'kind': 'PodGroup', 'plural': 'podgroups', 'singular': 'podgroup'},
                     'versions': [{'name': version, 'served': True, 'storage': True, 'subresources': {'status': {}},
                                   'schema': {'openAPIV3Schema': schema}}]}}

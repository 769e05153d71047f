# SPDX-License-Identifier: Apache-2.0
"""What the operator may do, by its rules, and what it does, by the audit log of the API server."""
import api_client
import cluster

# Asked for by admission when an owner blocks deletion, never called: check_finalizers shows the need.
WITHOUT_A_CALL = {('kubeflow.org', 'tfjobs/finalizers', 'update'),
                  ('krallistic.github.com', 'tensorflows/finalizers', 'update'),
                  # For jobs of weft's own servers, which operator_test.py runs.
                  ('', 'secrets', 'create'), ('networking.k8s.io', 'networkpolicies', 'create')}


def rights(api):
    """(group, resource, verb) of the operator's cluster role."""
    role = api.request('GET', '/apis/rbac.authorization.k8s.io/v1/clusterroles/weft-operator')
    return {(group, resource, verb) for rule in role['rules'] for group in rule['apiGroups']
            for resource in rule['resources'] for verb in rule['verbs']}


def calls(plane):
    for entry in plane.audited():
        if entry['user']['username'] == cluster.ACCOUNT and 'objectRef' in entry and 'resource' in entry['objectRef']:
            yield entry


def triple(entry):
    target = entry['objectRef']
    parts = [target['resource'], target.get('subresource', '')]
    return target.get('apiGroup', ''), '/'.join(part for part in parts if part), entry['verb']


def used(plane):
    return {triple(entry) for entry in calls(plane)}


def refused(plane):
    """Calls without the right to make them; a quota refuses with the same code what the rights allow."""
    return {triple(entry) for entry in calls(plane) if entry.get('responseStatus', {}).get('code') in (401, 403)
            and entry.get('annotations', {}).get('authorization.k8s.io/decision') != 'allow'}


def creations(plane, namespace, prefix):
    """(begin, end) of each creation of a pod whose name begins so. Times of one format: they sort as text."""
    return [(entry['requestReceivedTimestamp'], entry['stageTimestamp']) for entry in plane.audited()
            if entry['verb'] == 'create' and entry.get('objectRef', {}).get('resource') == 'pods'
            and entry['objectRef'].get('namespace') == namespace
            and entry['objectRef'].get('name', '').startswith(prefix) and 'subresource' not in entry['objectRef']]


def most_at_once(spans):
    changes = sorted([(begin, 1) for begin, _ in spans] + [(end, -1) for _, end in spans])
    most = now = 0
    for _, change in changes:
        now += change
        most = max(most, now)
    return most


def check_finalizers(test):
    api = test.api
    rules = [{'apiGroups': [''], 'resources': ['pods'], 'verbs': ['create']}]
    group = '/apis/rbac.authorization.k8s.io/v1'
    api.request('POST', group + '/clusterroles', {'metadata': {'name': 'pods-only'}, 'rules': rules})
    api.request('POST', group + '/clusterrolebindings', {
        'metadata': {'name': 'pods-only'},
        'roleRef': {'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'ClusterRole', 'name': 'pods-only'},
        'subjects': [{'apiGroup': 'rbac.authorization.k8s.io', 'kind': 'User', 'name': 'pods-only'}]})
    job = api.create('default', 'tfjobs', {
        'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'metadata': {'name': 'owner'},
        'spec': {'tfReplicaSpecs': {'Worker': {'template': {'spec': {
            'containers': [{'name': 'tensorflow', 'image': 'i'}]}}}}}})
    pod = {'metadata': {'name': 'owned', 'ownerReferences': [{
        'apiVersion': 'kubeflow.org/v1', 'kind': 'TFJob', 'name': 'owner', 'uid': job['metadata']['uid'],
        'controller': True, 'blockOwnerDeletion': True}]},
           'spec': {'containers': [{'name': 'tensorflow', 'image': 'i'}]}}
    path = api.path('default', 'pods')
    with test.assertRaises(api_client.ApiError) as caught:
        api.request('POST', path, pod, user='pods-only')
    test.assertEqual(caught.exception.code, 403)
    test.assertIn('blockOwnerDeletion', str(caught.exception))
    api.request('POST', path, pod, user=cluster.ACCOUNT)

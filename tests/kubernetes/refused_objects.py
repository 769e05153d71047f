# SPDX-License-Identifier: Apache-2.0
"""Objects of Kubernetes' own kinds, wrong in one way each, and right ones that are easily taken for wrong.

Each is (name, kind of path, object). `pod(...)` and its like change a plain object at one place.
"""
import copy

PLAIN = {'apiVersion': 'v1', 'kind': 'Pod', 'metadata': {'name': 'x'},
         'spec': {'containers': [{'name': 'main', 'image': 'i:1', 'command': ['true']}]}}
TEMPLATE = {'metadata': {'labels': {'app': 'x'}}, 'spec': PLAIN['spec']}
CORE = '/api/v1/namespaces/default/'
APPS = '/apis/apps/v1/namespaces/default/'
BATCH = '/apis/batch/v1/namespaces/default/'


def put(thing, path, value):
    """`path` is "spec.containers.0.name"; a list grows by one at its end."""
    parts = path.split('.')
    for part in parts[:-1]:
        key = int(part) if part.isdigit() else part
        if isinstance(thing, list):
            if key == len(thing):
                thing.append({})
        else:
            thing.setdefault(key, {})
        thing = thing[key]
    key = int(parts[-1]) if parts[-1].isdigit() else parts[-1]
    if isinstance(thing, list) and key == len(thing):
        thing.append(value)
    else:
        thing[key] = value


def changed(plain, changes):
    thing = copy.deepcopy(plain)
    for path, value in changes.items():
        put(thing, path, value)
    return thing


def pod(**more):
    return CORE + 'pods', PLAIN, more


CONTAINER = 'spec.containers.0.'
PROBE = CONTAINER + 'livenessProbe'
MAP = {'apiVersion': 'v1', 'kind': 'ConfigMap', 'metadata': {'name': 'x'}, 'data': {'a': 'b'}}
SECRET = {'apiVersion': 'v1', 'kind': 'Secret', 'metadata': {'name': 'x'}, 'data': {'a': 'Yg=='}}
SERVICE = {'apiVersion': 'v1', 'kind': 'Service', 'metadata': {'name': 'x'},
           'spec': {'clusterIP': 'None', 'ports': [{'port': 80}]}}
DEPLOYMENT = {'apiVersion': 'apps/v1', 'kind': 'Deployment', 'metadata': {'name': 'x'},
              'spec': {'selector': {'matchLabels': {'app': 'x'}}, 'template': TEMPLATE}}
REPLICA_SET = dict(DEPLOYMENT, kind='ReplicaSet')
STATEFUL_SET = changed(dict(DEPLOYMENT, kind='StatefulSet'), {'spec.serviceName': 'x'})
JOB = {'apiVersion': 'batch/v1', 'kind': 'Job', 'metadata': {'name': 'x'},
       'spec': {'template': {'spec': dict(PLAIN['spec'], restartPolicy='Never')}}}

PODS = [
    ('label-key', {'metadata.labels': {'a b': 'c'}}),
    ('label-value', {'metadata.labels': {'a': 'b c'}}),
    ('label-key-empty', {'metadata.labels': {'': 'c'}}),
    ('label-prefix', {'metadata.labels': {'A_B/c': 'd'}}),
    ('label-long', {'metadata.labels': {'a': 'b' * 64}}),
    ('annotation-key', {'metadata.annotations': {'a b': 'c'}}),
    ('finalizer', {'metadata.finalizers': ['a b']}),
    ('owner', {'metadata.ownerReferences': [{'apiVersion': 'v1', 'kind': 'Pod', 'name': 'a', 'uid': ''}]}),
    ('name', {'metadata.name': 'X_y'}),
    ('no-containers', {'spec.containers': []}),
    ('container-name', {CONTAINER + 'name': '../../outside'}),
    ('container-name-empty', {CONTAINER + 'name': ''}),
    ('container-name-long', {CONTAINER + 'name': 'a' * 64}),
    ('container-name-twice', {'spec.containers.1': {'name': 'main', 'image': 'i'}}),
    ('init-name', {'spec.initContainers': [{'name': 'a/b', 'image': 'i'}]}),
    ('init-name-twice', {'spec.initContainers': [{'name': 'main', 'image': 'i'}]}),
    ('init-probe', {'spec.initContainers': [{'name': 'i', 'image': 'i', 'livenessProbe': {'exec': {'command': ['a']}}}]}),
    ('no-image', {CONTAINER + 'image': ''}),
    ('restart-policy', {'spec.restartPolicy': 'Sometimes'}),
    ('dns-policy', {'spec.dnsPolicy': 'Mine'}),
    ('pull-policy', {CONTAINER + 'imagePullPolicy': 'Often'}),
    ('request-above-limit', {CONTAINER + 'resources': {'limits': {'cpu': '1'}, 'requests': {'cpu': '2'}}}),
    ('memory-above-limit', {CONTAINER + 'resources': {'limits': {'memory': '1Gi'}, 'requests': {'memory': '1025Mi'}}}),
    ('gpu-without-limit', {CONTAINER + 'resources': {'requests': {'nvidia.com/gpu': 1}}}),
    ('gpu-other-limit', {CONTAINER + 'resources': {'limits': {'nvidia.com/gpu': 2}, 'requests': {'nvidia.com/gpu': 1}}}),
    ('gpu-fraction', {CONTAINER + 'resources': {'limits': {'nvidia.com/gpu': '500m'}}}),
    ('negative-cpu', {CONTAINER + 'resources': {'limits': {'cpu': '-1'}}}),
    ('resource-name', {CONTAINER + 'resources': {'limits': {'gpu': '1'}}}),
    ('resource-name-2', {CONTAINER + 'resources': {'limits': {'a b': '1'}}}),
    ('huge-pages-alone', {CONTAINER + 'resources': {'limits': {'hugepages-2Mi': '4Mi'}}}),
    ('quantity', {CONTAINER + 'resources': {'limits': {'cpu': 'much'}}}),
    ('quantity-unit', {CONTAINER + 'resources': {'limits': {'memory': '4GB'}}}),
    ('toleration-typo', {'spec.tolerations': [{'key': 'a', 'operater': 'Exists'}]}),
    ('toleration-operator', {'spec.tolerations': [{'key': 'a', 'operator': 'Is'}]}),
    ('toleration-no-key', {'spec.tolerations': [{'value': 'a'}]}),
    ('toleration-value', {'spec.tolerations': [{'key': 'a', 'operator': 'Exists', 'value': 'b'}]}),
    ('toleration-effect', {'spec.tolerations': [{'key': 'a', 'operator': 'Exists', 'effect': 'Never'}]}),
    ('toleration-seconds', {'spec.tolerations': [{'key': 'a', 'effect': 'NoSchedule', 'tolerationSeconds': 3}]}),
    ('toleration-key', {'spec.tolerations': [{'key': 'a b', 'operator': 'Exists'}]}),
    ('security-typo', {'spec.securityContext': {'runAsUsr': 1}}),
    ('container-security-typo', {CONTAINER + 'securityContext': {'runAsUsr': 1}}),
    ('user-negative', {'spec.securityContext': {'runAsUser': -1}}),
    ('group-negative', {CONTAINER + 'securityContext': {'runAsGroup': -1}}),
    ('spec-typo', {'spec.restartpolicy': 'Never'}),
    ('container-typo', {CONTAINER + 'comand': ['a']}),
    ('two-typos', {CONTAINER + 'comand': ['a'], 'spec.nodename': 'b'}),
    ('top-typo', {'spce': {}}),
    ('metadata-typo', {'metadata.lables': {}}),
    ('probe-typo', {PROBE: {'exec': {'command': ['a']}, 'periodSecond': 1}}),
    ('probe-no-handler', {PROBE: {'periodSeconds': 1}}),
    ('probe-two-handlers', {PROBE: {'exec': {'command': ['a']}, 'tcpSocket': {'port': 1}}}),
    ('probe-negative', {PROBE: {'exec': {'command': ['a']}, 'periodSeconds': -1}}),
    ('probe-success', {PROBE: {'exec': {'command': ['a']}, 'successThreshold': 2}}),
    ('probe-no-command', {PROBE: {'exec': {}}}),
    ('probe-port', {PROBE: {'httpGet': {'port': 70000}}}),
    ('probe-port-name', {PROBE: {'tcpSocket': {'port': 'not a port'}}}),
    ('probe-scheme', {PROBE: {'httpGet': {'port': 1, 'scheme': 'FTP'}}}),
    ('probe-type', {PROBE: {'exec': {'command': 'a'}}}),
    ('hook-no-handler', {CONTAINER + 'lifecycle': {'preStop': {}}}),
    ('port-number', {CONTAINER + 'ports': [{'containerPort': 70000}]}),
    ('port-zero', {CONTAINER + 'ports': [{'name': 'a'}]}),
    ('port-name', {CONTAINER + 'ports': [{'containerPort': 1, 'name': 'A_port'}]}),
    ('port-name-twice', {CONTAINER + 'ports': [{'containerPort': 1, 'name': 'a'}, {'containerPort': 2, 'name': 'a'}]}),
    ('port-protocol', {CONTAINER + 'ports': [{'containerPort': 1, 'protocol': 'IP'}]}),
    ('host-port-twice', {CONTAINER + 'ports': [{'containerPort': 1, 'hostPort': 1}, {'containerPort': 2, 'hostPort': 1}]}),
    ('variable-name', {CONTAINER + 'env': [{'name': 'a=b', 'value': 'c'}]}),
    ('variable-no-name', {CONTAINER + 'env': [{'value': 'c'}]}),
    ('variable-value-and-source', {CONTAINER + 'env': [{'name': 'a', 'value': 'b', 'valueFrom': {'fieldRef': {'fieldPath': 'metadata.name'}}}]}),
    ('variable-no-source', {CONTAINER + 'env': [{'name': 'a', 'valueFrom': {}}]}),
    ('variable-field', {CONTAINER + 'env': [{'name': 'a', 'valueFrom': {'fieldRef': {'fieldPath': 'spec.color'}}}]}),
    ('variable-key', {CONTAINER + 'env': [{'name': 'a', 'valueFrom': {'secretKeyRef': {'name': 'b'}}}]}),
    ('variable-number', {CONTAINER + 'env': [{'name': 'a', 'value': 1}]}),
    ('volume-name', {'spec.volumes': [{'name': '../a'}]}),
    ('volume-twice', {'spec.volumes': [{'name': 'a'}, {'name': 'a'}]}),
    ('volume-two-sources', {'spec.volumes': [{'name': 'a', 'emptyDir': {}, 'hostPath': {'path': '/a'}}]}),
    ('volume-no-path', {'spec.volumes': [{'name': 'a', 'hostPath': {}}]}),
    ('volume-back', {'spec.volumes': [{'name': 'a', 'hostPath': {'path': '/a/../b'}}]}),
    ('volume-type', {'spec.volumes': [{'name': 'a', 'hostPath': {'path': '/a', 'type': 'Folder'}}]}),
    ('volume-mode', {'spec.volumes': [{'name': 'a', 'secret': {'secretName': 'b', 'defaultMode': 4096}}]}),
    ('volume-item', {'spec.volumes': [{'name': 'a', 'configMap': {'name': 'b', 'items': [{'key': 'c', 'path': '../d'}]}}]}),
    ('volume-kind', {'spec.volumes': [{'name': 'a', 'emptydir': {}}]}),
    ('mount-unknown', {CONTAINER + 'volumeMounts': [{'name': 'a', 'mountPath': '/a'}]}),
    ('mount-no-path', {'spec.volumes': [{'name': 'a'}], CONTAINER + 'volumeMounts': [{'name': 'a'}]}),
    ('mount-twice', {'spec.volumes': [{'name': 'a'}], CONTAINER + 'volumeMounts': [
        {'name': 'a', 'mountPath': '/a'}, {'name': 'a', 'mountPath': '/a'}]}),
    ('mount-sub-path', {'spec.volumes': [{'name': 'a'}], CONTAINER + 'volumeMounts': [
        {'name': 'a', 'mountPath': '/a', 'subPath': '../b'}]}),
    ('mount-sub-path-root', {'spec.volumes': [{'name': 'a'}], CONTAINER + 'volumeMounts': [
        {'name': 'a', 'mountPath': '/a', 'subPath': '/b'}]}),
    ('priority-class', {'spec.priorityClassName': 'missing'}),
    ('priority', {'spec.priority': 7}),
    ('deadline', {'spec.activeDeadlineSeconds': 0}),
    ('hostname', {'spec.hostname': 'a.b'}),
    ('selector', {'spec.nodeSelector': {'a b': 'c'}}),
    ('gate-twice', {'spec.schedulingGates': [{'name': 'a'}, {'name': 'a'}]}),
    ('affinity-operator', {'spec.affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {
        'nodeSelectorTerms': [{'matchExpressions': [{'key': 'a', 'operator': 'Is', 'values': ['b']}]}]}}}}),
    ('affinity-no-values', {'spec.affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {
        'nodeSelectorTerms': [{'matchExpressions': [{'key': 'a', 'operator': 'In'}]}]}}}}),
    ('affinity-no-terms', {'spec.affinity': {'nodeAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': {
        'nodeSelectorTerms': []}}}}),
    ('affinity-no-topology', {'spec.affinity': {'podAntiAffinity': {'requiredDuringSchedulingIgnoredDuringExecution': [
        {'labelSelector': {'matchLabels': {'a': 'b'}}}]}}}),
    ('affinity-weight', {'spec.affinity': {'podAffinity': {'preferredDuringSchedulingIgnoredDuringExecution': [
        {'weight': 0, 'podAffinityTerm': {'topologyKey': 'a'}}]}}}),
    ('spread', {'spec.topologySpreadConstraints': [{'maxSkew': 0, 'topologyKey': '', 'whenUnsatisfiable': 'Maybe'}]}),
    ('number-as-text', {'spec.terminationGracePeriodSeconds': '30'}),
    ('text-as-list', {CONTAINER + 'command': 'true'}),
    ('list-as-mapping', {'spec.containers': {'name': 'main', 'image': 'i'}}),
    ('number-too-large', {CONTAINER + 'ports': [{'containerPort': 1 << 40}]}),
    # Right ones.
    ('good-plain', {}),
    ('good-limits', {CONTAINER + 'resources': {'limits': {'cpu': 1.5, 'memory': '1.5Gi', 'nvidia.com/gpu': 1}}}),
    ('good-request', {CONTAINER + 'resources': {'limits': {'cpu': '1000m'}, 'requests': {'cpu': '1', 'memory': '1024Ki'}}}),
    ('good-old-gpu', {CONTAINER + 'resources': {'limits': {'alpha.kubernetes.io/nvidia-gpu': 1}}}),
    ('good-probe', {PROBE: {'httpGet': {'port': 'web'}}, CONTAINER + 'readinessProbe': {'grpc': {'port': 5}}}),
    ('good-variables', {CONTAINER + 'env': [{'name': 'a.b-c', 'value': ''}, {'name': 'D', 'valueFrom': {
        'fieldRef': {'fieldPath': "metadata.labels['a']"}}}]}),
    ('good-volumes', {'spec.volumes': [{'name': 'a'}, {'name': 'b', 'secret': {'secretName': 's'}},
                                       {'name': 'c', 'hostPath': {'path': '/c'}}]}),
    ('good-sidecar', {'spec.initContainers': [{'name': '0', 'image': 'i', 'restartPolicy': 'Always',
                                               'startupProbe': {'exec': {'command': ['a']}}}]}),
    ('good-tolerations', {'spec.tolerations': [{'operator': 'Exists'}, {'key': 'a', 'value': 'b', 'effect': 'NoExecute',
                                                                        'tolerationSeconds': 1}]}),
    ('good-critical', {'spec.priorityClassName': 'system-node-critical', 'metadata.namespace': 'default'}),
    ('good-nulls', {'spec.nodeSelector': None, CONTAINER + 'args': None}),
    ('good-large-priority', {'spec.priority': 0}),
]
OTHERS = [
    ('map-key', CORE + 'configmaps', MAP, {'data': {'../a': 'b'}}),
    ('map-key-dots', CORE + 'configmaps', MAP, {'data': {'..data': 'b'}}),
    ('map-number', CORE + 'configmaps', MAP, {'data': {'a': 1}}),
    ('map-typo', CORE + 'configmaps', MAP, {'dta': {'a': 'b'}}),
    ('map-name', CORE + 'configmaps', MAP, {'metadata.name': 'a/b'}),
    ('secret-key', CORE + 'secrets', SECRET, {'data': {'a b': 'Yg=='}}),
    ('secret-text', CORE + 'secrets', SECRET, {'data': {'a': '!'}}),
    ('service-name', CORE + 'services', SERVICE, {'metadata.name': '0a'}),
    ('service-typo', CORE + 'services', SERVICE, {'spec.selectors': {}}),
    ('service-selector', CORE + 'services', SERVICE, {'spec.selector': {'a b': 'c'}}),
    ('service-port', CORE + 'services', SERVICE, {'spec.ports.0.port': 0}),
    ('service-port-names', CORE + 'services', SERVICE, {'spec.ports': [{'port': 1}, {'port': 2}]}),
    ('service-port-twice', CORE + 'services', SERVICE, {'spec.ports': [{'port': 1, 'name': 'a'}, {'port': 2, 'name': 'a'}]}),
    ('service-type', CORE + 'services', SERVICE, {'spec.type': 'Mine'}),
    ('namespace-name', '/api/v1/namespaces', {'apiVersion': 'v1', 'kind': 'Namespace', 'metadata': {'name': 'a.b'}}, {}),
    ('deployment-no-selector', APPS + 'deployments', DEPLOYMENT, {'spec.selector': None}),
    ('deployment-selector', APPS + 'deployments', DEPLOYMENT, {'spec.selector.matchLabels': {'app': 'y'}}),
    ('deployment-replicas', APPS + 'deployments', DEPLOYMENT, {'spec.replicas': -1}),
    ('deployment-policy', APPS + 'deployments', DEPLOYMENT, {'spec.template.spec.restartPolicy': 'Never'}),
    ('deployment-template-typo', APPS + 'deployments', DEPLOYMENT, {'spec.template.spec.containers.0.comand': ['a']}),
    ('deployment-template-image', APPS + 'deployments', DEPLOYMENT, {'spec.template.spec.containers.0.image': ''}),
    ('deployment-strategy', APPS + 'deployments', DEPLOYMENT, {'spec.strategy': {'type': 'Mine'}}),
    ('replica-set-replicas', APPS + 'replicasets', REPLICA_SET, {'spec.replicas': 'two'}),
    ('replica-set-labels', APPS + 'replicasets', REPLICA_SET, {'spec.template.metadata.labels': {'a b': 'c'}}),
    ('stateful-set-policy', APPS + 'statefulsets', STATEFUL_SET, {'spec.podManagementPolicy': 'Mine'}),
    ('job-policy', BATCH + 'jobs', JOB, {'spec.template.spec.restartPolicy': 'Always'}),
    ('job-completions', BATCH + 'jobs', JOB, {'spec.completions': -1}),
    ('job-typo', BATCH + 'jobs', JOB, {'spec.backofLimit': 1}),
    ('job-mode', BATCH + 'jobs', JOB, {'spec.completionMode': 'Mine'}),
    ('class-value', '/apis/scheduling.k8s.io/v1/priorityclasses', {
        'apiVersion': 'scheduling.k8s.io/v1', 'kind': 'PriorityClass', 'metadata': {'name': 'x'}, 'value': 2000000000}, {}),
    ('good-deployment', APPS + 'deployments', DEPLOYMENT, {}),
    ('good-replica-set', APPS + 'replicasets', REPLICA_SET, {}),
    ('good-stateful-set', APPS + 'statefulsets', STATEFUL_SET, {}),
    ('good-job', BATCH + 'jobs', JOB, {}),
    ('good-job-indexed', BATCH + 'jobs', JOB, {'spec.completions': 3, 'spec.completionMode': 'Indexed'}),
    ('good-service', CORE + 'services', SERVICE, {}),
    ('good-map', CORE + 'configmaps', MAP, {'binaryData': {'b': 'AA=='}}),
    ('good-secret', CORE + 'secrets', SECRET, {'stringData': {'b': 'c'}}),
]
# An object, and what it becomes: (name, path, object, changes).
UPDATES = [
    ('map-stays', CORE + 'configmaps', dict(MAP, immutable=True), {'data': {'a': 'c'}}),
    ('map-stays-fixed', CORE + 'configmaps', dict(MAP, immutable=True), {'immutable': False}),
    ('secret-stays', CORE + 'secrets', dict(SECRET, immutable=True), {'data': {'a': 'Yw=='}}),
    ('secret-type', CORE + 'secrets', SECRET, {'type': 'other'}),
    ('good-map-label', CORE + 'configmaps', dict(MAP, immutable=True), {'metadata.labels': {'a': 'b'}}),
    ('deployment-selector-stays', APPS + 'deployments', DEPLOYMENT, {
        'spec.selector': {'matchLabels': {'app': 'y'}}, 'spec.template.metadata.labels': {'app': 'y'}}),
    ('pod-command', CORE + 'pods', PLAIN, {CONTAINER + 'command': ['false']}),
    ('good-pod-image', CORE + 'pods', changed(PLAIN, {'spec.schedulerName': 'nobody'}), {CONTAINER + 'image': 'i:2'}),
]


def creations(pods, others):
    """(name, path, object), each under a name of its own."""
    rows = [(name, CORE + 'pods', PLAIN, changes) for name, changes in pods] + others
    for name, path, plain, changes in rows:
        thing = changed(plain, changes)
        if thing['metadata']['name'] == 'x':
            thing['metadata']['name'] = name
        yield name, path, thing

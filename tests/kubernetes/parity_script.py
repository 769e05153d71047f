# SPDX-License-Identifier: Apache-2.0
"""One script of kubectl commands for both stores, and the files that it applies."""

FILES = {
    'conf.yaml': '''apiVersion: v1
kind: ConfigMap
metadata: {name: conf, labels: {app: a, tier: one}}
data: {a: "1", b: "two"}
''',
    'conf-changed.yaml': '''apiVersion: v1
kind: ConfigMap
metadata: {name: conf, labels: {app: a, tier: one}}
data: {a: "2", c: "three"}
''',
    'many.yaml': ''.join('''---
apiVersion: v1
kind: ConfigMap
metadata: {name: many-%d, labels: {app: %s, number: "%d"}}
data: {number: "%d"}
''' % (n, 'even' if n % 2 == 0 else 'odd', n, n) for n in range(5)),
    'space.yaml': '''apiVersion: v1
kind: Namespace
metadata: {name: team, labels: {purpose: test}}
''',
    'service.yaml': '''apiVersion: v1
kind: Service
metadata: {name: front, labels: {app: a}}
spec:
  clusterIP: None
  selector: {app: talk}
  ports: [{name: web, port: 80}, {name: more, port: 81, targetPort: 8081}]
''',
    'secret.yaml': '''apiVersion: v1
kind: Secret
metadata: {name: hidden}
stringData: {key: value}
''',
    'pod.yaml': '''apiVersion: v1
kind: Pod
metadata: {name: talker, labels: {app: talk}, annotations: {note: "n"}}
spec:
  restartPolicy: Never
  terminationGracePeriodSeconds: 1
  containers:
  - name: main
    image: busybox:1
    command: [sh, -c, "echo hello; echo again; sleep 1000"]
    env: [{name: A, value: b}]
    ports: [{containerPort: 80}]
    resources: {requests: {cpu: 10m, memory: 16Mi}}
''',
    'done.yaml': '''apiVersion: v1
kind: Pod
metadata: {name: done}
spec:
  restartPolicy: Never
  containers:
  - {name: main, image: "busybox:1", command: [sh, -c, "echo bye; exit 3"]}
''',
    'job.yaml': '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: held, labels: {team: a}}
spec:
  runPolicy: {suspend: true, cleanPodPolicy: All}
  tfReplicaSpecs:
    PS:
      replicas: 1
      restartPolicy: Never
      template: &template
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{name: tensorflow, image: i, command: [sleep, "1000"]}]
    Worker:
      replicas: 2
      restartPolicy: ExitCode
      template: *template
''',
    'owned.yaml': '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: NAME}
spec:
  tfReplicaSpecs:
    Worker:
      template:
        spec:
          terminationGracePeriodSeconds: 1
          containers: [{name: tensorflow, image: i, command: [sleep, "1000"]}]
''',
    'status.json': '{"status":{"conditions":[{"type":"Created","status":"True","reason":"ByHand","message":"m"}]}}',
    'deployment.yaml': '''apiVersion: apps/v1
kind: Deployment
metadata: {name: web}
spec:
  replicas: 2
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec: {containers: [{name: web, image: web}]}
''',
    'generated.yaml': '''apiVersion: v1
kind: ConfigMap
metadata: {generateName: made-, labels: {app: made}}
data: {a: b}
''',
    'finalized.yaml': '''apiVersion: v1
kind: ConfigMap
metadata: {name: finalized, finalizers: [example.org/hold]}
''',
    'bad-name.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: Bad_Name}\n',
    'bad-kind.yaml': 'apiVersion: v1\nkind: Frog\nmetadata: {name: x}\n',
    'bad-version.yaml': 'apiVersion: frogs/v7\nkind: ConfigMap\nmetadata: {name: x}\n',
    'bad-field.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndate: {a: b}\n',
    'bad-type.yaml': 'apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\ndata: {a: 1}\n',
    'bad-yaml.yaml': 'apiVersion: v1\nkind: ConfigMap\n metadata: {name: x\n',
    'bad-pod.yaml': 'apiVersion: v1\nkind: Pod\nmetadata: {name: x}\nspec: {containers: []}\n',
    'bad-job.yaml': '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: x}
spec: {tfReplicaSpecs: {Wroker: {template: {}}}}
''',
    'bad-number.yaml': '''apiVersion: kubeflow.org/v1
kind: TFJob
metadata: {name: x}
spec: {tfReplicaSpecs: {Worker: {replicas: two, template: {}}}}
''',
}
for word in ('background', 'foreground', 'orphan'):
    FILES['owned-%s.yaml' % word] = FILES['owned.yaml'].replace('NAME', word)
del FILES['owned.yaml']

SCRIPT = r'''
# What there is.
version
api-versions
api-resources --api-group=kubeflow.org
api-resources --namespaced=true --verbs=list,watch,patch -o name
explain tfjob
explain tfjob.spec.runPolicy
explain tfjob.spec.runPolicy.backoffLimit
explain configmap.data
explain pod.spec.containers.env
explain frog
explain pod.spec.frog

# Apply, change, look.
apply -f conf.yaml
apply -f conf.yaml
diff -f conf.yaml
diff -f conf-changed.yaml
apply --dry-run=server -f conf-changed.yaml
get cm conf -o yaml
apply -f conf-changed.yaml
get cm conf
get cm conf -o wide
get cm conf -o json
get cm conf -o name
get cm conf --show-labels
get cm conf -L app,tier
get cm conf -o jsonpath={.data.a}
get cm conf -o jsonpath='{range .metadata.labels}{@}{end}'
get cm conf -o go-template='{{range $k, $v := .data}}{{$k}}={{$v}} {{end}}'
get cm conf -o custom-columns=NAME:.metadata.name,A:.data.a,NONE:.data.none
get cm conf --no-headers
describe cm conf
get -f conf.yaml
apply view-last-applied cm conf

# Labels, annotations, patches.
label cm conf extra=yes
label cm conf extra=no
label cm conf extra=no --overwrite
label cm conf extra-
label cm conf bad=-no-
annotate cm conf note=one
annotate cm conf note=two --overwrite
annotate cm conf note-
patch cm conf --type=merge -p {"data":{"a":null,"m":"merged"}}
patch cm conf --type=json -p [{"op":"add","path":"/data/j","value":"json"}]
patch cm conf --type=json -p [{"op":"test","path":"/data/j","value":"other"}]
patch cm conf --type=json -p [{"op":"remove","path":"/data/none"}]
patch cm conf --type=json -p [{"op":"frog","path":"/data/j"}]
patch cm conf --type=strategic -p {"data":{"s":"strategic"}}
patch cm conf --type=strategic -p {"data":{"$patch":"replace","only":"this"}}
patch cm conf --type=merge -p {"data":{"n":1}}
patch cm conf --type=merge -p {"metadata":{"name":"other"}}
patch cm none --type=merge -p {"data":{}}
patch cm conf --type=merge -p {"data":{"dry":"run"}} --dry-run=server -o jsonpath={.data}
get cm conf -o jsonpath={.data}
set env cm/conf A=B
replace -f conf.yaml
get cm conf -o jsonpath={.data}
create -f conf.yaml

# Lists and selectors.
apply -f many.yaml
get cm -l app=even
get cm -l app!=even,number
get cm -l 'app in (odd),number notin (1)'
get cm -l '!app' -o name
get cm -l 'app=='
get cm --field-selector metadata.name=many-2
get cm --field-selector metadata.name!=many-2,metadata.namespace=default -l number -o name
get cm --field-selector data.number=2
get cm -l number --chunk-size=2 -o name
get cm -l number --sort-by=.data.number -o name
get cm -l number -o jsonpath='{.items[*].metadata.name}'
get cm -l number -o custom-columns=N:.data.number
get cm many-1 many-3
get cm many-1 many-9
get cm,secret -l number -o name
get --raw /api/v1/namespaces/default/configmaps/many-1
get --raw /api/v1/namespaces/default/configmaps?limit=2&labelSelector=number
get --raw /api/v1/namespaces/default/frogs
get --raw /api/v1/namespaces/default/configmaps?limit=x
get --raw /api/v1/namespaces/default/configmaps?continue=x
get --raw /api/v1/namespaces/default/configmaps?labelSelector=a%20in
get --raw /frog
get cm -A -l number
label cm -l app=odd seen=yes
delete cm -l app=odd
delete cm many-9
delete cm many-9 --ignore-not-found
delete cm --all --dry-run=server -n default --field-selector metadata.name=many-0

# Generated names, finalizers.
create -f generated.yaml
get cm -l app=made
delete cm -l app=made
apply -f finalized.yaml
delete cm finalized --wait=false
get cm finalized -o jsonpath={.metadata.finalizers}
patch cm finalized --type=merge -p {"metadata":{"finalizers":null}}
get cm finalized

# Namespaces.
apply -f space.yaml
apply -n team -f conf.yaml
get ns team
get ns team -o jsonpath={.status.phase}
describe ns team
get cm -n team conf
get all -n team
delete ns team
get ns team
apply -n team -f conf.yaml
get cm -n none

# Services and secrets.
apply -f service.yaml
get svc front
get svc front -o wide
get svc front -o yaml
describe svc front
apply -f secret.yaml
get secret hidden
get secret hidden -o jsonpath={.data.key}
describe secret hidden
patch svc front --type=strategic -p {"spec":{"ports":[{"port":81,"name":"renamed"}]}}
get svc front -o jsonpath={.spec.ports}
delete svc/front secret/hidden

# Pods.
apply -f pod.yaml
wait --for=condition=Ready pod/talker --timeout=60s
get pod talker
get pod talker -o wide
get pod talker -o yaml
get pods --field-selector status.phase=Running,spec.nodeName=local -o name
get pods --field-selector status.phase!=Running -o name
describe pod talker
logs talker
logs talker --tail=1
logs talker -c main --timestamps=false
logs talker -c none
logs none
patch pod talker -p {"spec":{"restartPolicy":"Always"}}
patch pod talker -p {"spec":{"activeDeadlineSeconds":3600}}
wait --for=jsonpath={.status.phase}=Running pod/talker --timeout=10s
wait --for=condition=Frog pod/talker --timeout=1s
apply -f done.yaml
wait --for=jsonpath={.status.phase}=Failed pod/done --timeout=60s
get pod done
logs done
get pod done -o jsonpath={.status.containerStatuses[0].state.terminated.exitCode}
get events --field-selector involvedObject.name=talker,reason=Scheduled -o custom-columns=R:.reason,M:.message
delete pod talker done
get pod talker
wait --for=delete pod/talker --timeout=10s

# Jobs.
apply -f job.yaml
wait --for=condition=Suspended tfjob/held --timeout=60s
get tfjob held
get tfjobs -o wide
get tfjob held -o yaml
get tfjob held -o jsonpath={.spec.tfReplicaSpecs.Worker.replicas}
get tfjob.v1.kubeflow.org held -o name
get tfjob.v1beta1.kubeflow.org held -o jsonpath={.apiVersion}
describe tfjob held
scale tfjob/held --replicas=3
get tfjob held -o jsonpath={.spec.tfReplicaSpecs.Worker.replicas}
scale tfjob/held --replicas=1 --current-replicas=7
get --raw /apis/kubeflow.org/v1/namespaces/default/tfjobs/held/scale
patch tfjob held --type=merge -p {"spec":{"tfReplicaSpecs":{"Worker":{"replicas":-1}}}}
patch tfjob held --type=strategic -p {"spec":{}}
patch tfjob held --type=json -p [{"op":"replace","path":"/spec/tfReplicaSpecs/Worker/replicas","value":2}]
diff -f job.yaml
patch tfjob held --type=merge -p {"spec":{"runPolicy":{"suspend":false}}}
wait --for=condition=Running tfjob/held --timeout=60s
wait --for=condition=Ready pod -l training.kubeflow.org/job-name=held --timeout=60s
get pods -l training.kubeflow.org/job-name=held
get pods -l training.kubeflow.org/replica-type=worker -o custom-columns=N:.metadata.name,O:.metadata.ownerReferences[0].name
get svc -l training.kubeflow.org/job-name=held
get tfjob held -o jsonpath={.status.replicaStatuses}
get pod held-worker-1 -o jsonpath={.spec.containers[0].env}
get pod held-worker-1 -o yaml
get all -l training.kubeflow.org/job-name=held
patch tfjob held --subresource=status --type=merge --patch-file=status.json
get tfjob held --subresource=status -o jsonpath={.metadata.name}
patch tfjob held --type=merge -p {"status":{"conditions":[]}}
delete tfjob held
wait --for=delete pod -l training.kubeflow.org/job-name=held --timeout=60s
get pods,svc -l training.kubeflow.org/job-name=held

# The three ways to delete.
apply -f owned-background.yaml -f owned-foreground.yaml -f owned-orphan.yaml
wait --for=condition=Running tfjob --all --timeout=60s
delete tfjob background --cascade=background
wait --for=delete pod/background-worker-0 --timeout=60s
delete tfjob foreground --cascade=foreground
get pod foreground-worker-0
delete tfjob orphan --cascade=orphan
get pod orphan-worker-0 -o jsonpath={.metadata.ownerReferences}
get pod orphan-worker-0 -o jsonpath={.status.phase}
delete pod/orphan-worker-0 svc/orphan-worker-0

# Objects that nothing acts on here.
apply -f deployment.yaml
scale deployment/web --replicas=5
get deployment web -o jsonpath={.spec.replicas}
patch deployment web -p {"spec":{"template":{"spec":{"containers":[{"name":"web","image":"web:2"}]}}}}
get deployment web -o jsonpath={.spec.template.spec.containers}
set image deployment/web web=web:3
get deployment web -o jsonpath={.spec.template.spec.containers[0].image}
delete deployment web

# What is wrong.
apply -f bad-name.yaml
apply -f bad-kind.yaml
apply -f bad-version.yaml
apply -f bad-field.yaml
apply --validate=false -f bad-field.yaml
apply --validate=warn -f bad-field.yaml
apply -f bad-type.yaml
apply -f bad-yaml.yaml
apply -f bad-pod.yaml
apply -f bad-job.yaml
apply -f bad-number.yaml
apply -f none.yaml
get frogs
get frog x
get cm x y
get cm none -o yaml
delete tfjob none
describe cm none
label cm none a=b
logs pod/none
create -f conf.yaml --dry-run=server
delete cm conf --now
'''


def commands():
    return [line for line in SCRIPT.splitlines() if line and not line.startswith('#')]

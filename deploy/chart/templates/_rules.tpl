{{- /* SPDX-License-Identifier: Apache-2.0 */ -}}
{{- define "weft.rules" -}}
- {apiGroups: [kubeflow.org], resources: [tfjobs], verbs: [get, list, watch, delete]}
- {apiGroups: [kubeflow.org], resources: [tfjobs/status], verbs: [update]}
- {apiGroups: [kubeflow.org], resources: [tfjobs/finalizers], verbs: [update]}
- {apiGroups: [krallistic.github.com], resources: [tensorflows], verbs: [get, list, watch, delete]}
- {apiGroups: [krallistic.github.com], resources: [tensorflows/status], verbs: [update]}
- {apiGroups: [krallistic.github.com], resources: [tensorflows/finalizers], verbs: [update]}
- {apiGroups: [""], resources: [pods, services], verbs: [get, list, watch, create, delete]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
- {apiGroups: [""], resources: [secrets], verbs: [create]}
- {apiGroups: [networking.k8s.io], resources: [networkpolicies], verbs: [create]}
{{- end }}
{{- define "weft.lease" -}}
- {apiGroups: [coordination.k8s.io], resources: [leases], verbs: [get, create, update]}
{{- end }}
{{- define "weft.subject" -}}
- {kind: ServiceAccount, name: weft-operator, namespace: {{ .Release.Namespace }}}
{{- end }}

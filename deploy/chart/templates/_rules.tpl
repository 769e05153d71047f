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
{{- define "weft.tuning" -}}
- {apiGroups: [kubeflow.org], resources: [experiments], verbs: [get, list, watch]}
- {apiGroups: [kubeflow.org], resources: [trials], verbs: [get, list, watch, create, update, delete]}
- {apiGroups: [kubeflow.org], resources: [suggestions], verbs: [get, list, watch, create]}
- {apiGroups: [kubeflow.org], resources: [experiments/status, trials/status, suggestions/status], verbs: [update]}
- {apiGroups: [kubeflow.org], resources: [experiments/finalizers, trials/finalizers], verbs: [update]}
- {apiGroups: [kubeflow.org], resources: [tfjobs], verbs: [create]}
- {apiGroups: [krallistic.github.com], resources: [tensorflows], verbs: [create]}
- {apiGroups: [batch], resources: [jobs], verbs: [get, list, watch, create, delete]}
- {apiGroups: [""], resources: [pods/log], verbs: [get]}
- {apiGroups: [""], resources: [persistentvolumeclaims], verbs: [create]}
- {apiGroups: [""], resources: [configmaps], verbs: [get]}
{{- end }}
{{- define "weft.serving" -}}
- {apiGroups: [weft.dev], resources: [modelservers], verbs: [get, list, watch]}
- {apiGroups: [weft.dev], resources: [modelservers/status], verbs: [update]}
- {apiGroups: [weft.dev], resources: [modelservers/finalizers], verbs: [update]}
- {apiGroups: [apps], resources: [deployments], verbs: [get, list, watch, create, update, delete]}
{{- end }}

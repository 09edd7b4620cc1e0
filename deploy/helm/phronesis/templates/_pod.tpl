{{/* What every object carries. Arguments: the root, the component. */}}
{{- define "phronesis.labels" -}}
{{ include "phronesis.selector" . }}
app.kubernetes.io/version: {{ (index . 0).Chart.AppVersion | default (index . 0).Chart.Version | quote }}
app.kubernetes.io/managed-by: {{ (index . 0).Release.Service }}
helm.sh/chart: {{ printf "%s-%s" (index . 0).Chart.Name (index . 0).Chart.Version }}
{{- end }}

{{/* What selects the pods of a component. Arguments: the root, the component. */}}
{{- define "phronesis.selector" -}}
app.kubernetes.io/name: phronesis
app.kubernetes.io/instance: {{ (index . 0).Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{/* What every pod has: who it is, and that it has nothing to do with the cluster's API. Arguments: the root, the component, its uid. */}}
{{- define "phronesis.pod" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $uid := index . 2 -}}
serviceAccountName: {{ $root.Release.Name }}-{{ $name }}
automountServiceAccountToken: false
enableServiceLinks: false
{{- with $root.Values.global.imagePullSecrets }}
imagePullSecrets:
  {{- range . }}
  - name: {{ . }}
  {{- end }}
{{- end }}
securityContext:
  runAsNonRoot: true
  runAsUser: {{ $uid }}
  runAsGroup: {{ $uid }}
  fsGroup: {{ $uid }}
  fsGroupChangePolicy: OnRootMismatch
  seccompProfile: {type: RuntimeDefault}
{{- end }}

{{- define "phronesis.container.security" -}}
allowPrivilegeEscalation: false
privileged: false
readOnlyRootFilesystem: true
capabilities: {drop: [ALL]}
{{- end }}

{{/* Uid of the services' images. */}}
{{- define "phronesis.uid" -}}10001{{- end }}

{{/* Image of a service. Arguments: the root, the service. */}}
{{- define "phronesis.image" -}}
{{- $root := index . 0 -}}
{{ $root.Values.image.registry }}/phronesis-{{ index . 1 }}:{{ $root.Values.image.tag | default $root.Chart.AppVersion }}
{{- end }}

{{/* Copies stand apart where there is room: on other nodes, in other zones. Arguments: the root, the component. */}}
{{- define "phronesis.spread" -}}
{{- $arguments := . }}
{{- range list "kubernetes.io/hostname" "topology.kubernetes.io/zone" }}
- maxSkew: 1
  topologyKey: {{ . }}
  whenUnsatisfiable: ScheduleAnyway
  labelSelector:
    matchLabels: {{- include "phronesis.selector" $arguments | nindent 6 }}
{{- end }}
{{- end }}

{{/* A service account that is a name and nothing more. Arguments: the root, the component. */}}
{{- define "phronesis.account" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ (index . 0).Release.Name }}-{{ index . 1 }}
  labels: {{- include "phronesis.labels" . | nindent 4 }}
automountServiceAccountToken: false
{{- end }}

{{/*
The volume of a store. A StatefulSet takes no other size or class later: the cluster would refuse it after the Deployments had
been changed, so the rendering stops here before anything is. Argument: the root of the store's chart.
*/}}
{{- define "phronesis.claim" -}}
{{- $store := .Chart.Name }}
{{- $wanted := .Values.storage }}
{{- $release := lookup "apps/v1" "StatefulSet" .Release.Namespace (printf "%s-%s" .Release.Name $store) }}
{{- range dig "spec" "volumeClaimTemplates" list $release }}
{{- $size := .spec.resources.requests.storage }}
{{- if hasSuffix "Ti" $size }}{{ $size = printf "%dGi" (trimSuffix "Ti" $size | int | mul 1024) }}{{ end }}
{{- $stands := dict "size" $size "className" (.spec.storageClassName | default "") }}
{{- range $name, $value := $stands }}
{{- if ne $value (get $wanted $name) }}
{{- fail (printf "%s.storage.%s is %q in this release and cannot become %q: keep the value, and grow the volume by its claim (kubectl edit pvc)" $store $name $value (get $wanted $name)) }}
{{- end }}
{{- end }}
{{- end -}}
- metadata:
    name: data
  spec:
    accessModes: [ReadWriteOnce]
    {{- with .Values.storage.className }}
    storageClassName: {{ . }}
    {{- end }}
    resources: {requests: {storage: {{ .Values.storage.size }}}}
{{- end }}

{{/* Where pods may run. Argument: the values that say so. */}}
{{- define "phronesis.placement" -}}
{{- with .nodeSelector }}
nodeSelector: {{- toYaml . | nindent 2 }}
{{- end }}
{{- with .tolerations }}
tolerations: {{- toYaml . | nindent 2 }}
{{- end }}
{{- end }}

{{/*
What a store of one pod has beside its StatefulSet: its account, its address, who may reach it and, unless it may be evicted,
a budget that lets nobody stop it while nodes are emptied. Arguments: the root of the store's chart, its name, its ports by name.
*/}}
{{- define "phronesis.single" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $ports := index . 2 }}
{{- $labels := include "phronesis.labels" (list $root $name) }}
{{- $selector := include "phronesis.selector" (list $root $name) -}}
{{ include "phronesis.account" (list $root $name) }}
---
apiVersion: v1
kind: Service
metadata:
  name: {{ $root.Release.Name }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
spec:
  clusterIP: None
  selector: {{- $selector | nindent 4 }}
  ports:
    {{- range $port, $number := $ports }}
    - {name: {{ $port }}, port: {{ $number }}, targetPort: {{ $port }}}
    {{- end }}
{{- if not $root.Values.evictable }}
---
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  name: {{ $root.Release.Name }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
spec:
  maxUnavailable: 0
  selector:
    matchLabels: {{- $selector | nindent 6 }}
{{- end }}
{{- if $root.Values.global.networkPolicies.enabled }}
---
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata:
  name: {{ $root.Release.Name }}-{{ $name }}
  labels: {{- $labels | nindent 4 }}
spec:
  podSelector:
    matchLabels: {{- $selector | nindent 6 }}
  policyTypes: [Ingress, Egress]
  ingress:
    - from: {{- include "phronesis.ingress.users" (list $root $name) | nindent 8 }}
      ports:
        {{- range $ports }}
        - {port: {{ . }}, protocol: TCP}
        {{- end }}
{{- end }}
{{- end }}

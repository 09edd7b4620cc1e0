{{/*
The architecture, once: which stores a service reaches, whether it signs principals, which keys of its own and which
optional ones it reads under which name. Environment, mounted keys, network policies and migrations are made from it. Every service reaches NATS; no service reaches another.
*/}}
{{- define "phronesis.architecture" -}}
gateway: {stores: [postgres], signs: true, keys: {gateway.key: gateway.key}}
orchestrator:
  {stores: [postgres], signs: true, keys: {calendar.key: ORCHESTRATOR_CALENDAR_KEY}, models: {groq: GROQ_API_KEY, model: ORCHESTRATOR_MODEL_KEY}}
memory: {stores: [postgres, weaviate], signs: true, models: {embedding: MEMORY_EMBEDDING_KEY}}
instructions: {stores: [postgres]}
graph: {stores: [neo4j]}
media: {stores: [], models: {groq: GROQ_API_KEY}}
{{- end }}

{{/* Services with a schema in Postgres, in the order in which it is brought up to date. */}}
{{- define "phronesis.owners" -}}
{{- range $name, $facts := include "phronesis.architecture" . | fromYaml }}{{ if has "postgres" $facts.stores }}{{ $name }} {{ end }}{{ end }}
{{- end }}

{{/* Services that sign principals. */}}
{{- define "phronesis.signers" -}}
{{- range $name, $facts := include "phronesis.architecture" . | fromYaml }}{{ if $facts.signs }}{{ $name }} {{ end }}{{ end }}
{{- end }}

{{/*
Where each store is: its address as the services take it, its ports, and, where it is managed, its networks.
An address that is missing stops the rendering here, with the value's name.
*/}}
{{- define "phronesis.stores" -}}
{{- $values := .Values }}
{{- $managed := .Values.managed -}}
nats:
  {{- if .Values.nats.enabled }}
  url: {{ ternary "nats" "tls" (empty .Values.nats.tls.secret) }}://{{ .Release.Name }}-nats:4222
  replicas: {{ .Values.nats.replicas }}
  monitoring: {{ .Release.Name }}-nats-peers.{{ .Release.Namespace }}.svc:8222
  ports: [4222]
  {{- else }}
  {{- $url := include "phronesis.managed" (list "nats" "url" $managed.nats.url) }}
  url: {{ $url | quote }}
  replicas: {{ $managed.nats.streamReplicas }}
  monitoring: {{ $managed.nats.monitoring | quote }}
  ports: [{{ include "phronesis.port" (list "nats.url" (splitList "," $url | first)) }}]
  cidrs: {{ include "phronesis.cidrs" (list $values "nats") }}
  {{- end }}
postgres:
  {{- if .Values.postgres.enabled }}
  address: {{ .Release.Name }}-postgres:5432/{{ .Values.postgres.database }}
  owner: postgres
  ports: [5432]
  {{- else }}
  {{- $host := include "phronesis.managed" (list "postgres" "host" $managed.postgres.host) }}
  {{- $authority := ternary "/etc/phronesis/ca/postgres/ca.crt" "/etc/ssl/certs/ca-certificates.crt" (not (empty $managed.postgres.caConfigMap)) }}
  address: {{ printf "%s:%v/%s?sslmode=%s&sslrootcert=%s" $host (int $managed.postgres.port) $managed.postgres.database $managed.postgres.sslmode $authority | quote }}
  owner: {{ $managed.postgres.owner | quote }}
  ports: [{{ int $managed.postgres.port }}]
  cidrs: {{ include "phronesis.cidrs" (list $values "postgres") }}
  {{- end }}
neo4j:
  {{- if .Values.neo4j.enabled }}
  url: bolt://{{ .Release.Name }}-neo4j:7687
  user: neo4j
  database: neo4j
  ports: [7687]
  {{- else }}
  {{- $url := include "phronesis.managed" (list "neo4j" "url" $managed.neo4j.url) }}
  url: {{ $url | quote }}
  user: {{ $managed.neo4j.user | quote }}
  database: {{ $managed.neo4j.database | quote }}
  ports: [{{ include "phronesis.port" (list "neo4j.url" $url) }}]
  cidrs: {{ include "phronesis.cidrs" (list $values "neo4j") }}
  {{- end }}
weaviate:
  {{- if .Values.weaviate.enabled }}
  url: http://{{ .Release.Name }}-weaviate:8080
  grpcUrl: http://{{ .Release.Name }}-weaviate:50051
  ports: [8080, 50051]
  {{- else }}
  {{- $url := include "phronesis.managed" (list "weaviate" "url" $managed.weaviate.url) }}
  {{- $grpc := include "phronesis.managed" (list "weaviate" "grpcUrl" $managed.weaviate.grpcUrl) }}
  url: {{ $url | quote }}
  grpcUrl: {{ $grpc | quote }}
  ports: {{ list (include "phronesis.port" (list "weaviate.url" $url) | int) (include "phronesis.port" (list "weaviate.grpcUrl" $grpc) | int) | uniq | toJson }}
  cidrs: {{ include "phronesis.cidrs" (list $values "weaviate") }}
  {{- end }}
{{- end }}

{{- define "phronesis.managed" -}}
{{- if empty (index . 2) }}{{ fail (printf "%s.enabled is false, so managed.%s.%s has to say where it runs" (index . 0) (index . 0) (index . 1)) }}{{ end }}
{{- index . 2 }}
{{- end }}

{{- define "phronesis.cidrs" -}}
{{- $values := index . 0 }}
{{- $cidrs := (index $values.managed (index . 1)).cidrs }}
{{- if and $values.global.networkPolicies.enabled (empty $cidrs) }}{{ fail (printf "%s.enabled is false, so managed.%s.cidrs has to list its networks, or nothing may reach it" (index . 1) (index . 1)) }}{{ end }}
{{- toJson $cidrs }}
{{- end }}

{{- define "phronesis.port" -}}
{{- $found := regexFind ":[0-9]{1,5}$" (urlParse (index . 1)).host }}
{{- if empty $found }}{{ fail (printf "managed.%s has to name its port, as in scheme://host:port" (index . 0)) }}{{ end }}
{{- trimPrefix ":" $found }}
{{- end }}

{{/* The variables of a program: where things are, and in which files its keys stand. Arguments: the root, the program, its facts. */}}
{{- define "phronesis.environment" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $facts := index . 2 }}
{{- $stores := include "phronesis.stores" $root | fromYaml -}}
BUS_URL: {{ $stores.nats.url | quote }}
BUS_PASSWORD_FILE: /run/secrets/nats.password
BUS_TRUST_DIR: /etc/phronesis/trust
BUS_METRICS_LISTEN: 0.0.0.0:9464
{{- if include "phronesis.authority.nats" $root }}
BUS_CA_FILE: /etc/phronesis/ca/nats/ca.crt
{{- end }}
{{- if $facts.signs }}
BUS_SIGNING_KEY_FILE: /run/secrets/signing.key
{{- end }}
{{- with $root.Values.telemetry.otlp.endpoint }}
OTEL_EXPORTER_OTLP_ENDPOINT: {{ . | quote }}
{{- end }}
{{- if has "postgres" $facts.stores }}
{{ include "phronesis.environment.postgres" (list $stores (printf "phronesis_%s" $name)) }}
{{- end }}
{{- if has "neo4j" $facts.stores }}
GRAPH_URL: {{ $stores.neo4j.url | quote }}
GRAPH_DIALECT: neo4j
GRAPH_USER: {{ $stores.neo4j.user | quote }}
GRAPH_DATABASE: {{ $stores.neo4j.database | quote }}
GRAPH_PASSWORD_FILE: /run/secrets/neo4j.password
{{- end }}
{{- if has "weaviate" $facts.stores }}
WEAVIATE_URL: {{ $stores.weaviate.url | quote }}
WEAVIATE_GRPC_URL: {{ $stores.weaviate.grpcUrl | quote }}
WEAVIATE_KEY_FILE: /run/secrets/weaviate.key
{{- end }}
{{- end }}

{{/* How a role reaches Postgres. Arguments: the stores, the role. */}}
{{- define "phronesis.environment.postgres" -}}
POSTGRES_DSN: {{ printf "postgresql://%s@%s" (index . 1) (index . 0).postgres.address | quote }}
POSTGRES_PASSWORD_FILE: /run/secrets/postgres.password
{{- end }}

{{/* What the gateway has beside the others. Argument: the root. */}}
{{- define "phronesis.environment.gateway" -}}
GATEWAY_HOST: 0.0.0.0
GATEWAY_PORT: "8080"
GATEWAY_BOOTSTRAP_KEY_FILE: /run/secrets/gateway.key
{{- $urls := list }}
{{- if .Values.ingress.enabled }}{{ $urls = append $urls (printf "%s://%s" (ternary "https" "http" (not (empty .Values.ingress.tlsSecret))) .Values.ingress.host) }}{{ end }}
{{- if .Values.httpRoute.enabled }}{{ $urls = append $urls (printf "https://%s" .Values.httpRoute.host) }}{{ end }}
{{- with $urls }}
GATEWAY_MCP_URLS: {{ toJson (uniq .) | quote }}
{{- end }}
{{- end }}

{{/* Variables as a container has them, in the order of their names. Argument: the variables. */}}
{{- define "phronesis.env" -}}
{{- range $name, $value := . }}
- {name: {{ $name }}, value: {{ $value | quote }}}
{{- end }}
{{- end }}

{{/* The keys of the Secret that a program is given, and the names of their files; a key that is a setting has the setting's name,
by which the program finds it in /run/secrets. Arguments: the root, the program, its facts. */}}
{{- define "phronesis.keys" -}}
{{- $root := index . 0 }}
{{- $name := index . 1 }}
{{- $facts := index . 2 -}}
- {key: nats-{{ $name }}.password, path: nats.password}
{{- if $facts.signs }}
- {key: signing-{{ $name }}.key, path: signing.key}
{{- end }}
{{- if has "postgres" $facts.stores }}
- {key: postgres-{{ $name }}.password, path: postgres.password}
{{- end }}
{{- if has "neo4j" $facts.stores }}
- {key: neo4j.password, path: neo4j.password}
{{- end }}
{{- if has "weaviate" $facts.stores }}
- {key: weaviate.key, path: weaviate.key}
{{- end }}
{{- range $key, $file := $facts.keys }}
- {key: {{ $key }}, path: {{ $file }}}
{{- end }}
{{- range $model, $variable := $facts.models }}
{{- if index $root.Values.models $model }}
- {key: {{ $model }}.key, path: {{ $variable }}}
{{- end }}
{{- end }}
{{- end }}

{{/* The volume of a program's keys. Arguments: the root, the items. */}}
{{- define "phronesis.volume.secrets" -}}
- name: secrets
  secret:
    secretName: {{ (index . 0).Values.global.existingSecret }}
    defaultMode: 0440
    items: {{- index . 1 | nindent 6 }}
{{- end }}

{{/* The volume with the public keys of those who sign. Argument: the root. */}}
{{- define "phronesis.volume.trust" -}}
- name: trust
  secret:
    secretName: {{ .Values.global.existingSecret }}
    defaultMode: 0440
    items:
      {{- range include "phronesis.signers" . | trim | splitList " " }}
      - {key: trust-{{ . }}.pem, path: {{ . }}.pem}
      {{- end }}
{{- end }}

{{/* Who signed the certificates of NATS: a source of a volume, or nothing. Argument: the root. */}}
{{- define "phronesis.authority.nats" -}}
{{- if and .Values.nats.enabled .Values.nats.tls.secret -}}
secret: {secretName: {{ .Values.nats.tls.secret }}, items: [{key: ca.crt, path: ca.crt}]}
{{- else if and (not .Values.nats.enabled) .Values.managed.nats.caConfigMap -}}
configMap: {name: {{ .Values.managed.nats.caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end }}

{{/* The same of a managed Postgres. */}}
{{- define "phronesis.authority.postgres" -}}
{{- if and (not .Values.postgres.enabled) .Values.managed.postgres.caConfigMap -}}
configMap: {name: {{ .Values.managed.postgres.caConfigMap }}, items: [{key: ca.crt, path: ca.crt}]}
{{- end }}
{{- end }}

{{/* The authorities that a program needs, as volumes. Arguments: the root, the stores that it reaches. */}}
{{- define "phronesis.volume.authorities" -}}
{{- $root := index . 0 -}}
{{- range $store := list "nats" "postgres" }}
{{- if has $store (index $ 1) }}
{{- with include (printf "phronesis.authority.%s" $store) $root }}
- name: {{ $store }}-authority
  {{ . }}
{{- end }}
{{- end }}
{{- end }}
{{- end }}

{{/* And where they are mounted. Arguments: the same. */}}
{{- define "phronesis.mount.authorities" -}}
{{- $root := index . 0 -}}
{{- range $store := list "nats" "postgres" }}
{{- if and (has $store (index $ 1)) (include (printf "phronesis.authority.%s" $store) $root) }}
- {name: {{ $store }}-authority, mountPath: /etc/phronesis/ca/{{ $store }}, readOnly: true}
{{- end }}
{{- end }}
{{- end }}

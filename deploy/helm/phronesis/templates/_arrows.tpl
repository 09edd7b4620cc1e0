{{/* Rules of network policies. */}}

{{- define "phronesis.egress.dns" -}}
- to: {{- toYaml .Values.global.networkPolicies.dns | nindent 4 }}
  ports: [{port: 53, protocol: UDP}, {port: 53, protocol: TCP}]
{{- end }}

{{/* To a store of this chart, or to the networks of a managed one. Arguments: the root, its name, what is known of it. */}}
{{- define "phronesis.egress.store" -}}
{{- $root := index . 0 }}
{{- $store := index . 2 -}}
- to:
    {{- if $store.cidrs }}
    {{- range $store.cidrs }}
    - ipBlock: {cidr: {{ . | quote }}}
    {{- end }}
    {{- else }}
    - podSelector:
        matchLabels: {{- include "phronesis.selector" (list $root (index . 1)) | nindent 10 }}
    {{- end }}
  ports: {{- range $store.ports }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end }}

{{- define "phronesis.egress.collector" -}}
{{- $endpoint := .Values.telemetry.otlp.endpoint }}
{{- if empty .Values.telemetry.otlp.to }}{{ fail "telemetry.otlp.endpoint needs telemetry.otlp.to, or nothing may reach it" }}{{ end }}
{{- $port := regexFind ":[0-9]{1,5}$" (urlParse $endpoint).host }}
{{- if empty $port }}{{ fail "telemetry.otlp.endpoint has to name its port, as in http://collector:4318" }}{{ end }}
- to: {{- toYaml .Values.telemetry.otlp.to | nindent 4 }}
  ports: [{port: {{ trimPrefix ":" $port }}, protocol: TCP}]
{{- end }}

{{/*
To the public internet, and to no address that is private, of the cluster, or a cloud's own: those that the media service
refuses to fetch. Argument: the ports.
*/}}
{{- define "phronesis.egress.web" -}}
- to:
    - ipBlock:
        cidr: 0.0.0.0/0
        except:
          - 0.0.0.0/8
          - 10.0.0.0/8
          - 100.64.0.0/10
          - 127.0.0.0/8
          - 168.63.129.16/32
          - 169.254.0.0/16
          - 172.16.0.0/12
          - 192.0.0.0/24
          - 192.0.2.0/24
          - 192.88.99.0/24
          - 192.168.0.0/16
          - 198.18.0.0/15
          - 198.51.100.0/24
          - 203.0.113.0/24
          - 224.0.0.0/3
    - ipBlock:
        cidr: 2000::/3
        except: [2001::/23, 2001:db8::/32, 2002::/16, 3fff::/20]
  ports: {{- range . }}
    - {port: {{ . }}, protocol: TCP}
    {{- end }}
{{- end }}

{{/* Who may reach a store: those of the architecture that use it. Arguments: the root, the store. */}}
{{- define "phronesis.ingress.users" -}}
{{- $root := index . 0 }}
{{- $store := index . 1 }}
{{- range $name, $facts := include "phronesis.architecture" $root | fromYaml }}
{{- if or (eq $store "nats") (has $store $facts.stores) }}
- podSelector:
    matchLabels: {{- include "phronesis.selector" (list $root $name) | nindent 6 }}
{{- end }}
{{- end }}
{{- $also := dict "nats" "declare" "postgres" "migrate" }}
{{- with index $also $store }}
- podSelector:
    matchLabels: {{- include "phronesis.selector" (list $root .) | nindent 6 }}
{{- end }}
{{- end }}

{{- define "tocsin.name" -}}
{{- if contains .Chart.Name .Release.Name }}{{ .Release.Name | trunc 50 | trimSuffix "-" }}{{ else }}{{ printf "%s-%s" .Release.Name .Chart.Name | trunc 50 | trimSuffix "-" }}{{ end -}}
{{- end }}

{{- define "tocsin.labels" -}}
app.kubernetes.io/name: {{ .Chart.Name }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version }}
{{- end }}

{{- /* Labels by which a part is selected; takes (list root part) */ -}}
{{- define "tocsin.selector" -}}
{{- $root := index . 0 -}}
app.kubernetes.io/name: {{ $root.Chart.Name }}
app.kubernetes.io/instance: {{ $root.Release.Name }}
app.kubernetes.io/component: {{ index . 1 }}
{{- end }}

{{- define "tocsin.image" -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end }}

{{- define "tocsin.storeUrl" -}}
{{- $store := .Values.config.store | default "" -}}
{{- if kindIs "map" $store }}{{ $store.url | default "" }}{{ else }}{{ $store }}{{ end -}}
{{- end }}

{{- /* tocsin.yml: what the chart sets, beneath what the values give */ -}}
{{- define "tocsin.config" -}}
{{- $config := deepCopy .Values.config -}}
{{- $spark := dict "checkpoint" "/var/lib/tocsin/checkpoint" -}}
{{- with .Values.job.executors -}}
{{- if gt (int .count) 0 -}}
{{- $name := include "tocsin.name" $ -}}
{{- $conf := dict
  "spark.driver.host" (printf "%s-driver.%s.svc" $name $.Release.Namespace)
  "spark.driver.bindAddress" "0.0.0.0"
  "spark.driver.port" "7078"
  "spark.driver.blockManager.port" "7079"
  "spark.executor.memory" .memory
  "spark.executor.memoryOverhead" .memoryOverhead
  "spark.kubernetes.namespace" $.Release.Namespace
  "spark.kubernetes.container.image" (include "tocsin.image" $)
  "spark.kubernetes.container.image.pullPolicy" $.Values.image.pullPolicy
  "spark.kubernetes.driver.pod.name" "env:POD_NAME"
  "spark.kubernetes.executor.podTemplateFile" "/etc/tocsin/executor.yml"
  "spark.kubernetes.executor.podTemplateContainerName" "executor" -}}
{{- $spark = dict "master" "k8s://https://kubernetes.default.svc" "cores" (int .count) "conf" $conf -}}
{{- end -}}
{{- end -}}
{{- $defaults := dict
  "spark" $spark
  "store" "sqlite:////var/lib/tocsin/tocsin.db"
  "metrics" (dict "listen" (printf "0.0.0.0:%d" (int .Values.metrics.port))) -}}
{{- if .Values.pages.enabled -}}
{{- $_ := set $defaults "web" (dict
  "listen" (printf "0.0.0.0:%d" (int .Values.pages.port))
  "auth" (dict "audit" "/var/lib/tocsin/audit.jsonl")) -}}
{{- end -}}
{{- if kindIs "map" $config.store -}}{{- $_ := unset $defaults "store" -}}{{- end -}}
{{- toYaml (mergeOverwrite $defaults $config) -}}
{{- end }}

{{- define "tocsin.environment" -}}
- name: POD_NAME
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- range $name, $reference := .Values.secrets.env }}
- name: {{ $name }}
  valueFrom:
    secretKeyRef: {name: {{ $reference.secret }}, key: {{ $reference.key }}}
{{- end }}
{{- end }}

{{- define "tocsin.secretMounts" -}}
{{- range $name, $_ := .Values.secrets.files }}
- {name: secret-{{ $name }}, mountPath: /etc/tocsin/secrets/{{ $name }}, readOnly: true}
{{- end }}
{{- end }}

{{- define "tocsin.secretVolumes" -}}
{{- range $name, $secret := .Values.secrets.files }}
- name: secret-{{ $name }}
  secret: {secretName: {{ $secret }}}
{{- end }}
{{- end }}

{{- define "tocsin.mounts" -}}
- {name: config, mountPath: /etc/tocsin/tocsin.yml, subPath: tocsin.yml, readOnly: true}
- {name: tmp, mountPath: /tmp}
- {name: cache, mountPath: /var/cache/tocsin}
{{- include "tocsin.secretMounts" . }}
{{- if .Values.pages.usersSecret }}
- {name: users, mountPath: /etc/tocsin/users, readOnly: true}
{{- end }}
{{- end }}

{{- define "tocsin.volumes" -}}
- name: config
  configMap: {name: {{ include "tocsin.name" . }}}
- name: tmp
  emptyDir: {}
- name: cache
  emptyDir: {}
{{- include "tocsin.secretVolumes" . }}
{{- with .Values.pages.usersSecret }}
- name: users
  secret: {secretName: {{ . }}, defaultMode: 0440}
{{- end }}
{{- end }}

{{- /* A batch may take long after an outage, and would be repeated if it were killed for that: alive is what listens */ -}}
{{- define "tocsin.healthProbes" -}}
startupProbe:
  tcpSocket: {port: metrics}
  periodSeconds: 5
  failureThreshold: 36
livenessProbe:
  tcpSocket: {port: metrics}
  periodSeconds: 20
  timeoutSeconds: 5
  failureThreshold: 3
readinessProbe:
  httpGet: {path: /readyz, port: metrics}
  periodSeconds: 20
  timeoutSeconds: 5
{{- end }}

{{- /* The pages answer to names that they know only */ -}}
{{- define "tocsin.pagesProbes" -}}
{{- range list "livenessProbe" "readinessProbe" }}
{{ . }}:
  httpGet:
    path: /healthz
    port: pages
    httpHeaders: [{name: Host, value: "localhost:{{ $.Values.pages.port }}"}]
  periodSeconds: 20
  timeoutSeconds: 5
{{- end }}
{{- end }}

{{- /* The Deployment of a part without state; takes (dict "root" . "part" name "command" command "port" name "values" values) */ -}}
{{- define "tocsin.part" -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {{ include "tocsin.name" .root }}-{{ .part }}
  labels: {{- include "tocsin.labels" .root | nindent 4 }}
spec:
  replicas: {{ .values.replicas }}
  selector:
    matchLabels: {{- include "tocsin.selector" (list .root .part) | nindent 6 }}
  template:
    metadata:
      labels:
        {{- include "tocsin.labels" .root | nindent 8 }}
        app.kubernetes.io/component: {{ .part }}
      {{- with .root.Values.podAnnotations }}
      annotations: {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ include "tocsin.name" .root }}
      automountServiceAccountToken: false
      securityContext: {{- toYaml .root.Values.podSecurityContext | nindent 8 }}
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets: {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: tocsin
          image: {{ include "tocsin.image" .root }}
          imagePullPolicy: {{ .root.Values.image.pullPolicy }}
          args: [{{ .command }}, -c, /etc/tocsin/tocsin.yml]
          env: {{- include "tocsin.environment" .root | nindent 12 }}
          ports:
            - {name: {{ .port }}, containerPort: {{ .number }}}
          {{- include .probes .root | nindent 10 }}
          resources: {{- toYaml .values.resources | nindent 12 }}
          securityContext: {{- toYaml .root.Values.securityContext | nindent 12 }}
          volumeMounts:
            {{- include "tocsin.mounts" .root | nindent 12 }}
            - {name: work, mountPath: /var/lib/tocsin}
      volumes:
        {{- include "tocsin.volumes" .root | nindent 8 }}
        - name: work
          emptyDir: {}
{{- end }}

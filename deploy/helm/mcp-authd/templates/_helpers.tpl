{{- define "mcp-authd.fullname" -}}
{{- if .Values.fullnameOverride -}}
{{- .Values.fullnameOverride | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- $name := default .Chart.Name .Values.nameOverride -}}
{{- if contains $name .Release.Name -}}
{{- .Release.Name | trunc 52 | trimSuffix "-" -}}
{{- else -}}
{{- printf "%s-%s" .Release.Name $name | trunc 52 | trimSuffix "-" -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "mcp-authd.selector" -}}
app.kubernetes.io/name: {{ default .Chart.Name .Values.nameOverride }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/component: server
{{- end -}}

{{/* Labels of an object: dict "top" $ "component" "server". */}}
{{- define "mcp-authd.labels" -}}
app.kubernetes.io/name: {{ default .top.Chart.Name .top.Values.nameOverride }}
app.kubernetes.io/instance: {{ .top.Release.Name }}
app.kubernetes.io/component: {{ .component }}
app.kubernetes.io/version: {{ .top.Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .top.Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .top.Chart.Name .top.Chart.Version | replace "+" "_" }}
{{- with .top.Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{- define "mcp-authd.image" -}}
{{- if .Values.image.digest -}}
{{ .Values.image.repository }}@{{ .Values.image.digest }}
{{- else -}}
{{ .Values.image.repository }}:{{ .Values.image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{- define "mcp-authd.serviceAccount" -}}
{{- if .Values.serviceAccount.create -}}
{{ .Values.serviceAccount.name | default (include "mcp-authd.fullname" .) }}
{{- else -}}
{{ .Values.serviceAccount.name | default "default" }}
{{- end -}}
{{- end -}}

{{/* The configuration file: what was given, and what only the chart knows. */}}
{{- define "mcp-authd.config" -}}
{{- $c := deepCopy .Values.config -}}
{{- $_ := set $c "listen" ":8414" -}}
{{- $_ := set $c "management" (merge (dict "listen" ":9414") (default dict $c.management)) -}}
{{- $_ := set $c "data_dir" "/data" -}}
{{- $limits := default dict $c.limits -}}
{{- if not (hasKey $limits "drain") -}}
{{- $_ := set $limits "drain" "5s" -}}
{{- end -}}
{{- $_ := set $c "limits" $limits -}}
{{- if eq .Values.database.type "postgres" -}}
{{- $_ := set $c "peers" (merge (default dict $c.peers) (dict "listen" ":9415")) -}}
{{- end -}}
{{- if .Values.tls.existingSecret -}}
{{- $_ := set $c "tls" (dict "cert" "/run/secrets/mcp-authd-tls/tls.crt" "key" "/run/secrets/mcp-authd-tls/tls.key") -}}
{{- end -}}
{{ toYaml $c }}
{{- end -}}

{{- define "mcp-authd.podSecurity" -}}
runAsNonRoot: true
runAsUser: 65532
runAsGroup: 65532
fsGroup: 65532
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "mcp-authd.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{/* Variables that name the files of secrets: a dict of keys. */}}
{{- define "mcp-authd.secretEnv" -}}
{{- range $key, $_ := . }}
- name: MCP_AUTHD_{{ $key | replace "." "_" | upper }}_FILE
  value: /run/secrets/mcp-authd/{{ $key }}
{{- end }}
{{- end -}}

{{/* The volume with the files of secrets: a dict of keys. */}}
{{- define "mcp-authd.secretVolume" -}}
- name: secrets
  projected:
    defaultMode: 0440
    sources:
      {{- range $key, $ref := . }}
      - secret:
          name: {{ $ref.name }}
          items:
            - key: {{ $ref.key }}
              path: {{ $key }}
      {{- end }}
{{- end -}}

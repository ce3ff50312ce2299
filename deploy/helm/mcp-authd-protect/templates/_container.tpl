{{/*
The container that signs people in and lets them reach the MCP server of the same pod. Call it with a dict:

  url          how clients reach it, such as https://notes.example.com
  upstream     the MCP server in the pod, such as http://127.0.0.1:3000/mcp
  volume       the name of a volume of the pod that stays: accounts, keys and clients are in it
  path         where the MCP server is, below url; "/mcp" if none
  name         what people are shown; what the MCP server is called if none
  scopes       list of name=description; the first is needed for everything
  tools        list of name=scopes
  proxies      list of networks of proxies, such as 10.0.0.0/8
  image        an image in place of that of this version
  resources    as in a container
  env          list, as in a container

Only one pod may use the volume at a time, so it belongs to a StatefulSet with one replica, whose pod has
fsGroup 65532. The MCP server has to listen on 127.0.0.1, since it asks no one who reaches it to sign in.
*/}}
{{- define "mcp-authd-protect.container" -}}
{{- range list "url" "upstream" "volume" -}}
{{- if not (get $ .) -}}
{{- fail (printf "mcp-authd-protect.container needs %s" .) -}}
{{- end -}}
{{- end -}}
name: mcp-authd
image: {{ .image | default "ghcr.io/mcp-authd/mcp-authd:0.0.0" | quote }}
args:
  - protect
  - --listen=:8414
  - --data=/data
  - {{ printf "--url=%s" .url | quote }}
  {{- with .path }}
  - {{ printf "--path=%s" . | quote }}
  {{- end }}
  {{- with .name }}
  - {{ printf "--name=%s" . | quote }}
  {{- end }}
  {{- range .scopes }}
  - {{ printf "--scope=%s" . | quote }}
  {{- end }}
  {{- range .tools }}
  - {{ printf "--tool=%s" . | quote }}
  {{- end }}
  - {{ .upstream | quote }}
{{- if or .proxies .env }}
env:
  {{- with .proxies }}
  - name: MCP_AUTHD_TRUSTED_PROXIES
    value: {{ join "," . | quote }}
  {{- end }}
  {{- with .env }}
  {{- toYaml . | nindent 2 }}
  {{- end }}
{{- end }}
ports:
  - name: http
    containerPort: 8414
startupProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 2
  timeoutSeconds: 3
  failureThreshold: 60
livenessProbe:
  httpGet: {path: /healthz, port: http}
  periodSeconds: 10
  timeoutSeconds: 5
  failureThreshold: 6
readinessProbe:
  httpGet: {path: /readyz, port: http}
  periodSeconds: 5
  timeoutSeconds: 3
  failureThreshold: 2
resources:
  {{- toYaml (.resources | default (dict "requests" (dict "cpu" "20m" "memory" "64Mi") "limits" (dict "memory" "256Mi"))) | nindent 2 }}
securityContext:
  runAsNonRoot: true
  runAsUser: 65532
  runAsGroup: 65532
  allowPrivilegeEscalation: false
  readOnlyRootFilesystem: true
  capabilities:
    drop: [ALL]
  seccompProfile:
    type: RuntimeDefault
volumeMounts:
  - name: {{ .volume }}
    mountPath: /data
{{- end -}}

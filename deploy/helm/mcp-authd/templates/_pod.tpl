{{/* The pod of a server, the same in a StatefulSet and in a Deployment. */}}
{{- define "mcp-authd.pod" -}}
metadata:
  labels:
    {{- include "mcp-authd.labels" (dict "top" . "component" "server") | nindent 4 }}
    {{- with .Values.podLabels }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  annotations:
    checksum/config: {{ include "mcp-authd.config" . | sha256sum }}
    {{- with .Values.podAnnotations }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
spec:
  serviceAccountName: {{ include "mcp-authd.serviceAccount" . }}
  automountServiceAccountToken: false
  enableServiceLinks: false
  terminationGracePeriodSeconds: {{ .Values.terminationGracePeriodSeconds }}
  {{- with .Values.imagePullSecrets }}
  imagePullSecrets:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  securityContext:
    {{- include "mcp-authd.podSecurity" . | nindent 4 }}
  {{- with .Values.initContainers }}
  initContainers:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  containers:
    - name: mcp-authd
      image: {{ include "mcp-authd.image" . | quote }}
      imagePullPolicy: {{ .Values.image.pullPolicy }}
      args: [serve, --config, /etc/mcp-authd/config.yaml]
      env:
        - name: MCP_AUTHD_REPLICA
          valueFrom:
            fieldRef:
              fieldPath: metadata.name
        {{- with .Values.secrets }}
        {{- include "mcp-authd.secretEnv" . | trim | nindent 8 }}
        {{- end }}
        {{- with .Values.extraEnv }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
      {{- with .Values.extraEnvFrom }}
      envFrom:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      ports:
        - name: {{ ternary "https" "http" (not (empty .Values.tls.existingSecret)) }}
          containerPort: 8414
        - name: management
          containerPort: 9414
        {{- if eq .Values.database.type "postgres" }}
        - name: peers
          containerPort: 9415
        {{- end }}
      startupProbe:
        httpGet: {path: /healthz, port: management}
        periodSeconds: 2
        timeoutSeconds: 3
        failureThreshold: {{ div (add (int .Values.startupSeconds) 1) 2 }}
      livenessProbe:
        httpGet: {path: /healthz, port: management}
        periodSeconds: 10
        timeoutSeconds: 5
        failureThreshold: 6
      readinessProbe:
        httpGet: {path: /readyz, port: management}
        periodSeconds: 5
        timeoutSeconds: 3
        failureThreshold: 2
      resources:
        {{- toYaml .Values.resources | nindent 8 }}
      securityContext:
        {{- include "mcp-authd.containerSecurity" . | nindent 8 }}
      volumeMounts:
        - {name: config, mountPath: /etc/mcp-authd, readOnly: true}
        - {name: data, mountPath: /data}
        {{- if .Values.secrets }}
        - {name: secrets, mountPath: /run/secrets/mcp-authd, readOnly: true}
        {{- end }}
        {{- if .Values.tls.existingSecret }}
        - {name: tls, mountPath: /run/secrets/mcp-authd-tls, readOnly: true}
        {{- end }}
        {{- with .Values.extraVolumeMounts }}
        {{- toYaml . | nindent 8 }}
        {{- end }}
    {{- with .Values.extraContainers }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  volumes:
    - name: config
      configMap:
        name: {{ include "mcp-authd.fullname" . }}
    {{- if eq .Values.database.type "postgres" }}
    # What waits for the audit log while PostgreSQL is away.
    - name: data
      emptyDir: {}
    {{- else if .Values.persistence.existingClaim }}
    - name: data
      persistentVolumeClaim:
        claimName: {{ .Values.persistence.existingClaim }}
    {{- end }}
    {{- with .Values.secrets }}
    {{- include "mcp-authd.secretVolume" . | nindent 4 }}
    {{- end }}
    {{- with .Values.tls.existingSecret }}
    - name: tls
      secret:
        secretName: {{ . }}
        defaultMode: 0440
    {{- end }}
    {{- with .Values.extraVolumes }}
    {{- toYaml . | nindent 4 }}
    {{- end }}
  {{- with .Values.nodeSelector }}
  nodeSelector:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.affinity }}
  affinity:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.tolerations }}
  tolerations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  {{- with .Values.priorityClassName }}
  priorityClassName: {{ . }}
  {{- end }}
  {{- if .Values.topologySpreadConstraints }}
  topologySpreadConstraints:
    {{- toYaml .Values.topologySpreadConstraints | nindent 4 }}
  {{- else if eq .Values.database.type "postgres" }}
  topologySpreadConstraints:
    {{- range list "topology.kubernetes.io/zone" "kubernetes.io/hostname" }}
    - maxSkew: 1
      topologyKey: {{ . }}
      whenUnsatisfiable: ScheduleAnyway
      labelSelector:
        matchLabels:
          {{- include "mcp-authd.selector" $ | nindent 10 }}
    {{- end }}
  {{- end }}
{{- end -}}

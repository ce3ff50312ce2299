{{/* What the schema cannot say. Each fault names the value, and says what to do. */}}
{{- define "mcp-authd.validate" -}}
{{- $v := .Values -}}
{{- if not $v.config.issuer -}}
{{- fail "config.issuer is missing: set it to the public URL of the server, such as https://auth.example.com" -}}
{{- end -}}
{{- if eq $v.database.type "sqlite" -}}
{{- if or (gt (int $v.replicas) 1) $v.autoscaling.enabled -}}
{{- fail (printf "%s needs PostgreSQL, and database.type is sqlite, which is for one replica: set database.type to postgres, and secrets for database.url and secret_key" (ternary "autoscaling.enabled" (printf "replicas: %d" (int $v.replicas)) $v.autoscaling.enabled)) -}}
{{- end -}}
{{- if hasKey $v.secrets "database.url" -}}
{{- fail "secrets has database.url, and database.type is sqlite: set database.type to postgres" -}}
{{- end -}}
{{- else -}}
{{- range list "database.url" "secret_key" -}}
{{- if not (hasKey $v.secrets .) -}}
{{- fail (printf "database.type is postgres, and secrets lacks %s: name the Secret and its key, as {name: mcp-authd, key: %s}" . (replace "." "_" .)) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if and $v.httpRoute.enabled (not $v.httpRoute.parentRefs) -}}
{{- fail "httpRoute.enabled needs httpRoute.parentRefs: name the gateway, as [{name: public, namespace: gateways}]" -}}
{{- end -}}
{{- end -}}

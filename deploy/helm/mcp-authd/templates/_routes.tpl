{{/* The hosts and paths that lead to the server, as YAML: host -> list of paths, each a prefix. Of a URL with
a path they are that path, and the path below each well-known name (RFC 8414 §3.1, RFC 9728 §3.1). */}}
{{- define "mcp-authd.routes" -}}
{{- $hosts := dict -}}
{{- $urls := list .Values.config.issuer -}}
{{- range .Values.config.resources -}}
{{- if dig "upstream" "url" "" . | or (dig "upstream" "command" list .) -}}
{{- $urls = concat $urls (list .uri) (.aliases | default list) -}}
{{- end -}}
{{- end -}}
{{- $names := compact (splitList "\n" (.Files.Get "files/well-known.txt")) -}}
{{- range $urls -}}
{{- $u := urlParse . -}}
{{- $host := index (splitList ":" $u.host) 0 -}}
{{- $path := trimSuffix "/" $u.path -}}
{{- $paths := list -}}
{{- if or $.Values.routes.wholeHosts (not $path) -}}
{{- $paths = list "/" -}}
{{- else -}}
{{- $paths = list $path -}}
{{- range $names -}}
{{- $paths = append $paths (printf "%s%s" . $path) -}}
{{- end -}}
{{- end -}}
{{- $_ := set $hosts $host (concat (get $hosts $host | default list) $paths) -}}
{{- end -}}
{{- range .Values.routes.extra -}}
{{- $_ := set $hosts .host (concat (get $hosts .host | default list) .paths) -}}
{{- end -}}
{{- range $host, $paths := $hosts -}}
{{- $_ := set $hosts $host (ternary (list "/") (uniq $paths | sortAlpha) (has "/" $paths)) -}}
{{- end -}}
{{ toYaml $hosts }}
{{- end -}}

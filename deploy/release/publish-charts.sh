#!/usr/bin/env bash
# publish-charts.sh REGISTRY [FLAG...]: pushes the charts in dist/ as OCI artifacts to a registry, such as
# ghcr.io/mcp-authd/charts, with the login of this machine and further flags of "helm push". It prints a
# line for each: its name there, and its digest, which the same files have each time.
set -euo pipefail
cd "$(dirname "$0")/../.."
registry=$1
shift
helm=$("${GO:-go}" -C deploy/helm/tools tool -n helm)
for chart in dist/mcp-authd-*.tgz; do
  said=$("$helm" push "$chart" "oci://$registry" "$@" 2>&1) || {
    printf '%s\n' "$said" >&2
    exit 1
  }
  name=$(sed -n 's/^Pushed: \(.*\):[^:]*$/\1/p' <<<"$said")
  digest=$(sed -n 's/^Digest: \(sha256:[0-9a-f]*\)$/\1/p' <<<"$said")
  [ -n "$name" ] && [ -n "$digest" ] || {
    printf 'helm push of %s told no digest: %s\n' "$chart" "$said" >&2
    exit 1
  }
  printf '%s %s\n' "$name" "$digest"
done

#!/usr/bin/env bash
# Fails when go.mod or go.sum of a module here is not what "go mod tidy" makes of it. That needs
# no network, but the modules that tidy looks at: where they cannot be had, it says so. Those of the
# tools of a release are a thousand, and are looked at by "make release-test" (TIDY=release).
set -uo pipefail
cd "$(dirname "$0")/.."
status=0
while read -r mod; do
  dir=$(dirname "$mod")
  if out=$("${GO:-go}" -C "$dir" mod tidy -diff 2>&1); then continue; fi
  if grep -q '^diff current/go\.' <<<"$out"; then
    printf '%s\n' "$out" "$dir is not tidy: go -C $dir mod tidy" >&2
    status=1
  else
    printf '%s\n' "$out" "not told whether $dir is tidy: its modules cannot be had" >&2
    [ "${CI:-}" = true ] && status=1
  fi
done < <(git ls-files 'go.mod' '*/go.mod' | if [ "${TIDY:-}" = release ]; then cat; else
  grep -v -e '^deploy/release/goreleaser/' -e '^deploy/release/syft/' -e '^deploy/helm/tools/' -e '^docs/site/'; fi)
exit $status

#!/usr/bin/env bash
# Runs staticcheck, at the version that test/lint pins, over all packages. It is fetched once; where
# it cannot be had, the script says so.
set -uo pipefail
cd "$(dirname "$0")/.."
if ! tool=$("${GO:-go}" tool -modfile=test/lint/go.mod -n staticcheck); then
  echo "not looked at by staticcheck: it cannot be had" >&2
  [ "${CI:-}" = true ] && exit 1
  exit 0
fi
exec "$tool" ./...

#!/usr/bin/env bash
# Runs every fuzz target for a short time (FUZZTIME, default 20s).
set -euo pipefail
cd "$(dirname "$0")/.."
grep -rlE '^func Fuzz' --include='*_test.go' . | while read -r file; do
  for target in $(grep -oE '^func Fuzz\w+' "$file" | cut -d' ' -f2); do
    go test "$(dirname "$file")" -run '^$' -fuzz "^$target\$" -fuzztime "${FUZZTIME:-20s}"
  done
done

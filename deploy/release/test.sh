#!/usr/bin/env bash
# Runs the tests that are too heavy for "make test": those of files with the build tag "release", in
# whichever directory, some packages at a time. "make release" comes before: they look at what it made.
set -euo pipefail
cd "$(dirname "$0")/../.."
go=${GO:-go}
files=($(git grep -lE '^//go:build release\b' -- '*_test.go'))
names=$(grep -ohE '^func Test[A-Za-z0-9_]+' "${files[@]}" | cut -d' ' -f2 | sort -u | paste -sd '|')
packages=($(dirname "${files[@]/#/./}" | sort -u))
"$go" vet -tags release "${packages[@]}"
exec "$go" run ./test/report -tags release -vet=off -count 1 -timeout 60m -run "^($names)\$" "${packages[@]}"

#!/usr/bin/env bash
# Finds tests that fail by chance. It runs tests several times in random order with too little processor
# time. Rounds take turns: one processor for each test program; one core shared with a busy loop; one
# processor for each test program and a busy loop on each core.
#
#   test/steady.sh [-n ROUNDS] [PACKAGE...]
#
# Without packages it tests the packages that differ from commit BASE (default: HEAD, so uncommitted
# changes). It prints a line for each round, and exits with 1 if a round failed. With TEST_LANE=long it runs
# all tests of the second lane.
set -uo pipefail
cd "$(dirname "$0")/.."
go=${GO:-go}
rounds=10
if [ "${1:-}" = -n ]; then
  rounds=$2
  shift 2
fi
lane=(-short)
if [ "${TEST_LANE:-}" = long ]; then
  lane=(-long)
  set --
elif [ $# = 0 ]; then
  mapfile -t changed < <({ git diff --name-only "${BASE:-HEAD}"; git ls-files -o --exclude-standard; } |
    grep '\.go$' | grep -v testdata/ | xargs -r -n 1 dirname | sort -u |
    while read -r dir; do [ -d "$dir" ] && "$go" list -e -f '{{if not .Error}}./{{$.Dir}}{{end}}' "./$dir"; done |
    sed "s|^\./$PWD|.|" | grep .)
  [ ${#changed[@]} = 0 ] && { echo "nothing differs from ${BASE:-HEAD}"; exit 0; }
  set -- "${changed[@]}"
fi
"$go" build -o .cache/report ./test/report || exit 1
mapfile -t cores < <(for ((c = 0; c < $(nproc --all); c++)); do taskset -c "$c" true 2>/dev/null && echo "$c"; done)
hogs=()
trap '((${#hogs[@]})) && kill "${hogs[@]}" 2>/dev/null' EXIT
hog() { # a busy loop on one core
  taskset -c "$1" sh -c 'while :; do :; done' &
  hogs+=($!)
}
rm -rf test/steady.out
mkdir -p test/steady.out
failed=0
for ((round = 1; round <= rounds; round++)); do
  case $((round % 3)) in
    1) name="one processor each" pressure="env GOMAXPROCS=1" ;;
    2) name="one core, and a busy loop" pressure="taskset -c ${cores[0]}" && hog "${cores[0]}" ;;
    0) name="one processor each, and busy loops" pressure="env GOMAXPROCS=1"
      for c in "${cores[@]}"; do hog "$c"; done ;;
  esac
  began=$SECONDS
  TEST_PRESSURE=$pressure .cache/report "${lane[@]}" -race -vet=off -count 1 -shuffle on -timeout 40m "$@" \
    >"test/steady.out/$round.log" 2>&1
  code=$?
  [ -d test/out ] && cp -r test/out "test/steady.out/$round"
  ((${#hogs[@]})) && kill "${hogs[@]}" && wait "${hogs[@]}" 2>/dev/null
  hogs=()
  echo "round $round: $([ $code = 0 ] && echo ok || echo FAILED) in $((SECONDS - began)) s ($name)"
  grep -E '^\s*--- FAIL|^(FAIL|panic:)\s' "test/steady.out/$round.log" | sort | uniq -c
  [ $code = 0 ] || failed=$((failed + 1))
done
echo "$failed of $rounds rounds failed; logs are in test/steady.out"
[ $failed = 0 ]

#!/usr/bin/env bash
# Installs what the tests need and this machine lacks: PostgreSQL, PgBouncer, promtool, Knot, Caddy, nginx,
# Chromium with a font for Japanese and Chinese, Firefox, npm, a C compiler, pgrep, curl and PyJWT from Debian packages,
# Node 22, the clients and an OpenID provider from npm, and Dex, Pebble and mcp-go from Go modules. It may do so as
# root on Debian and Ubuntu; elsewhere it names the command, and the tests that need it are skipped. With
# CI=true nothing is skipped, so a missing part is a failure.
set -uo pipefail
cd "$(dirname "$0")/.."

have() { command -v "$1" >/dev/null 2>&1; }

# lacking lists the Debian packages of what is not there, the C compiler for the race detector
# among them.
lacking() {
  compgen -G '/usr/lib/postgresql/*/bin/initdb' >/dev/null || have initdb || echo postgresql
  have pgbouncer || [ -x /usr/sbin/pgbouncer ] || echo pgbouncer
  have promtool || echo prometheus
  have knotd || [ -x /usr/sbin/knotd ] || echo knot
  have caddy || echo caddy
  have nginx || [ -x /usr/sbin/nginx ] || echo nginx
  have chromium || have chromium-browser || have google-chrome || echo chromium
  have firefox-esr || have firefox ||
    if grep -q '^ID=ubuntu' /etc/os-release 2>/dev/null; then echo firefox; else echo firefox-esr; fi
  have npm || echo npm
  have cc || have gcc || echo build-essential
  have pgrep || echo procps
  have curl || echo curl
  # The Python of Debian, with which the recipe of docs/languages.md runs.
  { [ -x /usr/bin/python3 ] && /usr/bin/python3 -c 'import jwt, cryptography' 2>/dev/null; } ||
    echo python3-jwt python3-cryptography
  # Pages in Japanese and Chinese are looked at: the smallest package that has both, 1.6 MB.
  { have fc-list && fc-list :lang=ja | grep -q . && fc-list :lang=zh-cn | grep -q .; } ||
    compgen -G '/usr/share/fonts/truetype/wqy/wqy-microhei*' >/dev/null || echo fonts-wqy-microhei
}

missing=($(lacking))
if ((${#missing[@]})) && [ "$(id -u)" = 0 ] && have apt-get; then
  export DEBIAN_FRONTEND=noninteractive
  apt-get update -q >/dev/null && apt-get install -y -q --no-install-recommends "${missing[@]}" >/dev/null
  missing=($(lacking))
fi
if ((${#missing[@]})); then
  echo "missing: ${missing[*]} (on Debian or Ubuntu: sudo apt-get install ${missing[*]})" >&2
  [ "${CI:-}" = true ] && exit 1
fi

# Node 22, the clients and the provider, as pinned by the lock file; a stamp says which one is installed.
stamp=test/node_modules/.installed
sum=$(cksum <test/package-lock.json)
if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
  if have npm && npm ci --prefix test --no-audit --no-fund --loglevel=error >/dev/null; then
    printf '%s' "$sum" >"$stamp"
  else
    echo "missing: npm packages (install Node.js with npm, then: npm ci --prefix test)" >&2
    [ "${CI:-}" = true ] && exit 1
  fi
fi

# Pebble and Dex, each pinned by its own module. They are compiled here with the flags of
# internal/testkit/program, so that no test waits for the compiler.
export CGO_ENABLED=0 GOFLAGS=-trimpath
if ! "${GO:-go}" build -C test/pebble -o /dev/null github.com/letsencrypt/pebble/v2/cmd/pebble; then
  echo "missing: Pebble (with access to Go modules: go build -C test/pebble -o /dev/null ...)" >&2
  [ "${CI:-}" = true ] && exit 1
fi
if ! "${GO:-go}" build -C test/dex -o /dev/null .; then
  echo "missing: Dex (with access to Go modules: go build -C test/dex -o /dev/null .)" >&2
  [ "${CI:-}" = true ] && exit 1
fi

# The example with another MCP SDK, a module of its own too, and that SDK's fixture for the suites.
if ! "${GO:-go}" build -C examples/mcp-go -o /dev/null . ||
  ! "${GO:-go}" build -C examples/mcp-go -o /dev/null github.com/mark3labs/mcp-go/examples/conformance; then
  echo "missing: mcp-go (with access to Go modules: go build -C examples/mcp-go -o /dev/null .)" >&2
  [ "${CI:-}" = true ] && exit 1
fi
exit 0

#!/bin/sh
# Writes what compose.yaml needs and each installation has of its own: .env with the name of the server, and secrets/.
# What is there stays as it is. Keep secrets/secret_key with the backups of the database: without it they are
# of no use.
set -eu
if [ $# -ne 1 ]; then
  echo "usage: $0 HOST, such as auth.example.com: the host that people and clients use" >&2
  exit 2
fi
cd "$(dirname "$0")"

# Containers run as users of their own, and read these files as they are: what keeps the users of this
# machine from them is the directory.
umask 077
mkdir -p secrets
random() { head -c 32 /dev/urandom | od -An -v -tx1 | tr -d ' \n'; }
keep() { # NAME VALUE
  [ -s "secrets/$1" ] && return
  printf '%s\n' "$2" >"secrets/$1"
  chmod 444 "secrets/$1"
}
keep secret_key "$(random)"
keep postgres_password "$(random)"
keep database_url "postgres://mcp_authd:$(cat secrets/postgres_password)@postgres/mcp_authd?sslmode=disable"
[ -s .env ] || printf 'DOMAIN=%s\n' "$1" >.env
if ! grep -qxF "DOMAIN=$1" .env; then
  echo "$0: .env has another name, which stays: $(grep ^DOMAIN= .env); to move the server, edit .env" >&2
  exit 1
fi

#!/bin/sh
# /etc/patroni/create-database.sh: Patroni runs it once, on the first primary, with the connection
# string of its superuser. It makes the role and the database of mcp-authd, which makes its tables.
set -eu
exec psql --no-psqlrc --set ON_ERROR_STOP=1 "$1" <<'SQL'
\set password `cat /etc/patroni/authd.password`
CREATE ROLE authd LOGIN PASSWORD :'password';
CREATE DATABASE authd OWNER authd;
REVOKE ALL ON DATABASE authd FROM PUBLIC;
SQL

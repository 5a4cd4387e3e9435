#!/bin/sh
# Makes the secrets of docker-compose.yml in ./secrets, where there are none yet. An existing one is never changed.
# Compose mounts the files as they are, so containers must be able to read them; the folder keeps everybody else out.
set -eu
mkdir -p secrets
chmod 700 secrets
umask 022

# password NAME: the content of secrets/NAME, made if it is not there.
password() {
  [ -s "secrets/$1" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$1"
  cat "secrets/$1"
}

postgres=$(password postgres_password)
redis=$(password redis_password)
[ -s secrets/database_url ] || printf 'postgres://sluice:%s@postgres:5432/sluice' "$postgres" >secrets/database_url
[ -s secrets/redis_url ] || printf 'redis://:%s@redis:6379' "$redis" >secrets/redis_url
echo "secrets/: $(ls secrets | tr '\n' ' ')"

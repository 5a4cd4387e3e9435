#!/bin/sh
# Creates missing secrets of docker-compose.yml in ./secrets. It never changes an existing one.
# Compose mounts the files unchanged, so containers must be able to read them. The mode of the folder
# keeps other users out.
set -eu
mkdir -p secrets
chmod 700 secrets
umask 022

# password NAME: prints secrets/NAME, and creates it if it is missing.
password() {
  [ -s "secrets/$1" ] || od -An -N24 -tx1 /dev/urandom | tr -d ' \n' >"secrets/$1"
  cat "secrets/$1"
}

postgres=$(password postgres_password)
redis=$(password redis_password)
[ -s secrets/database_url ] || printf 'postgres://sluice:%s@postgres:5432/sluice' "$postgres" >secrets/database_url
[ -s secrets/redis_url ] || printf 'redis://:%s@redis:6379' "$redis" >secrets/redis_url
echo "secrets/: $(ls secrets | tr '\n' ' ')"

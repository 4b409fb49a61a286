#!/bin/sh
# Installs a system package that the tests need, where its command is not there yet.
#   sh scripts/install-system.sh redis-server     sh scripts/install-system.sh chromium
set -eu
package=$1
command=$package
elsewhere=${package%-server}
if [ "$package" = golang-go ]; then command=go elsewhere=golang; fi
command -v "$command" >/dev/null 2>&1 && exit 0
as_root=
[ "$(id -u)" -eq 0 ] || as_root=sudo
if command -v apt-get >/dev/null 2>&1; then
  # One that is started meanwhile waits, where apt-get itself would give up.
  $as_root flock /tmp/pasarela-setup.lock sh -c \
    'apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$1"' sh "$package"
elif command -v dnf >/dev/null 2>&1; then
  $as_root dnf install -y "$elsewhere"
elif command -v brew >/dev/null 2>&1; then
  brew install "$elsewhere"
else
  echo "No apt-get, dnf or brew here: install $package by hand, so that '$command' is on the PATH." >&2
  exit 1
fi

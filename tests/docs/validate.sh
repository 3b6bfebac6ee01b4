#!/bin/sh
# The example of docs/validate.md prints with the program $1 what the page says, in the empty folder $2.
set -eu
page=$(cd "$(dirname "$0")/../.." && pwd)/docs/validate.md
rm -rf "$2"
mkdir -p "$2"
cd "$2"

# The first block of commands and the block after it.
awk '/^```/ { n++; next } n == 1' "$page" > commands
awk '/^```/ { n++; next } n == 3' "$page" > shown
[ -s commands ] && [ -s shown ]
PATH="$(dirname "$1"):$PATH" sh -eu commands > printed
tail -n "$(wc -l < shown)" printed | diff shown -

#!/bin/sh
# Every verb of the program $1 is shown in a page, and has a man page in the folder $2 if one is given.
set -eu
cd "$(dirname "$0")/../.."
missing=0

for verb in $(COLUMNS=1000 "$1" help | sed -n '/^Subcommands:/,/^$/p' | sed -n 's/^  \([a-z]\{1,\}\) .*/\1/p'); do
  grep -q "rehearse $verb" README.md docs/*.md docs/model/*.md calibrate/README.md ||
    { echo "no page shows: rehearse $verb"; missing=1; }
  [ -z "${2:-}" ] || [ -s "$2/rehearse-$verb.1" ] || { echo "no man page of: rehearse $verb"; missing=1; }
done
exit $missing

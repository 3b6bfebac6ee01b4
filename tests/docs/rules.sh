#!/bin/sh
# Every rule that the source reports stands in docs/rules.md, word by word.
set -eu
cd "$(dirname "$0")/../.."
found=$(mktemp)

cat sim/plan/rules/*.cpp | tr '\n' ' ' | sed 's/  */ /g; s/" "//g' |
  grep -oE '(report\(|push_back\( ?\{ ?"",) ?"[a-z_]+", ?(fmt::format\( ?)?"[^"]+"' |
  sed -E 's/.*[(,] ?"([a-z_]+)", ?(fmt::format\( ?)?"(.*)"$/| \1 | \3 |/' |
  while IFS= read -r rule; do
    grep -qF "$rule" docs/rules.md || echo "docs/rules.md lacks: $rule"
  done > "$found"
missing=$(wc -l < "$found")
cat "$found"
rm "$found"
test "$missing" -eq 0

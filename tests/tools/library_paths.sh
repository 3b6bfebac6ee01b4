#!/bin/sh
# usage: library_paths.sh BUILD   Which folders do our programs load shared libraries from? Absolute ones alone: an
# empty or relative element of RUNPATH is the current folder, whose owner could then run code in the program.
set -eu
build="$1"
scratch="$(mktemp -d)"
trap 'rm -rf "$scratch"' EXIT
cmake --install "$build" --prefix "$scratch/installed" >/dev/null

failed=0 checked=0
for program in $(find "$build" "$scratch/installed/bin" -type f -perm -u+x ! -path '*/CMakeFiles/*'); do
  path="$(readelf -d "$program" 2>/dev/null | sed -n 's/.*(\(RPATH\|RUNPATH\)).*\[\(.*\)\]$/:\2:/p')"
  checked=$((checked + 1))
  case "$path" in
    *::* | *:[!/]*) echo "$program looks for libraries in \"$path\", of which one element is not absolute"; failed=1 ;;
  esac
done
[ "$checked" -ge 2 ] || { echo "no programs in $build"; exit 1; }

# The loader stops at a file of the right name that is no library.
mkdir "$scratch/decoys"
ldd "$build/rehearse" | awk '$2 == "=>" {print $1}' | while read -r library; do
  echo "not a library" >"$scratch/decoys/$library"
done
[ -e "$scratch/decoys/libsqlite3.so.0" ] || { echo "ldd names no libsqlite3"; exit 1; }
for program in "$build/rehearse" "$scratch/installed/bin/rehearse"; do
  (cd "$scratch/decoys" && env -u LD_LIBRARY_PATH "$program" --version >/dev/null) ||
    { echo "$program loads libraries of the current folder"; failed=1; }
done
exit $failed

#!/bin/sh
# package.sh BUILD FOLDER: the .deb of this build, installed into an empty root of the same Debian release, runs the
# README's example from another folder. Exit code 77 (skipped) where no such root can be made.
set -eu
build=$1 folder=$2
command -v debootstrap >/dev/null && [ "$(id -u)" -eq 0 ] || exit 77

rm -rf "$folder"
mkdir -p "$folder"
cpack -G DEB --config "$build/CPackConfig.cmake" -B "$folder" >/dev/null
root=$folder/root
. /etc/os-release
source=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Origin: Debian' | head -n 1)
debootstrap --variant=minbase "$VERSION_CODENAME" "$root" "$source" >"$folder/debootstrap.log" || exit 77
cp /etc/resolv.conf "$root/etc/"
cp "$folder"/rehearse_*.deb "$root/rehearse.deb"
for file in /etc/apt/apt.conf.d/*proxy*; do [ ! -e "$file" ] || cp "$file" "$root/etc/apt/apt.conf.d/"; done
export root
unshare --mount --pid --fork sh -eu -c '
  mount -t proc proc "$root/proc"
  mount --rbind /dev "$root/dev"
  exec chroot "$root" /usr/bin/env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin sh -eu -c "
    apt-get update -qq
    apt-get install -y -qq --no-install-recommends /rehearse.deb >/dev/null
    cd /tmp
    rehearse simulate --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 2 --gbs 32 --zero 1 --sequence-parallel on
    test -e /usr/share/man/man1/rehearse.1.gz -o -e /usr/share/man/man1/rehearse.1
    test -e /usr/share/bash-completion/completions/rehearse"' >"$folder/installed.txt"
rm -rf --one-file-system "$root"
cat "$folder/installed.txt"
grep -q 'step time' "$folder/installed.txt"

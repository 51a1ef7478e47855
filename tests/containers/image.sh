#!/usr/bin/env bash
# image.sh FOLDER: the root file system of the trial's containers as FOLDER/image.tar: Debian 12 with sshd, Python, NumPy,
# PyTorch 1.13, a C++ compiler, TensorFlow in /opt/tf (as tools/venv pins it) and a user dev; nothing of Farandole. One that
# is there and was made by this very recipe stays. Mounts are made in a namespace that ends with this script.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd -P)
repository=${here%/tests/containers}

[ $# -eq 1 ] || { echo "usage: image.sh FOLDER" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd -P)
packages=(openssh-server python3 python3-numpy python3-torch g++)

recipe=$(cat "$here/image.sh" "$repository/tools/venv" | sha256sum | cut -d' ' -f1)
if [ -s "$folder/image.tar" ] && [ "$(cat "$folder/image.recipe" 2>/dev/null)" = "$recipe" ]; then exit 0; fi

if [ -z "${FARANDOLE_IMAGE_UNSHARED:-}" ]; then
  "$repository/tools/venv" tf-2.21
  FARANDOLE_IMAGE_UNSHARED=yes exec unshare --mount --pid --fork --kill-child --propagation private "$0" "$folder"
fi

# Where this machine has its Debian packages from, whatever that is.
# shellcheck disable=SC2016  # apt's own variable
mirror=$(apt-get indextargets --format '$(REPO_URI)' 'Created-By: Packages' 'Codename: bookworm' | head -n 1)
[ -n "$mirror" ] || { echo "image.sh: apt of this machine has no source of Debian 12 (bookworm)" >&2; exit 1; }

root=$folder/root
rm -rf --one-file-system "$root" "$folder/image.tar" "$folder/image.recipe"
trap 'rm -rf --one-file-system "$root"' EXIT
echo "debootstrap, then ${packages[*]}: some minutes, once"
debootstrap --variant=minbase bookworm "$root" "$mirror" >"$folder/image.log" 2>&1 ||
  { tail -n 5 "$folder/image.log" >&2; exit 1; }

mount -t proc proc "$root/proc"
# The way to the packages is this machine's, too; it does not stay in the image.
cp /etc/resolv.conf "$root/etc/"
apt-config dump Acquire >"$root/etc/apt/apt.conf.d/99way"
certificates=/etc/ssl/certs/ca-certificates.crt
[ ! -f $certificates ] || install -D -m 644 $certificates "$root$certificates"
# As docker's own Debian images do it: nothing is started in here.
printf '#!/bin/sh\nexit 101\n' >"$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
{
  chroot "$root" apt-get -q update
  chroot "$root" env DEBIAN_FRONTEND=noninteractive apt-get -q -y --no-install-recommends install "${packages[@]}"
  chroot "$root" apt-get clean
  # A field without "!": sshd would call the account locked.
  chroot "$root" useradd --uid 1000 --create-home --shell /bin/bash --password '*' dev
} >>"$folder/image.log" 2>&1 || { tail -n 5 "$folder/image.log" >&2; exit 1; }
rm -rf "$root"/var/lib/apt/lists/* "$root"/etc/ssh/ssh_host_* "$root/etc/apt/apt.conf.d/99way" "$root$certificates"
cp -a "${FARANDOLE_VENVS:-$repository/build/venvs}/tf-2.21" "$root/opt/tf"
umount "$root/proc"

tar -C "$root" --numeric-owner -cf "$folder/image.tar.new" .
mv "$folder/image.tar.new" "$folder/image.tar"
echo "$recipe" >"$folder/image.recipe"

#!/usr/bin/env bash
# init.sh DIR HOST SHM HIDE KEEP...: process 1 of a host. DIR/hosts/HOST holds the files that make it one; SHM is the
# size of /dev/shm; HIDE folders that this host does not have (A:B); KEEP folders of this machine that stay visible
# although they lie in a folder that is replaced here.
set -euo pipefail
dir=$1 host=$2 shm=$3 hide=$4
shift 4
mine=$dir/hosts/$host
# /proc is still that of the machine: this is our number there, by which `down` finds us.
read -r pid rest </proc/self/stat
read -ra fields <<<"${rest##*) }"
echo "$pid ${fields[19]}" >"$mine/pid"
exec 3>"$dir/ready"
# shellcheck disable=SC1091
source "$mine/facts"

# One file system for all that is the host's own. The current folder stays there: its path will be covered.
mount -t tmpfs -o mode=755 "lab-$host" "$mine/fs"
cp -r "$mine/root" "$mine/etc" "$mine/lab" "$mine/fs"
cd "$mine/fs"
mkdir -p root/.cache run/sshd run/lock keep empty
mv lab run/
chmod 700 root root/.ssh root/.cache
chmod 600 root/.ssh/* run/lab/host_key
mkdir -m 1777 tmp
place() { mount --no-canonicalize --rbind "$1" "$2"; }

kept=0
for folder in "$@"; do
  mkdir "keep/$kept"
  place "$folder" "keep/$kept"
  kept=$((kept + 1))
done

hostname "${hostname:?}"
mount -t proc proc /proc
# Lists the interfaces of this host; the cgroups are those of the machine.
mkdir cgroup
if place /sys/fs/cgroup cgroup 2>/dev/null && mount -t sysfs sysfs /sys 2>/dev/null; then
  place cgroup /sys/fs/cgroup
fi
mount -t tmpfs -o "mode=1777,size=$shm" "lab-$host" /dev/shm
for file in hosts hostname resolv.conf machine-id; do
  if [ -e "/etc/$file" ]; then place "etc/$file" "/etc/$file"; fi
done
place etc/boot_id /proc/sys/kernel/random/boot_id
place root /root
place run /run
place tmp /var/tmp
place tmp /tmp
kept=0
for folder in "$@"; do
  mkdir -p "$folder"
  place "keep/$kept" "$folder"
  kept=$((kept + 1))
done
IFS=: read -ra folders <<<"$hide"
for folder in "${folders[@]}"; do place empty "$folder"; done

/usr/sbin/sshd -f /run/lab/sshd_config -E /run/lab/sshd.log
for ((i = 0; i < 500; i++)); do
  [ ! -s /run/sshd.pid ] || break
  sleep 0.01
done
[ -s /run/sshd.pid ] || { cat /run/lab/sshd.log && exit 1; }
echo "$host" >&3
exec 3>&-

# Whoever loses its parent becomes our child; bash takes note of its end while it waits here.
mkfifo /run/lab/never
exec 4<>/run/lab/never
while :; do read -r -u 4 || true; done

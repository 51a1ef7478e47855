#!/usr/bin/env bash
# daemon.sh FOLDER GROUP: runs dockerd on the laboratory host on which it is called, with its images in FOLDER and its
# containers in control groups below GROUP. What dockerd writes elsewhere lands in file systems of this host's.
set -euo pipefail
folder=$1 group=$2
for place in /etc/docker /opt; do mount -t tmpfs -o mode=755 docker "$place"; done
exec dockerd --data-root "$folder" --cgroup-parent "$group" --storage-driver overlay2

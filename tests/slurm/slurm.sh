#!/usr/bin/env bash
# slurm.sh COMMAND...: a real Slurm of one node, this machine, for as long as COMMAND runs: munged, slurmctld and slurmd
# with a configuration, keys, ports and logs of their own in a temporary folder. COMMAND finds srun, salloc and sbatch
# configured (SLURM_CONF). Everything that was started is ended, and the folder removed. Needs root (tools/deps slurm).
set -euo pipefail
# shellcheck source=tests/slurm/parts.sh
. "$(dirname "$0")/parts.sh"

[ $# -gt 0 ] || { echo "usage: slurm.sh COMMAND..." >&2; exit 2; }
[ "$(id -u)" -eq 0 ] || { echo "slurm.sh: slurmd must be root" >&2; exit 2; }
for program in munged slurmctld slurmd srun; do
  PATH=$PATH:/usr/sbin command -v $program >/dev/null || { echo "slurm.sh: no $program: tools/deps slurm" >&2; exit 2; }
done
PATH=$PATH:/usr/sbin

folder=$(mktemp -d /tmp/farandole-slurm.XXXXXX)
chmod 755 "$folder"
pids=()
end() {
  local code=$? pid
  trap - EXIT INT TERM
  # Its jobs first: their steps are processes of their own.
  timeout 10 scancel --full -u root >/dev/null 2>&1 || true
  for ((i = ${#pids[@]} - 1; i >= 0; --i)); do
    pid=${pids[i]}
    kill "$pid" 2>/dev/null || true
    for _ in $(seq 50); do kill -0 "$pid" 2>/dev/null || break; sleep 0.1; done
    kill -9 "$pid" 2>/dev/null || true
  done
  if [ $code -ne 0 ]; then tail -n 20 "$folder"/*.log >&2 || true; fi
  rm -rf "$folder"
  exit $code
}
trap end EXIT
trap 'exit 130' INT TERM

free_port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }

head -c 128 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
munged --force --foreground --key-file="$folder/munge.key" --socket="$folder/munge.socket" \
  --pid-file="$folder/munged.pid" --log-file="$folder/munged.log" --seed-file="$folder/munge.seed" >"$folder/munged.out.log" 2>&1 &
pids+=($!)

node=$(hostname -s)
processors=$(nproc)
mkdir "$folder/state" "$folder/spool"
settings "$folder/munge.socket" >"$folder/slurm.conf"
cat >>"$folder/slurm.conf" <<EOF
SlurmctldHost=$node(127.0.0.1)
SlurmctldPort=$(free_port)
SlurmdPort=$(free_port)
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
NodeName=$node NodeAddr=127.0.0.1 CPUs=$processors State=UNKNOWN
PartitionName=all Nodes=$node Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
EOF
export SLURM_CONF=$folder/slurm.conf

wait_for munged 20 test -S "$folder/munge.socket"
slurmctld -D -f "$folder/slurm.conf" >/dev/null 2>&1 &
pids+=($!)
wait_for slurmctld 20 scontrol ping
slurmd -D -f "$folder/slurm.conf" -N "$node" >/dev/null 2>&1 &
pids+=($!)
idle() { [ "$(sinfo -h -o %t)" = idle ]; }
wait_for "an idle node" 30 idle

"$@"

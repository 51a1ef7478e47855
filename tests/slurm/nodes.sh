#!/usr/bin/env bash
# nodes.sh LAB FOLDER FARANDOLE CONFORMANCE_RANK: ranks that a real Slurm of two nodes starts: the hosts of a laboratory, each
# with its own munged and slurmd, the first one with slurmctld. FOLDER is seen by all hosts; what is private to a host lies
# in its own /tmp and goes with it. Needs root (tools/deps slurm).
set -euo pipefail
# shellcheck source=tests/slurm/parts.sh
. "$(dirname "$0")/parts.sh"
lab=$1
mkdir -p "$2"
folder=$(mktemp -d "$2/slurm.XXXXXX")
farandole=$3
program=$4
name=slurm$$
# shellcheck disable=SC2317
end() {
  local code=$?
  trap - EXIT INT TERM
  "$lab" down --name "$name" >/dev/null 2>&1 || true
  if [ "$code" -ne 0 ]; then tail -n 20 "$folder"/*.log >&2 || true; fi
  rm -rf "$folder"
  exit "$code"
}
trap end EXIT
trap 'exit 130' INT TERM
on() {
  local host=$1
  shift
  "$lab" --name "$name" exec "$host" -- "$@"
}
"$lab" up --hosts 2 --name "$name" >/dev/null

head -c 128 /dev/urandom >"$folder/munge.key"
chmod 600 "$folder/munge.key"
(umask 077; head -c 32 /dev/urandom | od -An -tx1 | tr -d ' \n' >"$folder/secret")
settings "/tmp/munge.socket" >"$folder/slurm.conf"
cat >>"$folder/slurm.conf" <<EOF
SlurmctldHost=h0
StateSaveLocation=/tmp/slurm-state
SlurmdSpoolDir=/tmp/slurm-spool
SlurmctldPidFile=/tmp/slurmctld.pid
SlurmdPidFile=/tmp/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd-%n.log
NodeName=h0,h1 CPUs=$(nproc) State=UNKNOWN
PartitionName=all Nodes=h0,h1 Default=YES MaxTime=10 State=UP OverSubscribe=FORCE:8
EOF
export SLURM_CONF=$folder/slurm.conf

for host in h0 h1; do
  on $host munged --force --foreground --key-file="$folder/munge.key" --socket=/tmp/munge.socket \
    --pid-file=/tmp/munged.pid --log-file="$folder/munged-$host.log" --seed-file=/tmp/munge.seed >"$folder/munged-$host.out.log" 2>&1 &
  wait_for "munged on $host" 20 on $host test -S /tmp/munge.socket
done
on h0 mkdir /tmp/slurm-state
on h0 slurmctld -D -f "$SLURM_CONF" >/dev/null 2>&1 &
wait_for slurmctld 20 on h0 scontrol ping
for host in h0 h1; do
  on $host mkdir /tmp/slurm-spool
  on $host slurmd -D -f "$SLURM_CONF" -N $host >/dev/null 2>&1 &
done
# shellcheck disable=SC2317
idle() { [ "$(on h0 sinfo -h -o '%t %D')" = "idle 2" ]; }
wait_for "two idle nodes" 30 idle

# shellcheck source=tests/expect_ranks.sh
. "$(dirname "$0")/../expect_ranks.sh"
here=("$lab" --name "$name" exec h0 -- env FARANDOLE_SECRET_FILE="$folder/secret")
on h0 test "$(on h0 srun -N2 -n2 --mpi=none hostname | sort | tr '\n' ' ')" = "h0 h1 "

# One rank on each node, over the link; two on each, with shared memory inside.
expect_ranks 2 "srun -N2 -n2" "${here[@]}" srun -N2 -n2 --mpi=none "$program" bits
expect_ranks 4 "srun -N2 -n4" "${here[@]}" srun -N2 -n4 --mpi=none "$program" bits
# MPI's ranks, by Slurm's own process managers; MPI between the nodes.
expect_ranks 2 "srun -N2 --mpi=pmi2, MPICH" "${here[@]}" srun -N2 -n2 --mpi=pmi2 "$program" bits
expect_ranks 2 "srun -N2 --mpi=pmix, Open MPI" "${here[@]}" srun -N2 -n2 --mpi=pmix "$program" bits
# Without a secret the ranks of several nodes are refused.
text=$(timeout -k 5 30 "$lab" --name "$name" exec h0 -- srun -N2 -n2 --mpi=none "$program" bits 2>&1) && failed=1
grep -q FARANDOLE_SECRET <<<"$text" || { echo "no secret: not told"; echo "$text"; failed=1; }
# Our launcher in an allocation of both, through ssh.
expect_ranks 4 "salloc -N2" "${here[@]}" salloc -Q -N2 -n4 "$farandole" run "$program" bits
exit $failed

#!/usr/bin/env bash
# What the scripts that start a Slurm have in common.

settings() {  # settings MUNGE_SOCKET: the part of slurm.conf that is the same for all
  cat <<EOF
ClusterName=farandole
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket=$1
CryptoType=crypto/munge
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/builtin
JobAcctGatherType=jobacct_gather/none
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SwitchType=switch/none
EOF
}

wait_for() {  # wait_for WHAT SECONDS COMMAND...
  local what=$1 deadline=$((SECONDS + $2))
  shift 2
  until "$@" >/dev/null 2>&1; do
    [ $SECONDS -lt $deadline ] || { echo "$0: $what did not come" >&2; exit 1; }
    sleep 0.2
  done
}

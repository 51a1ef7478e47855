#!/usr/bin/env bash
# ranks.sh FARANDOLE CONFORMANCE_RANK, under slurm.sh: ranks that a real Slurm starts, in every way that it offers.
set -uo pipefail
farandole=$1
program=$2
folder=$(mktemp -d /tmp/farandole-slurm-ranks.XXXXXX)
trap 'rm -rf "$folder"' EXIT
# shellcheck source=tests/expect_ranks.sh
. "$(dirname "$0")/../expect_ranks.sh"

# Without any MPI: Slurm's variables say who is who.
expect_ranks 2 "srun" srun -n2 --mpi=none "$program" bits
# What MPI's ranks get from Slurm's own process managers.
export FARANDOLE_HIERARCHY=off
expect_ranks 2 "srun --mpi=pmi2, MPICH" srun -n2 --mpi=pmi2 "$program" bits
expect_ranks 2 "srun --mpi=pmix, Open MPI" srun -n2 --mpi=pmix "$program" bits
unset FARANDOLE_HIERARCHY
# Our launcher in an allocation.
expect_ranks 2 "salloc" salloc -Q -n2 "$farandole" run "$program" bits
printf '#!/bin/sh\nexec "%s" run "%s" bits\n' "$farandole" "$program" >"$folder/job.sh"
# shellcheck disable=SC2016
expect_ranks 2 "sbatch" sh -c 'sbatch -Q -W -n2 -o "$0/out" "$0/job.sh"; code=$?; cat "$0/out"; exit $code' "$folder"

# An MPI that does not speak to this manager says so, instead of making a job of every rank.
text=$(FARANDOLE_MPI=mpich timeout -k 5 60 srun -n2 --mpi=pmix "$program" bits 2>&1)
if ! grep -q 'this job has 2 ranks, but MPICH' <<<"$text"; then
  echo "an MPI that does not fit: not told"
  echo "$text"
  failed=1
fi
exit $failed

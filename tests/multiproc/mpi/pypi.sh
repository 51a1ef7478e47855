#!/usr/bin/env bash
# pypi.sh BUILD NAME...: the conformance suite's bits under the MPIs that tools/peers has installed from PyPI, each under
# its own starter and under farandole run: openmpi5, mpich5, intelmpi.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
bin=$(cd "$1/bin" && pwd)
shift
# shellcheck source=tests/expect_ranks.sh
. tests/expect_ranks.sh

# Without shared memory, so that MPI carries everything.
for name in "$@"; do
  starter=$PWD/.peers/$name/bin/mpiexec
  case $name in
    openmpi5) own=(env OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_ALLOW_RUN_AS_ROOT=1
      PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1 PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe) ;;
    intelmpi) own=(env "PATH=$PWD/.peers/$name/bin:$PATH") starter=$PWD/.peers/$name/bin/mpirun ;;
    *) own=(env) ;;
  esac
  for each in bits rooted; do
    expect_ranks 3 "$name, its own starter, $each" "${own[@]}" FARANDOLE_HIERARCHY=off "$starter" -n 3 \
      "$bin/conformance_rank" $each
    expect_ranks 3 "$name, farandole run, $each" "$bin/farandole" run -np 3 --engine mpi --mpi "$starter" --no-hierarchy \
      "$bin/conformance_rank" $each
  done
done
exit $failed

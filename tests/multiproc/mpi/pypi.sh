#!/usr/bin/env bash
# pypi.sh BUILD NAME...: the conformance suite's bits under the MPIs that tools/peers has installed from PyPI, each under
# its own starter and under farandole run: openmpi5, mpich5, intelmpi.
set -uo pipefail
cd "$(dirname "$0")/../../.." || exit
bin=$(cd "$1/bin" && pwd)
shift
failed=0

check() {  # check NAME COMMAND...: three ranks of three
  local name=$1 text code=0
  shift
  text=$(timeout -k 5 60 "$@" 2>&1) || code=$?
  if [ $code -eq 0 ] && [ "$(grep -c 'rank [012] of 3: ' <<<"$text")" -eq 3 ]; then
    echo "$name: ok"
    return
  fi
  echo "$name: code $code"
  echo "$text"
  failed=1
}

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
    check "$name, its own starter, $each" "${own[@]}" FARANDOLE_HIERARCHY=off "$starter" -n 3 "$bin/conformance_rank" $each
    check "$name, farandole run, $each" "$bin/farandole" run -np 3 --engine mpi --mpi "$starter" --no-hierarchy \
      "$bin/conformance_rank" $each
  done
done
exit $failed

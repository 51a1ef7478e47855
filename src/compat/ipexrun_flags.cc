// ipexrun's flags: 2.1 to 2.8, and the older ones that it still accepted with a warning.
#include "compat/flag_table.h"

namespace farandole::compat {
namespace {

using enum Takes;

constexpr const char* kNoRewriting = "scripts are run as they are: call ipex.optimize() in yours";
constexpr const char* kOwnSets = "the launcher sets the CPUs itself";

constexpr Flag kIpexrunFlags[] = {
    {"--help -h", kNothing, Becomes::kSpecial, "shows this list"},
    {"--version", kNothing, Becomes::kSpecial, "shows Farandole's version"},
    {"--module -m", kNothing, Becomes::kSpecial, "the module is run by `python3 -u -m`"},
    {"--no-python", kNothing, Becomes::kSpecial, "the command is run as it is"},
    {"--log-dir --log-path", kValue, Becomes::kSpecial, "`--output-filename`"},
    {"--log-file-prefix", kValue, Becomes::kSpecial, "a folder of that name in --log-dir"},
    {"--quiet --silent -q", kNothing, Becomes::kOption, "--quiet"},
    {"--verbose", kNothing, Becomes::kOption, "--verbose"},
    // CPUs.
    {"--ncores-per-instance --ncore-per-instance", kValue, Becomes::kSpecial,
     "so many cores for each rank: `--cpus`"},
    {"--nodes-list --node-id", kValue, Becomes::kSpecial, "only these NUMA nodes: `--cpus`"},
    {"--cores-list --core-list", kValue, Becomes::kSpecial, "only these CPUs: `--cpus`"},
    {"--use-e-cores", kNothing, Becomes::kSpecial, "E-cores compute, too"},
    {"--use-logical-cores --use-logical-core", kNothing, Becomes::kSpecial,
     "second hyperthreads compute, too"},
    {"--bind-numa-node --skip-cross-node-cores", kNothing, Becomes::kSpecial,
     "no rank spans two NUMA nodes"},
    {"--strategy", kValue, Becomes::kNote, "ranks take cores in ascending order"},
    {"--multi-task-manager", kValue, Becomes::kNothing, kOwnSets},
    {"--disable-numactl", kNothing, Becomes::kNothing, kOwnSets},
    {"--disable-taskset", kNothing, Becomes::kNothing, kOwnSets},
    // Allocator and OpenMP runtime.
    {"--memory-allocator", kValue, Becomes::kSpecial,
     "tcmalloc, jemalloc: variable `LD_PRELOAD` if the library is found"},
    {"--enable-tcmalloc", kNothing, Becomes::kSpecial, "as `--memory-allocator tcmalloc`"},
    {"--enable-jemalloc", kNothing, Becomes::kSpecial, "as `--memory-allocator jemalloc`"},
    {"--use-default-allocator", kNothing, Becomes::kSpecial, "as `--memory-allocator default`"},
    {"--omp-runtime", kValue, Becomes::kSpecial,
     "intel: variable `LD_PRELOAD` if libiomp5.so is found"},
    {"--disable-iomp", kNothing, Becomes::kSpecial, "as `--omp-runtime default`"},
    {"--benchmark", kNothing, Becomes::kSpecial, "jemalloc's variable `MALLOC_CONF` for latency"},
    // Several independent instances.
    {"--ninstances", kValue, Becomes::kSpecial, "so many independent processes: `-np`"},
    {"--instance-idx", kValue, Becomes::kSpecial, "only this one of the instances"},
    {"--latency-mode", kNothing, Becomes::kSpecial, "instances of four cores"},
    {"--throughput-mode", kNothing, Becomes::kSpecial, "one instance per NUMA node"},
    {"--multi-instance", kNothing, Becomes::kNothing, "instances are what --ninstances says"},
    // A distributed job.
    {"--distributed", kNothing, Becomes::kSpecial, "as `--nnodes 1`, if that is not given"},
    {"--nnodes", kValue, Becomes::kSpecial, "`-np`, times --nprocs-per-node"},
    {"--nprocs-per-node --nproc-per-node", kValue, Becomes::kSpecial,
     "`-np`, times --nnodes; `--ranks-per-host`"},
    {"--hostfile", kValue, Becomes::kSpecial, "`--hostfile`, if there are several machines"},
    {"--ccl-worker-count", kValue, Becomes::kSpecial,
     "so many cores of each rank are kept for communication (4 if there is room); "
     "variables `CCL_WORKER_COUNT`, `CCL_WORKER_AFFINITY`"},
    {"--logical-cores-for-ccl --logical-core-for-ccl", kNothing, Becomes::kSpecial,
     "communication threads go to second hyperthreads"},
    {"--master-addr", kValue, Becomes::kOption, "--master-addr"},
    {"--master-port", kValue, Becomes::kOption, "--master-port"},
    {"--extra-mpi-params --more-mpi-params", kValue, Becomes::kSpecial,
     "its words are translated as mpirun's"},
    // What changes scripts, and what is for GPUs.
    {"--auto-ipex", kNothing, Becomes::kNote, kNoRewriting},
    {"--dtype", kValue, Becomes::kNote, kNoRewriting},
    {"--auto-ipex-verbose", kNothing, Becomes::kNote, kNoRewriting},
    {"--disable-ipex-graph-mode", kNothing, Becomes::kNote, kNoRewriting},
    {"--convert-fp64-to-fp32", kNothing, Becomes::kNote, "numbers on a GPU stay as they are"},
};

}  // namespace

const Grammar& ipexrunGrammar() {
  static constexpr Grammar kGrammar{
      "ipexrun", "--nnodes 1 --nprocs-per-node 2", kIpexrunFlags, false, true, true};
  return kGrammar;
}

}  // namespace farandole::compat

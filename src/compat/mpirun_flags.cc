// Flags of mpirun and mpiexec: Open MPI 4 and 5, Hydra (MPICH, Intel MPI). One and two dashes are
// the same to Open MPI; Hydra is read in the same way.
#include "compat/flag_table.h"

namespace farandole::compat {
namespace {

using enum Takes;

constexpr const char* kOneList =
    "place ranks with the host list, --map-by and --bind-to instead: leave it out";
constexpr const char* kMpiOnly = "only means something to MPI";
constexpr const char* kAllPass = "all variables of this shell reach the ranks";

constexpr Flag kMpirunFlags[] = {
    {"--help -h", kNothing, Becomes::kSpecial, "shows this list"},
    {"--version -V -info", kNothing, Becomes::kSpecial, "shows Farandole's version"},
    {"-np -n -c", kValue, Becomes::kOption, "-np"},
    // Hosts.
    {"--hostfile --machinefile -machine -f --default-hostfile", kValue, Becomes::kOption,
     "--hostfile"},
    {"--host -H -hosts", kValue, Becomes::kSpecial, "`--hosts`, all occurrences together"},
    {"--npernode -N -ppn -perhost -grr", kValue, Becomes::kOption, "--ranks-per-host"},
    {"--pernode", kNothing, Becomes::kSpecial, "`--ranks-per-host 1`"},
    {"--ppr", kValue, Becomes::kSpecial, "as `--map-by ppr:`"},
    {"--npersocket", kValue, Becomes::kRefusal, kOneList},
    {"--nolocal --skip-launch-node", kNothing, Becomes::kRefusal,
     "leave this machine out of the host list instead"},
    {"--rankfile -rf", kValue, Becomes::kRefusal, kOneList},
    {"--configfile --app", kValue, Becomes::kRefusal,
     "all ranks run the same command here: type it on the command line"},
    {"--oversubscribe", kNothing, Becomes::kNothing, "more ranks than cores are always allowed"},
    {"--nooversubscribe", kNothing, Becomes::kNote, "more ranks than cores are always allowed"},
    // Placement and binding.
    {"--map-by", kValue, Becomes::kSpecial,
     "`--map-by`; slot, core, socket and numa fill a host before the next; ppr:N:node becomes "
     "`--ranks-per-host N`"},
    {"--rank-by", kValue, Becomes::kNote, "ranks are numbered host by host, as --map-by says"},
    {"--bind-to", kValue, Becomes::kSpecial, "`--bind-to`; socket and caches become numa"},
    {"--bynode -rr", kNothing, Becomes::kSpecial, "`--map-by node`"},
    {"--byslot --bycore", kNothing, Becomes::kSpecial, "`--map-by slot`"},
    {"--bind-to-none", kNothing, Becomes::kSpecial, "`--bind-to none`"},
    {"--bind-to-core", kNothing, Becomes::kSpecial, "`--bind-to core`"},
    {"--bind-to-socket", kNothing, Becomes::kSpecial, "`--bind-to numa`"},
    {"--cpus-per-proc --cpus-per-rank", kValue, Becomes::kOption, "--threads"},
    {"--use-hwthread-cpus", kNothing, Becomes::kNote, "every CPU this job may use is counted"},
    {"--cpu-set --cpu-list", kValue, Becomes::kRefusal,
     "type farandole run --cpus \"0-3;4-7\" instead (the CPUs of each local rank)"},
    {"--report-bindings", kNothing, Becomes::kOption, "--display-map"},
    // Output.
    {"--display-map", kNothing, Becomes::kOption, "--display-map-ompi"},
    {"--display-devel-map --display-diffable-map --display-allocation "
     "--display-devel-allocation --display-topo",
     kNothing, Becomes::kOption, "--display-map-ompi"},
    {"--display", kValue, Becomes::kSpecial, "map, allocation and bind: `--display-map-ompi`"},
    {"--tag-output", kNothing, Becomes::kOption, "--tag-output"},
    {"--timestamp-output", kNothing, Becomes::kOption, "--timestamp-output"},
    {"--output", kValue, Becomes::kSpecial,
     "tag: `--tag-output`; timestamp: `--timestamp-output`; dir=FOLDER: `--output-filename`"},
    {"--output-filename", kValue, Becomes::kOption, "--output-filename"},
    {"-l --prepend-rank", kNothing, Becomes::kSpecial, "lines get their rank as a prefix"},
    {"--prepend-pattern", kValue, Becomes::kRefusal, "type -l: lines get their rank as a prefix"},
    {"--xml --output-proctable --parsable --parseable", kNothing, Becomes::kRefusal,
     "there is no such form of the output: leave it out"},
    {"--xml-file", kValue, Becomes::kRefusal, "there is no such form of the output: leave it out"},
    {"--outfile-pattern", kValue, Becomes::kRefusal, "type --output-filename FOLDER instead"},
    {"--errfile-pattern", kValue, Becomes::kRefusal, "type --output-filename FOLDER instead"},
    {"--merge-stderr-to-stdout", kNothing, Becomes::kNote,
     "stderr stays stderr: type 2>&1 behind the line"},
    {"--xterm", kValue, Becomes::kRefusal, "there are no windows: type --output-filename FOLDER"},
    {"--verbose -v", kNothing, Becomes::kOption, "--verbose"},
    {"--quiet -q", kNothing, Becomes::kOption, "--quiet"},
    // Environment.
    {"-x", kValue, Becomes::kOption, "-x"},
    {"-genv -env", kAssignment, Becomes::kSpecial, "`--env NAME=VALUE`"},
    {"-genvlist -envlist", kValue, Becomes::kSpecial, "`-x`, for each name"},
    {"-genvall -envall", kNothing, Becomes::kNothing, kAllPass},
    {"-genvnone -envnone", kNothing, Becomes::kNote, kAllPass},
    {"--mca -gmca --prtemca --pmixmca", kTwoValues, Becomes::kSpecial,
     "see the table of parameters below"},
    {"--am --tune", kValue, Becomes::kRefusal,
     "files with parameters are not read: give those that matter with --mca"},
    {"--wdir --wd", kValue, Becomes::kOption, "--wdir"},
    {"--path", kValue, Becomes::kRefusal, "give the program with its path instead"},
    {"--prefix", kValue, Becomes::kNote, "no MPI is needed on the other hosts"},
    {"--noprefix --enable-orterun-prefix-by-default", kNothing, Becomes::kNothing,
     "no MPI is needed on the other hosts"},
    {"--preload-binary -s", kNothing, Becomes::kRefusal,
     "copy the program to the other hosts first, or use a shared folder"},
    {"--preload-files", kValue, Becomes::kRefusal,
     "copy the files to the other hosts first, or use a shared folder"},
    // Life of the job.
    {"--allow-run-as-root", kNothing, Becomes::kNothing, "root may start jobs"},
    {"--timeout", kValue, Becomes::kRefusal, "type timeout SECONDS before the line instead"},
    {"--max-restarts", kValue, Becomes::kOption, "--max-restarts"},
    {"--enable-recovery --disable-recovery --continuous", kNothing, Becomes::kNote,
     "if a rank fails the job ends, with its exit code"},
    {"--do-not-launch", kNothing, Becomes::kOption, "--dry-run"},
    {"--stdin", kValue, Becomes::kNote, "rank 0 gets the input"},
    {"--report-pid --report-uri --ompi-server", kValue, Becomes::kNote, kMpiOnly},
    {"--launch-agent --launcher-exec --bootstrap-exec", kValue, Becomes::kNote,
     "the system's ssh is used"},
    {"--launcher --bootstrap", kValue, Becomes::kSpecial,
     "ssh, rsh and fork are accepted, others refused: the system's ssh is used"},
    {"--rmk", kValue, Becomes::kNote, "hosts come from -H, --hostfile or the surrounding system"},
    {"--iface", kValue, Becomes::kOption, "--network-interfaces"},
    // What concerns MPI itself, its daemons, or tools around it.
    {"--set-cwd-to-session-dir", kNothing, Becomes::kRefusal, "type --wdir FOLDER instead"},
    {"--index-argv-by-rank", kNothing, Becomes::kRefusal,
     "a program finds its rank in FARANDOLE_RANK: leave it out"},
    {"--tv --debug -d --leave-session-attached --no-ompi-server --debug-devel --debug-daemons "
     "--debug-daemons-file --show-progress --get-stack-traces --report-state-on-timeout "
     "--report-child-jobs-separately --hetero-nodes --novm --dvm --fwd-mpirun-port "
     "--enable-instant-on-support --do-not-resolve --use-regexp --forward-signals",
     kNothing, Becomes::kNote, kMpiOnly},
    {"--disable-auto-cleanup --disable-hostname-propagation --enable-x --disable-x "
     "--print-all-exitcodes --exitinfo --print-rank-map --pmi-port --profile --silent-abort "
     "--ordered-output --trace --check-mpi --rdma --dapl --ib --psm --psm2 --ofi",
     kNothing, Becomes::kNote, kMpiOnly},
    {"--debugger --cartofile -cf --hnp --max-vm-size --personality --report-events", kValue,
     Becomes::kNote, kMpiOnly},
    {"--usize --demux --ckpoint-interval --ckpointlib --localhost --order-nodes --topolib "
     "--membind --nameserver --gpus-per-proc --branch-count --pmi-connect --tmpdir --genvexcl",
     kValue, Becomes::kNote, kMpiOnly},
};

}  // namespace

const Grammar& mpirunGrammar() {
  static constexpr Grammar kGrammar{"mpirun", "-np 2", kMpirunFlags, true, false, false};
  return kGrammar;
}

}  // namespace farandole::compat

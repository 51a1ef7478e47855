// horovodrun's flags (0.28.1), and spellings that documents use though it never knew them.
#include "compat/flag_table.h"

namespace farandole::compat {
namespace {

using enum Takes;

constexpr const char* kNoAutotune = "nothing needs tuning: batches form by what is ready";
constexpr const char* kByItself = "the algorithm is chosen by where the ranks are";
constexpr const char* kLogTime = "Farandole's log lines have their own form";
constexpr const char* kNoNccl = "there is no NCCL here";
constexpr const char* kNotElastic = "hosts do not come and go during a job";

constexpr Flag kHorovodrunFlags[] = {
    // General.
    {"--help -h", kNothing, Becomes::kSpecial, "shows this list"},
    {"--version -v", kNothing, Becomes::kSpecial, "shows Farandole's version"},
    {"-np --num-proc -n", kValue, Becomes::kOption, "-np"},
    {"--check-build -cb", kNothing, Becomes::kSpecial,
     "shows what there is, in Horovod's form, and exits with 0"},
    {"--disable-cache", kNothing, Becomes::kNothing, "no result of a check is kept"},
    {"--start-timeout", kValue, Becomes::kOption, "--start-timeout"},
    {"--network-interfaces --network-interface", kValue, Becomes::kSpecial,
     "`--network-interfaces`, all occurrences together"},
    {"--output-filename", kValue, Becomes::kOption, "--output-filename"},
    {"--verbose", kNothing, Becomes::kOption, "--verbose"},
    {"--quiet -q", kNothing, Becomes::kOption, "--quiet"},
    {"--config-file", kValue, Becomes::kSpecial,
     "Horovod's YAML file: its keys become flags; flags on the command line outrank them"},
    // ssh.
    {"--ssh-port -p", kValue, Becomes::kOption, "--ssh-port"},
    {"--ssh-identity-file -i", kValue, Becomes::kOption, "--ssh-identity-file"},
    // Tuning.
    {"--fusion-threshold-mb", kValue, Becomes::kSpecial, "variable `FARANDOLE_FUSION_BYTES`"},
    {"--cycle-time-ms", kValue, Becomes::kSpecial, "variable `FARANDOLE_BATCH_DELAY_US`"},
    {"--cache-capacity", kValue, Becomes::kSpecial,
     "variable `FARANDOLE_PLAN_CAPACITY`; 0 becomes 1"},
    {"--hierarchical-allreduce", kNothing, Becomes::kNote, kByItself},
    {"--no-hierarchical-allreduce", kNothing, Becomes::kNote, kByItself},
    {"--hierarchical-allgather", kNothing, Becomes::kNote, kByItself},
    {"--no-hierarchical-allgather", kNothing, Becomes::kNote, kByItself},
    {"--torus-allreduce", kNothing, Becomes::kNote, kByItself},
    {"--no-torus-allreduce", kNothing, Becomes::kNote, kByItself},
    // Autotuning.
    {"--autotune", kNothing, Becomes::kNote, kNoAutotune},
    {"--no-autotune", kNothing, Becomes::kNothing, kNoAutotune},
    {"--autotune-log-file", kValue, Becomes::kNote, kNoAutotune},
    {"--autotune-warmup-samples", kValue, Becomes::kNote, kNoAutotune},
    {"--autotune-steps-per-sample", kValue, Becomes::kNote, kNoAutotune},
    {"--autotune-bayes-opt-max-samples", kValue, Becomes::kNote, kNoAutotune},
    {"--autotune-gaussian-process-noise", kValue, Becomes::kNote, kNoAutotune},
    // Elastic jobs.
    {"--min-np --min-num-proc", kValue, Becomes::kSpecial,
     "accepted if it equals -np, otherwise refused: jobs do not shrink yet"},
    {"--max-np --max-num-proc", kValue, Becomes::kSpecial,
     "accepted if it equals -np, otherwise refused: jobs do not grow yet"},
    {"--slots-per-host", kValue, Becomes::kOption, "--slots-per-host"},
    {"--elastic-timeout", kValue, Becomes::kNote, kNotElastic},
    {"--reset-limit", kValue, Becomes::kNote, kNotElastic},
    {"--blacklist-cooldown-range", kTwoValues, Becomes::kNote, kNotElastic},
    // Timeline.
    {"--timeline-filename", kValue, Becomes::kOption, "--timeline"},
    {"--timeline-mark-cycles", kNothing, Becomes::kNote, "there are no cycles to mark"},
    {"--no-timeline-mark-cycles", kNothing, Becomes::kNothing, "there are no cycles to mark"},
    // Stalls.
    {"--stall-check", kNothing, Becomes::kSpecial, "accepted: stalls are looked for"},
    {"--no-stall-check", kNothing, Becomes::kSpecial, "`--stall-warning 0`"},
    {"--stall-check-warning-time-seconds", kValue, Becomes::kSpecial, "`--stall-warning`"},
    {"--stall-check-shutdown-time-seconds", kValue, Becomes::kOption, "--stall-shutdown"},
    // Libraries.
    {"--mpi-threads-disable", kNothing, Becomes::kNote, "no MPI is used"},
    {"--no-mpi-threads-disable", kNothing, Becomes::kNothing, "no MPI is used"},
    {"--mpi-args", kValue, Becomes::kSpecial, "its words are translated as mpirun's"},
    {"--tcp", kNothing, Becomes::kVariable, "NCCL_IB_DISABLE=1"},
    {"--binding-args", kValue, Becomes::kSpecial,
     "none, core, socket become `--bind-to`; mpirun's words are translated"},
    {"--num-nccl-streams", kValue, Becomes::kNote, kNoNccl},
    {"--thread-affinity --ccl-bgt-affinity", kValue, Becomes::kNote,
     "the communication thread goes where its rank's CPUs are: see --bind-to"},
    {"--gloo-timeout-seconds", kValue, Becomes::kNote,
     "a lost rank is known within a second; --start-timeout bounds the start"},
    // Logging.
    {"--log-level", kValue, Becomes::kSpecial, "variable `FARANDOLE_LOG_LEVEL`"},
    {"--log-with-timestamp", kNothing, Becomes::kNothing, kLogTime},
    {"--log-without-timestamp", kNothing, Becomes::kNothing, kLogTime},
    {"--log-hide-timestamp", kNothing, Becomes::kNothing, kLogTime},
    {"--no-log-hide-timestamp", kNothing, Becomes::kNothing, kLogTime},
    {"--prefix-output-with-timestamp -prefix-timestamp", kNothing, Becomes::kOption,
     "--timestamp-output"},
    // Hosts.
    {"--hosts -H -hosts --host", kValue, Becomes::kOption, "--hosts"},
    {"--hostfile -hostfile", kValue, Becomes::kOption, "--hostfile"},
    {"--host-discovery-script", kValue, Becomes::kSpecial,
     "`--host-discovery-script`, asked once, at the start"},
    // Controllers.
    {"--gloo", kNothing, Becomes::kNothing, "Farandole's own connections are always used"},
    {"--mpi", kNothing, Becomes::kNote, "no MPI is needed; Farandole's own connections are used"},
    {"--jsrun", kNothing, Becomes::kRefusal,
     "ranks are started through ssh, not jsrun: leave it out and name the hosts with -H"},
};

}  // namespace

const Grammar& horovodrunGrammar() {
  static constexpr Grammar kGrammar{"horovodrun", "-np 2", kHorovodrunFlags, false, false, true};
  return kGrammar;
}

}  // namespace farandole::compat

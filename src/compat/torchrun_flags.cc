// torchrun's flags. Each may also come from the environment: PET_<FLAG>.
#include "compat/flag_table.h"

namespace farandole::compat {
namespace {

using enum Takes;

constexpr const char* kNoRendezvous = "ranks of one machine find each other without a rendezvous";

constexpr Flag kTorchrunFlags[] = {
    {"--help -h", kNothing, Becomes::kSpecial, "shows this list"},
    {"--version", kNothing, Becomes::kSpecial, "shows Farandole's version"},
    {"--nnodes", kValue, Becomes::kSpecial,
     "1 and 1:1 are accepted; more machines are refused: `farandole run -H` starts all of them"},
    {"--nproc-per-node", kValue, Becomes::kSpecial,
     "`-np`; auto, cpu, gpu and xpu are counted on this machine"},
    {"--node-rank", kValue, Becomes::kSpecial, "accepted if it is 0"},
    {"--rdzv-backend", kValue, Becomes::kNothing, kNoRendezvous},
    {"--rdzv-endpoint", kValue, Becomes::kNothing, kNoRendezvous},
    {"--rdzv-id", kValue, Becomes::kNothing, kNoRendezvous},
    {"--rdzv-conf", kValue, Becomes::kNothing, kNoRendezvous},
    {"--standalone", kNothing, Becomes::kNothing, kNoRendezvous},
    {"--master-addr", kValue, Becomes::kOption, "--master-addr"},
    {"--master-port", kValue, Becomes::kOption, "--master-port"},
    {"--local-addr", kValue, Becomes::kNothing, kNoRendezvous},
    {"--max-restarts", kValue, Becomes::kSpecial, "`--max-restarts`, unless it is 0"},
    {"--monitor-interval", kValue, Becomes::kNothing, "a rank's end is known at once"},
    {"--start-method", kValue, Becomes::kNothing, "ranks are programs of their own"},
    {"--event-log-handler", kValue, Becomes::kNote, "there is no such log: see --timeline"},
    {"--role", kValue, Becomes::kNote, "all ranks have the role 'default'"},
    {"--module -m", kNothing, Becomes::kSpecial, "the module is run by `python3 -u -m`"},
    {"--no-python", kNothing, Becomes::kSpecial, "the command is run as it is"},
    {"--run-path", kNothing, Becomes::kNothing, "the script is run by `python3 -u`"},
    {"--log-dir", kValue, Becomes::kOption, "--output-filename"},
    {"--redirects -r", kValue, Becomes::kSpecial,
     "a note unless it is 0: `--output-filename` writes files, and lines are shown as well"},
    {"--tee -t", kValue, Becomes::kSpecial, "lines are shown with their rank, unless it is 0"},
    {"--local-ranks-filter", kValue, Becomes::kOption, "--ranks"},
    {"--logs-specs", kValue, Becomes::kNote, "has no counterpart here"},
    {"--numa-binding", kValue, Becomes::kSpecial, "`--bind-to numa`"},
    {"--signals-to-handle", kValue, Becomes::kNothing,
     "SIGTERM, SIGINT, SIGHUP and SIGQUIT end the job"},
    {"--shutdown-timeout", kValue, Becomes::kOption, "--grace"},
    {"--verbose", kNothing, Becomes::kOption, "--verbose"},
    {"--quiet -q", kNothing, Becomes::kOption, "--quiet"},
};

}  // namespace

const Grammar& torchrunGrammar() {
  static constexpr Grammar kGrammar{"torchrun", "--nproc-per-node 2", kTorchrunFlags, false, true,
                                    true};
  return kGrammar;
}

}  // namespace farandole::compat

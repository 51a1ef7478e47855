#include "base/text.h"
#include "init/scripts.h"

namespace farandole::init {
namespace {

constexpr const char* kText = R"md(# A cluster for farandole

Written by `farandole init`; running it again changes nothing that is right already.

| machine | ranks | address | sshd port |
|---|---|---|---|
| launcher | @LAUNCHER_SLOTS@ | @LAUNCHER@ | none: its ranks start without ssh |
@ROWS@
## 1. Bring each worker its files

`farandole init … --push` does it for all workers. By hand, from this folder:

```sh
@COPIES@```

On a worker's machine (and here) the files must belong to user @UID@, whose name in the container is @USER@:

```sh
sudo chown -R @UID@:@GID@ ssh_worker workload     # on a worker
sudo chown -R @UID@:@GID@ ssh_launcher workload   # on the launcher
```

The port must be open, for example: `sudo ufw allow @PORT@/tcp`. Farandole's own data connections use further ports between the
machines, so open the machines to each other.

## 2. Start the workers

```sh
@STARTS@```

With `-d` after `./run-worker.sh` it runs in the background; its log: `@ENGINE@ logs farandole-NAME`. The same with compose:
`docker compose up -d NAME` (or `docker-compose`, from 1.28 on).

## 3. Check, then run

```sh
ssh -F ssh_launcher/config @FIRST@ true && echo ssh works
farandole init --dir . --verify
./run-launcher.sh -np @NP@ python3 train.py
./run-launcher.sh -np @NP@ conda run --no-capture-output -n ENVIRONMENT python3 train.py
```

`workload/` is `/tests` in every container and the current folder of the command; put the scripts there on every machine.

## What is here

- `ssh_launcher/` becomes `~/.ssh` of the launcher's container: the private key `@KEY@`, `config`, and `known_hosts`,
  which knows all workers beforehand. No question is ever asked, and a host with another key is refused.
- `ssh_worker/NAME/` becomes `~/.ssh` of the container of worker NAME. Each worker has host keys of its own, in a folder of
  its own, so that a machine holds no other machine's private keys and none can pass for another. The folder has the same
  path on every machine, so scripts and compose file are the same everywhere. A worker's folder that was copied to `ssh_worker/`
  itself works too.
- `workload/hostfile`: the launcher, then the workers by the names in `ssh_launcher/config`, with their ranks.
- `run-worker.sh`, `run-launcher.sh`, `docker-compose.yml`: containers on the host's network. To the scripts a missing folder
  is an error; it does not become an empty one. `FARANDOLE_IMAGE`, `FARANDOLE_ENGINE`, `FARANDOLE_HOME` (where bin/farandole is) and
  `FARANDOLE_MEMLOCK` (bytes that may be locked, where -1 is not permitted) override what is written in them.

Private keys have mode 600 and are never overwritten, `authorized_keys` is only ever added to. Keep `ssh_launcher/` to yourself.
)md";

std::string target(const Worker& worker) {
  return worker.address.find(':') == std::string::npos ? worker.address
                                                       : "[" + worker.address + "]";
}

}  // namespace

std::string readmeText(const ClusterSpec& spec, const std::string& identityName) {
  std::string rows;
  std::string copies;
  std::string starts;
  int ranks = spec.launcherSlots;
  for (const Worker& worker : spec.workers) {
    ranks += worker.slots;
    rows += fillTemplate("| @NAME@ | @SLOTS@ | @ADDRESS@ | @PORT@ |\n",
                         {{"NAME", worker.name},
                          {"SLOTS", std::to_string(worker.slots)},
                          {"ADDRESS", worker.address},
                          {"PORT", std::to_string(worker.port)}});
    copies += fillTemplate(
        "ssh @ADDRESS@ mkdir -p farandole/ssh_worker\n"
        "scp -rp ssh_worker/@NAME@ '@TARGET@:farandole/ssh_worker/'\n"
        "scp -rp workload run-worker.sh docker-compose.yml '@TARGET@:farandole/'\n",
        {{"NAME", worker.name}, {"ADDRESS", worker.address}, {"TARGET", target(worker)}});
    starts += fillTemplate("cd farandole && ./run-worker.sh @NAME@   # on @ADDRESS@\n",
                           {{"NAME", worker.name}, {"ADDRESS", worker.address}});
  }
  return fillTemplate(kText,
                      {{"LAUNCHER_SLOTS", std::to_string(spec.launcherSlots)},
                       {"LAUNCHER", spec.launcher},
                       {"ROWS", rows},
                       {"COPIES", copies},
                       {"STARTS", starts},
                       {"UID", std::to_string(spec.uid)},
                       {"GID", std::to_string(spec.gid)},
                       {"USER", spec.user},
                       {"PORT", std::to_string(spec.workers.front().port)},
                       {"ENGINE", spec.runtime == ContainerRuntime::kPodman ? "podman" : "docker"},
                       {"FIRST", spec.workers.front().name},
                       {"NP", std::to_string(ranks)},
                       {"KEY", identityName}});
}

}  // namespace farandole::init

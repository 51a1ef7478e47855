#!/usr/bin/env python3
"""cases.py FOLDER [CASE...]: the cases of README.md, on hosts and images that tests/containers/run has made."""

from __future__ import annotations

import subprocess
import sys
import time
import traceback
from datetime import datetime
from pathlib import Path
from typing import Callable

from trial import PORT, Failed, Host, Outcome, Trial

TRAINED = r"rank \d of \d trained as one alone"
PLAIN = "FARANDOLE_TENSORFLOW_OPS=plain"
TF = "/opt/tf/bin/python"
# On a busy machine one rank may still import its framework when another has waited for a minute.
PATIENT = ("--start-timeout", "300")

Case = Callable[[Trial], None]
CASES: list[tuple[str, str, Case]] = []


def case(name: str, what: str) -> Callable[[Case], Case]:
    def add(function: Case) -> Case:
        CASES.append((name, what, function))
        return function

    return add


def trained(outcome: Outcome, ranks: int) -> None:
    outcome.expect(0).expect_count(ranks, TRAINED)


def use_scripts(trial: Trial, here: str, there: str) -> None:
    worker, launcher = trial.worker, trial.launcher
    try:
        worker.run("env", *trial.memlock, "./run-worker.sh", "-d", "worker1", folder=f"/root/{there}").expect(0)
        worker.wait_for_log("farandole-worker1", "Server listening")
        command = str(trial.tree / "bin/farandole")
        verified = launcher.run(command, "init", "--dir", f"/root/{here}", "--verify")
        verified.expect(0, "allreduce on 2 hosts gives the right sums")
        job = (*PATIENT, "-np", "3", "python3", "mlp.py")
        trained(launcher.run("env", *trial.memlock, "./run-launcher.sh", *job, folder=f"/root/{here}"), 3)
    finally:
        worker.docker("stop", "farandole-worker1")


@case("init-scripts", "init's run-worker.sh, --verify, run-launcher.sh: training on 1+2 ranks")
def init_scripts(trial: Trial) -> None:
    use_scripts(trial, "cluster", "farandole")


@case("init-root", "the same with init --user root")
def init_root(trial: Trial) -> None:
    trial.make_cluster("root", "cluster-root", "farandole-root")
    use_scripts(trial, "cluster-root", "farandole-root")


@case("init-compose", "init's docker-compose.yml with docker-compose: training on 1+2 ranks")
def init_compose(trial: Trial) -> None:
    worker, launcher = trial.worker, trial.launcher
    compose = ["env", *trial.memlock, "docker-compose"]
    try:
        worker.run(*compose, "up", "-d", "worker1", folder="/root/farandole").expect(0)
        worker.wait_for_log("farandole-worker1", "Server listening")
        trained(launcher.run(*compose, "run", "--rm", "launcher", *PATIENT, "-np", "3", "python3", "mlp.py", folder="/root/cluster"), 3)
    finally:
        worker.run(*compose, "--profile", "worker", "down", folder="/root/farandole")


@case("training", "broadcast_parameters and DistributedOptimizer as one rank alone: 1+2, 2+1, 2+2 ranks")
def training(trial: Trial) -> None:
    with trial.pair() as job:
        for here, there in ((1, 2), (2, 1), (2, 2)):
            trained(job.run(*PATIENT, "-H", f"localhost:{here},worker1:{there}", "python3", "mlp.py"), here + there)


@case("tf-compiled", "the pushed tree alone: TensorFlow's operations are compiled in the worker, and used")
def tf_compiled(trial: Trial) -> None:
    with trial.pair() as job:
        listing = ("exec", "worker1", "find", "/home/dev/.cache", "/usr", "/opt", "-name", "farandole*", "-o", "-name", "libfarandole*")
        if trial.worker.docker(*listing).out:
            raise Failed("the worker's image has something of Farandole")
        outcome = job.run(*PATIENT, "-H", "localhost:1,worker1:1", "--push", TF, "tf_train.py").expect(0)
        used = outcome.find(r"rank 1 of 2 trained with compiled operations (/home/dev/\.cache/farandole/tensorflow-\S+\.so)")
        trial.worker.docker("exec", "worker1", "test", "-s", used).expect(0)
        outcome.expect_count(2, r"trained with compiled operations")


@case("tf-mixed", "a worker without a compiler: all ranks agree on plain operations and train")
def tf_mixed(trial: Trial) -> None:
    with trial.pair(image="trial/no-compiler") as job:
        outcome = job.run(*PATIENT, "-H", "localhost:1,worker1:2", TF, "tf_train.py")
        outcome.expect(0, "no compiled operations on rank 1: there is no C").expect_count(3, "trained with plain operations")


@case("tf1-hook", "a script of TensorFlow 1 with BroadcastGlobalVariablesHook, plain operations: 1 and 1+1 ranks")
def tf1_hook(trial: Trial) -> None:
    with trial.pair() as job:
        job.run("-np", "1", "--env", PLAIN, TF, "tf1_hook.py").expect(0, "rank 0 of 1 trained in a session")
        job.run(*PATIENT, "-H", "localhost:1,worker1:1", "--env", PLAIN, TF, "tf1_hook.py").expect(0).expect_count(
            2, r"rank \d of 2 trained in a session"
        )


def container_seconds(host: Host, *options: str) -> float:
    """How long a container with a small job as its process 1 lives, by dockerd's clock."""
    words = ["docker", "run", "--name", "one", "--volume", "/root/cluster/workload:/tests", "--workdir", "/tests"]
    try:
        job = ["trial/ready", "farandole", "run", "-np", "2", "python3", "total.py"]
        outcome = host.run(*words, *options, *job).expect(0, "rank 0 has the total", "rank 1 has the total")
        outcome.expect_not("guardian", "warning", "left behind")
        times = [host.inspect("one", f".State.{each}")[:26] for each in ("StartedAt", "FinishedAt")]
        begin, end = (datetime.fromisoformat(each.rstrip("Z")) for each in times)
        return (end - begin).total_seconds()
    finally:
        host.remove("one")


@case("process-1", "farandole run as process 1: nothing said, as quick as under --init; zombies are reaped")
def process_one(trial: Trial) -> None:
    host = trial.launcher
    own, under_init = [], []
    # What was once wrong here took five seconds and more, every time. The best of several is not disturbed by others.
    for _ in range(8):
        own.append(container_seconds(host))
        under_init.append(container_seconds(host, "--init"))
        if len(own) >= 3 and min(own) <= min(under_init) + 1.5:
            break
    else:
        raise Failed(f"as process 1 it takes {own} s, under --init {under_init} s")
    trial.log.add(f"seconds as process 1: {own}; under --init: {under_init}")
    words = ["run", "--rm", "--volume", "/root/cluster/workload:/tests", "--workdir", "/tests", "trial/ready"]
    host.docker(*words, "farandole", "run", "-np", "2", "python3", "orphans.py").expect(0).expect_count(2, "no zombies")


@case("process-1-hosts", "the same with ranks in another container: 1+2 ranks")
def process_one_with_hosts(trial: Trial) -> None:
    with trial.pair():
        words = ["run", "--rm", "--network", "host", "--user", "1000", "--workdir", "/tests"]
        words += ["--volume", "/root/cluster/ssh_launcher:/home/dev/.ssh", "--volume", "/root/cluster/workload:/tests"]
        job = ("farandole", "run", "-H", "localhost:1,worker1:2", "python3", "total.py")
        outcome = trial.launcher.docker(*words, "trial/ready", *job).expect(0).expect_count(3, "has the total")
        outcome.expect_not("guardian", "warning", "left behind")


@case("one-network", "two containers of one machine on a network of docker's, found by their names: 1+2 ranks")
def one_network(trial: Trial) -> None:
    host = trial.launcher
    home = "/home/dev/.ssh"
    host.docker("network", "create", "jobs").expect(0)
    common = ["docker", "run", "--detach", "--user", "1000", "--network", "jobs", "--workdir", "/tests",
              "--volume", "/root/cluster/workload:/tests"]
    try:
        ssh = ("/usr/sbin/sshd", "-D", "-e", "-f", f"{home}/sshd_config")
        host.run(*common, "--name", "beta", "--volume", f"/root/cluster/ssh_worker/worker1:{home}", "trial/train", *ssh).expect(0)
        # Its host key is known under another name: a new user trusts what is seen for the first time.
        keys = f"/root/cluster/ssh_launcher:{home}"
        host.run(*common, "--name", "launcher", "--volume", keys, "trial/ready", "sleep", "infinity").expect(0)
        host.wait_for_log("beta", "Server listening")
        words = ("docker", "exec", "launcher", "farandole")
        job = ("-H", "localhost:1,beta:2", "-p", str(PORT), "--accept-new-host-keys")
        host.run(*words, "doctor", *job).expect(0, "2 of 2 directions work")
        trained(host.run(*words, "run", *PATIENT, *job, "python3", "mlp.py"), 3)
    finally:
        for each in ("launcher", "beta"):
            host.remove(each)
        host.docker("network", "rm", "jobs")


@case("docker-stop", "docker stop and docker kill -s INT of farandole run as process 1: 143 and 130, before docker's own SIGKILL")
def docker_stop(trial: Trial) -> None:
    host = trial.launcher
    for words, code in ((("stop", "--time", "10"), 143), (("kill", "--signal", "INT"), 130)):
        try:
            host.docker(
                "run", "--detach", "--name", "one", "--volume", "/root/cluster/workload:/tests", "--workdir", "/tests",
                "trial/ready", "farandole", "run", *PATIENT, "-np", "2", "python3", "mlp.py", "--seconds", "300",
            ).expect(0)
            host.wait_for_log("one", "under way")
            begin = time.monotonic()
            host.docker(*words, "one").expect(0)
            host.docker("wait", "one")
            took = time.monotonic() - begin
            got = host.inspect("one", ".State.ExitCode")
            said = host.docker("logs", "one")
            if got != str(code):
                raise Failed(f"docker {words[0]}: exit code {got} after {took:.1f} s, expected {code}")
            said.expect_not("guardian", "does not die")
        finally:
            host.remove("one")


@case("same-address", "two containers that are both 172.17.0.2: doctor and run say so, and what they say to type works")
def same_address(trial: Trial) -> None:
    hosts = ("-H", "localhost:1,worker1:1")
    script = ("python3", "mlp.py")
    with trial.pair(network=()) as job:
        own = [host.inspect(name, ".NetworkSettings.IPAddress") for host, name in zip(trial.hosts, ("launcher", "worker1"))]
        if len(set(own)) != 1:
            raise Failed(f"the containers have different addresses: {own}")
        seen = job.farandole("doctor", *hosts).expect(2).expect_not("directions work")
        # On one port of the range both listen, and each finds itself.
        ports = seen.find(r"--data-ports (\d+-\d+)")
        itself = job.farandole("doctor", *hosts, "--port-range", ports).expect(2, f"{own[0]} leads to localhost itself")
        itself.expect_not("directions work")
        said = job.run(*hosts, *script).expect(None, f"same address {own[0]}")
    for advice in (seen, itself, said):
        published = advice.find(r"docker run -p (\d+-\d+:\d+-\d+)")
        advertise = advice.find(r"--advertise (\S+?=\S+)")
        ports = advice.find(r"--data-ports (\d+-\d+)")
        with trial.pair(network=("--publish", published)) as job:
            if advice is seen:
                job.farandole("doctor", *hosts, "--port-range", ports).expect(0, "2 of 2 directions work", f"--advertise {advertise}")
            trained(job.run(*PATIENT, *hosts, "--advertise", advertise, "--data-ports", ports, *script), 2)


@case("killed-container", "docker kill of the worker: all its ranks are named")
def killed_container(trial: Trial) -> None:
    with trial.pair() as job:
        running = job.start(*PATIENT, "-H", "localhost:1,worker1:2", "python3", "mlp.py", "--seconds", "300")
        try:
            running.wait_for("under way")
            trial.worker.docker("kill", "worker1").expect(0)
            outcome = running.finish().expect(None, "first cause: ranks 1, 2 on worker1 are out of reach")
            outcome.expect(None, r"the others at that moment:\n    rank 0:")
        finally:
            running.kill()
        job.expect_nothing_left(worker=False)


@case("missing-files", "a script or folder that the worker does not have is named before a rank starts")
def missing_files(trial: Trial) -> None:
    with trial.pair() as job:
        hosts = ("-H", "localhost:1,worker1:1")
        write = "from pathlib import Path; Path('{}').write_text('print(\"a rank runs\")')"
        trial.launcher.docker("exec", "launcher", "python3", "-c", write.format("/tmp/only_here.py")).expect(0)
        outcome = job.run(*hosts, "python3", "/tmp/only_here.py").expect(None, "worker1", "/tmp/only_here.py")
        outcome.expect_not("a rank runs")
        trial.launcher.docker("exec", "launcher", "mkdir", "/tmp/only-here").expect(0)
        outcome = job.run(*hosts, "--wdir", "/tmp/only-here", "python3", "-c", "print('a rank runs')")
        outcome.expect(None, "worker1", "/tmp/only-here").expect_not("a rank runs")


@case("pause", "docker pause of all containers for 12 s: the job goes on")
def pause(trial: Trial) -> None:
    with trial.pair() as job:
        running = job.start(*PATIENT, "-H", "localhost:1,worker1:2", "python3", "mlp.py", "--seconds", "6")
        try:
            running.wait_for("under way")
            both = list(zip(trial.hosts, ("launcher", "worker1")))
            for host, container in both:
                host.docker("pause", container).expect(0)
            time.sleep(12)
            for host, container in both:
                host.docker("unpause", container).expect(0)
            outcome = running.finish()
        finally:
            for host, container in both:
                host.docker("unpause", container, quiet=True)
            running.kill()
        trained(outcome, 3)
        job.expect_nothing_left()


@case("small-shm", "a container's default limits, /dev/shm of 64 MB: arrays of 128 MiB are summed")
def small_shm(trial: Trial) -> None:
    words = ["run", "--rm", "--volume", "/root/cluster/workload:/tests", "--workdir", "/tests", "trial/ready"]
    outcome = trial.launcher.docker(*words, "farandole", "run", "-np", "2", "python3", "large.py")
    outcome.expect(0).expect_count(2, "summed 128 MiB with a /dev/shm of 64 MiB")


def main() -> int:
    folder, wanted = Path(sys.argv[1]), sys.argv[2:]
    known = [name for name, _, _ in CASES]
    for name in wanted:
        if name not in known:
            print(f"no case {name}; there are: {' '.join(known)}", file=sys.stderr)
            return 2
    trial = Trial(folder)
    trial.log.begin("init")
    trial.make_cluster("dev", "cluster", "farandole")
    failed = 0
    for name, what, function in CASES:
        if wanted and name not in wanted:
            continue
        trial.log.begin(name)
        begin = time.monotonic()
        try:
            function(trial)
        except (Failed, subprocess.SubprocessError, OSError) as error:
            failed += 1
            print(f"FAILED  {name:<16} {what} ({time.monotonic() - begin:.0f} s)\n  {error}")
            trial.log.add(traceback.format_exc())
            print("\n".join("  | " + line for line in trial.log.part().splitlines()[-120:]), flush=True)
        else:
            print(f"ok      {name:<16} {what} ({time.monotonic() - begin:.0f} s)", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

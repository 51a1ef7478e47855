#include "process/spawn.h"

#include <fcntl.h>
#include <linux/sched.h>
#include <sched.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <fstream>
#include <memory>
#include <string>

#include "base/fd.h"
#include "process/process_limits.h"

namespace farandole::process {
namespace {

std::vector<char*> pointers(const std::vector<std::string>& strings) {
  std::vector<char*> result;
  result.reserve(strings.size() + 1);
  for (const std::string& text : strings) result.push_back(const_cast<char*>(text.c_str()));
  result.push_back(nullptr);
  return result;
}

// When memory runs out, the kernel should kill a rank: ranks hold the memory, and only the launcher
// can report what has happened. But the kernel attributes shared memory to no process. So every
// rank counts for this share of the memory of its machine, in thousandths, in addition.
constexpr int kGoesFirst = 100;

constexpr char kOomScore[] = "/proc/self/oom_score_adj";

// What is to be written there for a rank, which then passes it on to its children.
std::string oomScoreOfRank() {
  int own = 0;
  std::ifstream(kOomScore) >> own;
  return std::to_string(std::min(own + kGoesFirst, 1000));
}

// Called in the vfork child. A failure (no /proc, or a read-only one) does not keep it from
// running.
void setOomScore(const std::string& score) {
  const int fd = ::open(kOomScore, O_WRONLY | O_CLOEXEC);
  if (fd < 0) return;
  [[maybe_unused]] const ssize_t n = ::write(fd, score.data(), score.size());
  ::close(fd);
}

struct Child {
  const SpawnRequest& request;
  char* const* argv;
  char* const* envp;
  pid_t parent;
  int errorFd;
  cpu_set_t cpus;
  std::string oomScore;  // empty: as ours
};

void takeMarks(const JobMarks& marks) {
  if (marks.lockLimit() != 0) {
    const rlimit locks{marks.lockLimit(), marks.lockLimit()};
    ::setrlimit(RLIMIT_LOCKS, &locks);
  }
  if (marks.groupTasks() >= 0) [[maybe_unused]]
    const ssize_t n = ::write(marks.groupTasks(), "0", 1);
}

// Runs in the vfork child, on the parent's memory: system calls only, and no return.
[[noreturn]] void becomeRank(const Child& child) {
  const SpawnRequest& request = child.request;
  ::setpgid(0, 0);
  // First line of defence against orphans; the guardian is the second.
  if (request.diesWithUs) ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (request.diesWithUs && ::getppid() != child.parent) ::_exit(1);
  if (request.marks != nullptr) takeMarks(*request.marks);
  if (::dup2(request.stdinFd, 0) == 0 && ::dup2(request.stdoutFd, 1) == 1 &&
      ::dup2(request.stderrFd, 2) == 2) {
    ::setrlimit(RLIMIT_NOFILE, &request.files);
    if (!child.oomScore.empty()) setOomScore(child.oomScore);
    if (CPU_COUNT(&child.cpus) > 0) ::sched_setaffinity(0, sizeof(child.cpus), &child.cpus);
    ::sigaction(SIGPIPE, &request.signals.pipe, nullptr);
    ::sigprocmask(SIG_SETMASK, &request.signals.mask, nullptr);
    ::execve(request.program.c_str(), child.argv, child.envp);
  }
  const int error = errno;
  [[maybe_unused]] const ssize_t n = ::write(child.errorFd, &error, sizeof(error));
  ::_exit(127);
}

void enter(void* child) { becomeRank(*static_cast<const Child*>(child)); }

#if defined(FARANDOLE_ASAN) || defined(FARANDOLE_TSAN)
#define FARANDOLE_CHILD_HAS_OWN_MEMORY  // sanitizers know the stacks of threads only
#elif !defined(__x86_64__) && !defined(__aarch64__)
#define FARANDOLE_CHILD_HAS_OWN_MEMORY
#endif

// As vfork, but the child begins its life in a control group: to move it there later would cost
// every fork of the machine a moment. glibc has no function for it. A negative result: refused.
pid_t vforkInto(int group, Child& child) {
  clone_args args{};
  args.flags = CLONE_VFORK | CLONE_INTO_CGROUP;
  args.exit_signal = SIGCHLD;
  args.cgroup = static_cast<std::uint64_t>(group);
#ifdef FARANDOLE_CHILD_HAS_OWN_MEMORY
  const long pid = ::syscall(SYS_clone3, &args, sizeof(args));
  if (pid == 0) enter(&child);
  return static_cast<pid_t>(pid);
#else
  // On a stack of its own, from which it never returns: it cannot disturb ours.
  constexpr std::size_t kStack = std::size_t{64} << 10;
  const auto stack = std::make_unique_for_overwrite<std::uint64_t[]>(kStack / 8 + 2);
  args.flags |= CLONE_VM;
  args.stack = (reinterpret_cast<std::uintptr_t>(stack.get()) + 15) & ~std::uintptr_t{15};
  args.stack_size = kStack;
  void (*const entry)(void*) = enter;
#if defined(__x86_64__)
  long pid = SYS_clone3;
  asm volatile(
      "syscall\n\t"
      "test %%rax, %%rax\n\t"
      "jnz 1f\n\t"
      "mov %[child], %%rdi\n\t"
      "call *%[entry]\n\t"
      "ud2\n"
      "1:"
      : "+a"(pid)
      : "D"(&args), "S"(sizeof(args)), [entry] "r"(entry), [child] "r"(&child)
      : "rcx", "r11", "cc", "memory");
#else
  register long number asm("x8") = SYS_clone3;
  register long pid asm("x0") = reinterpret_cast<long>(&args);
  register long size asm("x1") = sizeof(args);
  asm volatile(
      "svc #0\n\t"
      "cbnz x0, 1f\n\t"
      "mov x0, %[child]\n\t"
      "blr %[entry]\n\t"
      "brk #1\n"
      "1:"
      : "+r"(pid)
      : "r"(number), "r"(size), [entry] "r"(entry), [child] "r"(&child)
      : "cc", "memory");
#endif
  return static_cast<pid_t>(pid);
#endif
}

}  // namespace

Result<pid_t> spawnProcess(const SpawnRequest& request) {
  const std::vector<char*> argv = pointers(request.arguments);
  const std::vector<char*> envp = pointers(request.environment);
  // A pipe rather than a shared variable: tools that turn vfork into fork (sanitizers) still work.
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return Status::fromErrno("cannot create a pipe", errno);
  UniqueFd readEnd(ends[0]);
  UniqueFd writeEnd(ends[1]);
  Child child{request,
              argv.data(),
              envp.data(),
              ::getpid(),
              writeEnd.get(),
              {},
              request.goesFirst ? oomScoreOfRank() : std::string()};
  for (const int cpu : request.cpus == nullptr ? std::vector<int>() : *request.cpus) {
    if (cpu >= 0 && cpu < CPU_SETSIZE) CPU_SET(cpu, &child.cpus);
  }
  const int group = request.marks == nullptr ? -1 : request.marks->groupFolder();
  pid_t pid = group < 0 ? -1 : vforkInto(group, child);
  if (pid < 0) {
    // vfork costs the same however large this process is; fork copies its page tables.
    pid = ::vfork();
    if (pid == 0) becomeRank(child);
    if (pid < 0) return cannotStartProcess("cannot create a process", errno);
  }
  writeEnd.reset();
  int error = 0;
  ssize_t n = 0;
  do {
    n = ::read(readEnd.get(), &error, sizeof(error));
  } while (n < 0 && errno == EINTR);
  if (n != static_cast<ssize_t>(sizeof(error))) return pid;
  while (::waitpid(pid, nullptr, 0) < 0 && errno == EINTR) {
  }
  if (error == ENOEXEC) {
    return Status::invalid("'" + request.program +
                           "' is neither a program nor a script with a #! line: name its "
                           "interpreter, for example: sh " +
                           request.program);
  }
  return Status::fromErrno("cannot execute '" + request.program + "'", error);
}

}  // namespace farandole::process

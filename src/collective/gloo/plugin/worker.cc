// GlooCommunicator, the part that runs jobs.
#include <atomic>
#include <exception>
#include <utility>

#include "base/thread.h"
#include "collective/gloo/plugin/communicator.h"
#include "collective/operation.h"

namespace farandole::collective::gloo::plugin {

struct GlooCommunicator::Job {
  std::function<void(std::uint32_t)> work;
  std::uint32_t tag = 0;
  Status status;  // valid once state is not kPending
  std::atomic<Progress> state{Progress::kPending};
};

class GlooCommunicator::JobOperation final : public Operation {
 public:
  JobOperation(std::shared_ptr<Job> job, std::shared_ptr<Shared> shared)
      : job_(std::move(job)), shared_(std::move(shared)) {}
  // The memory of the operation may go with it: nothing may use it any more.
  ~JobOperation() override {
    if (job_->state.load() != Progress::kPending) return;
    shared_->fail(Status(Code::kCancelled, "an operation was given up before its end"));
    job_->state.wait(Progress::kPending);
  }
  Progress progress() override { return job_->state.load(std::memory_order_acquire); }
  bool moved() const override { return false; }
  const Status& status() const override {
    static const Status ok;
    return job_->state.load(std::memory_order_acquire) == Progress::kFailed ? job_->status : ok;
  }

 private:
  const std::shared_ptr<Job> job_;
  const std::shared_ptr<Shared> shared_;
};

GlooCommunicator::GlooCommunicator(GlooOptions options)
    : shared_(std::make_shared<Shared>(options)),
      me_(options.me),
      size_(static_cast<int>(options.ranks.size())),
      algorithm_(options.algorithm),
      wake_(std::move(options.wake)),
      other_(std::move(options.other)),
      context_(std::make_shared<Context>(shared_, me_, size_)) {
  shared_->watch();
  auto thread = startThread("farandole-gloo", [this] { run(); });
  notStarted_ = thread.status();
  if (thread.ok()) thread_ = std::move(thread).value();
}

GlooCommunicator::~GlooCommunicator() {
  shared_->unwatch();
  {
    const std::lock_guard lock(mutex_);
    over_ = true;
    changed_.notify_all();
  }
  shared_->fail(Status(Code::kShutdown, "the communicator was closed"));
  if (thread_.joinable()) thread_.join();
}

OperationPtr GlooCommunicator::start(std::function<void(std::uint32_t)> work) {
  if (!notStarted_.ok()) return makeEnded(notStarted_);
  auto job = std::make_shared<Job>();
  job->work = std::move(work);
  // All members count alike; Gloo's slots have room for so much of it.
  job->tag = operations_++ & 0xfff;
  {
    const std::lock_guard lock(mutex_);
    next_ = job;
    changed_.notify_all();
  }
  return std::make_unique<JobOperation>(job, shared_);
}

OperationPtr GlooCommunicator::unable(const char* what) const {
  return makeEnded(Status::unavailable(std::string("the gloo engine has no ") + what +
                                       ", and no other engine to leave it to"));
}

void GlooCommunicator::run() {
  const FpModeGuard mode;
  for (;;) {
    std::shared_ptr<Job> job;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [this] { return over_ || next_; });
      job = std::exchange(next_, nullptr);
      if (!job) return;
    }
    Status status;
    {
      const std::lock_guard lock(shared_->mutex);
      status = shared_->failure;
    }
    if (status.ok()) {
      try {
        job->work(job->tag);
      } catch (const std::exception& error) {
        const std::lock_guard lock(shared_->mutex);
        // Gloo's text is about this failure, or it is the failure.
        if (shared_->failure.ok()) {
          shared_->failure = Status::internal(std::string("gloo: ") + error.what());
        }
        status = shared_->failure;
      }
    }
    job->work = nullptr;
    job->status = status;
    const bool ok = status.ok();
    if (!ok) shared_->announce();
    job->state.store(ok ? Progress::kDone : Progress::kFailed, std::memory_order_release);
    job->state.notify_all();
    if (wake_) wake_();
  }
}

}  // namespace farandole::collective::gloo::plugin

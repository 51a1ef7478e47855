#include "unit/conductor/fake_control.h"

namespace farandole::test {
namespace {

std::string show(const control::PlanId& plan) {
  return std::to_string(plan.index) + "." + std::to_string(plan.generation);
}

std::string show(const control::Announce& m) {
  return "announce " + m.name + (m.shared ? " shared" : "");
}
std::string show(const control::Repeat& m) {
  return "repeat " + show(m.plan) + (m.shared ? " shared" : "");
}
std::string show(const control::Join&) { return "join"; }
std::string show(const control::Withdraw& m) { return "withdraw " + m.name; }
std::string show(const control::Retract& m) { return "retract " + m.name; }

std::string show(const control::Define& m) { return "define " + show(m.plan) + " " + m.name; }
std::string show(const control::Batch& m) {
  std::string text = "batch";
  for (const auto& plan : m.plans) text += " " + show(plan);
  return text;
}
std::string show(const control::Refuse& m) { return "refuse " + m.name; }
std::string show(const control::Joined& m) { return "joined " + std::to_string(m.last); }
std::string show(const control::Resend& m) { return "resend " + show(m.plan); }
std::string show(const control::Withdrawn& m) { return "withdrawn " + m.name; }
std::string show(const control::Abort& m) { return "abort " + m.text; }

template <typename Message>
std::vector<std::string> showAll(const std::vector<std::vector<std::byte>>& records, int members) {
  std::vector<std::string> all;
  for (const auto& record : records) {
    Message message;
    all.push_back(control::decode(record, members, message)
                      ? std::visit([](const auto& m) { return show(m); }, message)
                      : "nonsense");
  }
  return all;
}

}  // namespace

std::vector<std::string> told(const FakeControl& control, int members) {
  return showAll<control::Submission>(control.submitted, members);
}
std::vector<std::string> logged(const FakeControl& control, int members) {
  return showAll<control::LogEntry>(control.appended, members);
}

}  // namespace farandole::test

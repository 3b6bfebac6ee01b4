// What does a term of parallel training mean, with the numbers of this plan?
#pragma once

#include <string>
#include <vector>

#include "cost/kernel_time.h"
#include "result/report.h"

namespace rehearse {

// The run that is explained.
struct Explained {
  const Report& report;
  const Work& work;
  const Schedule& schedule;
  std::vector<KernelTime> kernels = {};  // of `stage`, the one with the longest compute time
  int stage = 0;
};

struct Topic {
  std::string name;
  std::string question;
  std::string (*text)(const Explained&);
};
const std::vector<Topic>& topics();

// The text of a topic; InputError with the nearest name when there is no such topic.
std::string explain(const std::string& topic, const Explained& run);

// One function a topic; each text cites its source.
std::string explain_bubble(const Explained& run);
std::string explain_schedule(const Explained& run);
std::string explain_messages(const Explained& run);
std::string explain_tensor(const Explained& run);
std::string explain_experts(const Explained& run);
std::string explain_batch(const Explained& run);
std::string explain_flops(const Explained& run);
std::string explain_memory(const Explained& run);
std::string explain_recompute(const Explained& run);
std::string explain_zero(const Explained& run);
std::string explain_kernels(const Explained& run);

}  // namespace rehearse

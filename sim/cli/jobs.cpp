#include "cli/jobs.h"

#include <algorithm>
#include <thread>

namespace rehearse {

namespace {

constexpr int kMaxJobs = 4096;

}  // namespace

VerbOption jobs_option(int& jobs, const std::string& what) {
  return {{"--jobs", "-j"}, &jobs, what + "; default: all cores", "N", {}, {{1, kMaxJobs}}};
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace rehearse

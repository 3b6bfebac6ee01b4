#include "cli/jobs.h"

#include <algorithm>
#include <CLI/CLI.hpp>
#include <thread>

namespace rehearse {

namespace {

constexpr int kMostJobs = 4096;

}  // namespace

CLI::Option* add_jobs_flag(CLI::App& verb, int& jobs, const std::string& what) {
  return verb.add_option("--jobs,-j", jobs, what + "; default: all cores")
      ->option_text("N")
      ->check(CLI::Range(1, kMostJobs));
}

int jobs_or_cores(int jobs) {
  return jobs > 0 ? jobs : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace rehearse

#include "search/order/run_apart.h"

#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>

namespace rehearse {

namespace {

double step_time(Experiment experiment) {
  experiment.with_split = experiment.with_band = experiment.with_reserved = false;
  experiment.conditions.iterations = 1;
  return run_iteration(experiment).report.step_time_s;
}

}  // namespace

std::optional<double> step_time_apart(const Experiment& experiment) {
  if (experiment.engine == Engine::reference) return step_time(experiment);
  std::array<int, 2> ends{};
  if (pipe(ends.data()) != 0) return std::nullopt;
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(1);
    close(ends[0]);
    try {
      const double seconds = step_time(experiment);
      _exit(write(ends[1], &seconds, sizeof seconds) == sizeof seconds ? 0 : 1);
    } catch (...) {
      _exit(1);
    }
  }
  close(ends[1]);
  double seconds = 0;
  const bool came = process > 0 && read(ends[0], &seconds, sizeof seconds) == sizeof seconds;
  close(ends[0]);
  while (process > 0 && waitpid(process, nullptr, 0) < 0 && errno == EINTR) {
  }
  return came ? std::optional(seconds) : std::nullopt;
}

}  // namespace rehearse

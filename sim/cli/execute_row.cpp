#include "cli/execute_row.h"

#include <fmt/core.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

#include "base/text_file.h"
#include "cli/temporary_file.h"

namespace rehearse {

namespace {

// Paths in a scenario file are relative to it. Paths in flags, and in the executed scenario (a stream), are
// relative to the working directory.
Json self_contained(const ScenarioSource& source) {
  Json json = source.json;
  const auto lead = [&](Json& named, const std::string& pointer) {
    const std::string name = named.is_string() ? named.get<std::string>() : "";
    if (is_path(name) && !source.flag_of.contains(pointer)) named = (folder_of(source.file) / name).string();
  };
  for (const char* key : {"model", "cluster", "profile"})
    if (json.contains(key)) lead(json[key], std::string("/") + key);
  if (json.contains("plan") && json["plan"].contains("schedule"))
    lead(json["plan"]["schedule"], "/plan/schedule");
  return json;
}

// Exit status of a new process of this program with these words. It ends with its parent.
int run(const std::vector<std::string>& words, const TemporaryFile& out, const TemporaryFile& err) {
  std::vector<char*> arguments;
  for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
  arguments.push_back(nullptr);
  const pid_t parent = getpid(), process = fork();
  if (process == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent || dup2(out.handle(), STDOUT_FILENO) < 0 || dup2(err.handle(), STDERR_FILENO) < 0)
      _exit(1);
    execv("/proc/self/exe", arguments.data());
    _exit(1);
  }
  int status = -1;
  while (process > 0 && waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  return status;
}

// The report of the executed scenario; std::runtime_error with its error output when it fails.
Json execute(const Json& scenario, const ExecuteRows& options) {
  const TemporaryFile given(scenario.dump()), out, err;
  const int status = run({"rehearse", "execute", fmt::format("/proc/self/fd/{}", given.handle()), "--device",
                          options.device, "--warmup", std::to_string(options.warmup), "--iterations",
                          std::to_string(options.iterations), "--json"},
                         out, err);
  if (status != 0) {
    std::string said = err.contents();
    while (said.ends_with('\n')) said.pop_back();
    throw std::runtime_error(said.empty() ? fmt::format("execute ended with status {}", status) : said);
  }
  return Json::parse(out.contents());
}

Json error_of(double predicted, double executed) {
  return executed > 0 ? Json(predicted / executed - 1) : Json();
}

}  // namespace

std::vector<VerbOption> execute_row_options(ExecuteRows& options) {
  return {{.names = {"--execute"},
           .target = &options.device,
           .help = "execute each row too, one after another; adds executed_* columns to the predicted ones",
           .value = "cpu|cuda",
           .words = {"cpu", "cuda"}},
          {.names = {"--execute-iterations"},
           .target = &options.iterations,
           .help = "measured steps per row",
           .value = "N",
           .bounds = {{1, 100000}},
           .needs = "--execute"},
          {.names = {"--execute-warmup"},
           .target = &options.warmup,
           .help = "warm-up steps per row",
           .value = "N",
           .bounds = {{0, 100000}},
           .needs = "--execute"}};
}

Row with_executed(Row row, const ScenarioSource& source, const ExecuteRows& options) {
  if (!options.wanted() || row.state != RowState::done) return row;
  try {
    if (const std::string precision = row.report.at("plan").at("precision");
        options.device == "cpu" && precision != "fp32")
      throw std::runtime_error(fmt::format(
          "the CPU emulates 16-bit numbers and can be timed in fp32 only: precision = {}; nearest "
          "legal: fp32",
          precision));
    const Json executed = execute(self_contained(source), options);
    Json& report = row.report;
    const double step = executed.at("step_time_s"), bubble = executed.at("bubble_fraction").at("mean");
    report["executed_step_time_s"] = step;
    report["executed_bubble_fraction"] = executed.at("bubble_fraction");
    report["step_time_error"] = error_of(report.at("step_time_s"), step);
    report["bubble_error"] = error_of(report.at("bubble_fraction").at("mean"), bubble);
  } catch (const std::exception& error) {
    return {RowState::failed, error.what(), row.report};
  }
  return row;
}

}  // namespace rehearse

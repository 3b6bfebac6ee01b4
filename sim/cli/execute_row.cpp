#include "cli/execute_row.h"

#include <fmt/format.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>

namespace rehearse {

namespace {

namespace fs = std::filesystem;

// A folder that is gone with this.
class Scratch {
 public:
  Scratch() {
    std::string pattern = fs::temp_directory_path() / "rehearse-row-XXXXXX";
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("cannot make a folder in " + pattern);
    folder_ = pattern;
  }
  ~Scratch() {
    std::error_code ignored;
    fs::remove_all(folder_, ignored);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  fs::path file(const char* name) const { return folder_ / name; }

 private:
  fs::path folder_;
};

// Paths in a scenario file are relative to it, those of flags to the working directory.
Json self_contained(const ScenarioSource& source) {
  Json json = source.json;
  for (const char* key : {"model", "cluster", "profile"}) {
    if (!json.contains(key) || !json[key].is_string()) continue;
    const std::string name = json[key];
    if (name.find('/') == std::string::npos && !name.ends_with(".json")) continue;
    const bool from_flag = source.file.empty() || source.flag_of.contains(std::string("/") + key);
    const fs::path base = from_flag ? fs::current_path() : fs::absolute(source.file).parent_path();
    json[key] = (base / name).lexically_normal().string();
  }
  return json;
}

std::string quoted(const std::string& text) {
  std::string word = "'";
  for (const char letter : text) word += letter == '\'' ? "'\\''" : std::string(1, letter);
  return word + "'";
}

std::string contents(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

// The report of the executed scenario; std::runtime_error with what it said when it fails.
Json execute(const Json& scenario, const ExecuteRows& options) {
  const Scratch scratch;
  std::ofstream(scratch.file("scenario.json")) << scenario.dump();
  const std::string program = fs::read_symlink("/proc/self/exe").string();
  const std::string command =
      fmt::format("{} execute {} --device {} --warmup {} --iterations {} --json >{} 2>{} </dev/null",
                  quoted(program), quoted(scratch.file("scenario.json")), options.device, options.warmup,
                  options.iterations, quoted(scratch.file("out")), quoted(scratch.file("err")));
  const int status = std::system(command.c_str());
  if (status != 0) {
    std::string said = contents(scratch.file("err"));
    while (said.ends_with('\n')) said.pop_back();
    throw std::runtime_error(said.empty() ? fmt::format("execute ended with status {}", status) : said);
  }
  return Json::parse(contents(scratch.file("out")));
}

Json error_of(double predicted, double executed) {
  return executed > 0 ? Json(predicted / executed - 1) : Json();
}

}  // namespace

void add_execute_rows_flags(CLI::App& verb, ExecuteRows& options) {
  CLI::Option* device =
      verb.add_option("--execute", options.device,
                      "execute each row too, one after another: executed_* beside what is predicted")
          ->check(CLI::IsMember({"cpu"}))
          ->option_text("cpu");
  verb.add_option("--execute-iterations", options.iterations, "steps of a row that are counted")
      ->check(CLI::Range(1, 100000))
      ->option_text("N")
      ->needs(device);
  verb.add_option("--execute-warmup", options.warmup, "steps of a row before them")
      ->check(CLI::Range(0, 100000))
      ->option_text("N")
      ->needs(device);
}

Row with_executed(Row row, const ScenarioSource& source, const ExecuteRows& options) {
  if (!options.wanted() || row.state != RowState::done) return row;
  try {
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

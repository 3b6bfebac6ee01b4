#include "validate/runs.h"

#include <fmt/format.h>

#include "base/data_path.h"
#include "base/json_text.h"
#include "base/text_file.h"
#include "validate/switches.h"

namespace rehearse {

namespace {

constexpr std::size_t kMaxCombinations = 256;
constexpr std::size_t kMaxBrokenLines = 20;  // shown at once
constexpr Bounds kRate{Dimension::one, 1e-12, 1e30};
constexpr Bounds kPercent{Dimension::one, 0, 1000};
constexpr Bounds kMeasuredMemory{Dimension::bytes, 1, 1e16};

std::vector<std::string> texts(const JsonReader& object, const std::string& key) {
  std::vector<std::string> all;
  if (!object.has(key)) return all;
  const Json& list = object.value(key);
  if (!list.is_array()) object.fail(key, "must be a list of texts", "found " + list.dump());
  for (const Json& each : list) {
    if (!each.is_string()) object.fail(key, "must be a list of texts", "found " + each.dump());
    all.push_back(each);
  }
  return all;
}

void read_memory(const JsonReader& measured, PublishedRun& run) {
  static const std::map<std::string, Counted> kinds = {{"allocated", Counted::allocated},
                                                       {"reserved", Counted::reserved},
                                                       {"nvidia-smi", Counted::nvidia_smi}};
  if (!measured.has("memory")) return;
  const JsonReader memory = measured.object("memory");
  run.memory_bytes = memory.number("bytes", kMeasuredMemory);
  run.counted = memory.choice("kind", kinds);
  memory.reject_unknown();
}

void read_flops(const JsonReader& measured) {
  if (!measured.has("tflops_per_gpu")) return;
  const JsonReader flops = measured.object("tflops_per_gpu");
  flops.number("value", kRate);
  flops.text("convention");
  flops.reject_unknown();
}

// Tokens of a step over tokens a second, for sources that print no step time.
std::optional<double> seconds_of_rate(const Json& scenario, double tokens_per_s_per_gpu) {
  const auto number = [&](const char* pointer) {
    const Json::json_pointer at(pointer);
    return scenario.contains(at) && scenario.at(at).is_number() ? scenario.at(at).get<double>() : 0.0;
  };
  const double tokens = number("/plan/global_batch") * number("/plan/seq"), gpus = number("/gpus");
  if (tokens <= 0 || gpus <= 0) return std::nullopt;
  return tokens / (tokens_per_s_per_gpu * gpus);
}

void read_measured(const JsonReader& measured, PublishedRun& run) {
  measured.text_or("step_time_from", "");
  if (measured.has("samples_per_s")) measured.number("samples_per_s", kRate);
  for (const char* key : {"mfu_percent", "hfu_percent"})
    if (measured.has(key)) measured.number(key, kPercent);
  if (measured.has("bubble_fraction")) measured.number("bubble_fraction", 0, 1);
  if (measured.has("other")) measured.object("other");  // printed figures that nothing here predicts
  read_flops(measured);
  read_memory(measured, run);
  const double rate =
      measured.has("tokens_per_s_per_gpu") ? measured.number("tokens_per_s_per_gpu", kRate) : 0;
  if (measured.has("step_time_s"))
    run.measured_s = measured.number("step_time_s", physical::kStepTime);
  else if (rate > 0)
    run.measured_s = seconds_of_rate(run.scenario, rate);
  run.out_of_memory = measured.boolean_or("out_of_memory", false);
  if (run.out_of_memory && run.measured_s)
    measured.fail("out_of_memory", "a run that ended out of memory has no step time");
  measured.reject_unknown();
}

// The scenario with every combination of values of its open switches.
std::vector<Json> combinations(const JsonReader& line, const Json& scenario) {
  std::vector<Json> all = {scenario};
  if (!line.has("open")) return all;
  const JsonReader open = line.object("open");
  for (const auto& [pointer, values] : open.json().items()) {
    const std::optional<Switch> at = switch_at(pointer);
    if (!at || !scenario.contains(at->part) || !scenario.at(at->part).is_object())
      line.fail("open", "must name switches of the plan or of the model by JSON pointer",
                "found \"" + pointer + "\"", "/plan/micro_batch");
    const bool is_list = values.is_array() && !values.empty();
    if (!is_list || all.size() * values.size() > kMaxCombinations)
      line.fail("open", fmt::format("must list values, in at most {} combinations", kMaxCombinations),
                "found " + pointer + ": " + values.dump());
    std::vector<Json> further;
    for (const Json& each : all)
      for (const Json& value : values) further.emplace_back(each)[at->part][at->key] = value;
    all = std::move(further);
  }
  return all;
}

void read_remarks(const JsonReader& line, PublishedRun& run) {
  static const std::map<std::string, Known> known = {
      {"script", Known::script}, {"table", Known::table}, {"inferred", Known::inferred}};
  run.known = line.choice_or("known", Known::not_stated, known);
  run.read_from_plot = line.boolean_or("digitized", false);
  for (const char* key : {"gpu", "notes", "uncertainty"}) line.text_or(key, "");
  if (!line.has("source")) return;
  const JsonReader source = line.object("source");
  for (const char* key : {"title", "where", "table", "settings"}) source.text_or(key, "");
  source.reject_unknown();
}

void read_sources(const JsonReader& line, PublishedRun& run) {
  const Json stated = line.has("stated") ? Json(texts(line, "stated")) : Json();
  if (line.has("why")) {
    const JsonReader why = line.object("why");
    for (const auto& item : why.json().items()) why.text(item.key());
    run.why = why.json();
  }
  require_sources(run.scenario, stated, run.why);
  if (run.missing.empty()) run.as_stated = stated_part(run.scenario, stated, run.why);
}

// Pointers to a scenario start at the line.
void check_words(const PublishedRun& run, const CheckScenario& check) {
  for (const Json& candidate : run.candidates) {
    try {
      check(candidate, run.place);
    } catch (const InputError& error) {
      std::vector<Violation> violations = error.violations();
      for (Violation& violation : violations)
        if (violation.file == run.place)
          violation.pointer =
              fmt::format("/scenario{}{}", violation.pointer.starts_with("/") ? "" : "/", violation.pointer);
      throw InputError(std::move(violations));
    }
  }
}

PublishedRun read_run(const std::string& text, const std::string& place, const CheckScenario& check) {
  const JsonReader line(parse_json(text, place), place);
  PublishedRun run;
  run.place = place;
  run.id = line.text("id");
  run.family = line.text_or("family", "other");
  run.core = line.boolean_or("core", false);
  run.scenario = line.object("scenario").json();
  run.missing = join(texts(line, "missing"));
  if (run.missing.empty() && line.has("open"))
    line.fail("open", "holds the values of switches that `missing` names", "nothing is missing");
  if (run.missing.empty() || line.has("open")) run.candidates = combinations(line, run.scenario);
  read_measured(line.object("measured"), run);
  read_sources(line, run);
  read_remarks(line, run);
  line.reject_unknown();
  check_words(run, check);
  return run;
}

void refuse_rows(const std::string& text, const std::string& file) {
  const std::size_t first = text.find_first_not_of(" \t\r\n");
  if (first == text.npos) throw InputError({file, "", "holds no run", "", ""});
  if (text[first] != '[') return;
  throw InputError(
      {file, "", "holds a list of rows: runs are one JSON object a line, each a scenario with `measured`", "",
       fmt::format("{} {} -o runs.jsonl", (data_directory() / "tools/convert-runs").string(), file)});
}

}  // namespace

std::vector<PublishedRun> read_runs(const std::string& file, const CheckScenario& check) {
  const std::string text = read_text_file(file);
  refuse_rows(text, file);
  std::vector<PublishedRun> runs;
  std::vector<Violation> broken;
  std::size_t number = 0;
  for (std::size_t begin = 0; begin < text.size() && broken.size() < kMaxBrokenLines;) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    const std::string place = fmt::format("{}:{}", file, ++number);
    if (line.find_first_not_of(" \t\r") == line.npos) continue;
    try {
      runs.push_back(read_run(line, place, check));
    } catch (const InputError& error) {
      for (Violation violation : error.violations()) {
        if (violation.file.empty()) violation.file = place;
        broken.push_back(std::move(violation));
      }
    }
  }
  if (!broken.empty()) throw InputError(std::move(broken));
  return runs;
}

}  // namespace rehearse

#include <fmt/core.h>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <set>

#include "base/names.h"
#include "base/say.h"
#include "base/text_file.h"
#include "cli/import_answer.h"
#include "cli/output.h"
#include "cli/verbs.h"
#include "frameworks/kinds.h"
#include "frameworks/step_values.h"
#include "model/read.h"
#include "result/report_json.h"
#include "scenario/flags.h"
#include "scenario/scenario.h"

namespace rehearse {

namespace {

// More than any script, configuration or log has.
constexpr std::size_t kMaxBytes = 64'000'000;

struct ImportOptions {
  GivenFlags given;  // its file is the configuration
  std::string output;
  std::string vocabulary;
  std::vector<std::string> words, ignored, sources;
  bool json = false, strict = false;
};

int gpus_of(const GivenFlags& given) {
  const auto gpus = given.values.find("--gpus");
  if (gpus == given.values.end()) return 0;
  const Json value = parse_value({"--gpus", {}, "/gpus", FlagKind::integer, "N", ""}, gpus->second);
  return static_cast<int>(std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, 1 << 30));
}

// A scenario that is written to a file gets a config.json of its own beside it, named after it. Otherwise the
// model is part of the scenario.
Json place_of_model(const ImportOptions& options, const Json& model) {
  if (options.output.empty() || options.output == "-") return model;
  const std::filesystem::path scenario(options.output);
  const std::filesystem::path file = scenario.parent_path() / (scenario.stem().string() + "-model.json");
  write_file(file, [&](std::ostream& out) { out << model.dump(2) << '\n'; });
  return file.filename().string();
}

// A value that no flag sets comes from the file. The model's keys stand there under `model_path`, if any.
void name_place(Violation& violation, const ScenarioSource& source, const GivenFlags& given,
                const std::string& model_path) {
  const bool is_flag = violation.pointer.starts_with("--");
  const bool is_of_model = violation.pointer.starts_with("/model/") && !given.values.contains("--model");
  const bool is_of_file =
      is_flag ? !given.values.contains(violation.pointer) : violation.file == source.file || is_of_model;
  if (is_of_file) violation.file = given.file;
  if (!is_of_model || model_path.empty()) return;
  std::ranges::replace(violation.pointer, '/', '.');
  violation.pointer = model_path + violation.pointer.substr(std::string_view("/model").size());
}

// A scenario with a model, a cluster and the number of GPUs is complete, so its rules are checked now.
void require_legal(const ScenarioSource& source, const GivenFlags& given, const std::string& model_path) {
  for (const char* key : {"model", "cluster", "gpus"})
    if (!source.json.contains(key)) return;
  Replaced replaced;
  replaced.without_profile = true;
  try {
    read_scenario(source, replaced);
  } catch (const InputError& error) {
    std::vector<Violation> violations = error.violations();
    for (Violation& each : violations) name_place(each, source, given, model_path);
    throw InputError(std::move(violations));
  }
}

// A network that the reader takes over key by key may have keys that its model type does not know.
void note_unread(const std::string& file, Imported& imported) try {
  if (imported.model_path.empty() || imported.model.is_null()) return;
  const std::vector<std::string> keys = unread_keys(imported.model, file);
  const std::set<std::string> unread(keys.begin(), keys.end());
  const std::string before = imported.model_path + ".";
  std::vector<std::string> unknown;
  for (ImportedOption& option : imported.options) {
    if (!option.name.starts_with(before)) continue;
    const std::string below = option.name.substr(before.size());
    if (!unread.contains(below.substr(0, below.find('.')))) continue;
    option.fate = OptionFate::unknown;
    unknown.push_back(option.name);
  }
  if (!unknown.empty())
    imported.notes.push_back(
        fmt::format("keys of the network are unknown, and ignored with unknown effect: {}", join(unknown)));
} catch (const InputError&) {
  return;  // require_legal() names the places
}

// Sets the global batch from the number of accumulated microbatches, with the data-parallel ranks that the
// GPUs allow.
void write_batch(std::int64_t accumulation, Json& scenario, std::vector<std::string>& notes) {
  Json& plan = scenario["plan"];
  if (accumulation == 0 || plan.contains("global_batch")) return;
  const auto degree = [&](const char* key) {
    return std::max<std::int64_t>(1, plan.value(key, std::int64_t{1}));
  };
  const std::int64_t ranks = degree("tp") * degree("cp") * degree("pp");
  const std::int64_t replicas =
      plan.contains("dp") ? degree("dp") : scenario.value("gpus", std::int64_t{0}) / ranks;
  if (replicas > 0 && plan.contains("micro_batch")) {
    plan["global_batch"] = plan["micro_batch"].get<std::int64_t>() * accumulation * replicas;
  } else {
    notes.push_back(fmt::format(
        "gradients accumulate over {} microbatches: pass --mbs and --gpus, or --gbs, for the global batch",
        accumulation));
  }
}

// A scenario's file names other files from its own folder. The command line names them from the working
// folder.
void write_paths(const std::string& output, ScenarioSource& source) {
  const std::filesystem::path folder = folder_of(output);
  for (const char* pointer : {"/model", "/cluster", "/profile", "/plan/schedule"}) {
    const Json::json_pointer key(pointer);
    if (!source.flag_of.contains(pointer) || !source.json[key].is_string()) continue;
    const std::string name = source.json[key];
    if (is_path(name) && std::filesystem::path(name).is_relative())
      source.json[key] = std::filesystem::proximate(name, folder.empty() ? "." : folder).generic_string();
  }
}

// Without the network and the plan there is nothing to answer with.
void require_read(const Coverage& coverage, const Imported& imported, const std::string& file) {
  if (!coverage.from_file.empty() || !imported.model.is_null()) return;
  const auto is_unknown = [](const ImportedOption& option) { return option.fate == OptionFate::unknown; };
  throw InputError({file, "", "sets neither the network nor the plan: no option that shapes a step was read",
                    fmt::format("{} options, {} of them unknown", imported.options.size(),
                                std::ranges::count_if(imported.options, is_unknown)),
                    "a kind of `rehearse import --help`, or the same settings as flags: rehearse simulate "
                    "--model NAME --cluster NAME --gpus N --tp N --pp N --gbs N"});
}

SaidOverFile said_over_file(const GivenFlags& given) {
  SaidOverFile over;
  for (const Flag& flag : scenario_flags())
    if (const auto value = given.values.find(flag.name); value != given.values.end())
      over[flag.pointer] = value->second;
  return over;
}

// The command line's data for the import. Words with "=" are variables of a script, others its arguments.
ImportRequest request_of(const ImportOptions& options) {
  ImportRequest request;
  request.gpus = gpus_of(options.given);
  request.vocabulary = options.vocabulary;
  request.over = said_over_file(options.given);
  for (const std::string& name : options.ignored)
    request.ignored.push_back(name.starts_with("--") ? name : "--" + name);
  for (const std::string& word : options.words) {
    const std::size_t equals = word.find('=');
    if (equals != std::string::npos && equals > 0)
      request.shell.variables[word.substr(0, equals)] = word.substr(equals + 1);
    else
      request.shell.arguments.push_back(word);
  }
  for (const std::string& source : options.sources)
    request.shell.files[std::filesystem::path(source).filename().string()] =
        read_text_file(source, kMaxBytes);
  return request;
}

// Keys that the file sets to null. Reports of the scenario do not repeat them.
void say_null_keys(const Imported& imported) {
  std::vector<std::string> names;
  for (const ImportedOption& option : imported.options)
    if (option.effect == kCountsDefault) names.push_back(option.name);
  if (!names.empty())
    say(stderr, "note: null is read as not given, and the default is counted: {}\n", some_names(names, ""));
}

// Approximations of the configuration are reported wherever the scenario is used. Missing parts of the
// command line are reported only here.
void import(const ImportOptions& options, const LaunchKind& kind, Imported imported) {
  require_apart({options.output});
  const Coverage coverage = coverage_of(imported, said_over_file(options.given));
  require_read(coverage, imported, options.given.file);
  if (!imported.omitted.empty()) {
    imported.scenario["omitted_effects"] = omitted_json(imported.omitted);
    say(stderr, "rehearse: {}\n", in_words(imported.omitted));
  }
  note_unread(options.given.file, imported);
  if (options.strict) require_known(imported, options.given.file);
  ScenarioSource source{options.output, std::move(imported.scenario), {}};
  if (!imported.model.is_null() && !options.given.values.contains("--model"))
    source.json["model"] = place_of_model(options, imported.model);
  write_flags(options.given, source);
  for (const std::string& note : imported.notes) source.json["notes"].push_back(note);
  write_batch(imported.accumulation, source.json, imported.notes);
  if (!source.json.contains("gpus"))
    imported.notes.emplace_back("the number of GPUs is not given: pass --gpus");
  if (!source.json.contains("model")) imported.notes.emplace_back("the model is not given: pass --model");
  if (!source.json.contains("cluster"))
    imported.notes.emplace_back("the cluster is not given: pass --cluster");
  for (const std::string& note : imported.notes) say(stderr, "note: {}\n", note);
  say_null_keys(imported);
  say(stderr, "{}\n", in_words(coverage));
  require_legal(source, options.given, imported.model_path);
  const bool to_file = !options.output.empty() && options.output != "-";
  if (to_file) write_paths(options.output, source);
  const std::string scenario = source.json.dump(2) + "\n";
  if (to_file || !options.json)
    write_file(options.output.empty() ? "-" : options.output, [&](std::ostream& out) { out << scenario; });
  if (options.json)
    print_answer(import_answer(kind.name, source.json, imported, coverage).dump(2) + "\n", true);
}

void run(const ImportOptions& options, const LaunchKind* forced) {
  if (options.given.file.empty())
    throw InputError(
        {"command line", "FILE", "must be given", "", "rehearse import FILE; rehearse import --help"});
  const LaunchFile file{options.given.file, read_text_file(options.given.file, kMaxBytes)};
  DetectedKind detected{forced, ""};
  if (forced == nullptr) {
    detected = detect_kind(file);
    say(stderr, "note: {} is read as {} (import {} FILE)\n", file.name, detected.what, detected.kind->name);
  }
  const auto layers = [](const std::string& model) { return read_model(model).layers; };
  import(options, *detected.kind, detected.kind->read(file, request_of(options), layers));
}

std::vector<VerbOption> import_options(ImportOptions& options) {
  std::vector<VerbOption> all = scenario_options(options.given);
  all.front().help = "the launch file";
  all.front().value = "FILE";
  all.push_back({{"words"},
                 &options.words,
                 "what the launch script is given: variables and arguments, as MODEL_SIZE=8B 1 2",
                 "[NAME=VALUE ...] [ARGUMENT ...]"});
  all.push_back(
      {{"-o", "--output"}, &options.output, "the scenario; default: standard output", "SCENARIO.json"});
  all.push_back({.names = {"--ignore"},
                 .target = &options.ignored,
                 .help = "options of the file to ignore, without their dashes",
                 .value = "OPTION,...",
                 .arity = Arity::list});
  all.push_back({{"--vocab-size"},
                 &options.vocabulary,
                 "the vocabulary, where the file's tokenizer does not state it",
                 "N"});
  all.push_back({.names = {"--source"},
                 .target = &options.sources,
                 .help = "a file that the script reads with source; may be given again",
                 .value = "FILE",
                 .arity = Arity::one_each_time});
  all.push_back({{"--strict"}, &options.strict, "unknown options are errors"});
  all.push_back({{"--json"}, &options.json, "print kind, scenario and each option of the file, as JSON"});
  return all;
}

// `kind`: nullptr where the file decides. All verbs share the options, which may also precede the kind.
Verb verb_of_kind(const std::string& name, const std::string& help, const LaunchKind* kind,
                  const std::shared_ptr<ImportOptions>& options) {
  Verb verb{name, help, import_options(*options)};
  verb.run = [options, kind] {
    run(*options, kind);
    return kDone;
  };
  return verb;
}

}  // namespace

Verb import_verb() {
  const auto options = std::make_shared<ImportOptions>();
  Verb verb = verb_of_kind("import", "make a scenario from the launch file of a training framework", nullptr,
                           options);
  for (const LaunchKind& kind : launch_kinds())
    verb.verbs.push_back(verb_of_kind(kind.name, kind.help, &kind, options));
  verb.footer =
      "The kind of the file is found out; `import KIND FILE` forces it. Flags override the file. Each option "
      "of the\n"
      "file is used, free of cost, approximated, ignored or unknown: notes name the last three with their "
      "effect.\n"
      "Examples:\n"
      "  rehearse import train.sh MODEL_SIZE=8B 1 2 --cluster dgx-h100 --gpus 128 -o mine.json\n"
      "  rehearse import ds_config.json --model llama2-7b --cluster dgx-a100 --gpus 64 -o mine.json\n"
      "  rehearse import torchtitan llama3_70b.toml --cluster dgx-h100 --gpus 256 -o mine.json";
  return verb;
}

}  // namespace rehearse

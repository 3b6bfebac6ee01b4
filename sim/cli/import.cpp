#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text_file.h"
#include "cli/flags.h"
#include "cli/import_answer.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/scenario.h"
#include "cli/verbs.h"
#include "frameworks/kinds.h"
#include "model/read.h"

namespace rehearse {

namespace {

// More than any script, configuration or log holds.
constexpr std::size_t kMostBytes = 64'000'000;

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

// Beside a scenario that is written to a file stands a config.json of its own, named after it; else the model
// stands in the scenario.
Json place_of_model(const ImportOptions& options, const Json& model) {
  if (options.output.empty() || options.output == "-") return model;
  const std::filesystem::path scenario(options.output);
  const std::filesystem::path file = scenario.parent_path() / (scenario.stem().string() + "-model.json");
  write_file(file, [&](std::ostream& out) { out << model.dump(2) << '\n'; });
  return file.filename().string();
}

// Where it names a model and a cluster it is a whole scenario: its rules are checked now.
void require_legal(const ScenarioSource& source) {
  if (!source.json.contains("model") || !source.json.contains("cluster")) return;
  Replaced replaced;
  replaced.without_profile = true;
  read_scenario(source, replaced);
}

// Accumulation of so many microbatches, on the data-parallel ranks that the GPUs leave.
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

// What the command line says of the file. Words with "=" are variables of a script, others its arguments.
ImportRequest request_of(const ImportOptions& options) {
  ImportRequest request;
  request.gpus = gpus_of(options.given);
  request.vocabulary = options.vocabulary;
  for (const Flag& flag : scenario_flags())
    if (const auto value = options.given.values.find(flag.name); value != options.given.values.end())
      request.over[flag.pointer] = value->second;
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
        read_text_file(source, kMostBytes);
  return request;
}

// What of the configuration is approximated is said wherever the scenario is used; what the command line
// lacks, here alone.
void import(const ImportOptions& options, const LaunchKind& kind, Imported imported) {
  require_apart({options.output});
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
  require_legal(source);
  const std::string scenario = source.json.dump(2) + "\n";
  const bool to_file = !options.output.empty() && options.output != "-";
  if (to_file || !options.json)
    write_file(options.output.empty() ? "-" : options.output, [&](std::ostream& out) { out << scenario; });
  if (options.json) print_answer(import_answer(kind.name, source.json, imported).dump(2) + "\n", true);
}

void run(const ImportOptions& options, const LaunchKind* forced) {
  if (options.given.file.empty())
    throw InputError(
        {"command line", "FILE", "must be given", "", "rehearse import FILE; rehearse import --help"});
  const LaunchFile file{options.given.file, read_text_file(options.given.file, kMostBytes)};
  DetectedKind detected{forced, ""};
  if (forced == nullptr) {
    detected = detect_kind(file);
    say(stderr, "note: {} is read as {} (import {} FILE)\n", file.name, detected.what, detected.kind->name);
  }
  const auto layers = [](const std::string& model) { return read_model(model).layers; };
  import(options, *detected.kind, detected.kind->read(file, request_of(options), layers));
}

void add_flags(CLI::App& verb, const std::shared_ptr<ImportOptions>& options) {
  add_scenario_flags(verb, options->given);
  verb.get_option("scenario")->description("the launch file")->option_text("FILE");
  verb.add_option("words", options->words,
                  "what the launch script is given: variables and arguments, as MODEL_SIZE=8B 1 2")
      ->option_text("[NAME=VALUE ...] [ARGUMENT ...]");
  verb.add_option("-o,--output", options->output, "the scenario; default: standard output")
      ->option_text("SCENARIO.json");
  verb.add_option("--ignore", options->ignored, "options of the file to ignore, without their dashes")
      ->delimiter(',')
      ->option_text("OPTION,...");
  verb.add_option("--vocab-size", options->vocabulary,
                  "the vocabulary, where the file's tokenizer does not state it")
      ->option_text("N");
  verb.add_option("--source", options->sources,
                  "a file that the script reads with source; may be given again")
      ->option_text("FILE")
      ->take_all();
  verb.add_flag("--strict", options->strict, "unknown options are errors");
  verb.add_flag("--json", options->json, "print kind, scenario and each option of the file, as JSON");
}

}  // namespace

void add_import(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("import", "make a scenario from the launch file of a training framework");
  const auto options = std::make_shared<ImportOptions>();
  verb->require_subcommand(0, 1);
  add_flags(*verb, options);
  verb->callback([verb, options, &exit_code] {
    if (!verb->get_subcommands().empty()) return;
    run(*options, nullptr);
    exit_code = kDone;
  });
  for (const LaunchKind& kind : launch_kinds()) {
    CLI::App* source = verb->add_subcommand(kind.name, kind.help);
    add_flags(*source, options);
    source->callback([&kind, options, &exit_code] {
      run(*options, &kind);
      exit_code = kDone;
    });
  }
  verb->footer(
      "The kind of the file is found out; `import KIND FILE` forces it. Flags override the file. Each option "
      "of the\n"
      "file is used, free of cost, approximated, ignored or unknown: notes name the last three with their "
      "effect.\n"
      "Examples:\n"
      "  rehearse import train.sh MODEL_SIZE=8B 1 2 --cluster dgx-h100 --gpus 128 -o mine.json\n"
      "  rehearse import ds_config.json --model llama2-7b --cluster dgx-a100 --gpus 64 -o mine.json\n"
      "  rehearse import torchtitan llama3_70b.toml --cluster dgx-h100 --gpus 256 -o mine.json");
}

}  // namespace rehearse

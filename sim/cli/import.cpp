#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>

#include "base/text_file.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/say.h"
#include "cli/scenario.h"
#include "cli/verbs.h"
#include "frameworks/imported.h"
#include "model/read.h"

namespace rehearse {

namespace {

struct ImportOptions {
  GivenFlags given;  // its file is the configuration
  std::string output;
  std::vector<std::string> ignored;
};

int gpus_of(const GivenFlags& given) {
  const auto gpus = given.values.find("--gpus");
  if (gpus == given.values.end()) return 0;
  const Json value = parse_value({"--gpus", {}, "/gpus", FlagKind::integer, "N", ""}, gpus->second);
  return static_cast<int>(std::clamp<std::int64_t>(value.get<std::int64_t>(), 0, 1 << 30));
}

// A config.json of its own beside the scenario, named after it, unless a flag names another model.
std::string write_model(const ImportOptions& options, const Json& model) {
  if (options.output.empty() || options.output == "-")
    throw InputError({"command line", "-o",
                      "is required: the shape of the model is written to a file next to the scenario", "",
                      "-o scenario.json, or --model NAME"});
  const std::filesystem::path scenario(options.output);
  const std::filesystem::path file = scenario.parent_path() / (scenario.stem().string() + "-model.json");
  write_file(file, [&](std::ostream& out) { out << model.dump(2) << '\n'; });
  return file.filename().string();
}

void write_scenario(const ImportOptions& options, const Json& scenario) {
  const std::string text = scenario.dump(2) + "\n";
  write_file(options.output.empty() ? "-" : options.output, [&](std::ostream& out) { out << text; });
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

// By the pointers that the flags write.
SaidOverFile said_over_file(const GivenFlags& given) {
  SaidOverFile said;
  for (const Flag& flag : scenario_flags())
    if (const auto value = given.values.find(flag.name); value != given.values.end())
      said[flag.pointer] = value->second;
  return said;
}

// What of the configuration is approximated is said wherever the scenario is used; what the command line
// lacks, here alone.
void import(const ImportOptions& options, Imported imported) {
  require_apart({options.output});
  ScenarioSource source{options.output, std::move(imported.scenario), {}};
  if (!imported.model.is_null() && !options.given.values.contains("--model"))
    source.json["model"] = write_model(options, imported.model);
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
  write_scenario(options, source.json);
}

CLI::App* add_source(CLI::App& verb, const std::string& name, const std::string& help,
                     const std::shared_ptr<ImportOptions>& options) {
  CLI::App* source = verb.add_subcommand(name, help);
  add_scenario_flags(*source, options->given);
  source->get_option("scenario")->description("the configuration")->option_text("FILE")->required();
  source->add_option("-o,--output", options->output, "the scenario; default: standard output")
      ->option_text("SCENARIO.json");
  return source;
}

// Read twice where it names the model itself: its stages are cut by the layers of the model.
Imported read_torchtitan(const std::string& text, const std::string& file, const GivenFlags& given) {
  const int gpus = gpus_of(given);
  const auto named = given.values.find("--model");
  const auto layers = [](const std::string& model) { return read_model(model).layers; };
  if (named != given.values.end()) return import_torchtitan(text, file, gpus, layers(named->second));
  Imported imported = import_torchtitan(text, file, gpus, 0);
  if (!imported.scenario.contains("model")) return imported;
  return import_torchtitan(text, file, gpus, layers(imported.scenario["model"].get<std::string>()));
}

// More than any script or configuration holds.
constexpr std::size_t kMostBytes = 1'000'000;

}  // namespace

void add_import(CLI::App& program, int& exit_code) {
  CLI::App* verb =
      program.add_subcommand("import", "make a scenario from the configuration of a training framework");
  verb->require_subcommand(1);
  const auto options = std::make_shared<ImportOptions>();
  const auto on_parse = [&exit_code](CLI::App* source, auto run) {
    source->callback([run, &exit_code] {
      run();
      exit_code = kDone;
    });
  };
  CLI::App* megatron = add_source(
      *verb, "megatron",
      "flags of Megatron-LM: a line, a file, the script, model_config.yaml or log that holds them", options);
  megatron->add_option("--ignore", options->ignored, "flags of the script to ignore, without their dashes")
      ->delimiter(',')
      ->option_text("FLAG,...");
  on_parse(megatron, [options] {
    const std::string& file = options->given.file;
    for (std::string& name : options->ignored)
      if (!name.starts_with("--")) name = "--" + name;
    import(*options, import_megatron(read_text_file(file, kMostBytes), file, options->ignored,
                                     said_over_file(options->given)));
  });
  on_parse(add_source(*verb, "deepspeed", "ds_config.json", options), [options] {
    import(*options, import_deepspeed(JsonReader::open(options->given.file), gpus_of(options->given)));
  });
  on_parse(add_source(*verb, "torchtitan", "a TOML file of torchtitan, to v0.2", options), [options] {
    const std::string& file = options->given.file;
    import(*options, read_torchtitan(read_text_file(file, kMostBytes), file, options->given));
  });
  verb->footer(
      "Flags override the file. Ignored options are listed with their effect; unknown options are errors.\n"
      "Examples:\n"
      "  rehearse import megatron train.sh --cluster dgx-h100 --gpus 128 -o mine.json\n"
      "  rehearse import deepspeed ds_config.json --model llama2-7b --cluster dgx-a100 --gpus 64 -o "
      "mine.json\n"
      "  rehearse import torchtitan llama3_70b.toml --cluster dgx-h100 --gpus 256 -o mine.json");
}

}  // namespace rehearse

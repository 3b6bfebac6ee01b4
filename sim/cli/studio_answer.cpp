#include "cli/studio_answer.h"

#include <fmt/core.h>

#include <algorithm>

#include "draw/html/report_page.h"
#include "model/read.h"
#include "scenario/scenario.h"
#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

constexpr std::int64_t kMaxOps = 20'000;    // forwards of a pipeline; with more, an answer takes seconds
constexpr std::int64_t kMaxGpus = 131'072;  // of which ranks are listed

using Names = std::vector<std::string>;

constexpr double kSearch_s = 1;  // of --schedule auto, so that the page answers soon

template <typename Values>
Names names_of(const Values& values) {
  Names names;
  for (const auto value : values) names.push_back(to_string(value));
  return names;
}

Names with(Names names, const std::string& name) {
  if (std::ranges::find(names, name) == names.end()) names.push_back(name);
  return names;
}

std::string on_off(bool value) {
  return value ? "on" : "off";
}

// The name that the user gave, or the scenario's own.
std::string given_name(const ScenarioSource& source, const char* key) {
  return source.json.contains(key) && source.json[key].is_string() ? source.json[key].get<std::string>() : "";
}

void require(bool holds, const char* flag, const std::string& rule, const std::string& values,
             const std::string& nearest) {
  if (!holds) throw InputError({"command line", flag, rule, values, nearest});
}

// Only knobs can be changed, and names only to offered values: no file is read that the user did not name.
GivenFlags turned(const std::string& question, GivenFlags given, const std::vector<studio::Knob>& knobs) {
  const Json json = Json::parse(question, nullptr, false);
  require(json.is_object(), "", "a request must be a JSON object", "", "{\"--tp\": \"8\"}");
  for (const auto& [name, value] : json.items()) {
    const auto knob = std::ranges::find(knobs, name, &studio::Knob::name);
    require(knob != knobs.end(), "", "unknown setting", name, "--tp");
    require(value.is_string(), name.c_str(), "must be a text", value.dump(), "\"8\"");
    const auto text = value.get<std::string>();
    require(knob->choices.empty() || std::ranges::find(knob->choices, text) != knob->choices.end(),
            name.c_str(), "must be one of the choices", text, join(knob->choices));
    given.values[name] = text;
  }
  return given;
}

std::string flag_of(const std::string& pointer) {
  for (const Flag& flag : scenario_flags())
    if (flag.pointer == pointer || flag.name == pointer) return flag.name;
  return "";
}

Json violations_json(const InputError& error) {
  Json list = Json::array();
  for (const Violation& violation : error.violations())
    list.push_back({{"flag", flag_of(violation.pointer)},
                    {"rule", violation.rule},
                    {"values", violation.values},
                    {"nearest", violation.nearest}});
  return {{"violations", list}};
}

void require_small(const Plan& plan) {
  const std::int64_t ops = plan.microbatches() * plan.stages();
  require(ops <= kMaxOps, "--gbs", "the studio shows at most 20,000 forwards of a pipeline",
          fmt::format("{} microbatches x {} stages", plan.microbatches(), plan.stages()),
          "a smaller global batch, or rehearse simulate");
  require(plan.gpus() <= kMaxGpus, "--gpus", "the studio shows at most 131,072 GPUs",
          std::to_string(plan.gpus()), std::to_string(kMaxGpus));
}

}  // namespace

std::vector<studio::Knob> studio_knobs(const Experiment& experiment, const ScenarioSource& source) {
  const Plan& plan = experiment.plan;
  const Names switches = {"on", "off"};
  const auto number = [](std::int64_t value) { return std::to_string(value); };
  const std::string model = given_name(source, "model"), cluster = given_name(source, "cluster");
  return {
      {"--model", "model", "What", with(model_names(), model), model},
      {"--cluster", "cluster", "What", with(cluster_names(), cluster), cluster},
      {"--gpus", "GPUs", "What", {}, number(plan.gpus())},
      {"--gbs", "global batch", "Batch", {}, number(plan.global_batch)},
      {"--mbs", "microbatch", "Batch", {}, number(plan.micro_batch)},
      {"--seq", "sequence", "Batch", {}, number(plan.seq)},
      {"--tp", "tensor parallel", "Parallelism", {}, number(plan.tp)},
      {"--pp", "pipeline parallel", "Parallelism", {}, number(plan.pp)},
      {"--vpp", "virtual stages per rank", "Parallelism", {}, number(plan.vpp)},
      {"--cp", "context parallel", "Parallelism", {}, number(plan.cp)},
      {"--ep", "expert parallel", "Parallelism", {}, number(plan.ep)},
      {"--schedule", "schedule", "Pipeline", with(names_of(kScheduleNames), "auto"),
       seeks_schedule(source.json) ? "auto" : to_string(plan.schedule)},
      {"--overlap-p2p", "overlap messages", "Pipeline", switches, on_off(plan.overlap_p2p)},
      {"--zero", "ZeRO stage", "Memory", {"0", "1", "2", "3"}, number(plan.zero)},
      {"--recompute", "recompute", "Memory", {"none", "selective", "op", "full"}, to_string(plan.recompute)},
      {"--sequence-parallel", "sequence parallel", "Memory", switches, on_off(plan.sequence_parallel)},
      {"--offload", "offload", "Memory", {"none", "optimizer", "activations"}, to_string(plan.offload)},
      {"--precision",
       "precision",
       "Compute",
       {"bf16", "fp16", "fp8", "fp4", "fp32"},
       to_string(plan.precision)},
      {"--overlap-grad-reduce", "overlap gradients", "Compute", switches, on_off(plan.overlap_grad_reduce)},
      {"--tp-comm-overlap", "overlap tensor parallel", "Compute", switches, on_off(plan.tp_comm_overlap)},
      {"--framework",
       "framework",
       "Compute",
       {"megatron-2021", "megatron-core", "deepspeed-2021", "deepspeed", "fsdp1", "fsdp", "torchtitan",
        "nanotron", "internevo", "aleph-scaling"},
       to_string(plan.framework)}};
}

Json studio_answer(const std::string& question, const GivenFlags& given,
                   const std::vector<studio::Knob>& knobs, Engine engine, Inputs& inputs) {
  try {
    Replaced replaced;
    replaced.inputs = &inputs;
    replaced.without_search = true;
    const ScenarioSource source = collect(turned(question, given, knobs));
    Scenario scenario = read_scenario(source, replaced);
    Experiment& experiment = scenario.experiment;
    require_small(experiment.plan);
    if (scenario.schedule_search) {
      if (!source.json.contains("schedule_seconds")) scenario.schedule_search->seconds = kSearch_s;
      experiment.engine = Engine::reference;  // compares the orders found, in this process
      seek_schedule(scenario);
    }
    experiment.engine = engine;
    experiment.conditions.iterations = 1;
    experiment.every_microbatch = true;
    Iteration iteration = run_iteration(experiment);
    std::vector<std::string>& warnings = iteration.report.facts.warnings;
    warnings.insert(warnings.end(), scenario.notes.begin(), scenario.notes.end());
    const Preparation& ready = iteration.preparation;
    return {{"run", html::run_json(iteration.timeline, ready.schedule, ready.work, iteration.report,
                                   REHEARSE_VERSION)}};
  } catch (const InputError& error) {
    return violations_json(error);
  } catch (const MissingCalibration& error) {
    return violations_json(InputError({"command line", "--cluster", error.what(), "", ""}));
  }
}

}  // namespace rehearse

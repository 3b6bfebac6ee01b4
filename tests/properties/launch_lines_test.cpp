// A launch line, together with its list of unsaid keys, gives the plan that it was written for.
#include <fmt/core.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "export/launch_lines.h"
#include "frameworks/imported.h"
#include "result/report_json.h"
#include "run.h"
#include "run/reference.h"
#include "scenario/reported_plan.h"
#include "scratch.h"

namespace rehearse::properties {
namespace {

Json report(const Experiment& experiment, const Preparation& ready, const Timeline& timeline) {
  return Json::parse(write_report_json(report_of(experiment, ready, timeline), "1.2.3"));
}

Json report(const Experiment& experiment) {
  Loads loads;
  const Preparation ready = prepared(experiment, loads);
  return report(experiment, ready, reference(ready.schedule, ready.tasks, loads));
}

std::string differences(const Json& was, const Json& is) {
  std::string text;
  for (const auto& [key, value] : was.items())
    if (value != is.at(key))
      text += fmt::format("{}: {}, read again {}\n", key, value.dump(), is.at(key).dump());
  return text;
}

// No framework has this setting, as it depends on the data.
constexpr const char* kOfTheData = "moe_imbalance";

// The plan that `imported` has, but where the line has no words as the drawn one.
void require_same(const Run& run, const LaunchLine& line, const Imported& imported) {
  const Json was = report(run.experiment, run.ready, run.reference);
  ScenarioSource source = source_of(run.drawn);
  source.json["gpus"] = run.experiment.plan.gpus();
  source.json["plan"] = imported.scenario.at("plan");
  Replaced replaced;
  replaced.model = run.experiment.model;
  replaced.without_profile = replaced.without_rules = true;
  Report named;
  named.plan = read_scenario(source, replaced).experiment.plan;
  const auto in_words = [](const Json& report) { return plan_of({"", {{"plan", report.at("plan")}}, {}}); };
  Json plan = in_words(Json::parse(write_report_json(named, "1.2.3")));
  const Json drawn = in_words(was);
  bool says_model = imported.notes.empty() && !imported.model.is_null();
  for (const std::string& key : line.unsaid) {
    if (drawn.contains(key)) plan[key] = drawn.at(key);
    if (!drawn.contains(key)) says_model = false;
  }
  plan[kOfTheData] = drawn.at(kOfTheData);
  if (run.experiment.plan.launch_blocking)  // nothing overlaps, whatever else is told
    for (const char* key : {"overlap_grad_reduce", "overlap_p2p", "tp_backward_overlap"})
      plan[key] = drawn.at(key);
  const char* const of_model = "mtp_num_layers";  // which the report says of the model
  if (imported.scenario.at("plan").contains(of_model)) plan[of_model] = imported.scenario["plan"][of_model];
  source.json["plan"] = plan;
  if (says_model) source.json["model"] = scratch().write("again.json", imported.model.dump(2));
  const Json is = report(read(source));
  for (const char* figure : {"/step_time_s", "/memory/needed_bytes"}) {
    const Json::json_pointer at(figure);
    const double a = was.at(at), b = is.at(at);
    if (std::abs(a - b) > 1e-9 * a)
      RC_FAIL(fmt::format("{} {}, read again {}\n{}\n{}{}", figure, a, b, line.text,
                          differences(was.at("plan"), is.at("plan")),
                          differences(was.at("model"), is.at("model"))));
  }
}

using Writer = LaunchLine (*)(const Model&, const Plan&);
using Reader = Imported (*)(const std::string& text, const Experiment& of);

Imported read_megatron_line(const std::string& text, const Experiment& of) {
  return import_megatron(fmt::format("torchrun --nproc-per-node {} pretrain_gpt.py {}", of.plan.gpus(), text),
                         "train.sh");
}

Imported read_deepspeed_config(const std::string& text, const Experiment& of) {
  return import_deepspeed(JsonReader(Json::parse(text), "ds_config.json"), of.plan.gpus());
}

Imported read_torchtitan_toml(const std::string& text, const Experiment& of) {
  return import_torchtitan(text, "train.toml", of.plan.gpus(), of.model.layers);
}

// File, scenario, exported flags, scenario: the two scenarios are equal.
void require_stable(const Run& run, Writer write, Reader import) {
  const Imported first = import(write(run.experiment.model, run.experiment.plan).text, run.experiment);
  ScenarioSource source = source_of(run.drawn);
  source.json["gpus"] = run.experiment.plan.gpus();
  source.json["plan"] = first.scenario.at("plan");
  if (!first.model.is_null()) source.json["model"] = first.model;
  Replaced replaced;
  if (first.model.is_null()) replaced.model = run.experiment.model;
  replaced.without_profile = replaced.without_rules = true;
  const Experiment again = read_scenario(source, replaced).experiment;
  const LaunchLine line = write(again.model, again.plan);
  if (!line.why_not.empty()) RC_FAIL("a plan that was read has no line: " + line.why_not);
  const Imported second = import(line.text, run.experiment);
  if (first.model != second.model)
    RC_FAIL(fmt::format("{}\n{}\n{}", line.text, first.model.dump(), second.model.dump()));
  Json was = first.scenario.at("plan"), is = second.scenario.at("plan");
  for (Json* plan : {&was, &is})  // without shards nothing is gathered again
    if (plan->value("zero", 0) == 0) plan->erase("reshard_after_forward");
  if (was != is) RC_FAIL(fmt::format("{}\n{}\n{}", line.text, was.dump(), is.dump()));
}

bool has_line(const Drawn& drawn, Writer write) {
  try {
    const Experiment experiment = read(source_of(drawn));
    return write(experiment.model, experiment.plan).why_not.empty();
  } catch (const InputError&) {
    return false;
  }
}

// Its flags tell of no tower, and the model is read from them again.
void as_megatron_has_it(Drawn& drawn) {
  drawn.scenario["plan"].merge_patch({{"images", nullptr},
                                      {"image_tokens", nullptr},
                                      {"freeze_tower", nullptr},
                                      {"freeze_projector", nullptr}});
}

void as_deepspeed_has_it(Drawn& drawn) {
  drawn.scenario["plan"].merge_patch({{"schedule", "1f1b"}, {"vpp", 1}, {"microbatch_group", nullptr}});
}

void as_torchtitan_has_it(Drawn& drawn) {
  Json& plan = drawn.scenario["plan"];
  const bool is_volta = drawn.scenario["cluster"] == "p3.16xlarge";
  if (plan["precision"] == "fp16" && !is_volta) plan["precision"] = "bf16";
  if (plan["schedule"] == "zb-h1" || plan["schedule"] == "zb-h2") plan["schedule"] = "1f1b";
  if (plan["schedule"] == "v-half" || plan["schedule"] == "v-min") plan["schedule"] = "zb-v";
  if (plan["zero"] == 1) plan["zero"] = 0;
  plan.merge_patch({{"cuda_graph", nullptr}, {"cuda_graph_modules", nullptr}});
}

// Most that have none are told by their plans alone, which costs little.
std::unique_ptr<const Run> run_of(Writer write, void (*change)(Drawn&)) {
  Drawn drawn = *any_run();
  change(drawn);
  if (!has_line(drawn, write)) RC_DISCARD("no line");
  std::unique_ptr<const Run> run = legal_run(drawn);
  if (!run) RC_DISCARD("illegal");
  return run;
}

RC_GTEST_PROP(LaunchLine, OfMegatronIsThePlanButWhereItSaysSo, ()) {
  const auto run = run_of(megatron_flags, as_megatron_has_it);
  const LaunchLine line = megatron_flags(run->experiment.model, run->experiment.plan);
  require_same(*run, line, read_megatron_line(line.text, run->experiment));
}

RC_GTEST_PROP(LaunchLine, OfDeepSpeedIsThePlanButWhereItSaysSo, ()) {
  const auto run = run_of(deepspeed_config, as_deepspeed_has_it);
  const LaunchLine line = deepspeed_config(run->experiment.model, run->experiment.plan);
  require_same(*run, line, read_deepspeed_config(line.text, run->experiment));
}

RC_GTEST_PROP(LaunchLine, OfTorchtitanIsThePlanButWhereItSaysSo, ()) {
  const auto run = run_of(torchtitan_toml, as_torchtitan_has_it);
  const LaunchLine line = torchtitan_toml(run->experiment.model, run->experiment.plan);
  require_same(*run, line, read_torchtitan_toml(line.text, run->experiment));
}

RC_GTEST_PROP(RoundTrip, OfMegatronEndsWhereItBegan, ()) {
  require_stable(*run_of(megatron_flags, as_megatron_has_it), megatron_flags, read_megatron_line);
}

RC_GTEST_PROP(RoundTrip, OfDeepSpeedEndsWhereItBegan, ()) {
  require_stable(*run_of(deepspeed_config, as_deepspeed_has_it), deepspeed_config, read_deepspeed_config);
}

RC_GTEST_PROP(RoundTrip, OfTorchtitanEndsWhereItBegan, ()) {
  require_stable(*run_of(torchtitan_toml, as_torchtitan_has_it), torchtitan_toml, read_torchtitan_toml);
}

}  // namespace
}  // namespace rehearse::properties

#include "cli/export.h"

#include "base/say.h"
#include "cli/verbs.h"
#include "export/launch_lines.h"
#include "run/size.h"
#include "scenario/scenario.h"
#include "schedule/orders.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

struct ScheduleOptions : ExportOptions {
  std::string form = "compute";
};

// For an order that was read: its compute ops. For the plan's own: the order itself.
Schedule compute_form(const Experiment& experiment) {
  if (!experiment.order) return make_order(experiment.plan);
  Schedule order = *experiment.order;
  for (RankOps& ops : order.ranks) {
    RankOps kept;
    for (const Op& op : ops.ops())
      if (is_compute(op.kind)) kept.add(op);
    ops = std::move(kept);
  }
  return order;
}

void export_schedule(const ScheduleOptions& options) {
  const Scenario scenario = read_scenario(collect(options.given));
  const Experiment& experiment = scenario.experiment;
  require_affordable(experiment, "the file has a line for each op");
  write_export(options,
               write_csv(options.form == "full" ? prepare(experiment).schedule : compute_form(experiment)));
}

void export_launch(const ExportOptions& options, const std::string& framework,
                   LaunchLine (*launch_of)(const Model&, const Plan&)) {
  const ScenarioSource source = collect(options.given);
  Replaced replaced;
  replaced.without_profile = true;
  const Experiment experiment = read_scenario(source, replaced).experiment;
  if (experiment.order)
    throw InputError(
        in_users_words({source.file, "/plan/schedule", "launch flags name a schedule, not a file",
                        experiment.order_name, "export schedule"},
                       source));
  const LaunchLine launch = launch_of(experiment.model, experiment.plan);
  if (!launch.why_not.empty()) throw InputError({"", "", launch.why_not, "", ""});
  if (!launch.unsaid.empty())
    say(stderr, "note: {} cannot express this plan's {}\n", framework, join(launch.unsaid));
  write_export(options, launch.text + (launch.text.ends_with('\n') ? "" : "\n"));
}

Verb launch_verb(const std::string& name, const std::string& framework, const std::string& help,
                 LaunchLine (*launch_of)(const Model&, const Plan&)) {
  const auto options = std::make_shared<ExportOptions>();
  Verb verb = format_verb(name, help, *options);
  verb.run = [options, framework, launch_of] {
    export_launch(*options, framework, launch_of);
    return kDone;
  };
  return verb;
}

Verb schedule_verb() {
  const auto options = std::make_shared<ScheduleOptions>();
  Verb verb = format_verb("schedule", "PyTorch's CSV of pipeline actions, one row per rank", *options);
  verb.add({.names = {"--form"},
            .target = &options->form,
            .help = "compute: forwards and backwards only; full: with messages, gathers and reductions",
            .value = "compute|full",
            .words = {"compute", "full"}});
  verb.run = [options] {
    export_schedule(*options);
    return kDone;
  };
  return verb;
}

}  // namespace

std::vector<Verb> export_plan_verbs() {
  return {schedule_verb(), launch_verb("megatron", "Megatron-LM", "flags of Megatron-LM", megatron_flags),
          launch_verb("deepspeed", "DeepSpeed", "ds_config.json", deepspeed_config),
          launch_verb("torchtitan", "torchtitan", "sections of a torchtitan TOML file", torchtitan_toml)};
}

}  // namespace rehearse

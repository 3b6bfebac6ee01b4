#include "cli/way_to_fit.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "run/fit.h"

namespace rehearse {

namespace {

// Flags and their values, as the user would add them.
using Change = std::vector<std::pair<std::string, std::string>>;

std::string typed(const Change& change) {
  std::vector<std::string> words;
  for (const auto& [flag, value] : change) words.push_back(fmt::format("{} {}", flag, value));
  return join(words, " ");
}

Change together(const std::vector<Change>& changes) {
  Change all;
  for (const Change& change : changes) all.insert(all.end(), change.begin(), change.end());
  return all;
}

// Mildest first, without the plan's own values.
std::vector<Change> milder_changes(const Plan& plan) {
  const Change zero = plan.zero < 1 && plan.dp * plan.cp > 1 ? Change{{"--zero", "1"}} : Change{};
  const Change shard = plan.zero < 3 && plan.dp > 1 && plan.pp == 1 ? Change{{"--zero", "3"}} : zero;
  const Change selective =
      plan.recompute == Recompute::none ? Change{{"--recompute", "selective"}} : Change{};
  const Change full = plan.recompute == Recompute::full ? Change{} : Change{{"--recompute", "full"}};
  const Change small = plan.micro_batch > 1 ? Change{{"--mbs", "1"}} : Change{};
  return {zero,
          selective,
          together({selective, zero}),
          small,
          full,
          together({full, zero}),
          shard,
          together({full, shard}),
          together({full, zero, small}),
          together({full, shard, small})};
}

// More model parallelism on the same GPUs, the smallest increase first, with less and less state and
// activations. Layers that do not divide evenly are split by cost.
std::vector<Change> wider_splits(const Experiment& experiment) {
  const Plan& plan = experiment.plan;
  const std::int64_t layers = experiment.model.layers;
  const Change zero = plan.zero < 1 ? Change{{"--zero", "1"}} : Change{}, full = {{"--recompute", "full"}};
  std::vector<Change> changes;
  for (std::int64_t split = 2; split <= plan.dp; split *= 2) {
    for (std::int64_t in_node = split; in_node >= 1; in_node /= 2) {
      const std::int64_t tp = plan.tp * in_node, pp = plan.pp * (split / in_node);
      if (tp > experiment.cluster.node.gpus || pp > layers) continue;
      Change degrees = {{"--tp", std::to_string(tp)}, {"--pp", std::to_string(pp)}};
      if (layers % (pp * plan.vpp) != 0) degrees.emplace_back("--layers-per-stage", "auto");
      for (const Change& leaner : {Change{}, zero, full, together({full, zero})})
        changes.push_back(together({degrees, leaner}));
    }
  }
  return changes;
}

// False also where the change breaks a rule.
bool makes_it_fit(ScenarioSource source, const Change& change, Inputs& inputs, const Headroom& headroom) {
  if (change.empty()) return false;
  GivenFlags given;
  for (const auto& [flag, value] : change) given.values[flag] = value;
  try {
    if (source.json.contains("plan") && source.json["plan"].is_object()) source.json["plan"].erase("dp");
    write_flags(given, source);
    Replaced replaced;
    replaced.inputs = &inputs;
    replaced.likely_layers = true;
    return memory_verdict(footprints_of(read_scenario(source, replaced).experiment), headroom)
        .leaves_headroom;
  } catch (const std::exception&) {
    return false;
  }
}

std::string fewest_in_words(const Experiment& experiment) {
  Experiment leanest = experiment;
  leanest.plan.recompute = Recompute::full;
  const auto fewest = fewest_gpus_of(experiment, experiment.headroom);
  const auto leaner = fewest_gpus_of(leanest, experiment.headroom);
  if (!fewest && !leaner) return "no similar plan that fits was found: rehearse plan searches more";
  const bool recomputes = leaner && (!fewest || leaner->plan.gpus() < fewest->plan.gpus());
  const Plan& plan = recomputes ? leaner->plan : fewest->plan;
  return fmt::format("the fewest GPUs on which it fits: {} (--gpus {} --tp {} --pp {} --vpp {}{})",
                     plan.gpus(), plan.gpus(), plan.tp, plan.pp, plan.vpp,
                     recomputes ? " --recompute full" : "");
}

}  // namespace

std::string way_to_fit(const ScenarioSource& source, const Scenario& scenario) {
  const Experiment& experiment = scenario.experiment;
  ScenarioSource same_gpus = source;
  same_gpus.json["gpus"] = experiment.plan.gpus();
  Inputs inputs;
  std::vector<Change> changes = milder_changes(experiment.plan);
  if (!experiment.order)
    for (Change& change : wider_splits(experiment)) changes.push_back(std::move(change));
  for (const Change& change : changes)
    if (makes_it_fit(same_gpus, change, inputs, experiment.headroom)) return "it fits with " + typed(change);
  return fewest_in_words(experiment);
}

}  // namespace rehearse

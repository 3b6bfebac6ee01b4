#include "cli/what_if.h"

#include <algorithm>
#include <optional>
#include <set>

#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

constexpr double kSearchOfVariant_s = 0.3;  // for its schedule search, where that is "auto"

constexpr std::int64_t kMaxOpsOfVariant = 200'000;  // microbatches x stages of a variant

struct Knob {
  const char* pointer;
  const char* label;
  const char* axis;
  std::int64_t current;
  std::set<std::int64_t> values;
};

// Powers of two times the current value, within [1, most].
std::set<std::int64_t> around(std::int64_t current, int halvings, int doublings, std::int64_t most) {
  std::set<std::int64_t> values = {current};
  for (int i = 1; i <= halvings; ++i)
    if (current % (std::int64_t{1} << i) == 0) values.insert(current >> i);
  for (int i = 1; i <= doublings; ++i) values.insert(current << i);
  std::erase_if(values, [&](std::int64_t value) { return value < 1 || value > most; });
  return values;
}

std::set<std::int64_t> divisors(std::int64_t number) {
  std::set<std::int64_t> found;
  for (std::int64_t i = 1; i * i <= number; ++i)
    if (number % i == 0) found.insert({i, number / i});
  return found;
}

std::vector<Knob> knobs_of(const Scenario& scenario) {
  const Plan& plan = scenario.experiment.plan;
  const std::int64_t gpus = plan.gpus(), layers = scenario.experiment.model.layers;
  std::vector<Knob> knobs = {
      {"/plan/global_batch", "Global batch", "sequences per iteration", plan.global_batch,
       around(plan.global_batch, 3, 3, std::int64_t{1} << 30)},
      {"/plan/micro_batch", "Microbatch", "sequences per microbatch", plan.micro_batch,
       around(plan.micro_batch, 3, 3, plan.global_batch)},
      {"/plan/tp", "Tensor parallel", "tp; data parallel follows", plan.tp, around(plan.tp, 5, 2, gpus)},
      {"/plan/pp", "Pipeline parallel", "pp; data parallel follows", plan.pp, around(plan.pp, 5, 3, gpus)},
      {"/plan/seq", "Sequence", "tokens per sequence", plan.seq,
       around(plan.seq, 2, 2, std::int64_t{1} << 20)}};
  if (plan.vpp > 1 && layers % plan.pp == 0)
    knobs.push_back({"/plan/vpp", "Interleaving", "model chunks per pipeline rank", plan.vpp,
                     divisors(layers / plan.pp)});
  return knobs;
}

// Nothing where the value breaks a rule.
std::optional<Json> priced(const ScenarioSource& source, const Knob& knob, std::int64_t value,
                           std::int64_t gpus, Inputs& inputs) {
  ScenarioSource changed = source;
  changed.json["gpus"] = gpus;
  changed.json["engine"] = "reference";
  changed.json["iterations"] = 1;
  if (changed.json.contains("plan") && changed.json["plan"].is_object()) changed.json["plan"].erase("dp");
  changed.json[Json::json_pointer(knob.pointer)] = value;
  Replaced replaced;
  replaced.inputs = &inputs;
  replaced.without_search = true;
  try {
    Scenario scenario = read_scenario(changed, replaced);
    const Plan& plan = scenario.experiment.plan;
    if (plan.microbatches() * plan.stages() > kMaxOpsOfVariant) return std::nullopt;
    if (scenario.schedule_search) {
      scenario.schedule_search->seconds = kSearchOfVariant_s;
      seek_schedule(scenario);
    }
    const Report report = run_iteration(scenario.experiment).report;
    const MemoryVerdict verdict = memory_verdict(report);
    return Json{{"value", value},
                {"step_time_s", report.step_time_s},
                {"tokens_per_s_per_gpu", report.tokens_per_s_per_gpu},
                {"bubble", report.bubble_mean},
                {"peak_bytes", heaviest_rank(report).peak_bytes},
                {"needed_bytes", verdict.gpu.needed_bytes()},
                {"fits", verdict.fits()},
                {"verdict", to_string(verdict.verdict)}};
  } catch (const std::exception&) {
    return std::nullopt;
  }
}

}  // namespace

Json what_if(const ScenarioSource& source, const Scenario& scenario) {
  Inputs inputs;
  Json studies = Json::array();
  for (const Knob& knob : knobs_of(scenario)) {
    Json values = Json::array();
    for (const std::int64_t value : knob.values)
      if (const auto row = priced(source, knob, value, scenario.experiment.plan.gpus(), inputs))
        values.push_back(*row);
    if (values.size() < 2) continue;
    studies.push_back(
        {{"label", knob.label}, {"axis", knob.axis}, {"current", knob.current}, {"values", values}});
  }
  return studies;
}

}  // namespace rehearse

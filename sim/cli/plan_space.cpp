#include "cli/plan_space.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/names.h"
#include "plan/frameworks/traits.h"
#include "scenario/scenario.h"
#include "scenario/schedule_search.h"

namespace rehearse {

namespace {

constexpr std::int64_t kTokensOfARank = 1024;
constexpr std::array kSearched = {"tp", "cp",   "pp",          "vpp",       "ep",
                                  "dp", "zero", "micro_batch", "recompute", "schedule"};
constexpr std::array kSplits = {"layers_per_stage",   "layout",       "first_rank_layers", "last_rank_layers",
                                "embedding_as_layer", "loss_as_layer"};

std::vector<std::int64_t> divisors(std::int64_t number, std::int64_t most) {
  std::vector<std::int64_t> small, large;
  for (std::int64_t d = 1; d * d <= number; ++d) {
    if (number % d != 0) continue;
    if (d <= most) small.push_back(d);
    if (d * d != number && number / d <= most) large.push_back(number / d);
  }
  small.insert(small.end(), large.rbegin(), large.rend());
  return small;
}

std::string field_of(const std::string& pointer) {
  constexpr std::string_view kPlan = "/plan/";
  const std::string field = pointer.starts_with(kPlan) ? pointer.substr(kPlan.size()) : "";
  return std::ranges::find(kSearched, field) == kSearched.end() ? "" : field;
}

template <typename Enum>
Enum named(const Json& value, const std::map<std::string, Enum>& names, const std::string& flag) {
  const std::string name = value.is_string() ? value.get<std::string>() : value.dump();
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::vector<std::string> legal;
  for (const auto& entry : names) legal.push_back(entry.first);
  throw InputError({"command line", flag, "must be one of " + join(legal), fmt::format("found \"{}\"", name),
                    nearest_name(name, legal)});
}

const std::map<std::string, Recompute>& recomputes() {
  static const auto names = by_name(kRecomputes);
  return names;
}

const std::map<std::string, ScheduleName>& schedules() {
  static const auto names = by_name(kScheduleNames);
  return names;
}

constexpr int kMax = 1 << 20;

std::vector<int> as_degrees(const std::vector<std::int64_t>& values) {
  return {values.begin(), values.end()};
}

std::vector<int> halvings(std::int64_t sequence) {
  std::vector<int> degrees = {1};
  while (sequence / (2 * degrees.back()) >= kTokensOfARank) degrees.push_back(2 * degrees.back());
  return degrees;
}

}  // namespace

PlanSpace::PlanSpace(const Swept& swept, Inputs& inputs) : base_(swept.base), inputs_(inputs) {
  open_fields(swept);
  for (const char* key : {"model", "cluster", "gpus"}) {
    if (!base_.json.contains(key))
      throw InputError({"command line", fmt::format("--{}", key), "a search of plans needs it", "", ""});
  }
  Json& plan = base_.json["plan"];
  if (!plan.contains("global_batch"))
    throw InputError({"command line", "--gbs", "a search of plans needs the global batch", "", ""});
  for (const char* key : kSplits) splits_layers_ = splits_layers_ || plan.contains(key);
  given_etp_ = plan.contains("etp");
  given_group_ = plan.contains("microbatch_group");
  Replaced replaced;
  replaced.inputs = &inputs_;
  replaced.without_rules = true;
  base_experiment_ = read_scenario(base_, replaced).experiment;
  gpus_ = base_.json.at("gpus").get<std::int64_t>();
  enumerate();
}

void PlanSpace::open_fields(const Swept& swept) {
  if (!base_.json.contains("plan")) base_.json["plan"] = Json::object();
  Json& plan = base_.json["plan"];
  for (const char* field : kSearched) {
    const std::string pointer = fmt::format("/plan/{}", field);
    if (plan.contains(field) && base_.flag_of.contains(pointer)) given_[field] = {plan.at(field)};
    plan.erase(field);
  }
  for (const SweptField& field : swept.grid.fields) {
    const std::string searched = field_of(field.pointer);
    if (searched.empty()) {
      throw InputError({"command line", "--" + field.name, "is not searched: give one value",
                        fmt::format("{} values", field.values.size()), "rehearse sweep"});
    }
    given_[searched] = field.values;
  }
}

template <typename Value>
std::vector<Value> PlanSpace::given(const std::string& field, std::vector<Value> otherwise) const {
  const auto found = given_.find(field);
  if (found == given_.end()) return otherwise;
  std::vector<Value> values;
  for (const Json& value : found->second) {
    const auto number = value.get<std::int64_t>();
    if (number < 0 || number > kMax)
      throw InputError({"command line", field, fmt::format("must be from 0 to {}", kMax),
                        fmt::format("found {}", number), ""});
    values.push_back(static_cast<Value>(number));
  }
  return values;
}

void PlanSpace::enumerate() {
  const Model& model = base_experiment_.model;
  std::vector<int> tps;
  for (const int tp : as_degrees(divisors(gpus_, model.heads)))
    if (model.heads % tp == 0) tps.push_back(tp);
  const std::vector<int> any_dp;
  const std::vector<int> dps = given("dp", any_dp);
  for (const int tp : given("tp", tps)) {
    for (const int cp : given("cp", halvings(base_experiment_.plan.seq))) {
      for (const int pp : given("pp", pipelines())) {
        const std::int64_t replica = std::int64_t{tp} * cp * pp;
        if (replica == 0 || gpus_ % replica != 0) continue;
        const auto dp = static_cast<int>(gpus_ / replica);
        if (!dps.empty() && std::ranges::find(dps, dp) == dps.end()) continue;
        Choice choice;
        choice.tp = tp;
        choice.cp = cp;
        choice.pp = pp;
        enumerate_replica(choice, dp);
      }
    }
  }
}

// Without a layer split, only degrees that divide the layers evenly.
std::vector<int> PlanSpace::pipelines() const {
  const std::int64_t layers = base_experiment_.model.layers;
  std::vector<int> degrees = as_degrees(divisors(gpus_, layers));
  if (!splits_layers_) std::erase_if(degrees, [&](int pp) { return layers % pp != 0; });
  return degrees;
}

// Gradients accumulate over microbatches under pipeline parallelism, so frameworks other than FSDP keep them
// whole.
std::vector<int> PlanSpace::shardings(int pp, int replicas) const {
  if (replicas == 1) return {0};
  return pp == 1 || traits(base_experiment_.plan).max_zero_in_pipelines > 1 ? std::vector{0, 1, 2, 3}
                                                                            : std::vector{0, 1};
}

void PlanSpace::enumerate_replica(Choice choice, int dp) {
  const std::int64_t batch = base_experiment_.plan.global_batch;
  if (batch % dp != 0) return;
  const auto& experts = base_experiment_.model.experts;
  const std::vector<int> eps =
      experts ? as_degrees(divisors(experts->count, experts->count)) : std::vector{1};
  for (const std::int64_t micro_batch : given("micro_batch", divisors(batch / dp, batch))) {
    if (micro_batch == 0 || batch / dp % micro_batch != 0) continue;
    for (const int ep : given("ep", eps)) {
      choice.micro_batch = micro_batch;
      choice.ep = ep;
      enumerate_states(choice, dp * choice.cp);
    }
  }
}

void PlanSpace::enumerate_states(Choice choice, int replicas) {
  const auto values = given_.find("recompute");
  std::vector<Recompute> granularities = {Recompute::none, Recompute::selective, Recompute::full};
  if (values != given_.end()) {
    granularities.clear();
    for (const Json& value : values->second)
      granularities.push_back(named(value, recomputes(), "--recompute"));
  }
  for (const int zero : given("zero", shardings(choice.pp, replicas))) {
    for (const Recompute recompute : granularities) {
      choice.zero = zero;
      choice.recompute = recompute;
      enumerate_schedules(choice);
    }
  }
}

void PlanSpace::enumerate_schedules(Choice choice) {
  const auto values = given_.find("schedule");
  std::vector<ScheduleName> names(kScheduleNames.begin(), kScheduleNames.end());
  if (choice.pp == 1) names = {ScheduleName::one_f_one_b};
  const bool v_is_even = splits_layers_ || base_experiment_.model.layers % (2 * choice.pp) == 0;
  if (!v_is_even) std::erase_if(names, is_v_shaped);
  if (values != given_.end()) {
    const auto is_auto = [](const Json& value) { return value.is_string() && is_auto_schedule(value); };
    seeks_orders_ = std::ranges::any_of(values->second, is_auto);
    if (!seeks_orders_) names.clear();  // else all of them are its candidates
    for (const Json& value : values->second)
      if (!seeks_orders_) names.push_back(named(value, schedules(), "--schedule"));
  }
  for (const ScheduleName schedule : names) {
    choice.schedule = schedule;
    for (const int vpp : given("vpp", chunks_of(choice))) {
      choice.vpp = vpp;
      choices_.push_back(choice);
    }
  }
}

std::vector<int> PlanSpace::chunks_of(const Choice& choice) const {
  if (is_v_shaped(choice.schedule)) return {2};
  if (choice.schedule != ScheduleName::interleaved) return {1};
  const std::int64_t of_rank = std::max<std::int64_t>(1, base_experiment_.model.layers / choice.pp);
  std::vector<int> chunks = as_degrees(divisors(of_rank, of_rank));
  chunks.erase(chunks.begin());
  return chunks;
}

ScenarioSource PlanSpace::source_of(const Choice& choice) const {
  ScenarioSource source = base_;
  Json& plan = source.json["plan"];
  plan["tp"] = choice.tp;
  plan["cp"] = choice.cp;
  plan["pp"] = choice.pp;
  plan["vpp"] = choice.vpp;
  plan["ep"] = choice.ep;
  plan["zero"] = choice.zero;
  plan["micro_batch"] = choice.micro_batch;
  plan["recompute"] = to_string(choice.recompute);
  plan["schedule"] = to_string(choice.schedule);
  if (choice.group > 0) plan["microbatch_group"] = choice.group;
  if (choice.seeks_order) plan["schedule"] = "auto";
  dispatch(plan, choice);
  return source;
}

// Dispatchers that send a row once to each rank need whole experts there. With one rank they send nothing.
void PlanSpace::dispatch(Json& plan, const Choice& choice) const {
  if (choice.ep == 1) {
    for (const char* key : {"moe_dispatcher", "moe_dispatcher_sms"}) plan.erase(key);
  } else if (base_experiment_.plan.dispatcher != Dispatcher::all_to_all && !given_etp_) {
    plan["etp"] = 1;
  }
}

// Some fields are neither searched nor given. They follow from tensor, expert and pipeline parallelism or
// their absence, ZeRO and the schedule. Plans that are equal in these are read once, and differ only in the
// searched fields. Layers that are split by a rule depend on everything.
std::optional<Plan> PlanSpace::legal_plan(const Choice& choice) {
  Replaced replaced;
  replaced.inputs = &inputs_;
  replaced.likely_layers = true;
  if (splits_layers_) {
    try {
      return read_scenario(source_of(choice), replaced).experiment.plan;
    } catch (const InputError&) {
      return std::nullopt;
    }
  }
  const std::array<int, 5> kind = {choice.tp > 1, choice.ep > 1, choice.pp > 1, choice.zero,
                                   static_cast<int>(choice.schedule)};
  auto like = like_.find(kind);
  if (like == like_.end()) {
    replaced.without_rules = replaced.without_profile = true;
    like = like_.emplace(kind, read_scenario(source_of(choice), replaced).experiment.plan).first;
  }
  Plan plan = like->second;
  plan.tp = choice.tp;
  plan.cp = choice.cp;
  plan.pp = choice.pp;
  plan.vpp = choice.vpp;
  plan.ep = choice.ep;
  plan.micro_batch = choice.micro_batch;
  plan.recompute = choice.recompute;
  if (choice.group > 0) plan.microbatch_group = choice.group;
  plan.dp = static_cast<int>(gpus_ / (choice.tp * choice.cp * choice.pp));
  if (base_experiment_.model.experts && !given_etp_) plan.etp = plan.sends_rows_once() ? 1 : choice.tp;
  if (!broken_rules(plan, base_experiment_.model, gpus_).empty()) return std::nullopt;
  return plan;
}

PlanSpace::Legal PlanSpace::legal() {
  Legal legal;
  for (std::size_t i = 0; i < choices_.size(); ++i) {
    std::optional<Plan> plan = legal_plan(choices_[i]);
    if (!plan) continue;
    legal.plans.push_back(std::move(*plan));
    legal.choice_of.push_back(i);
  }
  return legal;
}

// Twice pp, four times, ... and all microbatches: values between them differ little.
std::vector<Plan> PlanSpace::with_larger_groups(const Choice& choice) {
  std::vector<Plan> grouped;
  if (given_group_ || choice.schedule != ScheduleName::interleaved || choice.vpp == 1) return grouped;
  const std::int64_t replicas = gpus_ / (std::int64_t{choice.tp} * choice.cp * choice.pp);
  const std::int64_t microbatches = base_experiment_.plan.global_batch / (replicas * choice.micro_batch);
  std::vector<std::int64_t> groups;
  for (std::int64_t group = 2 * std::int64_t{choice.pp}; group < microbatches; group *= 2)
    groups.push_back(group);
  if (microbatches > choice.pp) groups.push_back(microbatches);
  for (const std::int64_t group : groups) {
    Choice larger = choice;
    larger.group = static_cast<int>(group);
    std::optional<Plan> plan = legal_plan(larger);
    if (plan) grouped.push_back(std::move(*plan));
  }
  return grouped;
}

bool PlanSpace::splits_by_cost() const {
  return base_.json.at("plan").value("layers_per_stage", Json()) == "auto";
}

void PlanSpace::refuse() const {
  ScenarioSource source = choices_.empty() ? base_ : source_of(choices_.front());
  if (choices_.empty())
    for (const auto& [field, values] : given_) source.json["plan"][field] = values.front();
  Replaced replaced;
  replaced.inputs = &inputs_;
  read_scenario(source, replaced);
  throw InputError({"command line", "", "no plan of the values given divides the GPUs and the global batch",
                    fmt::format("{} GPUs, global batch {}", gpus_, base_experiment_.plan.global_batch),
                    "fewer values, or others"});
}

Experiment PlanSpace::experiment_of(const Choice& choice) {
  Replaced replaced;
  replaced.inputs = &inputs_;
  replaced.likely_layers = true;
  return read_scenario(source_of(choice), replaced).experiment;
}

}  // namespace rehearse

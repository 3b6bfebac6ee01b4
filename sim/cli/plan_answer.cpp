#include "cli/plan_answer.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"
#include "export/launch_lines.h"
#include "scenario/read_conditions.h"

namespace rehearse {

namespace {

constexpr double kWorthSaying = 0.002;  // of the step time
constexpr std::size_t kFrontLines = 12;

struct Kind {
  const char* key;
  const char* words;
};
constexpr std::array kKinds = {Kind{"compute", "compute"},
                               Kind{"recompute", "recompute"},
                               Kind{"optimizer", "optimizer"},
                               Kind{"bubble", "bubble"},
                               Kind{"exposed_tp", "tensor-parallel communication"},
                               Kind{"exposed_pp", "pipeline messages"},
                               Kind{"exposed_dp", "data-parallel communication"},
                               Kind{"exposed_cp", "context-parallel communication"},
                               Kind{"exposed_ep", "expert-parallel communication"},
                               Kind{"exposed_offload", "offload"}};

Json searched_fields(const Plan& plan) {
  return {{"tp", plan.tp},
          {"cp", plan.cp},
          {"pp", plan.pp},
          {"vpp", plan.vpp},
          {"ep", plan.ep},
          {"dp", plan.dp},
          {"micro_batch", plan.micro_batch},
          {"microbatch_group", plan.microbatch_group},
          {"zero", plan.zero},
          {"recompute", to_string(plan.recompute)},
          {"schedule", to_string(plan.schedule)}};
}

void add_launch(Json& json, const char* framework, const LaunchLine& launch, bool is_json) {
  if (!launch.why_not.empty()) {
    json[framework] = nullptr;
    json["why_not"][framework] = launch.why_not;
  } else {
    json[framework] = is_json ? Json::parse(launch.text) : Json(launch.text);
    if (!launch.unsaid.empty()) json["unsaid"][framework] = launch.unsaid;
  }
}

bool needs_expandable_segments(const Json& report) {
  return report.at("memory").at("needs_expandable_segments").get<bool>();
}

// No launch line can name an order from the search.
LaunchLine launch_of(LaunchLine (*line)(const Model&, const Plan&), const Model& model,
                     const Finalist& finalist) {
  if (!finalist.has_found_order()) return line(model, finalist.plan);
  LaunchLine none;
  none.why_not =
      "the schedule is an order that was found: rehearse export schedule --schedule auto writes it";
  return none;
}

Json launch_json(const Model& model, const Finalist& finalist) {
  Json json = Json::object();
  if (needs_expandable_segments(finalist.report)) {
    const std::string setting = kExpandableSegments;
    const std::size_t sign = setting.find('=');
    json["environment"] = {{setting.substr(0, sign), setting.substr(sign + 1)}};
  }
  add_launch(json, "megatron", launch_of(megatron_flags, model, finalist), false);
  add_launch(json, "deepspeed", launch_of(deepspeed_config, model, finalist), true);
  add_launch(json, "torchtitan", launch_of(torchtitan_toml, model, finalist), false);
  return json;
}

constexpr const char* kColumns = "{:>4} {:>4} {:>4} {:>4} {:>4} {:>5} {:>4} {:>5} {:>4}  {:<9}  {:<16}";
const std::string kHead = fmt::format(fmt::runtime(kColumns), "tp", "cp", "pp", "vpp", "ep", "dp", "mbs",
                                      "group", "zero", "recompute", "schedule");

// Groups of microbatches exist only with interleaved chunks.
std::string group_of(const Plan& plan) {
  if (plan.schedule != ScheduleName::interleaved || plan.vpp == 1) return "-";
  return std::to_string(plan.microbatch_group > 0 ? plan.microbatch_group : plan.pp);
}

std::string columns_of(const Plan& plan, const std::string& found = "") {
  return fmt::format(fmt::runtime(kColumns), plan.tp, plan.cp, plan.pp, plan.vpp, plan.ep, plan.dp,
                     plan.micro_batch, found.empty() ? group_of(plan) : "-", plan.zero,
                     to_string(plan.recompute), found.empty() ? to_string(plan.schedule) : found);
}

double number(const Json& report, const char* pointer) {
  return report.at(Json::json_pointer(pointer)).get<double>();
}

std::string table(const std::vector<Finalist>& finalists) {
  std::string text = fmt::format("     {} {:>10} {:>13} {:>7} {:>7} {:>13} {:>9}\n", kHead, "step",
                                 "tokens/s/GPU", "MFU", "idle", "total memory", "free");
  bool any_needs = false;
  for (std::size_t i = 0; i < finalists.size(); ++i) {
    const Json& report = finalists[i].report;
    text += fmt::format(
        "{:>4} {} {:>8.4g} s {:>13.0f} {:>5.1f} % {:>5.1f} % {:>13} {:>9}{}\n", i + 1,
        columns_of(finalists[i].plan, finalists[i].has_found_order() ? "auto" : ""),
        number(report, "/step_time_s"), number(report, "/tokens_per_s_per_gpu"), 100 * number(report, "/mfu"),
        100 * number(report, "/bubble_fraction/mean"), format_bytes(number(report, "/memory/needed_bytes")),
        format_bytes(number(report, "/memory/free_bytes")), needs_expandable_segments(report) ? " *" : "");
    any_needs |= needs_expandable_segments(report);
  }
  if (any_needs)
    text += fmt::format("     * fits only with {}, because of memory fragmentation\n", kExpandableSegments);
  return text;
}

std::string front(const std::vector<FrontPlan>& plans) {
  std::string text =
      fmt::format("Fastest plan at each memory size, up to {} times the first step:\n", kFrontSteps);
  for (std::size_t i = 0; i < std::min(plans.size(), kFrontLines); ++i) {
    text += fmt::format("     {} {:>8.4g} s {:>44}\n", columns_of(plans[i].plan), plans[i].step_time_s,
                        format_bytes(plans[i].needed_bytes));
  }
  if (plans.size() > kFrontLines)
    text += fmt::format("     {} more with --json\n", plans.size() - kFrontLines);
  return text;
}

std::string why_first(const Json& report) {
  std::vector<std::pair<double, const char*>> parts;
  const double step = number(report, "/step_time_s");
  for (const Kind& kind : kKinds)
    parts.emplace_back(report.at("time_s").at(kind.key).get<double>() / step, kind.words);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return a.first > b.first; });
  std::vector<std::string> words;
  for (const auto& [share, name] : parts)
    if (share > kWorthSaying) words.push_back(fmt::format("{} {:.1f} %", name, 100 * share));
  return fmt::format("Critical path of plan 1: {}.\n", join(words));
}

// The differences of another plan's time from the first, largest first.
std::string why_lost(const Json& first, const Json& other, std::size_t rank) {
  const double step = number(first, "/step_time_s");
  std::vector<std::pair<double, const char*>> parts;
  for (const Kind& kind : kKinds)
    parts.emplace_back(
        other.at("time_s").at(kind.key).get<double>() - first.at("time_s").at(kind.key).get<double>(),
        kind.words);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const auto& a, const auto& b) { return std::abs(a.first) > std::abs(b.first); });
  std::vector<std::string> words;
  for (const auto& [seconds, name] : parts)
    if (std::abs(seconds) > kWorthSaying * step) words.push_back(fmt::format("{} {:+.3g} s", name, seconds));
  const double slower = number(other, "/step_time_s") / step - 1;
  return fmt::format("  {} is {:.2f} % slower: {}\n", rank, 100 * slower,
                     words.empty() ? "no large difference" : join(words));
}

std::string launch(const Model& model, const Finalist& finalist) {
  const auto section = [](const char* name, const LaunchLine& launch) {
    if (!launch.why_not.empty()) return fmt::format("{}: not possible: {}\n", name, launch.why_not);
    const std::string unsaid =
        launch.unsaid.empty() ? "" : fmt::format(" (cannot express this plan's {})", join(launch.unsaid));
    return fmt::format("{}{}:\n{}\n", name, unsaid, launch.text);
  };
  const std::string setting =
      needs_expandable_segments(finalist.report) ? fmt::format("export {}\n", kExpandableSegments) : "";
  return setting + section("Megatron-LM", launch_of(megatron_flags, model, finalist)) +
         section("DeepSpeed ds_config.json", launch_of(deepspeed_config, model, finalist)) +
         section("torchtitan", launch_of(torchtitan_toml, model, finalist));
}

std::string plans_run(const PlanAnswer& answer) {
  return fmt::format("{} of {} plans {}", answer.search.run, answer.considered,
                     answer.engine == Engine::simgrid ? "simulated" : "run by the reference engine");
}

// How far the list is proven.
std::string proof(const PlanAnswer& answer) {
  const std::size_t listed = answer.finalists.size();
  if (!answer.unproven.empty()) return fmt::format("not proven: {}; {}", answer.unproven, plans_run(answer));
  if (answer.stopped_by.empty())
    return fmt::format("exact: {}; {}", plans_run(answer),
                       listed < answer.top ? "no other plan fits"
                                           : fmt::format("no other can be among the first {}", listed));
  const std::string why = fmt::format("{} until the {}; {} others were not", plans_run(answer),
                                      answer.stopped_by, answer.search.left);
  if (answer.search.has_only_bounds)
    return fmt::format("not proven: {}; the steps listed are those of the reference engine", why);
  const std::string rest = std::isfinite(answer.search.least_left_s)
                               ? fmt::format("{} and take {:.4g} s at least", why, answer.search.least_left_s)
                               : why;
  return answer.proven() == 0 ? fmt::format("not proven: {}", rest)
                              : fmt::format("proven to place {}: {}", answer.proven(), rest);
}

Json proof_json(const PlanAnswer& answer) {
  const auto or_null = [](const std::string& text) { return text.empty() ? Json() : Json(text); };
  const double least_left_s = answer.search.least_left_s;
  return {{"exact", answer.unproven.empty() && answer.stopped_by.empty()},
          {"proven_places", answer.proven()},
          {"engine", to_string(answer.engine)},
          {"bounded", answer.search.referred},
          {"stopped_by", or_null(answer.stopped_by)},
          {"least_left_s", std::isfinite(least_left_s) ? Json(least_left_s) : Json()},
          {"why_not", or_null(answer.unproven)}};
}

}  // namespace

std::string write_plan_json(const PlanAnswer& answer) {
  Json plans = Json::array(), pareto = Json::array();
  for (std::size_t i = 0; i < answer.finalists.size(); ++i) {
    const Finalist& finalist = answer.finalists[i];
    plans.push_back({{"rank", i + 1},
                     {"plan", finalist.report.at("plan")},
                     {"report", finalist.report},
                     {"launch", launch_json(answer.model, finalist)}});
  }
  for (const FrontPlan& plan : answer.front)
    pareto.push_back({{"plan", searched_fields(plan.plan)},
                      {"step_time_s", plan.step_time_s},
                      {"needed_bytes", plan.needed_bytes}});
  Json fewest;
  if (answer.fewest_gpus) {
    fewest = searched_fields(answer.fewest_gpus->plan);
    fewest["gpus"] = answer.fewest_gpus->plan.gpus();
    fewest["needed_bytes"] = answer.fewest_gpus->fullest.needed_bytes();
  }
  const Json json = {{"plans", plans},
                     {"pareto", pareto},
                     {"considered", answer.considered},
                     {"illegal", answer.illegal},
                     {"does_not_fit", answer.search.does_not_fit},
                     {"below_headroom", answer.search.below_headroom},
                     {"fewest_gpus", fewest},
                     {"pruned", answer.search.pruned},
                     {"simulated", answer.search.run},
                     {"left", answer.search.left},
                     {"proof", proof_json(answer)},
                     {"elapsed_s", answer.elapsed_s}};
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string write_plan_text(const PlanAnswer& answer) {
  const Finalist& first = answer.finalists.front();
  const std::string omitted = in_words(read_omitted_effects(JsonReader(first.report, "")));
  std::string text = (omitted.empty() ? "" : omitted + "\n") + table(answer.finalists);
  text += fmt::format("\n{}", why_first(first.report));
  for (std::size_t i = 1; i < answer.finalists.size(); ++i)
    text += why_lost(first.report, answer.finalists[i].report, i + 1);
  text += fmt::format("\n{}\n{}", front(answer.front), launch(answer.model, first));
  text += fmt::format(
      "\n{}\n{} plans considered: {} illegal, {} do not fit ({} of them only because of the headroom), {} "
      "excluded by their bounds, {} run; {:.2f} s\n",
      proof(answer), answer.considered, answer.illegal, answer.search.does_not_fit,
      answer.search.below_headroom, answer.search.pruned, answer.search.run, answer.elapsed_s);
  return text;
}

std::string no_plan_fits(const PlanAnswer& answer) {
  std::string text = fmt::format(
      "no plan fits: {} considered, {} illegal, {} need more memory than a GPU has", answer.considered,
      answer.illegal, answer.search.does_not_fit - answer.search.below_headroom);
  if (answer.search.below_headroom > 0)
    text += fmt::format(", {} leave less than the headroom (--headroom 0 accepts them)",
                        answer.search.below_headroom);
  if (!answer.fewest_gpus) return text + "; no number of GPUs was found on which such a plan fits";
  const Plan& plan = answer.fewest_gpus->plan;
  return text + fmt::format("; the fewest GPUs on which it fits: {} (tp {}, pp {}, mbs {}, recompute {})",
                            plan.gpus(), plan.tp, plan.pp, plan.micro_batch, to_string(plan.recompute));
}

}  // namespace rehearse

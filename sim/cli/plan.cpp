#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <memory>
#include <tuple>

#include "base/error.h"
#include "base/interruption.h"
#include "base/say.h"
#include "cli/jobs.h"
#include "cli/plan_answer.h"
#include "cli/plan_space.h"
#include "cli/sweep_row.h"
#include "cli/verbs.h"
#include "run/fit.h"
#include "search/search.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

constexpr int kMaxTop = 1000;

struct PlanOptions {
  GivenFlags given;
  int top = 5;
  int jobs = 0;
  bool json = false;
};

// Runs the finalists on the engine that the user chose, as `simulate` would.
std::vector<Json> run_finalists(const PlanSpace& space, const std::vector<Choice>& choices, int jobs,
                                Inputs& inputs) {
  std::vector<Json> reports(choices.size());
  const auto source = [&](Point i) {
    ScenarioSource of = space.source_of(choices[static_cast<std::size_t>(i)]);
    if (is_interrupted())
      of.json["engine"] = "reference";  // after an interrupt, do not wait for the simulator
    return of;
  };
  run_in_processes(
      first_points(static_cast<Point>(choices.size())),
      [&](Point i) { return evaluate_row(source(i), inputs); }, jobs, [] { return false; },
      [&](Point i, const Row& row) {
        if (!row.report.is_object())
          throw std::runtime_error("a plan that was found cannot run: " + row.reason);
        reports[static_cast<std::size_t>(i)] = row.report;
      });
  return reports;
}

// A plan from the search; where a larger group of microbatches is faster, the plan with that group.
struct Winner {
  std::size_t of = 0;  // place in SearchResult::best
  Choice choice;
  FrontPlan found;  // by the reference engine
};

// Additional plans: a larger group of microbatches may make one of them better.
constexpr std::size_t kBeyond = 5;

// Keeps the winners of the `top` plans with the fastest winners.
void keep_best(std::vector<Winner>& winners, std::size_t top) {
  std::map<std::size_t, double> least_s;
  for (const Winner& winner : winners) {
    double& least = least_s.try_emplace(winner.of, winner.found.step_time_s).first->second;
    least = std::min(least, winner.found.step_time_s);
  }
  std::vector<std::pair<double, std::size_t>> order;
  for (const auto& [of, seconds] : least_s) order.emplace_back(seconds, of);
  std::ranges::sort(order);
  if (order.size() <= top) return;
  const auto last = order[top - 1];
  std::erase_if(winners,
                [&](const Winner& winner) { return std::pair(least_s[winner.of], winner.of) > last; });
}

// Groups of microbatches are tried only on plans from the search, as they change a step by a few percent.
std::vector<Winner> winners_of(PlanSpace& space, const PlanSpace::Legal& legal, const Experiment& experiment,
                               SearchResult& result, int jobs) {
  std::vector<Winner> winners, tried;
  std::vector<Plan> plans;
  for (std::size_t i = 0; i < result.best.size(); ++i) {
    const FoundPlan& found = result.best[i];
    winners.push_back({i,
                       space.choices()[legal.choice_of[found.index]],
                       {legal.plans[found.index], found.step_time_s, found.needed_bytes}});
    PlanSpace::Grouped larger = space.with_larger_groups(winners.back().choice);
    for (std::size_t g = 0; g < larger.plans.size(); ++g) {
      tried.push_back({i, larger.choices[g], {larger.plans[g]}});
      plans.push_back(std::move(larger.plans[g]));
    }
  }
  const std::vector<Winner> plain = winners;
  for (Winner sought : plain) {
    if (!space.seeks_orders() || sought.found.plan.pp == 1) continue;
    sought.choice.seeks_order = true;
    winners.push_back(std::move(sought));
  }
  if (plans.empty()) return winners;
  const SearchResult grouped = search(experiment, plans, {plans.size(), jobs, false});
  result.does_not_fit += grouped.does_not_fit;
  result.below_headroom += grouped.below_headroom;
  result.run += grouped.run;
  std::vector<bool> has_one(result.best.size(), false);
  for (const FoundPlan& found : grouped.best) {  // fastest first
    Winner& winner = tried[found.index];
    if (has_one[winner.of] || found.step_time_s >= result.best[winner.of].step_time_s) continue;
    has_one[winner.of] = true;
    winner.found.step_time_s = found.step_time_s;
    winner.found.needed_bytes = found.needed_bytes;
    winners.push_back(winner);
  }
  return winners;
}

// For each plan from the search, the faster variant on the engine that the user chose.
std::vector<Finalist> finalists_of(const PlanSpace& space, const std::vector<Winner>& winners, int jobs,
                                   Inputs& inputs) {
  std::vector<Choice> choices;
  for (const Winner& winner : winners) choices.push_back(winner.choice);
  std::vector<Json> reports = run_finalists(space, choices, jobs, inputs);
  std::map<std::size_t, Finalist> finalists;
  for (std::size_t i = 0; i < winners.size(); ++i) {
    Finalist finalist{std::move(reports[i]), winners[i].found.plan};
    finalist.plan.layers_per_stage =
        finalist.report.at("plan").at("layers_per_stage").get<std::vector<int>>();
    const auto [known, is_new] = finalists.try_emplace(winners[i].of, finalist);
    if (!is_new && finalist.step_time_s() < known->second.step_time_s()) known->second = std::move(finalist);
  }
  std::vector<Finalist> ranked;
  for (auto& [of, finalist] : finalists) ranked.push_back(std::move(finalist));
  std::ranges::stable_sort(ranked, {}, &Finalist::step_time_s);
  return ranked;
}

// The front of time and memory, winners included.
std::vector<FrontPlan> front_of(const SearchResult& result, const std::vector<Plan>& plans,
                                const std::vector<Winner>& winners) {
  std::vector<FrontPlan> all, front;
  for (const FoundPlan& found : result.pareto)
    all.push_back({plans[found.index], found.step_time_s, found.needed_bytes});
  for (const Winner& winner : winners) all.push_back(winner.found);
  std::ranges::stable_sort(
      all, {}, [](const FrontPlan& each) { return std::pair(each.step_time_s, each.needed_bytes); });
  for (FrontPlan& each : all)
    if (front.empty() || each.needed_bytes < front.back().needed_bytes) front.push_back(std::move(each));
  return front;
}

// Fewest GPUs for the leanest of the legal plans. With one replica ZeRO divides nothing.
std::optional<FewestGpus> fewest_for(Experiment experiment, const std::vector<Plan>& plans) {
  experiment.plan = *std::ranges::max_element(plans, {}, [](const Plan& plan) {
    return std::tuple(plan.recompute == Recompute::full, -plan.micro_batch,
                      plan.schedule == ScheduleName::one_f_one_b, -plan.zero);
  });
  return fewest_gpus_of(experiment, experiment.headroom);
}

PlanAnswer answer(const PlanOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Inputs inputs;
  PlanSpace space(read_swept(options.given), inputs);
  const PlanSpace::Legal legal = space.legal();
  PlanAnswer answer;
  answer.considered = space.choices().size();
  answer.illegal = answer.considered - legal.plans.size();
  if (legal.plans.empty()) space.refuse();
  const int jobs = jobs_or_cores(options.jobs);
  const Experiment experiment = space.experiment_of(space.choices()[legal.choice_of.front()]);
  SearchResult result = search(experiment, legal.plans,
                               {static_cast<std::size_t>(options.top) + kBeyond, jobs, true, is_interrupted});
  const std::size_t counted = result.does_not_fit + result.run;
  std::vector<Winner> winners = winners_of(space, legal, experiment, result, jobs);
  answer.considered += result.does_not_fit + result.run - counted;
  answer.does_not_fit = result.does_not_fit;
  answer.below_headroom = result.below_headroom;
  answer.pruned = result.pruned;
  answer.run = result.run;
  answer.left = result.left;
  answer.front = front_of(result, legal.plans, winners);
  keep_best(winners, static_cast<std::size_t>(options.top));
  answer.finalists = finalists_of(space, winners, jobs, inputs);
  if (answer.finalists.empty() && answer.left == 0) answer.fewest_gpus = fewest_for(experiment, legal.plans);
  answer.model = experiment.model;
  answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}

int find_and_print(const PlanOptions& options) {
  note_interruption();
  const PlanAnswer found = answer(options);
  const bool fits = !found.finalists.empty();
  if (fits || options.json)
    print_answer(options.json ? write_plan_json(found) : write_plan_text(found), options.json);
  if (found.left > 0) {
    say(stderr, "rehearse: interrupted; {} after {} plans ran, and {} that fit were not run\n",
        fits ? "the best so far" : "none was found", found.run, found.left);
    return kInterrupted;
  }
  if (!fits) throw DoesNotFit(no_plan_fits(found));
  return kDone;
}

}  // namespace

Verb plan_verb() {
  const auto options = std::make_shared<PlanOptions>();
  Verb verb{"plan", "find the fastest legal plans that fit, and why the others are slower"};
  verb.add_all(scenario_options(options->given));
  verb.add({.names = {"--top"},
            .target = &options->top,
            .help = "plans to find and to simulate",
            .value = "K",
            .bounds = {{1, kMaxTop}}});
  verb.add(jobs_option(options->jobs, "threads"));
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.footer =
      "Searches tp, cp, pp, vpp, ep, mbs, zero, recompute and schedule; a flag restricts one of them to a "
      "value or\n"
      "a list. For the best interleaved plans it also tries larger microbatch groups. The reference engine "
      "runs\n"
      "every plan that no bound excludes; --engine runs the best of them.\n"
      "Memory is the total on the fullest GPU: allocator peak, CUDA context, NCCL buffers. --headroom of it "
      "stays\n"
      "free.\n"
      "Examples:\n"
      "  rehearse plan --model llama3-70b --cluster dgx-h100 --gpus 128 --gbs 512\n"
      "  rehearse plan --model gpt3-175b --cluster selene --gpus 4096 --gbs 1536 --schedule "
      "1f1b,interleaved-1f1b\n"
      "  rehearse plan --model mixtral-8x7b --cluster dgx-h100 --gpus 64 --gbs 256 --tp 1:8:*2 --top 10 "
      "--json";
  verb.run = [options] { return find_and_print(*options); };
  return verb;
}

}  // namespace rehearse

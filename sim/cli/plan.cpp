#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <tuple>

#include "base/error.h"
#include "base/interruption.h"
#include "base/quantity.h"
#include "base/say.h"
#include "cli/jobs.h"
#include "cli/plan_answer.h"
#include "cli/plan_space.h"
#include "cli/sweep_row.h"
#include "cli/verbs.h"
#include "run/fit.h"
#include "search/effort.h"
#include "search/search.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

constexpr int kMaxTop = 1000;
constexpr double kMaxTimeLimit_s = 1e9;

struct PlanOptions {
  GivenFlags given;
  int top = 5;
  int jobs = 0;
  std::optional<double> time_limit_s;
  bool json = false;
};

// When a search began, and when it has to end.
class Clock {
 public:
  explicit Clock(std::optional<double> limit_s) : limit_s_(limit_s) {}

  double elapsed_s() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin_).count();
  }
  bool is_late() const { return limit_s_ && elapsed_s() > *limit_s_; }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  std::optional<double> limit_s_;
};

// Each call in a child process, `jobs` at a time.
InProcesses in_processes(int jobs, const std::function<bool()>& is_stopped) {
  return [=](std::size_t count, const std::function<double(std::size_t)>& run) {
    std::vector<double> results(count, std::numeric_limits<double>::quiet_NaN());
    run_in_processes(
        first_points(static_cast<Point>(count)),
        [&](Point i) {
          return Row{RowState::done, "", run(static_cast<std::size_t>(i))};
        },
        jobs, is_stopped,
        [&](Point i, const Row& row) {
          if (!row.report.is_number()) throw std::runtime_error("a plan cannot run: " + row.reason);
          results[static_cast<std::size_t>(i)] = row.report.get<double>();
        });
    return results;
  };
}

// The reports of the choices, as `simulate` would give them.
std::vector<Json> reports_of(const PlanSpace& space, const std::vector<Choice>& choices, bool by_reference,
                             int jobs, Inputs& inputs) {
  std::vector<Json> reports(choices.size());
  const auto source = [&](Point i) {
    ScenarioSource of = space.source_of(choices[static_cast<std::size_t>(i)]);
    if (by_reference) of.json["engine"] = "reference";
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

Choice choice_of(const PlanSpace& space, const PlanSpace::Legal& legal, const FoundPlan& found) {
  Choice choice = space.choices()[legal.choice_of[found.index]];
  if (found.group > 0) choice.group = found.group;
  return choice;
}

Plan plan_of(const PlanSpace::Legal& legal, const FoundPlan& found) {
  Plan plan = legal.plans[found.index];
  if (found.group > 0) plan.microbatch_group = found.group;
  return plan;
}

// The plans found, with their reports. With --schedule auto, each with an order of its own where that is
// faster.
std::vector<Finalist> finalists_of(const PlanSpace& space, const PlanSpace::Legal& legal,
                                   const SearchResult& result, int jobs, Inputs& inputs) {
  std::vector<Choice> choices;
  std::vector<std::size_t> place;  // by choice
  for (std::size_t i = 0; i < result.best.size(); ++i) {
    choices.push_back(choice_of(space, legal, result.best[i]));
    place.push_back(i);
    if (!space.seeks_orders() || choices.back().pp == 1) continue;
    choices.push_back(space.choices()[legal.choice_of[result.best[i].index]]);
    choices.back().seeks_order = true;
    place.push_back(i);
  }
  std::vector<Json> reports = reports_of(space, choices, result.has_only_bounds, jobs, inputs);
  std::vector<std::optional<Finalist>> best(result.best.size());
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const FoundPlan& found = result.best[place[i]];
    Finalist finalist{std::move(reports[i]),
                      choices[i].seeks_order ? legal.plans[found.index] : plan_of(legal, found)};
    finalist.plan.layers_per_stage =
        finalist.report.at("plan").at("layers_per_stage").get<std::vector<int>>();
    std::optional<Finalist>& known = best[place[i]];
    if (!known || finalist.step_time_s() < known->step_time_s()) known = std::move(finalist);
  }
  std::vector<Finalist> finalists;
  for (std::optional<Finalist>& each : best) finalists.push_back(std::move(*each));
  std::ranges::stable_sort(finalists, {}, &Finalist::step_time_s);
  return finalists;
}

// Why plans that are not listed may be faster although the search ended.
std::string unproven(const PlanSpace& space) {
  if (space.seeks_orders())
    return "orders are searched only for the plans that are fastest with a named schedule";
  if (space.splits_by_cost())
    return "layers are split by cost in the search, and by simulation only for the plans listed";
  return "";
}

// Fewest GPUs for the leanest of the legal plans. With one replica ZeRO divides nothing.
std::optional<FewestGpus> fewest_for(Experiment experiment, const std::vector<Plan>& plans) {
  experiment.plan = *std::ranges::max_element(plans, {}, [](const Plan& plan) {
    return std::tuple(plan.recompute == Recompute::full, -plan.micro_batch,
                      plan.schedule == ScheduleName::one_f_one_b, -plan.zero);
  });
  return fewest_gpus_of(experiment, experiment.headroom);
}

// Says how long a long search takes, and refuses one that nobody may have meant to wait for.
void require_affordable(const std::vector<Plan>& plans, int jobs, bool is_limited) {
  constexpr double kLong_s = 30, kTooLong_s = 1800;
  const SearchEffort effort = effort_of(plans);
  const double seconds = effort.seconds / jobs;
  if (seconds < kLong_s) return;
  const std::string work = fmt::format("{} plans of {} GPUs: about {:.2g} min and {}", plans.size(),
                                       plans.front().gpus(), seconds / 60, format_bytes(effort.bytes * jobs));
  if (seconds > kTooLong_s && !is_limited)
    throw InputError({"command line", "--time-limit", "a search of more than half an hour needs a time limit",
                      work, "--time-limit 600, or fewer values, as --recompute none --schedule 1f1b"});
  say(stderr, "rehearse: {}; Ctrl-C or --time-limit ends the search with the best so far\n", work);
}

PlanAnswer answer(const PlanOptions& options) {
  const Clock clock(options.time_limit_s);
  Inputs inputs;
  PlanSpace space(read_swept(options.given), inputs);
  const PlanSpace::Legal legal = space.legal();
  if (legal.plans.empty()) space.refuse();
  const int jobs = jobs_or_cores(options.jobs);
  require_affordable(legal.plans, jobs, options.time_limit_s.has_value());
  const Experiment experiment = space.experiment_of(space.choices()[legal.choice_of.front()]);
  const auto is_stopped = [&clock] { return is_interrupted() || clock.is_late(); };
  const auto larger_groups = [&](std::size_t index) {
    return space.with_larger_groups(space.choices()[legal.choice_of[index]]);
  };
  PlanAnswer answer;
  answer.search = search(experiment, legal.plans,
                         {.top = static_cast<std::size_t>(options.top),
                          .threads = jobs,
                          .in_processes = in_processes(jobs, is_stopped),
                          .is_stopped = is_stopped,
                          .larger_groups = larger_groups});
  answer.engine = experiment.engine;
  answer.top = static_cast<std::size_t>(options.top);
  answer.considered = space.choices().size() + answer.search.variants;
  answer.illegal = space.choices().size() - legal.plans.size();
  if (answer.search.left > 0) answer.stopped_by = is_interrupted() ? "interrupt" : "time limit";
  answer.unproven = unproven(space);
  for (const FoundPlan& found : answer.search.pareto)
    answer.front.push_back({plan_of(legal, found), found.step_time_s, found.needed_bytes});
  answer.finalists = finalists_of(space, legal, answer.search, jobs, inputs);
  if (answer.finalists.empty() && answer.search.left == 0)
    answer.fewest_gpus = fewest_for(experiment, legal.plans);
  answer.model = experiment.model;
  answer.elapsed_s = clock.elapsed_s();
  return answer;
}

int find_and_print(const PlanOptions& options) {
  note_interruption();
  const PlanAnswer found = answer(options);
  const bool fits = !found.finalists.empty();
  if (fits || options.json)
    print_answer(options.json ? write_plan_json(found) : write_plan_text(found), options.json);
  if (found.search.left > 0 && (!fits || found.stopped_by == "interrupt")) {
    say(stderr, "rehearse: {}; {} after {} plans ran, and {} that fit were not run\n",
        found.stopped_by == "interrupt" ? "interrupted" : "the time limit ended the search",
        fits ? "the best so far" : "none was found", found.search.run, found.search.left);
    return found.stopped_by == "interrupt" ? kInterrupted : kFailure;
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
            .help = "plans to list; the places do not depend on it",
            .value = "K",
            .bounds = {{1, kMaxTop}}});
  verb.add(jobs_option(options->jobs, "threads"));
  verb.add({.names = {"--time-limit"},
            .target = &options->time_limit_s,
            .help = "seconds until the search ends; the answer says how many places are proven",
            .value = "S",
            .bounds = {{0.001, kMaxTimeLimit_s}}});
  verb.add({{"--json"}, &options->json, "print one JSON object"});
  verb.footer =
      "Searches tp, cp, pp, vpp, ep, mbs, zero, recompute and schedule; a flag restricts one of them to a "
      "value or\n"
      "a list. For interleaved plans it also tries larger microbatch groups. Plans are simulated in the "
      "order "
      "of a\n"
      "proven lower bound of their step, until no other plan can be among the first K. --engine reference "
      "takes\n"
      "steps without contention.\n"
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

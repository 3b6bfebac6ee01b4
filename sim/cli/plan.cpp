#include <fmt/core.h>
#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>

#include "base/error.h"
#include "cli/jobs.h"
#include "cli/plan_answer.h"
#include "cli/plan_space.h"
#include "cli/say.h"
#include "cli/sweep_row.h"
#include "cli/verbs.h"
#include "search/search.h"
#include "sweep/run_points.h"

namespace rehearse {

namespace {

constexpr int kMostTop = 1000;

struct PlanOptions {
  GivenFlags given;
  int top = 5;
  int jobs = 0;
  bool json = false;
};

// The finalists on the engine that the user wants, as `simulate` would run them.
std::vector<Json> run_finalists(const PlanSpace& space, const std::vector<std::size_t>& choices, int jobs,
                                Inputs& inputs) {
  std::vector<Json> reports(choices.size());
  std::vector<Point> points;
  for (std::size_t i = 0; i < choices.size(); ++i) points.push_back(static_cast<Point>(i));
  const auto source = [&](Point i) {
    return space.source_of(space.choices()[choices[static_cast<std::size_t>(i)]]);
  };
  run_in_processes(
      points, [&](Point i) { return evaluate_row(source(i), inputs); }, jobs, [] { return false; },
      [&](Point i, const Row& row) {
        if (!row.report.is_object())
          throw std::runtime_error("a plan that was found cannot run: " + row.reason);
        reports[static_cast<std::size_t>(i)] = row.report;
      });
  return reports;
}

PlanAnswer answer(const PlanOptions& options) {
  const auto begin = std::chrono::steady_clock::now();
  Inputs inputs;
  PlanSpace space(read_swept(options.given, {}), inputs);
  const PlanSpace::Legal legal = space.legal();
  PlanAnswer answer;
  answer.considered = space.choices().size();
  answer.illegal = answer.considered - legal.plans.size();
  if (legal.plans.empty()) space.refuse();
  const int jobs = jobs_or_cores(options.jobs);
  const Experiment experiment = space.experiment_of(space.choices()[legal.choice_of.front()]);
  const SearchResult result =
      search(experiment, legal.plans, {static_cast<std::size_t>(options.top), jobs, true});
  answer.does_not_fit = result.does_not_fit;
  answer.pruned = result.pruned;
  answer.run = result.run;
  std::vector<std::size_t> finalists;
  for (const FoundPlan& found : result.best) finalists.push_back(legal.choice_of[found.index]);
  for (Json& report : run_finalists(space, finalists, jobs, inputs))
    answer.finalists.push_back({std::move(report), legal.plans[result.best[answer.finalists.size()].index]});
  std::stable_sort(
      answer.finalists.begin(), answer.finalists.end(), [](const Finalist& a, const Finalist& b) {
        return a.report.at("step_time_s").get<double>() < b.report.at("step_time_s").get<double>();
      });
  for (const FoundPlan& found : result.pareto)
    answer.front.push_back({legal.plans[found.index], found.step_time_s, found.needed_bytes});
  answer.model = experiment.model;
  answer.elapsed_s = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return answer;
}

}  // namespace

void add_plan(CLI::App& program, int& exit_code) {
  CLI::App* verb = program.add_subcommand("plan", "the best legal plans that fit, and why the others lost");
  const auto options = std::make_shared<PlanOptions>();
  add_scenario_flags(*verb, options->given);
  verb->add_option("--top", options->top, "plans to find and to simulate")
      ->option_text("K")
      ->check(CLI::Range(1, kMostTop));
  add_jobs_flag(*verb, options->jobs, "threads");
  verb->add_flag("--json", options->json, "print one JSON object");
  verb->footer(
      "Searches tp, cp, pp, vpp, ep, mbs, zero, recompute and schedule; a flag holds one of them to a value "
      "or a\n"
      "list. The reference engine runs every plan that a bound does not rule out, --engine the best of "
      "them.\n"
      "Memory is all that lies on the fullest GPU: the allocator's peak, CUDA's context, NCCL's buffers.\n"
      "Examples:\n"
      "  rehearse plan --model llama3-70b --cluster dgx-h100 --gpus 128 --gbs 512\n"
      "  rehearse plan --model gpt3-175b --cluster selene --gpus 4096 --gbs 1536 --schedule "
      "1f1b,interleaved-1f1b\n"
      "  rehearse plan --model mixtral-8x7b --cluster dgx-h100 --gpus 64 --gbs 256 --tp 1:8:*2 --top 10 "
      "--json");
  verb->callback([options, &exit_code] {
    const PlanAnswer found = answer(*options);
    const bool fits = !found.finalists.empty();
    if (fits || options->json)
      print_answer(options->json ? write_plan_json(found) : write_plan_text(found), options->json);
    if (!fits)
      throw DoesNotFit(
          fmt::format("no plan fits: {} considered, {} illegal, {} need more memory than a GPU has",
                      found.considered, found.illegal, found.does_not_fit));
    exit_code = kDone;
  });
}

}  // namespace rehearse

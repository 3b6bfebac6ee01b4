#include "search/search.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <tuple>

#include "run/step_time.h"
#include "search/family.h"
#include "search/in_parallel.h"

namespace rehearse {

namespace {

// Plans whose bounds are raised, or that are simulated, before the best ones are updated. They are fixed
// numbers, so that threads do not change which plans run.
constexpr std::size_t kReferred = 64, kSimulated = 8;

// How a candidate's bound was found (search.h).
enum class Stage : std::uint8_t { priced, referred };

struct Candidate {
  double least_s = 0;
  double needed_bytes = 0;  // of a variant that is only priced: of its plan
  std::size_t index = 0;
  int group = 0;
  Stage stage = Stage::priced;

  bool operator<(const Candidate& other) const {
    return std::tie(least_s, needed_bytes, index, group) <
           std::tie(other.least_s, other.needed_bytes, other.index, other.group);
  }
};

bool is_better(const FoundPlan& a, const FoundPlan& b) {
  return std::tie(a.step_time_s, a.needed_bytes, a.index, a.group) <
         std::tie(b.step_time_s, b.needed_bytes, b.index, b.group);
}

class Search {
 public:
  Search(const Experiment& experiment, const std::vector<Plan>& plans, const SearchOptions& options)
      : plans_(plans), options_(options), simulates_(experiment.engine == Engine::simgrid) {
    for (int thread = 0; thread < options.threads; ++thread)
      experiments_.push_back(std::make_unique<Experiment>(experiment));
    kernels_.resize(experiments_.size());
  }

  SearchResult run() {
    bound();
    while (!queue_.empty() && !options_.is_stopped()) {
      const std::vector<Candidate> round = next_round();
      if (round.empty()) continue;  // bounds exclude all that were left
      if (round.front().stage == Stage::priced) {
        refer(round);
      } else {
        simulate(round);
      }
    }
    close();
    return std::move(result_);
  }

 private:
  const Plan& plan_of(const Candidate& candidate) const {
    return candidate.group == 0 ? plans_[candidate.index] : variants_.at({candidate.index, candidate.group});
  }

  // The experiment of a thread with this plan.
  const Experiment& with(int thread, const Plan& plan) {
    Experiment& experiment = *experiments_[static_cast<std::size_t>(thread)];
    experiment.plan = plan;
    return experiment;
  }

  KernelTimes& kernels(int thread, Precision precision) {
    const Experiment& experiment = *experiments_[static_cast<std::size_t>(thread)];
    auto& times = kernels_[static_cast<std::size_t>(thread)][precision];
    if (!times)
      times = std::make_unique<KernelTimes>(experiment.profile, experiment.cluster.gpu, to_string(precision));
    return *times;
  }

  // Queues the plans that fit with the headroom.
  void bound() {
    std::vector<std::size_t> first;  // of each family
    for (std::size_t i = 0; i < plans_.size(); ++i)
      if (i == 0 || !same_family(plans_[i], plans_[i - 1])) first.push_back(i);
    first.push_back(plans_.size());
    std::vector<std::optional<PlanBounds>> bounds(plans_.size());
    in_parallel(first.size() - 1, options_.threads, [&](int thread, std::size_t f) {
      Family family(with(thread, plans_[first[f]]), kernels(thread, plans_[first[f]].precision));
      for (std::size_t i = first[f]; i < first[f + 1] && !options_.is_stopped(); ++i)
        bounds[i] = family.bounds(with(thread, plans_[i]).plan);
    });
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (!bounds[i]) {
        ++result_.left;
        result_.least_left_s = 0;
      } else if (is_counted_as_fitting(*bounds[i])) {
        queue_.insert({bounds[i]->least_s, bounds[i]->needed_bytes, i});
      }
    }
    fastest_of_.resize(plans_.size(), std::numeric_limits<double>::infinity());
  }

  bool is_counted_as_fitting(const PlanBounds& bounds) {
    result_.does_not_fit += !bounds.leaves_headroom;
    result_.below_headroom += bounds.fits && !bounds.leaves_headroom;
    return bounds.leaves_headroom;
  }

  bool may_be_listed(const Candidate& candidate) const {
    const std::vector<FoundPlan>& best = result_.best;
    const bool is_full =
        best.size() >= options_.top && best[options_.top - 1].step_time_s < candidate.least_s;
    return !is_full && fastest_of_[candidate.index] >= candidate.least_s;
  }

  bool may_be_on_front(const Candidate& candidate) const {
    if (!result_.best.empty() && candidate.least_s > kFrontSteps * result_.best.front().step_time_s)
      return false;
    return std::ranges::none_of(result_.pareto, [&](const FoundPlan& found) {
      return found.needed_bytes <= candidate.needed_bytes && found.step_time_s < candidate.least_s;
    });
  }

  // The first plans of the queue. Raising a bound takes less than a simulation, so plans are only simulated
  // where no priced one is before them.
  std::vector<Candidate> next_round() {
    std::vector<Candidate> priced, referred;
    for (auto at = queue_.begin();
         at != queue_.end() && priced.size() < kReferred && referred.size() < kSimulated;) {
      if (!may_be_listed(*at) && !may_be_on_front(*at)) {
        ++result_.pruned;
        at = queue_.erase(at);
        continue;
      }
      (at->stage == Stage::priced ? priced : referred).push_back(*at);
      ++at;
    }
    std::vector<Candidate>& round = priced.empty() ? referred : priced;
    for (const Candidate& candidate : round) queue_.erase(candidate);
    return std::move(round);
  }

  // The bounds of a plan with its seconds by the tasks and links.
  std::optional<PlanBounds> referred(int thread, const Candidate& candidate) {
    if (options_.is_stopped()) return std::nullopt;
    const Plan& plan = plan_of(candidate);
    const Experiment& experiment = with(thread, plan);
    KernelTimes& times = kernels(thread, plan.precision);
    PlanBounds bounds;
    bounds.needed_bytes = candidate.needed_bytes;
    if (candidate.group != 0) bounds = Family(experiment, times).bounds(experiment.plan);
    if (bounds.leaves_headroom)
      bounds.least_s = simulates_ ? least_simulated_s(experiment, &times) : step_time_s(experiment, &times);
    return bounds;
  }

  void refer(const std::vector<Candidate>& round) {
    std::vector<std::optional<PlanBounds>> bounds(round.size());
    in_parallel(round.size(), options_.threads,
                [&](int thread, std::size_t i) { bounds[i] = referred(thread, round[i]); });
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (!bounds[i]) {
        queue_.insert(round[i]);
        continue;
      }
      add_variants(round[i]);
      if (round[i].group != 0 && !is_counted_as_fitting(*bounds[i])) continue;
      ++result_.referred;
      Candidate known = round[i];
      known.needed_bytes = bounds[i]->needed_bytes;
      known.stage = Stage::referred;
      if (simulates_) {
        known.least_s = std::max(known.least_s, bounds[i]->least_s);
        queue_.insert(known);
      } else {
        add(known, bounds[i]->least_s);
      }
    }
    sort_found();
  }

  void add_variants(const Candidate& of) {
    if (of.group != 0 || !options_.larger_groups) return;
    for (Plan& variant : options_.larger_groups(of.index)) {
      const int group = variant.microbatch_group;
      variants_.emplace(std::pair(of.index, group), std::move(variant));
      queue_.insert({of.least_s, of.needed_bytes, of.index, group});
      ++result_.variants;
    }
  }

  void simulate(const std::vector<Candidate>& round) {
    const std::vector<double> seconds = options_.in_processes(
        round.size(), [&](std::size_t i) { return step_time_s(with(0, plan_of(round[i]))); });
    for (std::size_t i = 0; i < round.size(); ++i) {
      if (std::isnan(seconds[i]))
        queue_.insert(round[i]);
      else
        add(round[i], seconds[i]);
    }
    sort_found();
  }

  void add(const Candidate& candidate, double seconds) {
    ++result_.run;
    found_.push_back({candidate.index, candidate.group, seconds, candidate.needed_bytes});
    double& fastest = fastest_of_[candidate.index];
    fastest = std::min(fastest, seconds);
  }

  // Updates the best, one for each plan given, and the front.
  void sort_found() {
    std::ranges::sort(found_, is_better);
    result_.best.clear();
    result_.pareto.clear();
    std::set<std::size_t> listed;
    for (const FoundPlan& plan : found_) {
      if (listed.insert(plan.index).second) result_.best.push_back(plan);
      if (plan.step_time_s > kFrontSteps * found_.front().step_time_s) continue;
      if (result_.pareto.empty() || plan.needed_bytes < result_.pareto.back().needed_bytes)
        result_.pareto.push_back(plan);
    }
  }

  void close() {
    for (const Candidate& candidate : queue_) {
      const bool may_be_listed_yet = may_be_listed(candidate);
      if (!may_be_listed_yet && !may_be_on_front(candidate)) {
        ++result_.pruned;
        continue;
      }
      ++result_.left;
      if (may_be_listed_yet) result_.least_left_s = std::min(result_.least_left_s, candidate.least_s);
    }
    result_.has_only_bounds = result_.left > 0 && found_.empty();
    if (result_.has_only_bounds) {
      for (const Candidate& candidate : queue_)
        found_.push_back({candidate.index, candidate.group, candidate.least_s, candidate.needed_bytes});
      sort_found();
    }
    result_.best.resize(std::min(result_.best.size(), options_.top));
  }

  const std::vector<Plan>& plans_;
  const SearchOptions& options_;
  const bool simulates_;
  std::vector<std::unique_ptr<Experiment>> experiments_;  // by thread
  std::vector<std::map<Precision, std::unique_ptr<KernelTimes>>> kernels_;
  std::map<std::pair<std::size_t, int>, Plan> variants_;  // by plan and group
  std::set<Candidate> queue_;
  std::vector<FoundPlan> found_;    // best first
  std::vector<double> fastest_of_;  // by plan given: it or its variants, as run
  SearchResult result_;
};

}  // namespace

std::size_t SearchResult::proven() const {
  const auto is_proven = [this](const FoundPlan& plan) { return plan.step_time_s < least_left_s; };
  return static_cast<std::size_t>(std::ranges::find_if_not(best, is_proven) - best.begin());
}

SearchResult search(const Experiment& experiment, const std::vector<Plan>& plans,
                    const SearchOptions& options) {
  const auto refuse = [](const char* field, const char* values, const char* nearest) {
    throw InputError({"", field, "a plan search needs identical GPUs, no jitter and a synchronized step",
                      values, nearest});
  };
  if (std::ranges::any_of(plans, [](const Plan& plan) { return !plan.sync_step; }))
    refuse("sync_step", "sync_step = off", "on");
  if (!experiment.stage_nodes.empty()) refuse("stage_nodes", "GPUs of several kinds", "one kind");
  if (experiment.conditions.has_jitter()) refuse("jitter", "durations vary", "0");
  return Search(experiment, plans, options).run();
}

}  // namespace rehearse

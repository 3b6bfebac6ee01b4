#include "search/search.h"

#include <algorithm>
#include <map>
#include <memory>
#include <tuple>

#include "search/family.h"
#include "search/in_parallel.h"

namespace rehearse {

namespace {

// Plans that run before the best ones are updated. It is a fixed number, so that threads do not change which
// plans run.
constexpr std::size_t kRound = 64;

struct Candidate {
  std::size_t index = 0;
  double least_s = 0;
  double needed_bytes = 0;
};

bool is_better(const FoundPlan& a, const FoundPlan& b) {
  return std::tie(a.step_time_s, a.needed_bytes, a.index) < std::tie(b.step_time_s, b.needed_bytes, b.index);
}

class Search {
 public:
  Search(const Experiment& experiment, const std::vector<Plan>& plans, const SearchOptions& options)
      : plans_(plans), options_(options) {
    for (int thread = 0; thread < options.threads; ++thread) {
      experiments_.push_back(std::make_unique<Experiment>(experiment));
      experiments_.back()->engine = Engine::reference;
      experiments_.back()->fold = Fold::replicas;
      experiments_.back()->with_band = experiments_.back()->with_reserved = experiments_.back()->with_split =
          false;
    }
    kernels_.resize(experiments_.size());
  }

  SearchResult run() {
    std::vector<Candidate> candidates = bound();
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.least_s != b.least_s ? a.least_s < b.least_s : a.index < b.index;
    });
    for (std::size_t next = 0; next < candidates.size();) {
      if (options_.is_stopped()) {
        result_.left = candidates.size() - next;
        break;
      }
      std::vector<Candidate> round;
      for (; next < candidates.size() && round.size() < kRound; ++next) {
        if (options_.prune && cannot_matter(candidates[next])) {
          ++result_.pruned;
        } else {
          round.push_back(candidates[next]);
        }
      }
      run_round(round);
    }
    result_.best.resize(std::min(result_.best.size(), options_.top));
    return std::move(result_);
  }

 private:
  // The experiment of a thread with this plan.
  const Experiment& with(int thread, std::size_t index) {
    Experiment& experiment = *experiments_[static_cast<std::size_t>(thread)];
    experiment.plan = plans_[index];
    return experiment;
  }

  KernelTimes& kernels(int thread, Precision precision) {
    const Experiment& experiment = *experiments_[static_cast<std::size_t>(thread)];
    auto& times = kernels_[static_cast<std::size_t>(thread)][precision];
    if (!times)
      times = std::make_unique<KernelTimes>(experiment.profile, experiment.cluster.gpu, to_string(precision));
    return *times;
  }

  // Plans that fit with the headroom, with their bounds.
  std::vector<Candidate> bound() {
    std::vector<std::size_t> first;  // of each family
    for (std::size_t i = 0; i < plans_.size(); ++i)
      if (i == 0 || !same_family(plans_[i], plans_[i - 1])) first.push_back(i);
    first.push_back(plans_.size());
    std::vector<PlanBounds> bounds(plans_.size());
    in_parallel(first.size() - 1, options_.threads, [&](int thread, std::size_t f) {
      if (options_.is_stopped()) return;
      Family family(with(thread, first[f]), kernels(thread, plans_[first[f]].precision));
      for (std::size_t i = first[f]; i < first[f + 1]; ++i) bounds[i] = family.bounds(with(thread, i).plan);
    });
    if (options_.is_stopped()) {
      result_.left = plans_.size();
      return {};
    }
    std::vector<Candidate> fitting;
    for (std::size_t i = 0; i < plans_.size(); ++i) {
      if (bounds[i].leaves_headroom) fitting.push_back({i, bounds[i].least_s, bounds[i].needed_bytes});
      result_.below_headroom += bounds[i].fits && !bounds[i].leaves_headroom;
    }
    result_.does_not_fit = plans_.size() - fitting.size();
    return fitting;
  }

  bool cannot_matter(const Candidate& candidate) const {
    if (result_.best.size() < options_.top || result_.best[options_.top - 1].step_time_s >= candidate.least_s)
      return false;
    return std::any_of(result_.pareto.begin(), result_.pareto.end(), [&](const FoundPlan& found) {
      return found.needed_bytes <= candidate.needed_bytes && found.step_time_s < candidate.least_s;
    });
  }

  void run_round(const std::vector<Candidate>& round) {
    std::vector<FoundPlan> found(round.size());
    in_parallel(round.size(), options_.threads, [&](int thread, std::size_t i) {
      const Report report = run_iteration(with(thread, round[i].index)).report;
      found[i] = {round[i].index, report.step_time_s, fullest_gpu(report).needed_bytes()};
    });
    result_.run += round.size();
    result_.best.insert(result_.best.end(), found.begin(), found.end());
    std::sort(result_.best.begin(), result_.best.end(), is_better);
    find_front();
  }

  void find_front() {
    result_.pareto.clear();
    for (const FoundPlan& plan : result_.best)
      if (result_.pareto.empty() || plan.needed_bytes < result_.pareto.back().needed_bytes)
        result_.pareto.push_back(plan);
  }

  const std::vector<Plan>& plans_;
  const SearchOptions& options_;
  std::vector<std::unique_ptr<Experiment>> experiments_;  // by thread
  std::vector<std::map<Precision, std::unique_ptr<KernelTimes>>> kernels_;
  SearchResult result_;
};

}  // namespace

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

#include "search/search.h"

#include <algorithm>
#include <memory>
#include <optional>

#include "cost/kernel_times.h"
#include "result/memory.h"
#include "result/sizing.h"
#include "search/bounds.h"
#include "search/in_parallel.h"

namespace rehearse {

namespace {

// Plans run between two looks at what is best; a fixed number, so that threads do not change what runs.
constexpr std::size_t kRound = 64;

struct Candidate {
  std::size_t index = 0;
  double least_s = 0;
  double peak_bytes = 0;
};

bool is_faster(const FoundPlan& a, const FoundPlan& b) {
  return a.step_time_s != b.step_time_s ? a.step_time_s < b.step_time_s : a.index < b.index;
}

class Search {
 public:
  Search(const Experiment& experiment, const std::vector<Plan>& plans, const SearchOptions& options)
      : plans_(plans), options_(options) {
    for (int thread = 0; thread < options.threads; ++thread) {
      experiments_.push_back(std::make_unique<Experiment>(experiment));
      experiments_.back()->engine = Engine::reference;
      experiments_.back()->fold = Fold::replicas;
    }
    kernels_.resize(experiments_.size());
  }

  SearchResult run() {
    std::vector<Candidate> candidates = bound();
    std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
      return a.least_s != b.least_s ? a.least_s < b.least_s : a.index < b.index;
    });
    for (std::size_t next = 0; next < candidates.size();) {
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

  // All precisions of a search are the same as long as its plans' are.
  KernelTimes& kernels(int thread, const Experiment& experiment) {
    auto& known = kernels_[static_cast<std::size_t>(thread)];
    auto& times = known[experiment.plan.precision];
    if (!times)
      times = std::make_unique<KernelTimes>(experiment.profile, experiment.cluster.gpu,
                                            to_string(experiment.plan.precision));
    return *times;
  }

  // Plans that fit, with their bounds.
  std::vector<Candidate> bound() {
    std::vector<std::optional<Candidate>> bounded(plans_.size());
    in_parallel(plans_.size(), options_.threads,
                [&](int thread, std::size_t index) { bounded[index] = bound(thread, index); });
    std::vector<Candidate> fitting;
    for (const auto& candidate : bounded)
      if (candidate) fitting.push_back(*candidate);
    result_.does_not_fit = plans_.size() - fitting.size();
    return fitting;
  }

  std::optional<Candidate> bound(int thread, std::size_t index) {
    const Experiment& experiment = with(thread, index);
    const Cluster& cluster = experiment.cluster;
    const Plan& plan = experiment.plan;
    const Work work = make_work(experiment.model, plan);
    const double workspace = gemm_workspace_bytes(cluster.gpu.peak_flops.contains("fp8"));
    const double peak = peak_bytes(work, plan, workspace);
    if (peak > cluster.gpu.memory_bytes) return std::nullopt;
    const OpTimes times = price(work, plan, cluster, experiment.profile, kernels(thread, experiment)).times;
    return Candidate{index, least_step_time(plan, times), peak};
  }

  bool cannot_matter(const Candidate& candidate) const {
    if (result_.best.size() < options_.top || result_.best[options_.top - 1].step_time_s >= candidate.least_s)
      return false;
    return std::any_of(result_.pareto.begin(), result_.pareto.end(), [&](const FoundPlan& found) {
      return found.peak_bytes <= candidate.peak_bytes && found.step_time_s < candidate.least_s;
    });
  }

  void run_round(const std::vector<Candidate>& round) {
    std::vector<FoundPlan> found(round.size());
    in_parallel(round.size(), options_.threads, [&](int thread, std::size_t i) {
      const Report report = run_iteration(with(thread, round[i].index)).report;
      found[i] = {round[i].index, report.step_time_s, heaviest_rank(report).peak_bytes};
    });
    result_.run += round.size();
    result_.best.insert(result_.best.end(), found.begin(), found.end());
    std::sort(result_.best.begin(), result_.best.end(), is_faster);
    find_front();
  }

  void find_front() {
    result_.pareto.clear();
    for (const FoundPlan& plan : result_.best)
      if (result_.pareto.empty() || plan.peak_bytes < result_.pareto.back().peak_bytes)
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
  for (const Plan& plan : plans) {
    if (plan.sync_step) continue;
    throw InputError(
        {"", "sync_step", "plans are searched with ranks that step together", "sync_step = off", "on"});
  }
  return Search(experiment, plans, options).run();
}

}  // namespace rehearse

#include "search/order/auto_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "cost/layer_costs.h"
#include "run/fit.h"
#include "schedule/orders.h"
#include "search/order/find_orders.h"
#include "search/order/lower_bound.h"
#include "search/order/move_layers.h"
#include "search/order/of_plan.h"

namespace rehearse {

namespace {

constexpr double kTolerance = 1e-6;  // of memory: sums in another order

// SimGrid runs no order with more passes than this. It takes 1.3 s for this many (gpt3-175b on 32 ranks, Xeon
// of 2023), and there are up to seven candidates.
constexpr std::int64_t kMaxSimulated = 60'000;

// One placement of the stages, with the orders that are known for it.
struct Layout {
  Plan plan;
  OrderProblem problem;
  std::vector<Plan> named;
  std::vector<RankOrders> named_orders;
  Ticks bound = 0;
  std::vector<FoundOrder> found;  // fastest first

  Ticks end() const { return found.empty() ? kNever : found.front().end; }
};

// An order that is a candidate for the answer.
struct OrderCandidate {
  const Layout* layout;
  Plan plan;
  Schedule order;
  bool is_named;
  Ticks end;
};

class Seeking {
 public:
  Seeking(const Experiment& experiment, const ScheduleSearch& search)
      : experiment_(experiment), search_(search), memory_(search.memory_bytes) {
    experiment_.order.reset();
    if (memory_ <= 0)
      memory_ =
          experiment.cluster.gpu.memory_bytes - experiment.headroom.of(experiment.cluster.gpu.memory_bytes);
  }

  FoundSchedule run() {
    find_layouts();
    if (layouts_.empty()) throw InputError(broken_);
    const auto work = static_cast<std::int64_t>(search_.seconds * kVisitsPerSecond);
    search_layouts(work);
    if (!search_.is_stopped() && tighten()) search_layouts(work / 2);
    std::vector<OrderCandidate> candidates = finalists();
    std::erase_if(candidates, [&](const OrderCandidate& each) { return !fits(each); });
    if (candidates.empty()) candidates.push_back(leanest());
    return best_of(candidates);
  }

 private:
  // Returns false where the plan is not legal with this placement.
  bool add_layout(const Plan& plan) {
    std::vector<Violation> broken = broken_rules(plan, experiment_.model, plan.gpus());
    if (!broken.empty()) {
      if (broken_.empty()) broken_ = std::move(broken);  // those of one chunk a rank, the simplest case
      return false;
    }
    Experiment with = experiment_;
    with.plan = plan;
    Layout layout;
    layout.plan = plan;
    layout.problem = order_problem(with, memory_);
    layout.named = named_plans(plan);
    for (const Plan& named : layout.named) layout.named_orders.push_back(orders_of(make_order(named)));
    layout.bound = lower_bound(layout.problem);
    layouts_.push_back(std::move(layout));
    return true;
  }

  void add_splits(Plan plan, int vpp, bool v_shaped) {
    plan.vpp = vpp;
    plan.microbatch_group = 0;
    plan.schedule = v_shaped   ? ScheduleName::zb_v
                    : vpp == 1 ? ScheduleName::one_f_one_b
                               : ScheduleName::interleaved;
    plan.layers_per_stage.clear();
    const LayerCosts costs = layer_costs(experiment_.model, plan, experiment_.cluster, experiment_.profile);
    std::vector<std::vector<int>> splits = splits_by_cost(costs, plan);
    plan.layers_per_stage = splits.front();
    if (!add_layout(plan)) return;
    splits.push_back(moved_layers(costs, layouts_.back().problem, splits.front()));
    for (std::size_t i = 1; i < splits.size(); ++i) {
      if (std::find(splits.begin(), splits.begin() + static_cast<std::ptrdiff_t>(i), splits[i]) !=
          splits.begin() + static_cast<std::ptrdiff_t>(i))
        continue;
      plan.layers_per_stage = splits[i];
      add_layout(plan);
    }
  }

  void find_layouts() {
    constexpr int kMaxChunks = 24;  // interleaving's bubble is then 1/24 of 1F1B's: more gains nearly nothing
    const Plan& plan = experiment_.plan;
    if (!search_.chooses_layers) {
      add_layout(plan);
      if (plan.vpp != 2) return;
      Plan turned = plan;
      turned.schedule = ScheduleName::zb_v;
      add_layout(turned);
      return;
    }
    for (int vpp = 1; vpp <= kMaxChunks && (vpp == 1 || vpp * plan.pp <= experiment_.model.layers); ++vpp) {
      add_splits(plan, vpp, false);
      if (vpp == 2) add_splits(plan, vpp, true);
    }
    std::ranges::stable_sort(layouts_, {}, &Layout::bound);
  }

  void search_layout(Layout& layout, std::int64_t work) {
    OrderSearch search{.seed = search_.seed, .work = work, .is_stopped = search_.is_stopped};
    std::vector<RankOrders> starts = layout.named_orders;
    for (const FoundOrder& each : layout.found) starts.push_back(each.orders);
    layout.found = find_orders(layout.problem, starts, search);
  }

  // 40 % of the work is divided evenly among the layouts that may still be best. 60 % goes to the three best
  // of them, half of that to the first: a short search may rank similar layouts wrongly. The shares are
  // chosen, not tuned.
  void search_layouts(std::int64_t work) {
    if (layouts_.size() == 1) return search_layout(layouts_.front(), work);
    Ticks best = kNever;
    const auto share = work * 40 / 100 / static_cast<std::int64_t>(layouts_.size());
    for (Layout& layout : layouts_) {
      if (layout.bound >= best) continue;
      search_layout(layout, share);
      best = std::min(best, layout.end());
    }
    std::ranges::stable_sort(layouts_, {}, &Layout::end);
    const std::size_t most = std::min<std::size_t>(3, layouts_.size());
    for (std::size_t i = 0; i < most && !search_.is_stopped(); ++i)
      if (layouts_[i].end() < kNever) search_layout(layouts_[i], work * (i == 0 ? 30 : 15) / 100);
    std::ranges::stable_sort(layouts_, {}, &Layout::end);
  }

  // Peaks other than that of the activations may let an order need slightly more than the memory. This takes
  // the excess off every rank's activations. Returns false where no order found has an excess.
  bool tighten() {
    double excess = 0;
    for (const OrderCandidate& each : finalists())
      if (!each.is_named) excess = std::max(excess, needed_bytes(each) - memory_);
    if (excess <= kTolerance * memory_) return false;
    for (Layout& layout : layouts_) {
      for (double& bytes : layout.problem.capacity) bytes -= excess;
      layout.found.clear();
    }
    return true;
  }

  static Plan as_searched(Plan plan) {
    if (plan.schedule == ScheduleName::interleaved)
      plan.microbatch_group = static_cast<int>(plan.microbatches());
    return plan;
  }

  // The best orders found, and the best named ones that fit. They are ranked by the times of the search
  // alone; the engine may rank them slightly differently.
  std::vector<OrderCandidate> finalists() const {
    constexpr std::size_t kMaxFound = 4, kMaxNamed = 3;
    std::vector<OrderCandidate> found, named;
    for (const Layout& layout : layouts_) {
      for (const FoundOrder& each : layout.found)
        found.push_back(
            {&layout, as_searched(layout.plan), schedule_of(each.orders, layout.problem), false, each.end});
      OrderClock clock(layout.problem);
      for (std::size_t i = 0; i < layout.named.size(); ++i)
        named.push_back({&layout, layout.named[i], {}, true, clock.run(layout.named_orders[i])});
    }
    for (auto* list : {&found, &named}) std::ranges::stable_sort(*list, {}, &OrderCandidate::end);
    if (found.size() > kMaxFound) found.erase(found.begin() + kMaxFound, found.end());
    std::size_t taken = 0;
    for (OrderCandidate& each : named) {
      each.order = make_order(each.plan);
      if (!fits(each)) continue;
      found.push_back(std::move(each));
      if (++taken == kMaxNamed) break;
    }
    return found;
  }

  Experiment with(const OrderCandidate& finalist) const {
    Experiment experiment = experiment_;
    experiment.plan = finalist.plan;
    experiment.order = finalist.order;
    return experiment;
  }

  double needed_bytes(const OrderCandidate& finalist) const {
    return fullest(footprints_of(with(finalist))).needed_bytes();
  }

  bool fits(const OrderCandidate& finalist) const {
    return needed_bytes(finalist) <= memory_ * (1 + kTolerance);
  }

  // All are run by one engine, because times of two engines do not compare.
  std::vector<double> step_times(const std::vector<OrderCandidate>& candidates) const {
    const bool simulates = std::ranges::all_of(candidates, [](const OrderCandidate& each) {
      return std::int64_t{2} * each.order.stages * each.order.microbatches <= kMaxSimulated;
    });
    std::vector<Experiment> experiments;
    for (const OrderCandidate& each : candidates) {
      experiments.push_back(with(each));
      if (!simulates) experiments.back().engine = Engine::reference;
    }
    return search_.step_times(experiments);
  }

  // The fastest candidate. If the first one does not fit, that one without times.
  FoundSchedule best_of(const std::vector<OrderCandidate>& candidates) const {
    FoundSchedule best;
    best.memory_bytes = memory_;
    best.fits = fits(candidates.front());
    best.plan = as_searched(candidates.front().layout->plan);
    best.order = candidates.front().order;
    if (!best.fits) return best;
    best.step_time_s = std::numeric_limits<double>::infinity();
    const std::vector<double> seconds = step_times(candidates);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const OrderCandidate& each = candidates[i];
      if (each.is_named && (!best.named || seconds[i] < best.named->step_time_s))
        best.named = BestNamed{each.plan, each.order, seconds[i]};
      if (seconds[i] >= best.step_time_s) continue;
      best.step_time_s = seconds[i];
      best.plan = as_searched(each.layout->plan);
      best.order = each.order;
      if (unproven_option(best.plan).empty()) best.least_time_s = seconds_of(each.layout->bound);
    }
    return best;
  }

  // The order that needs least memory, over all layouts.
  OrderCandidate leanest() const {
    std::optional<OrderCandidate> best;
    double least = 0;
    for (const Layout& layout : layouts_) {
      OrderCandidate lean{&layout, as_searched(layout.plan),
                          schedule_of(leanest_orders(layout.problem), layout.problem), false, 0};
      const double bytes = needed_bytes(lean);
      if (best && bytes >= least) continue;
      least = bytes;
      best = std::move(lean);
    }
    return *best;
  }

  Experiment experiment_;
  const ScheduleSearch& search_;
  double memory_;
  std::vector<Layout> layouts_;
  std::vector<Violation> broken_;  // rules of the first layout that is not legal
};

}  // namespace

std::string unproven_option(const Plan& plan) {
  if (plan.pairs_passes()) return "--overlap-experts on";
  if (!plan.sync_step) return "--sync-step off";
  return plan.offload == Offload::activations ? "--offload activations" : "";
}

FoundSchedule find_schedule(const Experiment& experiment, const ScheduleSearch& search) {
  return Seeking(experiment, search).run();
}

std::string name_in_words(const Plan& plan) {
  std::string name = to_string(plan.schedule);
  if (plan.vpp > 1 && !is_v_shaped(plan.schedule)) name += fmt::format(" over {} chunks", plan.vpp);
  if (plan.microbatch_group > 0 && plan.vpp > 1)
    name += fmt::format(", microbatches in groups of {}", plan.microbatch_group);
  return name;
}

}  // namespace rehearse

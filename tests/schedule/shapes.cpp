#include "shapes.h"

#include <algorithm>
#include <numeric>
#include <stdexcept>

namespace rehearse {

std::ostream& operator<<(std::ostream& out, const PipelineShape& shape) {
  const Plan& plan = shape.plan;
  return out << to_string(plan.schedule) << " pp=" << plan.pp << " vpp=" << plan.vpp
             << " microbatches=" << plan.microbatches() << " overlap_p2p=" << plan.overlap_p2p
             << " overlap_grad=" << shape.sync.overlap << " tied=" << shape.sync.tied
             << " replicas=" << shape.sync.replicas;
}

Plan plan_of(ScheduleName name, int pp, int vpp, int microbatches, int dp) {
  Plan plan;
  plan.schedule = name;
  plan.pp = pp;
  plan.vpp = vpp;
  plan.dp = dp;
  plan.global_batch = std::int64_t{microbatches} * dp;
  return plan;
}

namespace {

int any_group(int pp, int microbatches) {
  return *rc::gen::suchThat(rc::gen::inRange(pp, microbatches + 1), [=](int group) {
    return microbatches % group == 0 || microbatches % group >= pp;
  });
}

}  // namespace

rc::Gen<PipelineShape> any_shape() {
  return rc::gen::exec([] {
    const auto name = *rc::gen::elementOf(kScheduleNames);
    const bool interleaves = name == ScheduleName::interleaved;
    const int pp = *rc::gen::inRange(1, 17);
    const int vpp = interleaves ? *rc::gen::inRange(1, 5) : is_v_shaped(name) ? 2 : 1;
    const int least = name == ScheduleName::dualpipe_v ? 2 * pp : 1;
    const int microbatches =
        interleaves && vpp > 1 ? pp * *rc::gen::inRange(1, 4) : *rc::gen::inRange(least, 3 * pp + 1);
    PipelineShape shape{plan_of(name, pp, vpp, microbatches, *rc::gen::inRange(1, 3)), {}};
    if (interleaves && vpp > 1 && *rc::gen::arbitrary<bool>())
      shape.plan.microbatch_group = any_group(pp, microbatches);
    shape.plan.overlap_p2p = *rc::gen::arbitrary<bool>();
    shape.sync.overlap = *rc::gen::arbitrary<bool>();
    shape.sync.tied = *rc::gen::arbitrary<bool>();
    shape.sync.replicas = shape.plan.dp;
    for (int stage = 0; stage < shape.plan.stages(); ++stage)
      shape.sync.buckets.push_back(*rc::gen::inRange(1, 5));
    return shape;
  });
}

Schedule with_list(const Schedule& schedule, int rank, const std::vector<std::size_t>& picked) {
  Schedule result = schedule;
  const RankOps& from = schedule.ranks[static_cast<std::size_t>(rank)];
  RankOps to;
  std::vector<std::int32_t> moved(from.size(), -1);
  for (const std::size_t i : picked) {
    std::vector<std::int32_t> waits;
    for (const std::int32_t wait : from.waits(from[i]))
      waits.push_back(moved[static_cast<std::size_t>(wait)]);
    moved[i] = to.add(from[i], waits);
  }
  result.ranks[static_cast<std::size_t>(rank)] = to;
  return result;
}

std::vector<std::size_t> all_ops(const Schedule& schedule, int rank) {
  std::vector<std::size_t> picked(schedule.ranks[static_cast<std::size_t>(rank)].size());
  std::iota(picked.begin(), picked.end(), std::size_t{0});
  return picked;
}

std::size_t position(const Schedule& schedule, int rank, const std::string& name) {
  const auto& ops = schedule.ranks[static_cast<std::size_t>(rank)].ops();
  const auto found = std::ranges::find_if(ops, [&](const Op& op) { return to_string(op) == name; });
  if (found == ops.end()) throw std::logic_error("no " + name);
  return static_cast<std::size_t>(found - ops.begin());
}

bool same(const Schedule& a, const Schedule& b) {
  if (a.pp != b.pp || a.stages != b.stages || a.microbatches != b.microbatches) return false;
  return std::ranges::equal(a.ranks, b.ranks, [](const RankOps& x, const RankOps& y) {
    return std::ranges::equal(x.ops(), y.ops(), [&](const Op& p, const Op& q) {
      Op aligned = q;  // the same waits may be stored elsewhere
      aligned.first_wait = p.first_wait;
      return p == aligned && std::ranges::equal(x.waits(p), y.waits(q));
    });
  });
}

}  // namespace rehearse

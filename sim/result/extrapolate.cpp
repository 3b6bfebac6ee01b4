#include "result/extrapolate.h"

#include <algorithm>
#include <cmath>

namespace rehearse {

namespace {

// Differences of two rounds that rounding alone makes unequal. Of seconds: relative to a round of the step.
constexpr double kSameRound = 1e-9, kSameBytes = 1e-12;

class Line {
 public:
  Line(const std::array<Report, 3>& shorter, std::int64_t rounds)
      : rounds_(static_cast<double>(rounds)), round_s_(shorter[2].step_time_s - shorter[1].step_time_s) {}

  double seconds(const char* name, double a, double b, double c) {
    const double off = std::abs((c - b) - (b - a)) / std::max(round_s_, 1e-30);
    worst_ = std::max(worst_, off);
    if (off > kSameRound && off_line_.empty()) off_line_ = name;
    return c + (c - b) * rounds_;
  }

  double bytes(double a, double b, double c) {
    const double least = kSameBytes * std::abs(c);
    if (std::abs((c - b) - (b - a)) > least) is_straight_ = false;
    return std::abs(c - b) <= least ? c : c + (c - b) * rounds_;
  }

  template <typename Integer>
  Integer count(Integer a, Integer b, Integer c) {
    if (c - b != b - a) is_straight_ = false;
    return static_cast<Integer>(c + (c - b) * static_cast<Integer>(rounds_));
  }

  bool is_straight() const { return is_straight_; }
  void give_up() { is_straight_ = false; }
  double worst() const { return worst_; }
  double round_s() const { return round_s_; }
  double rounds() const { return rounds_; }
  const std::string& off_line() const { return off_line_; }

 private:
  double rounds_, round_s_, worst_ = 0;
  bool is_straight_ = true;
  std::string off_line_;
};

constexpr std::array<std::pair<const char*, double TimeShares::*>, 10> kShares = {
    {{"compute", &TimeShares::compute},
     {"recompute", &TimeShares::recompute},
     {"optimizer", &TimeShares::optimizer},
     {"bubble", &TimeShares::bubble},
     {"exposed_tp", &TimeShares::exposed_tp},
     {"exposed_pp", &TimeShares::exposed_pp},
     {"exposed_dp", &TimeShares::exposed_dp},
     {"exposed_cp", &TimeShares::exposed_cp},
     {"exposed_ep", &TimeShares::exposed_ep},
     {"exposed_offload", &TimeShares::exposed_offload}}};

TimeShares shares(Line& line, const TimeShares& a, const TimeShares& b, const TimeShares& c) {
  TimeShares time;
  for (const auto& [name, share] : kShares) time.*share = line.seconds(name, a.*share, b.*share, c.*share);
  return time;
}

CommunicationLine communication(Line& line, const CommunicationLine& a, const CommunicationLine& b,
                                CommunicationLine c) {
  if (a.kind != c.kind || b.kind != c.kind || a.op != c.op || b.op != c.op) line.give_up();
  c.calls = line.count(a.calls, b.calls, c.calls);
  c.bytes_per_rank = line.bytes(a.bytes_per_rank, b.bytes_per_rank, c.bytes_per_rank);
  c.busy_s = line.seconds("busy", a.busy_s, b.busy_s, c.busy_s);
  c.exposed_s = line.seconds("exposed", a.exposed_s, b.exposed_s, c.exposed_s);
  return c;
}

// Live microbatches are the same ones, or the same number of later ones, or as many more as a round has.
std::vector<int> live(Line& line, const std::vector<int>& a, const std::vector<int>& b,
                      const std::vector<int>& c) {
  std::vector<int> all;
  if (a.size() == b.size() && b.size() == c.size()) {
    for (std::size_t i = 0; i < c.size(); ++i) all.push_back(line.count(a[i], b[i], c[i]));
    return all;
  }
  all = c;
  const auto begins_with = [](const std::vector<int>& all_of, const std::vector<int>& first) {
    return !first.empty() && first.size() <= all_of.size() &&
           std::equal(first.begin(), first.end(), all_of.begin());
  };
  const bool grows = begins_with(c, b) && begins_with(b, a) && c.size() - b.size() == b.size() - a.size() &&
                     c.back() - b.back() == b.back() - a.back() &&
                     static_cast<std::size_t>(c.back() - b.back()) == c.size() - b.size();
  if (!grows) {
    line.give_up();
    return all;
  }
  const int last = line.count(a.back(), b.back(), c.back());
  for (int next = c.back() + 1; next <= last; ++next) all.push_back(next);
  return all;
}

constexpr std::array kMemoryBytes = {&RankMemory::parameters_bytes,
                                     &RankMemory::gradients_bytes,
                                     &RankMemory::optimizer_bytes,
                                     &RankMemory::activations_bytes,
                                     &RankMemory::logits_bytes,
                                     &RankMemory::buffers_bytes,
                                     &RankMemory::peak_bytes,
                                     &RankMemory::master_bytes,
                                     &RankMemory::left_bytes,
                                     &RankMemory::working_bytes,
                                     &RankMemory::passing_gradients_bytes,
                                     &RankMemory::late_bytes,
                                     &RankMemory::workspace_bytes};

RankMemory memory(Line& line, const RankMemory& a, const RankMemory& b, RankMemory c) {
  for (double RankMemory::*const bytes : kMemoryBytes) c.*bytes = line.bytes(a.*bytes, b.*bytes, c.*bytes);
  c.peak_microbatch = line.count(a.peak_microbatch, b.peak_microbatch, c.peak_microbatch);
  c.peak_time_s = line.seconds("time of the memory peak", a.peak_time_s, b.peak_time_s, c.peak_time_s);
  if (a.alive.size() != c.alive.size() || b.alive.size() != c.alive.size()) {
    line.give_up();
    return c;
  }
  for (std::size_t i = 0; i < c.alive.size(); ++i)
    c.alive[i].microbatches =
        live(line, a.alive[i].microbatches, b.alive[i].microbatches, c.alive[i].microbatches);
  if (!a.reserved_bytes || !b.reserved_bytes || !c.reserved_bytes) c.reserved_bytes.reset();
  if (c.reserved_bytes)
    c.reserved_bytes = line.bytes(*a.reserved_bytes, *b.reserved_bytes, *c.reserved_bytes);
  return c;
}

// A rate is work over time: both grow with the batch.
void add_rates(Report& report, const Report& shorter) {
  const double work = static_cast<double>(report.plan.global_batch) /
                      static_cast<double>(shorter.plan.global_batch),
               faster = work * shorter.step_time_s / std::max(report.step_time_s, 1e-30);
  for (double Report::*const rate :
       {&Report::tokens_per_s, &Report::tokens_per_s_per_gpu, &Report::samples_per_s,
        &Report::model_tflops_per_gpu, &Report::hardware_tflops_per_gpu, &Report::mfu, &Report::hfu})
    report.*rate *= faster;
}

bool are_alike(const Report& a, const Report& b) {
  return a.busy_s.size() == b.busy_s.size() && a.ranks.size() == b.ranks.size() &&
         a.communication.size() == b.communication.size() && a.memory.size() == b.memory.size() &&
         a.critical_rank == b.critical_rank;
}

void add_ranks(Line& line, const std::array<Report, 3>& shorter, Report& report) {
  const auto& [a, b, c] = shorter;
  for (std::size_t r = 0; r < c.busy_s.size(); ++r)
    report.busy_s[r] = line.seconds("busy", a.busy_s[r], b.busy_s[r], c.busy_s[r]);
  for (std::size_t r = 0; r < c.ranks.size(); ++r) {
    report.ranks[r].time = shares(line, a.ranks[r].time, b.ranks[r].time, c.ranks[r].time);
    report.ranks[r].path_s = line.seconds("path", a.ranks[r].path_s, b.ranks[r].path_s, c.ranks[r].path_s);
  }
  for (std::size_t i = 0; i < c.communication.size(); ++i)
    report.communication[i] = communication(line, a.communication[i], b.communication[i], c.communication[i]);
  for (std::size_t r = 0; r < c.memory.size(); ++r)
    report.memory[r] = memory(line, a.memory[r], b.memory[r], c.memory[r]);
}

}  // namespace

std::optional<Extrapolated> extrapolate(const std::array<Report, 3>& shorter, const Plan& plan,
                                        std::int64_t rounds) {
  const auto& [a, b, c] = shorter;
  if (!are_alike(a, c) || !are_alike(b, c)) return std::nullopt;
  Line line(shorter, rounds);
  Report report = c;
  report.plan = plan;
  report.step_time_s = line.seconds("step", a.step_time_s, b.step_time_s, c.step_time_s);
  report.time = shares(line, a.time, b.time, c.time);
  report.mean_time = shares(line, a.mean_time, b.mean_time, c.mean_time);
  add_ranks(line, shorter, report);
  add_rates(report, c);
  add_bubble(report);
  // The rank with the most of the critical path may be another one in the long step.
  if (!report.ranks.empty() && critical_rank(report) != report.critical_rank) return std::nullopt;
  if (!line.is_straight()) return std::nullopt;
  report.extrapolation = Extrapolation{
      {a.plan.microbatches(), b.plan.microbatches(), c.plan.microbatches()}, line.round_s(), line.worst()};
  return Extrapolated{std::move(report), line.off_line()};
}

}  // namespace rehearse

#include "calibrate/timing/coverage.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "calibrate/timing/sampling.h"

namespace rehearse {

namespace {

double rate_of(const GemmSample& s) {
  return 2.0 * static_cast<double>(s.m) * static_cast<double>(s.n) * static_cast<double>(s.k) *
         static_cast<double>(s.batch) / s.seconds;
}

TableSummary table_of(std::string name, std::vector<double> rates, double spread, bool counts_flops) {
  TableSummary table{std::move(name), rates.size(), 0, 0, spread, counts_flops};
  table.best_rate = *std::max_element(rates.begin(), rates.end());
  table.median_rate = summarise(std::move(rates)).seconds;
  return table;
}

template <typename Sample, typename Rate>
void add_table(const std::string& name, const std::vector<Sample>& samples, const Rate& rate,
               bool counts_flops, std::vector<TableSummary>& tables) {
  if (samples.empty()) return;
  std::vector<double> rates;
  double spread = 0;
  for (const Sample& sample : samples) {
    rates.push_back(rate(sample));
    spread = std::max(spread, sample.spread);
  }
  tables.push_back(table_of(name, std::move(rates), spread, counts_flops));
}

struct Timed {
  double seconds = 0, spread = 0;
};
using Times = std::map<std::pair<std::string, std::string>, Timed>;  // by table and sample

Times times_of(const Profile& profile) {
  Times times;
  for (const auto& [precision, samples] : profile.gemm) {
    for (const GemmSample& s : samples)
      times[{"gemm " + precision, fmt::format("{} x {} x {} x {}", s.m, s.n, s.k, s.batch)}] = {s.seconds,
                                                                                                s.spread};
  }
  for (const AttentionSample& s : profile.attention)
    times[{"attention", fmt::format("{} wide, {} keys{}{}", s.head_dim, s.seq, s.causal ? ", causal" : "",
                                    s.backward ? ", backward" : "")}] = {1 / s.flops_per_s, s.spread};
  for (const auto& [kind, samples] : profile.stream) {
    for (const StreamSample& s : samples)
      times[{"stream " + kind, fmt::format("{:.0f} bytes", s.bytes)}] = {s.bytes / s.bytes_per_s, s.spread};
  }
  if (!profile.measurement) return times;
  for (const MessageSample& s : profile.measurement->messages)
    times[{"messages", fmt::format("{} of {:.0f} bytes over {} on {}", s.op, s.bytes, s.members, s.nodes)}] =
        {s.seconds, s.spread};
  for (const HostCopySample& s : profile.measurement->host_copies)
    times[{"host copies", fmt::format("{:.0f} bytes {}", s.bytes, s.to_host ? "to the host" : "from it")}] = {
        s.seconds, s.spread};
  return times;
}

}  // namespace

std::vector<TableSummary> summarise(const Profile& profile) {
  std::vector<TableSummary> tables;
  for (const auto& [precision, samples] : profile.gemm)
    add_table("gemm " + precision, samples, rate_of, true, tables);
  add_table(
      "attention", profile.attention, [](const AttentionSample& s) { return s.flops_per_s; }, true, tables);
  for (const auto& [kind, samples] : profile.stream)
    add_table(
        "stream " + kind, samples, [](const StreamSample& s) { return s.bytes_per_s; }, false, tables);
  if (profile.measurement)
    add_table(
        "messages", profile.measurement->messages, [](const MessageSample& s) { return s.bytes / s.seconds; },
        false, tables);
  if (profile.measurement)
    add_table(
        "host copies", profile.measurement->host_copies,
        [](const HostCopySample& s) { return s.bytes / s.seconds; }, false, tables);
  return tables;
}

Missing missing_of(const Profile& profile, const Jobs& jobs) {
  Missing missing;
  for (const KernelJob& job : jobs.kernels) {
    if (!missing.kernels.empty() && missing.kernels.back() == job.key) continue;  // equal keys are neighbours
    if (!has_sample(profile, job.key)) missing.kernels.push_back(job.key);
  }
  for (const MessageJob& job : jobs.messages) {
    if (!has_sample_anywhere(profile, job)) missing.messages.push_back(job);
  }
  return missing;
}

std::vector<Agreement> compare(const Profile& first, const Profile& second) {
  const Times a = times_of(first), b = times_of(second);
  std::vector<Agreement> all;
  for (const auto& [key, timed] : a) {
    const auto other = b.find(key);
    if (other == b.end()) continue;
    all.push_back(
        {key.first, key.second, other->second.seconds / timed.seconds, timed.spread + other->second.spread});
  }
  return all;
}

}  // namespace rehearse

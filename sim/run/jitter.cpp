#include "run/jitter.h"

#include <algorithm>
#include <cmath>
#include <numbers>

#include "base/percentile.h"
#include "run/transfer_alone.h"

namespace rehearse {

namespace {

// SplitMix64 (Steele, Lea, Flood 2014): a good hash of its counter.
std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15ULL;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31);
}

// In (0, 1).
double uniform(std::uint64_t bits) {
  return (static_cast<double>(bits >> 11) + 0.5) * 0x1p-53;
}

// Box and Muller 1958.
double standard_normal(std::uint64_t key) {
  const double a = uniform(mix(key)), b = uniform(mix(key ^ 0x5851f42d4c957f2dULL));
  return std::sqrt(-2 * std::log(a)) * std::cos(2 * std::numbers::pi * b);
}

double draw(double variation, std::uint64_t key) {
  if (variation == 0) return 1;
  const double s2 = std::log1p(variation * variation);
  return std::exp(std::sqrt(s2) * standard_normal(key) - s2 / 2);
}

}  // namespace

Loads jittered(const Loads& loads, const Conditions& conditions, int iteration) {
  Loads varied = loads;
  std::vector<double> bytes_of_link(loads.capacity.size(), 0);
  const std::uint64_t run = mix(conditions.seed) ^ mix(static_cast<std::uint64_t>(iteration) + 1);
  for (TaskId task = 0; task < loads.fixed_s.size(); ++task) {
    const std::uint32_t first = loads.first_flow[task], last = loads.first_flow[task + 1];
    const Jitter& jitter = conditions.jitter;
    const double factor = draw(first == last ? jitter.compute : jitter.messages, mix(run + task));
    varied.fixed_s[task] *= factor;
    for (std::vector<double>* part : {&varied.slowed_s, &varied.waits_s})
      if (!part->empty()) (*part)[task] *= factor;
    for (std::uint32_t flow = first; flow < last; ++flow) {
      const double bytes = std::ceil(static_cast<double>(loads.flows[flow].bytes) * factor);
      varied.flows[flow].bytes = static_cast<std::uint64_t>(bytes);
    }
    if (first != last) varied.transfer_s[task] = transfer_alone_s(varied, task, bytes_of_link);
  }
  return varied;
}

Spread spread_of(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  Spread spread;
  for (const double time : times) spread.mean_s += time / static_cast<double>(times.size());
  double squares = 0;
  for (const double time : times) squares += (time - spread.mean_s) * (time - spread.mean_s);
  if (times.size() > 1) spread.deviation_s = std::sqrt(squares / static_cast<double>(times.size() - 1));
  spread.least_s = times.front();
  spread.median_s = percentile(times, 0.5);
  spread.p95_s = percentile(times, 0.95);
  spread.most_s = times.back();
  return spread;
}

}  // namespace rehearse

#include "cost/concurrent_ranks.h"

namespace rehearse {

namespace {

// How many times as long a kernel takes; 1 for kernels that were not measured.
double longer(const std::map<std::string, double>& slowdowns, const std::string& name, double computing) {
  const auto found = slowdowns.find(name);
  return found == slowdowns.end() ? 1 : 1 + computing * (found->second - 1);
}

}  // namespace

Profile with_concurrent_ranks(Profile profile, double computing) {
  if (!profile.measurement || !profile.measurement->with_concurrent_ranks) return profile;
  const Slowdowns& slowdowns = *profile.measurement->with_concurrent_ranks;
  for (auto& [name, samples] : profile.gemm)
    for (GemmSample& sample : samples) sample.seconds *= longer(slowdowns.gemm, name, computing);
  for (AttentionSample& sample : profile.attention)
    sample.flops_per_s /= longer(slowdowns.attention, sample.backward ? "backward" : "forward", computing);
  for (auto& [name, samples] : profile.stream) {
    const double factor = longer(slowdowns.stream, name, computing) * longer(slowdowns.step, name, 1);
    for (StreamSample& sample : samples) sample.bytes_per_s /= factor;
  }
  return profile;
}

}  // namespace rehearse

#include "calibrate/timing/host_copies.h"

#include "calibrate/timing/sampling.h"

namespace rehearse {

namespace {

constexpr std::size_t kSmallest = std::size_t{64} << 10, kLargest = std::size_t{256} << 20, kStep = 8;

}  // namespace

std::vector<HostCopySample> time_host_copies(kernels::Device& device, double budget_s,
                                             const std::function<bool()>& stopped) {
  const std::unique_ptr<kernels::Stream> stream = device.make_stream();
  const kernels::Buffer on_device(device, kLargest), on_host(device, kLargest, kernels::Place::host);
  stream->clear(on_device.data(), kLargest);
  stream->clear(on_host.data(), kLargest);
  std::vector<HostCopySample> samples;
  for (std::size_t bytes = kSmallest; bytes <= kLargest; bytes *= kStep) {
    for (const bool to_host : {true, false}) {
      const auto run = [&](int launches) {
        const auto begin = stream->record();
        for (int i = 0; i < launches; ++i)
          stream->copy(to_host ? on_host.data() : on_device.data(),
                       to_host ? on_device.data() : on_host.data(), bytes);
        const auto end = stream->record();
        stream->synchronize();
        return end->seconds_since(*begin);
      };
      const Timing timing = summarise(sample(run, budget_s / 2, stopped));
      samples.push_back({to_host, static_cast<double>(bytes), timing.seconds, timing.spread});
      if (stopped()) return samples;
    }
  }
  return samples;
}

}  // namespace rehearse

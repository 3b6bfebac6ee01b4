#include "calibrate/timing/calibration.h"

#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <ctime>

#include "calibrate/timing/fit_links.h"
#include "calibrate/timing/message_timer.h"

namespace rehearse {

namespace {

constexpr double kWideSpread = 0.1;
constexpr double kMovedClock = 0.05;
constexpr double kSaveEvery = 2.0;  // seconds

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = {};
  std::tm parts = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
  return text;
}

// The mean of timings of one key: kernels that the profile cannot tell apart.
struct Mean {
  double sum = 0, spread = 0;
  int count = 0;
  void add(double value, double its_spread) {
    sum += value;
    spread = std::max(spread, its_spread);
    ++count;
  }
};

class Calibrating {
 public:
  Calibrating(kernels::Device& device, const CalibrationRequest& request, Profile profile)
      : device_(device),
        request_(request),
        timer_(device, request.cache, request.budget_s, request.stopped),
        begin_(Clock::now()) {
    result_.profile = std::move(profile);
    if (!result_.profile.measurement) result_.profile.measurement.emplace();
    describe();
  }

  Calibration run() {
    count_jobs();
    if (result_.profile.launch_s == 0) result_.profile.launch_s = timer_.launch().seconds;
    const std::vector<KernelJob>& kernels = request_.jobs.kernels;
    for (std::size_t i = 0; i < kernels.size() && !stop();) i = take_key(i);
    for (const MessageJob& job : request_.jobs.messages) {
      if (stop()) break;
      take(job);
    }
    finish();
    return std::move(result_);
  }

 private:
  using Clock = std::chrono::steady_clock;

  double passed() const { return std::chrono::duration<double>(Clock::now() - begin_).count(); }
  Measurement& measurement() { return *result_.profile.measurement; }
  bool stop() {
    if (request_.stopped()) result_.complete = false;
    return !result_.complete;
  }

  void describe() {
    const kernels::DeviceFacts facts = device_.facts();
    measurement().device = facts.name;
    measurement().libraries = facts.libraries;
    measurement().cores = facts.cores;
    measurement().cache = request_.cache == Cache::cold ? "cold" : "warm";
    measurement().clock_hz = device_.clock_hz();
  }

  void count_jobs() {
    for (const KernelJob& job : request_.jobs.kernels) {
      if (!has_sample(result_.profile, job.key)) ++all_;
    }
    for (const MessageJob& job : request_.jobs.messages) {
      if (!has_sample(result_.profile, job)) ++all_;
    }
  }

  void tell(const std::string& job) {
    const double left =
        done_ == 0 ? 0 : passed() / static_cast<double>(done_) * static_cast<double>(all_ - done_);
    if (request_.progress) request_.progress(job, done_, all_, left);
    if (!request_.save || !result_.above_peak.empty() || passed() - saved_at_ < kSaveEvery) return;
    request_.save(result_.profile);
    saved_at_ = passed();
  }

  void check_spread(const std::string& job, const Timing& timing) {
    if (timing.spread > kWideSpread)
      result_.notes.push_back(fmt::format("{}: quartiles {:.0f} % apart", job, 100 * timing.spread));
  }

  // All kernels of the key at `first`; the index after them.
  std::size_t take_key(std::size_t first) {
    const std::vector<KernelJob>& kernels = request_.jobs.kernels;
    const SampleKey& key = kernels[first].key;
    std::size_t end = first;
    while (end < kernels.size() && kernels[end].key == key) ++end;
    if (has_sample(result_.profile, key)) {
      result_.known += end - first;
      return end;
    }
    Mean mean;
    for (std::size_t i = first; i < end && !request_.stopped(); ++i) {
      tell(to_string(key));
      try {
        const Timing timing = timer_.time(request_.jobs, kernels[i]);
        check_spread(to_string(key), timing);
        mean.add(value_of(kernels[i], timing.seconds), timing.spread);
        ++result_.measured;
      } catch (const kernels::DeviceError& error) {
        result_.notes.push_back(fmt::format("{}: {}", to_string(key), error.what()));
      }
      ++done_;
    }
    if (mean.count > 0 && !request_.stopped()) store(key, mean);
    return end;
  }

  // What the profile holds for so many seconds: the time of a GEMM, the rate of the others.
  static double value_of(const KernelJob& job, double seconds) {
    if (job.key.table == SampleKey::Table::gemm) return seconds;
    if (job.key.table == SampleKey::Table::stream) return job.key.size[0] / seconds;
    Attention step = std::get<Attention>(job.kernel.what);
    step.steps = 1;
    return flops(step) * (step.causal ? 0.5 : 1) / seconds;
  }

  void store(const SampleKey& key, const Mean& mean) {
    const double value = mean.sum / mean.count;
    const auto whole = [&key](std::size_t i) { return static_cast<std::int64_t>(key.size[i]); };
    Profile& profile = result_.profile;
    if (key.table == SampleKey::Table::gemm) {
      check_peak(key, 2 * key.size[0] * key.size[1] * key.size[2] * key.size[3] / value, key.name);
      profile.gemm[key.name].push_back({whole(0), whole(1), whole(2), value, whole(3), mean.spread});
    } else if (key.table == SampleKey::Table::attention) {
      check_peak(key, value, to_string(request_.jobs.plans[0].plan.precision));
      profile.attention.push_back({whole(0), whole(1), key.size[2] > 0, key.size[3] > 0, value, mean.spread});
    } else {
      const double most = request_.cluster.gpu.memory_bandwidth;
      if (value > most && request_.cache == Cache::cold)
        result_.notes.push_back(
            fmt::format("{}: {:.3g} GB/s is above the memory's {:.3g}: part came from the cache",
                        to_string(key), value * 1e-9, most * 1e-9));
      profile.stream[key.name].push_back({key.size[0], std::min(value, most), mean.spread});
    }
  }

  void check_peak(const SampleKey& key, double rate, const std::string& precision) {
    const auto peak = request_.cluster.gpu.peak_flops.find(precision);
    if (peak == request_.cluster.gpu.peak_flops.end() || rate <= peak->second) return;
    result_.above_peak.push_back(fmt::format("{}: {:.4g} TFLOPS, but {} has a peak of {:.4g}", to_string(key),
                                             rate * 1e-12, request_.cluster.gpu.name, peak->second * 1e-12));
  }

  void take(const MessageJob& job) {
    if (has_sample(result_.profile, job)) {
      ++result_.known;
      return;
    }
    tell(to_string(job));
    const Timing timing = time_message(job, request_.budget_s, request_.stopped);
    check_spread(to_string(job), timing);
    measurement().messages.push_back(
        {message_name(job.op), job.members, job.bytes, timing.seconds, timing.spread});
    ++result_.measured;
    ++done_;
  }

  void finish() {
    const FittedLinks fitted = fit_links(measurement().messages, request_.cluster.node.gpu_link,
                                         request_.cluster.node.gpu_link_kind);
    if (!fitted.links.empty()) result_.profile.links = fitted.links;
    if (fitted.above_port)
      result_.notes.push_back(
          "messages were faster than the bandwidth of the cluster's gpu_link, which holds them back");
    measurement().clock_hz_after = device_.clock_hz();
    const double before = measurement().clock_hz, after = measurement().clock_hz_after;
    if (before > 0 && std::abs(after / before - 1) > kMovedClock)
      result_.notes.push_back(
          fmt::format("the clock moved from {:.2f} to {:.2f} GHz", before * 1e-9, after * 1e-9));
    if (result_.measured > 0) {
      measurement().date = today();
      measurement().notes.insert(measurement().notes.end(), result_.notes.begin(), result_.notes.end());
    }
    if (request_.save && result_.above_peak.empty()) request_.save(result_.profile);
  }

  kernels::Device& device_;
  const CalibrationRequest& request_;
  KernelTimer timer_;
  Clock::time_point begin_;
  Calibration result_;
  std::size_t done_ = 0, all_ = 0;
  double saved_at_ = 0;
};

}  // namespace

Calibration calibrate(kernels::Device& device, const CalibrationRequest& request, Profile profile) {
  return Calibrating(device, request, std::move(profile)).run();
}

}  // namespace rehearse

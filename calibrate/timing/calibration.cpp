#include "calibrate/timing/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <ctime>
#include <vector>

#include "calibrate/timing/fit_links.h"
#include "calibrate/timing/message_timer.h"

namespace rehearse {

namespace {

constexpr double kWideSpread = 0.1;
constexpr double kMovedClock = 0.05;

std::string today() {
  const std::time_t now = std::time(nullptr);
  char text[16] = {};
  std::tm parts = {};
  std::strftime(text, sizeof text, "%Y-%m-%d", gmtime_r(&now, &parts));
  return text;
}

// Every job is timed so many times, each in its own stretch of the run: what changes meanwhile (other work on
// the machine, clocks) shows in the spread instead of in one sample.
constexpr int kRounds = 3;

class Calibrating {
 public:
  Calibrating(kernels::Device& device, const CalibrationRequest& request, Profile profile)
      : device_(device),
        request_(request),
        timer_(device, request.cache, request.budget_s / kRounds, request.stopped),
        begin_(Clock::now()),
        kernels_(request.jobs.kernels.size()),
        messages_(request.jobs.messages.size()) {
    result_.profile = std::move(profile);
    if (!result_.profile.measurement) result_.profile.measurement.emplace();
    describe();
  }

  Calibration run() {
    find_known();
    if (result_.profile.launch_s == 0) result_.profile.launch_s = summarise(timer_.launch()).seconds;
    for (int round = 0; round < kRounds && !stop(); ++round) time_all();
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

  // What is timed of one job: seconds of a launch, or why there are none.
  struct Times {
    bool known = false;
    std::vector<double> seconds;
    std::string failure;
    bool wanted() const { return !known && failure.empty(); }
  };

  template <typename Which>
  std::size_t count(const Which& which) const {
    return static_cast<std::size_t>(std::count_if(kernels_.begin(), kernels_.end(), which) +
                                    std::count_if(messages_.begin(), messages_.end(), which));
  }

  void find_known() {
    for (std::size_t i = 0; i < kernels_.size(); ++i)
      kernels_[i].known = has_sample(result_.profile, request_.jobs.kernels[i].key);
    for (std::size_t i = 0; i < messages_.size(); ++i)
      messages_[i].known = has_sample(result_.profile, request_.jobs.messages[i]);
    result_.known = count([](const Times& times) { return times.known; });
    all_ = kRounds * (kernels_.size() + messages_.size() - result_.known);
  }

  void tell(const std::string& job) {
    const double left =
        done_ == 0 ? 0 : passed() / static_cast<double>(done_) * static_cast<double>(all_ - done_);
    if (request_.progress) request_.progress(job, done_, all_, left);
    ++done_;
  }

  void check_spread(const std::string& job, const Timing& timing) {
    if (timing.spread > kWideSpread)
      result_.notes.push_back(fmt::format("{}: quartiles {:.0f} % apart", job, 100 * timing.spread));
  }

  void time_all() {
    const auto add = [](Times& times, const std::vector<double>& seconds) {
      times.seconds.insert(times.seconds.end(), seconds.begin(), seconds.end());
    };
    for (std::size_t i = 0; i < kernels_.size() && !stop(); ++i) {
      const KernelJob& job = request_.jobs.kernels[i];
      if (!kernels_[i].wanted()) continue;
      tell(to_string(job.key));
      try {
        add(kernels_[i], timer_.time(request_.jobs, job));
      } catch (const kernels::DeviceError& error) {
        kernels_[i].failure = error.what();
        result_.notes.push_back(fmt::format("{}: {}", to_string(job.key), error.what()));
      }
    }
    for (std::size_t i = 0; i < messages_.size() && !stop(); ++i) {
      const MessageJob& job = request_.jobs.messages[i];
      if (!messages_[i].wanted()) continue;
      tell(to_string(job));
      add(messages_[i], time_message(job, request_.budget_s / kRounds, request_.stopped));
    }
  }

  // Kernels that the profile cannot tell apart become one sample: the mean of their values, the widest of
  // their spreads. One that was not timed, because the run was stopped, leaves the key for the next run.
  void store_kernels() {
    const std::vector<KernelJob>& jobs = request_.jobs.kernels;
    for (std::size_t first = 0, end = 0; first < jobs.size(); first = end) {
      double sum = 0, spread = 0, count = 0;
      bool whole = true;
      for (end = first; end < jobs.size() && jobs[end].key == jobs[first].key; ++end) {
        const Times& times = kernels_[end];
        if (!times.failure.empty()) continue;
        if (times.seconds.empty()) {
          whole = false;
          continue;
        }
        const Timing timing = summarise(times.seconds);
        check_spread(to_string(jobs[end].key), timing);
        sum += value_of(jobs[end], timing.seconds);
        spread = std::max(spread, timing.spread);
        ++count;
      }
      if (whole && count > 0) store(jobs[first].key, sum / count, spread);
    }
  }

  void store_messages() {
    for (std::size_t i = 0; i < messages_.size(); ++i) {
      if (messages_[i].seconds.empty()) continue;
      const MessageJob& job = request_.jobs.messages[i];
      const Timing timing = summarise(messages_[i].seconds);
      check_spread(to_string(job), timing);
      measurement().messages.push_back(
          {message_name(job.op), job.members, job.bytes, timing.seconds, timing.spread});
    }
  }

  // What the profile holds for so many seconds: the time of a GEMM, the rate of the others.
  static double value_of(const KernelJob& job, double seconds) {
    if (job.key.table == SampleKey::Table::gemm) return seconds;
    if (job.key.table == SampleKey::Table::stream) return job.key.size[0] / seconds;
    Attention step = std::get<Attention>(job.kernel.what);
    step.steps = 1;
    return flops(step) * (step.causal ? 0.5 : 1) / seconds;
  }

  void store(const SampleKey& key, double value, double spread) {
    const auto whole = [&key](std::size_t i) { return static_cast<std::int64_t>(key.size[i]); };
    Profile& profile = result_.profile;
    if (key.table == SampleKey::Table::gemm) {
      check_peak(key, 2 * key.size[0] * key.size[1] * key.size[2] * key.size[3] / value, key.name);
      profile.gemm[key.name].push_back({whole(0), whole(1), whole(2), value, whole(3), spread});
    } else if (key.table == SampleKey::Table::attention) {
      check_peak(key, value, to_string(request_.jobs.plans[0].plan.precision));
      profile.attention.push_back({whole(0), whole(1), key.size[2] > 0, key.size[3] > 0, value, spread});
    } else {
      const double most = request_.cluster.gpu.memory_bandwidth;
      if (value > most && request_.cache == Cache::cold)
        result_.notes.push_back(
            fmt::format("{}: {:.3g} GB/s is above the memory's {:.3g}: part came from the cache",
                        to_string(key), value * 1e-9, most * 1e-9));
      profile.stream[key.name].push_back({key.size[0], std::min(value, most), spread});
    }
  }

  void check_peak(const SampleKey& key, double rate, const std::string& precision) {
    const auto peak = request_.cluster.gpu.peak_flops.find(precision);
    if (peak == request_.cluster.gpu.peak_flops.end() || rate <= peak->second) return;
    result_.above_peak.push_back(fmt::format("{}: {:.4g} TFLOPS, but {} has a peak of {:.4g}", to_string(key),
                                             rate * 1e-12, request_.cluster.gpu.name, peak->second * 1e-12));
  }

  void finish() {
    result_.measured = count([](const Times& times) { return !times.seconds.empty(); });
    store_kernels();
    store_messages();
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
  std::vector<Times> kernels_, messages_;  // by job
  std::size_t done_ = 0, all_ = 0;
};

}  // namespace

Calibration calibrate(kernels::Device& device, const CalibrationRequest& request, Profile profile) {
  return Calibrating(device, request, std::move(profile)).run();
}

}  // namespace rehearse

#include "calibrate/timing/calibration.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <ctime>
#include <vector>

#include "calibrate/timing/concurrent_load.h"
#include "calibrate/timing/fit_profile.h"
#include "calibrate/timing/host_copies.h"
#include "calibrate/timing/message_rounds.h"
#include "cost/collectives.h"
#include "cost/curves.h"

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

// Every job is timed this many times, in separate parts of the run. Changes meanwhile (other work on the
// machine, clocks) then appear in the spread, and not in one sample only.
constexpr int kRounds = 3;

class Calibrating {
 public:
  Calibrating(kernels::Device& device, const CalibrationRequest& request, Profile profile)
      : device_(device),
        request_(request),
        timer_(device, request.cache, request.budget_s / kRounds, request.stopped),
        begin_(Clock::now()),
        kernels_(request.jobs.kernels.size()) {
    result_.profile = std::move(profile);
    if (!result_.profile.measurement) result_.profile.measurement.emplace();
    describe();
  }

  Calibration run() {
    find_known();
    time_messages();
    if (!is_first()) return std::move(result_);
    if (result_.profile.launch_s == 0) result_.profile.launch_s = summarise(timer_.launch()).seconds;
    timer_.take_host_launch_s();
    for (int round = 0; round < kRounds && !stop(); ++round) time_kernels();
    keep_host_launch();
    if (!stop()) time_in_company();
    keep_host_launch();  // of a host that launches for the other partitions, too
    time_host_copies();
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

  // Timings of one job: seconds of a launch, or the reason why there are none.
  struct Times {
    bool known = false;
    std::vector<double> seconds;
    std::string failure;
    bool wanted() const { return !known && failure.empty(); }
  };

  // With several processes, the first one has the profile.
  bool is_first() const { return request_.ranks == nullptr || request_.ranks->worlds.front()->rank() == 0; }

  template <typename Which>
  std::size_t count(const Which& which) const {
    return static_cast<std::size_t>(std::count_if(kernels_.begin(), kernels_.end(), which));
  }

  void find_known() {
    for (std::size_t i = 0; i < kernels_.size(); ++i)
      kernels_[i].known = has_sample(result_.profile, request_.jobs.kernels[i].key);
    result_.known = count([](const Times& times) { return times.known; });
    all_ = kRounds * (kernels_.size() - result_.known);
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

  void check_machine() {
    const double spread = median_spread(result_.profile);
    if (spread > kWideSpread)
      result_.notes.push_back(fmt::format(
          "the machine was busy: the median kernel's quartiles are {:.0f} % apart. Error bars of this "
          "profile contain half of that. Repeat on an idle machine with another -o",
          100 * spread));
  }

  // Uses threads on cores, unless other ranks are given.
  void time_messages() {
    int most = 0;
    for (const MessageJob& job : request_.jobs.messages) most = std::max(most, job.members);
    if (most == 0) return;
    Ranks own;
    if (request_.ranks == nullptr) own = threads_on_cores(most);
    const std::size_t kernel_timings = all_;
    MessageRequest wanted{request_.ranks == nullptr ? own : *request_.ranks, request_.jobs, kRounds};
    wanted.budget_s = request_.budget_s / kRounds;
    wanted.timeout_s = request_.timeout_s;
    wanted.least_bytes = timer_.least_bytes();
    wanted.stopped = request_.stopped;
    wanted.known = [this](const MessageJob& job) { return has_sample(result_.profile, job); };
    wanted.known_beside = [this](const MessageJob& job) { return has_beside(job); };
    if (have_gpus_of_their_own())
      wanted.known_together = [this] { return measurement().together.has_value(); };
    wanted.before = [&](const std::string& what, std::size_t messages) {
      all_ = kernel_timings + messages;
      tell(what);
    };
    store(rehearse::time_messages(wanted));
  }

  // NCCL_HOSTID lets several ranks of one GPU count as ranks of several machines.
  bool have_gpus_of_their_own() const { return by_nccl() && std::getenv("NCCL_HOSTID") == nullptr; }
  bool by_nccl() const {
    return request_.ranks != nullptr && request_.ranks->started && device_.facts().kind == "cuda";
  }

  bool has_beside(const MessageJob& job) {
    const std::vector<BesideSample>& known = measurement().beside;
    return std::any_of(known.begin(), known.end(), [&](const BesideSample& sample) {
      return sample.message.op == message_name(job.op) && (sample.message.nodes > 1) == (job.nodes > 1);
    });
  }

  // The other partitions of the GPU, which compute concurrently.
  std::vector<kernels::Device*> others() const {
    std::vector<kernels::Device*> devices;
    for (std::size_t i = 1; request_.ranks != nullptr && i < request_.ranks->devices.size(); ++i)
      devices.push_back(request_.ranks->devices[i].get());
    return devices;
  }

  // Slowdowns of the kernels just timed in isolation. Earlier values of other tables stay.
  void time_in_company() {
    const std::vector<kernels::Device*> devices = others();
    std::vector<double> alone_s;
    for (const Times& times : kernels_)
      alone_s.push_back(times.seconds.empty() ? 0 : summarise(times.seconds).seconds);
    if (devices.empty() || std::ranges::none_of(alone_s, [](double seconds) { return seconds > 0; })) return;
    all_ +=
        static_cast<std::size_t>(std::ranges::count_if(alone_s, [](double seconds) { return seconds > 0; }));
    Slowdowns found =
        concurrent_slowdowns(devices, request_.jobs, alone_s, timer_, [this](const KernelJob& job) {
          tell(to_string(job.key) + ", in company");
          return !stop();
        });
    if (stop()) return;
    if (const auto& known = measurement().with_concurrent_ranks; known && known->others == found.others) {
      found.gemm.insert(known->gemm.begin(), known->gemm.end());
      found.attention.insert(known->attention.begin(), known->attention.end());
      found.stream.insert(known->stream.begin(), known->stream.end());
      found.step.insert(known->step.begin(), known->step.end());
    }
    measurement().with_concurrent_ranks = std::move(found);
  }

  void keep_host_launch() {
    if (const double seconds = timer_.take_host_launch_s(); seconds > 0)
      result_.profile.host_launch_s = result_.profile.host_collective_s = seconds;
  }

  void time_kernels() {
    for (std::size_t i = 0; i < kernels_.size() && !stop(); ++i) {
      const KernelJob& job = request_.jobs.kernels[i];
      if (!kernels_[i].wanted()) continue;
      tell(to_string(job.key));
      try {
        const std::vector<double> seconds = timer_.time(request_.jobs, job);
        kernels_[i].seconds.insert(kernels_[i].seconds.end(), seconds.begin(), seconds.end());
        if (job.key.table != SampleKey::Table::stream) look_at_clock(to_string(job.key));
      } catch (const kernels::DeviceError& error) {
        kernels_[i].failure = error.what();
        result_.notes.push_back(fmt::format("{}: {}", to_string(job.key), error.what()));
      }
    }
  }

  // GEMMs draw the most power. In sequence they can make the GPU's power limit reduce the clock, which
  // recovers slowly.
  void look_at_clock(const std::string& job) {
    const double at_rest = measurement().clock_hz;
    if (!(at_rest > 0)) return;  // not known here
    const double now = device_.clock_hz();
    ++looked_;
    if (now > (1 - kMovedClock) * at_rest) return;
    ++slowed_;
    if (now >= slowest_hz_) return;
    slowest_hz_ = now;
    slowest_job_ = job;
  }

  void tell_of_clock() {
    const double before = measurement().clock_hz, after = measurement().clock_hz_after;
    const auto ghz = [](double hz) { return hz * 1e-9; };
    if (before > 0 && std::abs(after / before - 1) > kMovedClock)
      result_.notes.push_back(
          fmt::format("the clock moved from {:.2f} to {:.2f} GHz", ghz(before), ghz(after)));
    if (slowed_ == 0) return;
    result_.notes.push_back(
        fmt::format("after {} of {} timings of products and attention the clock was more than {:.0f} % below "
                    "{:.2f} GHz, at {:.2f} after {}: limits on power act, which a step meets less often",
                    slowed_, looked_, 100 * kMovedClock, ghz(before), ghz(slowest_hz_), slowest_job_));
  }

  void time_host_copies() {
    std::vector<HostCopySample>& copies = measurement().host_copies;
    if (!(request_.cluster.node.host.link.bandwidth > 0) || !copies.empty() || stop()) return;
    copies = rehearse::time_host_copies(device_, request_.budget_s, request_.stopped);
    if (stop()) copies.clear();
  }

  // Kernels with equal profile keys become one sample: the mean of their values, the widest of their spreads.
  // When a stopped run leaves one of them untimed, the key stays for the next run.
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
      if (whole && count > 0) store(jobs[first], sum / count, spread);
    }
  }

  void store(const TimedMessages& timed) {
    result_.complete = result_.complete && timed.complete;
    for (const auto& [job, seconds] : timed.messages) {
      if (seconds.empty()) {
        result_.known += has_sample(result_.profile, job) ? 1 : 0;
        continue;
      }
      const Timing timing = summarise(seconds);
      check_spread(to_string(job), timing);
      measurement().messages.push_back(
          {message_name(job.op), job.members, job.bytes, timing.seconds, timing.spread, job.nodes});
      ++result_.measured;
    }
    measurement().beside.insert(measurement().beside.end(), timed.beside.begin(), timed.beside.end());
    if (timed.together) measurement().together = timed.together;
    result_.notes.insert(result_.notes.end(), timed.notes.begin(), timed.notes.end());
  }

  // The profile's value for a time: the time of a GEMM, the rate of the others.
  static double value_of(const KernelJob& job, double seconds) {
    if (job.key.table == SampleKey::Table::gemm) return seconds;
    if (job.key.table == SampleKey::Table::stream) return job.key.size[0] / seconds;
    Attention step = std::get<Attention>(job.kernel.what);
    step.steps = 1;
    return tiled_flops(step) / seconds;
  }

  void store(const KernelJob& job, double value, double spread) {
    const SampleKey& key = job.key;
    const auto whole = [&key](std::size_t i) { return static_cast<std::int64_t>(key.size[i]); };
    Profile& profile = result_.profile;
    if (key.table == SampleKey::Table::gemm) {
      check_peak(key, 2 * key.size[0] * key.size[1] * key.size[2] * key.size[3] / value,
                 key.name.substr(0, key.name.find('/')));
      profile.gemm[key.name].push_back({whole(0), whole(1), whole(2), value, whole(3), spread});
    } else if (key.table == SampleKey::Table::attention) {
      check_peak(key, value, to_string(request_.jobs.plans[0].plan.precision));
      profile.attention.push_back({whole(0), whole(1), key.size[2] > 0, key.size[3] > 0, value, spread,
                                   heads_of(std::get<Attention>(job.kernel.what))});
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
    result_.measured += count([](const Times& times) { return !times.seconds.empty(); });
    store_kernels();
    check_machine();
    fit_measured(result_.profile, request_.cluster, by_nccl(), result_.notes);
    measurement().clock_hz_after = device_.clock_hz();
    tell_of_clock();
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
  std::vector<Times> kernels_;  // by job
  std::size_t done_ = 0, all_ = 0;
  std::size_t looked_ = 0, slowed_ = 0;  // at the clock, which was far below the idle clock
  double slowest_hz_ = INFINITY;
  std::string slowest_job_;
};

}  // namespace

Calibration calibrate(kernels::Device& device, const CalibrationRequest& request, Profile profile) {
  return Calibrating(device, request, std::move(profile)).run();
}

}  // namespace rehearse

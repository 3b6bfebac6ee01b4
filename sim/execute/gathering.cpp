#include "execute/gathering.h"

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <fstream>
#include <limits>
#include <numeric>
#include <string>

#include "execute/random.h"

namespace rehearse {

namespace {

// Identifies the current boot of this machine, by the kernel's random name for it.
std::int64_t boot() {
  std::ifstream in("/proc/sys/kernel/random/boot_id");
  std::string name;
  in >> name;
  return static_cast<std::int64_t>(seed_of(0, name));
}

}  // namespace

double now_s() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

Gathering::Gathering(kernels::World& world, kernels::Device& device, bool trusts_boot)
    : device_(device), stream_(device.make_stream()) {
  std::vector<int> all(static_cast<std::size_t>(world.size()));
  std::iota(all.begin(), all.end(), 0);
  group_ = world.connect("gathering", all);
  const std::int64_t own = boot();
  if (!is_first()) {
    send(&own, sizeof own, 0);
    return;
  }
  shares_clock_.push_back(true);
  for (int rank = 1; rank < group_->size(); ++rank) {
    std::int64_t other = 0;
    receive(&other, sizeof other, rank);
    shares_clock_.push_back(trusts_boot && other == own);
  }
}

void Gathering::send(const void* data, std::size_t bytes, int receiver) {
  if (bytes == 0) return;
  if (buffer_.bytes() < bytes) buffer_ = kernels::Buffer(device_, bytes);
  stream_->copy(buffer_.data(), data, bytes);
  group_->send(*stream_, {buffer_.data(), kernels::Type::uint8, 1, static_cast<std::int64_t>(bytes)},
               receiver);
  stream_->synchronize();
}

void Gathering::receive(void* data, std::size_t bytes, int sender) {
  if (bytes == 0) return;
  if (buffer_.bytes() < bytes) buffer_ = kernels::Buffer(device_, bytes);
  group_->receive(*stream_, {buffer_.data(), kernels::Type::uint8, 1, static_cast<std::int64_t>(bytes)},
                  sender);
  stream_->copy(data, buffer_.data(), bytes);
  stream_->synchronize();
}

void Gathering::meet() {
  const kernels::Buffer one(device_, sizeof(float));
  stream_->clear(one.data(), one.bytes());
  const kernels::Tensor number(one.data(), kernels::Type::fp32, 1, 1);
  group_->all_reduce(*stream_, number, number);
  stream_->synchronize();
}

std::vector<std::vector<double>> Gathering::collect(const std::vector<double>& own) {
  std::uint64_t count = own.size();
  if (!is_first()) {
    send(&count, sizeof count, 0);
    send(own.data(), own.size() * sizeof(double), 0);
    return {};
  }
  std::vector<std::vector<double>> all = {own};
  for (int rank = 1; rank < group_->size(); ++rank) {
    receive(&count, sizeof count, rank);
    receive(all.emplace_back(count).data(), count * sizeof(double), rank);
  }
  return all;
}

std::vector<Clock> Gathering::compare_clocks() {
  std::vector<Clock> clocks = {{}};
  const std::uint64_t rounds = kRounds;
  for (int rank = 1; is_first() && rank < group_->size(); ++rank) {
    const bool shares = shares_clock_[static_cast<std::size_t>(rank)];
    const std::uint64_t questions = shares ? 0 : rounds;
    send(&questions, sizeof questions, rank);
    clocks.push_back(shares ? Clock{} : ask(rank));
  }
  if (is_first()) return clocks;
  std::uint64_t questions = 0;
  receive(&questions, sizeof questions, 0);
  for (std::uint64_t i = 0; i < questions; ++i) {
    double time = 0;
    receive(&time, sizeof time, 0);
    time = now_s();
    send(&time, sizeof time, 0);
  }
  return {};
}

std::string Gathering::how_clocks_compare() const {
  const bool one = std::ranges::all_of(shares_clock_, [](bool shares) { return shares; });
  return one ? "one machine, one clock"
             : fmt::format("clocks compared by the shortest of {} round trips", kRounds);
}

Clock Gathering::ask(int rank) {
  Clock best{0, std::numeric_limits<double>::infinity()};
  for (int round = 0; round < kRounds; ++round) {
    double time = 0;
    const double before = now_s();
    send(&time, sizeof time, rank);
    receive(&time, sizeof time, rank);
    const double half = (now_s() - before) / 2;
    if (half < best.error_s) best = {time - (before + half), half};
  }
  return best;
}

}  // namespace rehearse

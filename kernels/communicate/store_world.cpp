#include "kernels/communicate/store_world.h"

#include <algorithm>
#include <chrono>
#include <iomanip>
#include <sstream>
#include <thread>

namespace rehearse::kernels {

namespace {

constexpr double kLateness_s = 5;  // how much longer ranks wait than rank 0, which names the missing ranks
constexpr double kSilence_s = 1;   // several pulses

std::string seconds(double s) {
  std::ostringstream text;
  text << std::setprecision(2) << s << " s";
  return text.str();
}

}  // namespace

StoreWorld::StoreWorld(const Launched& self, double timeout_s, const Job& job)
    : self_(self), store_(self, self.rank == 0 ? timeout_s : timeout_s + kLateness_s, job) {
  store_.wait_for_all();
}

void StoreWorld::abort(const std::string& reason) {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return;
    reason_ = reason.empty() ? "a rank gave up" : reason;
  }
  try {
    store_.end(reason);
  } catch (const DeviceError&) {
    // Rank 0 is gone, and the run has ended.
  }
}

std::string StoreWorld::ended() const {
  {
    const std::lock_guard lock(mutex_);
    if (!reason_.empty()) return reason_;
  }
  return store_.ended();
}

void StoreWorld::pulse(const std::string& stands_at) {
  try {
    store_.pulse(stands_at);
  } catch (const DeviceError&) {
    // ended() returns the reason.
  }
}

std::string StoreWorld::roll_call() {
  std::vector<Store::Standing> ranks;
  try {
    ranks = store_.roll_call();
  } catch (const DeviceError&) {
    return "rank 0 does not answer";
  }
  std::ostringstream text;
  const char* between = "";
  for (const Store::Standing& rank : ranks) {
    if (rank.at.empty() && rank.silent_s < kSilence_s) continue;
    text << between << "rank " << rank.rank;
    if (rank.silent_s > kSilence_s) text << " has not answered for " << seconds(rank.silent_s) << " and";
    if (rank.at.empty()) {
      text << " has ended all ops";
    } else {
      text << " stands at " << rank.at;
    }
    between = ", ";
  }
  return text.str();
}

int StoreWorld::place_among(const std::vector<int>& members, const std::string& name) const {
  const auto found = std::find(members.begin(), members.end(), self_.rank);
  if (found == members.end())
    throw DeviceError("rank " + std::to_string(self_.rank) + " is no member of the group \"" + name + "\"");
  return static_cast<int>(found - members.begin());
}

void StoreWorld::require_going_on() const {
  if (const std::string end = ended(); !end.empty()) fail_now(end);
}

void StoreWorld::fail(const std::string& what) const {
  fail_now(why_ended([this] { return ended(); }, what));
}

void StoreWorld::fail_now(const std::string& reason) const {
  if (refused()) throw Refused(reason);
  throw DeviceError(reason);
}

std::string why_ended(const std::function<std::string()>& ended, const std::string& otherwise) {
  constexpr int kTurns = 100;
  for (int turn = 0; turn < kTurns; ++turn) {
    if (std::string end = ended(); !end.empty()) return end;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return otherwise;
}

}  // namespace rehearse::kernels

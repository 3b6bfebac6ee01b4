// Ranks that are processes: which of them run, which have gone, and at which op is each?
#pragma once

#include "kernels/communicate/store.h"
#include "kernels/communicator.h"

namespace rehearse::kernels {

class StoreWorld : public World {
 public:
  // Blocks until all ranks have arrived.
  StoreWorld(const Launched& self, double timeout_s, const Job& job);

  int rank() const override { return self_.rank; }
  int size() const override { return self_.size; }
  void abort(const std::string& reason) override;
  std::string ended() const override;
  bool refused() const override { return store_.refused(); }
  void pulse(const std::string& stands_at) override;
  std::string roll_call() override;

 protected:
  const Launched& self() const { return self_; }
  Store& store() { return store_; }
  // This rank's index in `members`; DeviceError when it is not a member.
  int place_among(const std::vector<int>& members, const std::string& name) const;
  // DeviceError or Refused with the reason, once the run has ended.
  void require_going_on() const;
  // DeviceError with why_ended(), else with `what`.
  [[noreturn]] void fail(const std::string& what) const;

 private:
  [[noreturn]] void fail_now(const std::string& reason) const;

  Launched self_;
  Store store_;
  mutable std::mutex mutex_;
  std::string reason_;  // given by this rank
};

// The reason why the run has ended, else `otherwise`. It waits a moment, as the reason may still be on its
// way.
std::string why_ended(const std::function<std::string()>& ended, const std::string& otherwise);

}  // namespace rehearse::kernels

// Ranks that are threads of one process: how do they find each other's groups, and how do they give up
// together?
#pragma once

#include <algorithm>
#include <functional>
#include <map>
#include <memory>

#include "kernels/communicate/barrier.h"
#include "kernels/communicator.h"

namespace rehearse::kernels {

// `Group` is the state that the members of a group share. It is constructed from their ranks, and has a
// Monitor `monitor` and a Barrier `meeting` of all of them.
template <typename Group>
class ThreadWorld : public World {
 public:
  // State that all ranks of the process share.
  struct Process {
    explicit Process(int count) : ranks(count) {}
    int ranks;
    Monitor monitor;     // no thread waits at it: groups have their own
    std::string reason;  // of the end, "" while all is well
    std::map<std::pair<std::string, std::vector<int>>, std::shared_ptr<Group>> groups;
  };
  // Makes a member's communicator of a group; `place` is its index there.
  using Make = std::function<std::unique_ptr<Communicator>(std::shared_ptr<Group>, int place)>;

  ThreadWorld(std::shared_ptr<Process> process, int rank, Make make)
      : process_(std::move(process)), rank_(rank), make_(std::move(make)) {}

  int rank() const override { return rank_; }
  int size() const override { return process_->ranks; }

  std::unique_ptr<Communicator> connect(const std::string& name, const std::vector<int>& members) override {
    const auto found = std::find(members.begin(), members.end(), rank_);
    if (found == members.end()) {
      throw DeviceError("rank " + std::to_string(rank_) + " is no member of the group \"" + name + "\"");
    }
    std::shared_ptr<Group> group;
    process_->monitor.change_quietly([&] {
      std::shared_ptr<Group>& shared = process_->groups[{name, members}];
      if (!shared) shared = std::make_shared<Group>(members);
      if (!process_->reason.empty()) shared->monitor.abort(process_->reason);
      group = shared;
    });
    group->meeting.arrive();
    return make_(group, static_cast<int>(found - members.begin()));
  }

  void abort(const std::string& reason) override {
    process_->monitor.change_quietly([&] {
      process_->reason = reason.empty() ? "a rank gave up" : reason;
      for (auto& [key, group] : process_->groups) group->monitor.abort(process_->reason);
    });
  }

 private:
  std::shared_ptr<Process> process_;
  int rank_;
  Make make_;
};

}  // namespace rehearse::kernels

// How do the ranks of this process train? All of them as threads, on one core each while there are enough. Or
// a single one, where every rank is a process.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "execute/device_set.h"
#include "execute/gathering.h"
#include "execute/rank.h"
#include "execute/training.h"
#include "result/timeline.h"
#include "schedule/tasks.h"

namespace rehearse {

// A run that somebody asked to end.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Watch {
  double timeout_s = 60;          // longest time in which no op of any rank is issued or ends
  std::function<bool()> stopped;  // if given, called repeatedly: whether to end the run
  // If given: called with the reason why the run was given up, when a rank has not ended five seconds later,
  // because a library or a device blocks it. A thread cannot be ended, so this ends the program.
  std::function<void(const std::string& reason)> stuck = {};
};

// Results of all ranks at the first process, of its own ranks at the others.
struct StepResult {
  double loss = 0;           // mean over the tokens of the global batch
  double gradient_norm = 0;  // before clipping; 0 without, infinite or no number where a gradient is
  double loss_scale = 1;     // of the next step; 1 where none is scaled
  bool skipped = false;      // by the optimizer, as scaled gradients overflowed
  Timeline timeline;         // empty at the other processes
  double clock_error_s = 0;  // how far the times of two processes may be apart
};

// Ops that had ended when a run was given up.
struct PartialRun {
  Schedule schedule;  // the ops of each rank that had ended, its first ones
  Timeline timeline;  // empty where no step had begun
};

// By name of the whole parameter, with elements in its own order. No number where no rank of this process
// holds the element.
using WholeTensors = std::map<std::string, std::vector<float>>;

class RankPool {
 public:
  // InputError when not_executable() or broken_rules() of the loss scaling finds a violation. Call
  // check_schedule() before; the schedule is not checked here. Without devices, ranks are threads.
  explicit RankPool(Training training, Watch watch = {});
  RankPool(Training training, Watch watch, DeviceSet device_set);
  ~RankPool();

  // Runs one training step. kernels::DeviceError, naming the ranks and their current ops, when an op fails, a
  // process ends, or no op ends within the timeout; kernels::Refused; Interrupted. After an exception the
  // pool cannot continue.
  StepResult step();

  // Ops of the step that failed, on the ranks of this process.
  PartialRun partial() const;

  // Tensors after the last step, assembled from the slices and shards of all ranks here. The gradients are
  // summed over all tokens of the step, as the optimizer read them, but not multiplied by the loss scale.
  WholeTensors gradients() const;
  WholeTensors parameters() const;
  WholeTensors master_weights()
      const;  // the fp32 ones beside parameters of 16 bits; none where there are not

  // Seconds that a step spends on timing its ops, on the rank with most ops. Each op has two marks, each
  // timed on an idle stream.
  double tracing_s();

  // How the clocks of the processes are compared. "" with one process, and on all but the first.
  std::string how_clocks_compare() const {
    return gathering_ && gathering_->is_first() ? gathering_->how_clocks_compare() : "";
  }

  // By rank: peak bytes of live activations and their gradients. All processes must call this; the first gets
  // the result.
  std::vector<double> peak_activation_bytes();
  // The same for activations at the host, and for gathered parameters, of the ranks of this process.
  std::vector<double> peak_offloaded_bytes() const;
  std::vector<double> peak_gathered_bytes() const;

 private:
  // Runs `work` on every rank at once. The first exception is thrown when all have ended.
  void on_every_rank(const std::function<void(std::size_t rank)>& work);
  void watch_over(const std::function<bool()>& all_done);
  enum class End { failure, interruption, out_of_memory, refusal };
  void give_up(const std::string& reason, End end);
  void give_up(int rank, const std::exception& error);
  std::string where_they_stand() const;
  void mark_origin();
  std::vector<Span> spans_of(const Rank& rank) const;
  void bring_together(StepResult& result);
  void gather(StepResult& result);
  WholeTensors whole(Elements Segment::*which) const;
  std::vector<double> peaks_here(std::size_t (Rank::*which)() const) const;
  bool is_alone() const { return ranks_.size() == static_cast<std::size_t>(training_.plan.gpus()); }

  Training training_;
  Watch watch_;
  Tasks tasks_;
  DeviceSet device_set_;
  std::unique_ptr<Gathering> gathering_;  // where there are other processes
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::atomic<std::size_t> made_ = 0;
  std::int64_t steps_ = 0;
  std::shared_ptr<kernels::Event> origin_;
  double origin_s_ = 0, origin_error_s_ = 0;  // when it was, on this machine's clock

  std::mutex ending_;
  std::condition_variable ended_;  // a rank has ended its work

  std::mutex mutex_;
  std::string failure_;  // the first; "" while all is well
  End end_ = End::failure;
  std::atomic<double> given_up_s_ = std::numeric_limits<double>::infinity();
  std::atomic<bool> aborted_ = false;  // since then
  std::jthread aborting_;              // a separate thread, because a library may hang in its abort
};

}  // namespace rehearse

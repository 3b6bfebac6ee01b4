// How do the ranks of this process train? All of them as threads, one core each while there are enough; or
// one, where every rank is a process.
#pragma once

#include <atomic>
#include <chrono>
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
  double timeout_s = 60;          // the longest that no op of any rank may be issued or end
  std::function<bool()> stopped;  // asked again and again, where given: whether to end the run
  // Where given: told why the run was given up when a rank has not ended five seconds after, held by a
  // library or a device; a thread cannot be ended, so this ends the program.
  std::function<void(const std::string& reason)> stuck = {};
};

// Of all ranks at the first process, of its own ranks at the others.
struct StepResult {
  double loss = 0;           // mean over the tokens of the global batch
  double gradient_norm = 0;  // before clipping; 0 without, infinite or no number where a gradient is
  double loss_scale = 1;     // of the next step; 1 where none is scaled
  bool skipped = false;      // by the optimizer, as scaled gradients overflowed
  Timeline timeline;         // empty at the other processes
  double clock_error_s = 0;  // how far the times of two processes may be apart
};

// What had ended when a run was given up.
struct PartialRun {
  Schedule schedule;  // of each rank the first ops, those that had
  Timeline timeline;  // empty where no step had begun
};

// By name of the whole parameter, elements in its own order; not a number where no rank of this process holds
// the element.
using WholeTensors = std::map<std::string, std::vector<float>>;

class RankPool {
 public:
  // InputError when not_executable() or broken_rules() of the loss scaling finds anything. The schedule is
  // taken as it is: check_schedule() before. Without devices: threads.
  explicit RankPool(Training training, Watch watch = {});
  RankPool(Training training, Watch watch, DeviceSet device_set);
  ~RankPool();

  // One training step. kernels::DeviceError, naming the ranks and the ops at which they stand, when an op
  // fails, a process goes or none ends an op within the timeout; kernels::Refused; Interrupted. None leaves
  // a pool that can go on.
  StepResult step();

  // Of the step that failed, of the ranks of this process.
  PartialRun partial() const;

  // After the last step, put together from the slices and shards of all ranks here. The gradients are summed
  // over all tokens of the step, as the optimizer read them, but for a loss that is not scaled.
  WholeTensors gradients() const;
  WholeTensors parameters() const;
  WholeTensors master_weights()
      const;  // the fp32 ones beside parameters of 16 bits; none where there are not

  // Seconds that a step spends on taking the times of its ops, on the rank with the most of them: two marks
  // an op, each as long as it takes a stream that has nothing else to do.
  double tracing_s();

  // How the clocks of the processes are compared; "" where there is one, or at another than the first.
  std::string how_clocks_compare() const {
    return gathering_ && gathering_->is_first() ? gathering_->how_clocks_compare() : "";
  }

  // By rank: the most bytes of activations and their gradients that were alive at once. All processes must
  // ask; the first gets an answer.
  std::vector<double> peak_activation_bytes();
  // The same of activations at the host, and of parameters that were gathered for a while, of the ranks of
  // this process.
  std::vector<double> peak_offloaded_bytes() const;
  std::vector<double> peak_gathered_bytes() const;

 private:
  // The same on every rank at once; what the first of them throws is thrown when all have ended.
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

  std::mutex mutex_;
  std::string failure_;  // the first; "" while all is well
  End end_ = End::failure;
  std::atomic<double> given_up_s_ = std::numeric_limits<double>::infinity();
  std::atomic<bool> aborted_ = false;  // since then
  std::jthread aborting_;              // a thread of its own, as what a library gives up may hang
};

}  // namespace rehearse

// All ranks of a training run as threads of this process, one core each while there are enough.
#pragma once

#include <chrono>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "execute/rank.h"
#include "execute/training.h"
#include "kernels/communicator.h"
#include "result/timeline.h"
#include "schedule/tasks.h"

namespace rehearse {

// A run that somebody asked to end.
class Interrupted : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
};

struct Watch {
  double patience_s = 60;         // the longest that no op of any rank may end
  std::function<bool()> stopped;  // asked again and again, where given: whether to end the run
};

struct StepResult {
  double loss = 0;           // mean over the tokens of the global batch
  double gradient_norm = 0;  // before clipping; 0 without
  Timeline timeline;         // of every rank
};

// By name of the whole parameter, elements in its own order.
using WholeTensors = std::map<std::string, std::vector<float>>;

class Crew {
 public:
  // InputError when not_executable() finds anything. The schedule is taken as it is: check_schedule() before.
  explicit Crew(Training training, Watch watch = {});

  // One training step. kernels::DeviceError, naming the ranks and the ops at which they stand, when an op
  // fails or none ends within the patience; Interrupted. Neither leaves a crew that can go on.
  StepResult step();

  // After the last step, put together from the slices and shards of all ranks. The gradients are summed over
  // all tokens of the step, as the optimizer read them.
  WholeTensors gradients() const;
  WholeTensors parameters() const;

  // By rank: the most bytes of activations and their gradients that were alive at once.
  std::vector<double> peak_activation_bytes() const;
  // The same of parameters that were gathered for a while.
  std::vector<double> peak_gathered_bytes() const;

 private:
  // The same on every rank at once; what the first of them throws is thrown when all have ended.
  void on_every_rank(const std::function<void(std::size_t rank)>& work);
  void watch_over(const std::function<bool()>& all_done);
  void give_up(const std::string& reason, bool interrupted);
  std::string where_they_stand() const;
  Timeline timeline(kernels::Event& origin) const;
  WholeTensors whole(Elements Segment::*which) const;

  Training training_;
  Watch watch_;
  Tasks tasks_;
  std::unique_ptr<kernels::Device> device_;
  std::vector<std::unique_ptr<kernels::World>> worlds_;
  std::vector<std::unique_ptr<Rank>> ranks_;
  std::int64_t steps_ = 0;

  std::mutex mutex_;
  std::string failure_;  // the first; "" while all is well
  bool interrupted_ = false;
};

}  // namespace rehearse

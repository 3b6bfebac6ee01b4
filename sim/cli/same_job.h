// Which properties must all ranks of a run have in common?
#pragma once

#include <string>

#include "calibrate/timing/jobs.h"
#include "execute/training.h"
#include "kernels/communicator.h"
#include "result/report.h"

namespace rehearse {

// The job of an execution; its prediction contains the plan.
struct ExecutedJob {
  const Training& training;
  const Report& predicted;
  std::string device, data;  // as given
  int warmup = 0, iterations = 0;
};
kernels::Job job_of(const ExecutedJob& executed);

// The job of a calibration with this number of seconds a message.
kernels::Job job_of_messages(const std::string& device, const Jobs& jobs, double seconds);

}  // namespace rehearse

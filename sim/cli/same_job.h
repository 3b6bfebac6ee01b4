// What must all ranks of a run have in common?
#pragma once

#include <string>

#include "calibrate/timing/jobs.h"
#include "execute/training.h"
#include "kernels/communicator.h"
#include "result/report.h"

namespace rehearse {

// Of an execution, whose prediction says its plan.
struct ExecutedJob {
  const Training& training;
  const Report& predicted;
  std::string device, data;  // as given
  int warmup = 0, iterations = 0;
};
kernels::Job job_of(const ExecutedJob& executed);

// Of a calibration, for so many seconds a message.
kernels::Job job_of_messages(const std::string& device, const Jobs& jobs, double seconds);

}  // namespace rehearse

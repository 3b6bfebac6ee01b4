// How a process introduces itself where the ranks of a run meet: which rank it is, and of which job.
#pragma once

#include <optional>
#include <string>

#include "kernels/communicate/launched.h"
#include "kernels/communicator.h"

namespace rehearse::kernels {

struct Hello {
  int rank = 0;
  std::string process;  // "process 1234 on node-a"
  std::string job_id;   // as the launcher names the job; "": it does not
  Job job;
};

// Of this process. The number of ranks is the first part of its job.
Hello hello_of(const Launched& self, const Job& job);

std::string write_hello(const Hello& hello);
std::optional<Hello> read_hello(const std::string& text);  // none of what no rank says

// "rank 1 runs --seed 9, rank 0 runs --seed 1"; "" where both run the same job.
std::string difference_between(const Hello& other, const Hello& own);

}  // namespace rehearse::kernels

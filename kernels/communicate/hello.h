// How does a process introduce itself at the rendezvous of a run? It names its rank and its job.
#pragma once

#include <optional>
#include <string>

#include "kernels/communicate/launched.h"
#include "kernels/communicator.h"

namespace rehearse::kernels {

struct Hello {
  int rank = 0;
  std::string process;  // "process 1234 on node-a"
  std::string job_id;   // the launcher's name of the job; "" where it has none
  Job job;
};

// The Hello of this process. The number of ranks is the first part of its job.
Hello hello_of(const Launched& self, const Job& job);

std::string write_hello(const Hello& hello);
std::optional<Hello> read_hello(const std::string& text);  // nothing for text that no rank sends

// "rank 1 runs --seed 9, rank 0 runs --seed 1"; "" where both run the same job.
std::string difference_between(const Hello& other, const Hello& own);

}  // namespace rehearse::kernels

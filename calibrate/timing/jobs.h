// Which distinct kernels and messages does a plan need?
#pragma once

#include <string>
#include <vector>

#include "cost/profile.h"
#include "launch/calls.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/work.h"

namespace rehearse {

// The sample that a kernel's time belongs to. Equal keys share one.
struct SampleKey {
  enum class Table : std::uint8_t { gemm, attention, stream } table = Table::gemm;
  std::string name;          // gemm_key() of a GEMM, curve of a stream
  std::vector<double> size;  // m, n, k, batch; head size, keys, causal, backward; bytes
  auto operator<=>(const SampleKey&) const = default;  // NOLINT(modernize-use-nullptr): it compares with 0
};

struct KernelJob {
  SampleKey key;
  std::size_t block = 0;  // index into Jobs::blocks
  Kernel kernel;          // of a chunked GEMM or attention in steps, one chunk or step is timed
  Phase phase = Phase::forward;
  std::size_t plan = 0;  // index into Jobs::plans
  double uses = 0;       // by one microbatch in all stages, or by one step
};

struct MessageJob {
  CollectiveOp op = CollectiveOp::all_reduce;
  int members = 0;
  double bytes = 0;
  int nodes = 1;                                        // machines
  auto operator<=>(const MessageJob&) const = default;  // NOLINT(modernize-use-nullptr): it compares with 0
};

// Models and plans that jobs refer to, and the jobs.
struct Jobs {
  struct Shaped {
    Model model;
    Plan plan;
  };
  std::vector<Shaped> plans;
  std::vector<Block> blocks;
  std::vector<KernelJob> kernels;    // kernels that differ but share a key are adjacent
  std::vector<MessageJob> messages;  // sorted
};

// Every kernel shape of the plan's Work and optimizer step, and every message of its groups. Small messages
// of each kind are added, to separate latency from bandwidth. The plan must be legal.
Jobs jobs_of(const Model& model, const Plan& plan);
// The same for several plans, each shape once.
Jobs jobs_of(const std::vector<Jobs::Shaped>& all);

// Heads of all its concurrent sequences.
std::int64_t heads_of(const Attention& attention);

// Whether the optimizer's step runs the kernel, and no pass.
bool is_of_step(const Jobs& jobs, const KernelJob& job);

// Whether the profile has the sample; for a message, whether it was measured.
bool has_sample(const Profile& profile, const SampleKey& key);
bool has_sample(const Profile& profile, const MessageJob& job);
// The same, regardless of the number of machines of its ranks.
bool has_sample_anywhere(const Profile& profile, const MessageJob& job);

// "gemm bf16 4096 x 1024 x 4096", "attention 64 wide, 2048 keys, causal, forward", "norm 12.6 MB"
std::string to_string(const SampleKey& key);
std::string to_string(const MessageJob& job);

}  // namespace rehearse

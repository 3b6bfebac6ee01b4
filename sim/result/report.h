// What are the results of a run? Step time and its parts, throughput, bubble, exposed communication, memory.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/omitted_effect.h"
#include "cost/stage_times.h"
#include "memory/footprint.h"
#include "memory/rank_memory.h"
#include "memory/reserved.h"
#include "memory/verdict.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/work.h"
#include "result/timeline.h"
#include "schedule/schedule.h"

namespace rehearse {

// Facts of the run that cannot be computed from the timeline.
struct RunFacts {
  std::string source = "simulate";  // or "execute"
  std::string engine = "simgrid";   // or "reference"
  std::string profile_name;
  std::string profile_how;                     // "measured", "published", "modelled"
  std::string profile_gpu = {};                // that its kernels were timed on
  std::vector<std::string> carried_over = {};  // figures in which the cluster's GPU differs from that
  std::string collectives = {};  // on which system they were measured; empty: not by NCCL's model
  double extrapolated_share = 0;
  double unmeasured_share = 0;    // of kernel time: kernels that nobody timed
  double launch_bound_share = 0;  // of kernel time: the GPU waits for the CPU's launches
  double slowest_gpu = 1;         // factor on GEMM time on it
  std::string cluster_name;
  std::string gpu_name;
  int gpus = 1;
  int gpus_per_node = 1;
  double gpu_memory_bytes = 0;                           // where memory_of_rank is given: of the fullest rank
  std::vector<double> memory_of_rank = {};               // by pipeline rank, where they differ
  double workspace_bytes = 0;                            // of cuBLAS
  Headroom headroom = {};                                // that a plan should leave free
  std::vector<OmittedEffect> omitted_effects = {};       // of options that are not counted
  std::string way_to_fit = {};                           // changes with which a plan would fit, in words
  std::vector<OutsideAllocator> outside_allocator = {};  // by pipeline rank; empty: nothing
  double peak_flops = 0;                    // of one GPU at the plan's precision, mean over pipeline ranks
  std::string schedule_name = {};           // of an order that the plan has no name for
  std::optional<double> bubble_ideal = {};  // of such an order
  std::vector<std::string> warnings;
};

// One line of the report's communication table: all ops of a kind on the critical rank.
struct CommunicationLine {
  std::string kind;  // "pp", "dp", "tied", "tp", "cp", "ep"
  std::string op;    // "send_receive", "all_reduce", ...
  CommGroup group = CommGroup::pipeline;
  int group_size = 1;
  std::int64_t calls = 0;
  double bytes_per_rank =
      0;                 // sum of the buffers as nccl-tests counts their size; sent and received for "pp"
  double busy_s = 0;     // time that at least one of them moves
  double exposed_s = 0;  // the part of it during which the compute stream waits for it
};

// Seconds of an iteration by cause; they sum to the step time. Bubble is the remainder. For a rank, it is the
// time without compute and without a transfer that compute waits for. For the critical path, it is the time
// in which no op of the path runs.
struct TimeShares {
  double compute = 0, recompute = 0, optimizer = 0, bubble = 0;
  double exposed_tp = 0, exposed_pp = 0, exposed_dp = 0, exposed_cp = 0, exposed_ep = 0, exposed_offload = 0;
  double sum() const;
  TimeShares& add(const TimeShares& other, double weight);
  // Time in which compute waits for messages, collectives and copies between its ops.
  double waiting() const { return exposed_pp + exposed_dp + exposed_offload; }
};

// Times of one rank.
struct RankShares {
  int rank = 0;
  int pipeline_rank = 0;
  TimeShares time;
  double path_s = 0;  // of the critical path
};

// How a long step was found from shorter ones (result/extrapolate.h).
struct Extrapolation {
  std::array<std::int64_t, 3> microbatches{};  // of the steps that were simulated, one round apart
  double round_s = 0;                          // that each round adds to the step
  double deviation = 0;  // largest difference between what the two rounds added, over round_s

  std::int64_t round() const { return microbatches[2] - microbatches[1]; }
};

struct Report {
  RunFacts facts;
  double step_time_s = 0;
  double uncertainty = 0;  // of the step time, relative: known error of its sources
  double tokens_per_s = 0, tokens_per_s_per_gpu = 0, samples_per_s = 0;
  double model_tflops_per_gpu = 0, hardware_tflops_per_gpu = 0, mfu = 0, hfu = 0;
  double bubble_mean = 0, bubble_worst = 0, bubble_ideal = 0;
  int bubble_worst_rank = 0;
  std::vector<double> busy_s;                       // by rank of the timeline: its compute stream
  std::vector<int> pipeline_rank_of;                // by rank of the timeline
  std::optional<Extrapolation> extrapolation = {};  // none: every microbatch was simulated
  TimeShares time;                                  // of the critical path through all ranks
  TimeShares mean_time;                             // over all ranks
  std::vector<RankShares> ranks;
  int critical_rank = 0;                         // pipeline rank with the largest share of the critical path
  std::vector<CommunicationLine> communication;  // of that rank
  std::vector<RankMemory> memory;
  std::int64_t parameters = 0;
  Plan plan;
  Model model;
};

// `tasks` are those of the timeline. `times` divides the spans of compute ops by cause; spans may be longer
// or shorter than priced. Without the split, the report has no time, ranks and communication. InputError when
// the timeline does not belong to the schedule. An empty timeline gives a report of zeros.
Report make_report(const Timeline& timeline, const Schedule& schedule, const Tasks& tasks, const Model& model,
                   const Plan& plan, const Work& work, const OpTimes& times, const RunFacts& facts,
                   bool with_split = true);

// Bubble fractions, from busy_s and the step time.
void add_bubble(Report& report);

// The pipeline rank with the largest share of the critical path, the first of equal ones; from `ranks`.
int critical_rank(const Report& report);

// RankMemory::reserved_bytes of the rank with the highest peak and of the fullest, where they fit.
void add_reserved(Report& report, const Schedule& schedule, const Work& work,
                  std::int64_t microbatches = kAllMicrobatches);

// Footprints of the report's ranks; fullest_gpu() is the one with the least room, which decides whether the
// plan fits.
std::vector<Footprint> footprints(const Report& report);
Footprint fullest_gpu(const Report& report);
MemoryVerdict memory_verdict(const Report& report);

// "does not fit: 1.46 TB of 85 GB on pipeline rank 0, 1.37 TB (...) too much; it fits with --recompute full"
std::string verdict_sentence(const Report& report);

// The rank of report.memory with the highest peak; where memory sizes differ, the one on the fullest GPU.
// Zeros when there is none.
RankMemory heaviest_rank(const Report& report);

// Idle compute (bubble_mean) divides into pipeline bubble, which the closed form describes, and waiting for
// communication. Both are shares of the step, mean over ranks.
struct IdleShares {
  double bubble = 0, waiting = 0;
};
IdleShares idle_shares(const Report& report);

// "1f1b", or the name of an order that is not the plan's.
std::string schedule_name(const Report& report);

// The schedule's closed form (plan/schedules.cpp) for equal stages and no communication time, with F = I = W
// where the backward is split. 0 for V-Half and V-Min, which have no published form.
double ideal_bubble_fraction(const Plan& plan);

// "ideal bubble", or "bubble in equal stages" for an order without a closed form. Such an order was found for
// unequal stages, where it may have less bubble.
const char* ideal_bubble_name(const Report& report);

}  // namespace rehearse

// Measured seconds of kernels and collectives, with how, where and when they were measured.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cluster/cluster.h"
#include "cost/measurement.h"

namespace rehearse {

namespace nccl {
struct Model;
}

enum class How : std::uint8_t { measured, published, modelled };
std::string to_string(How how);

struct Source {
  std::string title;  // repository and file, paper and table
  std::string license;
  std::string note;  // device, tool, date, how it was taken
};

// Spreads are those of Measurement; 0 where none is stated.
struct GemmSample {
  std::int64_t m = 0, n = 0, k = 0;
  double seconds = 0;
  std::int64_t batch = 1;  // GEMMs in one call
  double spread = 0;
};

// Attention throughput by sequence length, for one head size, direction and mask.
struct AttentionSample {
  std::int64_t head_dim = 0, seq = 0;
  bool causal = false;
  bool backward = false;
  double flops_per_s = 0;  // counted as in work.h, halved when causal
  double spread = 0;
  std::int64_t heads = 0;  // of all sequences, that were timed at once; 0: as many as published charts have
};

// Achieved bytes/s of a memory-bound kernel by the bytes that it moves.
struct StreamSample {
  double bytes = 0;
  double bytes_per_s = 0;
  double spread = 0;
};

// time = latency + steps * step_latency + wire_bytes / bandwidth (Hockney). An all-reduce in a ring has steps
// 2(n-1) and wire bytes 2(n-1)/n size; all-gather and reduce-scatter have half of both. A send has steps 0,
// and wire bytes of the message. A modelled cost holds no latency of the wire: the port's own is added.
struct LinkCost {
  std::string kind;  // as Node::gpu_link_kind, or Node::nic_kind; "host": Host::link
  std::string op;    // "ring" or "send"
  double latency_s = 0;
  double step_latency_s = 0;
  double efficiency = 1;  // achieved over the port's nominal bandwidth
  How how = How::published;
};

struct Profile {
  std::string name;
  Gpu gpu;  // that the kernels were timed on; figures that it does not state are the cluster's
            // (cost/timed_on.h)
  std::vector<Source> sources;
  How how = How::published;
  std::map<std::string, std::vector<GemmSample>> gemm;  // by precision
  // How many times as long an fp8 GEMM takes if it adds partial sums in fp32 outside the tensor cores, as
  // backward passes do (Transformer Engine, module/base.py: _2X_ACC_DGRAD, _2X_ACC_WGRAD; torchao,
  // use_fast_accum).
  double fp8_split_sums = 1;
  // The same for a GEMM whose operands are scaled in blocks of 32 (MXFP8) instead of as a whole.
  double fp8_blocks = 1;
  // Adding a weight gradient to fp32 moves more bytes than writing a result alone. This is the share of those
  // extra bytes that tiles hide, where such GEMMs were timed. Grouped GEMMs are excluded: the power limit
  // slows their forward GEMMs down anyway.
  double hidden_sums = 0;
  // Coefficient of variation of GEMM times between GPUs of this kind; 0: not known.
  double gpu_spread = 0;
  std::vector<AttentionSample> attention;
  std::map<std::string, std::vector<AttentionSample>> attention_of;  // by kernel, of others than `attention`
  std::map<std::string, std::vector<StreamSample>> stream;           // by curve_name(), and "copy"
  std::map<std::string, std::map<std::string, std::vector<StreamSample>>>
      stream_of;                                   // by kernel: in place of these
  std::vector<LinkCost> links;                     // where no NCCL runs
  std::shared_ptr<const nccl::Model> collectives;  // null: none
  double launch_s = 0;                             // least time between the starts of two kernels
  double host_launch_s = 0;      // time of the host from one launch to the next, without CUDA graphs
  double host_collective_s = 0;  // the same for a collective, its kernel's launch included
  std::optional<Measurement> measurement;  // of a profile that `rehearse calibrate` took
};

// `name_or_path`: a profile that ships with the program (calibrate/profiles) or a path. InputError for an
// unknown schema or key, a time that is not positive, a GEMM above the GPU's peak, or a stream above its
// memory bandwidth.
Profile read_profile(const std::string& name_or_path);
std::vector<std::string> profile_names();

// The median of the spreads of kernels that were measured here; 0 where none was.
double median_spread(const Profile& profile);

// Attention by another kernel: "flash-1", "triton". If the profile lacks it, MissingCalibration names the
// kernels that the profile has.
void use_attention(Profile& profile, const std::string& kernel);

// The same for the norms. "persistent": the kernels of apex's FastLayerNorm, from the smallest size at which
// they were timed.
void use_norm(Profile& profile, const std::string& kernel);

}  // namespace rehearse

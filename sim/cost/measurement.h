// How, where and when was a profile measured?
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace rehearse {

// One collective or message among `members` ranks, spread evenly over `nodes` machines; bytes as in work.h.
struct MessageSample {
  std::string op;  // "all_reduce", "send_receive", ...
  std::int64_t members = 0;
  double bytes = 0;
  double seconds = 0;
  double spread = 0;
  std::int64_t nodes = 1;
};

// A GEMM while such messages repeat, compared with the same GEMM alone.
struct BesideSample {
  MessageSample message;             // its seconds: those of the GEMM beside it
  std::int64_t m = 0, n = 0, k = 0;  // as GemmSample
  double alone_s = 0;
};

// A GEMM on the GPUs of all ranks at once, long enough for power limits to act.
struct TogetherSample {
  std::int64_t m = 0, n = 0, k = 0;  // as GemmSample
  std::vector<double> seconds;       // by rank
};

// One direction of one GPU's host link, with page-locked host memory.
struct HostCopySample {
  bool to_host = true;
  double bytes = 0;
  double seconds = 0;
  double spread = 0;
};

// How many times as long kernels take while `others` ranks on parts of the same GPU compute too. Keys are
// names in the profile's tables; attention has "forward" and "backward". `step` is apart: all ranks take the
// optimizer step at the same time.
struct Slowdowns {
  std::int64_t others = 0;
  std::map<std::string, double> gemm, attention, stream, step;
};

// Times are medians. A spread is the distance between the first and the third quartile over the median.
struct Measurement {
  std::string device;                       // the processor's own name
  std::string date;                         // of the last sample, "2026-11-21"
  std::vector<std::string> libraries;       // with versions; the driver too
  std::int64_t cores = 1;                   // threads, or multiprocessors, that a kernel runs on
  std::string cache;                        // "cold": operands come from memory; "warm": from the last run
  double clock_hz = 0, clock_hz_after = 0;  // of the compute units; 0: unknown
  std::vector<std::string> notes;           // caveats of the measurement
  std::vector<MessageSample> messages;      // samples that link costs were fitted to
  std::vector<BesideSample> beside;         // slowdown of GEMMs by collectives
  std::vector<HostCopySample> host_copies;  // samples that the host link's cost was fitted to
  std::optional<TogetherSample> together;   // differences between GPUs of this kind
  std::optional<Slowdowns> with_concurrent_ranks;  // of kernels on a part of a GPU
};

}  // namespace rehearse

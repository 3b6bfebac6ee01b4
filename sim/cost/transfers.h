// How long do the collectives inside an op hold their links when nothing else uses the links?
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "plan/comm_group.h"

namespace rehearse {

// Seconds of one op, without latencies. Bytes are those that a rank sends to other nodes meanwhile.
struct Transfers {
  double exposed_s = 0;  // nothing runs beside
  double beside_s = 0;   // a kernel runs beside
  double window_s = 0;   // from their start until they and their kernels have ended: beside_s at least
  double calls = 0;
  double exposed_bytes = 0;
  double beside_bytes = 0;

  Transfers& operator+=(const Transfers& other) {
    exposed_s += other.exposed_s;
    beside_s += other.beside_s;
    window_s += other.window_s;
    calls += other.calls;
    exposed_bytes += other.exposed_bytes;
    beside_bytes += other.beside_bytes;
    return *this;
  }
};

inline Transfers operator*(double times, const Transfers& once) {
  return {times * once.exposed_s, times * once.beside_s,      times * once.window_s,
          times * once.calls,     times * once.exposed_bytes, times * once.beside_bytes};
}

using OpTransfers = std::array<Transfers, kInnerGroups>;  // by CommGroup

inline OpTransfers& operator+=(OpTransfers& sum, const OpTransfers& other) {
  for (std::size_t group = 0; group < kInnerGroups; ++group) sum[group] += other[group];
  return sum;
}

// As StageTimes: op B is backward_input, backward_weight and side_by_side.
struct StageTransfers {
  OpTransfers forward{};
  OpTransfers backward_input{};
  OpTransfers backward_weight{};
  OpTransfers side_by_side{};  // exposed in either half, beside a kernel in op B
};

}  // namespace rehearse

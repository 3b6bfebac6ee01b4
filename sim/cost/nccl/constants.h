// Which latencies and bandwidths does NCCL assume when it chooses how to run a collective?
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "base/json_reader.h"

namespace rehearse::nccl {

enum class Algorithm : std::uint8_t { ring, tree, nvls, nvls_tree, pat };
enum class Protocol : std::uint8_t { ll, ll128, simple };
enum class Wire : std::uint8_t { nvlink, pcie, network };
enum class Generation : std::uint8_t { volta, ampere, hopper, blackwell };

constexpr std::size_t kAlgorithms = 5, kProtocols = 3, kWires = 3, kGenerations = 4;
inline const std::array<const char*, kAlgorithms> kAlgorithmNames = {"Ring", "Tree", "NVLS", "NVLSTree",
                                                                     "PAT"};
inline const std::array<const char*, kProtocols> kProtocolNames = {"LL", "LL128", "Simple"};
inline const std::array<const char*, kGenerations> kGenerationNames = {"Volta", "Ampere", "Hopper",
                                                                       "Blackwell"};

template <typename Enum>
constexpr std::size_t index(Enum value) {
  return static_cast<std::size_t>(value);
}

// Columns: one node, two, three and more.
using ByNodes = std::array<double, 3>;
using ByGeneration = std::array<ByNodes, kGenerations>;
using Latencies = std::array<std::array<double, kProtocols>, kAlgorithms>;

// Seconds and bytes/s. Names and values: NVIDIA/nccl src/graph/tuning.cc, topo.h and search.cc.
struct Constants {
  Latencies base_latency_s{};
  std::array<Latencies, kWires> step_latency_s{};
  ByGeneration ll_most{};                                                            // of a whole rank
  ByGeneration ring_ll128_most{}, tree_ll128_most{}, tree_most{}, nvls_tree_most{};  // of a channel
  std::array<double, kGenerations> nvls_efficiency{};
  std::array<std::vector<double>, kProtocols> tree_correction;  // by floor(log2(bytes / 64))
  std::array<double, kGenerations> nvlink_rate{};               // of one NVLink
  double pcie3_x16_rate = 0;
  std::array<std::vector<double>, 3> speeds_in_node,
      speeds_across;  // a channel's; before Hopper, Hopper, after
};

// `reader`: an object with the keys of calibrate/data/nccl_model.json. InputError for a missing key.
Constants read_constants(const JsonReader& reader);

}  // namespace rehearse::nccl

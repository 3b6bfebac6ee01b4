#include "cost/nccl/constants.h"

#include <fmt/core.h>

namespace rehearse::nccl {

namespace {

constexpr double kMicrosecond = 1e-6, kGigabyte = 1e9;

// Microseconds, GB/s or factors, as NCCL's own tables state them.
constexpr Bounds kConstant{Dimension::one, 1e-6, 1e6, true};
constexpr Bounds kRate{Dimension::one, 1e-3, 1e6};  // GB/s

std::vector<double> read_numbers(const JsonReader& reader, const std::string& key, double unit) {
  std::vector<double> numbers = reader.numbers(key, kConstant);
  for (double& number : numbers) number *= unit;
  return numbers;
}

std::array<double, 3> read_three(const JsonReader& reader, const std::string& key, double unit) {
  const std::vector<double> numbers = read_numbers(reader, key, unit);
  if (numbers.size() != 3)
    reader.fail(key, "must hold three numbers", fmt::format("found {}", numbers.size()));
  return {numbers[0], numbers[1], numbers[2]};
}

Latencies read_latencies(const JsonReader& reader) {
  Latencies latencies{};
  for (std::size_t a = 0; a < kAlgorithms; ++a)
    latencies[a] = read_three(reader, kAlgorithmNames[a], kMicrosecond);
  return latencies;
}

ByGeneration read_generations(const JsonReader& reader) {
  ByGeneration rates{};
  for (std::size_t g = 0; g < kGenerations; ++g)
    rates[g] = read_three(reader, kGenerationNames[g], kGigabyte);
  return rates;
}

void read_channels(const JsonReader& reader, Constants& constants) {
  constants.ring_ll128_most = read_generations(reader.object("ring_LL128"));
  constants.tree_ll128_most = read_generations(reader.object("tree_LL128"));
  constants.tree_most = read_generations(reader.object("tree"));
  constants.nvls_tree_most = read_generations(reader.object("nvls_tree"));
}

std::array<std::vector<double>, 3> read_speeds(const JsonReader& reader) {
  return {read_numbers(reader, "pre90", kGigabyte), read_numbers(reader, "sm90", kGigabyte),
          read_numbers(reader, "sm100", kGigabyte)};
}

void read_links(const JsonReader& reader, Constants& constants) {
  const JsonReader nvlink = reader.object("per_nvlink");
  constexpr std::array<const char*, kGenerations> kSm = {"SM70", "SM80", "SM90", "SM100"};
  for (std::size_t g = 0; g < kGenerations; ++g)
    constants.nvlink_rate[g] = nvlink.number(kSm[g], kRate) * kGigabyte;
  constants.pcie3_x16_rate = reader.number("PCI_gen3_x16", kRate) * kGigabyte;
}

}  // namespace

Constants read_constants(const JsonReader& reader) {
  Constants constants;
  constants.base_latency_s = read_latencies(reader.object("base_latency_us"));
  const JsonReader steps = reader.object("hw_latency_us");
  constants.step_latency_s = {read_latencies(steps.object("NVLINK")), read_latencies(steps.object("PCI")),
                              read_latencies(steps.object("NET"))};
  constants.ll_most = read_generations(reader.object("ll_max_bw_GBps"));
  read_channels(reader.object("per_channel_max_GBps"), constants);
  const JsonReader nvls = reader.object("nvls_efficiency");
  const JsonReader correction = reader.object("tree_correction_factor");
  for (std::size_t g = 0; g < kGenerations; ++g)
    constants.nvls_efficiency[g] = nvls.number(kGenerationNames[g], 0, 1);
  for (std::size_t p = 0; p < kProtocols; ++p)
    constants.tree_correction[p] = read_numbers(correction, kProtocolNames[p], 1);
  read_links(reader.object("link_bw_GBps"), constants);
  const JsonReader search = reader.object("graph_search");
  constants.speeds_in_node = read_speeds(search.object("speeds_intra"));
  constants.speeds_across = read_speeds(search.object("speeds_inter"));
  return constants;
}

}  // namespace rehearse::nccl

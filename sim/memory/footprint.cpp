#include "memory/footprint.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/quantity.h"

namespace rehearse {

double OutsideAllocator::nccl_bytes() const {
  double bytes = 0;
  for (const auto& [communicator, held] : communicators) bytes += held;
  return bytes;
}

std::vector<Footprint> footprints(const std::vector<RankMemory>& memory,
                                  const std::vector<OutsideAllocator>& outside, double capacity_bytes) {
  std::vector<Footprint> gpus;
  for (const RankMemory& rank : memory)
    gpus.push_back({rank.rank, rank.peak_bytes,
                    outside.empty() ? OutsideAllocator{} : outside[static_cast<std::size_t>(rank.rank)],
                    capacity_bytes, rank.reserved_bytes});
  return gpus;
}

Footprint fullest(const std::vector<Footprint>& gpus) {
  const auto least = std::ranges::min_element(gpus, {}, &Footprint::room_bytes);
  return least == gpus.end() ? Footprint{} : *least;
}

std::string parts_in_words(const Footprint& gpu) {
  std::string words = format_bytes(gpu.peak_bytes) + " at peak";
  const double context = gpu.outside.context_bytes, nccl = gpu.outside.nccl_bytes();
  if (context > 0) words += ", CUDA context " + format_bytes(context);
  if (nccl > 0) words += ", NCCL buffers " + format_bytes(nccl);
  return words;
}

std::string room_in_words(const Footprint& gpu) {
  const double room = std::abs(gpu.room_bytes());
  return fmt::format("{} ({:.1f} %) {}", format_bytes(room),
                     gpu.capacity_bytes > 0 ? 100 * room / gpu.capacity_bytes : 0,
                     gpu.fits() ? "free" : "too much");
}

std::string in_words(const Footprint& gpu) {
  const std::string whole = fmt::format("pipeline rank {} needs {} of {}", gpu.rank,
                                        format_bytes(gpu.needed_bytes()), format_bytes(gpu.capacity_bytes));
  return gpu.outside.all() > 0 ? whole + ": " + parts_in_words(gpu) : whole;
}

}  // namespace rehearse

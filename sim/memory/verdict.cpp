#include "memory/verdict.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/quantity.h"

namespace rehearse {

std::string to_string(Verdict verdict) {
  switch (verdict) {
    case Verdict::fits:
      return "fits";
    case Verdict::tight:
      return "tight";
    case Verdict::does_not_fit:
      return "does not fit";
    case Verdict::undecided:
      return "not decided";
  }
  return "";
}

MemoryVerdict memory_verdict(const std::vector<Footprint>& gpus, const Headroom& headroom) {
  MemoryVerdict verdict;
  verdict.gpu = fullest(gpus);
  verdict.headroom_bytes = headroom.of(verdict.gpu.capacity_bytes);
  verdict.leaves_headroom = std::ranges::all_of(
      gpus, [&](const Footprint& gpu) { return gpu.room_bytes() >= headroom.of(gpu.capacity_bytes); });
  const bool fits = std::ranges::all_of(gpus, &Footprint::fits);
  verdict.needs_expandable_segments = fits && !std::ranges::all_of(gpus, &Footprint::fragments_fit);
  if (!fits)
    verdict.verdict = Verdict::does_not_fit;
  else if (!verdict.leaves_headroom || verdict.needs_expandable_segments)
    verdict.verdict = Verdict::tight;
  return verdict;
}

void weigh(const std::vector<OmittedEffect>& effects, MemoryVerdict& verdict) {
  if (any_has(effects, verdict.fits() ? kMoreMemory : kLessMemory)) verdict.verdict = Verdict::undecided;
}

std::string in_words(const MemoryVerdict& verdict) {
  const Footprint& gpu = verdict.gpu;
  std::string words = to_string(verdict.verdict) + (verdict.is_decided() ? ": " : ": as counted, ");
  if (!verdict.fits())
    return words + fmt::format("{} of {} on pipeline rank {}, {}", format_bytes(gpu.needed_bytes()),
                               format_bytes(gpu.capacity_bytes), gpu.rank, room_in_words(gpu));
  words += room_in_words(gpu);
  if (!verdict.leaves_headroom)
    words += fmt::format(", less than the headroom of {}", format_bytes(verdict.headroom_bytes));
  if (verdict.needs_expandable_segments)
    words += fmt::format("; fits only with {}, because of memory fragmentation", kExpandableSegments);
  return words;
}

}  // namespace rehearse

// Our hooks for libFuzzer: half of the mutations, and the sanitizers' settings.
#include <algorithm>
#include <cstdint>
#include <string>

#include "fuzz/mutate.h"
#include "fuzz/target.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t most);

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t most,
                                               unsigned int seed) {
  if (seed % 2 == 0) return LLVMFuzzerMutate(data, size, most);
  rehearse::fuzz::Random random(seed);
  const std::string unit(reinterpret_cast<const char*>(data), size);
  const std::string changed = rehearse::fuzz::mutate(unit, unit, most, random);
  std::copy(changed.begin(), changed.end(), data);
  return changed.size();
}

extern "C" int LLVMFuzzerInitialize(int* /*count*/, char*** arguments) {
  rehearse::fuzz::choose((*arguments)[0]);
  return 0;
}

// Freed memory is quarantined to detect its use. The quarantine is small, so that it does not count as the
// reader's memory.
extern "C" const char* __asan_default_options() {
  return "quarantine_size_mb=16";
}

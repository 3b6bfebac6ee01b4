// Which seed does each name get?
#pragma once

#include <cstdint>
#include <string_view>

namespace rehearse {

inline std::uint64_t seed_of(std::uint64_t seed, std::string_view name) {
  std::uint64_t hash = 0xCBF29CE484222325U ^ seed;  // FNV-1a
  for (const char letter : name) hash = (hash ^ static_cast<unsigned char>(letter)) * 0x100000001B3U;
  return hash;
}

}  // namespace rehearse

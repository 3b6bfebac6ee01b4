// How many places does a token visit, if its experts are in several places and it visits each once?
#pragma once

#include <cstdint>

namespace rehearse {

// Each token chooses `chosen` different ones of `experts`, all equally often.
struct Fanout {
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
};

// The average number of places where a token has at least one expert, of `places` with equal numbers of
// experts: n (1 - C(E - E/n, k) / C(E, k)). Between 1 and the smaller of both numbers; `places` itself
// without choices.
double copies(const Fanout& fanout, double places);

}  // namespace rehearse

// To how many places does a token go, if its experts lie in several and it goes to each place once?
#pragma once

#include <cstdint>

namespace rehearse {

// Of `experts`, each token chooses `chosen` different ones, all equally often.
struct Fanout {
  std::int64_t experts = 0;
  std::int64_t chosen = 0;
};

// Places, of `places` that hold as many experts each, where a token has chosen one at least, on average:
// n (1 - C(E - E/n, k) / C(E, k)). Between 1 and the lesser of both numbers; `places` as they are where
// nobody chooses.
double copies(const Fanout& fanout, double places);

}  // namespace rehearse

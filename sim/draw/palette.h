// Which colour and hatching represents which kind of op?
//
// Colours are Okabe and Ito's (jfly.uni-koeln.de/color, 2008), distinguishable with any colour vision. Each
// meaning also has its own lightness or hatching, so that a grey print can be read.
#pragma once

#include <set>
#include <string>

#include "schedule/op.h"

namespace rehearse::svg {

// Meaning of a box or strip; `chunk` lightens it.
enum class Meaning {
  forward,
  backward,
  backward_input,
  backward_weight,
  step,
  message,
  reduction,
  gather,
  host_copy
};

struct Paint {
  Meaning meaning = Meaning::forward;
  int chunk = 0;
  auto operator<=>(const Paint&) const = default;  // NOLINT(modernize-use-nullptr): it compares with 0
};

Meaning meaning_of(OpKind kind);
std::string name_of(Meaning meaning);  // for the legend

// Value of a fill attribute: a colour, or "url(#...)" of a pattern that pattern() defines.
std::string fill(const Paint& paint, int chunks);

// The <pattern> that fill() refers to; empty for plain colours.
std::string pattern(const Paint& paint, int chunks);

}  // namespace rehearse::svg

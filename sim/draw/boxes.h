// Which boxes does the row of a rank consist of, once what is too small to see has been merged?
#pragma once

#include <vector>

#include "draw/palette.h"
#include "result/timeline.h"

namespace rehearse::svg {

struct Box {
  double begin = 0, end = 0;  // seconds
  Paint paint;
  std::int32_t microbatch = -1;  // -1: none, or several
};

// The compute stream. Parts of one op are joined; neighbours of one paint that are each shorter than `tiny_s`
// are merged, which `merged` counts.
std::vector<Box> compute_boxes(const TimelineRank& rank, const RankOps& ops, int pp, double tiny_s,
                               std::int64_t& merged);

// When does at least one message (or reduction) of the rank move? Gaps below `tiny_s` are closed.
std::vector<Box> moving_boxes(const TimelineRank& rank, const RankOps& ops, Meaning meaning, double tiny_s);

}  // namespace rehearse::svg

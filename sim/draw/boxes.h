// Which boxes make up the row of a rank, after boxes too small to see have been merged?
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

// The compute stream. Parts of one op are joined. Neighbours of one paint that are each shorter than `tiny_s`
// are merged; `merged` counts them.
std::vector<Box> compute_boxes(const TimelineRank& rank, const RankOps& ops, int pp, double tiny_s,
                               std::int64_t& merged);

// Times in which at least one message (or reduction) of the rank is in transfer. Gaps below `tiny_s` are
// closed.
std::vector<Box> moving_boxes(const TimelineRank& rank, const RankOps& ops, Meaning meaning, double tiny_s);

}  // namespace rehearse::svg

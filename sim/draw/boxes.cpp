#include "draw/boxes.h"

#include <algorithm>

namespace rehearse::svg {

std::vector<Box> compute_boxes(const TimelineRank& rank, const RankOps& ops, int pp, double tiny_s,
                               std::int64_t& merged) {
  std::vector<Box> boxes;
  bool small = false;  // the last box consists of ops that are each too small
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const Op& op = ops[i];
    if (op.stream != Stream::compute) continue;
    const int chunk = op.kind == OpKind::step ? 0 : op.stage / std::max(1, pp);
    const Box box{rank.spans[i].begin, rank.spans[i].end, {meaning_of(op.kind), chunk}, op.microbatch};
    const bool tiny = box.end - box.begin < tiny_s;
    const bool near =
        !boxes.empty() && boxes.back().paint == box.paint && box.begin - boxes.back().end < tiny_s;
    if (near && op.part > 0 && boxes.back().microbatch == box.microbatch) {
      boxes.back().end = box.end;
      small = small && tiny;
    } else if (near && tiny && small) {
      boxes.back().end = box.end;
      boxes.back().microbatch = -1;
      ++merged;
    } else {
      boxes.push_back(box);
      small = tiny;
    }
  }
  return boxes;
}

std::vector<Box> moving_boxes(const TimelineRank& rank, const RankOps& ops, Meaning meaning, double tiny_s) {
  std::vector<Span> spans;
  for (std::size_t i = 0; i < ops.size(); ++i)
    if (ops[i].stream != Stream::compute && meaning_of(ops[i].kind) == meaning)
      spans.push_back(rank.spans[i]);
  std::sort(spans.begin(), spans.end(), [](const Span& a, const Span& b) { return a.begin < b.begin; });
  std::vector<Box> boxes;
  for (const Span& span : spans) {
    if (!boxes.empty() && span.begin - boxes.back().end < tiny_s)
      boxes.back().end = std::max(boxes.back().end, span.end);
    else
      boxes.push_back({span.begin, span.end, {meaning, 0}, -1});
  }
  return boxes;
}

}  // namespace rehearse::svg

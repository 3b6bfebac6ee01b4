#include "result/explain/two_orders.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace rehearse {

namespace {

// Properties of one rank's order.
struct Habits {
  int backwards = 0, split = 0, first_split = -1;  // its number among the backwards
  int warm_up = 0;                                 // forwards before the first backward
  double group = 0;                                // mean run of forwards of one stage
  double idle = 0;                                 // share of the step
};

Habits habits_of(const RankOps& ops, const TimelineRank& rank, double step_time_s) {
  Habits habits;
  int forwards = 0, runs = 0, stage = -1;
  for (const Op& op : ops.ops()) {
    if (!is_compute(op.kind) || op.part > 0) continue;
    if (op.kind == OpKind::forward) {
      ++forwards;
      runs += std::exchange(stage, static_cast<int>(op.stage)) != op.stage;
    }
    if (!begins_backward(op.kind)) continue;
    if (habits.backwards == 0) habits.warm_up = forwards;
    if (op.kind == OpKind::backward_input && habits.split++ == 0) habits.first_split = habits.backwards;
    ++habits.backwards;
  }
  habits.group = runs > 0 ? static_cast<double>(forwards) / runs : 0;
  habits.idle = bubble_fraction(rank, ops, step_time_s);
  return habits;
}

std::vector<Habits> habits_of(const RunOrder& run) {
  std::vector<Habits> all;
  for (std::size_t rank = 0; rank < run.schedule.ranks.size(); ++rank)
    all.push_back(habits_of(run.schedule.ranks[rank], run.timeline.ranks[rank], run.timeline.end()));
  return all;
}

// A row of a table: the value of every rank.
template <typename Value>
std::string row(const char* what, const std::vector<Habits>& habits, Value value) {
  std::string text = fmt::format("  {:<34}", what);
  for (const Habits& each : habits) text += fmt::format(" {:>5}", value(each));
  return text + "\n";
}

std::string table(const RunOrder& run) {
  const std::vector<Habits> habits = habits_of(run);
  std::string text = fmt::format("{}, {:.4g} s\n", run.name, run.timeline.end());
  text += row("backwards split into I and W", habits, [](const Habits& each) { return each.split; });
  text += row("  of", habits, [](const Habits& each) { return each.backwards; });
  text += row("  from backward number", habits, [](const Habits& each) {
    return each.first_split < 0 ? std::string("-") : std::to_string(each.first_split);
  });
  text += row("forwards before the first backward", habits, [](const Habits& each) { return each.warm_up; });
  text += row("forwards of a chunk in a row, mean", habits,
              [](const Habits& each) { return fmt::format("{:.1f}", each.group); });
  text += row("compute idle, %", habits,
              [](const Habits& each) { return fmt::format("{:.1f}", 100 * each.idle); });
  return text;
}

// The pass that takes most of each slot: a letter, or "." where the rank idles longest.
std::string picture_of(const RankOps& ops, const TimelineRank& rank, double slot_s, int columns) {
  constexpr std::array<char, 5> kLetters = {'F', 'B', 'I', 'W', '.'};
  std::vector<std::array<double, 5>> seconds(static_cast<std::size_t>(columns));
  for (auto& slot : seconds) slot.back() = slot_s;
  for (std::size_t i = 0; i < ops.size(); ++i) {
    if (!is_compute(ops[i].kind)) continue;
    const Span& span = rank.spans[i];
    for (int c = std::max(0, static_cast<int>(span.begin / slot_s)); c < columns && c * slot_s < span.end;
         ++c) {
      const double part = std::min(span.end, (c + 1) * slot_s) - std::max(span.begin, c * slot_s);
      auto& slot = seconds[static_cast<std::size_t>(c)];
      slot[static_cast<std::size_t>(ops[i].kind)] += std::max(0.0, part);
      slot.back() -= std::max(0.0, part);
    }
  }
  std::string text;
  for (const auto& slot : seconds)
    text += kLetters[static_cast<std::size_t>(std::ranges::max_element(slot) - slot.begin())];
  return text;
}

std::string picture(const RunOrder& run, double slot_s, int columns) {
  std::string text = run.name + "\n";
  for (std::size_t rank = 0; rank < run.schedule.ranks.size(); ++rank)
    text += fmt::format("  {:>2} {}\n", rank,
                        picture_of(run.schedule.ranks[rank], run.timeline.ranks[rank], slot_s, columns));
  return text;
}

}  // namespace

std::string two_orders(const RunOrder& ours, const RunOrder& other, int columns) {
  const double longest = std::max(ours.timeline.end(), other.timeline.end());
  std::string ranks = fmt::format("  {:<34}", "by pipeline rank");
  for (std::size_t rank = 0; rank < ours.schedule.ranks.size(); ++rank) ranks += fmt::format(" {:>5}", rank);
  std::string text = ranks + "\n" + table(ours) + table(other);
  if (longest <= 0) return text;
  const double slot_s = longest / columns;
  text += fmt::format("\nBoth on one time axis; a letter is {:.3g} ms, \".\" is idle:\n", slot_s * 1e3);
  return text + picture(ours, slot_s, columns) + picture(other, slot_s, columns);
}

}  // namespace rehearse

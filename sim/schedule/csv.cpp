// The schedule files of PyTorch's pipelining (torch.distributed.pipelining.schedules, _dump_csv and
// _load_csv).
#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "schedule/implied_waits.h"
#include "schedule/parse.h"
#include "schedule/text.h"

namespace rehearse {

namespace {

bool known_to_pytorch(const Op& op) {
  return op.kind <= OpKind::recv_backward || op.kind == OpKind::unshard || op.kind == OpKind::reshard ||
         op.kind == OpKind::reduce_grad;
}

// A split op is written at its last part, because later ops wait for that part. A gather comes before the ops
// that wait for it, so its first part counts. Parts of units come in either order.
class WholeOps {
 public:
  // Whether the op is to be written for this one of its parts.
  bool stands_at(const Op& op) {
    if (op.kind != OpKind::unshard && op.kind != OpKind::reshard) return op.part + 1 == op.parts;
    const int seen = ++seen_[{op.kind, op.stage}] % op.parts;
    return seen == (op.kind == OpKind::unshard ? 1 % op.parts : 0);
  }

 private:
  std::map<std::pair<OpKind, int>, int> seen_;
};

std::string_view trim(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t\r");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t\r") - first + 1);
}

std::vector<std::string_view> split(std::string_view text, char separator) {
  std::vector<std::string_view> pieces;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(separator, begin), text.size());
    pieces.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return pieces;
}

// The actions of a cell: one, or the pair of "(0F1;1B0)OVERLAP_F_B". A pair runs in sequence here.
std::vector<std::string_view> actions_of(std::string_view cell, const TokenPlace& place) {
  constexpr std::string_view kOverlap = ")OVERLAP_F_B";
  if (!cell.starts_with('(')) return {cell};
  if (!cell.ends_with(kOverlap))
    reject_token(place, "actions in parentheses are an overlapped pair", cell, "(0F1;1B0)OVERLAP_F_B");
  return split(cell.substr(1, cell.size() - 1 - kOverlap.size()), ';');
}

RankOps read_row(std::string_view row, int number, const std::string& file) {
  RankOps ops;
  ImpliedWaits implied;
  int cell = 0;
  for (const std::string_view token : split(row, ',')) {
    const TokenPlace place{file, fmt::format("row {}, cell {}", number, ++cell)};
    if (trim(token).empty()) continue;  // an idle step
    for (const std::string_view action : actions_of(trim(token), place)) {
      const Op op = parse_op(trim(action), place, false);
      if (!known_to_pytorch(op)) reject_token(place, "PyTorch knows no such action", action);
      implied.note(op, ops.add(op, implied.of(op)));
    }
  }
  return ops;
}

}  // namespace

std::string write_csv(const Schedule& schedule) {
  std::string csv;
  for (const RankOps& ops : schedule.ranks) {
    std::vector<std::string> cells;
    WholeOps whole;
    for (Op op : ops.ops()) {
      if (!known_to_pytorch(op) || !whole.stands_at(op)) continue;
      op.parts = 1;
      cells.push_back(to_string(op));
    }
    csv += join(cells, ",") + "\n";
  }
  return csv;
}

Schedule read_csv(const std::string& csv, const std::string& file) {
  std::string_view rows = csv;
  const std::size_t last = rows.find_last_not_of(" \t\r\n");
  rows = rows.substr(0, last == std::string_view::npos ? 0 : last + 1);
  Schedule schedule;
  int number = 0;
  for (const std::string_view row : split(rows, '\n'))
    schedule.ranks.push_back(read_row(row, ++number, file));
  set_size(schedule, file);
  return schedule;
}

}  // namespace rehearse

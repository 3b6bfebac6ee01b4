#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

#include "schedule/checks.h"
#include "schedule/placement.h"

namespace rehearse {

namespace {

// One stream between two ranks: the messages at its two ends, in order, each named by its send.
struct Channel {
  std::vector<Op> sent;
  std::vector<Op> received;
};
using Channels = std::map<std::tuple<Stream, int, int>, Channel>;  // by stream, sender and receiver

Op send_of(const Op& receive) {
  if (receive.kind == OpKind::recv_forward)
    return make_op(OpKind::send_forward, receive.stage - 1, receive.microbatch);
  return make_op(OpKind::send_backward, receive.stage + 1, receive.microbatch);
}

Op receive_of(const Op& send) {
  if (send.kind == OpKind::send_forward)
    return make_op(OpKind::recv_forward, send.stage + 1, send.microbatch);
  return make_op(OpKind::recv_backward, send.stage - 1, send.microbatch);
}

// Puts a message into its channel, or reports why it has none.
void place(const Op& op, int rank, const std::vector<int>& rank_of, Channels& channels, Faults& faults) {
  const Op partner = is_send(op.kind) ? receive_of(op) : send_of(op);
  if (rank_of[op.stage] != rank) {
    faults.push_back(
        fmt::format("{} is on rank {}, which does not run stage {}", to_string(op), rank, op.stage));
  } else if (partner.stage >= rank_of.size()) {  // below stage 0 wraps above every stage
    faults.push_back(fmt::format("{} on rank {} has no neighbour stage", to_string(op), rank));
  } else if (const int other = rank_of[partner.stage]; other >= 0) {
    if (is_send(op.kind))
      channels[{op.stream, rank, other}].sent.push_back(op);
    else
      channels[{partner.stream, other, rank}].received.push_back(partner);
  }
}

Channels find_channels(const Schedule& schedule, Faults& faults) {
  const std::vector<int> rank_of = ranks_by_stage(schedule);
  Channels channels;
  for (int rank = 0; rank < schedule.pp; ++rank)
    for (const Op& op : schedule.ranks[static_cast<std::size_t>(rank)].ops())
      if (is_send(op.kind) || is_receive(op.kind)) place(op, rank, rank_of, channels, faults);
  return channels;
}

// Sorted by stage and microbatch, so that a message on one side only becomes visible.
std::multiset<std::pair<int, int>> names(const std::vector<Op>& ops) {
  std::multiset<std::pair<int, int>> result;
  for (const Op& op : ops) result.emplace(op.stage, op.microbatch);
  return result;
}

void check_channel(int sender, int receiver, const Channel& channel, Faults& faults) {
  const auto same = [](const Op& a, const Op& b) {
    return a.stage == b.stage && a.microbatch == b.microbatch;
  };
  const auto sent = names(channel.sent);
  const auto received = names(channel.received);
  if (sent != received) {
    const auto count = [](const auto& set, const Op& op) { return set.count({op.stage, op.microbatch}); };
    for (const Op& op : channel.sent)
      if (count(sent, op) > count(received, op))
        faults.push_back(fmt::format("{} on rank {} has no {} on rank {}", to_string(op), sender,
                                     to_string(receive_of(op)), receiver));
    for (const Op& op : channel.received)
      if (count(received, op) > count(sent, op))
        faults.push_back(fmt::format("{} on rank {} has no {} on rank {}", to_string(receive_of(op)),
                                     receiver, to_string(op), sender));
    return;
  }
  const auto [a, b] = std::mismatch(channel.sent.begin(), channel.sent.end(), channel.received.begin(), same);
  if (a == channel.sent.end()) return;
  faults.push_back(fmt::format("message {} from rank {} to rank {} is {}, but the receiver has {} there",
                               a - channel.sent.begin(), sender, receiver, to_string(*a),
                               to_string(receive_of(*b))));
}

// REDUCE_TIED is one collective of two ranks.
void check_tied(const Schedule& schedule, Faults& faults) {
  std::vector<std::string> members;
  for (int rank = 0; rank < schedule.pp; ++rank)
    for (const Op& op : schedule.ranks[static_cast<std::size_t>(rank)].ops())
      if (op.kind == OpKind::reduce_tied)
        members.push_back(fmt::format("{} on rank {}", to_string(op), rank));
  if (!members.empty() && members.size() != 2)
    faults.push_back(fmt::format("REDUCE_TIED joins two ranks, but there is {}", join(members)));
}

}  // namespace

void check_messages(const Schedule& schedule, Faults& faults) {
  for (const auto& [key, channel] : find_channels(schedule, faults))
    check_channel(std::get<1>(key), std::get<2>(key), channel, faults);
  check_tied(schedule, faults);
}

}  // namespace rehearse

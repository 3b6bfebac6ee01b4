#include "calibrate/timing/measured_collectives.h"

#include <algorithm>
#include <set>

#include "cost/collectives.h"
#include "cost/nccl/read_model.h"

namespace rehearse {

namespace {

nccl::Measured& table_of(nccl::Model& model, const Cluster& cluster, const MessageSample& message) {
  const CollectiveOp op = message_ops().at(message.op);
  const auto nodes = static_cast<int>(message.nodes), members = static_cast<int>(message.members);
  const std::size_t system = nccl::add_system(model.systems, cluster.name, cluster);
  const auto same = [&](const nccl::Measured& other) {
    return other.how == How::measured && !other.forced && other.system == system && other.op == op &&
           other.nodes == nodes && other.members == members;
  };
  const auto found = std::find_if(model.measured.begin(), model.measured.end(), same);
  if (found != model.measured.end()) return *found;
  model.measured.push_back({system,
                            op,
                            nodes,
                            members,
                            std::nullopt,
                            How::measured,
                            {"rehearse calibrate"},
                            {}});
  return model.measured.back();
}

}  // namespace

std::shared_ptr<const nccl::Model> with_measured(std::shared_ptr<const nccl::Model> base,
                                                 const Cluster& cluster,
                                                 const std::vector<MessageSample>& messages) {
  nccl::Model model = base ? *base : nccl::read_model(nccl::kDefaultModel);
  for (const MessageSample& message : messages) {
    std::vector<nccl::Measured::Row>& rows = table_of(model, cluster, message).rows;
    const auto at =
        std::lower_bound(rows.begin(), rows.end(), message.bytes,
                         [](const nccl::Measured::Row& row, double bytes) { return row.bytes < bytes; });
    if (at != rows.end() && at->bytes == message.bytes) {
      at->seconds = message.seconds;
    } else {
      rows.insert(at, {message.bytes, message.seconds});
    }
  }
  return std::make_shared<const nccl::Model>(std::move(model));
}

Json collectives_json(const nccl::Model& model) {
  Json json = {{"model", model.name}, {"systems", Json::array()}, {"measured", Json::array()}};
  std::set<std::size_t> described;
  for (const nccl::Measured& each : model.measured) {
    if (each.how != How::measured) continue;
    if (described.insert(each.system).second)
      json["systems"].push_back(nccl::to_json(model.systems[each.system]));
    json["measured"].push_back(nccl::to_json(each, model.systems));
  }
  return json;
}

}  // namespace rehearse

#include "cluster/nccl_facts.h"

#include "base/json_reader.h"

namespace rehearse {

namespace {

constexpr int kSmMost = 999;
constexpr Bounds kRings{Dimension::one, 0.01, 64};

std::vector<double> read_rings(const JsonReader& reader, int gpus) {
  const std::vector<double> rings = reader.numbers("rings", kRings);
  if (static_cast<int>(rings.size()) != gpus - 1)
    reader.fail("rings", "must hold a number for 2, 3, ... GPUs of the node",
                "found " + reader.value("rings").dump());
  return rings;
}

void read_island(const JsonReader& reader, int gpus, NcclFacts& facts) {
  facts.island_gpus = static_cast<int>(reader.integer("gpus", 2, gpus < 2 ? 2 : gpus));
  facts.island_kind = reader.text("kind");
  facts.island_bandwidth = reader.quantity("bandwidth", physical::kBandwidth);
  reader.reject_unknown();
}

}  // namespace

NcclFacts read_nccl_facts(const JsonReader& cluster, int gpus) {
  NcclFacts facts;
  if (!cluster.has("nccl")) return facts;
  const JsonReader reader = cluster.object("nccl");
  facts.sm = static_cast<int>(reader.integer_or("sm", 0, 0, kSmMost));
  facts.host_gpus = static_cast<int>(reader.integer_or("host_gpus", 0, 0, gpus));
  facts.assumed_nics = reader.boolean_or("assumed_nics", false);
  facts.degraded = reader.boolean_or("degraded", false);
  if (reader.has("rings")) facts.rings = read_rings(reader, gpus);
  if (reader.has("island")) read_island(reader.object("island"), gpus, facts);
  reader.reject_unknown();
  return facts;
}

}  // namespace rehearse

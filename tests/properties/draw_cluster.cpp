#include "draw_cluster.h"

#include <fmt/core.h>
#include <rapidcheck.h>

namespace rehearse::properties {

namespace {

using rc::gen::element;
using rc::gen::inRange;

const std::vector<std::string> kBlackwell = {"bf16", "fp8", "fp8", "fp4"}, kHopper = {"bf16", "fp16", "fp8"},
                               kAmpere = {"bf16", "fp16"};

// Leaves of two nodes whose uplinks have a third of the nodes' bandwidth.
constexpr const char* kNarrow =
    R"({"fabric": {"kind": "fat-tree", "levels": [{"name": "leaf", "nodes": 2, "oversubscription": 3}]}})";
constexpr const char* kNarrowRails = R"({"fabric": {"kind": "fat-tree", "rails": true,
    "levels": [{"name": "leaf", "nodes": 2, "oversubscription": 2}, {"name": "pod", "nodes": 4,
    "oversubscription": 4}]}})";
constexpr const char* kSmallDragonfly = R"({"fabric": {"kind": "dragonfly", "routing": "minimal",
    "levels": [{"name": "group", "nodes": 2, "oversubscription": 1.5}]}, "max_nodes": 64})";
constexpr const char* kTorus =
    R"({"fabric": {"kind": "torus", "rails": null, "levels": null, "extents": [4, 4, 4],
    "link_bandwidth": "12.5GB/s"}, "max_nodes": 64})";

const std::vector<Hardware>& known_hardware() {
  static const std::vector<Hardware> known = {
      {"rails", "dgx-h100", "", "", kHopper, 8, true},
      {"fat tree", "dgx-a100-80gb", "", "", kAmpere, 8, true},
      {"oversubscribed", "dgx-h100", kNarrow, "", kHopper, 8, true},
      {"oversubscribed rails", "dgx-a100-80gb", kNarrowRails, "", kAmpere, 8, true},
      {"pods 7:1", "meta-24k-h100", "", "", kHopper, 8, true},
      {"dragonfly", "frontier", "", "a100-sxm-80gb", kAmpere, 8, false},
      {"dragonfly, minimal", "polaris", kSmallDragonfly, "", kAmpere, 4, false},
      {"torus", "dgx-h100", kTorus, "", kHopper, 8, true},
      {"NVL72", "gb200-nvl72", "", "", kBlackwell, 72, false},
      {"rails, Blackwell", "dgx-b200", "", "", kBlackwell, 8, true},
      {"wired nodes", "p3.16xlarge", "", "", {"fp16"}, 8, false},
      {"islands", "a40-nvlink-pairs", "", "a100-sxm-80gb", kAmpere, 4, false},
  };
  return known;
}

int nodes_of(const Hardware& hardware, const Degrees& degrees) {
  return (degrees.gpus() + hardware.gpus_a_node - 1) / hardware.gpus_a_node;
}

std::string slow_part(const Hardware& hardware, const Degrees& degrees) {
  const int node = *inRange(0, nodes_of(hardware, degrees));
  const char* speed = *element("0.5", "0.8", "0.95");
  switch (*inRange(0, 3)) {
    case 0:
      return fmt::format("rank={}:{}", *inRange(0, degrees.gpus()), speed);
    case 1:
      return fmt::format("nvlink={}.{}:{}", node, *inRange(0, std::min(hardware.gpus_a_node, 8)), speed);
    default:
      return fmt::format("nic={}.0:{}", node, *element("0.5", "0.8", "0"));
  }
}

}  // namespace

Hardware draw_hardware(int gpus) {
  if (gpus <= 2 && *inRange(0, 4) == 3) return {"one node", "cpu-node", "", "", {"fp32"}, 2, false};
  return *rc::gen::elementOf(known_hardware());
}

void add_hardware(Json& scenario, const Hardware& hardware, const Degrees& degrees) {
  scenario["cluster"] = hardware.cluster;
  if (!hardware.changes.empty()) scenario["cluster_changes"] = Json::parse(hardware.changes);
  if (!hardware.profile.empty()) scenario["profile"] = hardware.profile;
  scenario["gpus"] = degrees.gpus();
  const bool one_node = hardware.cluster == "cpu-node";
  if (!one_node && *inRange(0, 4) == 3) scenario["placement"] = *element<std::string>("scattered", "random");
  if (!one_node && *inRange(0, 6) == 5) scenario["slow"] = slow_part(hardware, degrees);
  if (*inRange(0, 8) == 7) scenario["pxn"] = false;
  if (*inRange(0, 10) == 9) {
    scenario["jitter"] = 0.05;
    scenario["message_jitter"] = 0.1;
    scenario["seed"] = *inRange(0, 1000);
    scenario["iterations"] = *inRange(1, 4);
  }
  const bool whole_nodes = degrees.tp * degrees.cp * degrees.dp % 8 == 0 && degrees.pp > 1;
  if (whole_nodes && hardware.cluster == "dgx-h100" && *rc::gen::arbitrary<bool>()) {
    const int first = *inRange(1, degrees.pp);
    scenario["stage_nodes"] = fmt::format("{}*dgx-h100,{}*dgx-a100", first, degrees.pp - first);
  }
}

}  // namespace rehearse::properties

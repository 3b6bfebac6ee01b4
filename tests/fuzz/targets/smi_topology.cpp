#include "cluster/import.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kSmiTopology("smi_topology", [](const std::string& input) {
  write_imported(import_smi(input, "topology.txt"), "dgx-h100");
});

}  // namespace

}  // namespace rehearse::fuzz

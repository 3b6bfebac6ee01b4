#include "cluster/import.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kNcclTopology("nccl_topology", [](const std::string& input) {
  write_imported(import_nccl(input, "topology.xml"), "dgx-h100");
});

}  // namespace

}  // namespace rehearse::fuzz

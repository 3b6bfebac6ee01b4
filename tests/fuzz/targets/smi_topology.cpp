#include "cluster/imported_node.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

const Target kSmiTopology("smi_topology", [](const std::string& input) {
  static const Cluster like = read_cluster("dgx-h100");
  ImportedNode imported = import_smi(input, "topology.txt", &like);
  complete(imported, like);
  write_imported(imported, "dgx-h100", like);
});

}  // namespace

}  // namespace rehearse::fuzz

#include "cluster/cluster.h"

#include "cluster/graph.h"
#include "fuzz/target.h"

namespace rehearse::fuzz {

namespace {

// Two nodes of the cluster as links, too.
const Target kCluster("cluster",
                      [](const std::string& input) { make_graph(read_cluster(file_of(input)), 2); });

}  // namespace

}  // namespace rehearse::fuzz

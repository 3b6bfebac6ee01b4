#include "cluster/cluster.h"

#include "cluster/graph.h"
#include "fuzz/target.h"

// Two nodes of the cluster as links, too.
void rehearse::fuzz::read(const std::string& input) {
  make_graph(read_cluster(file_of(input)), 2);
}

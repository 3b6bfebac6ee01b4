// How is a cluster written to a file?
#pragma once

#include "base/json_reader.h"
#include "cluster/cluster.h"

namespace rehearse {

// JSON of schema "rehearse.cluster/1" that parse_cluster() reads back. It has GPUs, links, NICs and fabric,
// without host, profile and size of the cluster.
Json messages_json(const Cluster& cluster);

// InputError names the first broken rule, as for read_cluster().
Cluster parse_cluster(const JsonReader& reader, const std::string& name);

}  // namespace rehearse

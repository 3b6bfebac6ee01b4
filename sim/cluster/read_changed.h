// How is a cluster read with some values changed?
#pragma once

#include <string>

#include "base/json_reader.h"
#include "cluster/cluster.h"

namespace rehearse {

// The cluster of that name or path, with `changes` applied to its JSON as a merge patch (RFC 7396). An empty
// object changes nothing. The result must obey the same rules as a file: InputError.
Cluster read_cluster_changed(const std::string& name_or_path, const Json& changes);

}  // namespace rehearse

// What if a cluster differed in this?
#pragma once

#include <string>

#include "base/json_reader.h"
#include "cluster/cluster.h"

namespace rehearse {

// The cluster of that name or path with `changes` written over its JSON as a merge patch (RFC 7396); an empty
// object changes nothing. What the file must obey, the result must too: InputError.
Cluster read_cluster_changed(const std::string& name_or_path, const Json& changes);

}  // namespace rehearse

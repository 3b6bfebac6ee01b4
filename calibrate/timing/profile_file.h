// How does a measured profile become a file?
#pragma once

#include <string>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// JSON of schema "rehearse.profile/1" (docs/profile.schema.json) that read_profile() reads back. The samples
// are checked against `gpu`. Rows are sorted; the same profile gives the same bytes.
Json profile_json(const Profile& profile, const Gpu& gpu);

}  // namespace rehearse

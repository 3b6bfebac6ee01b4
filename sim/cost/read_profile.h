// Which content must the JSON of a profile have to be accepted?
#pragma once

#include "base/json_reader.h"
#include "cost/profile.h"

namespace rehearse {

constexpr const char* kProfileSchema = "rehearse.profile/1";

// The GPU as a profile states it.
Json profile_gpu_json(const Gpu& gpu);

// InputError names the first rule that the JSON breaks, as read_profile() promises.
Profile parse_profile(const JsonReader& reader);

}  // namespace rehearse

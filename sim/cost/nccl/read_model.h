// Which content must the file of a collectives model have?
#pragma once

#include "cost/nccl/model.h"

namespace rehearse::nccl {

constexpr const char* kModelSchema = "rehearse.collectives/1";
constexpr const char* kDefaultModel = "nccl";

// `name_or_path`: a model that ships with the program (calibrate/collectives) or a path. InputError for a
// broken rule: unknown keys, ratios beyond a factor of a thousand, sizes that do not grow, times of nothing.
Model read_model(const std::string& name_or_path);
Model parse_model(const JsonReader& reader);

// The array "systems" of a model or of a profile's collectives, which "hardware" of the others names.
std::vector<KnownSystem> read_systems(const JsonReader& reader);
Json to_json(const KnownSystem& system);

Measured read_measured(const JsonReader& reader, const std::vector<KnownSystem>& systems);
Json to_json(const Measured& measured, const std::vector<KnownSystem>& systems);
Json to_json(const Correction& correction, const std::vector<KnownSystem>& systems);

// Names as nccl-tests write them: "all_reduce", "alltoall", "sendrecv", ...; "reduce" is costed as broadcast.
CollectiveOp op_of(const std::string& name, const JsonReader& reader);
std::string nccl_name(CollectiveOp op);

}  // namespace rehearse::nccl

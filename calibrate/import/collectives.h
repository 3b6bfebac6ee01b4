// Which collectives model results from NCCL's constants and the published nccl-tests tables?
#pragma once

#include <filesystem>

#include "base/json_reader.h"

namespace rehearse::nccl {

// The model's JSON (schema rehearse.collectives/1). `data`: the folder with nccl_model.json and nccl/*.json.
Json import_model(const std::filesystem::path& data);

// The same tables' errors, as calibrate/README.md shows them.
std::string import_errors(const std::filesystem::path& data);

}  // namespace rehearse::nccl

#include "cli/open_fields.h"

#include <algorithm>

namespace rehearse {

namespace {

constexpr std::int64_t kNarrowestHead = 64, kWidestHead = 256;
constexpr std::int64_t kMostSequences =
    16;  // of a microbatch: more were never published of models on many GPUs
constexpr std::int64_t kMostChunks = 64;
constexpr std::size_t kMostCandidates = 256;

std::int64_t count(const Json& row, const char* part, const char* key, std::int64_t otherwise) {
  const Json& of = row.at(part);
  return of.contains(key) && of.at(key).is_number_integer() ? of.at(key).get<std::int64_t>() : otherwise;
}

std::vector<Json> microbatches(const Json& row) {
  const std::int64_t replicas = std::max<std::int64_t>(1, count(row, "parallel", "dp", 1));
  const std::int64_t batch = count(row, "batch", "global", 0) / replicas;
  std::vector<Json> sizes;
  for (std::int64_t size = 1; size <= std::min(batch, kMostSequences); size *= 2)
    if (batch % size == 0) sizes.emplace_back(size);
  return sizes;
}

// With a layer's place each for embedding and loss where the row divides its layers so.
std::vector<Json> chunks(const Json& row) {
  const Json& parallel = row.at("parallel");
  const bool with_ends = parallel.contains("layer_split") && parallel.at("layer_split").is_string();
  const std::int64_t ranks = std::max<std::int64_t>(1, count(row, "parallel", "pp", 1));
  const std::int64_t layers = count(row, "model", "layers", 0) + (with_ends ? 2 : 0);
  std::vector<Json> numbers;
  for (std::int64_t n = 2; layers % ranks == 0 && n <= std::min(layers / ranks, kMostChunks); ++n)
    if (layers / ranks % n == 0) numbers.emplace_back(n);
  return numbers;
}

std::vector<Json> heads(const Json& row) {
  const std::int64_t hidden = count(row, "model", "hidden", 0);
  const std::int64_t ranks = std::max<std::int64_t>(1, count(row, "parallel", "tp", 1));
  std::vector<Json> numbers;
  for (std::int64_t wide = kNarrowestHead; wide <= std::min(hidden, kWidestHead); ++wide)
    if (hidden % wide == 0 && hidden / wide % ranks == 0) numbers.emplace_back(hidden / wide);
  return numbers;
}

struct OpenField {
  const char* name;
  const char* pointer;
  std::vector<Json> (*values)(const Json& row);
};

const OpenField kOpenFields[] = {
    {"recompute", "/recompute",
     [](const Json&) {
       return std::vector<Json>{"none", "selective", "full"};
     }},
    {"batch.micro", "/batch/micro", microbatches},
    {"parallel.vpp", "/parallel/vpp", chunks},
    {"model.heads", "/model/heads", heads},
};

}  // namespace

std::vector<Json> candidates_of(const Json& row, const std::vector<std::string>& missing) {
  std::vector<Json> candidates = {row};
  for (const std::string& name : missing) {
    const auto* const field = std::ranges::find(kOpenFields, name, &OpenField::name);
    if (field == std::end(kOpenFields)) return {};
    std::vector<Json> further;
    for (const Json& candidate : candidates)
      for (const Json& value : field->values(candidate)) {
        if (further.size() == kMostCandidates) return {};
        further.push_back(candidate);
        further.back()[Json::json_pointer(field->pointer)] = value;
      }
    candidates = std::move(further);
  }
  return candidates;
}

}  // namespace rehearse

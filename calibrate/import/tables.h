// How are published tables of each kind converted to a profile's terms?
#pragma once

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "base/json_reader.h"
#include "cluster/cluster.h"
#include "cost/profile.h"

namespace rehearse {

// One entry of a recipe, and the folder of its files.
struct Entry {
  const JsonReader& recipe;
  const std::filesystem::path& data;
};

// The file that entry.recipe names at `key`, parsed. InputError when it is missing or no JSON.
Json read_table(const Entry& entry, const std::string& key = "file");

// {title, license, note} of a table: its own "source", and the entry's "note".
Source source_of(const Json& table, const std::string& note);

// Index of a column of a table {"columns": [...], "rows": [[...]]}; InputError when it has no such column.
std::size_t column(const Json& table, const std::string& name, const std::string& file);

// A count in a table's cell: a whole number from 0 to 10^12, or InputError.
std::int64_t count_of(const Json& cell);

// `value` rounded to `digits` significant decimal digits, so that profiles do not depend on the last bits of
// a libm.
double rounded(double value, int digits = 4);

// The mean of the middle two for an even number of values; needs at least one value.
double median(std::vector<double> values);

// The GPU's peak in the precision that entry.recipe names at "precision"; InputError where it has none.
double peak_flops_of(const JsonReader& recipe, const Gpu& gpu);

// Formats "vidur", "azure", "kinds", "roofline"; see calibrate/README.md. Rows of equal shape: the first
// entry wins.
std::vector<GemmSample> import_gemms(const Entry& entry, const Gpu& gpu, std::vector<Source>& sources);

// The rows of one kind of GEMM ("weight_gradient", "grouped/input_gradient", ...) of a table that
// distinguishes kinds.
std::vector<GemmSample> rows_of_kind(const Json& table, const std::string& kind, const std::string& file);

// Format "quotient": GEMMs of a kind that was timed only on another GPU. Each time is `forward`, this GPU's,
// times a ratio from the other GPU: this kind over forward, for the same shape.
std::vector<GemmSample> import_quotients(const Entry& entry, const Gpu& gpu,
                                         const std::vector<GemmSample>& forward,
                                         std::vector<Source>& sources);

// Forward and backward rates from FlashAttention's published rates: forward, and forward with backward.
std::vector<AttentionSample> import_attention(const Entry& entry, const Gpu& gpu,
                                              std::vector<Source>& sources);

using Streams = std::map<std::string, std::vector<StreamSample>>;
Streams import_streams(const Entry& entry, const Gpu& gpu, std::vector<Source>& sources);

// Seconds of the host for a launch and for a collective, over all traces whose GPU's name contains
// entry.recipe's "gpu". They are medians of the mean gaps between launches, and of the delay by a call. With
// "operation" {gpu, framework}, a launch takes the table's time of that operation, and a collective is scaled
// by the same factor.
struct HostTimes {
  double launch_s = 0;
  double collective_s = 0;
};
HostTimes import_host_launch(const Entry& entry, std::vector<Source>& sources);

// A link's cost, stated in the recipe, and a sentence with its source.
struct ImportedLink {
  LinkCost cost;
  std::string source;
};

ImportedLink import_link(const JsonReader& recipe, const std::string& kind);

}  // namespace rehearse

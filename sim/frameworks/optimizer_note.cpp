#include "frameworks/optimizer_note.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cctype>

namespace rehearse {

namespace {

struct KnownOptimizer {
  const char* name;  // in lower case, without '_' and '-'
  const char* differs;
};

constexpr const char* kOneMoment = "it keeps one moment, 4 bytes per parameter less, and its step reads less";
constexpr const char* kMuon =
    "it keeps one moment of each matrix, 4 bytes per parameter less, and its step orthogonalizes them in "
    "GEMMs "
    "(Newton-Schulz; Jordan et al. 2024)";
constexpr const char* kCompressed =
    "its state is Adam's, but gradients are compressed on the wire after a warm-up, which is not counted";
constexpr const char* kQuantized = "it keeps its moments in 8 bits, 6 bytes per parameter less";
constexpr const char* kFactored =
    "it keeps row and column sums instead of the second moment, and no first moment by default (Shazeer and "
    "Stern 2018): up to 8 bytes per parameter less";

// "": as Adam, with two moments in fp32 and a step over them.
constexpr std::array kOptimizers = {
    KnownOptimizer{"adam", ""},
    KnownOptimizer{"adamw", ""},
    KnownOptimizer{"fusedadam", ""},
    KnownOptimizer{"cpuadam", ""},
    KnownOptimizer{"deepspeedcpuadam", ""},
    KnownOptimizer{"muadam", ""},
    KnownOptimizer{"muadamw", ""},
    KnownOptimizer{
        "sgd",
        "it keeps no second moment, and a first one only with momentum: 4 to 8 bytes per parameter less"},
    KnownOptimizer{
        "musgd",
        "it keeps no second moment, and a first one only with momentum: 4 to 8 bytes per parameter less"},
    KnownOptimizer{"lion", kOneMoment},
    KnownOptimizer{"decoupledadamw", ""},
    KnownOptimizer{"decoupledlionw", kOneMoment},
    KnownOptimizer{"adagrad", kOneMoment},
    KnownOptimizer{"muon", kMuon},
    KnownOptimizer{"distmuon", kMuon},
    KnownOptimizer{"adaptivemuon", kMuon},
    KnownOptimizer{"adafactor", kFactored},
    KnownOptimizer{"lamb", "its step also computes a norm of each tensor, which is not counted"},
    KnownOptimizer{"soap", "it keeps two more matrices per matrix and decomposes them, which is not counted"},
    KnownOptimizer{"shampoo", "it keeps more matrices per matrix and decomposes them, which is not counted"},
    KnownOptimizer{"onebitadam", kCompressed},
    KnownOptimizer{"zerooneadam", kCompressed},
    KnownOptimizer{"onebitlamb", kCompressed},
    KnownOptimizer{"adam8bit", kQuantized},
    KnownOptimizer{"adamw8bit", kQuantized},
    KnownOptimizer{"pagedadamw8bit", kQuantized},
    KnownOptimizer{"adamwbnb8bit", kQuantized},
    KnownOptimizer{"adamwtorch8bit", kQuantized},
    KnownOptimizer{"pagedadamw",
                   "its moments may lie in the host's memory, and pages move when memory is short"},
    KnownOptimizer{"pagedadamw32bit",
                   "its moments may lie in the host's memory, and pages move when memory is short"},
    KnownOptimizer{"lion8bit", kOneMoment},
    KnownOptimizer{"pagedlion8bit", kOneMoment},
};

}  // namespace

std::string optimizer_note(const std::string& where, const std::string& optimizer) {
  std::string bare;
  for (const char letter : optimizer)
    if (letter != '_' && letter != '-')
      bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* const found =
      std::ranges::find_if(kOptimizers, [&](const KnownOptimizer& known) { return bare == known.name; });
  const std::string differs = found == kOptimizers.end() ? "its own cost is not known" : found->differs;
  if (differs.empty()) return "";
  return fmt::format("{} is {}: the state (8 bytes per parameter) and step of Adam are counted; {}", where,
                     optimizer, differs);
}

}  // namespace rehearse

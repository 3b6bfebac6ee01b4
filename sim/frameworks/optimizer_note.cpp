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
  const char* changes = "";  // above 10 % of the answer (base/omitted_effect.h)
};

constexpr const char* kOneMoment = "it keeps one moment, 4 bytes per parameter less, and its step reads less";
constexpr const char* kNoSecond =
    "it keeps no second moment, and a first one only with momentum: 4 to 8 bytes per parameter less";
constexpr const char* kMuon =
    "it keeps one moment of each matrix, 4 bytes per parameter less, and its step orthogonalizes them in "
    "GEMMs "
    "(Newton-Schulz; Jordan et al. 2024)";
constexpr const char* kCompressed =
    "its state is Adam's, but gradients are compressed on the wire after a warm-up, which is not counted";
constexpr const char* kQuantized = "it keeps its moments in 8 bits, 6 bytes per parameter less";
constexpr const char* kPaged =
    "its moments may lie in the host's memory, and pages move when memory is short";
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
    KnownOptimizer{"sgd", kNoSecond, kLessMemory},
    KnownOptimizer{"musgd", kNoSecond, kLessMemory},
    KnownOptimizer{"lion", kOneMoment, kLessMemory},
    KnownOptimizer{"decoupledadamw", ""},
    KnownOptimizer{"decoupledlionw", kOneMoment, kLessMemory},
    KnownOptimizer{"adagrad", kOneMoment, kLessMemory},
    KnownOptimizer{"muon", kMuon, "less memory, more time"},
    KnownOptimizer{"distmuon", kMuon, "less memory, more time"},
    KnownOptimizer{"adaptivemuon", kMuon, "less memory, more time"},
    KnownOptimizer{"adafactor", kFactored, kLessMemory},
    KnownOptimizer{"lamb", "its step also computes a norm of each tensor, which is not counted"},
    KnownOptimizer{"soap", "it keeps two more matrices per matrix and decomposes them, which is not counted",
                   "more memory, more time"},
    KnownOptimizer{"shampoo", "it keeps more matrices per matrix and decomposes them, which is not counted",
                   "more memory, more time"},
    KnownOptimizer{"onebitadam", kCompressed, kLessTime},
    KnownOptimizer{"zerooneadam", kCompressed, kLessTime},
    KnownOptimizer{"onebitlamb", kCompressed, kLessTime},
    KnownOptimizer{"adam8bit", kQuantized, kLessMemory},
    KnownOptimizer{"adamw8bit", kQuantized, kLessMemory},
    KnownOptimizer{"pagedadamw8bit", kQuantized, kLessMemory},
    KnownOptimizer{"adamwbnb8bit", kQuantized, kLessMemory},
    KnownOptimizer{"adamwtorch8bit", kQuantized, kLessMemory},
    KnownOptimizer{"pagedadamw", kPaged, "less memory, more time"},
    KnownOptimizer{"pagedadamw32bit", kPaged, "less memory, more time"},
    KnownOptimizer{"lion8bit", kOneMoment, kLessMemory},
    KnownOptimizer{"pagedlion8bit", kOneMoment, kLessMemory},
};

constexpr KnownOptimizer kUnknown = {"", "its own cost is not known",
                                     "less memory, more memory, less time, more time"};

const KnownOptimizer& known_optimizer(const std::string& name) {
  std::string bare;
  for (const char letter : name)
    if (letter != '_' && letter != '-')
      bare += static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
  const auto* const found =
      std::ranges::find_if(kOptimizers, [&](const KnownOptimizer& known) { return bare == known.name; });
  return found == kOptimizers.end() ? kUnknown : *found;
}

}  // namespace

std::string optimizer_note(const std::string& where, const std::string& optimizer) {
  const std::string differs = known_optimizer(optimizer).differs;
  if (differs.empty()) return "";
  return fmt::format("{} is {}: the state (8 bytes per parameter) and step of Adam are counted; {}", where,
                     optimizer, differs);
}

void note_optimizer(const std::string& where, const std::string& optimizer, Imported& imported) {
  const std::string note = optimizer_note(where, optimizer);
  if (note.empty()) return;
  imported.notes.push_back(note);
  omit(imported, "optimizer " + optimizer, "the state and step of Adam are counted",
       known_optimizer(optimizer).changes);
}

}  // namespace rehearse

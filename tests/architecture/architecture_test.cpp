// Who may include whom: downward only, and each folder's CMake library repeats the table.
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace rehearse {
namespace {

namespace fs = std::filesystem;
using Names = std::set<std::string>;

// base holds units, errors and the strict JSON reader; everything may use it.
const std::map<std::string, Names> kMayUse = {
    {"base", {}},
    {"model", {"base"}},
    {"cluster", {"base"}},
    {"plan", {"model"}},
    {"kernels", {}},
    {"launch", {"plan", "kernels"}},
    {"schedule", {"plan"}},
    {"memory", {"schedule"}},
    {"cost", {"plan", "cluster"}},
    {"result", {"memory", "cost"}},
    {"draw", {"result"}},
    {"run", {"result", "cost", "cluster", "schedule"}},
    {"execute", {"launch", "result", "schedule"}},
    {"calibrate", {"kernels", "launch", "plan", "cost"}},
    {"export", {"result", "schedule", "plan", "model"}},
    {"frameworks", {"base"}},
    {"search", {"run"}},
    {"studio", {"draw"}},
    {"sweep", {"draw"}},
    {"validate", {"run", "sweep"}},
    {"scenario", {"search", "sweep", "frameworks"}},
    {"cli", {"calibrate", "execute", "export", "scenario", "studio", "validate"}},
};

Names reachable(const std::string& folder) {
  Names all = {folder};
  for (const std::string& next : kMayUse.at(folder)) all.merge(reachable(next));
  return all;
}

std::string read(const fs::path& path) {
  std::ifstream in(path);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

bool is_source(const fs::path& path) {
  return path.extension() == ".h" || path.extension() == ".cpp";
}

Names words_after(const std::string& text, const std::string& keyword) {
  std::smatch match;
  Names words;
  if (!std::regex_search(text, match, std::regex("\\b" + keyword + R"(((\s+[a-z]+)+))"))) return words;
  std::istringstream list(match[1]);
  for (std::string word; list >> word;) words.insert(word);
  return words;
}

class Folder : public ::testing::TestWithParam<std::string> {};

TEST_P(Folder, IncludesOnlyWhatLiesBelow) {
  const Names allowed = reachable(GetParam());
  const std::regex include(R"(#include "([a-z]+)/)");
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / "sim" / GetParam())) {
    if (!is_source(entry.path())) continue;
    const std::string text = read(entry.path());
    for (auto found = std::sregex_iterator(text.begin(), text.end(), include);
         found != std::sregex_iterator(); ++found) {
      EXPECT_TRUE(allowed.contains((*found)[1])) << entry.path() << " includes " << (*found)[1];
    }
  }
}

TEST_P(Folder, LinksWhatTheTableSays) {
  const std::string text = read(fs::path(SOURCE_DIR) / "sim" / GetParam() / "CMakeLists.txt");
  if (GetParam() == "cli") return;  // a program, not a library
  Names listed = words_after(text, "DEPENDS");
  Names expected = kMayUse.at(GetParam());
  listed.erase("base");
  expected.erase("base");
  EXPECT_EQ(listed, expected);
}

INSTANTIATE_TEST_SUITE_P(Architecture, Folder,
                         ::testing::Values("base", "model", "cluster", "plan", "launch", "schedule", "memory",
                                           "cost", "result", "draw", "execute", "run", "export", "frameworks",
                                           "search", "studio", "sweep", "validate", "scenario", "cli"),
                         [](const auto& folder) { return folder.param; });

TEST(Architecture, SimGridIsNamedInTwoFilesOnly) {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / "sim")) {
    if (!is_source(entry.path())) continue;
    const std::string stem = entry.path().stem();
    if (stem == "platform" || stem == "simulate") continue;
    EXPECT_EQ(read(entry.path()).find("#include <simgrid"), std::string::npos) << entry.path();
  }
}

// Verbs describe their options as data (cli/verb.h). One file builds a parser from it.
TEST(Architecture, TheCommandLineLibraryIsNamedInTheParserOnly) {
  for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / "sim")) {
    const bool is_parser = entry.path().filename() == "parser.cpp";
    const bool names_it = is_source(entry.path()) && read(entry.path()).find("CLI::") != std::string::npos;
    EXPECT_EQ(names_it, is_parser) << entry.path();
  }
}

// A published run is its scenario: its id is printed, and decides nothing.
TEST(Architecture, IdsOfRunsDecideNothing) {
  const std::regex decides(
      R"(\bid\b\s*(==|!=|<|\.(starts_with|ends_with|find|substr|compare))|[=!]=\s*[\w.]*\bid\b)");
  EXPECT_TRUE(std::regex_search("if (run.id.starts_with(name))", decides));
  std::vector<fs::path> files = {fs::path(SOURCE_DIR) / "tests/cli/validate_test.cpp"};
  for (const auto& entry : fs::directory_iterator(fs::path(SOURCE_DIR) / "sim/validate"))
    if (is_source(entry.path())) files.push_back(entry.path());
  for (const fs::path& file : files) EXPECT_FALSE(std::regex_search(read(file), decides)) << file;
}

// A kernel is identified by its type and the slots of its tensors. Its name is printed and decides nothing.
// No tensor is identified by the number of tensors.
TEST(Architecture, NamesOfKernelsDecideNothing) {
  const std::regex compares(
      R"(\b(kernels?(\[\w+\])?|job\.key|other|k)(\.|->)name\s*(==|!=|<|\.(starts_with|ends_with|find|rfind|substr|contains|compare)\b))"
      R"(|[=!]=\s*[\w.>-]*\bkernel(\.|->)name\b|=\s*[\w.>-]*\bkernel(\.|->)name\s*;)");
  const std::regex counts(R"((reads|writes)\.(size\(\)\s*([=!<>]=|<|>|-)|back\(\)))");
  for (const char* wrong : {"if (kernel.name == \"top_k\")", "launch.kernel.name.ends_with(end)",
                            "const std::string& name = launch.kernel.name;", "\"sum\" == kernel->name"})
    EXPECT_TRUE(std::regex_search(wrong, compares)) << wrong;
  for (const char* wrong : {"kernel.reads.size() == 2", "launch.kernel.writes.size() > 1", "reads.back()"})
    EXPECT_TRUE(std::regex_search(wrong, counts)) << wrong;
  EXPECT_FALSE(std::regex_search("i < kernel.reads.size(); ++i", counts));
  for (const char* folder : {"sim", "calibrate"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / folder)) {
      if (!is_source(entry.path())) continue;
      const std::string text = read(entry.path());
      EXPECT_FALSE(std::regex_search(text, compares)) << entry.path();
      EXPECT_FALSE(std::regex_search(text, counts)) << entry.path();
    }
}

TEST(Architecture, KernelsUseNothingOfOursAndCudaStaysInItsFolder) {
  const std::regex ours(R"(#include "(?!kernels/))"), cuda(R"(#include <(cuda|cublas|nccl|cudnn))");
  for (const char* top : {"sim", "calibrate", "kernels"}) {
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / top)) {
      if (!is_source(entry.path())) continue;
      const std::string place = fs::relative(entry.path(), SOURCE_DIR).string();
      const std::string text = read(entry.path());
      EXPECT_FALSE(place.starts_with("kernels/") && std::regex_search(text, ours)) << place;
      EXPECT_FALSE(!place.starts_with("kernels/cuda/") && std::regex_search(text, cuda)) << place;
    }
  }
}

// A framework's behaviour is in its traits. Comparing frameworks elsewhere would duplicate it.
TEST(Architecture, FrameworksAreComparedInTheirTraitsOnly) {
  const std::regex compared(R"(plan_?\.framework\s*(==|!=)|(==|!=) Framework::|case Framework::)");
  const std::regex ordered(R"(schedule\s*(<|>|<=|>=)\s*ScheduleName::)");
  for (const char* top : {"sim", "calibrate"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / top)) {
      if (!is_source(entry.path())) continue;
      const std::string text = read(entry.path());
      EXPECT_FALSE(std::regex_search(text, compared)) << entry.path() << ": ask traits(plan)";
      EXPECT_FALSE(std::regex_search(text, ordered)) << entry.path() << ": the order of names means nothing";
    }
}

// The collective that sums gradients is chosen where messages are listed. All others ask there.
TEST(Architecture, ReductionsAreChosenWhereMessagesAreListed) {
  EXPECT_NE(read(fs::path(SOURCE_DIR) / "sim/plan/messages.cpp").find("scatters_gradients("),
            std::string::npos);
  for (const char* top : {"sim", "calibrate"})
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / top)) {
      const std::string place = fs::relative(entry.path(), SOURCE_DIR).string();
      if (!is_source(entry.path()) || place.starts_with("sim/plan/")) continue;
      EXPECT_EQ(read(entry.path()).find("scatters_gradients("), std::string::npos)
          << place << ": ask gradient_reduction()";
    }
}

// Members of the groups of plan/plan.h, and the rows of plan/fields.h that name them.
TEST(Architecture, EveryFieldOfAPlanHasARow) {
  const fs::path folder = fs::path(SOURCE_DIR) / "sim/plan";
  std::string rows;
  for (const char* part : {"kernels", "layout", "state"})
    rows += read(folder / (std::string("fields_of_") + part + ".cpp"));
  // By rows of a type of their own, and one that is the GPU's.
  const Names others = {"order", "layers_per_stage", "fp8_either_layout"};
  const std::regex member(R"(\n  [A-Za-z0-9:_<>]+(?:<[^>]+>)? (\w+) ?(?:=[^;(]*|\n?[^;(]*)?;)");
  const std::string plan = read(folder / "plan.h");
  int members = 0;
  for (auto found = std::sregex_iterator(plan.begin(), plan.end(), member); found != std::sregex_iterator();
       ++found, ++members) {
    const std::string name = (*found)[1];
    const std::regex row("&Plan::" + name + "\\b");
    EXPECT_TRUE(others.contains(name) || std::regex_search(rows, row)) << name << " has no row";
  }
  EXPECT_GT(members, 50);
}

TEST(Architecture, NoFileIsLongerThanFourHundredLines) {
  for (const char* top : {"sim", "calibrate", "tests", "kernels"}) {
    if (!fs::exists(fs::path(SOURCE_DIR) / top)) continue;
    for (const auto& entry : fs::recursive_directory_iterator(fs::path(SOURCE_DIR) / top)) {
      if (!is_source(entry.path())) continue;
      const std::string text = read(entry.path());
      EXPECT_LE(std::count(text.begin(), text.end(), '\n'), 400) << entry.path();
    }
  }
}

}  // namespace
}  // namespace rehearse

// `rehearse list`: known names, from the files and tables that the program itself reads.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <sstream>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;
using Json = nlohmann::json;

Json listed(const std::string& kind) {
  const Outcome outcome = run_program("list " + kind + " --json");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  return Json::parse(outcome.out);
}

Json entry(const Json& list, const std::string& name) {
  const auto found = std::ranges::find_if(list, [&](const Json& each) { return each["name"] == name; });
  EXPECT_NE(found, list.end()) << name;
  return found == list.end() ? Json::object() : *found;
}

std::vector<std::string> lines_of(const std::string& text) {
  std::istringstream in(text);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

TEST(List, SaysWhichKindsThereAre) {
  const Outcome outcome = run_program("list");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  std::vector<std::string> kinds;
  for (const Json& kind : listed("")) {
    kinds.push_back(kind["kind"]);
    EXPECT_EQ(listed(kind["kind"].get<std::string>()).size(), kind["names"]) << kind;
  }
  EXPECT_THAT(kinds, ElementsAre("models", "clusters", "profiles", "schedules", "frameworks"));
  for (const std::string& kind : kinds) EXPECT_THAT(outcome.out, HasSubstr(kind));
}

TEST(List, HasEveryFileThatShips) {
  for (const auto& [kind, folder] :
       {std::pair{"models", "scenarios/models"}, std::pair{"clusters", "topologies"},
        std::pair{"profiles", "calibrate/profiles"}}) {
    const Json list = listed(kind);
    std::size_t files = 0;
    for (const auto& file : std::filesystem::directory_iterator(std::string(SOURCE_DIR "/") + folder)) {
      ++files;
      EXPECT_EQ(entry(list, file.path().stem())["name"], file.path().stem().string());
    }
    EXPECT_EQ(list.size(), files) << kind;
  }
}

TEST(List, CountsAModelAsASimulationDoes) {
  const Json model = entry(listed("models"), "mixtral-8x7b");
  const Json report = Json::parse(
      run_program("simulate --model mixtral-8x7b --cluster dgx-h100 --gpus 64 --tp 8 --pp 4 --gbs 64 --json")
          .out);
  EXPECT_EQ(model["parameters"], report["model"]["parameters"]);
  EXPECT_EQ(model["layers"], report["model"]["layers"]);
  EXPECT_LT(model["active_parameters"].get<double>(), 0.3 * model["parameters"].get<double>());
  EXPECT_THAT(model["source"].get<std::string>(), HasSubstr("mistralai/Mixtral-8x7B-v0.1"));
}

TEST(List, DescribesAClusterAsTopoDoes) {
  const Json cluster = entry(listed("clusters"), "dgx-h100");
  const Json topo = Json::parse(run_program("topo dgx-h100 --json").out);
  EXPECT_EQ(cluster["gpu"], topo["gpu"]["name"]);
  EXPECT_EQ(cluster["gpus_per_node"], topo["gpus_per_node"]);
  EXPECT_EQ(cluster["nics_per_node"], topo["nics"]["count"]);
  EXPECT_EQ(cluster["nic_bandwidth_bytes_per_s"], topo["nics"]["bandwidth_bytes_per_s"]);
  EXPECT_EQ(cluster["fabric"], topo["fabric"]["kind"]);
  EXPECT_EQ(cluster["source"], topo["source"]);
  EXPECT_THAT(run_program("list clusters").out, HasSubstr("8 x 400 Gb/s infiniband"));
}

TEST(List, SaysHowAndWhenAProfileWasMeasured) {
  const Json list = listed("profiles");
  EXPECT_EQ(entry(list, "h100-halves")["how"], "measured");
  EXPECT_EQ(entry(list, "h100-halves")["date"], "2026-11-27");
  EXPECT_EQ(entry(list, "h100-sxm")["how"], "published");
}

// Each name and alias runs with the chunks that the list says, and the pages cite the same paper.
TEST(List, NamesSchedulesThatRun) {
  std::ifstream page(SOURCE_DIR "/docs/schedules.md");
  const std::vector<std::string> rows = lines_of(std::string(std::istreambuf_iterator<char>(page), {}));
  const std::string job =
      "check --model gpt-22b --cluster selene --tp 8 --pp 4 --gbs 8 --seq 2048 --schedule ";
  for (const Json& schedule : listed("schedules")) {
    const std::string name = schedule["name"], vpp = schedule["vpp"];
    const std::string fits = vpp == "1" ? " --vpp 1" : " --vpp 2",
                      breaks = vpp == "1" ? " --vpp 2" : " --vpp 3";
    EXPECT_EQ(run_program(job + name + fits).exit_code, 0) << name;
    if (vpp != ">= 1") {
      EXPECT_THAT(run_program(job + name + breaks).err, HasSubstr("schedule " + name + " needs ")) << name;
    }
    for (const Json& alias : schedule["aliases"])
      EXPECT_THAT(run_program(job + alias.get<std::string>() + fits).err, HasSubstr("is run as " + name))
          << alias;
    const std::string source = schedule["source"];
    const bool is_cited = std::ranges::any_of(rows, [&](const std::string& row) {
      return row.find("`" + name + "`") != std::string::npos && row.find(source) != std::string::npos;
    });
    EXPECT_TRUE(is_cited) << name << ": " << source;
  }
}

TEST(List, NamesFrameworksThatRun) {
  for (const Json& framework : listed("frameworks")) {
    const std::string name = framework["name"];
    const Outcome checked =
        run_program("check --model llama3-8b --cluster dgx-h100 --gpus 8 --tp 8 --gbs 8 --framework " + name);
    EXPECT_NE(checked.exit_code, 2) << name << checked.err;
  }
  // None is left out: a wrong name's message names every one that the reader knows.
  const Outcome wrong = run_program("check --model llama3-8b --cluster dgx-h100 --framework none-such");
  for (const Json& framework : listed("frameworks"))
    EXPECT_THAT(wrong.err, HasSubstr(framework["name"].get<std::string>()));
  EXPECT_EQ(std::ranges::count(wrong.err.substr(0, wrong.err.find('(')), ','),
            listed("frameworks").size() - 1);
}

TEST(List, AlignsItsColumnsAndCutsThemToTheTerminal) {
  const std::vector<std::string> whole = lines_of(run_program("list models").out);
  const std::size_t column = whole.front().find("source");
  ASSERT_NE(column, std::string::npos);
  for (const std::string& line : whole) {
    EXPECT_EQ(line[column - 1], ' ') << line;
    EXPECT_NE(line[column], ' ') << line;
  }
  for (const std::string& line : lines_of(run_in_bash("COLUMNS=60 $R list clusters").out))
    EXPECT_LE(line.size(), 60u) << line;
  EXPECT_THAT(run_in_bash("COLUMNS=60 $R list clusters").out, HasSubstr("..."));
}

TEST(List, RefusesAnotherKind) {
  const Outcome outcome = run_program("list model");
  EXPECT_EQ(outcome.exit_code, 2);
  EXPECT_THAT(outcome.err, HasSubstr("nearest legal: models"));
}

TEST(Help, OfAVerbIsThatOfItsFlag) {
  EXPECT_EQ(run_program("help").out, run_program("--help").out);
  for (const char* verb : {"simulate", "list", "import megatron"}) {
    const Outcome help = run_program(std::string("help ") + verb);
    EXPECT_EQ(help.exit_code, 0);
    EXPECT_EQ(help.out, run_program(std::string(verb) + " --help").out) << verb;
    EXPECT_THAT(help.out, HasSubstr("Usage: rehearse " + std::string(verb)));
  }
  const Outcome unknown = run_program("help simulat");
  EXPECT_EQ(unknown.exit_code, 2);
  EXPECT_THAT(unknown.err, HasSubstr("did you mean simulate?"));
}

TEST(Help, OfSimulateShowsDailyOptionsWithTheirDefaultsOnOneScreen) {
  const std::string daily = run_program("simulate --help").out, all = run_program("simulate --help-all").out;
  EXPECT_LE(lines_of(daily).size(), 50u) << daily;
  for (const char* heading : {"Model and cluster", "Parallelism", "Batch", "Pipeline", "Memory", "Precision",
                              "Overlap", "Kernels and fusion", "Experts", "Imperfections", "Output"})
    EXPECT_THAT(daily, HasSubstr(std::string("\n") + heading + "\n"));
  EXPECT_THAT(daily, HasSubstr("tensor-parallel size [1]"));
  EXPECT_THAT(daily, HasSubstr("`rehearse simulate --help-all` shows "));
  EXPECT_THAT(daily, Not(HasSubstr("--rope-fusion")));
  EXPECT_THAT(all, HasSubstr("--rope-fusion"));
  EXPECT_THAT(all, HasSubstr("--tensor-model-parallel-size"));
}

TEST(Help, FitsTheTerminal) {
  std::vector<std::string> verbs;
  bool below = false;
  for (const std::string& line : lines_of(run_program("help").out)) {
    below = below || line == "Subcommands:";
    if (below && line.starts_with("  ") && line[2] != ' ')
      verbs.push_back(line.substr(2, line.find(' ', 2) - 2));
  }
  ASSERT_GT(verbs.size(), 15u);
  for (const char* columns : {"80", "120"})
    for (const std::string& verb : verbs)
      for (const std::string& line :
           lines_of(run_in_bash(std::string("COLUMNS=") + columns + " $R help " + verb).out))
        EXPECT_LE(line.size(), std::stoul(columns)) << verb << ": " << line;
}

// An example that was broken runs as it is printed.
TEST(Help, BreaksCommandsSoThatTheyRun) {
  const std::string help = run_in_bash("COLUMNS=60 $R help topo").out;
  EXPECT_THAT(help, HasSubstr(" \\\n"));
  const Outcome outcome = run_in_bash(
      "COLUMNS=60 $R help explain | sed -n \"/rehearse explain memory/,\\$p\" | sed \"s#^ *rehearse#$R#\" | "
      "bash");
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.out, HasSubstr("optimizer"));
}

}  // namespace
}  // namespace rehearse

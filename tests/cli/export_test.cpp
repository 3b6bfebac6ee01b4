// Exporting runs from the command line: files that are there, and clear refusals.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "program.h"

namespace rehearse {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::json;
namespace fs = std::filesystem;

const std::string kRun =
    " --model llama3-8b --cluster dgx-h100 --gpus 16 --tp 2 --pp 2 --gbs 32 --engine reference ";

std::string new_folder(const std::string& name) {
  const std::string path = temporary_file(name, "");
  fs::remove_all(path);
  return path;
}

std::size_t files_in(const std::string& folder) {
  return static_cast<std::size_t>(std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(ExportTraces, WritesAFileARank) {
  const std::string kineto = new_folder("kineto"), chakra = new_folder("chakra");
  ASSERT_EQ(run_program("export kineto" + kRun + "-o " + kineto).exit_code, 0);
  EXPECT_EQ(files_in(kineto), 2u) << "of ranks that do the same one stands for all";
  std::ifstream first(kineto + "/rank0.json");
  const Json trace = Json::parse(first);
  EXPECT_EQ(trace["distributedInfo"]["world_size"], 16);
  ASSERT_EQ(run_program("export kineto" + kRun + "--fold none -o " + kineto).exit_code, 0);
  EXPECT_EQ(files_in(kineto), 16u);
  ASSERT_EQ(run_program("export chakra" + kRun + "-o " + chakra).exit_code, 0);
  EXPECT_EQ(files_in(chakra), 17u) << "16 ranks and their groups";
  std::ifstream groups(chakra + "/comm_group.json");
  EXPECT_EQ(Json::parse(groups)["0"], Json::parse("[0, 2, 4, 6]"));
}

TEST(ExportTraces, WritesPerfettosProtobuf) {
  const std::string file = temporary_file("run.pftrace", "");
  ASSERT_EQ(run_program("export perfetto" + kRun + "-o " + file).exit_code, 0);
  std::ifstream in(file, std::ios::binary);
  EXPECT_EQ(in.get(), 0x0a) << "field 1 of Trace: a packet";
  EXPECT_GT(fs::file_size(file), 5000u);
}

TEST(ExportTraces, NeedAFolder) {
  const Outcome none = run_program("export chakra" + kRun);
  EXPECT_EQ(none.exit_code, 2);
  EXPECT_THAT(none.err, HasSubstr("-o traces"));
  EXPECT_EQ(run_program("export kineto" + kRun + "-o README.md").exit_code, 2);
  EXPECT_EQ(run_program("export").exit_code, 2);
}

}  // namespace
}  // namespace rehearse

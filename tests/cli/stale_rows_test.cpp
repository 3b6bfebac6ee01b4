// A row of a sweep stays valid as long as all of its inputs are unchanged.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "program.h"
#include "scratch.h"

namespace rehearse {
namespace {

namespace fs = std::filesystem;

using ::testing::HasSubstr;
using ::testing::Not;

class StaleRows : public ::testing::TestWithParam<const char*> {
 protected:
  std::string store(const char* name = "rows.db") const { return " --store " + folder_.file(name) + " "; }
  std::string flags() const {
    return std::string(
               "--model llama3-8b --gpus 16 --tp 2 --pp 8 --gbs 16 --seq 4096 --zero 0,1 --csv --engine ") +
           GetParam() + " ";
  }
  // Compares the resumed "sweep `more`" with a fresh one.
  void expect_the_truth(const std::string& more, int stale, const std::string& changed) {
    const Outcome resumed = run_in_bash(data_ + "$R sweep --resume " + flags() + more + store());
    const Outcome truth = run_in_bash(data_ + "$R sweep " + flags() + more + store(fresh().c_str()));
    EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
    EXPECT_EQ(resumed.out, truth.out);
    if (stale == 0) {
      EXPECT_THAT(resumed.err, Not(HasSubstr("stale")));
    } else {
      EXPECT_THAT(resumed.err, HasSubstr(std::to_string(stale) + " stale rows run again"));
      EXPECT_THAT(resumed.err, HasSubstr(changed));
    }
  }
  std::string first(const std::string& more) {
    const Outcome outcome = run_in_bash(data_ + "$R sweep " + flags() + more + store());
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
    return outcome.out;
  }
  std::string fresh() { return "fresh" + std::to_string(++count_) + ".db"; }

  Scratch folder_;
  std::string data_;
  int count_ = 0;
};

TEST_P(StaleRows, OfAnotherSchedule) {
  const std::string file = folder_.file("order.csv");
  const auto write = [&](const char* schedule) {
    const Outcome outcome =
        run_program(std::string("export schedule --model llama3-8b --cluster dgx-h100 --gpus 16 "
                                "--tp 2 --pp 8 --gbs 16 --seq 4096 --schedule ") +
                    schedule + " -o " + file);
    EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  };
  const std::string more = "--cluster dgx-h100 --schedule " + file;
  write("1f1b");
  first(more);
  expect_the_truth(more, 0, "");
  write("zb-h1");
  expect_the_truth(more, 2, "order.csv");
  expect_the_truth(more, 0, "");
}

TEST_P(StaleRows, OfAnotherClusterThatItsClusterIsLike) {
  const auto write = [&](const char* bandwidth) {
    folder_.write("base.json",
                  std::string(R"({"schema": "rehearse.cluster/1", "source": "test", "like": "dgx-h100",
        "node": {"nics": {"bandwidth": ")") +
                      bandwidth + R"("}}})");
    folder_.write("mine.json", R"({"schema": "rehearse.cluster/1", "source": "test", "like": ")" +
                                   folder_.file("base.json") + R"("})");
  };
  const std::string more = "--cluster " + folder_.file("mine.json");
  write("50GB/s");
  first(more);
  write("5GB/s");
  expect_the_truth(more, 2, "base.json");
}

TEST_P(StaleRows, OfAnotherProfileThatItsClusterNames) {
  const std::string profile = folder_.file("profile.json");
  folder_.write("mine.json", R"({"schema": "rehearse.cluster/1", "source": "test", "like": "dgx-h100",
      "profile": ")" + profile + R"("})");
  const std::string more = "--cluster " + folder_.file("mine.json");
  const std::string shipped = std::string(SOURCE_DIR) + "/calibrate/profiles/";
  fs::copy_file(shipped + "h100-sxm.json", profile);
  first(more);
  fs::copy_file(shipped + "a100-sxm-80gb.json", profile, fs::copy_options::overwrite_existing);
  expect_the_truth(more, 2, "profile.json");
}

TEST_P(StaleRows, OfOtherShippedData) {
  const std::string there = folder_.file("data");
  fs::create_directory(there);
  for (const char* part : {"topologies", "scenarios", "calibrate"})
    fs::copy(std::string(SOURCE_DIR) + "/" + part, there + "/" + part, fs::copy_options::recursive);
  const std::string more = "--cluster dgx-h100";
  first(more);
  data_ = "export REHEARSE_DATA=" + there + "; ";
  expect_the_truth(more, 0, "");
  const fs::path cluster = there + "/topologies/dgx-h100.json";
  nlohmann::json json = nlohmann::json::parse(std::ifstream(cluster));
  json["node"]["gpu_link"]["bandwidth"] = "100GB/s";
  std::ofstream(cluster) << json;
  expect_the_truth(more, 2, "data:topologies/dgx-h100.json");
}

TEST_P(StaleRows, OfAnotherBuild) {
  const std::string other = folder_.file("rehearse");
  fs::copy_file(REHEARSE, other);
  std::ofstream(other, std::ios::app | std::ios::binary) << "another build";
  const std::string more = "--cluster dgx-h100 ";
  data_ = std::string("export REHEARSE_DATA=") + SOURCE_DIR + "; ";
  first(more);
  const Outcome resumed = run_in_bash(data_ + other + " sweep --resume " + flags() + more + store());
  EXPECT_EQ(resumed.exit_code, 0) << resumed.err;
  EXPECT_THAT(resumed.err, HasSubstr("2 stale rows run again: changed since they ran: the program"));
}

TEST_P(StaleRows, OfOtherStoresAreNotTaken) {
  const std::string file = folder_.write("mine.json", R"({"schema": "rehearse.cluster/1", "source": "test",
      "like": "dgx-h100"})");
  const std::string more = "--cluster " + file;
  first(more + " --shard 1/2");
  folder_.write("mine.json", R"({"schema": "rehearse.cluster/1", "source": "test", "like": "dgx-h100",
      "node": {"nics": {"bandwidth": "5GB/s"}}})");
  const Outcome merged =
      run_in_bash("$R sweep " + flags() + more + store("all.db") + "--merge " + folder_.file("rows.db"));
  EXPECT_EQ(merged.exit_code, 0) << merged.err;
  EXPECT_THAT(merged.err, HasSubstr("1 stale rows are not merged"));
  EXPECT_EQ(merged.out, run_in_bash("$R sweep " + flags() + more + store("fresh.db")).out);
}

INSTANTIATE_TEST_SUITE_P(Sweep, StaleRows, ::testing::Values("simgrid", "reference"));

TEST(Merge, OfTheStoreItselfIsSkippedAtOnce) {
  const std::string store = scratch().file("self.db");
  const Outcome outcome = run_program(
      "sweep --model gpt2 --cluster dgx-h100 --gpus 2 --tp 1,2 --gbs 4 --engine reference --csv --store " +
      store + " --merge " + store);
  EXPECT_EQ(outcome.exit_code, 0) << outcome.err;
  EXPECT_THAT(outcome.err, HasSubstr("is the store itself"));
}

}  // namespace
}  // namespace rehearse

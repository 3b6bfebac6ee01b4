// Logs as nccl-tests have printed them over the years, against the tables read from them by hand.
#include "calibrate/import/nccl_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

#include "base/error.h"
#include "scratch.h"

namespace rehearse::nccl {
namespace {

using testing::HasSubstr;

const std::string kNccl = SOURCE_DIR "/calibrate/data/nccl/";

struct Expected {
  const char* log;
  std::vector<std::string> tables;  // one for each run
  std::string op;                   // of the first; empty: the log does not say
  int ranks, hosts;
};

class Log : public testing::TestWithParam<Expected> {};

TEST_P(Log, HoldsTheRowsOfItsTables) {
  const Expected& expected = GetParam();
  const std::vector<LogRun> runs = read_log(kNccl + "logs/" + expected.log);
  ASSERT_EQ(runs.size(), expected.tables.size());
  EXPECT_EQ(runs.front().op, expected.op);
  EXPECT_EQ(runs.front().ranks, expected.ranks);
  EXPECT_EQ(runs.front().hosts, expected.hosts);
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Table table = read_table(kNccl + expected.tables[i] + ".json");
    ASSERT_EQ(runs[i].rows.size(), table.rows.size()) << table.file;
    for (std::size_t row = 0; row < table.rows.size(); ++row) {
      EXPECT_EQ(runs[i].rows[row].bytes, table.rows[row].bytes);
      EXPECT_NEAR(runs[i].rows[row].seconds, table.rows[row].seconds, 1e-12);
    }
  }
}

INSTANTIATE_TEST_SUITE_P(
    Variants, Log,
    testing::Values(
        Expected{"a100_16x8_multinode_allreduce_error_column.log",
                 {"a100_abci_16x8_all_reduce"},
                 "all_reduce",
                 128,
                 16},
        Expected{
            "a100_p4d_2x8_mpirun_tagged_with_nccl_info.log", {"a100_p4d_2x8_all_reduce"}, "all_reduce", 0, 0},
        Expected{
            "a100x8_oldformat_allreduce_novalidation.log", {"a100x8_ndv4_all_reduce"}, "all_reduce", 8, 1},
        Expected{"a100x8_oldformat_alltoall_novalidation.log", {"a100x8_ndv4_alltoall"}, "", 8, 1},
        Expected{"h100_p5_2x8_srun_prefix_allreduce.log", {"h100_p5_2x8_all_reduce"}, "all_reduce", 0, 0},
        Expected{"h100x8_newformat_allreduce.log", {"h100x8_dgxc_all_reduce"}, "all_reduce", 8, 1},
        Expected{"v100_2x4_multinode_broadcast.log", {"v100_abci_2x4_broadcast"}, "broadcast", 8, 2},
        Expected{"v100_dgx2_12gpu_three_runs_out_of_bounds_failed.log",
                 {"v100_dgx2_1x12_all_gather", "v100_dgx2_1x12_all_reduce", "v100_dgx2_1x12_broadcast"},
                 "all_gather",
                 12,
                 1}),
    [](const auto& variant) { return std::filesystem::path(variant.param.log).stem().string(); });

TEST(NcclLog, SaysThatValuesWereOutOfBounds) {
  const auto runs = read_log(kNccl + "logs/v100_dgx2_12gpu_three_runs_out_of_bounds_failed.log");
  EXPECT_TRUE(runs[0].wrong_values);
  EXPECT_FALSE(runs[1].wrong_values);
}

std::string written(const std::string& name, const std::string& text) {
  return scratch().write(name, text);
}

const std::string kHeader =
    "# size count type redop root time algbw busbw #wrong time algbw busbw #wrong\n"
    "# (B) (elements) (us) (GB/s) (GB/s) (us) (GB/s) (GB/s)\n";

std::string complaint(const std::string& text) {
  try {
    read_log(written("bad.log", text));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NcclLog, ThatIsBrokenIsRefusedByFileAndLine) {
  const std::string row = "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n";
  EXPECT_THAT(complaint(kHeader + row + "16 4 float sum -1 1 2 3 4 5 6 7 8 9\n"), HasSubstr("bad.log:4"));
  EXPECT_THAT(complaint(kHeader + row + "16 4 float sum -1 nan 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("bad.log:4"));
  EXPECT_THAT(complaint(kHeader + "16 4 float sum -1 -3.1 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("bad.log:3"));
  EXPECT_THAT(complaint(kHeader + "16 4 float sum -1 0.0 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("a time must be from 0.001 us to 1e+12 us (found 0.0)"));
  EXPECT_THAT(complaint(kHeader + "16 4 float sum -1 1e400 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("bad.log:3"));
  EXPECT_THAT(complaint(kHeader + "16 4 float sum -1 1e308 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("a time must be from 0.001 us to 1e+12 us (found 1e308)"));
  EXPECT_THAT(complaint(kHeader + "16 4 float sum -1 0x1p3 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("column 6 must be a decimal number from 0 (found 0x1p3)"));
  EXPECT_THAT(complaint(kHeader + "9000000000000000 4 float sum -1 3.0 0.00 0.00 0 13.03 0.00 0.00 0\n"),
              HasSubstr("a size must be 0, or from 1 B to 1 PB"));
  EXPECT_THAT(complaint(std::string("\x7f"
                                    "ELF\0\0",
                                    6)),
              HasSubstr("zero byte"));
  EXPECT_THAT(complaint(""), HasSubstr("no table"));
  EXPECT_THAT(complaint(kHeader), HasSubstr("no table"));
  EXPECT_THAT(complaint("{\"results\": []}"), HasSubstr("config"));
}

const std::string kForms = SOURCE_DIR "/tests/cost/data/";

LogRun only_run(const std::string& name) {
  const std::vector<LogRun> runs = read_log(kForms + name + ".log");
  EXPECT_EQ(runs.size(), 1U) << name;
  return runs.at(0);
}

// The same run as each launcher prints it.
TEST(NcclLog, IsReadThroughAnyPrefix) {
  const LogRun plain = only_run("plain_h100_2x8");
  ASSERT_EQ(plain.rows.size(), 3U);
  EXPECT_EQ(plain.ranks, 16);
  EXPECT_EQ(plain.hosts, 2);
  EXPECT_EQ(plain.gpus, std::vector<std::string>{"NVIDIA H100 80GB HBM3"});
  for (const char* name :
       {"tag_indented", "prefix_mpich", "prefix_kubectl", "cut_in_last_row", "info_inside_row"}) {
    const LogRun run = only_run(name);
    EXPECT_EQ(run.op, "all_reduce") << name;
    EXPECT_EQ(run.ranks, 16) << name;
    EXPECT_EQ(run.hosts, 2) << name;
    ASSERT_EQ(run.rows.size(), 3U) << name;
    for (std::size_t row = 0; row < 3; ++row)
      EXPECT_EQ(run.rows[row].seconds, plain.rows[row].seconds) << name;
  }
}

TEST(NcclLog, LosesAPrefixInsideOfItsRows) {
  const LogRun run = only_run("prefix_mpich_inside_rows");
  ASSERT_EQ(run.rows.size(), 4U);
  EXPECT_NEAR(run.rows[1].seconds, 2325.3e-6, 1e-12);
  EXPECT_EQ(run.ranks, 16);
  EXPECT_EQ(run.op, "all_reduce") << "by busbw / algbw";
}

TEST(NcclLog, NamesTheLineOfARowThatIsCut) {
  const LogRun run = only_run("cut_in_last_row");
  ASSERT_EQ(run.notes.size(), 1U);
  EXPECT_THAT(run.notes[0], HasSubstr("cut_in_last_row.log:28"));
}

// Wherever the last row ends, the rows before it stay; its own time stays once it is printed whole.
TEST(NcclLog, KeepsItsWholeRowsHoweverTheLastIsCut) {
  const std::string row = "8 2 float sum -1 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n";
  const std::string last = "16 4 float sum -1 14.25 1.12 2.10 0 14.13 1.13 2.12 0";
  for (std::size_t length = 3; length < last.size(); ++length) {
    const auto runs = read_log(written("cut.log", kHeader + row + last.substr(0, length)));
    ASSERT_EQ(runs.size(), 1U) << length;
    EXPECT_NEAR(runs[0].rows.at(0).seconds, 13.67e-6, 1e-12);
    if (runs[0].rows.size() == 1) {
      EXPECT_EQ(runs[0].notes.size(), 1U) << length;
    } else {
      EXPECT_NEAR(runs[0].rows[1].seconds, 14.25e-6, 1e-12) << length;
    }
  }
}

// A row of older nccl-tests has no redop and root; cut, its numbers must not shift.
TEST(NcclLog, TakesNoTimeFromAnotherColumnOfACutRow) {
  const std::string row = "8 2 float 13.67 0.00 0.00 0 13.03 0.00 0.00 0\n";
  const std::string last = "16 4 float 14.25 1.12 2.10 0 14.13 1.13 2.12 0";
  for (std::size_t length = 3; length < last.size(); ++length) {
    const auto runs = read_log(written("old.log", kHeader + row + last.substr(0, length)));
    ASSERT_GE(runs.at(0).rows.size(), 1U);
    if (runs[0].rows.size() < 2) continue;
    EXPECT_NEAR(runs[0].rows[1].seconds, 14.25e-6, 1e-12) << length;
  }
}

TEST(NcclLog, JoinsARowThatDebugTextParts) {
  const std::string head = kHeader + "#  Rank  0 Group  0 Pid 1 on 10-0-0-7 device  0 [0x8d] NVIDIA H100\n";
  const std::string debug = ":100:200 [0] NCCL INFO Channel 00/0 : 0[0] -> 1[1] via P2P\n";
  for (const std::string& text :
       {head + "16 4 float sum -110-0-0-7" + debug + "  14.25 1.12 2.10 0 14.13 1.13 2.12 0\n",
        head + "16 4 float sum -1 14.25 1.12 2.10 010-0-0-7" + debug + "10-0-0-7" + debug +
            "  14.13 1.13 2.12 0\n",
        head + "16 4 float sum -1 14.25 1.12 2.10 0 14.13 1.13 2.12 010-0-0-7" + debug,
        head + "16 4 float sum -1NCCL version 2.19.3+cuda12.3\n  14.25 1.12 2.10 0 14.13 1.13 2.12 0\n"}) {
    const auto runs = read_log(written("debug.log", text));
    ASSERT_EQ(runs.at(0).rows.size(), 1U) << text;
    EXPECT_NEAR(runs[0].rows[0].seconds, 14.25e-6, 1e-12) << text;
    EXPECT_TRUE(runs[0].notes.empty()) << text;
  }
}

TEST(NcclLog, WithEmptyOutOfPlaceColumnsGivesTheOthers) {
  const auto runs = read_log(written("in_place.log", kHeader + "8 2 float sum -1 13.03 0.00 0.00 0\n"));
  EXPECT_NEAR(runs.at(0).rows.at(0).seconds, 13.03e-6, 1e-15);
}

TEST(NcclLog, OfRepeatedCyclesGivesTheMedianOfEachSize) {
  std::string text = kHeader;
  for (const char* time : {"10.0", "30.0", "11.0"})
    text += std::string("8 2 float sum -1 ") + time + " 0.00 0.00 0 13.03 0.00 0.00 0\n";
  EXPECT_NEAR(read_log(written("cycles.log", text)).at(0).rows.at(0).seconds, 11e-6, 1e-15);
}

TEST(NcclLog, OfOptionJIsReadAlike) {
  const std::string json =
      R"({"version": "2.17", "args": ["/opt/all_gather_perf", "-b", "8"], "nccl_version": 22807,
    "config": {"devices": [{"rank": 0, "hostname": "a"}, {"rank": 1, "hostname": "b", "device_info": "NVIDIA H100"}]},
    "results": [{"size": 0, "out_of_place": {"time": 1}},
                {"size": 64, "count": 16, "out_of_place": {"time": 21.5, "alg_bw": 0, "bus_bw": 0, "nwrong": 0},
                 "in_place": {"time": 20.1}}]})";
  const std::vector<LogRun> runs = read_log(written("j.json", json));
  ASSERT_EQ(runs.size(), 1U);
  EXPECT_EQ(runs[0].op, "all_gather");
  EXPECT_EQ(runs[0].ranks, 2);
  EXPECT_EQ(runs[0].hosts, 2);
  EXPECT_EQ(runs[0].last_rank, 1);
  EXPECT_EQ(runs[0].gpus, std::vector<std::string>{"NVIDIA H100"});
  ASSERT_EQ(runs[0].rows.size(), 1U);
  EXPECT_NEAR(runs[0].rows[0].seconds, 21.5e-6, 1e-15);
}

}  // namespace
}  // namespace rehearse::nccl

// On how many GPUs did a run go? Its lines, its bandwidths and the user's input must agree.
#include "calibrate/import/nccl_group.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "calibrate/import/nccl_profile.h"
#include "scratch.h"

namespace rehearse::nccl {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

const std::string kLogs = SOURCE_DIR "/tests/cost/data/";

// A run of `ranks` as nccl-tests print its bandwidths.
LogRun run_of(int ranks, double algbw = 123.45, double scale = 2) {
  LogRun run;
  run.place = "run.log:1";
  const double busbw = algbw * scale * (ranks - 1) / ranks;
  const double printed = std::stod(fmt::format("{:.2f}", busbw));
  run.ratio.narrow(algbw, 0.005, printed, 0.005);
  return run;
}

LogRun listing(LogRun run, int ranks, int hosts) {
  run.ranks = ranks;
  run.hosts = hosts;
  run.last_rank = ranks - 1;
  run.splits = 1;
  return run;
}

std::string refusal(const LogRun& run, const std::string& op, const GivenSize& given, const char* cluster) {
  try {
    size_of_group(run, op, given, read_cluster(cluster));
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(NcclGroup, FollowsFromTheBandwidths) {
  const Cluster nvl72 = read_cluster("gb200-nvl72"), dgx = read_cluster("dgx-h100");
  const GroupSize whole = size_of_group(run_of(72, 400), "all_reduce", {}, nvl72);
  EXPECT_EQ(whole.nodes * whole.gpus_per_node, 72);
  EXPECT_THAT(whole.note, HasSubstr("72 GPUs"));
  for (const int ranks : {2, 8, 16, 24, 64}) {
    for (const char* op : {"all_gather", "reduce_scatter", "alltoall", "gather", "scatter"}) {
      const GroupSize size = size_of_group(run_of(ranks, 900, 1), op, {2, 0}, dgx);
      EXPECT_EQ(size.gpus_per_node, ranks / 2) << op;
    }
    EXPECT_EQ(size_of_group(run_of(ranks, 900), "all_reduce", {0, 2}, dgx).nodes, ranks / 2);
  }
}

TEST(NcclGroup, TakesTheRanksThatAreListed) {
  const GroupSize size =
      size_of_group(listing(run_of(16), 16, 2), "all_reduce", {}, read_cluster("dgx-h100"));
  EXPECT_EQ(size.nodes, 2);
  EXPECT_EQ(size.gpus_per_node, 8);
  EXPECT_EQ(size.note, "");
  // Containers of one name on two nodes.
  const GroupSize placed =
      size_of_group(listing(run_of(16), 16, 1), "all_reduce", {2, 0}, read_cluster("dgx-h100"));
  EXPECT_EQ(placed.gpus_per_node, 8);
  EXPECT_THAT(placed.note, HasSubstr("names 1 hosts, --nodes 2"));
}

TEST(NcclGroup, CompletesAListWhoseEndIsMissing) {
  const GroupSize size =
      size_of_group(listing(run_of(24), 16, 2), "all_reduce", {}, read_cluster("dgx-h100"));
  EXPECT_EQ(size.nodes, 3);
  EXPECT_EQ(size.gpus_per_node, 8);
  EXPECT_THAT(size.note, HasSubstr("24 GPUs"));
  EXPECT_EQ(refusal(listing(run_of(16), 8, 1), "all_reduce", {2, 8}, "dgx-h100"), "accepted");
}

TEST(NcclGroup, RefusesContradictionsWithBothValues) {
  const std::string listed = refusal(listing(run_of(16), 8, 1), "all_reduce", {}, "dgx-h100");
  EXPECT_THAT(listed, HasSubstr("8 ranks listed"));
  EXPECT_THAT(listed, HasSubstr("16 GPUs"));
  const std::string more = refusal(listing(run_of(8), 16, 2), "all_reduce", {}, "dgx-h100");
  EXPECT_THAT(more, HasSubstr("16 ranks listed"));
  EXPECT_THAT(more, HasSubstr("8 GPUs"));
  const std::string given = refusal(run_of(16), "all_reduce", {4, 8}, "dgx-h100");
  EXPECT_THAT(given, HasSubstr("4 x 8"));
  EXPECT_THAT(given, HasSubstr("16 GPUs"));
  const std::string flags = refusal(listing(run_of(16), 16, 2), "all_reduce", {4, 8}, "dgx-h100");
  EXPECT_THAT(flags, HasSubstr("16 ranks listed, 4 x 8"));
  LogRun late = run_of(8);
  late.ranks = 1;
  late.last_rank = 71;
  EXPECT_THAT(refusal(late, "all_reduce", {}, "dgx-h100"), HasSubstr("Rank 71"));
  LogRun mixed = run_of(8);
  mixed.ratio.narrow(100, 0.005, 187.5, 0.005);
  EXPECT_THAT(refusal(mixed, "all_reduce", {}, "dgx-h100"), HasSubstr("row to row"));
  EXPECT_THAT(refusal(run_of(8), "all_gather", {}, "dgx-h100"), HasSubstr("not of all_gather"));
}

TEST(NcclGroup, RefusesRunsThatDoNotKnowOfEachOther) {
  LogRun twice = listing(run_of(1), 2, 2);
  twice.last_rank = 0;
  twice.rank_twice = true;
  EXPECT_THAT(refusal(twice, "all_reduce", {}, "dgx-1-v100"), HasSubstr("without MPI"));
  EXPECT_THAT(refusal(listing(run_of(1), 1, 1), "all_reduce", {}, "dgx-1-v100"), HasSubstr("busbw is 0"));
  LogRun split = listing(run_of(2), 16, 2);
  split.splits = 8;
  EXPECT_THAT(refusal(split, "all_reduce", {}, "dgx-h100"), HasSubstr("16 ranks in 8 groups"));
}

TEST(NcclGroup, AsksWhereBandwidthsTellNothing) {
  EXPECT_THAT(refusal(run_of(16), "all_reduce", {}, "dgx-h100"), HasSubstr("16 GPUs; give --nodes"));
  LogRun broadcast;
  broadcast.ratio.narrow(100, 0.005, 100, 0.005);
  EXPECT_THAT(refusal(broadcast, "broadcast", {}, "dgx-h100"), HasSubstr("--nodes"));
  EXPECT_THAT(refusal(broadcast, "broadcast", {2, 0}, "dgx-h100"), HasSubstr("--gpus-per-node"));
  EXPECT_EQ(refusal(broadcast, "broadcast", {2, 8}, "dgx-h100"), "accepted");
  // The first nccl-tests gave gathers the ratio 1.
  EXPECT_EQ(refusal(listing(broadcast, 8, 1), "all_gather", {}, "dgx-h100"), "accepted");
}

TEST(NcclGroup, OtherGpusAreNamed) {
  const auto other = [](const char* gpu, const char* cluster) {
    LogRun run;
    run.gpus = {gpu};
    return other_gpu(run, read_cluster(cluster));
  };
  for (const auto& [gpu, cluster] :
       std::vector<std::pair<const char*, const char*>>{{"NVIDIA H100 80GB HBM3", "dgx-h100"},
                                                        {"NVIDIA A100-SXM4-40GB", "dgx-a100-80gb"},
                                                        {"Tesla V100-SXM2-16GB", "dgx-1-v100"},
                                                        {"NVIDIA B200", "dgx-b200"},
                                                        {"NVIDIA GB200", "gb200-nvl72"},
                                                        {"AMD Instinct MI300X", "mi300x-8"},
                                                        {"NVIDIA GeForce RTX 5090", "rtx5090-pcie5"},
                                                        {"NVIDIA Graphics Device", "gb200-nvl72"}})
    EXPECT_EQ(other(gpu, cluster), "") << gpu;
  for (const auto& [gpu, cluster] :
       std::vector<std::pair<const char*, const char*>>{{"NVIDIA H100 80GB HBM3", "dgx-a100"},
                                                        {"NVIDIA H100 PCIe 80GB", "dgx-h100"},
                                                        {"NVIDIA H200", "dgx-h100"},
                                                        {"NVIDIA GB200", "dgx-b200"},
                                                        {"NVIDIA GB10", "dgx-1-v100"},
                                                        {"AMD Instinct MI250X", "mi300x-8"}})
    EXPECT_THAT(other(gpu, cluster), HasSubstr(gpu)) << cluster;
}

ImportedProfile import_of(const std::string& file, const std::string& cluster) {
  LogImport request;
  request.files = {file};
  request.cluster = cluster;
  return import_logs(request);
}

TEST(NcclLogImport, TakesTheLastOfTwoRunsThatDifferByALot) {
  const ImportedProfile imported = import_of(kLogs + "same_group_twice_7x_apart.log", "dgx-1-v100");
  EXPECT_THAT(imported.notes, testing::Contains(testing::AllOf(
                                  HasSubstr("warning"), HasSubstr("same_group_twice_7x_apart.log:10"),
                                  HasSubstr("same_group_twice_7x_apart.log:29"), HasSubstr("7."))));
  EXPECT_THAT(imported.notes, testing::Contains(HasSubstr("NVIDIA GB10")));
  for (const Json& measured : imported.profile.at("collectives").at("measured")) {
    if (measured.at("how") != "measured" || measured.at("op") != "all_gather") continue;
    EXPECT_NEAR(measured.at("rows").at(0).at(1).get<double>(), 191408e-6, 1e-4 * 191408e-6);
  }
}

TEST(NcclLogImport, KeepsTheMedianOfRunsThatAgree) {
  const std::string log = kLogs + "plain_h100_2x8.log";
  LogImport request;
  request.files = {log, log};
  request.cluster = "dgx-h100";
  for (const std::string& note : import_logs(request).notes)
    EXPECT_THAT(note, testing::Not(HasSubstr("differ")));
}

TEST(NcclLogImport, RefusesAnotherOperationThanTheLogs) {
  LogImport request;
  request.files = {kLogs + "plain_h100_2x8.log"};
  request.cluster = "dgx-h100";
  request.op = "all_gather";
  EXPECT_THROW(import_logs(request), InputError);
}

TEST(NcclLogImport, OfPartsOfALogFindsTheGroupOrRefuses) {
  const ImportedProfile excerpt = import_of(kLogs + "excerpt_names_one_rank.log", "gb200-nvl72");
  EXPECT_THAT(excerpt.notes, testing::Contains(HasSubstr("over 72 GPUs on 1 node")));
  EXPECT_THROW(import_of(kLogs + "excerpt_names_one_rank.log", "dgx-h100"), InputError);
  EXPECT_THROW(import_of(kLogs + "two_processes_without_mpi.log", "dgx-1-v100"), InputError);
}

}  // namespace
}  // namespace rehearse::nccl

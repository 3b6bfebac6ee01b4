// DeepEP and HybridEP: measured and computed times.
#include "cost/row_exchange.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <vector>

#include "base/json_reader.h"
#include "machines.h"

namespace rehearse {
namespace {

const Json& measured() {
  static const Json table = read_json_file(SOURCE_DIR "/calibrate/data/experts/exchanges.json");
  return table;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

// Bytes on the wires at each measured rate, bytes/s: all but the rank's own share.
std::vector<double> on_wires(const Json& row) {
  const double places = row["nodes"] > 1 ? row["nodes"] : row["ranks"];
  std::vector<double> rates;
  for (const char* way : {"dispatch_GBps", "combine_GBps"})
    rates.push_back(row[way].get<double>() * 1e9 * (places - 1) / places);
  return rates;
}

TEST(RowExchange, ReachesTheMediansOfWhatWasMeasured) {
  const Json table = measured();
  std::vector<double> link, nic, of_sm;
  for (const Json& row : table["rows"]) {
    const std::string gpu = row["gpu"];
    for (const double rate : on_wires(row)) {
      if (row["library"] == "deepep" && gpu != "H800" && row["sms"] <= 24)
        of_sm.push_back(rate / row["sms"].get<double>());
      if (row["library"] == "hybridep" && row["nodes"] == 1)
        link.push_back(rate / table["link_GBps"][gpu].get<double>() / 1e9);
      if (row["nodes"] >= 4 && row["sms"] >= 8)
        nic.push_back(rate / table["nic_GBps"][gpu].get<double>() / 1e9);
    }
  }
  EXPECT_NEAR(median(link), kExchangeLink, 0.005);
  EXPECT_NEAR(median(nic), kExchangeNic, 0.005);
  EXPECT_NEAR(median(of_sm), kDeepEpSmBytes, 0.05e9);
}

// Rows of 512 elements, most of whose time is looking, and of 7,168: within 21 %.
TEST(RowExchange, MovesRowsBetweenItsBufferAndExpertsAboutAsFastAsMeasured) {
  const Gpu gpu = read_cluster("dgx-b200").gpu;
  for (const Json& row : measured()["moves"]["rows"]) {
    const std::int64_t experts = row["experts_per_rank"], chosen = row["per_token"];
    const double tokens = row["tokens"], row_bytes = 2 * row["hidden"].get<double>();
    const double visiting = tokens * copies({8 * experts, static_cast<int>(chosen)}, 8);
    const double looks = visiting * static_cast<double>(experts);
    const double bytes = (visiting + tokens * static_cast<double>(chosen)) * row_bytes;
    const double spread = local_move_time(gpu, Pointwise::spread_rows, bytes, looks);
    const double collected = local_move_time(gpu, Pointwise::collect_rows, bytes, looks);
    EXPECT_NEAR(spread * 1e6 / row["spread_us"].get<double>(), 1, 0.21) << row;
    EXPECT_NEAR(collected * 1e6 / row["collect_us"].get<double>(), 1, 0.21) << row;
  }
}

Plan plan_with(Dispatcher dispatcher, int sms = 0) {
  Plan plan;
  plan.dispatcher = dispatcher;
  plan.dispatcher_sms = sms;
  return plan;
}

// The table's: 4,096 rows of 7,168 bf16 elements a rank, 8 experts on each, 8 of them chosen.
Collective of_table(int ranks) {
  Collective exchange{CollectiveOp::dispatch, CommGroup::expert, 0};
  exchange.fanout = {8 * ranks, 8};
  exchange.bytes = 4096 * copies(exchange.fanout, ranks) * 7168 * 2;
  return exchange;
}

// All rows of HybridEP on 8 SMs and more. On one node they are within 16 % (its combine on 36 ranks), on four
// and eight within 8 %. On two nodes it does not fill the NICs: 13 to 27 % slower, for an unknown reason.
TEST(RowExchange, TakesAboutAsLongAsMeasured) {
  for (const Json& row : measured()["rows"]) {
    if (row["library"] != "hybridep" || row["sms"] < 8) continue;
    const int ranks = row["ranks"], nodes = row["nodes"];
    const Cluster cluster = read_cluster(row["gpu"] == "H100"   ? "dgx-h100"
                                         : row["gpu"] == "B200" ? "dgx-b200"
                                                                : "gb200-nvl72");
    const Collective exchange = of_table(ranks);
    const double seconds =
        exchange_time(plan_with(Dispatcher::hybridep), cluster, exchange, {ranks, nodes, 1}).total();
    const double counted = nodes > 1 ? copies(exchange.fanout, nodes) : copies(exchange.fanout, ranks);
    for (const char* way : {"dispatch_GBps", "combine_GBps"}) {
      const double took = counted * 4096 * 7168 * 2 / (row[way].get<double>() * 1e9);
      const double allowed = nodes == 2 ? 0.28 : nodes > 2 ? 0.08 : 0.16;
      EXPECT_NEAR(seconds, took, allowed * took) << row.dump() << way;
      if (nodes == 2) {
        EXPECT_LT(seconds, took);
      }
    }
  }
}

TEST(RowExchange, OfDeepEpIsBoundByItsMultiprocessorsUntilTheLinkIs) {
  const Cluster cluster = read_cluster("dgx-b200");
  const GroupShape node{8, 1, 1};
  const auto transfer = [&](int sms) {
    return exchange_time(plan_with(Dispatcher::deepep, sms), cluster, of_table(8), node).transfer_s;
  };
  EXPECT_DOUBLE_EQ(transfer(8), 2 * transfer(16));
  EXPECT_DOUBLE_EQ(transfer(0), transfer(20)) << "what it takes itself";
  EXPECT_DOUBLE_EQ(transfer(48), of_table(8).bytes * 7 / 8 / (kExchangeLink * 900e9));
}

// Two nodes of eight: one copy of each row with experts on the other node crosses.
TEST(RowExchange, CrossesToEachNodeOnce) {
  const Cluster cluster = read_cluster("dgx-h100");
  Collective exchange{CollectiveOp::combine, CommGroup::expert, 16e9};
  exchange.fanout = {16, 16};  // every row to every rank: 1 GB from each
  const CommunicationTime time =
      exchange_time(plan_with(Dispatcher::hybridep), cluster, exchange, {16, 2, 1});
  EXPECT_DOUBLE_EQ(time.transfer_s, 16e9 * 7 / 8 / (kExchangeLink * 450e9)) << "to seven others of the node";
  exchange.fanout = {16, 1};  // each row to one rank: half of the 16 GB come from the other node
  EXPECT_DOUBLE_EQ(exchange_time(plan_with(Dispatcher::hybridep), cluster, exchange, {16, 2, 1}).transfer_s,
                   8e9 / (kExchangeNic * 50e9));
  EXPECT_EQ(exchange_time(plan_with(Dispatcher::hybridep), cluster, exchange, {1, 1, 1}).total(), 0);
  Cluster lone = cluster;  // a GPU a node has no link to others
  lone.node.gpus = lone.node.nics = 1;
  lone.node.gpu_link = {};
  EXPECT_DOUBLE_EQ(exchange_time(plan_with(Dispatcher::hybridep), lone, exchange, {16, 16, 1}).transfer_s,
                   16e9 * 15 / 16 / (kExchangeNic * 50e9));
}

TEST(RowExchange, OfHybridEpBringsAWeightForEachExpertOfTheNode) {
  const Cluster cluster = read_cluster("dgx-h100");
  Collective exchange{CollectiveOp::dispatch, CommGroup::expert, 1000 * 4096.0};
  exchange.fanout = {128, 8};
  const auto transfer = [&](Dispatcher dispatcher) {
    return exchange_time(plan_with(dispatcher, 40), cluster, exchange, {8, 1, 1}).transfer_s;
  };
  const double bare = transfer(Dispatcher::hybridep);
  exchange.weights = 1000 * 8;
  EXPECT_DOUBLE_EQ(transfer(Dispatcher::hybridep), bare * (4096 + 128 * 4) / 4096);
  EXPECT_DOUBLE_EQ(transfer(Dispatcher::deepep), bare * (4096 + 8 * 12) / 4096);
}

TEST(RowExchange, HoldsRoomForAllRowsOfAllRanksOrPiecesOfThem) {
  const double rows = 4096, hidden = 7168;
  EXPECT_DOUBLE_EQ(exchange_buffers(plan_with(Dispatcher::hybridep), {8, 1, 1}, 64, rows, hidden),
                   8 * 4096 * (7168 * 2 + 64 * 4 + 56 * 4));
  const double one = exchange_buffers(plan_with(Dispatcher::deepep), {8, 1, 1}, 64, rows, hidden);
  EXPECT_DOUBLE_EQ(one, 10 * 8 * 256 * (7168 * 2 + 2048 + 8));
  EXPECT_DOUBLE_EQ(exchange_buffers(plan_with(Dispatcher::deepep, 40), {8, 1, 1}, 64, rows, hidden), 2 * one);
  EXPECT_GT(exchange_buffers(plan_with(Dispatcher::hybridep), {64, 8, 1}, 512, rows, hidden),
            64.0 * 4096 * 7168 * 2);
}

TEST(RowExchange, TakesTheMultiprocessorsItIsGiven) {
  EXPECT_EQ(exchange_sms(plan_with(Dispatcher::deepep), {64, 8, 1}), 20);
  EXPECT_EQ(exchange_sms(plan_with(Dispatcher::hybridep), {8, 1, 1}), 24);
  EXPECT_EQ(exchange_sms(plan_with(Dispatcher::hybridep), {64, 8, 1}), 8);
  EXPECT_EQ(exchange_sms(plan_with(Dispatcher::hybridep, 32), {64, 8, 1}), 32);
}

}  // namespace
}  // namespace rehearse

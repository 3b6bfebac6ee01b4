// Messages are timed in every possible group, and their price is the measured time.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <cmath>
#include <thread>

#include "calibrate/timing/fit_profile.h"
#include "calibrate/timing/measured_collectives.h"
#include "calibrate/timing/message_rounds.h"
#include "calibrate/timing/message_timer.h"
#include "calibrate/timing/placements.h"
#include "calibrate/timing/profile_file.h"
#include "cost/collectives.h"
#include "cost/contention.h"
#include "cost/offload.h"
#include "cost/read_profile.h"
#include "cost/slowest_gpu.h"
#include "timing/small_model.h"

namespace rehearse {
namespace {

std::vector<std::pair<int, int>> groups_of(const std::vector<PlacedMessage>& placed, CollectiveOp op) {
  std::vector<std::pair<int, int>> groups;
  for (const PlacedMessage& message : placed)
    if (message.job.op == op) groups.emplace_back(message.job.members, message.job.nodes);
  return groups;
}

TEST(Placements, AreEveryGroupOfTwoMachinesOfFour) {
  const std::vector<int> machines = {0, 0, 0, 0, 1, 1, 1, 1};
  const std::vector<PlacedMessage> placed =
      place_messages({{CollectiveOp::all_reduce, 64, 1e6}, {CollectiveOp::send_receive, 2, 1e3}}, machines);
  EXPECT_THAT(groups_of(placed, CollectiveOp::all_reduce),
              testing::UnorderedElementsAre(std::pair(2, 1), std::pair(4, 1), std::pair(2, 2),
                                            std::pair(4, 2), std::pair(8, 2)));
  EXPECT_THAT(groups_of(placed, CollectiveOp::send_receive),
              testing::UnorderedElementsAre(std::pair(2, 1), std::pair(2, 2)));
  for (const PlacedMessage& message : placed) {
    EXPECT_EQ(message.members.size(), static_cast<std::size_t>(message.job.members));
    if (message.job.members == 4 && message.job.nodes == 2) {
      EXPECT_THAT(message.members, testing::ElementsAre(0, 1, 4, 5));
    }
  }
}

TEST(Placements, HoldTheSizesThatAreWantedAndTakeMachinesThatAreLargeEnough) {
  const std::vector<int> machines = {0, 0, 1, 1, 1, 1};
  const std::vector<PlacedMessage> placed = place_messages({{CollectiveOp::all_gather, 3, 1e6}}, machines);
  EXPECT_THAT(groups_of(placed, CollectiveOp::all_gather),
              testing::UnorderedElementsAre(std::pair(2, 1), std::pair(3, 1), std::pair(4, 1),
                                            std::pair(2, 2), std::pair(4, 2)));
  for (const PlacedMessage& message : placed) {
    if (message.job.members == 3) {
      EXPECT_THAT(message.members, testing::ElementsAre(2, 3, 4));
    }
  }
}

TEST(Placements, OfOneProcessAreTheGroupsAsTheyStand) {
  const std::vector<PlacedMessage> placed =
      among_first({{CollectiveOp::all_reduce, 2, 1e3}, {CollectiveOp::all_reduce, 4, 1e3}}, 2);
  ASSERT_EQ(placed.size(), 1U);
  EXPECT_THAT(placed[0].members, testing::ElementsAre(0, 1));
}

Jobs small_jobs() {
  Plan plan;
  plan.precision = Precision::fp32;
  plan.seq = 32;
  plan.global_batch = 8;
  plan.dp = 4;
  return jobs_of(small_model(2), plan);
}

MessageRequest request_for(const Ranks& ranks, const Jobs& jobs) {
  MessageRequest request{ranks, jobs, 2, 1e-4};
  request.stopped = [] { return false; };
  request.known = request.known_beside = [](const MessageJob&) { return false; };
  return request;
}

TEST(Rounds, TimeEveryMessageAndTheLongestProductBesideTheLargest) {
  const Ranks ranks = threads_on_cores(4);
  const Jobs jobs = small_jobs();
  MessageRequest request = request_for(ranks, jobs);
  std::size_t told = 0, all = 0;
  request.before = [&](const std::string&, std::size_t count) {
    ++told;
    all = count;
  };
  const TimedMessages timed = time_messages(request);
  EXPECT_TRUE(timed.complete);
  ASSERT_EQ(timed.messages.size(), jobs.messages.size());
  for (const auto& [job, seconds] : timed.messages) {
    EXPECT_GE(seconds.size(), 6U) << to_string(job);  // three in each of two rounds
    for (const double each : seconds) EXPECT_GT(each, 0);
  }
  ASSERT_EQ(timed.beside.size(), 1U);
  const BesideSample& beside = timed.beside[0];
  EXPECT_EQ(beside.message.op, "all_reduce");
  EXPECT_EQ(beside.message.members, 4);
  EXPECT_GT(beside.alone_s, 0);
  EXPECT_GT(beside.message.seconds, 0);
  EXPECT_EQ(told, all);
}

TEST(Rounds, LeaveOutWhatIsKnownAndEndWhenAnyRankIsStopped) {
  const Ranks ranks = threads_on_cores(4);
  const Jobs jobs = small_jobs();
  MessageRequest request = request_for(ranks, jobs);
  request.known = [&](const MessageJob&) { return true; };
  request.known_beside = request.known;
  const TimedMessages nothing = time_messages(request);
  EXPECT_EQ(nothing.messages.size(), jobs.messages.size());
  for (const auto& message : nothing.messages) EXPECT_TRUE(message.seconds.empty());
  request.known = [&](const MessageJob&) { return false; };
  std::atomic<int> asked = 0;
  request.stopped = [&] { return ++asked > 20; };
  EXPECT_FALSE(time_messages(request).complete);
}

TEST(Rounds, TimeTheLongestProductOnAllRanksAtOnce) {
  const Ranks ranks = threads_on_cores(4);
  const Jobs jobs = small_jobs();
  MessageRequest request = request_for(ranks, jobs);
  request.known = request.known_beside = [](const MessageJob&) { return true; };
  EXPECT_FALSE(time_messages(request).together);
  bool known = false;
  request.known_together = [&known] { return known; };
  request.together_s = 0.01;
  const TimedMessages timed = time_messages(request);
  ASSERT_TRUE(timed.together);
  EXPECT_EQ(timed.together->seconds.size(), 4U);
  for (const double seconds : timed.together->seconds) EXPECT_GT(seconds, 0);
  EXPECT_GE(timed.together->m * timed.together->n * timed.together->k, 64 * 64 * 32);
  known = true;
  EXPECT_FALSE(time_messages(request).together);
}

TEST(Ranks, AFailureOfOneEndsTheOthers) {
  const Ranks ranks = threads_on_cores(3);
  std::vector<std::unique_ptr<MessageTimer>> timers(3);
  const auto body = [&](std::size_t i) {
    timers[i] = std::make_unique<MessageTimer>(ranks.device(i), *ranks.worlds[i]);
    if (i == 1) throw kernels::DeviceError("the second rank fell over");
    timers[i]->any(false);
  };
  try {
    on_each_rank(ranks, body);
    FAIL() << "nothing was thrown";
  } catch (const kernels::DeviceError& error) {
    EXPECT_STREQ(error.what(), "the second rank fell over");
  }
}

TEST(Rounds, EndWhenARankDoesNotAnswer) {
  const Ranks ranks = threads_on_cores(4);
  const Jobs jobs = small_jobs();
  MessageRequest request = request_for(ranks, jobs);
  request.timeout_s = 0.2;
  std::atomic<int> asked = 0;
  request.stopped = [&] {
    if (++asked == 30) std::this_thread::sleep_for(std::chrono::seconds(1));
    return false;
  };
  try {
    time_messages(request);
    FAIL() << "nothing was thrown";
  } catch (const kernels::DeviceError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("a rank does not answer"));
  }
}

TEST(Ranks, WithoutAnotherNameAreOnOneMachine) {
  const Ranks ranks = threads_on_cores(2);
  on_each_rank(ranks, [&](std::size_t i) {
    EXPECT_THAT(MessageTimer(ranks.device(i), *ranks.worlds[i]).machines(), testing::ElementsAre(0, 0));
  });
}

Profile measured_profile(std::vector<MessageSample> messages) {
  Profile profile;
  profile.name = "test";
  profile.gpu = read_cluster("dgx-h100").gpu;
  profile.how = How::measured;
  profile.sources = {{"test", "", ""}};
  profile.measurement.emplace();
  profile.measurement->date = "2026-11-22";
  profile.measurement->messages = std::move(messages);
  return profile;
}

TEST(Measured, CollectivesOfNcclAreReadBackAsTheyWereTimed) {
  const Cluster cluster = read_cluster("dgx-h100");
  Profile profile = measured_profile({{"all_reduce", 8, 1e6, 123e-6, 0},
                                      {"all_reduce", 8, 1e8, 700e-6, 0},
                                      {"all_reduce", 16, 1e8, 900e-6, 0, 2}});
  std::vector<std::string> notes;
  fit_measured(profile, cluster, true, notes);
  const Json json = profile_json(profile, cluster.gpu);
  EXPECT_EQ(json["collectives"]["measured"].size(), 2U);
  const Profile read = parse_profile(JsonReader(json, "profile.json"));
  const auto seconds = [&](double bytes, const GroupShape& group) {
    return collective_time(read, cluster, CollectiveOp::all_reduce, bytes, group).total();
  };
  EXPECT_NEAR(seconds(1e6, {8, 1, 1}), 123e-6, 1e-9);
  EXPECT_NEAR(seconds(1e8, {8, 1, 1}), 700e-6, 1e-9);
  EXPECT_NEAR(seconds(1e8, {16, 2, 1}), 900e-6, 1e-9);
}

TEST(Measured, ANewerTimeReplacesTheOlderOfItsSize) {
  const Cluster cluster = read_cluster("dgx-h100");
  const auto first =
      with_measured(nullptr, cluster, {{"all_gather", 8, 1e6, 2e-4, 0}, {"all_gather", 8, 4e6, 4e-4, 0}});
  const Json both = collectives_json(*with_measured(first, cluster, {{"all_gather", 8, 1e6, 3e-4, 0}}));
  ASSERT_EQ(both["measured"].size(), 1U);
  EXPECT_EQ(both["measured"][0]["rows"], (Json{{1e6, 3e-4}, {4e6, 4e-4}}));
}

// Messages of a ring over two machines, made with the very cost model that prices them.
TEST(Measured, NicsGiveBackTheCostsThatTheMessagesHad) {
  const Cluster cluster = read_cluster("dgx-h100");
  Profile truth = measured_profile({});
  truth.links = {{cluster.node.gpu_link_kind, "ring", 4e-6, 1e-6, 0.8, How::measured},
                 {cluster.node.gpu_link_kind, "send", 3e-6, 0, 0.7, How::measured},
                 {cluster.node.nic_kind, "ring", 9e-6, 5e-6, 0.6, How::measured},
                 {cluster.node.nic_kind, "send", 8e-6, 0, 0.5, How::measured}};
  std::vector<MessageSample> messages;
  const auto add = [&](CollectiveOp op, int nodes, int local) {
    std::vector<int> ranks;
    for (int i = 0; i < nodes * local; ++i) ranks.push_back(i / local * cluster.node.gpus + i % local);
    for (const double bytes : {1e3, 1e6, 1e9})
      messages.push_back({message_name(op), nodes * local, bytes,
                          collective_time(truth, cluster, op, bytes, group_shape(cluster, ranks)).total(), 0,
                          nodes});
  };
  for (const int nodes : {1, 2, 4}) {
    for (const int local : {1, 4, 8})
      if (nodes * local > 1) add(CollectiveOp::all_reduce, nodes, local);
  }
  add(CollectiveOp::send_receive, 1, 2);
  add(CollectiveOp::send_receive, 2, 1);
  Profile fitted = measured_profile(messages);
  std::vector<std::string> notes;
  fit_measured(fitted, cluster, false, notes);
  ASSERT_EQ(fitted.links.size(), 4U);
  for (const LinkCost& link : fitted.links) {
    const auto same = [&](const LinkCost& other) { return other.kind == link.kind && other.op == link.op; };
    const auto of = std::find_if(truth.links.begin(), truth.links.end(), same);
    ASSERT_NE(of, truth.links.end()) << link.kind << ' ' << link.op;
    EXPECT_NEAR(link.efficiency, of->efficiency, 1e-6) << link.kind << ' ' << link.op;
    EXPECT_NEAR(link.latency_s, of->latency_s, 1e-9) << link.kind << ' ' << link.op;
    EXPECT_NEAR(link.step_latency_s, of->step_latency_s, 1e-9) << link.kind << ' ' << link.op;
  }
}

TEST(Measured, AShareOfAKernelIsWhatItLostBesideTheNearestGroup) {
  Profile profile = measured_profile({});
  profile.measurement->beside = {{{"all_reduce", 2, 1e6, 2e-3, 0, 1}, 1, 1, 1, 1e-3},
                                 {{"all_reduce", 8, 1e6, 4e-3, 0, 1}, 1, 1, 1, 1e-3}};
  EXPECT_NEAR(measured_share(profile, CollectiveOp::all_reduce, {2, 1, 1}).value(), 0.5, 1e-12);
  EXPECT_NEAR(measured_share(profile, CollectiveOp::all_reduce, {7, 1, 1}).value(), 0.75, 1e-12);
  EXPECT_FALSE(measured_share(profile, CollectiveOp::all_reduce, {16, 2, 1}));
  EXPECT_FALSE(measured_share(profile, CollectiveOp::all_gather, {2, 1, 1}));
  profile.measurement->beside[0].alone_s = 3e-3;  // faster beside than alone: noise
  EXPECT_EQ(measured_share(profile, CollectiveOp::all_reduce, {2, 1, 1}).value(), 0);
}

TEST(Measured, CopiesToTheHostTakeWhatTheyTook) {
  const Cluster cluster = read_cluster("dgx-h100");
  ASSERT_GT(cluster.node.host.link.bandwidth, 0);
  Profile profile = measured_profile({});
  const double by_cluster = host_copy_s(profile, cluster, 1e9);
  for (const double bytes : {1e5, 1e7, 1e9})
    for (const bool to_host : {true, false})
      profile.measurement->host_copies.push_back(
          {to_host, bytes, 7e-6 + bytes / (0.5 * cluster.node.host.link.bandwidth), 0});
  std::vector<std::string> notes;
  fit_measured(profile, cluster, false, notes);
  EXPECT_NEAR(host_copy_s(profile, cluster, 1e9), 7e-6 + 1e9 / (0.5 * cluster.node.host.link.bandwidth),
              1e-9);
  EXPECT_GT(host_copy_s(profile, cluster, 1e9), 1.9 * by_cluster);
  EXPECT_EQ(profile_json(parse_profile(JsonReader(profile_json(profile, cluster.gpu), "p")), cluster.gpu),
            profile_json(profile, cluster.gpu));
}

TEST(Measured, GpusDifferByTheDeviationOfWhatTheyTakeAtOnce) {
  const Cluster cluster = read_cluster("dgx-h100");
  Profile profile = measured_profile({});
  std::vector<std::string> notes;
  profile.measurement->together = {8192, 8192, 8192, {1.02, 0.98, 1.02}};
  fit_measured(profile, cluster, true, notes);
  EXPECT_EQ(profile.gpu_spread, 0);
  EXPECT_TRUE(notes.empty());
  profile.measurement->together->seconds = {1.02, 0.98, 1.02, 0.98};
  fit_measured(profile, cluster, true, notes);
  EXPECT_NEAR(profile.gpu_spread, 0.02 * std::sqrt(4.0 / 3), 1e-12);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("takes +2.0 % of their mean more")));
  Profile with_a_slow_one = measured_profile({});
  with_a_slow_one.measurement->together = {8192, 8192, 8192, {1, 1, 1, 2}};
  notes.clear();
  fit_measured(with_a_slow_one, cluster, true, notes);
  EXPECT_EQ(with_a_slow_one.gpu_spread, kMaxGpuSpread);
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("differ by 40.0 %"),
                                          testing::HasSubstr("20 % is taken")));
  const Json json = profile_json(profile, cluster.gpu);
  const Profile read = parse_profile(JsonReader(json, "profile.json"));
  EXPECT_NEAR(read.gpu_spread, profile.gpu_spread, 1e-6);
  EXPECT_EQ(profile_json(read, cluster.gpu), json);
}

TEST(Measured, MessagesAcrossMachinesWithoutNicsAreKeptAndSaid) {
  Profile profile = measured_profile({{"all_reduce", 2, 1e6, 1e-3, 0, 2}});
  std::vector<std::string> notes;
  fit_measured(profile, read_cluster("cpu-node"), false, notes);
  EXPECT_TRUE(profile.links.empty());
  EXPECT_THAT(notes, testing::ElementsAre(testing::HasSubstr("no NIC")));
}

}  // namespace
}  // namespace rehearse

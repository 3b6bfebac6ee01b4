// Exports for Perfetto, HTA and Chakra, decoded with the published schemas (data/README.md).
#include "export/traces.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <regex>
#include <set>
#include <sstream>

#include "../result/cases.h"
#include "export/proto_writer.h"
#include "plan/sharding.h"
#include "result/chrome_trace.h"
#include "scratch.h"

namespace rehearse {
namespace {

using namespace test;
using testing::HasSubstr;

Json chrome_of(const Case& made) {
  std::ostringstream out;
  write_chrome_trace(out, made.timeline, made.schedule, made.report, made.work);
  return Json::parse(out.str());
}

Case two_ranks() {
  Model model = small_model();
  model.tied_embeddings = true;
  return make_case(small_plan(2, 1, 3, 2), Durations{1e-3, 2e-3, 1e-4, 2e-4, 5e-4}, true, model);
}

// The message as protoc prints it.
std::string decoded(const std::string& bytes, const std::string& message, const std::string& schema) {
  const std::string file = scratch().write("message.bin", bytes);
  const std::string folder = std::string(SOURCE_DIR) + "/tests/export/data";
  const std::string command =
      fmt::format("{} --decode={} -I{} {} <{} 2>&1", PROTOC, message, folder, schema, file);
  std::string text;
  FILE* pipe = popen(command.c_str(), "r");
  for (char buffer[4096]; const std::size_t count = std::fread(buffer, 1, sizeof buffer, pipe);)
    text.append(buffer, count);
  EXPECT_EQ(pclose(pipe), 0) << text.substr(0, 300);
  return text;
}

std::size_t count(const std::string& text, const std::string& words) {
  std::size_t found = 0;
  for (std::size_t at = text.find(words); at != std::string::npos; at = text.find(words, at + 1)) ++found;
  return found;
}

std::size_t slices(const Json& chrome) {
  return static_cast<std::size_t>(
      std::ranges::count_if(chrome["traceEvents"], [](const Json& event) { return event["ph"] == "X"; }));
}

TEST(Perfetto, HoldsEverySliceFlowAndCounterOfTheTrace) {
  const Json chrome = chrome_of(two_ranks());
  const std::string text =
      decoded(perfetto_trace(chrome, "trace"), "perfetto.protos.Trace", "perfetto_trace.proto");
  EXPECT_EQ(count(text, "TYPE_SLICE_BEGIN"), slices(chrome));
  EXPECT_EQ(count(text, "TYPE_SLICE_END"), slices(chrome));
  EXPECT_EQ(count(text, " flow_ids:"), 6u) << "a message a microbatch and direction";
  EXPECT_EQ(count(text, "terminating_flow_ids:"), 6u);
  EXPECT_EQ(count(text, "process_name: \"rank "), 2u);
  EXPECT_THAT(text, HasSubstr("unit: UNIT_SIZE_BYTES"));
  EXPECT_THAT(text, HasSubstr("name: \"PP:0F0\""));
  EXPECT_THAT(text, testing::Not(testing::ContainsRegex("\n *[0-9]+:"))) << "a field that the schema lacks";
}

// Begin and end of each slice, in nanoseconds, are those of the Chrome trace, whose unit is microseconds.
TEST(Perfetto, KeepsTimesToTheNanosecond) {
  const Json chrome = chrome_of(two_ranks());
  std::multiset<std::int64_t> expected;
  for (const Json& event : chrome["traceEvents"]) {
    if (event["ph"] != "X") continue;
    const std::int64_t begin = std::llround(event["ts"].get<double>() * 1000);
    expected.insert(begin);
    expected.insert(begin + std::llround(event["dur"].get<double>() * 1000));
  }
  std::multiset<std::int64_t> found;
  std::istringstream lines(
      decoded(perfetto_trace(chrome, "trace"), "perfetto.protos.Trace", "perfetto_trace.proto"));
  std::int64_t time = 0;
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("  timestamp: ")) time = std::stoll(line.substr(13));
    if (line.find("TYPE_SLICE") != std::string::npos) found.insert(time);
  }
  EXPECT_EQ(found, expected);
}

TEST(Perfetto, RefusesEventsWithoutAPlace) {
  const Json slice = {{"ph", "X"}, {"name", "a"}, {"pid", 0}, {"tid", 1}, {"ts", 0}, {"dur", 1}};
  EXPECT_THROW(perfetto_trace({{"traceEvents", {slice}}}, "t"), InputError);
  EXPECT_THROW(perfetto_trace({{"traceEvents", 3}}, "t"), InputError);
  EXPECT_THROW(perfetto_trace(Json::array(), "t"), InputError);
}

TEST(Kineto, WritesAFileARankWithItsKernelsAndGroups) {
  const Case made = two_ranks();
  const Json chrome = chrome_of(made);
  const std::vector<RankTrace> ranks = kineto_traces(chrome, made.report);
  ASSERT_EQ(ranks.size(), 2u);
  std::size_t kernels = 0;
  for (const RankTrace& rank : ranks) {
    const Json& info = rank.trace["distributedInfo"];
    EXPECT_EQ(info["rank"], rank.rank);
    EXPECT_EQ(info["world_size"], 4);
    EXPECT_EQ(info["backend"], "nccl");
    EXPECT_EQ(info["pg_config"].size(), 2u);
    for (const Json& group : info["pg_config"])
      EXPECT_THAT(group["ranks"].get<std::vector<int>>(), testing::Contains(rank.rank));
    std::set<std::int64_t> correlations;
    for (const Json& event : rank.trace["traceEvents"]) {
      EXPECT_NE(event.value("cat", ""), "wait");
      if (event["ph"] != "X") continue;
      ++kernels;
      EXPECT_EQ(event["pid"], event["args"]["device"]);
      EXPECT_EQ(event["tid"], event["args"]["stream"]);
      EXPECT_TRUE(correlations.insert(event["args"]["correlation"].get<std::int64_t>()).second);
      const std::string name = event["name"];
      EXPECT_EQ(name.starts_with("nccl"), event["args"].contains("Collective name")) << name;
    }
  }
  const auto is_kernel = [](const Json& event) { return event.value("cat", "") == "kernel"; };
  EXPECT_EQ(kernels, static_cast<std::size_t>(std::ranges::count_if(chrome["traceEvents"], is_kernel)));
}

// The rule of hta/common/trace_file.py of HolisticTraceAnalysis: the first line with a match names the rank.
TEST(Kineto, HtaFindsTheRankOfEachFile) {
  const Case made = two_ranks();
  for (const RankTrace& rank : kineto_traces(chrome_of(made), made.report)) {
    const std::string text = kineto_text(rank);
    std::smatch found;
    ASSERT_TRUE(std::regex_search(text, found, std::regex(R"re("rank":\s+(\d+))re")));
    EXPECT_EQ(std::stoi(found[1]), rank.rank);
    const Json read = Json::parse(text);
    EXPECT_EQ(read.size(), rank.trace.size());
    for (const auto& [key, value] : rank.trace.items()) EXPECT_EQ(read.at(key), value) << key;
  }
}

// The messages of a file of length-delimited messages, each as protoc prints it.
std::vector<std::string> messages_of(const std::string& bytes) {
  std::vector<std::string> messages;
  for (std::size_t at = 0; at < bytes.size();) {
    std::size_t size = 0;
    for (int shift = 0;; shift += 7) {
      const auto byte = static_cast<unsigned char>(bytes.at(at++));
      size |= static_cast<std::size_t>(byte & 0x7f) << shift;
      if (byte < 0x80) break;
    }
    messages.push_back(bytes.substr(at, size));
    at += size;
  }
  return messages;
}

struct ChakraNode {
  std::string text;
  std::string name;
  std::string attribute(const std::string& named) const {
    const std::size_t at = text.find("name: \"" + named + "\"");
    if (at == std::string::npos) return "";
    const std::size_t begin = text.find(": ", at + 6 + named.size()) + 2;
    return text.substr(begin, text.find('\n', begin) - begin);
  }
};

std::map<std::string, ChakraNode> nodes_of(const Case& made, int rank) {
  const TracedRun traced{made.timeline, made.schedule, made.report, made.work};
  const std::string bytes = chakra_trace(traced, chakra_groups(traced), rank);
  const std::vector<std::string> messages = messages_of(bytes);
  EXPECT_THAT(decoded(messages.at(0), "ChakraProtoMsg.GlobalMetadata", "chakra_et.proto"),
              HasSubstr("version: \"0.0.4\""));
  std::map<std::string, ChakraNode> nodes;
  for (std::size_t i = 1; i < messages.size(); ++i) {
    const std::string text = decoded(messages[i], "ChakraProtoMsg.Node", "chakra_et.proto");
    const std::size_t begin = text.find("name: \"") + 7;
    const std::string name = text.substr(begin, text.find('"', begin) - begin);
    nodes[name] = {text, name};
  }
  return nodes;
}

TEST(Chakra, SendsMeetTheirReceives) {
  const Case made = two_ranks();
  const std::map<std::string, ChakraNode> first = nodes_of(made, 0), second = nodes_of(made, 2);
  const ChakraNode &send = first.at("0SEND_F1"), &receive = second.at("1RECV_F1");
  EXPECT_THAT(send.text, HasSubstr("COMM_SEND_NODE"));
  EXPECT_THAT(receive.text, HasSubstr("COMM_RECV_NODE"));
  for (const char* name : {"comm_src", "comm_dst", "comm_tag", "comm_size"})
    EXPECT_EQ(send.attribute(name), receive.attribute(name)) << name;
  EXPECT_EQ(send.attribute("comm_dst"), "2");
  EXPECT_EQ(send.attribute("comm_size"), fmt::format("{:.0f}", made.work.boundary_bytes));
  EXPECT_NE(send.attribute("comm_tag"), first.at("0SEND_F2").attribute("comm_tag"));
}

TEST(Chakra, NodesDependOnWhatTheirOpsWaitFor) {
  const Case made = two_ranks();
  const std::map<std::string, ChakraNode> nodes = nodes_of(made, 0);
  const RankOps& ops = made.schedule.ranks[0];
  EXPECT_EQ(nodes.size(), ops.size());
  for (std::size_t i = 0; i < ops.size(); ++i) {
    const std::string& text = nodes.at(to_string(ops[i])).text;
    EXPECT_THAT(text, HasSubstr(fmt::format("id: {}\n", i + 1)));
    for (const std::int32_t wait : ops.waits(ops[i]))
      EXPECT_THAT(text, HasSubstr(fmt::format("data_deps: {}\n", wait + 1)));
  }
  EXPECT_THAT(nodes.at("0F0").text, HasSubstr("duration_micros: 1000\n"));
}

TEST(Chakra, CollectivesNameTheirGroupAndBytes) {
  const Case made = two_ranks();
  const Json groups = chakra_groups({made.timeline, made.schedule, made.report, made.work});
  EXPECT_EQ(groups, Json::parse(R"({"0": [0, 1], "1": [0, 2], "2": [1, 3], "3": [2, 3]})"));
  const std::map<std::string, ChakraNode> nodes = nodes_of(made, 3);
  const ChakraNode& sum = nodes.at("1REDUCE_GRAD.0");
  EXPECT_THAT(sum.text, HasSubstr("COMM_COLL_NODE"));
  EXPECT_EQ(sum.attribute("comm_type"), "0");
  EXPECT_EQ(sum.attribute("pg_name"), "\"3\"");
  EXPECT_EQ(sum.attribute("comm_size"), fmt::format("{:.0f}", made.work.parameters(1) * 4 / 2));
  EXPECT_EQ(nodes.at("1REDUCE_TIED").attribute("pg_name"), "\"2\"");
}

TEST(Chakra, OwnersBroadcastWhatTheyStepped) {
  Plan plan = small_plan(1, 1, 2, 2);
  plan.zero = 1;
  const auto types = [&plan](Framework framework) {
    plan.framework = framework;
    const auto nodes = nodes_of(make_case(plan, Durations{1e-3, 2e-3, 0, 0, 0}), 0);
    return nodes.at("0REDUCE_GRAD.0").attribute("comm_type") + nodes.at("0UNSHARD").attribute("comm_type");
  };
  EXPECT_EQ(types(Framework::internevo), "05");
  EXPECT_EQ(types(Framework::deepspeed), "72");
}

// comm_size is the input of one rank. ASTRA-sim's ring gathers with n - 1 messages of that size, and reduces
// and scatters with n - 1 messages of 1/n of it. Both send as much as NCCL does.
TEST(Chakra, SizesAreThoseOfARanksInput) {
  Plan plan = small_plan(1, 1, 2, 4);
  plan.zero = 1;
  plan.framework = Framework::deepspeed;
  const Case made = make_case(plan, Durations{1e-3, 2e-3, 0, 0, 0});
  const std::map<std::string, ChakraNode> nodes = nodes_of(made, 0);
  const double parameters = made.work.parameters(0);
  EXPECT_EQ(nodes.at("0REDUCE_GRAD.0").attribute("comm_type"), "7");
  EXPECT_EQ(nodes.at("0REDUCE_GRAD.0").attribute("comm_size"),
            fmt::format("{:.0f}", parameters * gradient_wire_bytes(made.plan) / 2))
      << "in two parts";
  EXPECT_EQ(nodes.at("0UNSHARD").attribute("comm_type"), "2");
  EXPECT_EQ(nodes.at("0UNSHARD").attribute("comm_size"),
            fmt::format("{:.0f}", parameters * parameter_bytes(made.plan) / plan.dp));
}

// The operations of a microbatch, summed over all ranks, equal those of the report.
TEST(Chakra, OperationsSumToTheModels) {
  const Case made = make_case(small_plan(2, 1, 3), Durations{1e-3, 2e-3, 0, 0, 0});
  double operations = 0;
  for (const int rank : {0, 1})
    for (const auto& [name, node] : nodes_of(made, rank))
      if (!node.attribute("num_ops").empty()) operations += std::stod(node.attribute("num_ops"));
  const FlopCount flops = count_flops(made.work, made.plan);
  EXPECT_NEAR(operations / (3 * flops.hardware()), 1, 1e-6);
}

TEST(ProtoWriter, EncodesAsTheDocumentationsExamples) {
  ProtoWriter number, text, inner;
  number.varint(1, 150);
  EXPECT_EQ(number.bytes(), "\x08\x96\x01");
  text.text(2, "testing");
  EXPECT_EQ(text.bytes(), "\x12\x07testing");
  inner.message(3, number);
  EXPECT_EQ(inner.bytes(), "\x1a\x03\x08\x96\x01");
  EXPECT_EQ(number.delimited(), "\x03\x08\x96\x01");
}

}  // namespace
}  // namespace rehearse

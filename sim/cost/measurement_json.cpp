#include "cost/measurement_json.h"

#include <array>

#include "cost/collectives.h"

namespace rehearse {

namespace {

std::vector<std::string> texts(const JsonReader& reader, const std::string& key) {
  const Json& list = reader.value(key);
  std::vector<std::string> all;
  for (std::size_t i = 0; list.is_array() && i < list.size(); ++i) {
    if (!list[i].is_string()) reader.fail(key, "must be an array of texts", "found " + list[i].dump());
    all.push_back(list[i]);
  }
  if (!list.is_array()) reader.fail(key, "must be an array of texts", "found " + list.dump());
  return all;
}

MessageSample read_message(const JsonReader& reader) {
  MessageSample sample;
  sample.op = message_name(reader.choice<CollectiveOp>("op", message_ops()));
  sample.members = reader.integer("members", 2, 1 << 20);
  sample.bytes = reader.number("bytes", physical::kBytes);
  sample.seconds = reader.number("seconds", physical::kDuration);
  sample.spread = reader.number("spread", physical::kSpread);
  sample.nodes = reader.integer_or("nodes", 1, 1, 1 << 20);
  return sample;
}

BesideSample read_beside(const JsonReader& reader) {
  constexpr std::int64_t kMax = 1 << 30;
  return {read_message(reader), reader.integer("m", 1, kMax), reader.integer("n", 1, kMax),
          reader.integer("k", 1, kMax), reader.number("alone_s", physical::kDuration)};
}

HostCopySample read_host_copy(const JsonReader& reader) {
  HostCopySample sample;
  sample.to_host = reader.boolean_or("to_host", true);
  sample.bytes = reader.number("bytes", physical::kBytes);
  sample.seconds = reader.number("seconds", physical::kDuration);
  sample.spread = reader.number("spread", physical::kSpread);
  return sample;
}

TogetherSample read_together(const JsonReader& reader) {
  constexpr std::int64_t kMax = 1 << 30;
  TogetherSample sample{reader.integer("m", 1, kMax), reader.integer("n", 1, kMax),
                        reader.integer("k", 1, kMax), reader.numbers("seconds", physical::kDuration)};
  if (sample.seconds.empty()) reader.fail("seconds", "must hold one number at least");
  reader.reject_unknown();
  return sample;
}

using ByName = std::map<std::string, double>;

constexpr std::array<std::pair<const char*, ByName Slowdowns::*>, 4> kSlowdowns = {{
    {"gemm", &Slowdowns::gemm},
    {"attention", &Slowdowns::attention},
    {"stream", &Slowdowns::stream},
    {"step", &Slowdowns::step},
}};

Slowdowns read_slowdowns(const JsonReader& reader) {
  constexpr double kMin = 0.01, kMax = 1e6;
  Slowdowns slowdowns;
  slowdowns.others = reader.integer("others", 1, 1 << 10);
  for (const auto& [key, table] : kSlowdowns) {
    if (!reader.has(key)) continue;
    const JsonReader of = reader.object(key);
    for (const auto& item : of.json().items())
      (slowdowns.*table)[item.key()] = of.number(item.key(), kMin, kMax);
  }
  reader.reject_unknown();
  return slowdowns;
}

Json to_json(const Slowdowns& slowdowns) {
  Json json = {{"others", slowdowns.others}};
  for (const auto& [key, table] : kSlowdowns) json[key] = slowdowns.*table;
  return json;
}

template <typename Sample>
std::vector<Sample> read_samples(const JsonReader& reader, const std::string& key,
                                 Sample (*read)(const JsonReader&)) {
  std::vector<Sample> samples;
  if (!reader.has(key)) return samples;
  for (const JsonReader& each : reader.objects(key)) {
    samples.push_back(read(each));
    each.reject_unknown();
  }
  return samples;
}

Json to_json(const MessageSample& sample) {
  Json json = {{"op", sample.op},
               {"members", sample.members},
               {"bytes", sample.bytes},
               {"seconds", sample.seconds},
               {"spread", sample.spread}};
  if (sample.nodes > 1) json["nodes"] = sample.nodes;
  return json;
}

Json to_json(const BesideSample& sample) {
  Json json = to_json(sample.message);
  json.update({{"m", sample.m}, {"n", sample.n}, {"k", sample.k}, {"alone_s", sample.alone_s}});
  return json;
}

Json to_json(const TogetherSample& sample) {
  return {{"m", sample.m}, {"n", sample.n}, {"k", sample.k}, {"seconds", sample.seconds}};
}

Json to_json(const HostCopySample& sample) {
  return {{"to_host", sample.to_host},
          {"bytes", sample.bytes},
          {"seconds", sample.seconds},
          {"spread", sample.spread}};
}

template <typename Sample>
Json list_of(const std::vector<Sample>& samples) {
  Json list = Json::array();
  for (const Sample& sample : samples) list.push_back(to_json(sample));
  return list;
}

}  // namespace

Measurement read_measurement(const JsonReader& reader) {
  Measurement measurement;
  measurement.device = reader.text("device");
  measurement.date = reader.text("date");
  measurement.libraries = texts(reader, "libraries");
  measurement.cores = reader.integer("cores", 1, 1 << 20);
  measurement.cache = reader.text("cache");
  measurement.clock_hz = reader.number("clock_hz", physical::kClock);
  measurement.clock_hz_after = reader.number("clock_hz_after", physical::kClock);
  measurement.notes = texts(reader, "notes");
  measurement.messages = read_samples(reader, "messages", read_message);
  measurement.beside = read_samples(reader, "beside", read_beside);
  measurement.host_copies = read_samples(reader, "host_copies", read_host_copy);
  if (reader.has("together")) measurement.together = read_together(reader.object("together"));
  if (reader.has("in_company"))
    measurement.with_concurrent_ranks = read_slowdowns(reader.object("in_company"));
  reader.reject_unknown();
  return measurement;
}

Json to_json(const Measurement& measurement) {
  Json json = {{"device", measurement.device},
               {"date", measurement.date},
               {"libraries", measurement.libraries},
               {"cores", measurement.cores},
               {"cache", measurement.cache},
               {"clock_hz", measurement.clock_hz},
               {"clock_hz_after", measurement.clock_hz_after},
               {"notes", measurement.notes},
               {"messages", list_of(measurement.messages)}};
  if (!measurement.beside.empty()) json["beside"] = list_of(measurement.beside);
  if (!measurement.host_copies.empty()) json["host_copies"] = list_of(measurement.host_copies);
  if (measurement.together) json["together"] = to_json(*measurement.together);
  if (measurement.with_concurrent_ranks) json["in_company"] = to_json(*measurement.with_concurrent_ranks);
  return json;
}

}  // namespace rehearse

#include "cost/measurement_json.h"

namespace rehearse {

namespace {

constexpr double kLargest = 1e18;

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
  sample.op = reader.text("op");
  sample.members = reader.integer("members", 2, 1 << 20);
  sample.bytes = reader.number("bytes", 1, kLargest);
  sample.seconds = reader.number("seconds", 0, kLargest);
  sample.spread = reader.number("spread", 0, kLargest);
  reader.reject_unknown();
  return sample;
}

}  // namespace

Measurement read_measurement(const JsonReader& reader) {
  Measurement measurement;
  measurement.device = reader.text("device");
  measurement.date = reader.text("date");
  measurement.libraries = texts(reader, "libraries");
  measurement.cores = reader.integer("cores", 1, 1 << 20);
  measurement.cache = reader.text("cache");
  measurement.clock_hz = reader.number("clock_hz", 0, kLargest);
  measurement.clock_hz_after = reader.number("clock_hz_after", 0, kLargest);
  measurement.notes = texts(reader, "notes");
  for (const JsonReader& message : reader.objects("messages"))
    measurement.messages.push_back(read_message(message));
  reader.reject_unknown();
  return measurement;
}

Json to_json(const Measurement& measurement) {
  Json messages = Json::array();
  for (const MessageSample& sample : measurement.messages) {
    messages.push_back({{"op", sample.op},
                        {"members", sample.members},
                        {"bytes", sample.bytes},
                        {"seconds", sample.seconds},
                        {"spread", sample.spread}});
  }
  return {{"device", measurement.device},
          {"date", measurement.date},
          {"libraries", measurement.libraries},
          {"cores", measurement.cores},
          {"cache", measurement.cache},
          {"clock_hz", measurement.clock_hz},
          {"clock_hz_after", measurement.clock_hz_after},
          {"notes", measurement.notes},
          {"messages", messages}};
}

}  // namespace rehearse

#include <cmath>
#include <map>

#include "export/proto_writer.h"
#include "export/traces.h"

namespace rehearse {

namespace {

// Field numbers of perfetto/protos/perfetto/trace: trace_packet.proto, track_event/track_descriptor.proto,
// process_descriptor.proto, thread_descriptor.proto, counter_descriptor.proto, track_event.proto,
// debug_annotation.proto.
namespace packet {
constexpr int kPacket = 1, kTimestamp = 8, kSequence = 10, kTrackEvent = 11, kTrackDescriptor = 60;
}
namespace descriptor {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kThread = 4, kParent = 5, kCounter = 8;
constexpr int kPid = 1, kProcessName = 6, kSortIndex = 3, kTid = 2, kThreadName = 5, kUnit = 3;
constexpr std::uint64_t kBytes = 3;
}  // namespace descriptor
namespace event {
constexpr int kAnnotation = 4, kType = 9, kTrack = 11, kCategory = 22, kName = 23, kDouble = 44, kFlow = 47,
              kLastFlow = 48;
constexpr std::uint64_t kBegin = 1, kEnd = 2, kCounterValue = 4;
constexpr int kInt = 4, kNumber = 5, kText = 6, kAnnotationName = 10;
}  // namespace event

constexpr std::uint64_t kOneSequence = 1;

struct Slice {
  std::uint64_t track = 0;
  std::int64_t begin_ns = 0, end_ns = 0;
  std::string name, category;
  Json args;
  std::vector<std::pair<int, std::uint64_t>> flows;  // field, id
};

class PerfettoWriter {
 public:
  explicit PerfettoWriter(std::string file) : file_(std::move(file)) {}

  std::string write(const Json& chrome) {
    for (const JsonReader& reader : JsonReader(chrome, file_).objects("traceEvents")) take(reader);
    for (const Slice& slice : slices_) put(slice);
    return std::move(bytes_);
  }

 private:
  static std::uint64_t process(std::int64_t pid) { return static_cast<std::uint64_t>(pid + 1) << 32; }

  static std::int64_t number(const JsonReader& reader, const char* key) {
    return reader.integer(key, 0, std::int64_t{1} << 30);
  }

  static std::int64_t nanoseconds(const JsonReader& reader, const char* key) {
    return std::llround(reader.number(key, 0, 1e15) * 1000);
  }

  void take(const JsonReader& reader) {
    const std::string phase = reader.text("ph");
    if (phase == "M") describe(reader);
    if (phase == "X") slice(reader);
    if (phase == "s" || phase == "f") flow(reader, phase == "s");
    if (phase == "C") counter(reader);
  }

  void describe(const JsonReader& reader) {
    const std::string what = reader.text("name");
    const std::int64_t pid = number(reader, "pid");
    const JsonReader args = reader.object("args");
    if (what == "process_name") name_process(pid, args.text("name"));
    if (what == "thread_name") name_thread(pid, number(reader, "tid"), args.text("name"));
  }

  void name_process(std::int64_t pid, const std::string& name) {
    ProtoWriter inner, track;
    inner.varint(descriptor::kPid, static_cast<std::uint64_t>(pid));
    inner.varint(descriptor::kSortIndex, static_cast<std::uint64_t>(processes_++));
    inner.text(descriptor::kProcessName, name);
    track.varint(descriptor::kUuid, process(pid));
    track.message(descriptor::kProcess, inner);
    put(packet::kTrackDescriptor, track);
  }

  void name_thread(std::int64_t pid, std::int64_t tid, const std::string& name) {
    ProtoWriter inner, track;
    inner.varint(descriptor::kPid, static_cast<std::uint64_t>(pid));
    inner.varint(descriptor::kTid, static_cast<std::uint64_t>(tid));
    inner.varint(descriptor::kSortIndex, static_cast<std::uint64_t>(tid));
    inner.text(descriptor::kThreadName, name);
    const std::uint64_t uuid = process(pid) + static_cast<std::uint64_t>(tid) + 1;
    track.varint(descriptor::kUuid, uuid);
    track.varint(descriptor::kParent, process(pid));
    track.message(descriptor::kThread, inner);
    put(packet::kTrackDescriptor, track);
    last_.emplace(uuid, kNone);
  }

  std::uint64_t track_of(const JsonReader& reader) {
    const std::uint64_t uuid =
        process(number(reader, "pid")) + static_cast<std::uint64_t>(number(reader, "tid")) + 1;
    if (!last_.contains(uuid)) reader.fail("tid", "must be of a thread that was named");
    return uuid;
  }

  void slice(const JsonReader& reader) {
    const std::uint64_t track = track_of(reader);
    const std::int64_t begin = nanoseconds(reader, "ts");
    last_[track] = slices_.size();
    slices_.push_back({track,
                       begin,
                       begin + nanoseconds(reader, "dur"),
                       reader.text("name"),
                       reader.text_or("cat", ""),
                       reader.has("args") ? reader.value("args") : Json::object(),
                       {}});
  }

  // A flow belongs to the previous slice on its track.
  void flow(const JsonReader& reader, bool begins) {
    const std::size_t slice = last_.at(track_of(reader));
    if (slice == kNone) reader.fail("tid", "a flow must follow the slice that it is of");
    const auto id = static_cast<std::uint64_t>(reader.integer("id", 0, std::int64_t{1} << 62));
    slices_[slice].flows.emplace_back(begins ? event::kFlow : event::kLastFlow, id);
  }

  void counter(const JsonReader& reader) {
    const std::int64_t pid = number(reader, "pid");
    const std::string name = reader.text("name");
    const JsonReader args = reader.object("args");
    for (const auto& item : args.json().items()) {
      const auto [known, added] = counters_.emplace(std::make_pair(pid, name + item.key()),
                                                    process(pid) + (1u << 30) + counters_.size());
      if (added) name_counter(pid, known->second, name, item.key() == "bytes");
      ProtoWriter sample;
      sample.varint(event::kType, event::kCounterValue);
      sample.varint(event::kTrack, known->second);
      sample.number(event::kDouble, args.number(item.key(), -1e300, 1e300));
      put(packet::kTrackEvent, sample, nanoseconds(reader, "ts"));
    }
  }

  void name_counter(std::int64_t pid, std::uint64_t uuid, const std::string& name, bool is_bytes) {
    ProtoWriter inner, track;
    if (is_bytes) inner.varint(descriptor::kUnit, descriptor::kBytes);
    track.varint(descriptor::kUuid, uuid);
    track.varint(descriptor::kParent, process(pid));
    track.text(descriptor::kName, name);
    track.message(descriptor::kCounter, inner);
    put(packet::kTrackDescriptor, track);
  }

  void put(const Slice& slice) {
    ProtoWriter begin, end;
    begin.varint(event::kType, event::kBegin);
    begin.varint(event::kTrack, slice.track);
    begin.text(event::kCategory, slice.category);
    begin.text(event::kName, slice.name);
    for (const auto& [key, value] : slice.args.items())
      begin.message(event::kAnnotation, annotation(key, value));
    for (const auto& [field, id] : slice.flows) begin.fixed64(field, id);
    end.varint(event::kType, event::kEnd);
    end.varint(event::kTrack, slice.track);
    put(packet::kTrackEvent, begin, slice.begin_ns);
    put(packet::kTrackEvent, end, slice.end_ns);
  }

  static ProtoWriter annotation(const std::string& key, const Json& value) {
    ProtoWriter writer;
    writer.text(event::kAnnotationName, key);
    if (value.is_number_integer())
      writer.varint(event::kInt, static_cast<std::uint64_t>(value.get<std::int64_t>()));
    else if (value.is_number())
      writer.number(event::kNumber, value.get<double>());
    else
      writer.text(event::kText, value.is_string() ? value.get<std::string>() : value.dump());
    return writer;
  }

  void put(int field, const ProtoWriter& inner, std::int64_t ns = -1) {
    ProtoWriter outer, all;
    if (ns >= 0) outer.varint(packet::kTimestamp, static_cast<std::uint64_t>(ns));
    outer.varint(packet::kSequence, kOneSequence);
    outer.message(field, inner);
    all.message(packet::kPacket, outer);
    bytes_ += all.bytes();
  }

  static constexpr std::size_t kNone = ~std::size_t{0};
  std::string file_, bytes_;
  std::vector<Slice> slices_;
  std::map<std::uint64_t, std::size_t> last_;  // by track: its last slice
  std::map<std::pair<std::int64_t, std::string>, std::uint64_t>
      counters_;  // by process and name: their track
  int processes_ = 0;
};

}  // namespace

std::string perfetto_trace(const Json& chrome, const std::string& file) {
  return PerfettoWriter(file).write(chrome);
}

}  // namespace rehearse

#include "scenario/inputs.h"

#include "cluster/read_changed.h"
#include "model/read.h"

namespace rehearse {

template <typename Key, typename Value, typename Read>
const Value& Inputs::once(std::map<Key, Kept<Value>>& known, const Key& key, const Read& read) {
  const std::scoped_lock lock(mutex_);
  auto found = known.find(key);
  if (found == known.end()) {
    const ReadRecord record;
    Value value = read();
    found = known.emplace(key, Kept<Value>{std::move(value), record.files()}).first;
  } else {
    note_read(found->second.files);
  }
  return found->second.value;
}

const Model& Inputs::model(const std::string& name, const std::string& as) {
  return once(models_, std::pair{name, as}, [&] { return read_model(name, as); });
}

const Cluster& Inputs::cluster(const std::string& name, const Json& changes) {
  return once(clusters_, std::pair{name, changes.dump()},
              [&] { return read_cluster_changed(name, changes); });
}

const Profile& Inputs::profile(const std::string& name) {
  return once(profiles_, name, [&] { return read_profile(name); });
}

}  // namespace rehearse

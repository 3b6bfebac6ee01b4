#include "cli/inputs.h"

#include "cluster/read_changed.h"
#include "model/read.h"

namespace rehearse {

namespace {

template <typename Key, typename Value, typename Read>
const Value& once(std::mutex& mutex, std::map<Key, Value>& known, const Key& key, const Read& read) {
  const std::scoped_lock lock(mutex);
  const auto found = known.find(key);
  return found != known.end() ? found->second : known.emplace(key, read()).first->second;
}

}  // namespace

const Model& Inputs::model(const std::string& name) {
  return once(mutex_, models_, name, [&] { return read_model(name); });
}

const Cluster& Inputs::cluster(const std::string& name, const Json& changes) {
  return once(mutex_, clusters_, {name, changes.dump()}, [&] { return read_cluster_changed(name, changes); });
}

const Profile& Inputs::profile(const std::string& name) {
  return once(mutex_, profiles_, name, [&] { return read_profile(name); });
}

}  // namespace rehearse

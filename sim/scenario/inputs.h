// Which models, clusters and profiles were read already? Each file is read once, for all users.
#pragma once

#include <map>
#include <mutex>
#include <string>

#include "base/json_reader.h"
#include "base/read_record.h"
#include "cluster/cluster.h"
#include "cost/profile.h"
#include "model/model.h"

namespace rehearse {

// Names or paths, as for read_model(), read_cluster_changed() and read_profile(). Any thread may call.
// Results live as long as this object, and count as read by the calling thread (ReadRecord).
class Inputs {
 public:
  const Model& model(const std::string& name, const std::string& as = "");
  const Cluster& cluster(const std::string& name, const Json& changes);
  const Profile& profile(const std::string& name);

 private:
  template <typename Value>
  struct Kept {
    Value value;
    FileDigests files;  // source of the value
  };
  template <typename Key, typename Value, typename Read>
  const Value& once(std::map<Key, Kept<Value>>& known, const Key& key, const Read& read);

  std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, Kept<Model>> models_;
  std::map<std::pair<std::string, std::string>, Kept<Cluster>> clusters_;  // by name and changes
  std::map<std::string, Kept<Profile>> profiles_;
};

}  // namespace rehearse

// Which results did a run of nccl-tests write with -J?
#pragma once

#include "base/json_reader.h"
#include "calibrate/import/nccl_log.h"

namespace rehearse::nccl {

LogRun read_json_log(const JsonReader& reader);

}  // namespace rehearse::nccl

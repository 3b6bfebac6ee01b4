// Which environment variables does a script set for one of its commands?
#pragma once

#include <vector>

#include "frameworks/environment.h"
#include "frameworks/shell_run.h"

namespace rehearse {

// Those that a library of a step reads: of the script, before the command, and of its launcher (mpirun -x,
// docker --env, srun --export, ray --runtime-env-json).
std::vector<SetVariable> environment_of(const ShellRun& run, const ShellCommand& command);

}  // namespace rehearse

// Which environment variables does a script set for one of its commands?
#pragma once

#include <vector>

#include "frameworks/environment.h"
#include "frameworks/shell_run.h"

namespace rehearse {

// Variables that a library of a step reads. The script sets them, or an assignment before the command, or its
// launcher: mpirun -x, docker --env, srun --export, ray --runtime-env-json.
std::vector<SetVariable> environment_of(const ShellRun& run, const ShellCommand& command);

}  // namespace rehearse

// How many processes does the launcher before a training program start, where it is not torchrun?
#pragma once

#include <string>

#include "frameworks/script_flags.h"
#include "frameworks/shell_run.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

// The last part of a path.
std::string last_step(const std::string& path);

// The value that a variable has for a command. An assignment before the command wins over the script's. ""
// where nothing sets the variable, and "$NAME" where the text does not decide it.
std::string variable_of(const std::string& name, const ShellRun& run, const ShellCommand& command);

// Adds --nproc-per-node and --nnodes, unless the command says them. They come from mpirun, msrun, srun,
// deepspeed --include, ms-swift's NPROC_PER_NODE or the batch job. `program`: the place of the training
// program; 0: none.
void add_launcher(const ShellRun& run, const ShellCommand& command, std::size_t program, const SlurmJob& job,
                  ScriptFlags& found);

// The same from the batch job alone.
void add_job(const SlurmJob& job, ScriptFlags& found);

}  // namespace rehearse

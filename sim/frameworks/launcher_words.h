// How many processes does the launcher before a training program start, where it is not torchrun?
#pragma once

#include <string>

#include "frameworks/script_flags.h"
#include "frameworks/shell_run.h"
#include "frameworks/slurm_job.h"

namespace rehearse {

// The value of a variable of a command: before it, else of the script. "" where nothing sets it, and "$NAME"
// where the text does not decide it.
std::string variable_of(const std::string& name, const ShellRun& run, const ShellCommand& command);

// Adds --nproc-per-node and --nnodes from mpirun, msrun, srun, deepspeed --include, ms-swift's NPROC_PER_NODE
// or the batch job, unless the command says them. `program`: the place of the training program; 0: none.
void add_launcher(const ShellRun& run, const ShellCommand& command, std::size_t program, const SlurmJob& job,
                  ScriptFlags& found);

// The same from the batch job alone.
void add_job(const SlurmJob& job, ScriptFlags& found);

}  // namespace rehearse

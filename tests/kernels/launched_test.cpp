// Data that a process reads from its launcher's environment.
#include "kernels/communicate/launched.h"

#include <cstdlib>
#include <set>

#include "kernels/device.h"
#include "kernels/support.h"

namespace rehearse::kernels {
namespace {

class Launcher : public testing::Test {
 protected:
  ~Launcher() override {
    for (const std::string& name : set_) unsetenv(name.c_str());
  }
  void set(const std::string& name, const std::string& value) {
    setenv(name.c_str(), value.c_str(), 1);
    set_.push_back(name);
  }

 private:
  std::vector<std::string> set_;
};

TEST_F(Launcher, NoneIsOneRankAlone) {
  EXPECT_EQ(launched().rank, 0);
  EXPECT_EQ(launched().size, 1);
}

TEST_F(Launcher, TorchrunIsUnderstood) {
  set("RANK", "5");
  set("WORLD_SIZE", "8");
  set("LOCAL_RANK", "1");
  set("MASTER_ADDR", "node-a");
  set("MASTER_PORT", "1234");
  const Launched self = launched();
  EXPECT_EQ(self.rank, 5);
  EXPECT_EQ(self.size, 8);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.host, "node-a");
  EXPECT_EQ(self.port, 1234);
}

TEST_F(Launcher, MpirunIsUnderstood) {
  set("OMPI_COMM_WORLD_RANK", "2");
  set("OMPI_COMM_WORLD_SIZE", "4");
  set("OMPI_COMM_WORLD_LOCAL_RANK", "2");
  EXPECT_EQ(launched().rank, 2);
  EXPECT_EQ(launched().host, "127.0.0.1");
}

TEST_F(Launcher, SrunIsUnderstood) {
  set("SLURM_PROCID", "9");
  set("SLURM_NTASKS", "32");  // of the job, of which this is one step
  set("SLURM_STEP_NUM_TASKS", "16");
  set("SLURM_LOCALID", "1");
  set("SLURM_STEP_NUM_NODES", "2");
  EXPECT_THROW(launched(), DeviceError);
  set("SLURM_STEP_NODELIST", "node[08-09]");
  set("PMI_RANK", "9");  // by --mpi=pmi2
  const Launched self = launched();
  EXPECT_EQ(self.rank, 9);
  EXPECT_EQ(self.size, 16);
  EXPECT_EQ(self.local_rank, 1);
  EXPECT_EQ(self.host, "node08");
  set("MASTER_ADDR", "node-a");
  EXPECT_EQ(launched().host, "node-a");
}

TEST_F(Launcher, SrunNamesItsMachinesInBrackets) {
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  set("SLURM_LOCALID", "0");
  set("SLURM_STEP_NUM_NODES", "2");
  const std::vector<std::pair<std::string, std::string>> first = {
      {"alpha,beta", "alpha"},     {"n[3,5-7],m1", "n3"}, {"gpu-[001-128]-ib", "gpu-001-ib"},
      {"r[1,3]n[08-16]", "r1n08"}, {"n7,m[1-2]", "n7"},
  };
  for (const auto& [names, machine] : first) {
    set("SLURM_STEP_NODELIST", names);
    EXPECT_EQ(launched().host, machine) << names;
  }
}

TEST_F(Launcher, StepsOfSrunMeetAtPortsOfTheirOwn) {
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  set("SLURM_LOCALID", "0");
  EXPECT_EQ(launched().port, 29500);
  std::set<int> ports;
  for (const char* job : {"7", "8", "2147483647"}) {
    for (const char* step : {"0", "1", "100"}) {
      set("SLURM_JOB_ID", job);
      set("SLURM_STEP_ID", step);
      ports.insert(launched().port);
    }
  }
  EXPECT_EQ(ports.size(), 9U);
  set("SLURM_STEP_ID", "4294967290");  // the shell that salloc opens
  ports.insert(launched().port);
  EXPECT_GE(*ports.begin(), 20000);
  EXPECT_LT(*ports.rbegin(), 32000);
  set("MASTER_PORT", "1234");
  EXPECT_EQ(launched().port, 1234);
}

TEST_F(Launcher, PortsThatAreNoneAreRefused) {
  set("RANK", "0");
  set("WORLD_SIZE", "2");
  set("LOCAL_RANK", "0");
  const auto refusal = [&](const char* port) -> std::string {
    set("MASTER_PORT", port);
    try {
      launched();
    } catch (const Refused& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_EQ(refusal("1"), "");
  EXPECT_EQ(refusal("65535"), "");
  EXPECT_EQ(refusal("65536"), "MASTER_PORT is a port from 1 to 65535 (found 65536); nearest legal: 65535");
  EXPECT_EQ(refusal("0"), "MASTER_PORT is a port from 1 to 65535 (found 0); nearest legal: 1");
  EXPECT_NE(refusal("4294967297"), "");
  EXPECT_NE(refusal("99999999999999999999"), "");
  EXPECT_NE(refusal("-1"), "");
  set("TORCHELASTIC_USE_AGENT_STORE", "True");
  EXPECT_EQ(refusal("65534"), "");
  EXPECT_EQ(launched().port, 65535);
  EXPECT_NE(refusal("65535"), "");
}

TEST_F(Launcher, JobsAreToldApartByTheirIds) {
  set("RANK", "0");
  set("WORLD_SIZE", "2");
  set("LOCAL_RANK", "0");
  EXPECT_EQ(launched().job_id, "");
  set("TORCHELASTIC_RUN_ID", "a");
  EXPECT_EQ(launched().job_id, "TORCHELASTIC_RUN_ID a");
  set("SLURM_JOB_ID", "12");
  set("SLURM_STEP_ID", "3");  // each machine's torchrun may be a step of its own
  EXPECT_EQ(launched().job_id, "TORCHELASTIC_RUN_ID a, SLURM_JOB_ID 12");
}

TEST_F(Launcher, StepsOfOneSlurmJobAreToldApart) {
  set("SLURM_PROCID", "0");
  set("SLURM_STEP_NUM_TASKS", "2");
  set("SLURM_LOCALID", "0");
  set("SLURM_JOB_ID", "12");
  set("SLURM_STEP_ID", "3");
  EXPECT_EQ(launched().job_id, "SLURM_JOB_ID 12, SLURM_STEP_ID 3");
}

TEST_F(Launcher, ABatchScriptIsOneRankAlone) {
  set("SLURM_PROCID", "0");
  set("SLURM_NTASKS", "4");
  set("SLURM_LOCALID", "0");
  EXPECT_EQ(launched().size, 1);
  EXPECT_EQ(launched().launcher, "");
}

TEST_F(Launcher, MayShowEachProcessTheGpusOfAllOrItsOwnAlone) {
  set("SLURM_PROCID", "3");
  set("SLURM_STEP_NUM_TASKS", "4");
  set("SLURM_LOCALID", "3");
  EXPECT_EQ(gpu_of(launched(), 4), 3);
  EXPECT_EQ(gpu_of(launched(), 1), 0);
  EXPECT_EQ(gpu_of(launched(), 2), 3);  // which is refused
}

TEST_F(Launcher, NonsenseIsRefused) {
  set("RANK", "8");
  EXPECT_THROW(launched(), DeviceError);
  set("WORLD_SIZE", "8");
  set("LOCAL_RANK", "0");
  EXPECT_THROW(launched(), DeviceError);
  for (const char* rank : {"-1", "4294967296", "99999999999999999999"}) {
    set("RANK", rank);
    EXPECT_THROW(launched(), DeviceError) << rank;
  }
}

}  // namespace
}  // namespace rehearse::kernels

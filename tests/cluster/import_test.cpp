// Dumps of NCCL and nvidia-smi become nodes; broken ones become errors.
#include "cluster/import.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "cluster/route.h"
#include "cluster_file.h"

namespace rehearse {
namespace {

using testing::ElementsAre;

// Two sockets, each with a PCIe switch above one GPU and one card; both GPUs on NVSwitches.
std::string nccl_dump() {
  std::string xml = R"(<system version="1">)";
  for (int i = 0; i < 2; ++i) {
    xml += fmt::format(R"(<cpu numaid="{0}" arch="x86_64" vendor="GenuineIntel">
 <pci busid="0000:{0}8:00.0" class="0x060400" link_speed="32.0 GT/s PCIe" link_width="16">
  <pci busid="0000:{0}9:00.0" class="0x030200" link_speed="32.0 GT/s PCIe" link_width="16">
   <gpu dev="{0}" sm="90" rank="{0}" gdr="1"><nvlink target="0000:05:00.0" count="18" tclass="0x068000"/></gpu></pci>
  <pci busid="0000:{0}a:00.0" class="0x020700" link_speed="16.0 GT/s PCIe" link_width="16">
   <nic><net name="mlx5_{0}" dev="{0}" speed="200000" port="1" gdr="1"/></nic></pci></pci></cpu>)",
                       i);
  }
  return xml + "</system>";
}

std::string smi_dump() {
  return "        \tGPU0\tGPU1\tGPU2\tGPU3\tNIC0\tNIC1\tCPU Affinity\tNUMA Affinity\n"
         "GPU0\t X \tNV4\tNV4\tNV4\tPIX\tSYS\t0-31,64-95\t0\n"
         "GPU1\tNV4\t X \tNV4\tNV4\tPIX\tSYS\t0-31,64-95\t0\n"
         "GPU2\tNV4\tNV4\t X \tNV4\tSYS\tPXB\t32-63\t1\n"
         "GPU3\tNV4\tNV4\tNV4\t X \tSYS\tPXB\t32-63\t1\n"
         "NIC0\tPIX\tPIX\tSYS\tSYS\t X \tSYS\n"
         "NIC1\tSYS\tSYS\tPXB\tPXB\tSYS\t X \n\nLegend:\n\n  X    = Self\n  NV#  = Connection\n\n"
         "NIC Legend:\n\n  NIC0: mlx5_0\n  NIC1: mlx5_1\n";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

TEST(NcclXml, GivesGpusCardsAndTheLinksBetween) {
  const Cluster cluster = import_nccl(nccl_dump(), "dump.xml");
  EXPECT_EQ(cluster.node.gpus, 2);
  EXPECT_EQ(cluster.node.nics, 2);
  EXPECT_EQ(cluster.node.gpu_link_kind, "nvswitch");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 25e9);
  EXPECT_THAT(cluster.node.nic_of_gpu, ElementsAre(0, 1));
}

TEST(NcclXml, WithoutNvlinkGpusMeetOverPcieAndTheCpus) {
  std::string xml = nccl_dump();
  for (int i = 0; i < 2; ++i)
    xml = replaced(xml, R"(<nvlink target="0000:05:00.0" count="18" tclass="0x068000"/>)", "");
  const Cluster cluster = import_nccl(xml, "dump.xml");
  EXPECT_EQ(cluster.node.gpu_link_kind, "pcie");
  const Route route = route_between(cluster, 0, 1);
  EXPECT_EQ(route.hops.size(), 5U);  // gpu, switch, cpu, cpu, switch, gpu
  EXPECT_DOUBLE_EQ(route.port.bandwidth, 10e9);
}

TEST(NcclXml, MeshesAreToldFromBothSidesAndCountOnce) {
  std::string xml = nccl_dump();
  xml = replaced(xml, R"(target="0000:05:00.0" count="18" tclass="0x068000")",
                 R"(target="0000:19:00.0" count="4" tclass="0x030200")");
  xml = replaced(xml, R"(target="0000:05:00.0" count="18" tclass="0x068000")",
                 R"(target="0000:09:00.0" count="4" tclass="0x030200")");
  const Cluster cluster = import_nccl(xml, "dump.xml");
  EXPECT_EQ(cluster.node.gpu_link_kind, "nvlink-mesh");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 100e9);
}

TEST(NcclXml, EveryTruncationIsAnError) {
  const std::string xml = nccl_dump();
  for (std::size_t length = 0; length < xml.size(); length += 7)
    EXPECT_THROW(import_nccl(xml.substr(0, length), "dump.xml"), InputError) << length;
}

TEST(NcclXml, NonsenseIsAnError) {
  const std::string xml = nccl_dump();
  for (const auto& [what, by] :
       std::vector<std::pair<std::string, std::string>>{{"link_width=\"16\"", "link_width=\"0\""},
                                                        {"link_width=\"16\"", "link_width=\"-16\""},
                                                        {"32.0 GT/s", "33.0 GT/s"},
                                                        {"speed=\"200000\"", "speed=\"0\""},
                                                        {"speed=\"200000\"", "speed=\"1e300\""},
                                                        {"speed=\"200000\"", "speed=\"100000\""},
                                                        {"count=\"18\"", "count=\"-1\""},
                                                        {"0000:19:00.0", "0000:09:00.0"},
                                                        {"<system", "<sistem"}})
    EXPECT_THROW(import_nccl(replaced(xml, what, by), "dump.xml"), InputError) << what << " -> " << by;
}

TEST(NcclXml, DeepNestingIsAnErrorNotACrash) {
  std::string xml = "<system><cpu>";
  for (int i = 0; i < 10'000; ++i)
    xml += fmt::format(R"(<pci busid="{}" link_speed="16 GT/s" link_width="16">)", i);
  for (int i = 0; i < 10'000; ++i) xml += "</pci>";
  EXPECT_THROW(import_nccl(xml + "</cpu></system>", "dump.xml"), InputError);
}

TEST(SmiMatrix, GivesMeshSwitchesAndAffinity) {
  const Cluster cluster = import_smi(smi_dump(), "topo.txt");
  EXPECT_EQ(cluster.node.gpus, 4);
  EXPECT_EQ(cluster.node.nics, 2);
  EXPECT_EQ(cluster.node.gpu_link_kind, "nvlink-mesh");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(route_between(cluster, 0, 3).port.bandwidth, 100e9);
  EXPECT_THAT(cluster.node.nic_of_gpu, ElementsAre(0, 0, 1, 1));
}

TEST(SmiMatrix, UnderlinedHeadersAreRead) {
  EXPECT_EQ(import_smi(replaced(smi_dump(), "GPU0\tGPU1", "\x1b[4mGPU0\x1b[0m\tGPU1"), "topo.txt").node.gpus,
            4);
}

TEST(SmiMatrix, MoreLinksThanAGpuHasLeadThroughASwitch) {
  std::string text = smi_dump();
  for (std::size_t at = text.find("NV4"); at != std::string::npos; at = text.find("NV4", at))
    text.replace(at, 3, "NV18");
  const Cluster cluster = import_smi(text, "topo.txt");
  EXPECT_EQ(cluster.node.gpu_link_kind, "nvswitch");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 450e9);
}

TEST(SmiMatrix, EveryTruncationOfTheMatrixIsAnError) {
  const std::string text = smi_dump();
  const std::size_t whole = text.rfind("\t X ");
  for (std::size_t length = 0; length < whole; ++length)
    EXPECT_THROW(import_smi(text.substr(0, length), "topo.txt"), InputError) << length;
}

TEST(SmiMatrix, BothSidesMustAgree) {
  EXPECT_THROW(import_smi(replaced(smi_dump(), "NV4", "NV2"), "topo.txt"), InputError);
  EXPECT_THROW(import_smi(replaced(smi_dump(), " X ", "NV4"), "topo.txt"), InputError);
  EXPECT_THROW(import_smi(replaced(smi_dump(), "NV4", "NV999999999999"), "topo.txt"), InputError);
}

TEST(Imported, AClusterFileOfItKeepsTheWiring) {
  const Cluster imported = import_smi(smi_dump(), "topo.txt");
  const Cluster cluster = read_cluster(write_cluster(write_imported(imported, "dgx-a100")));
  EXPECT_EQ(cluster.node.gpus, 4);
  EXPECT_EQ(cluster.node.wiring.size(), imported.node.wiring.size());
  EXPECT_EQ(cluster.node.nic_of_gpu, imported.node.nic_of_gpu);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 25e9);  // the matrix tells none
  EXPECT_EQ(cluster.gpu.name, "A100-SXM4-80GB");
}

}  // namespace
}  // namespace rehearse

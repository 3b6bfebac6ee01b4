// Dumps of NCCL and nvidia-smi become nodes; broken ones become errors.
#include "cluster/imported_node.h"

#include <fmt/core.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>

#include "base/error.h"
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
  const Cluster cluster = import_nccl(nccl_dump(), "dump.xml").cluster;
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
  const Cluster cluster = import_nccl(xml, "dump.xml").cluster;
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
  const Cluster cluster = import_nccl(xml, "dump.xml").cluster;
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
       std::vector<std::pair<std::string, std::string>>{{"link_width=\"16\"", "link_width=\"-16\""},
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
  const Cluster cluster = import_smi(smi_dump(), "topo.txt").cluster;
  EXPECT_EQ(cluster.node.gpus, 4);
  EXPECT_EQ(cluster.node.nics, 2);
  EXPECT_EQ(cluster.node.gpu_link_kind, "nvlink-mesh");
  EXPECT_DOUBLE_EQ(cluster.node.gpu_link.bandwidth, 300e9);
  EXPECT_DOUBLE_EQ(route_between(cluster, 0, 3).port.bandwidth, 100e9);
  EXPECT_THAT(cluster.node.nic_of_gpu, ElementsAre(0, 0, 1, 1));
}

TEST(SmiMatrix, UnderlinedHeadersAreRead) {
  EXPECT_EQ(import_smi(replaced(smi_dump(), "GPU0\tGPU1", "\x1b[4mGPU0\x1b[0m\tGPU1"), "topo.txt")
                .cluster.node.gpus,
            4);
}

TEST(SmiMatrix, MoreLinksThanAGpuHasLeadThroughASwitch) {
  std::string text = smi_dump();
  for (std::size_t at = text.find("NV4"); at != std::string::npos; at = text.find("NV4", at))
    text.replace(at, 3, "NV18");
  const Cluster cluster = import_smi(text, "topo.txt").cluster;
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

TEST(ImportedNode, AClusterFileOfItKeepsTheWiring) {
  const Cluster like = read_cluster("dgx-a100");
  ImportedNode imported = import_smi(smi_dump(), "topo.txt", &like);
  complete(imported, like);
  const Cluster cluster = read_cluster(write_cluster(write_imported(imported, "dgx-a100", like)));
  EXPECT_EQ(cluster.node.gpus, 4);
  EXPECT_EQ(cluster.node.wiring.size(), imported.cluster.node.wiring.size());
  EXPECT_EQ(cluster.node.nic_of_gpu, imported.cluster.node.nic_of_gpu);
  EXPECT_DOUBLE_EQ(cluster.node.nic.bandwidth, 25e9);  // the matrix tells none
  EXPECT_EQ(cluster.gpu.name, "A100-SXM4-80GB");
}

const std::string kDumps = SOURCE_DIR "/tests/cluster/data/";

struct Saved {
  ImportedNode imported;
  Cluster cluster;  // the file that is made of it, read again
  std::string notes() const { return join(imported.notes, "\n"); }
};

Saved saved(const std::string& dump, const char* like_name) {
  const Cluster like = read_cluster(like_name);
  const ImportedNode imported = import_topology(kDumps + dump, &like);
  return {imported, read_cluster(write_cluster(write_imported(imported, like_name, like)))};
}

int links_to_switch(const Node& node) {
  int links = 0;
  for (const NodeLink& link : node.wiring) links += link.kind == "nvlink" && link.to == "nvswitch" ? 1 : 0;
  return links;
}

TEST(SmiMatrix, NvlinksAreAsFastAsThoseOfTheGpuItIsLike) {
  const Saved b200 = saved("smi_b200.txt", "dgx-b200");
  EXPECT_EQ(b200.cluster.node.gpu_link_kind, "nvswitch");
  EXPECT_DOUBLE_EQ(b200.cluster.node.gpu_link.bandwidth, 900e9);
  EXPECT_EQ(b200.cluster.node.nics, 8);
  EXPECT_TRUE(b200.imported.notes.empty()) << b200.notes();
  EXPECT_DOUBLE_EQ(saved("smi_b200.txt", "dgx-h100").cluster.node.gpu_link.bandwidth, 450e9);
  const ImportedNode unknown = import_topology(kDumps + "smi_b200.txt");
  EXPECT_DOUBLE_EQ(unknown.cluster.node.gpu_link.bandwidth, 450e9);
  EXPECT_THAT(join(unknown.notes), testing::HasSubstr("names no GPU"));
}

TEST(SmiMatrix, AGpuThatLostItsLinksIsReachedByPcie) {
  const Saved node = saved("smi_b200_gpu2_without_nvlink.txt", "dgx-b200");
  EXPECT_EQ(node.cluster.node.gpu_link_kind, "nvswitch");
  EXPECT_DOUBLE_EQ(node.cluster.node.gpu_link.bandwidth, 900e9);
  EXPECT_EQ(links_to_switch(node.cluster.node), 7);
  EXPECT_DOUBLE_EQ(route_between(node.cluster, 0, 1).port.bandwidth, 900e9);
  EXPECT_LT(route_between(node.cluster, 0, 2).port.bandwidth, 100e9);
  EXPECT_THAT(node.notes(), testing::HasSubstr("warning: GPU2 has lost the links"));
  EXPECT_THAT(node.notes(), testing::HasSubstr("12 NICs"));
}

TEST(SmiMatrix, FewerLinksOfAGpuAreNamed) {
  std::string text = smi_dump();
  for (std::size_t at = text.find("NV4"); at != std::string::npos; at = text.find("NV4", at))
    text.replace(at, 3, "NV18");
  const std::string row = "GPU3\tNV18\tNV18\tNV18";
  text = replaced(text, row, "GPU3\tNV16\tNV16\tNV16");
  for (int gpu = 0; gpu < 3; ++gpu) {
    const std::size_t line = text.find(fmt::format("\nGPU{}\t", gpu));
    const std::size_t last = text.rfind("NV18", text.find("\tP", line));
    text.replace(std::min(last, text.rfind("NV18", text.find("\tSYS", line))), 4, "NV16");
  }
  const ImportedNode imported = import_smi(text, "topo.txt");
  EXPECT_DOUBLE_EQ(imported.cluster.node.gpu_link.bandwidth, 400e9);
  EXPECT_THAT(join(imported.notes), testing::HasSubstr("GPU3 has fewer NVLinks"));
}

// Bridges join pairs; traffic that leaves a pair crosses PCIe.
TEST(SmiMatrix, BridgesAreIslands) {
  const std::string text =
      "\tGPU0\tGPU1\tGPU2\tGPU3\tCPU Affinity\n"
      "GPU0\t X \tNV4\tSYS\tSYS\t0-15\nGPU1\tNV4\t X \tSYS\tSYS\t0-15\n"
      "GPU2\tSYS\tSYS\t X \tNV4\t16-31\nGPU3\tSYS\tSYS\tNV4\t X \t16-31\n";
  const Cluster like = read_cluster("a40-nvlink-pairs");
  ImportedNode imported = import_smi(text, "topo.txt", &like);
  EXPECT_EQ(imported.cluster.node.gpu_link_kind, "pcie");
  EXPECT_EQ(imported.cluster.nccl.island_gpus, 2);
  EXPECT_DOUBLE_EQ(imported.cluster.nccl.island_bandwidth, 56.25e9);
  complete(imported, like);
  const Cluster cluster = read_cluster(write_cluster(write_imported(imported, "a40-nvlink-pairs", like)));
  EXPECT_EQ(cluster.nccl.island_gpus, 2);
}

TEST(SmiMatrix, EveryColumnBeforeTheAffinitiesIsADevice) {
  const Saved node = saved("smi_mlx5_bond_names.txt", "dgx-h100");
  EXPECT_EQ(node.cluster.node.nics, 8);
  EXPECT_DOUBLE_EQ(node.cluster.node.nic.bandwidth, 50e9);
  EXPECT_THAT(node.cluster.node.nic_of_gpu, ElementsAre(0, 1, 2, 3, 4, 5, 6, 7));
  EXPECT_EQ(node.cluster.max_nodes, 0);
  for (const char* name : {"bnxt_re_bond0", "irdma0", "hfi1_0", "roceP1p1s0f0", "ibp24s0"}) {
    std::string text = smi_dump();
    while (text.find("NIC1") != std::string::npos) text = replaced(text, "NIC1", name);
    EXPECT_EQ(import_smi(text, "topo.txt").cluster.node.nics, 2) << name;
  }
}

TEST(SmiMatrix, OfATrayKeepsTheDomain) {
  const Saved tray = saved("smi_gb200_tray.txt", "gb200-nvl72");
  EXPECT_EQ(tray.cluster.node.gpus, 72);
  EXPECT_EQ(tray.cluster.node.nics, 72);
  EXPECT_DOUBLE_EQ(tray.cluster.node.gpu_link.bandwidth, 900e9);
  EXPECT_EQ(tray.imported.cluster.node.gpus, 72);
  EXPECT_THAT(tray.notes(), testing::HasSubstr("the NVLink domain of 72 GPUs"));
}

TEST(SmiMatrix, WithoutNicsTakesThoseOfTheClusterItIsLike) {
  const Saved node = saved("smi_gpus_only_with_affinity.txt", "dgx-h100");
  std::set<std::string> cpus;
  for (const NodeLink& link : node.cluster.node.wiring) {
    for (const std::string& end : {link.from, link.to})
      if (end.starts_with("cpu")) cpus.insert(end);
  }
  EXPECT_EQ(cpus.size(), 2U) << "by the column CPU Affinity";
  EXPECT_EQ(node.cluster.node.nics, 8);
  EXPECT_EQ(node.cluster.max_nodes, 0);
  EXPECT_GT(route_between(node.cluster, 0, 8).port.bandwidth, 0);
  EXPECT_THAT(node.notes(), testing::HasSubstr("names no NICs"));
}

TEST(SmiMatrix, NicsOfNoKnownRateAreLeftOutWithANote) {
  const Saved node = saved("smi_mlx5_bond_names.txt", "a100-pcie-80gb");
  EXPECT_EQ(node.cluster.node.nics, 0);
  EXPECT_EQ(node.cluster.max_nodes, 1);
  EXPECT_THAT(node.notes(), testing::HasSubstr("are ignored"));
}

// `topo -mp` prints the ways over PCIe in place of the NVLinks.
TEST(SmiMatrix, WithoutNvlinksWhereThereShouldBeSomeIsNamed) {
  std::string text = smi_dump();
  while (text.find("NV4") != std::string::npos) text = replaced(text, "NV4", "SYS");
  const Cluster like = read_cluster("dgx-a100");
  ImportedNode imported = import_smi(text, "topo.txt", &like);
  complete(imported, like);
  EXPECT_EQ(imported.cluster.node.gpu_link_kind, "pcie");
  EXPECT_THAT(join(imported.notes), testing::HasSubstr("nvidia-smi topo -m"));
}

std::string refusal_of(const std::string& text) {
  try {
    import_smi(text, "topo.txt");
  } catch (const InputError& error) {
    return error.what();
  }
  return "accepted";
}

TEST(SmiMatrix, OtherTablesAreNamed) {
  try {
    import_topology(kDumps + "smi_p2p_not_m.txt");
    FAIL();
  } catch (const InputError& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr("topo -p2p"));
  }
  EXPECT_THAT(refusal_of("\tGPU0\tGPU1\n GPU0\tX\tGNS\n GPU1\tGNS\tX\n"), testing::HasSubstr("topo -p2p"));
  EXPECT_THAT(refusal_of("==== ROCm System Management Interface ====\n       GPU0  GPU1\nGPU0   0  XGMI\n"),
              testing::HasSubstr("rocm-smi --showtopo"));
}

TEST(NcclXml, PciDevicesStandForGpusAndNicsByTheirClass) {
  const Saved node = saved("no_gpu_elements.xml", "dgx-h100");
  EXPECT_EQ(node.cluster.node.gpus, 2);
  EXPECT_EQ(node.cluster.node.nics, 2);
  EXPECT_THAT(node.cluster.node.nic_of_gpu, ElementsAre(0, 1));
  EXPECT_EQ(node.cluster.node.gpu_link_kind, "nvswitch") << "such files name no NVLinks";
  EXPECT_DOUBLE_EQ(route_between(node.cluster, 0, 1).port.bandwidth, 450e9);
  EXPECT_DOUBLE_EQ(node.cluster.node.nic.bandwidth, 50e9);
  EXPECT_THAT(node.notes(), testing::HasSubstr("no <gpu> elements"));
}

TEST(NcclXml, TakesNcclsDefaultsWhereTheKernelTellsNoLinkSpeed) {
  const ImportedNode node = import_topology(kDumps + "empty_link_speed.xml");
  EXPECT_EQ(node.cluster.node.gpus, 2);
  EXPECT_EQ(node.cluster.node.gpu_link_kind, "nvlink-mesh");
  for (const NodeLink& link : node.cluster.node.wiring) {
    if (!is_gpu(link.to) || link.kind != "pcie") continue;
    EXPECT_DOUBLE_EQ(link.bandwidth, 12e9) << "16 lanes of 8 GT/s";
  }
  EXPECT_THAT(join(node.notes), testing::HasSubstr("2 PCI devices"));
  const std::string width = replaced(nccl_dump(), "link_width=\"16\"", "link_width=\"0\"");
  EXPECT_THAT(join(import_nccl(width, "dump.xml").notes), testing::HasSubstr("1 PCI devices"));
}

TEST(NcclXml, InfinityFabricJoinsGpus) {
  const Saved node = saved("xgmi.xml", "mi300x-8");
  EXPECT_EQ(node.cluster.node.gpu_link_kind, "xgmi");
  EXPECT_DOUBLE_EQ(node.cluster.node.gpu_link.bandwidth, 64e9);
  EXPECT_DOUBLE_EQ(route_between(node.cluster, 0, 1).port.bandwidth, 64e9);
  std::string xml = "<system version=\"2\"><cpu arch=\"x86_64\" vendor=\"AuthenticAMD\">";
  for (int i = 0; i < 2; ++i)
    xml += fmt::format(
        R"(<pci busid="000{0}:00:00.0" class="0x038000" link_speed="16.0 GT/s PCIe" link_width="16">
 <gpu dev="{0}" sm="104" gcn="GCN" rank="{0}"><xgmi target="000{1}:00:00.0" count="4" tclass="0x038000"/></gpu></pci>)",
        i, 1 - i);
  xml += "</cpu></system>";
  const auto rate = [&](const std::string& gcn) {
    std::string named = xml;
    while (named.find("GCN") != std::string::npos) named = replaced(named, "GCN", gcn);
    return import_nccl(named, "dump.xml").cluster.node.gpu_link.bandwidth;
  };
  EXPECT_DOUBLE_EQ(rate("gfx90a"), 200e9);
  EXPECT_DOUBLE_EQ(rate("910"), 200e9) << "as RCCL named gfx90a";
  EXPECT_DOUBLE_EQ(rate("gfx950"), 4 * 76.8e9);
  EXPECT_DOUBLE_EQ(rate("908"), 184e9);
  EXPECT_THROW(rate("gfx1"), InputError);
}

}  // namespace
}  // namespace rehearse

// How do the figures of a report look? Tiles, bars and tables that all pages share.
"use strict";
Rehearse.tiles = function (report) {
  const make = Rehearse.element, memory = report.memory, mean = report.mean_time_s;
  const tile = (name, value, more, state) => make(
    "div", { class: "tile" + (state ? " " + state : "") }, make("h3", {}, name), make("strong", {}, value),
    make("small", {}, more));
  const band = report.step_time_band_s, beside = memory.outside_allocator;
  const parts = [["CUDA context", beside.context_bytes], ["NCCL buffers", beside.nccl_bytes]]
    .filter(([, bytes]) => bytes > 0).map(([name, bytes]) => `${name} ${Rehearse.bytes(bytes)}`);
  const peak = memory.needed_bytes - beside.context_bytes - beside.nccl_bytes;
  const sum = parts.length ? `: ${[Rehearse.bytes(peak) + " at peak", ...parts].join(", ")}` : "";
  return make(
    "div", { class: "tiles" },
    tile("step time", Rehearse.seconds(report.step_time_s), band
      ? `${Rehearse.seconds(band[0], 3)} to ${Rehearse.seconds(band[1], 3)}, 90 % interval`
      : `${Rehearse.significant(report.samples_per_s, 3)} sequences/s`),
    tile("tokens/s", Rehearse.count(report.tokens_per_s), `${Rehearse.count(report.tokens_per_s_per_gpu)} tokens/s/GPU`),
    tile("MFU", Rehearse.percent(report.mfu),
      `${Rehearse.significant(report.model_tflops_per_gpu, 3)} TFLOP/s/GPU; HFU ${Rehearse.percent(report.hfu)}`),
    tile("compute idle", Rehearse.percent(report.bubble_fraction.mean),
      `pipeline bubble ${Rehearse.percent(mean.bubble / report.step_time_s)} ` +
      `(ideal ${Rehearse.percent(report.bubble_fraction_ideal)}), waiting for communication ` +
      `${Rehearse.percent((mean.exposed_pp + mean.exposed_dp + mean.exposed_offload) / report.step_time_s)}; ` +
      `worst ${Rehearse.percent(report.bubble_fraction.worst)} (rank ${report.bubble_fraction.worst_rank})`),
    tile(memory.verdict === "fits" ? "memory" : memory.verdict, Rehearse.bytes(memory.needed_bytes),
      `of ${Rehearse.bytes(memory.capacity_bytes)}; fullest is rank ${memory.fullest_rank}` + sum,
      { "fits": "", "tight": "tight", "not decided": "tight", "does not fit": "bad" }[memory.verdict]));
};

// Before the figures of a plan that cannot run, or only just, or whose options are not all counted; nothing for one
// that fits.
Rehearse.verdict = function (report) {
  const memory = report.memory, omitted = report.omitted_effects || [];
  if (omitted.length > 0) {
    const names = omitted.map((each) => `${each.option} (${each.changes.join(", ")})`).join(", ");
    return Rehearse.element("p", { class: "verdict tight" },
      `not a verdict: not counted, with more than 10 % of effect: ${names}`);
  }
  if (memory.verdict === "fits") return null;
  const setting = "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True", free = Rehearse.bytes(Math.abs(memory.free_bytes));
  const words = memory.verdict === "tight"
    ? `tight: ${free} of ${Rehearse.bytes(memory.capacity_bytes)} free` +
      (memory.needs_expandable_segments ? `; fits only with ${setting}, because of memory fragmentation` : "")
    : `does not fit: ${free} more than the ${Rehearse.bytes(memory.capacity_bytes)} of a GPU` +
      (memory.way_to_fit ? `; ${memory.way_to_fit}` : "");
  return Rehearse.element("p", { class: "verdict " + (memory.verdict === "tight" ? "tight" : "bad") }, words);
};

// parts: [key, name, colour]; rows: [{name, values: {key: number}, total, told}]. The legend has the values of the
// only row, or of a first row that is told; of parts that it lacks, those of the row that has them, by its name.
Rehearse.stackedBars = function (parts, rows, format) {
  const make = Rehearse.element;
  const used = parts.filter(([key]) => rows.some((row) => row.values[key] > 0));
  const most = Math.max(...rows.map((row) => row.most || parts.reduce((sum, [key]) => sum + (row.values[key] || 0), 0)));
  const bar = (row) => {
    const track = make("div", { class: "track" });
    for (const [key, name, colour] of used) {
      const piece = make("i", { title: `${name}: ${format(row.values[key] || 0)}` });
      piece.style.width = 100 * (row.values[key] || 0) / most + "%";
      piece.style.background = colour;
      track.append(piece);
    }
    if (row.limit) {
      const line = make("b", { title: `limit: ${format(row.limit)}` });
      line.style.left = 100 * row.limit / most + "%";
      track.append(line);
    }
    return make("div", { class: "bar" }, make("span", {}, row.name), track, make("span", {}, row.total));
  };
  const swatch = (colour) => {
    const box = make("i", {});
    box.style.background = colour;
    return box;
  };
  const told = rows.length === 1 || rows[0].told;
  const value_of = (key, name) => {
    if (!told) return name;
    const row = rows.find((each) => each.values[key] > 0);
    return row === rows[0] ? `${name} ${format(row.values[key])}` : `${name}: ${row.name} ${format(row.values[key])}`;
  };
  return make(
    "div", { class: "bars" }, ...rows.map(bar),
    make("div", { class: "legend" }, ...used.map(([key, name, colour]) => make(
      "span", {}, swatch(colour), value_of(key, name)))));
};

Rehearse.timeNote = "The critical path crosses ranks and sets the step time. Exposed: compute waits for communication.";
Rehearse.timeBars = function (report) {
  const total = Rehearse.seconds(report.step_time_s);
  return Rehearse.stackedBars(Rehearse.parts, [
    { name: "critical path", values: report.time_s, total, told: true },
    { name: "mean over ranks", values: report.mean_time_s, total }
  ], (value) => `${Rehearse.seconds(value)} (${Rehearse.percent(value / report.step_time_s)})`);
};

Rehearse.memoryBars = function (report) {
  const capacity = report.memory.capacity_bytes;
  const most = Math.max(capacity, report.memory.needed_bytes) * 1.02;
  return Rehearse.stackedBars(Rehearse.memoryParts, report.memory.ranks.map((rank) => ({
    name: `rank ${rank.rank}`, values: rank, total: Rehearse.bytes(rank.needed_bytes), limit: capacity, most
  })), Rehearse.bytes);
};

// columns: [{name, value(row), text(row), number}]; a click on a head sorts by it.
Rehearse.table = function (columns, rows, rowClass) {
  const make = Rehearse.element, body = make("tbody", {});
  let sorted = { column: -1, down: false };
  const fill = () => {
    const ordered = [...rows];
    if (sorted.column >= 0) {
      const { value } = columns[sorted.column];
      const order = (a, b) => (value(a) > value(b)) - (value(a) < value(b));
      ordered.sort((a, b) => {
        const without = (value(a) === undefined) - (value(b) === undefined);
        return without || (sorted.down ? order(b, a) : order(a, b));
      });
    }
    body.replaceChildren(...ordered.map((row) => make(
      "tr", { class: rowClass ? rowClass(row) : "" },
      ...columns.map((column) => make("td", { class: column.number ? "number" : "" }, column.text(row))))));
  };
  const heads = columns.map((column, i) => make("th", {
    class: column.number ? "number" : "", tabindex: "0", onclick: () => {
      sorted = { column: i, down: sorted.column === i ? !sorted.down : false };
      heads.forEach((head, j) => head.setAttribute("aria-sort", j === i ? (sorted.down ? "descending" : "ascending") : "none"));
      fill();
    }
  }, column.name));
  fill();
  return make("div", { class: "wide" }, make("table", {}, make("thead", {}, make("tr", {}, ...heads)), body));
};

Rehearse.communicationTable = function (report) {
  const column = (name, key, format) => ({
    name, number: true, value: (row) => row[key], text: (row) => format(row[key])
  });
  const rate = (row) => (row.busy_s > 0 ? row.bytes_per_rank / row.busy_s : undefined);
  return Rehearse.table([
    { name: "kind", value: (row) => row.kind, text: (row) => row.kind },
    { name: "operation", value: (row) => row.op, text: (row) => row.op.replace(/_/g, " ") },
    { name: "group", value: (row) => row.group, text: (row) => row.group.replace(/_/g, " ") },
    column("ranks", "group_size", String), column("calls", "calls", Rehearse.count),
    column("bytes per rank", "bytes_per_rank", Rehearse.bytes), column("busy", "busy_s", Rehearse.seconds),
    column("exposed", "exposed_s", Rehearse.seconds),
    column("sent over GPU links", "gpu_link_bytes", Rehearse.bytes), column("over NICs", "nic_bytes", Rehearse.bytes),
    { name: "rate while busy", number: true, value: rate,
      text: (row) => (rate(row) === undefined ? "–" : Rehearse.bytes(rate(row)) + "/s") }], report.communication);
};

// What one GPU sends on each class of link, by kind.
Rehearse.trafficBars = function (report) {
  const kinds = [["tp", "tensor parallel", "#e69f00"], ["pp", "pipeline", "#009e73"], ["dp", "data parallel", "#d55e00"],
    ["cp", "context parallel", "#cc79a7"], ["ep", "experts", "#f0e442"], ["tied", "shared embedding", "#0072b2"],
    ["offload", "offload", "#8c6bb1"]];
  const classes = [["gpu_link_bytes", "GPU links"], ["nic_bytes", "NICs"], ["host_bytes", "host link"]];
  const rows = classes.map(([key, name]) => {
    const values = {};
    for (const line of report.communication) values[line.kind] = (values[line.kind] || 0) + line[key];
    const total = Object.values(values).reduce((sum, value) => sum + value, 0);
    return { name, values, total: Rehearse.bytes(total), bytes: total };
  }).filter((row) => row.bytes > 0);
  return rows.length ? Rehearse.stackedBars(kinds, rows, Rehearse.bytes) : Rehearse.element("p", {}, "A single GPU sends nothing.");
};

Rehearse.planWords = function (report) {
  const plan = report.plan;
  const degrees = ["tp", "pp", "vpp", "dp", "cp", "ep"].map((key) => `${key} ${plan[key]}`).join(", ");
  return `${report.cluster.gpus} × ${report.cluster.gpu}; ${degrees}; ${plan.schedule}, ${plan.microbatches} microbatches of ` +
    `${plan.micro_batch} × ${plan.seq} tokens; ${plan.precision}, recompute ${plan.recompute}, ZeRO-${plan.zero}`;
};

Rehearse.command = function (command) {
  const make = Rehearse.element;
  const button = make("button", { type: "button", onclick: () => {
    navigator.clipboard.writeText(command).then(() => { button.textContent = "copied"; }, () => {
      getSelection().selectAllChildren(code);
    });
  } }, "copy");
  const code = make("code", {}, ...command.split(" ").flatMap((word) => [make("span", {}, word), " "]));
  return make("div", { class: "command" }, code, button);
};

Rehearse.warnings = function (warnings) {
  if (!warnings.length) return null;
  return Rehearse.element("ul", { class: "warnings" }, ...warnings.map((each) => Rehearse.element("li", {}, each)));
};

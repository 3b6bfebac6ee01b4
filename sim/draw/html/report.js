// What does the page of one run show, in which order?
"use strict";
(function () {
  const make = Rehearse.element, section = Rehearse.section;
  const data = JSON.parse(document.getElementById("data").textContent), report = data.report;
  const page = document.getElementById("page");

  // Of another GPU than the cluster's.
  const carriedOver = profile => profile.carried_over && profile.carried_over.length
    ? `; profile of ${profile.gpu}, scaled to this GPU: ${profile.carried_over.join(", ")}` : "";

  const done = report.source === "execute" ? "executed" : `simulated (${report.engine})`;
  page.append(make("header", {},
    make("h1", {}, `${report.model.name} on ${report.cluster.name}`),
    make("p", { class: "note" }, `One training iteration, ${done}. ${Rehearse.planWords(report)}.`),
    data.command ? Rehearse.command(data.command) : null));
  page.append(...[Rehearse.verdict(report)].filter(Boolean), Rehearse.tiles(report));
  const warnings = Rehearse.warnings(report.warnings);
  if (warnings) page.append(warnings);
  page.append(section("Where the step goes", Rehearse.timeNote, Rehearse.timeBars(report)));

  const timeline = new Rehearse.Timeline();
  page.append(section("Pipeline", null, timeline.element));
  timeline.show(data.timeline);
  window.timeline = timeline;

  page.append(section("Memory over the iteration", "Parameters, gradients, optimizer state and buffers are constant; " +
    "activations vary.", Rehearse.memoryChart(data.memory, report)));
  page.append(section("Peak memory of each pipeline rank", null, Rehearse.memoryBars(report)));
  page.append(section(`Communication of pipeline rank ${report.critical_rank}`,
    "Most of the critical path lies on this rank. Exposed: its compute stream waits for it.",
    Rehearse.communicationTable(report)));
  page.append(section("Traffic of one GPU, by class of link", "Bytes sent per iteration; collectives are counted as rings.",
    Rehearse.trafficBars(report)));

  if (data.what_if && data.what_if.length) {
    const grid = make("div", { class: "grid" });
    page.append(section("What if?", "One setting changed, all others fixed; predicted by the reference engine, without contention.",
      grid));
    for (const knob of data.what_if) grid.append(Rehearse.whatIfChart(knob));
  }

  const version = [["program", `rehearse ${report.version}`], ...Object.entries(data.versions || {}),
    ["profile", `${report.profile.name} (${report.profile.how}; ${Rehearse.percent(report.profile.extrapolated_share)} ` +
      "of the kernel time is extrapolated)" + carriedOver(report.profile)],
    ...(report.collectives ? [["collectives", report.collectives]] : []),
    ["attention FLOPs", report.attention_flops]];
  page.append(section("Inputs and versions", null,
    make("dl", {}, ...version.flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, String(value))])),
    make("details", {}, make("summary", {}, "plan"), make("pre", {}, JSON.stringify(report.plan, null, 2))),
    data.scenario ? make("details", {}, make("summary", {}, "scenario"),
      make("pre", {}, JSON.stringify(data.scenario, null, 2))) : null,
    make("details", {}, make("summary", {}, "report"), make("pre", {}, JSON.stringify(report, null, 2)))));
})();

// What happens when a knob is turned? The fast engine answers at once, the simulator a little later.
"use strict";
(function () {
  const make = Rehearse.element, section = Rehearse.section;
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page");
  document.body.className = "studio";

  const turned = new Map();  // by name: value, where it is not that of the scenario
  const knobs = new Map();
  let asked = 0, baseline = null;

  function reader(knob) {
    const set = (value) => {
      if (value === knob.value) turned.delete(knob.name);
      else turned.set(knob.name, value);
      ask();
    };
    if (knob.choices.length) {
      const select = make("select", { "aria-label": knob.label, onchange: () => set(select.value) },
        ...knob.choices.map((choice) => make("option", { value: choice }, choice)));
      return { field: select, read: () => select.value, write: (value) => { select.value = value; }, turn: [select] };
    }
    const input = make("input", { type: "number", min: "0", step: "1", "aria-label": knob.label,
      oninput: () => { if (/^\d+$/.test(input.value)) set(input.value); } });
    const times = (factor, sign) => make("button", { type: "button", "aria-label": `${knob.label} ${sign}`, onclick: () => {
      const value = Math.min(2 ** 40, Math.max(1, Math.floor(Number(input.value || 1) * factor)));
      input.value = String(value);
      set(String(value));
    } }, sign);
    return { field: input, read: () => input.value, write: (value) => { input.value = value; },
      turn: [times(0.5, "÷2"), input, times(2, "×2")] };
  }

  function knobElement(knob) {
    const made = reader(knob), why = make("div", { class: "why", hidden: true });
    made.write(knob.value);
    made.element = make("div", { class: "knob" }, make("label", { title: knob.name }, knob.label),
      make("div", { class: "turn" }, ...made.turn), why);
    made.why = why;
    made.knob = knob;
    knobs.set(knob.name, made);
    return made.element;
  }

  const groups = [...new Set(data.knobs.map((knob) => knob.group))];
  const reset = make("button", { type: "button", onclick: () => {
    turned.clear();
    for (const { write, knob } of knobs.values()) write(knob.value);
    ask();
  } }, "reset");
  const pin = make("button", { type: "button", title: "compare with this plan from now on", onclick: () => {
    baseline = latest;
    if (latest) showFigures(latest);
  } }, "compare with this");
  let latest = null;
  const side = make("aside", { class: "knobs" }, make("h1", {}, "Studio"),
    make("p", { class: "note" }, scenarioWords([])), make("div", { class: "controls" }, reset, pin),
    ...groups.flatMap((group) => [make("h2", {}, group),
      ...data.knobs.filter((knob) => knob.group === group).map(knobElement)]));

  const head = make("header", {}), engine = make("div", { class: "engine", role: "status" });
  const illegal = make("div", { class: "illegal", role: "alert", hidden: true });
  const tiles = make("div", {}), bars = make("div", {}), memory = make("div", {}), ranks = make("div", {});
  const communication = make("div", {}), traffic = make("div", {}), warnings = make("div", {});
  const timeline = new Rehearse.Timeline();
  window.timeline = timeline;
  const answer = make("div", { class: "answer" }, head, illegal, make("div", { class: "figures" },
    tiles, engine, warnings, section("Where the step goes", Rehearse.timeNote, bars), section("Pipeline", null, timeline.element),
    section("Memory over the iteration", null, memory), section("Peak memory of each pipeline rank", null, ranks),
    section("Communication of the rank with most of the critical path", null, communication),
    section("Traffic of one GPU, by class of link", null, traffic)));
  page.append(side, answer);

  // A turned knob takes the place of the flag that the studio began with: no flag is given twice.
  function scenarioWords(changes) {
    const flags = new Map([...Object.entries(data.flags), ...changes]);
    return [data.file, ...[...flags].map(([name, value]) => `${name} ${value}`)].filter(Boolean).join(" ");
  }

  function command() {
    return `rehearse simulate ${scenarioWords(turned)}`;
  }

  // Against the plan compared with: which way is better differs.
  function addChanges(report) {
    if (!baseline || baseline === latest) return;
    const quantities = [["step_time_s", -1], ["tokens_per_s", 1], ["mfu", 1], ["bubble", -1], ["memory", -1]];
    const figure = (from, key) => (key === "bubble" ? from.bubble_fraction.mean : key === "memory" ? from.memory.needed_bytes
      : from[key]);
    [...tiles.querySelectorAll("strong")].forEach((strong, i) => {
      const [key, better] = quantities[i], before = figure(baseline.report, key), now = figure(report, key);
      const change = before > 0 ? now / before - 1 : 0;
      if (Math.abs(change) < 5e-4) return;
      strong.append(make("span", { class: "change " + (change * better > 0 ? "better" : "worse") },
        `${change > 0 ? "+" : "−"}${Rehearse.percent(Math.abs(change))}`));
    });
  }

  function showFigures(run) {
    const { report } = run;
    head.replaceChildren(make("h1", {}, `${report.model.name} on ${report.cluster.name}`),
      make("p", { class: "note" }, Rehearse.planWords(report)), Rehearse.command(command()));
    tiles.replaceChildren(...[Rehearse.verdict(report)].filter(Boolean), Rehearse.tiles(report));
    addChanges(report);
    const list = Rehearse.warnings(report.warnings);
    warnings.replaceChildren(...(list ? [list] : []));
    bars.replaceChildren(Rehearse.timeBars(report));
    memory.replaceChildren(Rehearse.memoryChart(run.memory, report));
    ranks.replaceChildren(Rehearse.memoryBars(report));
    communication.replaceChildren(Rehearse.communicationTable(report));
    traffic.replaceChildren(Rehearse.trafficBars(report));
    followPlan(report.plan);
  }

  // What follows from other knobs (dp from the rest, vpp from a schedule) shows its value.
  function followPlan(plan) {
    const keys = { "--mbs": "micro_batch", "--gbs": "global_batch" };
    for (const [name, made] of knobs) {
      const value = plan[keys[name] || name.slice(2).replace(/-/g, "_")];
      if (value === undefined || turned.has(name) || document.activeElement === made.field) continue;
      made.write(typeof value === "boolean" ? (value ? "on" : "off") : String(value));
    }
  }

  function show(run, note) {
    const first = latest === null;
    latest = run;
    if (first) baseline = run;
    answer.classList.remove("stale");
    illegal.hidden = true;
    showFigures(run);
    const zoomed = timeline.data && (timeline.to - timeline.from) < timeline.data.end;
    const from = zoomed ? timeline.from / timeline.data.end : 0, to = zoomed ? timeline.to / timeline.data.end : 1;
    timeline.show(run.timeline);
    timeline.look(from * timeline.data.end, to * timeline.data.end);
    engine.replaceChildren(...note);
  }

  function showViolations(violations) {
    answer.classList.add("stale");
    const elsewhere = [];
    for (const violation of violations) {
      const made = knobs.get(violation.flag);
      const words = [`${violation.rule}${violation.values ? ` (${violation.values})` : ""}`,
        violation.nearest ? make("em", {}, `nearest legal: ${violation.nearest}`) : null];
      if (!made) {
        elsewhere.push(make("p", {}, ...words.filter(Boolean)));
        continue;
      }
      made.element.classList.add("broken");
      made.why.hidden = false;
      made.why.append(make("div", {}, ...words.filter(Boolean)));
    }
    illegal.hidden = false;
    illegal.replaceChildren(make("b", {}, violations.length === 1 ? "This plan breaks a rule." :
      `This plan breaks ${violations.length} rules.`), " The last legal plan is shown below.", ...elsewhere);
    engine.replaceChildren();
  }

  function clearViolations() {
    for (const [name, made] of knobs) {
      made.element.classList.toggle("turned", turned.has(name));
      made.element.classList.remove("broken");
      made.why.hidden = true;
      made.why.replaceChildren();
    }
  }

  async function post(path) {
    const response = await fetch(path, { method: "POST", headers: { "Content-Type": "application/json" },
      body: JSON.stringify(Object.fromEntries(turned)) });
    if (response.status === 409) return null;
    if (!response.ok) throw new Error((await response.text()).trim());
    return response.json();
  }

  async function ask() {
    const own = ++asked;
    try {
      const begin = performance.now(), fast = await post("/run");
      if (own !== asked) return;
      clearViolations();
      if (fast.violations) {
        showViolations(fast.violations);
        return;
      }
      const took = make("span", {}, make("b", {}, "reference engine"),
        `, without contention: ${Rehearse.seconds(fast.run.report.step_time_s)}, answered in ` +
        Rehearse.seconds((performance.now() - begin) / 1000));
      show(fast.run, [took, make("span", {}, "SimGrid is running …")]);
      await refine(own, fast.run, took);
    } catch (error) {
      if (own === asked) engine.replaceChildren(make("span", {}, `No answer: ${error.message}`));
    }
  }

  async function refine(own, fast, took) {
    await new Promise((resolve) => setTimeout(resolve, 120));
    if (own !== asked) return;
    const begin = performance.now();
    let fine = null, failure = "";
    try {
      fine = await post("/refine");
    } catch (error) {
      failure = error.message;
    }
    if (own !== asked) return;
    if (!fine || !fine.run) {
      engine.replaceChildren(took, make("span", {}, failure ? `SimGrid: ${failure}` : ""));
      return;
    }
    const change = fine.run.report.step_time_s / fast.report.step_time_s - 1;
    const words = Math.abs(change) < 5e-6 ? "the same" : `${change > 0 ? "+" : "−"}${Rehearse.percent(Math.abs(change))}`;
    if (baseline === fast) baseline = fine.run;
    show(fine.run, [took, make("span", { class: "simgrid" }, make("b", {}, "SimGrid"), `, links shared: ` +
      `${Rehearse.seconds(fine.run.report.step_time_s)} (${words}), ` +
      `in ${Rehearse.seconds((performance.now() - begin) / 1000)}; shown`)]);
  }

  if (data.first.violations) showViolations(data.first.violations);
  else show(data.first.run, []);
  ask();
})();

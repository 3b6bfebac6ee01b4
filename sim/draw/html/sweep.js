// What does the page of a sweep show? Its picture, curves that the reader chooses, and every row.
"use strict";
(function () {
  const make = Rehearse.element, section = Rehearse.section;
  const data = JSON.parse(document.getElementById("data").textContent);
  const page = document.getElementById("page"), fields = data.fields, rows = data.rows;
  const quantities = [
    ["tokens_per_s_per_gpu", "tokens/s/GPU", Rehearse.count], ["step_time_s", "step time", Rehearse.seconds],
    ["mfu", "MFU", Rehearse.percent], ["bubble", "compute idle", Rehearse.percent], ["needed_bytes", "total memory", Rehearse.bytes]];
  const words = (value) => (typeof value === "string" ? value : JSON.stringify(value));

  const fastest = rows.find((row) => row.fastest);
  const counts = {};
  for (const row of rows) counts[row.state] = (counts[row.state] || 0) + 1;
  page.append(make("header", {},
    make("h1", {}, `What if? ${rows.length} rows over ${fields.map((field) => field.name).join(" × ")}`),
    make("p", { class: "note" }, data.held),
    data.command ? Rehearse.command(data.command) : null,
    make("p", {}, Object.entries(counts).map(([state, count]) => `${count} ${state}`).join(", ") +
      (fastest ? `. Fastest that fits: ${fields.map((field, i) => `${field.name} ${words(fastest.values[i])}`).join(", ")}: ` +
        `${Rehearse.seconds(fastest.step_time_s)}, ${Rehearse.count(fastest.tokens_per_s_per_gpu)} tokens/s/GPU.` : "."))));

  if (data.picture) {
    const picture = make("img", { alt: "the sweep's picture", src: "data:image/svg+xml;base64," + data.picture });
    page.append(section("Picture", null, make("div", { class: "picture" }, picture)));
  }

  // Curves along a chosen field, one for each combination of the others.
  const along = fields.map((field, i) => [field, i]).filter(([field]) => field.values.length > 1);
  const select = (options) => make("select", {}, ...options.map(([value, name]) => make("option", { value }, name)));
  const xChoice = select(along.map(([field, i]) => [i, field.name]));
  const yChoice = select(quantities.map(([key, name]) => [key, name]));
  const longest = along.reduce((best, [field, i]) => (best < 0 || field.values.length > fields[best].values.length ? i : best), -1);
  xChoice.value = String(longest);
  const chart = new Rehearse.Chart(null, 380), note = make("p", { class: "note" });
  const show = () => {
    const x = Number(xChoice.value), field = fields[x];
    const [key, name, format] = quantities.find(([each]) => each === yChoice.value);
    const numeric = field.values.every((value) => typeof value === "number");
    const places = field.values.map((value, i) => [numeric ? value : i, i]).sort((a, b) => a[0] - b[0]);
    const curves = new Map();
    for (const row of rows) {
      if (row.step_time_s === undefined) continue;
      const others = fields.map((other, i) => (i === x ? null : `${other.name} ${words(row.values[i])}`)).filter(Boolean);
      const curve = others.join(", ") || name;
      if (!curves.has(curve)) curves.set(curve, new Array(places.length).fill(null));
      const value = field.values.findIndex((each) => JSON.stringify(each) === JSON.stringify(row.values[x]));
      curves.get(curve)[places.findIndex(([, i]) => i === value)] = row[key];
    }
    const most = 12, shown = [...curves].slice(0, most);
    note.textContent = curves.size > most ? `The first ${most} of ${curves.size} curves are drawn; all rows are in the table.` : "";
    const at = places.map(([place]) => place);
    chart.show(at, shown.map(([curve, values]) => ({ name: curve, values, points: true })), {
      x: { label: field.name, ticks: at.length <= 16 ? at : undefined,
        format: (value) => (numeric ? String(value) : words(field.values[value] === undefined ? "" : field.values[value])),
        logarithmic: numeric && at[0] > 0 && at[at.length - 1] / at[0] > 4 },
      y: { label: name, format }
    });
  };
  xChoice.addEventListener("change", show);
  yChoice.addEventListener("change", show);
  if (along.length) {
    page.append(section("Curves", null,
      make("div", { class: "controls" }, make("label", {}, "along ", xChoice), make("label", {}, "shown ", yChoice)),
      chart.element, note));
    show();
  }

  const most = 5000;
  page.append(section("Rows", rows.length > most ? `The first ${most} of ${rows.length} rows.` : "A click on a head sorts.",
    Rehearse.table([
      ...fields.map((field, i) => ({ name: field.name, number: field.values.every((value) => typeof value === "number"),
        value: (row) => row.values[i], text: (row) => words(row.values[i]) })),
      ...quantities.map(([key, name, format]) => ({ name, number: true, value: (row) => row[key],
        text: (row) => (row[key] === undefined ? "" : format(row[key])) })),
      { name: "", value: (row) => row.state, text: (row) => (row.state === "done" ? (row === fastest ? "fastest" : "")
        : row.state + (row.reason ? ": " + row.reason : "")) }], rows.slice(0, most),
    (row) => (row === fastest ? "best" : row.state === "done" ? "" : "refused"))));
})();

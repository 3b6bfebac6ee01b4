// How do curves look? uPlot, with the same axes and colours everywhere.
"use strict";
Rehearse.Chart = class {
  // size: {height}; x, y: {label, format, logarithmic}; time-like values are plain numbers.
  constructor(title, height) {
    this.height = height;
    this.box = Rehearse.element("div", { class: "plot" });
    this.element = Rehearse.element("figure", {}, title ? Rehearse.element("figcaption", {}, title) : null, this.box);
    new ResizeObserver(() => {
      if (this.plot && this.box.clientWidth > 10) this.plot.setSize({ width: this.box.clientWidth, height });
    }).observe(this.box);
  }

  // A little room beside the outermost points, where there are points.
  reach(least, most, axis) {
    if (!axis.ticks) return [least, most];
    if (axis.logarithmic) return [least / 1.1, most * 1.1];
    const room = (most - least || Math.abs(least) || 1) * 0.04;
    return [least - room, most + room];
  }

  // series: [{name, values, colour, dash, points, stepped}]; every series has a value or null for each x.
  show(x, series, axes) {
    if (this.plot) this.plot.destroy();
    const format = (axis) => (_, values) => values.map((value) => (value === null ? "" : axis.format(value)));
    const axis = (axis, more) => ({
      label: axis.label, labelSize: 22, labelFont: "12px system-ui, sans-serif", font: "11px system-ui, sans-serif",
      stroke: "#24292f", grid: { stroke: "#e4e7eb", width: 1 }, ticks: { stroke: "#c5ccd3", width: 1, size: 5 },
      values: format(axis), ...more
    });
    this.plot = new uPlot({
      width: Math.max(200, this.box.clientWidth), height: this.height,
      scales: {
        x: { time: false, distr: axes.x.logarithmic ? 3 : 1, log: 2, range: (_, least, most) => this.reach(least, most, axes.x) },
        y: { range: (_, least, most) => [0, Math.max(most, axes.y.atLeast || 0) * 1.06 || 1] }
      },
      axes: [
        axis(axes.x, axes.x.ticks ? { splits: () => axes.x.ticks } : {}),
        axis(axes.y, { size: 62 })],
      series: [
        { label: axes.x.label, value: (_, value) => (value === null ? "–" : axes.x.format(value)) },
        ...series.map((each, i) => ({
          label: each.name, stroke: each.colour || Rehearse.lines[i % Rehearse.lines.length],
          width: each.width || 2, dash: each.dash ? [6, 4] : undefined, spanGaps: true,
          paths: each.stepped ? uPlot.paths.stepped({ align: 1 }) : undefined,
          points: { show: Boolean(each.points), size: 7 },
          value: (_, value) => (value === null || value === undefined ? "–" : axes.y.format(value))
        }))],
      legend: { live: true },
      cursor: { drag: { x: !axes.x.logarithmic, y: false } }
    }, [x, ...series.map((each) => each.values)], this.box);
  }
};

// The memory of a GPU over an iteration, below its limit.
Rehearse.memoryChart = function (memory, report) {
  const chart = new Rehearse.Chart(null, 300);
  const heaviest = report.memory.peak_rank, gb = (value) => value / 1e9;
  const limit = report.memory.capacity_bytes, beside = report.memory.outside_allocator;
  const left = limit - beside.context_bytes - beside.nccl_bytes;
  const series = memory.ranks.map((rank) => ({
    name: `rank ${rank.rank}${rank.rank === heaviest ? ", highest" : ""}`, values: rank.bytes.map(gb), stepped: true,
    width: rank.rank === heaviest ? 2 : 1.2
  }));
  series.push({ name: "memory of the GPU", colour: "#b00020", dash: true, width: 1.4,
    values: memory.time_s.map(() => gb(limit)) });
  if (left < limit)
    series.push({ name: "without CUDA context and NCCL buffers", colour: "#b00020", width: 1.4,
      values: memory.time_s.map(() => gb(left)) });
  chart.show(memory.time_s, series, {
    x: { label: "time (s)", format: Rehearse.plain },
    y: { label: "GB", format: Rehearse.plain, atLeast: gb(limit) }
  });
  return chart.element;
};

// One knob turned, everything else held: throughput, with what does not fit marked.
Rehearse.whatIfChart = function (knob) {
  const chart = new Rehearse.Chart(knob.label, 230);
  const rows = knob.values.filter((row) => row.tokens_per_s_per_gpu !== undefined);
  const x = rows.map((row) => row.value);
  const wide = x.length > 2 && x[x.length - 1] / x[0] > 4;
  chart.show(x, [
    { name: "fits", points: true, values: rows.map((row) => (row.fits ? row.tokens_per_s_per_gpu : null)) },
    { name: "does not fit", points: true, dash: true, colour: "#b00020",
      values: rows.map((row) => (row.fits ? null : row.tokens_per_s_per_gpu)) },
    { name: "this plan", points: true, colour: "#000",
      values: rows.map((row) => (row.value === knob.current ? row.tokens_per_s_per_gpu : null)) }], {
    x: { label: knob.axis, format: (value) => String(value), logarithmic: wide, ticks: x },
    y: { label: "tokens/s/GPU", format: Rehearse.plain }
  });
  return chart.element;
};

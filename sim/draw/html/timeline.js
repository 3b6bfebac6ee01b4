// What does each pipeline rank do at each moment? A canvas to zoom and pan: a row a rank, its compute stream with its
// messages below; idle time is told apart by whether what it waits for moves.
"use strict";
Rehearse.Timeline = class {
  static meanings = {
    F: ["forward", "#56b4e9"], B: ["backward", "#009e73"], I: ["backward for inputs", "#e69f00"],
    W: ["backward for weights", "#f0e442"], STEP: ["optimizer step", "#3c3c3c"],
    SEND_F: ["pipeline message", "#0072b2"], RECV_F: ["pipeline message", "#0072b2"],
    SEND_B: ["pipeline message", "#0072b2"], RECV_B: ["pipeline message", "#0072b2"],
    REDUCE_GRAD: ["gradient reduction", "#d55e00"], REDUCE_REPLICAS: ["gradient reduction", "#d55e00"],
    REDUCE_TIED: ["gradient reduction", "#d55e00"], UNSHARD: ["parameter gather", "#cc79a7"]
  };
  static words = {
    F: "Forward", B: "Backward", I: "Backward for inputs", W: "Backward for weights", STEP: "Optimizer step",
    SEND_F: "Send of activations", RECV_F: "Receive of activations", SEND_B: "Send of gradients",
    RECV_B: "Receive of gradients", REDUCE_GRAD: "Reduction of gradients",
    REDUCE_REPLICAS: "Reduction over sharding groups", REDUCE_TIED: "Reduction of the shared embedding",
    UNSHARD: "Gather of parameters", OFFLOAD: "Activations to the host", RELOAD: "Activations from the host",
    OFFLOAD_GRAD: "Gradients to the host", RELOAD_PARAM: "Parameters from the host"
  };
  static waits = "#eef0f3";
  static moves = "#f4c7ab";
  static ruler = 26;
  static gutter = 104;

  constructor() {
    const make = Rehearse.element;
    this.status = make("span", { class: "status", role: "status" });
    this.streams = make("input", { type: "checkbox", onchange: () => this.layout() });
    this.controls = make(
      "div", { class: "controls" },
      make("button", { type: "button", title: "zoom out (s)", onclick: () => this.zoom(2) }, "−"),
      make("button", { type: "button", title: "zoom in (w)", onclick: () => this.zoom(0.5) }, "+"),
      make("button", { type: "button", title: "the whole iteration (0)", onclick: () => this.fit() }, "fit"),
      make("label", {}, this.streams, "streams"),
      this.status,
      make("span", { class: "keys" }, "drag to pan · Ctrl + wheel, double click or w/s to zoom · a/d to move · " +
        "click an op to follow its microbatch"));
    this.canvas = make("canvas", { tabindex: "0", "aria-label": "pipeline timeline" });
    this.scroll = make("div", { class: "scroll" }, this.canvas);
    this.tip = make("div", { class: "tip", hidden: true });
    this.legend = make("div", { class: "legend" });
    this.element = make("div", { class: "timeline" }, this.controls, this.scroll, this.legend, this.tip);
    this.paint = this.canvas.getContext("2d");
    this.listen();
    new ResizeObserver(() => this.layout()).observe(this.scroll);
  }

  // Times are turned from distances into moments once; what was zoomed to stays where it can.
  show(data) {
    this.data = data;
    this.rows = data.rows.map((row) => ({
      rank: row.rank, pipelineRank: row.pipeline_rank,
      lanes: row.lanes.map((lane) => this.decode(lane)).sort((a, b) => a.stream - b.stream),
      idle: this.decode(row.idle)
    }));
    const several = new Set(this.rows.map((row) => row.pipelineRank)).size < this.rows.length;
    for (const row of this.rows) row.name = several ? `rank ${row.rank}, pp ${row.pipelineRank}` : `rank ${row.pipelineRank}`;
    this.chunks = Math.max(1, Math.round(data.stages / data.pp));
    this.used = new Set();
    for (const row of this.rows)
      for (const lane of row.lanes)
        if (lane.kind) for (const kind of new Set(lane.kind)) this.used.add(data.kinds[kind]);
        else this.used.add(data.kinds[0]);
    this.chosen = null;
    this.fit();
    this.showLegend();
    this.layout();
  }

  decode(lane) {
    const size = lane.begin.length;
    const begin = new Float64Array(size), end = new Float64Array(size);
    let at = 0;
    for (let i = 0; i < size; ++i) {
      begin[i] = at + lane.begin[i];
      at = end[i] = begin[i] + lane.length[i];
    }
    return { ...lane, begin, end, size };
  }

  kindOf(lane, i) { return this.data.kinds[lane.kind ? lane.kind[i] : 0]; }
  stageOf(lane, i) { return lane.stage ? lane.stage[i] : 0; }
  microbatchOf(lane, i) { return lane.microbatch ? lane.microbatch[i] : 0; }

  colour(kind, stage) {
    const [, colour] = Rehearse.Timeline.meanings[kind] || ["host copy", "#969696"];
    const chunk = Math.floor(stage / this.data.pp);
    if (this.chunks < 2 || !"FBIW".includes(kind)) return colour;
    const key = kind + chunk;
    this.mixed = this.mixed || new Map();
    if (!this.mixed.has(key)) {
      const white = 0.6 * chunk / (this.chunks - 1);
      const mix = (at) => Math.round(parseInt(colour.slice(at, at + 2), 16) * (1 - white) + 255 * white);
      this.mixed.set(key, `rgb(${mix(1)},${mix(3)},${mix(5)})`);
    }
    return this.mixed.get(key);
  }

  showLegend() {
    const make = Rehearse.element, seen = new Map();
    for (const kind of this.used) {
      const [name, colour] = Rehearse.Timeline.meanings[kind] || ["host copy", "#969696"];
      seen.set(name, colour);
    }
    const swatch = (name, colour) => {
      const box = make("i", {});
      box.style.background = colour;
      return make("span", {}, box, name);
    };
    this.legend.replaceChildren(
      ...[...seen].map(([name, colour]) => swatch(name, colour)),
      swatch("idle: pipeline bubble", Rehearse.Timeline.waits),
      swatch("idle: waits for communication", Rehearse.Timeline.moves));
    if (this.chunks > 1) this.legend.append(make("span", {}, "later model chunks of a rank are lighter"));
    if (this.data.rows_of > this.rows.length)
      this.legend.append(make("span", {}, `${this.rows.length} of ${this.data.rows_of} ranks are shown`));
  }

  layout() {
    if (!this.data) return;
    const width = this.scroll.clientWidth, ratio = window.devicePixelRatio || 1;
    if (width < 10) return;
    const lanes = Math.max(0, ...this.rows.map((row) => row.lanes.length - 1));
    this.thin = this.streams.checked ? 13 : 4;
    const room = (560 - Rehearse.Timeline.ruler) / this.rows.length - lanes * this.thin - 6;
    this.box = Math.max(14, Math.min(40, Math.floor(room)));
    this.pitch = this.box + lanes * this.thin + 6;
    const height = Rehearse.Timeline.ruler + this.pitch * this.rows.length + 2;
    this.width = width;
    this.height = height;
    this.canvas.style.width = width + "px";
    this.canvas.style.height = height + "px";
    this.canvas.width = Math.round(width * ratio);
    this.canvas.height = Math.round(height * ratio);
    this.ratio = ratio;
    this.draw();
  }

  get plot() { return this.width - Rehearse.Timeline.gutter - 8; }
  x(tick) { return Rehearse.Timeline.gutter + (tick - this.from) / (this.to - this.from) * this.plot; }
  tick(x) { return this.from + (x - Rehearse.Timeline.gutter) / this.plot * (this.to - this.from); }

  fit() { this.look(0, this.data.end); }

  // Never beyond the iteration, nor closer than a few ticks.
  look(from, to) {
    const length = Math.min(this.data.end, Math.max(20, to - from));
    from = Math.max(0, Math.min(from, this.data.end - length));
    this.from = from;
    this.to = from + length;
    const tick = this.data.tick_s;
    this.status.textContent =
      `${Rehearse.seconds(from * tick)} to ${Rehearse.seconds(this.to * tick)} of ${Rehearse.seconds(this.data.end * tick)}`;
    this.draw();
  }

  zoom(factor, at) {
    const middle = at === undefined ? (this.from + this.to) / 2 : at;
    this.look(middle - (middle - this.from) * factor, middle + (this.to - middle) * factor);
  }

  pan(share) {
    const length = this.to - this.from;
    const from = Math.max(0, Math.min(this.from + share * length, this.data.end - length));
    this.look(from, from + length);
  }

  // The first span that ends after a moment.
  first(lane, tick) {
    let low = 0, high = lane.size;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (lane.end[middle] <= tick) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  draw() {
    if (this.pending || !this.width) return;
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.drawNow();
    });
  }

  drawNow() {
    const paint = this.paint;
    paint.setTransform(this.ratio, 0, 0, this.ratio, 0, 0);
    paint.clearRect(0, 0, this.width, this.height);
    this.drawRuler();
    this.rows.forEach((row, i) => this.drawRow(row, Rehearse.Timeline.ruler + i * this.pitch));
    paint.clearRect(0, Rehearse.Timeline.ruler - 2, Rehearse.Timeline.gutter - 2, this.height);
    paint.fillStyle = "#24292f";
    paint.font = "12px system-ui, sans-serif";
    paint.textAlign = "right";
    paint.textBaseline = "middle";
    this.rows.forEach((row, i) => paint.fillText(
      row.name, Rehearse.Timeline.gutter - 8, Rehearse.Timeline.ruler + i * this.pitch + this.box / 2));
    if (this.streams.checked) this.rows.forEach((row, i) => this.nameLanes(row, Rehearse.Timeline.ruler + i * this.pitch));
  }

  nameLanes(row, top) {
    const paint = this.paint;
    paint.font = "10px system-ui, sans-serif";
    paint.fillStyle = "#59636e";
    row.lanes.filter((lane) => lane.stream !== 0).forEach((lane, i) => paint.fillText(
      this.data.streams[lane.stream].replace("_", " "), Rehearse.Timeline.gutter - 8,
      top + this.box + 1 + (i + 0.5) * this.thin));
  }

  drawRuler() {
    const paint = this.paint, second = 1 / this.data.tick_s;
    const aim = (this.to - this.from) / second / Math.max(2, this.plot / 110);
    const power = Math.pow(10, Math.floor(Math.log10(aim)));
    const step = [1, 2, 5, 10].map((each) => each * power).find((each) => each >= aim);
    const total = this.data.end / second;
    const [unit, name] = total >= 1 ? [1, "s"] : total >= 1e-3 ? [1e-3, "ms"] : [1e-6, "µs"];
    const decimals = Math.max(0, Math.min(9, Math.ceil(-Math.log10(step / unit) - 1e-9)));
    paint.font = "11px system-ui, sans-serif";
    paint.textBaseline = "alphabetic";
    paint.textAlign = "center";
    for (let at = Math.ceil(this.from / second / step) * step; at * second <= this.to; at += step) {
      const x = this.x(at * second);
      paint.fillStyle = "#e4e7eb";
      paint.fillRect(x, Rehearse.Timeline.ruler - 6, 1, this.height);
      paint.fillStyle = "#59636e";
      paint.fillText(`${(at / unit).toFixed(decimals)} ${name}`, x, 14);
    }
  }

  drawRow(row, top) {
    this.drawIdle(row.idle, top);
    let lower = top + this.box + 1;
    for (const lane of row.lanes) {
      if (lane.stream === 0) this.drawLane(lane, top, this.box);
      else {
        this.drawLane(lane, lower, this.thin - 1);
        lower += this.thin;
      }
    }
  }

  drawIdle(idle, top) {
    const paint = this.paint;
    for (let i = this.first(idle, this.from); i < idle.size && idle.begin[i] < this.to; ++i) {
      const left = this.x(Math.max(idle.begin[i], this.from)), right = this.x(Math.min(idle.end[i], this.to));
      paint.fillStyle = idle.moving[i] ? Rehearse.Timeline.moves : Rehearse.Timeline.waits;
      paint.fillRect(left, top, right - left, this.box);
    }
  }

  // Spans narrower than half a pixel that end where another was drawn are passed over.
  drawLane(lane, top, height) {
    const paint = this.paint;
    let covered = -1;
    paint.font = `${Math.min(12, height - 3)}px system-ui, sans-serif`;
    paint.textAlign = "center";
    paint.textBaseline = "middle";
    for (let i = this.first(lane, this.from); i < lane.size && lane.begin[i] < this.to; ++i) {
      const left = this.x(Math.max(lane.begin[i], this.from)), right = this.x(Math.min(lane.end[i], this.to));
      if (right - covered < 0.5 || right <= left) continue;
      covered = right;
      const kind = this.kindOf(lane, i), microbatch = this.microbatchOf(lane, i);
      paint.globalAlpha = this.chosen === null || this.chosen === microbatch ? 1 : 0.22;
      paint.fillStyle = this.colour(kind, this.stageOf(lane, i));
      paint.fillRect(left, top, Math.max(0.5, right - left - (right - left > 4 ? 1 : 0)), height);
      const label = microbatch < 0 ? (kind === "STEP" ? "step" : "") : String(microbatch);
      if (height < 11 || right - left < 7 * label.length + 5) continue;
      paint.fillStyle = kind === "STEP" || "SEND_F SEND_B RECV_F RECV_B REDUCE_GRAD".includes(kind) ? "#fff" : "#111";
      if ("FBIW".includes(kind)) paint.fillStyle = "#111";
      paint.fillText(label, (left + right) / 2, top + height / 2 + 0.5);
    }
    paint.globalAlpha = 1;
  }

  // What lies at a place of the canvas: {row, lane, index}; lane is the idle one between ops.
  at(x, y) {
    const row = this.rows[Math.floor((y - Rehearse.Timeline.ruler) / this.pitch)];
    if (!row || y < Rehearse.Timeline.ruler || x < Rehearse.Timeline.gutter) return null;
    const below = (y - Rehearse.Timeline.ruler) % this.pitch, tick = this.tick(x);
    const candidates = below < this.box
      ? [row.lanes.find((lane) => lane.stream === 0), row.idle]
      : [row.lanes.filter((lane) => lane.stream !== 0)[Math.floor((below - this.box - 1) / this.thin)]];
    const slack = 2 * (this.to - this.from) / this.plot;
    for (const lane of candidates) {
      if (!lane) continue;
      const index = this.first(lane, tick - (lane === row.idle ? 0 : slack));
      if (index < lane.size && lane.begin[index] <= tick + (lane === row.idle ? 0 : slack)) return { row, lane, index };
    }
    return null;
  }

  describe({ row, lane, index }) {
    const tick = this.data.tick_s;
    const times = `${Rehearse.seconds(lane.begin[index] * tick)} to ${Rehearse.seconds(lane.end[index] * tick)}, ` +
      `${Rehearse.seconds((lane.end[index] - lane.begin[index]) * tick)} long`;
    if (lane === row.idle) {
      const op = lane.op[index] ? lane.op[index] : "the end of the iteration";
      return lane.moving[index] ? ["Idle, waiting for communication: " + op, times, `pipeline rank ${row.pipelineRank}`]
        : ["Idle, waiting for " + op, times, `pipeline rank ${row.pipelineRank}, pipeline bubble`];
    }
    const kind = this.kindOf(lane, index), microbatch = this.microbatchOf(lane, index);
    const stage = this.stageOf(lane, index);
    const what = (Rehearse.Timeline.words[kind] || kind) + (microbatch < 0 ? "" : `, microbatch ${microbatch}`);
    const chunk = this.chunks > 1 ? `, chunk ${Math.floor(stage / this.data.pp)}` : "";
    const part = lane.part && lane.part[index] > 0 ? `, part ${lane.part[index] - 1}` : "";
    return [what, times, `pipeline rank ${row.pipelineRank}, stage ${stage}${chunk}${part}`,
      `stream ${this.data.streams[lane.stream]}`];
  }

  showTip(event) {
    const found = this.at(event.offsetX, event.offsetY);
    this.tip.hidden = !found;
    if (!found) return;
    const [first, ...others] = this.describe(found);
    this.tip.replaceChildren(Rehearse.element("b", {}, first),
      ...others.map((line) => Rehearse.element("div", {}, line)));
    const left = Math.min(event.clientX + 14, window.innerWidth - this.tip.offsetWidth - 8);
    const top = event.clientY + 18 + this.tip.offsetHeight > window.innerHeight
      ? event.clientY - this.tip.offsetHeight - 10 : event.clientY + 18;
    this.tip.style.left = left + "px";
    this.tip.style.top = top + "px";
  }

  choose(event) {
    const found = this.at(event.offsetX, event.offsetY);
    const microbatch = found && found.lane !== found.row.idle ? this.microbatchOf(found.lane, found.index) : -1;
    this.chosen = microbatch < 0 || microbatch === this.chosen ? null : microbatch;
    this.draw();
  }

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener("pointerdown", (event) => {
      drag = { x: event.offsetX, from: this.from, to: this.to, moved: false };
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointermove", (event) => {
      if (!this.data) return;
      if (drag && Math.abs(event.offsetX - drag.x) > 3) drag.moved = true;
      if (drag && drag.moved) {
        const shift = (drag.x - event.offsetX) / this.plot * (drag.to - drag.from);
        this.look(drag.from + shift, drag.to + shift);
        this.tip.hidden = true;
      } else this.showTip(event);
    });
    canvas.addEventListener("pointerup", (event) => {
      if (drag && !drag.moved) this.choose(event);
      drag = null;
    });
    canvas.addEventListener("pointerleave", () => { this.tip.hidden = true; });
    canvas.addEventListener("dblclick", (event) => this.zoom(0.25, this.tick(event.offsetX)));
    canvas.addEventListener("wheel", (event) => {
      if (event.ctrlKey || event.metaKey) this.zoom(Math.exp(event.deltaY * 0.003), this.tick(event.offsetX));
      else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan(event.deltaX / this.plot);
      else return;
      event.preventDefault();
    }, { passive: false });
    const keys = { w: () => this.zoom(0.5), s: () => this.zoom(2), a: () => this.pan(-0.25), d: () => this.pan(0.25),
      ArrowLeft: () => this.pan(-0.25), ArrowRight: () => this.pan(0.25), 0: () => this.fit() };
    canvas.addEventListener("keydown", (event) => {
      if (!keys[event.key] || event.ctrlKey || event.metaKey) return;
      keys[event.key]();
      event.preventDefault();
    });
  }
};

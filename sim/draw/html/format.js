// How are elements made, and numbers written? Text is only ever set as text, never as markup.
"use strict";
const Rehearse = {};

Rehearse.element = function (tag, attributes, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === "class") element.className = value;
    else if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

Rehearse.significant = function (value, digits) {
  if (!Number.isFinite(value)) return "–";
  if (value === 0) return "0";
  const whole = Math.floor(Math.log10(Math.abs(value))) + 1;
  return value.toFixed(Math.max(0, digits - whole));
};

// For ticks: at most four digits, no zeros at the end.
Rehearse.plain = (value) => String(Number(value.toPrecision(4)));

// Numbers and their units stay on one line.
Rehearse.seconds = function (value, digits = 4) {
  const size = Math.abs(value);
  if (size === 0) return "0\u00a0s";
  if (size >= 1) return Rehearse.significant(value, digits) + "\u00a0s";
  if (size >= 1e-3) return Rehearse.significant(value * 1e3, digits) + "\u00a0ms";
  return Rehearse.significant(value * 1e6, digits) + "\u00a0µs";
};

Rehearse.bytes = function (value) {
  const units = ["B", "kB", "MB", "GB", "TB", "PB"];
  let unit = 0;
  while (Math.abs(value) >= 1000 && unit < units.length - 1) {
    value /= 1000;
    ++unit;
  }
  return Rehearse.significant(value, 3) + "\u00a0" + units[unit];
};

Rehearse.percent = (share) => Rehearse.significant(100 * share, share >= 0.1 ? 3 : 2) + "\u00a0%";

Rehearse.count = (value) => Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, "\u202f");

Rehearse.section = function (title, note, ...children) {
  return Rehearse.element(
    "section", {},
    Rehearse.element("h2", {}, title),
    note ? Rehearse.element("p", { class: "note" }, note) : null,
    ...children);
};

// Okabe and Ito's colours, dark enough for lines on white.
Rehearse.lines = ["#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#777777"];

// Parts of a step, as time_s of a report calls them.
Rehearse.parts = [
  ["compute", "compute", "#56b4e9"],
  ["recompute", "recompute", "#0072b2"],
  ["optimizer", "optimizer step", "#3c3c3c"],
  ["bubble", "bubble", "#d4d4d4"],
  ["exposed_tp", "exposed tensor parallel", "#e69f00"],
  ["exposed_pp", "exposed pipeline", "#009e73"],
  ["exposed_dp", "exposed data parallel", "#d55e00"],
  ["exposed_cp", "exposed context parallel", "#cc79a7"],
  ["exposed_ep", "exposed experts", "#f0e442"],
  ["exposed_offload", "exposed offload", "#8c6bb1"]];

// What the memory of a rank consists of.
Rehearse.memoryParts = [
  ["parameters_bytes", "parameters", "#0072b2"],
  ["gradients_bytes", "gradients", "#d55e00"],
  ["optimizer_bytes", "optimizer", "#3c3c3c"],
  ["activations_bytes", "activations", "#009e73"],
  ["logits_bytes", "logits", "#cc79a7"],
  ["buffers_bytes", "buffers", "#e69f00"],
  ["nccl_bytes", "NCCL's buffers", "#56b4e9"],
  ["context_bytes", "CUDA's context", "#d4d4d4"]];

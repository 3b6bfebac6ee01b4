// How does a test get a program's page into a browser?
import { execFileSync, spawn } from "node:child_process";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { chromium } from "playwright-core";

const program = process.env.REHEARSE, source = process.env.SOURCE_DIR, shots = process.env.SCREENSHOTS;

// `use` gets a page of which every console error and request is kept; neither may be left when it ends.
export async function withPage(use, size = { width: 1360, height: 900 }) {
  const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox"] });
  try {
    const page = await browser.newPage({ viewport: size });
    const errors = [], requests = [];
    page.on("console", (message) => { if (message.type() === "error") errors.push(message.text()); });
    page.on("pageerror", (error) => errors.push(error.message));
    page.on("request", (request) => requests.push(request.url()));
    await use(page, { errors, requests });
  } finally {
    await browser.close();
  }
}

export function run(...words) {
  return execFileSync(program, words, { cwd: source, encoding: "utf8", stdio: ["ignore", "pipe", "pipe"],
    timeout: 60000 });
}

// `words` with other values of flags that they have: a flag that is given twice is refused.
export function changed(words, values) {
  return words.map((word, i) => values[words[i - 1]] ?? word);
}

// A folder that is there while `use` runs.
export async function withFolder(use) {
  const folder = mkdtempSync(join(tmpdir(), "rehearse-browser-"));
  try {
    await use(folder);
  } finally {
    rmSync(folder, { recursive: true });
  }
}

// A studio on a port of its own; `use` gets its address.
export async function withStudio(words, use) {
  const studio = spawn(program, ["studio", "--port", "0", ...words], { cwd: source });
  try {
    const address = await new Promise((resolve, reject) => {
      let text = "";
      studio.stdout.on("data", (data) => {
        text += data;
        if (text.includes("\n")) resolve(text.trim());
      });
      studio.on("exit", (code) => reject(new Error(`the studio ended with ${code}`)));
      setTimeout(() => reject(new Error("the studio does not begin")), 20000).unref();
    });
    await use(address);
  } finally {
    studio.kill("SIGINT");
  }
}

// Kept only where a person wants to look: SCREENSHOTS names the folder.
export async function look(page, name, whole = false) {
  const picture = await page.screenshot({ path: shots ? join(shots, name + ".png") : undefined, fullPage: whole });
  return picture.length;
}

// Colours of the timeline's canvas: how many of its pixels are not white.
export const painted = (page) => page.evaluate(() => {
  const canvas = document.querySelector(".timeline canvas");
  const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
  let count = 0;
  for (let i = 0; i < data.length; i += 4)
    if (data[i + 3] > 0 && (data[i] < 250 || data[i + 1] < 250 || data[i + 2] < 250)) ++count;
  return count / (data.length / 4);
});

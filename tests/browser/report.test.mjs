// The page of a run as a reader uses it: without a network, by mouse and keys.
import assert from "node:assert/strict";
import { copyFileSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { changed, look, painted, run, withFolder, withPage } from "./browser.mjs";

const scenario = ["--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "16", "--tp", "4", "--pp", "4", "--gbs", "8",
  "--seq", "4096"];

async function withReport(words, use) {
  await withFolder(async (folder) => {
    const file = join(folder, "report.html");
    const report = JSON.parse(run("simulate", ...words, "--json", "--html", file));
    await withPage(async (page, seen) => {
      await page.goto("file://" + file);
      await use(page, report, seen, file);
      assert.deepEqual(seen.errors, []);
      assert.deepEqual(seen.requests.filter((url) => !/^(file|data):/.test(url)), [], "nothing comes from elsewhere");
    });
  });
}

test("shows the report's figures", () => withReport(scenario, async (page, report) => {
  const tiles = await page.locator(".tiles").innerText();
  assert.ok(tiles.includes((1000 * report.step_time_s).toPrecision(4).slice(0, 4)), tiles);
  assert.ok(tiles.includes((100 * report.mfu).toPrecision(3)), tiles);
  assert.equal(await page.locator(".wide tbody tr").count(), report.communication.length);
  assert.ok((await page.locator(".command code").innerText()).startsWith("rehearse simulate --model llama3-8b"));
  assert.ok(await page.locator(".grid figure").count() >= 3, "what-if curves");
  assert.ok(await look(page, "report", true) > 50000);
}));

test("says what an op is when the pointer rests on it", () => withReport(scenario, async (page, report) => {
  const canvas = page.locator(".timeline canvas"), tip = page.locator(".timeline .tip");
  await canvas.scrollIntoViewIfNeeded();
  assert.ok(await painted(page) > 0.2);
  await canvas.hover({ position: { x: 110, y: 40 } });
  const words = await tip.innerText();
  assert.match(words, /^Forward, microbatch 0/);
  assert.match(words, /pipeline rank 0, stage 0/);
  const span = await page.evaluate(() => {
    const lane = timeline.rows[0].lanes[0], tick = timeline.data.tick_s;
    return [lane.begin[0] * tick, lane.end[0] * tick];
  });
  assert.equal(span[0], 0);
  assert.ok(span[1] < report.step_time_s);
  // The last rank has nothing to do until the first microbatch arrives.
  const box = await canvas.boundingBox();
  await canvas.hover({ position: { x: 110, y: box.height - 40 } });
  assert.match(await tip.innerText(), /^Idle, waiting for 3RECV_F0/);
  await look(page, "report-hover");
}));

test("zooms by button, key, wheel and double click, and pans by dragging", () => withReport(scenario, async (page) => {
  const canvas = page.locator(".timeline canvas");
  const length = () => page.evaluate(() => timeline.to - timeline.from);
  const whole = await length();
  await page.locator(".timeline button", { hasText: "+" }).click();
  assert.ok(Math.abs(await length() / whole - 0.5) < 1e-9);
  await canvas.focus();
  await page.keyboard.press("w");
  assert.ok(Math.abs(await length() / whole - 0.25) < 1e-9);
  const before = await page.evaluate(() => timeline.from);
  await page.keyboard.press("d");
  assert.ok(await page.evaluate(() => timeline.from) > before);
  await canvas.dblclick({ position: { x: 600, y: 40 } });
  assert.ok(Math.abs(await length() / whole - 0.0625) < 1e-6);
  const box = await canvas.boundingBox();
  await page.mouse.move(box.x + 700, box.y + 40);
  await page.keyboard.down("Control");
  await page.mouse.wheel(0, -200);
  await page.keyboard.up("Control");
  await page.waitForFunction((old) => timeline.to - timeline.from < old, 0.0625 * whole * 0.99);
  const from = await page.evaluate(() => timeline.from);
  await page.mouse.down();
  await page.mouse.move(box.x + 800, box.y + 40, { steps: 4 });
  await page.mouse.up();
  assert.ok(await page.evaluate(() => timeline.from) < from, "dragging to the right shows what was before");
  assert.match(await page.locator(".timeline .status").innerText(), /ms to .* of /);
  await look(page, "report-zoom");
  await canvas.press("0");
  assert.ok(Math.abs(await length() - whole) < 1e-6);
}));

test("shows the replica with a slow GPU beside one without", () => withReport([
  ...changed(scenario, { "--gpus": "32", "--gbs": "16" }), "--slow", "rank=5:0.5"], async (page) => {
  const rows = await page.evaluate(() => timeline.rows.map((row) => row.name));
  assert.equal(rows.length, 8, rows);
  assert.ok(new Set(rows).size === 8 && rows.every((name) => /^rank \d+, pp \d$/.test(name)), rows);
}));

test("follows the microbatch that is clicked", () => withReport(scenario, async (page) => {
  const canvas = page.locator(".timeline canvas");
  await canvas.click({ position: { x: 110, y: 40 } });
  assert.equal(await page.evaluate(() => timeline.chosen), 0);
  await canvas.click({ position: { x: 110, y: 40 } });
  assert.equal(await page.evaluate(() => timeline.chosen), null);
}));

test("takes a model's name for text, whatever it is", () => withFolder(async (folder) => {
  const name = "<img src=x onerror=alert(1)><script>alert(2)<'\"script>";
  const model = join(folder, name.replace(/\//g, "") + ".json");
  copyFileSync(join(process.env.SOURCE_DIR, "scenarios/models/gpt-10m.json"), model);
  const file = join(folder, "report.html");
  run("simulate", "scenarios/gpt-10m-2-cores.json", "--model", model, "--html", file);
  await withPage(async (page, { errors }) => {
    page.on("dialog", () => assert.fail("a script of the name ran"));
    await page.goto("file://" + file);
    assert.ok((await page.locator("h1").innerText()).includes("<img src=x onerror=alert(1)>"));
    assert.equal(await page.locator("img").count(), 0);
    assert.deepEqual(errors, []);
  });
}));

test("runs no script but its own", () => withReport(scenario, async (page, _, seen, file) => {
  const changed = readFileSync(file, "utf8").replace("</body>", "<script>window.foreign = true;</script></body>");
  writeFileSync(file, changed);
  await page.reload();
  assert.equal(await page.evaluate(() => window.foreign), undefined);
  assert.ok(seen.errors.splice(0).some((error) => error.includes("Content Security Policy")));
}));

test("stays quick with 100,000 spans on 16 ranks of 512 GPUs", () => withReport(["--model", "llama3-70b", "--cluster",
  "dgx-h100", "--gpus", "512", "--tp", "8", "--pp", "16", "--gbs", "4096", "--seq", "8192"], async (page) => {
  const [spans, slowest] = await page.evaluate(() => {
    let count = 0;
    for (const row of timeline.rows) for (const lane of row.lanes) count += lane.size;
    let longest = 0;
    for (let i = 0; i < 5; ++i) {
      const begin = performance.now();
      timeline.drawNow();
      longest = Math.max(longest, performance.now() - begin);
    }
    return [count, longest];
  });
  assert.ok(spans > 80000, `${spans} spans`);
  assert.ok(slowest < 1000, `${slowest} ms for a picture`);
}));

test("shows the rows of a sweep, its picture and curves to choose", () => withFolder(async (folder) => {
  const file = join(folder, "sweep.html");
  run("sweep", ...scenario.filter((word) => word !== "--tp" && word !== "4" && word !== "--pp"), "--tp", "2,4,8,3", "--pp", "4",
    "--mbs", "1,2", "--engine", "reference", "--store", join(folder, "rows.db"), "--html", file);
  await withPage(async (page, { errors }) => {
    await page.goto("file://" + file);
    assert.equal(await page.locator(".wide tbody tr").count(), 8);
    assert.ok(await page.locator(".picture img").evaluate((image) => image.naturalWidth) > 500);
    assert.match(await page.locator("header").innerText(), /Fastest that fits/);
    const speeds = () => page.locator(".wide tbody tr td:nth-child(3)").allInnerTexts();
    await page.locator(".wide th", { hasText: "tokens/s/GPU" }).click();
    const sorted = (await speeds()).filter(Boolean).map((text) => Number(text.replace(/\D/g, "")));
    assert.deepEqual(sorted, [...sorted].sort((a, b) => a - b));
    await page.locator("select").last().selectOption("needed_bytes");
    assert.match(await page.locator(".uplot").innerText(), /tp/);
    await look(page, "sweep", true);
    assert.deepEqual(errors, []);
  });
}));

// The studio as a reader uses it: a knob is turned and everything follows.
import assert from "node:assert/strict";
import { test } from "node:test";
import { changed, look, painted, run, withPage, withStudio } from "./browser.mjs";

const words = ["--model", "llama3-8b", "--cluster", "dgx-h100", "--gpus", "16", "--tp", "4", "--pp", "4", "--gbs", "16",
  "--seq", "4096"];

async function inStudio(use) {
  await withStudio(words, (address) => withPage(async (page, seen) => {
    await page.goto(address);
    await page.locator(".simgrid").waitFor();
    await use(page, seen, address);
    assert.deepEqual(seen.errors, []);
    assert.deepEqual(seen.requests.filter((url) => !url.startsWith(address)), []);
  }, { width: 1440, height: 950 }));
}

const stepTime = (page) => page.locator(".tile strong").first().innerText();
const report = (values = {}) => JSON.parse(run("simulate", ...changed(words, values), "--json"));
const inWords = (seconds) => (seconds >= 1 ? seconds.toPrecision(4) + "\u00a0s" : (1000 * seconds).toPrecision(4) + "\u00a0ms");

test("a knob that is turned changes every figure to what simulate says", () => inStudio(async (page) => {
  assert.ok((await stepTime(page)).startsWith(inWords(report().step_time_s)));
  await look(page, "studio");
  await page.getByLabel("global batch ×2").click();
  await page.locator(".simgrid").waitFor({ state: "detached" });
  await page.locator(".simgrid").waitFor();
  const turned = report({ "--gbs": "32" });
  assert.ok((await stepTime(page)).startsWith(inWords(turned.step_time_s)), await stepTime(page));
  assert.ok(await page.locator(".change").count() >= 2, "the change against the plan before");
  const command = (await page.locator(".command code").innerText()).split(" ");
  assert.equal(command[command.indexOf("--gbs") + 1], "32");
  assert.equal(command.filter((word) => word === "--gbs").length, 1, "the program refuses a flag given twice");
  assert.ok(await painted(page) > 0.1);
  assert.equal(await page.evaluate(() => timeline.data.microbatches), turned.plan.microbatches);
  await look(page, "studio-turned");
}));

test("an illegal plan is explained beside its knob, with the nearest legal values", () => inStudio(async (page) => {
  await page.getByLabel("tensor parallel", { exact: true }).fill("3");
  const broken = page.locator(".knob.broken", { hasText: "tensor parallel" });
  await broken.waitFor();
  assert.match(await broken.innerText(), /heads/);
  assert.match(await broken.innerText(), /nearest legal/);
  assert.match(await page.locator(".illegal").innerText(), /breaks/);
  await look(page, "studio-illegal");
  await page.getByLabel("tensor parallel", { exact: true }).fill("2");
  await page.locator(".illegal").waitFor({ state: "hidden" });
  assert.equal(await page.locator(".knob.broken").count(), 0);
}));

test("what follows from another knob shows its value", () => inStudio(async (page) => {
  await page.getByLabel("schedule").selectOption("zb-v");
  await page.waitForFunction(() => document.querySelector("[aria-label='virtual stages per rank']").value === "2");
}));

test("what does not fit is said", () => inStudio(async (page) => {
  await page.getByLabel("model").selectOption("llama3-70b");
  await page.locator(".tile.bad").waitFor();
  assert.match(await page.locator(".tile.bad").innerText(), /does not fit/i);
}));

test("a page of another site is not answered", () => inStudio(async (page, seen, address) => {
  await page.goto("data:text/html,<p>another site</p>");
  const answer = await page.evaluate((to) => fetch(to + "run", { method: "POST", body: "{}",
    headers: { "Content-Type": "application/json" } }).then(() => "answered", () => "refused"), address);
  assert.equal(answer, "refused");
  seen.errors.length = 0;
  seen.requests.length = 0;
}));

// The dashboard in a real browser. Prints TAP.
import fs from "node:fs";
import path from "node:path";
import { createRequire } from "node:module";
import { chromium } from "playwright-core";
import { HOSTILE, Service, hostile, ordinary } from "./service.mjs";

const axe = fs.readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
const shots = process.env.SW_SCREENSHOTS;
let count = 0, bad = 0;

function ok(good, name, ...detail) {
	count++;
	console.log(`${good ? "ok" : "not ok"} ${count} - ${name}`);
	if (good) return;
	bad++;
	for (const d of detail) for (const line of String(typeof d === "string" ? d : JSON.stringify(d)).split("\n").slice(0, 20)) console.log("#   " + line.slice(0, 500));
}
const equal = (got, wanted, name) => ok(got === wanted, name, `got:    ${got}`, `wanted: ${wanted}`);

const browser = await chromium.launch({ executablePath: process.env.CHROMIUM || "/usr/bin/chromium", args: ["--no-sandbox"] });

async function open(service, { address = service.url, width = 1400, height = 1000, scheme = "light", loaded = true } = {}) {
	const context = await browser.newContext({ viewport: { width, height }, colorScheme: scheme });
	const page = await context.newPage();
	page.trouble = [];
	page.foreign = [];
	page.on("console", (m) => ["error", "warning"].includes(m.type()) && page.trouble.push(m.text()));
	page.on("pageerror", (e) => page.trouble.push(String(e)));
	page.on("dialog", (d) => (page.trouble.push("dialog " + d.message()), d.dismiss()));
	page.on("request", (r) => !r.url().startsWith(service.base) && page.foreign.push(r.url()));
	await page.goto(address);
	if (loaded) await page.waitForFunction(() => document.body.dataset.loaded === "yes", null, { timeout: 20000 });
	return page;
}

async function shot(page, name) {
	if (!shots) return;
	fs.mkdirSync(shots, { recursive: true });
	await page.screenshot({ path: path.join(shots, name + ".png"), fullPage: !name.includes("detail") });
}

async function accessible(page, name) {
	// the page forbids evaluated script and foreign trusted types: the checker comes in from outside
	await page.evaluate(axe);
	const r = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
	ok(r.violations.length === 0, `${name}: roles, names and contrast`, ...r.violations.map((v) => `${v.id} (${v.impact}): ${v.help}: ${v.nodes.slice(0, 4).map((n) => n.html + " " + (n.any[0]?.message || "")).join(" | ")}`));
	ok(r.passes.length > 10, `${name}: the checks really ran`, r.passes.length);
}

async function fits(page, name) {
	const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
	ok(wide <= 0, `${name}: no sideways scrolling`, wide);
}

const quiet = (page, name) => {
	ok(page.trouble.length === 0, `${name}: no console error`, ...page.trouble);
	ok(page.foreign.length === 0, `${name}: nothing is loaded from elsewhere`, ...page.foreign);
};

/* ---- nothing recorded ---- */
{
	const s = await Service.start();
	const page = await open(s);
	ok((await page.textContent("#attention")).includes("No invocation is recorded"), "empty: says so, and how to begin");
	ok((await page.textContent("#records-foot")).includes("No invocation matches"), "empty: the list says so");
	ok(!page.url().includes("token"), "the token leaves the address bar");
	await page.reload();
	await page.waitForFunction(() => document.body.dataset.loaded === "yes");
	ok(await page.isHidden("#signin"), "a reload keeps the token in this tab");
	await accessible(page, "empty");
	await shot(page, "empty-light");
	/* one */
	await s.record(ordinary(1)[0]);
	await page.waitForFunction(() => document.querySelectorAll("#records tbody tr").length === 1, null, { timeout: 5000 });
	ok(true, "the first record appears by itself");
	await page.waitForFunction(() => document.querySelector("#numbers dd").textContent === "1", null, { timeout: 8000 });
	ok(true, "and is counted");
	await shot(page, "one-light");
	quiet(page, "empty");

	const without = await open(s, { address: s.base, loaded: false });
	await without.waitForSelector("#signin:not([hidden])");
	ok(await without.isHidden("#content"), "without a token: asks for it, shows nothing");
	equal(await without.evaluate(() => document.querySelectorAll("#records tbody tr").length), 0, "without a token: no record");
	await accessible(without, "without a token");
	await shot(without, "signin-light");
	await without.fill("#token", "0".repeat(64));
	await without.click("#signin-form button");
	await without.waitForTimeout(500);
	ok(await without.isVisible("#signin"), "a wrong token does not get in");
	await without.fill("#token", s.url.split("token=")[1]);
	await without.press("#token", "Enter");
	await without.waitForFunction(() => document.body.dataset.loaded === "yes");
	ok(await without.isVisible("#content"), "the right one does");

	const headers = (await page.request.get(s.base)).headers();
	const csp = headers["content-security-policy"];
	ok(csp.includes("default-src 'none'") && !csp.includes("unsafe") && csp.includes("frame-ancestors 'none'"), "a strict content security policy", csp);
	const blocked = await page.evaluate(() => {
		try {
			document.body.insertAdjacentHTML("beforeend", "<b>x</b>");
			return false;
		} catch {
			return true;
		}
	});
	ok(blocked, "the page itself cannot turn text into markup");
	await s.stop();
}

/* ---- ordinary life ---- */
{
	const s = await Service.start();
	await s.record(...ordinary(600));
	const page = await open(s);
	const cards = await page.textContent("#attention");
	for (const word of ["violation", "unexplained downgrade", "runner failures", "To do:"]) ok(cards.includes(word), `attention names: ${word}`, cards.slice(0, 300));
	ok((await page.$$eval("#time svg g rect[class^=s-]", (l) => l.length)) > 20, "the chart has bars");
	ok((await page.textContent("#levels")).includes("bwrap") && (await page.textContent("#levels")).includes("none"), "share of levels");
	ok((await page.textContent("#denied")).includes("/etc/hosts"), "denied resources");
	ok((await page.textContent("#causes")).includes("userns"), "failures by cause");
	await page.click("#causes summary");
	ok(await page.isVisible("#causes details ul"), "a cause opens its advice");
	await page.focus("#causes summary");
	await s.record({ id: "ordinary-live", backend: "bwrap", exit: 0, output: "", requested: "bwrap", effective: "bwrap" });
	await page.waitForFunction(() => document.querySelector("#numbers dd").textContent === "601", null, { timeout: 8000 });
	ok(await page.isVisible("#causes details ul"), "new numbers leave it open");
	ok(await page.evaluate(() => document.activeElement.tagName === "SUMMARY"), "and the focus where it was");
	await page.click("#refresh");
	await page.waitForFunction(() => document.querySelectorAll("#records tbody tr").length === 50);
	equal(await page.$$eval("#records tbody tr", (l) => l.length), 50, "a page of records");
	await accessible(page, "light");
	await fits(page, "wide");
	await shot(page, "light");

	await page.click("#more");
	await page.waitForFunction(() => document.querySelectorAll("#records tbody tr").length === 100);
	ok(true, "older records load");

	/* filter */
	await page.selectOption("#f-verdict", "sandbox_denied");
	await page.waitForFunction(() => {
		const rows = [...document.querySelectorAll("#records tbody tr")];
		return rows.length > 0 && rows.every((r) => r.textContent.includes("sandbox denied"));
	});
	ok(page.url().includes("verdict=sandbox_denied"), "a filter is in the address");
	await page.fill("#f-more", "session:session-3");
	await page.press("#f-more", "Enter");
	await page.waitForFunction(() => location.hash.includes("session-3"));
	await page.waitForTimeout(600);
	const want = (await s.request("GET", "/v1/invocations?verdict=sandbox_denied&session=session-3&since=24h&limit=1000")).body.invocations.length;
	equal(await page.$$eval("#records tbody tr", (l) => l.length), Math.min(want, 50), "filters add up");
	await page.fill("#f-more", "nonsense");
	await page.press("#f-more", "Enter");
	await page.waitForSelector("#notice:not([hidden])");
	ok((await page.textContent("#notice")).includes("nonsense"), "what is not understood is said");
	await page.goBack();
	await page.waitForFunction(() => document.getElementById("f-more").value === "session:session-3");
	ok(true, "Back goes one filter back");
	await page.click("#clear");
	await page.waitForFunction(() => document.querySelectorAll("#records tbody tr").length === 50);
	ok(!page.url().includes("verdict"), "Clear clears");

	/* drill down by keyboard */
	await page.focus("#records tbody tr a");
	await page.keyboard.press("Enter");
	await page.waitForSelector("#detail[open]");
	await page.waitForFunction(() => document.querySelector("#detail ol.path li.applied"));
	const detail = await page.textContent("#detail");
	ok(detail.includes("Decision path") && detail.includes("ordinary-"), "one invocation with its decision path");
	ok(page.url().includes("id=ordinary-"), "its address can be shared");
	await accessible(page, "detail");
	await shot(page, "detail-light");
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !document.getElementById("detail").open);
	await page.waitForFunction(() => !location.hash.includes("id="));
	ok(true, "Escape closes it, and the address says so");
	ok(await page.evaluate(() => document.activeElement.closest("#records") !== null), "and the focus is back in the list");
	await page.keyboard.press("/");
	equal(await page.evaluate(() => document.activeElement.id), "f-more", "a slash goes to the filter");

	/* live */
	const start = Date.now();
	await s.record({ id: "live-1", backend: "bwrap", exit: 1, output: "touch: cannot touch '/etc/live-one': Read-only file system\n", command: ["touch", "/etc/live-one"], requested: "bwrap", effective: "bwrap" });
	await page.waitForSelector('#records tr[data-id="live-1"]', { timeout: 5000 });
	ok(Date.now() - start < 1500, "a live event appears within a second or so", Date.now() - start);
	await page.uncheck("#live");
	await s.record({ id: "live-2", backend: "bwrap", exit: 0, output: "", command: ["true"] });
	await page.waitForFunction(() => document.getElementById("link").textContent.includes("1 new"));
	equal(await page.$$eval('#records tr[data-id="live-2"]', (l) => l.length), 0, "paused: the list stands still, the count goes on");
	await page.check("#live");
	const caught = await page.waitForSelector('#records tr[data-id="live-2"]', { timeout: 20000 }).catch(() => null);
	ok(caught !== null, "live again: it catches up", await page.textContent("#notice"), await page.textContent("#link"), page.url(), page.trouble, await page.$$eval("#records tbody tr", (l) => `${l.length} rows, ${l[0]?.dataset.id} ${l[0]?.textContent}`));

	/* status */
	ok((await page.textContent("#backends")).length > 10, "backends are listed");
	await page.click("#probe");
	await page.waitForFunction(() => !document.getElementById("probe").disabled, null, { timeout: 60000 });
	ok(/ago|now|No sandbox runner/.test(await page.textContent("#backends")), "a probe shows its age", await page.textContent("#backends"));
	quiet(page, "ordinary");

	for (const [name, options] of [["dark", { scheme: "dark" }], ["narrow", { width: 390, height: 844 }], ["narrow-dark", { width: 390, height: 844, scheme: "dark" }], ["middle", { width: 900 }]]) {
		const other = await open(s, options);
		await accessible(other, name);
		await fits(other, name);
		await shot(other, name);
		quiet(other, name);
	}
	const theme = await open(s);
	await theme.click("#theme");
	await theme.click("#theme");
	equal(await theme.evaluate(() => document.documentElement.dataset.theme), "dark", "the theme can be chosen");
	ok((await theme.evaluate(() => getComputedStyle(document.body).backgroundColor)) === "rgb(16, 21, 28)", "and is applied");

	/* the service goes and comes back */
	s.process.kill();
	await page.waitForFunction(() => document.getElementById("link").textContent === "reconnecting", null, { timeout: 8000 });
	ok(true, "a lost service is said");
	await s.stop();
}

/* ---- hostile records ---- */
{
	const s = await Service.start();
	await s.record(...hostile());
	const page = await open(s);
	equal(await page.$$eval("#records tbody tr", (l) => l.length), HOSTILE.length, "hostile: every record is listed");
	for (let i = 0; i < HOSTILE.length; i++) {
		await page.evaluate((id) => (location.hash = "id=" + id), `hostile-${i}`);
		await page.waitForFunction((id) => document.getElementById("detail").open && document.getElementById("detail-body").textContent.includes(id), `hostile-${i}`);
		const body = await page.evaluate(() => ({ text: document.getElementById("detail-body").textContent, odd: document.querySelectorAll("#detail script, #detail img, #detail svg, #detail b, #detail iframe").length }));
		equal(body.odd, 0, `hostile ${i}: no element came out of captured text`);
		if (i === 0) ok(body.text.includes("<script>window.pwned = 1</script>"), "hostile: markup shows as text");
		if (i === 1) ok(body.text.includes("\\x1b[31m") && !body.text.includes("\u001b"), "hostile: escapes are written out");
		if (i === 2) ok(body.text.includes("\\u{202e}") && !body.text.includes("\u202e") && !body.text.includes("\u200b"), "hostile: bidi and invisible characters are written out");
		await shot(page, `hostile-detail-${i}`);
	}
	await page.keyboard.press("Escape");
	await page.waitForFunction(() => !document.getElementById("detail").open);
	equal(await page.evaluate(() => window.pwned), undefined, "hostile: nothing was run");
	equal(await page.title(), "Sandwitness", "hostile: the title stays");
	await accessible(page, "hostile");
	await fits(page, "hostile");
	await shot(page, "hostile");
	quiet(page, "hostile");
	await s.stop();
}

await browser.close();
console.log(`1..${count}`);
process.exit(bad ? 1 : 0);

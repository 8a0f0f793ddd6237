// State, loading and events of the page. What is shown follows from the address's fragment,
// so that Back works and an address can be shared (it holds no token).

import { Problem, follow, forgetToken, get, setToken, takeToken } from "./api.js";
import { el, number, timeline } from "./charts.js";
import * as view from "./views.js";

const $ = (id) => document.getElementById(id);
const PAGE = 50, ROWS_MAX = 500, SETTLE_MS = 1500, QUIET_MS = 60000;
const FILTERS = ["session", "actor", "cause", "level", "device", "label"];
// name: [for people, width of a bar where nothing is recorded], and how long each is
const PERIODS = { "1h": ["in the last hour", 300e3], "24h": ["in the last 24 hours", 3600e3], "7d": ["in the last 7 days", 6 * 3600e3], "30d": ["in the last 30 days", 86400e3], "": ["so far", 86400e3] };
const SPANS = { "1h": 3600e3, "24h": 86400e3, "7d": 7 * 86400e3, "30d": 30 * 86400e3, "": 30 * 86400e3 };
let state = {}, next = null, loading = null, timer = null, due = 0, cost = 0, listDue = false, shown = "", stopFollowing = null, pending = 0;

/* ---- state ---- */

function readState() {
	const p = new URLSearchParams(location.hash.slice(1));
	state = { since: p.has("since") ? p.get("since") : "24h", verdict: p.get("verdict") || "", backend: p.get("backend") || "", more: p.get("more") || "", id: p.get("id") || "" };
	if (!(state.since in PERIODS)) state.since = "24h";
}

function writeState(change, replace) {
	const s = { ...state, ...change };
	// Enter gives two events for one change; Back must not need two steps for it
	if (Object.keys(s).every((k) => s[k] === state[k])) return;
	const p = new URLSearchParams();
	if (s.since !== "24h") p.set("since", s.since);
	for (const k of ["verdict", "backend", "more", "id"]) if (s[k]) p.set(k, s[k]);
	const address = location.pathname + (p.size ? "#" + p : "");
	if (replace) history.replaceState(null, "", address);
	else history.pushState(null, "", address);
	onState();
}

// "session:abc cause:x" -> parameters; what is not understood is said, not dropped.
function filters() {
	const out = { since: state.since, verdict: state.verdict, backend: state.backend, label: [] };
	const bad = [];
	for (const word of state.more.trim().split(/\s+/).filter(Boolean)) {
		const at = word.search(/[:=]/);
		const name = word.slice(0, at), value = word.slice(at + 1);
		if (at < 1 || !value || !FILTERS.includes(name)) bad.push(word);
		else if (name === "label") out.label.push(value.includes("=") ? value : value.replace(":", "="));
		else out[name] = value;
	}
	return { params: out, bad };
}

/* ---- loading ---- */

const rows = (report) => (report && report.rows) || [];

async function report(name, params, signal) {
	return rows(await get("/v1/reports/" + name, { limit: 100, ...params }, signal));
}

function sum(list, name) {
	const m = new Map();
	for (const r of list) m.set(r[name] ?? "unknown", (m.get(r[name] ?? "unknown") || 0) + r.invocations);
	return [...m].map(([n, value]) => ({ name: n, value })).sort((a, b) => b.value - a.value);
}

const loadSummary = async (params, signal) => Object.fromEntries((await report("summary", params, signal)).map((r) => [r.name, r.value]));

// The report leaves out what lies before the first and after the last record: the axis does not.
async function loadTimeline(params, signal) {
	const got = (await get("/v1/reports/timeline", params, signal)).rows;
	const [, width] = PERIODS[state.since];
	const step = got.length ? new Date(got[0].end) - new Date(got[0].start) : width;
	const counts = new Map(got.map((r) => [+new Date(r.start), r]));
	const last = Math.floor(Date.now() / step) * step;
	const first = state.since || !got.length ? last - Math.max(Math.round(SPANS[state.since] / step), 12) * step + step : +new Date(got[0].start);
	const hours = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit" });
	const days = new Intl.DateTimeFormat("en-GB", { day: "numeric", month: "short" });
	const years = new Intl.DateTimeFormat("en-GB", { month: "short", year: "numeric" });
	const ticks = step < 6 * 3600e3 ? hours : step <= 86400e3 ? days : years;
	const buckets = [];
	for (let at = Math.min(first, got.length ? +new Date(got[0].start) : first); at <= last && buckets.length < 100; at += step)
		buckets.push({ counts: counts.get(at) || {}, tick: ticks.format(at), label: `${days.format(at)} ${step < 86400e3 ? hours.format(at) : ""}`.trim() });
	return buckets;
}

async function loadCauses(list, signal) {
	const known = new Map();
	await Promise.all(list.slice(0, 8).map(async (c) => {
		try {
			known.set(c.name, await get("/v1/causes/" + encodeURIComponent(c.name), {}, signal));
		} catch (e) {
			if (!(e instanceof Problem && e.status === 404)) throw e;
		}
	}));
	return known;
}

// Puts new content in place; what was opened stays open, and the focus where it was.
function show(id, ...nodes) {
	const at = $(id);
	const name = (e) => (e.tagName === "SUMMARY" ? "s " + e.textContent : e.id ? "i " + e.id : "h " + e.getAttribute("href"));
	const open = new Set([...at.querySelectorAll("details[open] > summary")].map(name));
	const focus = at.contains(document.activeElement) ? name(document.activeElement) : null;
	at.replaceChildren(...nodes.flat(Infinity).filter(Boolean));
	for (const s of at.querySelectorAll("details > summary")) s.parentElement.open = open.has(name(s));
	if (focus) [...at.querySelectorAll("summary, a, button")].find((e) => name(e) === focus)?.focus({ preventScroll: true });
}

// Without the machine's state the records are still worth showing.
async function lookAt(signal) {
	try {
		return await get("/v1/status", {}, signal);
	} catch (e) {
		if (e.name === "AbortError" || e.status === 401) throw e;
		notice(`The backends could not be looked at: ${e.message} ${e.fix || ""}`);
		return null;
	}
}

// list: the records too (live ones are put in by their events).
async function loadAll({ list = true } = {}) {
	const start = performance.now();
	clearTimeout(timer);
	timer = null;
	// a load that is cut short leaves its wish for the list to the next one
	listDue ||= list;
	if (loading) loading.abort();
	loading = new AbortController();
	const signal = loading.signal;
	const { params, bad } = filters();
	notice(bad.length ? `Not understood: ${bad.join(", ")}. Write name:value; the names are ${FILTERS.join(", ")}.` : "");
	pending = 0;
	try {
		if (listDue) await loadRecords(params, signal);
		listDue = false;
		const [summary, series, violations, unexplained, failures, levels, denials, status, ready] = await Promise.all([
			loadSummary(params, signal), loadTimeline(params, signal), report("violations", params, signal), report("unexplained", params, signal),
			report("failures", params, signal), report("levels", params, signal), report("denials", params, signal), lookAt(signal), get("/readyz", {}, signal).catch((e) => (e.status === 503 ? { ready: false, checks: {} } : Promise.reject(e)))]);
		const byCause = sum(failures.filter((r) => r.verdict === "runner_failed"), "cause");
		const causes = await loadCauses(byCause, signal);
		const d = { summary, period: PERIODS[state.since][0], violations, unexplained, failures: byCause, causes, status, ready };
		show("attention", view.attention(d));
		show("numbers", view.numbers(d));
		show("levels", view.levels(sum(levels.map((r) => ({ ...r, level: r.basis === "unknown" ? "unknown" : r.effective })), "level"), summary.invocations));
		show("causes", view.causes(byCause, causes));
		show("denied", view.denied(denials.map((r) => ({ name: r.resource, operation: r.operation, value: r.invocations }))));
		show("backends", view.backends(status));
		if (status) about(status);
		if (status) fillBackends(status);
		show("time", timeline(series));
		document.body.dataset.loaded = "yes";
	} catch (e) {
		failed(e);
		if (e.name === "AbortError") return; // a newer one goes on
	}
	cost = performance.now() - start;
	schedule(QUIET_MS);
}

async function loadRecords(params, signal, cursor) {
	const page = await get("/v1/invocations", { ...params, limit: PAGE, cursor }, signal);
	const body = $("records").tBodies[0];
	if (!cursor) body.replaceChildren();
	for (const r of page.invocations) body.append(view.record(r));
	next = page.next;
	foot();
}

function foot() {
	const n = $("records").tBodies[0].rows.length;
	show("records-foot", n ? el("span", {}, `${number(n)} shown`) : view.none("No invocation matches. "),
		next && n < ROWS_MAX ? el("button", { type: "button", id: "more", on: { click: more } }, "Load older ones") : null,
		next && n >= ROWS_MAX ? el("span", {}, "Narrow the filters to see others.") : null);
}

async function more() {
	try {
		await loadRecords(filters().params, undefined, next);
		$("more")?.focus();
	} catch (e) {
		failed(e);
	}
}

function failed(e) {
	if (e.name === "AbortError") return;
	if (e instanceof Problem && e.status === 401) {
		forgetToken();
		$("signin").hidden = false;
		$("content").hidden = true;
		stopFollowing?.();
		stopFollowing = null;
		setLink("off", "no token");
		return;
	}
	notice(e instanceof Problem ? `${e.title}: ${e.message} ${e.fix}` : "The service does not answer. It will be asked again.");
}

function notice(text) {
	$("notice").hidden = !text;
	show("notice", text ? el("p", {}, text) : null);
}

// The earlier of two wishes holds, so that a steady flow of events cannot put a load off for ever.
function schedule(ms) {
	const at = performance.now() + ms;
	if (timer && due <= at) return;
	clearTimeout(timer);
	due = at;
	timer = setTimeout(() => {
		timer = null;
		if (document.hidden) schedule(QUIET_MS);
		else loadAll({ list: false });
	}, ms);
}

function about(status) {
	const s = status.service;
	if (s) show("about", `sandwitnessd ${s.version}, since ${s.since}, ${number(s.packs.signatures)} signatures.`);
}

function fillBackends(status) {
	const select = $("f-backend");
	const names = new Set([...select.options].map((o) => o.value));
	for (const b of [...status.backends.map((x) => x.id), state.backend, "none"]) if (b && !names.has(b)) select.append(el("option", { value: b }, b)), names.add(b);
	select.value = state.backend;
}

/* ---- live ---- */

function setLink(kind, text) {
	$("link").className = "pill " + kind;
	$("link").textContent = text;
}

function matches(r) {
	const { params } = filters();
	return Object.entries(params).every(([k, v]) => {
		if (!v || !v.length || k === "since") return true;
		if (k === "label") return v.every((l) => String((r.labels || {})[l.split("=")[0]]) === l.slice(l.indexOf("=") + 1));
		return String(r[k === "level" ? "effective" : k] || "") === v;
	});
}

function onEvent(name, r) {
	if (name === "dropped") return notice("This page was too slow for the live events; it goes on from where it was.");
	if (name !== "complete" && name !== "end" && name !== "begin") return;
	pending++;
	if (!$("live").checked) return setLink("on", `live, ${number(pending)} new`);
	// on a trail of millions a load takes longer: then it comes less often
	schedule(Math.max(SETTLE_MS, 10 * cost));
	if (!matches(r)) return;
	const body = $("records").tBodies[0];
	const old = [...body.rows].find((row) => row.dataset.id === r.id);
	const row = view.record(r, true);
	if (old) old.replaceWith(row);
	else body.prepend(row);
	while (body.rows.length > ROWS_MAX) body.lastChild.remove();
	$("fresh").textContent = `${number(pending)} new invocations`;
	foot();
}

function startFollowing() {
	stopFollowing?.();
	stopFollowing = follow(onEvent, (kind, problem) => {
		if (kind === "live") setLink("on", "live");
		else setLink("off", problem && problem.status === 503 ? "all streams taken" : "reconnecting");
		if (problem && problem.status === 401) failed(problem);
	});
}

/* ---- one invocation ---- */

async function showDetail() {
	const dialog = $("detail");
	if (!state.id) return dialog.open && dialog.close();
	shown = state.id;
	try {
		const r = await get("/v1/invocations/" + encodeURIComponent(state.id), { explain: 1 });
		const cause = r.cause ? (await loadCauses([{ name: r.cause }])).get(r.cause) : null;
		show("detail-h", "Invocation ", view.when(r.started_at));
		show("detail-body", view.detail(r, cause));
	} catch (e) {
		if (e instanceof Problem && e.status === 401) return failed(e);
		show("detail-h", "Invocation");
		show("detail-body", el("p", { class: "notice" }, `${e.title || "Not shown"}: ${e.message} ${e.fix || ""}`));
	}
	if (!dialog.open) dialog.showModal();
	dialog.scrollTop = 0;
}

/* ---- wiring ---- */

function onState() {
	const before = { ...state };
	readState();
	for (const k of ["since", "verdict", "more"]) $("f-" + k).value = state[k];
	$("f-backend").value = state.backend;
	$("clear").hidden = !(state.verdict || state.backend || state.more);
	const changed = ["since", "verdict", "backend", "more"].some((k) => before[k] !== state[k]);
	if (changed) loadAll();
	if (before.id !== state.id) showDetail();
}

function setTheme(theme) {
	if (theme === "auto") document.documentElement.removeAttribute("data-theme");
	else document.documentElement.dataset.theme = theme;
	$("theme").textContent = "Theme: " + theme;
	localStorage.setItem("sandwitness-theme", theme);
}

function wire() {
	$("filters").addEventListener("submit", (e) => e.preventDefault());
	for (const k of ["since", "verdict", "backend", "more"]) $("f-" + k).addEventListener("change", (e) => writeState({ [k]: e.target.value }));
	$("f-more").addEventListener("keydown", (e) => e.key === "Enter" && writeState({ more: e.target.value }));
	$("clear").addEventListener("click", () => writeState({ verdict: "", backend: "", more: "" }));
	$("refresh").addEventListener("click", () => loadAll());
	$("live").addEventListener("change", () => {
		pending = 0;
		setLink("on", $("live").checked ? "live" : "paused");
		if ($("live").checked) loadAll();
	});
	$("theme").addEventListener("click", () => setTheme({ auto: "light", light: "dark", dark: "auto" }[localStorage.getItem("sandwitness-theme") || "auto"]));
	$("probe").addEventListener("click", async () => {
		$("probe").disabled = true;
		try {
			show("backends", view.backends(await get("/v1/status", { probe: 1 })));
		} catch (e) {
			failed(e);
		}
		$("probe").disabled = false;
	});
	$("signin-form").addEventListener("submit", (e) => {
		e.preventDefault();
		setToken($("token").value.trim());
		$("token").value = "";
		start();
	});
	$("detail-close").addEventListener("click", () => $("detail").close());
	$("detail").addEventListener("close", () => {
		if (state.id) writeState({ id: "" });
		// the row that had the focus may have been put in anew meanwhile
		[...$("records").tBodies[0].rows].find((row) => row.dataset.id === shown)?.querySelector("a").focus();
	});
	$("detail").addEventListener("click", (e) => e.target === $("detail") && $("detail").close());
	addEventListener("hashchange", () => (takeToken(), onState()));
	addEventListener("popstate", onState);
	addEventListener("keydown", (e) => {
		if (e.ctrlKey || e.metaKey || e.altKey || /^(INPUT|SELECT|TEXTAREA)$/.test(e.target.tagName) || $("detail").open) return;
		if (e.key === "/") $("f-more").focus(), e.preventDefault();
		if (e.key === "r") loadAll();
	});
	document.addEventListener("visibilitychange", () => !document.hidden && pending && loadAll({ list: !$("live").checked }));
}

function start() {
	$("signin").hidden = true;
	$("content").hidden = false;
	loadAll();
	startFollowing();
	if (state.id) showDetail();
}

takeToken();
setTheme(localStorage.getItem("sandwitness-theme") || "auto");
readState();
onState();
wire();
start();

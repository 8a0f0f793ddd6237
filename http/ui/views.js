// What each part of the page shows. Functions take data and return nodes.

import { LABELS, bars, captured, el, number, percent, short } from "./charts.js";

export const tag = (verdict) => el("span", { class: "tag " + verdict }, LABELS[verdict] || verdict || "unfinished");
export const link = (id) => "#" + new URLSearchParams({ ...Object.fromEntries(new URLSearchParams(location.hash.slice(1))), id });

export function when(iso) {
	const d = new Date(iso);
	return el("time", { datetime: iso, title: iso }, Number.isNaN(+d) ? String(iso) : new Intl.DateTimeFormat("en-GB", { month: "short", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit" }).format(d));
}

export function ago(iso) {
	const s = (Date.now() - new Date(iso)) / 1000;
	if (!(s >= 0)) return "now";
	for (const [unit, n] of [["d", 86400], ["h", 3600], ["min", 60]]) if (s >= n) return `${Math.floor(s / n)} ${unit} ago`;
	return `${Math.floor(s)} s ago`;
}

/* ---- attention ---- */

function adviceOf(cause) {
	const remedy = cause && (cause.remedies || [])[0];
	if (!remedy) return null;
	return el("p", { class: "do" }, el("b", {}, "To do: "), remedy.for ? remedy.for + ": " : "", remedy.do);
}

function card(kind, n, title, ...rest) {
	return el("li", { class: "card " + kind }, el("h3", {}, n === null ? null : el("span", { class: "n" }, short(n)), title), rest);
}

const examples = (rows) => el("ul", { class: "plain muted" }, rows.slice(0, 3).map((r) => el("li", {}, el("a", { href: link(r.last_id) }, `${r.backend} ${ago(r.last)}`), ` without ${(r.lost || r.violated || ["a known level"]).join(", ")}`)));

// d: {summary, violations, unexplained, failures, causes, status, ready, period}
export function attention(d) {
	const cards = [];
	if (d.ready && !d.ready.ready)
		cards.push(card("bad", null, "The service is not ready", el("p", {}, Object.entries(d.ready.checks).filter(([, v]) => v !== "ok").map(([k, v]) => `${k}: ${v}`).join(", ")), el("p", { class: "do" }, el("b", {}, "To do: "), "see the service's log, then ", el("code", {}, "sandwitness verify"))));
	const s = d.summary;
	if (s.violations)
		cards.push(card("bad", s.violations, s.violations === 1 ? "violation" : "violations", el("p", {}, "Ran with less than the required minimum."), examples(d.violations)));
	if (s.unexplained)
		cards.push(card("bad", s.unexplained, s.unexplained === 1 ? "unexplained downgrade" : "unexplained downgrades", el("p", {}, "Less containment than was asked for, and no reason recorded."), examples(d.unexplained)));
	for (const f of d.failures.slice(0, 3)) {
		const c = d.causes.get(f.name);
		cards.push(card("warn", f.value, f.value === 1 ? "runner failure" : "runner failures", el("p", {}, el("code", {}, f.name), c ? " – " + c.title : ""), adviceOf(c)));
	}
	if (s.sandbox_unavailable)
		cards.push(card("warn", s.sandbox_unavailable, "refused, no sandbox", el("p", {}, "Nothing was executed. Look at the backends below.")));
	const seen = (d.status && d.status.backends) || [];
	const broken = seen.filter((b) => b.found && b.last_probe && b.last_probe.result === "unusable");
	if (broken.length)
		cards.push(card("warn", broken.length, broken.length === 1 ? "installed runner does not work" : "installed runners do not work", broken.slice(0, 5).map((b) =>
			el("details", { class: "advice" }, el("summary", {}, b.id, " – ", el("code", {}, b.last_probe.cause || "unknown")), b.last_probe.advice ? el("p", { class: "do" }, captured(b.last_probe.advice, { max: 400 })) : null, b.last_probe.line ? el("pre", { class: "captured" }, captured(b.last_probe.line, { max: 500 })) : null))));
	for (const b of seen.filter((x) => x.untrusted_path)) cards.push(card("bad", null, `${b.id}: an untrusted program was skipped`, el("p", {}, captured(b.untrusted_path), b.untrusted_why ? [": ", captured(b.untrusted_why)] : null)));
	if (d.status && d.status.disabled_via_env) cards.push(card("bad", null, "Sandboxing is switched off", el("p", {}, "An environment variable of this service disables it: commands would run unconfined or be refused.")));
	for (const b of (d.status && d.status.service && d.status.service.packs.broken) || [])
		cards.push(card("warn", null, "A signature pack was left out", el("p", {}, captured(b.where), ": ", captured(b.what)), b.fix ? el("p", { class: "do" }, el("b", {}, "To do: "), captured(b.fix)) : null));
	if (!cards.length) cards.push(card("good", null, "Nothing needs attention", el("p", { class: "muted" }, s.invocations ? `${number(s.invocations)} invocations ${d.period}: no violation, no unexplained downgrade, no runner failure.` : `No invocation is recorded ${d.period}. Run one:`, s.invocations ? null : el("code", { class: "cmd" }, "sandwitness run --sandbox workspace_write -- make test"))));
	return el("ul", { class: "cards" }, cards);
}

/* ---- numbers ---- */

export function numbers(d) {
	const s = d.summary, all = s.invocations;
	const row = (name, n, whole) => el("div", {}, el("dt", {}, name), el("dd", {}, short(n || 0), whole ? el("small", {}, " " + percent(n || 0, whole)) : null));
	return [row("Invocations", all), row("ok", s.ok, all), row("Sandbox denied", s.sandbox_denied, all), row("Runner failed", s.runner_failed, all),
		row("Refused", s.sandbox_unavailable, all), row("Contained", s.contained, all), row("Downgraded", s.downgrades, all), row("Unfinished", s.unfinished)];
}

/* ---- lists ---- */

export const none = (text) => el("p", { class: "muted" }, text);

export function levels(rows, total) {
	if (!rows.length) return none("No level is recorded in this period.");
	return bars(rows.map((r) => ({ ...r, title: r.name, kind: r.name === "none" ? "none" : r.name === "unknown" ? "unknown" : "" })), total);
}

export function causes(rows, known) {
	if (!rows.length) return none("No runner failed in this period.");
	return bars(rows.slice(0, 8).map((r) => {
		const c = known.get(r.name);
		const more = c && el("details", { class: "advice" }, el("summary", {}, c.title || "Advice"),
			c.why ? el("p", {}, c.why) : null,
			(c.check || []).length ? [el("p", {}, "Look first:"), c.check.map((x) => el("code", { class: "cmd" }, x))] : null,
			el("ul", {}, (c.remedies || []).map((x) => el("li", {}, x.for ? x.for + ": " : "", el("code", { class: "cmd" }, x.do), x.risk ? el("span", { class: "muted" }, "Risk: " + x.risk + (x.tested ? "" : " (not tested by us)")) : null))),
			c.verify ? [el("p", {}, "Mended when this works:"), el("code", { class: "cmd" }, c.verify)] : null,
			c.cannot_help ? el("p", { class: "muted" }, "Cannot help: " + c.cannot_help) : null);
		return { ...r, kind: "failed", title: r.name, href: "#" + new URLSearchParams({ verdict: "runner_failed", more: "cause:" + r.name }), more };
	}));
}

export function denied(rows) {
	if (!rows.length) return none("No denial was observed in this period.");
	return bars(rows.slice(0, 10).map((r) => ({ ...r, kind: "denied", name: [r.operation ? el("span", { class: "tag warn" }, r.operation) : null, r.operation ? " " : "", captured(r.name || "(not named)", { max: 200 })], title: r.name || "" })));
}

export function backends(status) {
	if (!status) return none("The status could not be read.");
	const rows = status.backends.filter((b) => b.found || b.last_probe || b.untrusted_path);
	if (!rows.length) return [none("No sandbox runner was found on this machine's PATH."), el("code", { class: "cmd" }, "sandwitness doctor")];
	const kind = { full: "ok", partial: "warn", unusable: "bad", unknown: "warn" };
	return el("table", { class: "small" }, el("thead", {}, el("tr", {}, ["Backend", "Proof", "When"].map((h) => el("th", { scope: "col" }, h)))),
		el("tbody", {}, rows.map((b) => {
			const p = b.last_probe;
			const context = p && p.context ? Object.entries(p.context).map(([k, v]) => `${k}: ${v}`).join("\n") : "";
			return el("tr", {}, el("th", { scope: "row" }, b.id, b.version ? el("span", { class: "muted" }, " " + b.version) : null),
				el("td", {}, p ? el("span", { class: "tag " + (kind[p.result] || ""), title: context }, p.result) : el("span", { class: "tag" }, "found, not proved"), p && p.cause ? [" ", el("code", {}, p.cause)] : null),
				el("td", { class: "when" }, p && p.at ? el("time", { datetime: p.at, title: p.at }, ago(p.at)) : "never"));
		})));
}

/* ---- records ---- */

function commandOf(r) {
	const c = r.command ?? r.argv;
	return Array.isArray(c) ? c.map((a) => (/^[\w@%+=:,./-]+$/.test(a) ? a : JSON.stringify(a))).join(" ") : c || "";
}

function levelOf(r) {
	const name = r.effective || r.level || "";
	if (r.violation) return el("span", { class: "tag bad", title: "below the required minimum" }, (name || "unknown") + " · violation");
	if (r.downgrade) return el("span", { class: "tag " + (r.unexplained ? "bad" : "warn"), title: "lost: " + (r.lost || []).join(", ") }, (name || "unknown") + " · downgraded");
	return name;
}

export function record(r, fresh) {
	const said = r.line || r.cause || "";
	return el("tr", { class: fresh ? "new" : null, "data-id": r.id },
		el("td", {}, el("a", { href: link(r.id), "aria-label": `Invocation ${r.started_at || r.id}, ${r.verdict || "unfinished"}` }, when(r.started_at))),
		el("td", {}, tag(r.verdict)),
		el("td", {}, captured(r.backend || "", { max: 60 })),
		el("td", {}, levelOf(r)),
		el("td", {}, said ? captured(said, { max: 300 }) : null),
		el("td", { class: "mono" }, captured(commandOf(r), { max: 300 })));
}

/* ---- one invocation ---- */

const RULES = {
	1: "Confinement was explicitly off", 2: "Exit code 0 is ok, whatever was printed", 3: "Proof that the command never started",
	4: "Runner failure: a line of the runner itself, or a code it keeps for itself", 5: "Denial by the sandbox", 6: "Otherwise ok: no denial was observed",
};

function fact(name, value) {
	if (value === null || value === undefined || value === "" || (Array.isArray(value) && !value.length)) return null;
	return [el("dt", {}, name), el("dd", {}, value instanceof Node ? value : captured(Array.isArray(value) ? value.join(", ") : String(value), { max: 2000 }))];
}

function path(r) {
	const x = r.explanation;
	const rules = x ? x.rules : [1, 2, 3, 4, 5, 6].filter((n) => n <= (r.rule || 0)).map((n) => ({ rule: n, applied: n === r.rule, text: n === r.rule ? "decided" : "did not apply" }));
	if (!rules.length) return null;
	return [el("h3", {}, "Decision path"), el("ol", { class: "path" }, rules.map((s) => el("li", { class: s.applied ? "applied" : null, value: s.rule }, RULES[s.rule] || "", " – ", captured(s.text)))),
		x ? null : el("p", { class: "muted" }, "The output was not kept: this is the path as recorded."),
		x && x.near_misses.length ? [el("h3", {}, "Near misses"), el("ul", {}, x.near_misses.slice(0, 20).map((n) => el("li", {}, `line ${n.line_number}, column ${n.column}: ${n.kind.replaceAll("_", " ")} `, n.signature ? el("code", {}, n.signature) : null, el("pre", { class: "captured" }, captured(n.line, { max: 500 })))))] : null,
		x && x.unclaimed.length ? [el("h3", {}, `Lines that no signature claims (${number(x.unclaimed_total)})`), el("pre", { class: "captured" }, x.unclaimed.map((u) => [`${u.line_number}: `, captured(u.line, { max: 500 }), "\n"]))] : null];
}

export function detail(r, cause) {
	const seconds = r.ended_at && r.started_at ? (new Date(r.ended_at) - new Date(r.started_at)) / 1000 : null;
	return [
		el("p", {}, tag(r.verdict), " ", [r.stage && `stage ${r.stage}`, r.exit !== null && r.exit !== undefined && `exit ${r.exit}`, r.timed_out && "timed out", r.confidence, r.evidence && `evidence ${r.evidence}` + (r.evidence_source ? ` (${r.evidence_source})` : "")].filter(Boolean).join(", ")),
		r.evidence === "text" ? el("p", { class: "muted" }, "This rests on text that the command itself could have printed: loosen no sandbox because of it.") : null,
		r.line ? [el("h3", {}, r.line_number ? `Deciding line (${number(r.line_number)})` : "Deciding line"), el("pre", { class: "captured" }, captured(r.line))] : null,
		el("dl", { class: "facts" },
			fact("Command", commandOf(r) ? el("code", {}, captured(commandOf(r), { max: 4096 })) : null), fact("Folder", r.cwd), fact("Cause", r.cause), fact("Signature", r.signature), fact("Operation", r.operation), fact("Resource", r.resource),
			fact("Backend", r.backend), fact("Mode", r.mode === "unknown" ? null : r.mode), fact("Network", r.network === "unknown" ? null : r.network), fact("Requested", r.requested), fact("Minimum", r.minimum), fact("Effective", r.effective ? `${r.effective} (basis: ${r.basis || "unknown"})` : null), fact("Lost", r.lost), fact("Violated", r.violated), fact("Reason", r.reason),
			fact("Started", r.started_at ? when(r.started_at) : null), fact("Took", seconds === null ? null : `${number(seconds)} s`), fact("Session", r.session), fact("Actor", r.actor), fact("Device", r.device), fact("Platform", r.platform), fact("Runtime", r.runtime),
			fact("Labels", Object.entries(r.labels || {}).map(([k, v]) => `${k}=${v}`)), fact("Output", r.output_size ? `${number(r.output_size)} bytes` : null), fact("Id", r.id), fact("Chain row", r.seq)),
		cause && (cause.remedies || []).length ? [el("h3", {}, "Advice"), el("p", {}, cause.title, cause.why ? ": " + cause.why : ""), el("ul", {}, cause.remedies.map((x) => el("li", {}, x.for ? x.for + ": " : "", el("code", { class: "cmd" }, x.do), x.risk ? el("span", { class: "muted" }, "Risk: " + x.risk) : null)))] : null,
		path(r),
		(r.observations || []).length ? [el("h3", {}, "Observations"), el("ul", {}, r.observations.map((o) => el("li", {}, String(o.kind).replaceAll("_", " "), o.line ? el("pre", { class: "captured" }, captured(o.line, { max: 500 })) : null)))] : null,
		(r.downgrades || []).length ? [el("h3", {}, "Downgrade notices"), el("ul", {}, r.downgrades.map((o) => el("li", {}, (o.lost || []).join(", "), o.line ? el("pre", { class: "captured" }, captured(o.line, { max: 500 })) : null)))] : null,
		typeof r.output === "string" ? [el("h3", {}, "Kept output"), el("pre", { class: "captured", tabindex: "0" }, captured(r.output, { max: 65536, lines: true }))] : null,
	];
}

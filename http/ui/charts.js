// Elements, captured text, and charts as SVG.

const SVG = "http://www.w3.org/2000/svg";
export const VERDICTS = ["ok", "sandbox_denied", "runner_failed", "sandbox_unavailable"];
export const LABELS = { ok: "ok", sandbox_denied: "sandbox denied", runner_failed: "runner failed", sandbox_unavailable: "unavailable" };

function build(node, attributes, children) {
	for (const [k, v] of Object.entries(attributes || {})) {
		if (v === undefined || v === null || v === false) continue;
		if (k === "on") for (const [name, f] of Object.entries(v)) node.addEventListener(name, f);
		else node.setAttribute(k, v === true ? "" : String(v));
	}
	for (const c of children.flat(Infinity)) if (c !== null && c !== undefined && c !== false) node.append(c);
	return node;
}

// Strings become text nodes: nothing captured is ever parsed as markup.
export const el = (tag, attributes, ...children) => build(document.createElement(tag), attributes, children);
export const svg = (tag, attributes, ...children) => build(document.createElementNS(SVG, tag), attributes, children);

export const number = (n) => new Intl.NumberFormat("en", { maximumFractionDigits: 1 }).format(n);
export function short(n) {
	return n < 10000 ? number(n) : new Intl.NumberFormat("en", { notation: "compact", maximumFractionDigits: 1 }).format(n);
}
export function percent(part, whole) {
	if (!whole) return "–";
	const p = (100 * part) / whole;
	return part && p < 0.1 ? "<0.1 %" : part !== whole && p > 99.9 ? ">99.9 %" : number(p) + " %";
}

// Controls, line separators, joiners and everything that changes the direction of text.
const HIDDEN = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]|\udb40[\udc00-\udc7f]/g;

function name(c) {
	const n = c.codePointAt(0);
	return n < 256 ? "\\x" + n.toString(16).padStart(2, "0") : "\\u{" + n.toString(16) + "}";
}

// Captured text: what cannot be seen is written out and marked.
export function captured(text, { max = 4096, lines = false } = {}) {
	const out = el("span", { class: "captured" });
	let rest = String(text);
	const cut = rest.length > max;
	if (cut) rest = rest.slice(0, max);
	if (!lines) rest = rest.replace(/\n/g, "\u2028");
	let from = 0;
	for (const m of rest.matchAll(HIDDEN)) {
		if (m.index > from) out.append(rest.slice(from, m.index));
		out.append(el("span", { class: "esc" }, m[0] === "\u2028" && !lines ? "\\n" : name(m[0])));
		from = m.index + m[0].length;
	}
	out.append(rest.slice(from));
	if (cut) out.append(el("span", { class: "esc" }, ` … ${number(String(text).length - max)} more`));
	return out;
}

function niceTop(max) {
	if (max <= 4) return 4;
	const step = 10 ** Math.floor(Math.log10(max));
	for (const f of [1, 2, 3, 4, 6, 8, 10]) if (f * step >= max) return f * step;
	return 10 * step;
}

// buckets: [{start, end, label, tick, counts: {verdict: n}}]. A table with the same numbers
// follows for those who do not see the picture.
export function timeline(buckets) {
	const W = 760, H = 190, L = 40, B = 22, T = 8;
	const total = (b) => VERDICTS.reduce((s, v) => s + (b.counts[v] || 0), 0);
	const top = niceTop(Math.max(...buckets.map(total), 1));
	const width = (W - L) / buckets.length;
	const y = (n) => T + (H - T - B) * (1 - n / top);
	const sum = buckets.reduce((s, b) => s + total(b), 0);
	const chart = svg("svg", { viewBox: `0 0 ${W} ${H}`, role: "img", "aria-label": `Stacked bars: ${number(sum)} invocations in ${buckets.length} periods` });
	for (const n of [0, top / 2, top]) {
		chart.append(svg("line", { class: "axis", x1: L, x2: W, y1: y(n), y2: y(n) }), svg("text", { x: L - 6, y: y(n) + 4, "text-anchor": "end" }, short(n)));
	}
	const every = Math.ceil(buckets.length / 8);
	buckets.forEach((b, i) => {
		const x = L + i * width;
		let at = 0;
		const bar = svg("g", {}, svg("title", {}, `${b.label}: ` + (VERDICTS.filter((v) => b.counts[v]).map((v) => `${number(b.counts[v])} ${LABELS[v]}`).join(", ") || "none")));
		bar.append(svg("rect", { x, y: T, width, height: H - T - B, fill: "transparent" }));
		for (const v of VERDICTS) {
			const n = b.counts[v] || 0;
			if (!n) continue;
			// what is rare must stay visible beside what is common
			const h = Math.max(y(at) - y(at + n), 1.5);
			bar.append(svg("rect", { class: "s-" + v, x: x + width * 0.12, width: width * 0.76, y: y(at) - h, height: h, rx: 1 }));
			at += n;
		}
		chart.append(bar);
		if (i % every === 0) chart.append(svg("text", { x: x + width / 2, y: H - 6, "text-anchor": "middle" }, b.tick));
	});
	const table = el("table", {}, el("caption", {}, "Verdicts over time"),
		el("thead", {}, el("tr", {}, el("th", { scope: "col" }, "Period"), VERDICTS.map((v) => el("th", { scope: "col" }, LABELS[v])))),
		el("tbody", {}, buckets.map((b) => el("tr", {}, el("th", { scope: "row" }, b.label), VERDICTS.map((v) => el("td", {}, String(b.counts[v] || 0)))))));
	return [chart, legend(), el("div", { class: "sr" }, table)];
}

export function legend() {
	return el("ul", { class: "legend", "aria-hidden": "true" }, VERDICTS.map((v) => el("li", {}, svg("svg", { viewBox: "0 0 10 10" }, svg("rect", { class: "s-" + v, width: 10, height: 10, rx: 2 })), LABELS[v])));
}

// rows: [{name, value, kind, href, more}]
export function bars(rows, whole) {
	const top = Math.max(...rows.map((r) => r.value), 1);
	return el("ul", { class: "bars" }, rows.map((r) => el("li", {},
		r.href ? el("a", { class: "name", href: r.href, title: r.title }, r.name) : el("span", { class: "name", title: r.title }, r.name),
		el("span", { class: "value" }, number(r.value), whole ? ` · ${percent(r.value, whole)}` : ""),
		svg("svg", { viewBox: "0 0 100 6", preserveAspectRatio: "none", "aria-hidden": "true" },
			svg("rect", { class: "track", width: 100, height: 6, rx: 1 }),
			svg("rect", { class: "fill " + (r.kind || ""), width: Math.max((100 * r.value) / top, 0.8), height: 6, rx: 1 })),
		r.more || null)));
}

// Talking to the service: the token, JSON with ETags, and the event stream.

const KEY = "sandwitness-token";
const cache = new Map(); // address -> {etag, body}; holds the few addresses a page asks for again
const CACHE_MAX = 200;

export class Problem extends Error {
	constructor(status, body) {
		super(body.detail || body.title || `the service answered ${status}`);
		this.status = status;
		this.title = body.title || "The service answered " + status;
		this.fix = body.fix || "";
	}
}

// The fragment never leaves the browser. It is taken out of the address bar, so that a
// copied address does not give the token away.
export function takeToken() {
	const params = new URLSearchParams(location.hash.slice(1));
	const token = params.get("token");
	if (!token) return;
	setToken(token);
	params.delete("token");
	history.replaceState(null, "", location.pathname + (params.size ? "#" + params : ""));
}

export function setToken(token) {
	sessionStorage.setItem(KEY, token);
	cache.clear();
}

export function forgetToken() {
	sessionStorage.removeItem(KEY);
	cache.clear();
}

function headers(extra) {
	const h = { ...extra };
	const token = sessionStorage.getItem(KEY);
	if (token) h.Authorization = "Bearer " + token;
	return h;
}

async function problemOf(response) {
	let body = {};
	try {
		body = await response.json();
	} catch {
		// not one of ours: a proxy's page, or a cut connection
	}
	return new Problem(response.status, body);
}

export async function get(path, params, signal) {
	const query = new URLSearchParams();
	for (const [k, v] of Object.entries(params || {})) {
		for (const one of Array.isArray(v) ? v : [v]) if (one !== undefined && one !== null && one !== "") query.append(k, one);
	}
	const address = path + (query.size ? "?" + query : "");
	const known = cache.get(address);
	const response = await fetch(address, { headers: headers(known ? { "If-None-Match": known.etag } : {}), cache: "no-store", signal });
	if (response.status === 304 && known) return known.body;
	if (!response.ok) throw await problemOf(response);
	const body = await response.json();
	const etag = response.headers.get("ETag");
	if (etag) {
		if (cache.size >= CACHE_MAX) cache.delete(cache.keys().next().value);
		cache.set(address, { etag, body });
	}
	return body;
}

// A stream by fetch, because EventSource cannot send the token. onEvent(name, data, id);
// onState("live" | "waiting", problem). Comes back by itself from where it was.
export function follow(onEvent, onState) {
	let last = null, stopped = false, wait = 1000, abort = null;

	async function once() {
		abort = new AbortController();
		const response = await fetch("/v1/events", {
			headers: headers(last === null ? {} : { "Last-Event-ID": last }), cache: "no-store", signal: abort.signal,
		});
		if (!response.ok) throw await problemOf(response);
		onState("live");
		wait = 1000;
		const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
		let text = "";
		for (;;) {
			const { value, done } = await reader.read();
			if (done) return;
			text += value;
			for (let end; (end = text.indexOf("\n\n")) >= 0; text = text.slice(end + 2)) deliver(text.slice(0, end));
		}
	}

	function deliver(block) {
		let name = "message", data = "", id = null;
		for (const line of block.split("\n")) {
			if (line.startsWith("event: ")) name = line.slice(7);
			else if (line.startsWith("data: ")) data += line.slice(6);
			else if (line.startsWith("id: ")) id = line.slice(4);
		}
		if (id !== null) last = id;
		if (!data) return;
		try {
			onEvent(name, JSON.parse(data), id);
		} catch (e) {
			console.warn("an event could not be shown", e);
		}
	}

	(async () => {
		while (!stopped) {
			let problem = null;
			try {
				await once();
			} catch (e) {
				problem = e;
			}
			if (stopped) return;
			onState("waiting", problem);
			if (problem && problem.status === 401) return;
			await new Promise((go) => setTimeout(go, wait));
			wait = Math.min(wait * 2, 30000);
		}
	})();
	return () => {
		stopped = true;
		if (abort) abort.abort();
	};
}

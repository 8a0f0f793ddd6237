// A service of the test's own, with records of its own.
import { spawn } from "node:child_process";
import fs from "node:fs";
import http from "node:http";
import os from "node:os";
import path from "node:path";
import readline from "node:readline";

export class Service {
	static async start(...options) {
		const s = new Service();
		s.dir = fs.mkdtempSync(path.join(os.tmpdir(), "sw-browser-"));
		s.socket = path.join(s.dir, "http.sock");
		const program = process.env.SANDWITNESSD || path.join(process.env.SW_BUILD_DIR || "build", "sandwitnessd");
		s.process = spawn(program, ["--db", path.join(s.dir, "audit.db"), "--listen", "unix:" + s.socket, "--listen", "127.0.0.1:0", "--print-token", "--probe-age", "0s", ...options],
			{ stdio: ["ignore", "pipe", "inherit"], env: { ...process.env, XDG_CONFIG_HOME: path.join(s.dir, "config"), XDG_STATE_HOME: s.dir } });
		const lines = readline.createInterface({ input: s.process.stdout });
		for await (const line of lines) {
			const m = line.match(/http:\/\/127\.0\.0\.1:\d+\/#token=\S+/);
			if (m) {
				s.url = m[0];
				break;
			}
		}
		s.base = s.url.split("#")[0];
		return s;
	}

	request(method, address, body) {
		return new Promise((done, failed) => {
			const text = body === undefined ? undefined : JSON.stringify(body);
			const r = http.request({ socketPath: this.socket, method, path: address, headers: { Host: "localhost", ...(text ? { "Content-Type": "application/json", "Content-Length": Buffer.byteLength(text) } : {}) } }, (a) => {
				let all = "";
				a.setEncoding("utf8");
				a.on("data", (d) => (all += d));
				a.on("end", () => done({ status: a.statusCode, body: all ? JSON.parse(all) : null }));
			});
			r.on("error", failed);
			r.end(text);
		});
	}

	async record(...records) {
		for (let i = 0; i < records.length; i += 100) {
			const a = await this.request("POST", "/v1/invocations", records.slice(i, i + 100));
			if (a.status !== 200 || a.body.failed) throw new Error("not recorded: " + JSON.stringify(a.body).slice(0, 600));
		}
	}

	async stop() {
		if (this.process.exitCode === null && this.process.signalCode === null) {
			const ended = new Promise((done) => this.process.once("exit", done));
			this.process.kill();
			await ended;
		}
		fs.rmSync(this.dir, { recursive: true, force: true });
	}
}

const at = (secondsAgo) => new Date(Date.now() - secondsAgo * 1000).toISOString();

// Every kind of thing that a dashboard shows, spread over a day.
export function ordinary(n) {
	const kinds = [
		[20, { exit: 0, output: "built in 4 s\n" }],
		[4, { exit: 1, output: "touch: cannot touch '/etc/hosts': Read-only file system\n" }],
		[2, { exit: 1, output: "bwrap: setting up uid map: Permission denied\n" }],
		[1, { backend: "docker", requested: "docker", effective: "docker", exit: 125, output: "docker: Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?\n" }],
		[1, { backend: "landlock", effective: "landlock", exit: 0, output: "" }],
		[1, { backend: "none", effective: "none", minimum: "bwrap", exit: 0, output: "" }],
		[3, { exit: 2, output: "make: *** [all] Error 2\n" }],
	];
	const pool = kinds.flatMap(([k, r]) => Array(k).fill(r));
	return Array.from({ length: n }, (_, i) => ({ id: `ordinary-${i}`, backend: "bwrap", command: ["make", "-C", "/srv/job/ws", "test"], requested: "bwrap", effective: "bwrap", session: `session-${i % 5}`, actor: "agent-1",
		started_at: at(((i * 7919) % 86000) + 10), ended_at: at(((i * 7919) % 86000) + 5), ...pool[(i * 31) % pool.length] }));
}

export const HOSTILE = [
	"<script>window.pwned = 1</script><img src=x onerror='window.pwned = 1'>",
	"\u001b[31mred\u001b[0m \u001b]0;title\u0007 \u001b[2J",
	"\u202egnp.exe\u202c \u2066isolated\u2069 \u200bzero",
	"x".repeat(1 << 20),
	"'\"><svg/onload=window.pwned=1>",
	"javascript:window.pwned=1",
	"{{constructor.constructor('window.pwned=1')()}}",
];

export function hostile() {
	return HOSTILE.map((text, i) => ({ id: `hostile-${i}`, backend: "bwrap", exit: 1, command: ["sh", "-c", text.slice(0, 4000)], session: text.slice(0, 100), actor: text.slice(0, 100), reason: text.slice(0, 500), requested: "bwrap", effective: "bwrap",
		output: `touch: cannot touch '/etc/${text.slice(0, 800)}': Read-only file system\n${text}\n`, keep_output: 65536, labels: { note: text.slice(0, 100) } }));
}

#!/usr/bin/env python3
"""How long status, its probes and the start-up gate take as processes.

Bars, on an idle machine: status 5 ms, with the bwrap probe 150 ms. Medians are printed;
nothing fails by time. Usage: status_bench.py [PROGRAM] [RUNS]"""
import os
import statistics
import subprocess
import sys
import time

program = sys.argv[1] if len(sys.argv) > 1 else os.environ.get("SANDWITNESS", "build/sandwitness")
runs = int(sys.argv[2]) if len(sys.argv) > 2 else 50
cases = [
    (["version"], None),
    (["status", "--json"], 5),
    (["status", "--probe=bwrap", "--json"], 150),
    (["status", "--probe=landlock", "--json"], None),
    (["preflight", "--backend", "bwrap"], None),
    (["confine", "--json", "--sandbox", "read_only", "--workspace", "/tmp", "--", "true"], None),
]
print(f"{'command':48} {'median':>8} {'least':>8} {'most':>8} {'bar':>6}  ms, {runs} runs")
for args, bar in cases:
    times = []
    for _ in range(runs):
        start = time.perf_counter()
        subprocess.run([program, *args], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
        times.append((time.perf_counter() - start) * 1000)
    median = statistics.median(times)
    note = "" if bar is None else f"{bar:6d}" + ("" if median <= bar else "  over")
    print(f"{' '.join(args)[:48]:48} {median:8.1f} {min(times):8.1f} {max(times):8.1f} {note}")

"""What showing a run costs it: the command line against the endpoint with a streaming client.

    python -m benchmarks.streaming --repeats 5

Starts the app as a process of its own and alternates with the command line; the client reads every
update, in this process. Prints one JSON line: medians of the assisted and the plain tokens per
second of both, their ratios, and the updates a second that the client was sent.
"""

from __future__ import annotations

import argparse
import json
import os
import socket
import subprocess
import sys
import time
from pathlib import Path
from statistics import median
from typing import Any

from gradio_client import Client

ROOT = Path(__file__).resolve().parents[1]
PROMPT = "Tell a short story about a clockmaker who finds a clock that runs backwards."


def by_command_line(tokens: int) -> dict[str, Any]:
    """The result of `compare --json`."""
    command = [sys.executable, "-m", "uag_core", "compare", "--json", "--prompt", PROMPT]
    done = subprocess.run(
        [*command, "--max-new-tokens", str(tokens)], cwd=ROOT, capture_output=True, check=True
    )
    return dict(json.loads(done.stdout))


def by_client(client: Client, tokens: int) -> tuple[dict[str, Any], float, float]:
    """The result of `/compare`, updates a second, and the most that came within one second."""
    job = client.submit(PROMPT, max_new_tokens=tokens, api_name="/compare")
    arrivals = []
    last: dict[str, Any] = {}
    for update in job:
        arrivals.append(time.monotonic())
        last = update
    most = max(sum(at <= other < at + 1 for other in arrivals) for at in arrivals)
    return last["result"], len(arrivals) / (arrivals[-1] - arrivals[0]), float(most)


def served(port: int) -> subprocess.Popen[bytes]:
    """The app on a port, once it answers."""
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port)}
    process = subprocess.Popen(
        [sys.executable, "app.py"], cwd=ROOT, env=environment, stdout=subprocess.DEVNULL
    )
    for _ in range(240):
        time.sleep(0.5)
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return process
    process.terminate()
    raise SystemExit("The app did not start.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--max-new-tokens", type=int, default=64)
    parser.add_argument("--port", type=int, default=7899)
    args = parser.parse_args()
    process = served(args.port)
    rates: dict[str, list[float]] = {}
    updates, most = [], []
    try:
        client = Client(f"http://127.0.0.1:{args.port}", verbose=False)
        by_client(client, 4)  # loads the pair
        for _ in range(args.repeats):
            line = by_command_line(args.max_new_tokens)
            streamed, mean, peak = by_client(client, args.max_new_tokens)
            updates.append(mean)
            most.append(peak)
            for way, result in (("command_line", line), ("client", streamed)):
                for part in ("assisted", "baseline"):
                    rate = float(result[part]["tokens_per_second"])
                    rates.setdefault(f"{way}_{part}", []).append(rate)
    finally:
        process.terminate()
        process.wait()
    medians = {name: median(values) for name, values in rates.items()}
    report = {f"{name}_tokens_per_second": round(value, 2) for name, value in medians.items()}
    for part in ("assisted", "baseline"):
        share = medians[f"client_{part}"] / medians[f"command_line_{part}"]
        report[f"{part}_ratio"] = round(share, 3)
    report |= {"updates_per_second": round(median(updates), 2), "most_in_a_second": max(most)}
    print(json.dumps(report))


if __name__ == "__main__":
    main()

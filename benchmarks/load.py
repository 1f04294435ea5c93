"""Many clients at once: does every one that stays get its own right answer?

    python -m benchmarks.load --clients 20 --minutes 3 --tokens 4

Starts the app in a process of its own. Each client asks `/compare` with a prompt of its own, again
and again; of every four, one cancels midway and one drops the connection without a word. Prints, as
JSON, how the runs ended, waiting times, wrong answers, and the memory of the app's process after
each tenth of the time; at the end it asks once more, alone, which fails if a lock is left.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import socket
import statistics
import subprocess
import sys
import threading
import time
from collections import Counter
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil
from gradio_client import Client

ROOT = Path(__file__).resolve().parents[1]
THINGS = ("tides", "clocks", "maps", "bridges", "lamps", "violins", "ovens", "comets", "locks")
BEHAVIOURS = ("stays", "cancels", "stays", "vanishes")
PATIENCE_S = 400.0


@dataclass
class Tally:
    """What happened, over all clients. Guarded by its lock."""

    ended: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    waits_s: list[float] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def add(self, how: str) -> None:
        with self.lock:
            self.ended[how] += 1


def prompt_of(number: int) -> str:
    return f"Client {number} asks: tell me about {THINGS[number % len(THINGS)]} in {number} words."


def ask(client: Any, number: int, settings: dict[str, Any]) -> list[int]:
    """The token ids of the plain answer to a client's prompt."""
    answer = client.predict(prompt_of(number), **settings, api_name="/compare")
    return list(answer["result"]["baseline"]["token_ids"])


def vanish(url: str, number: int, settings: dict[str, Any], after: int) -> None:
    """Queue a run, read `after` messages of its stream, and drop the connection."""
    with httpx.Client(timeout=PATIENCE_S) as http:
        body = {"prompt": prompt_of(number), **settings}
        queued = http.post(f"{url}gradio_api/call/v2/compare", json=body)
        if queued.status_code != 200:
            return
        address = f"{url}gradio_api/call/compare/{queued.json()['event_id']}"
        with http.stream("GET", address) as stream:
            for seen, _line in enumerate(stream.iter_lines()):
                if seen >= after:
                    return


def one_client(
    url: str,
    number: int,
    expected: list[int],
    settings: dict[str, Any],
    until: float,
    tally: Tally,
) -> None:
    """Asks again and again until the time is over, in the manner of its number."""
    behaviour = BEHAVIOURS[number % len(BEHAVIOURS)]
    chance = random.Random(number)
    client = Client(url, verbose=False)
    while time.monotonic() < until:
        started = time.monotonic()
        if behaviour == "vanishes":
            vanish(url, number, settings, chance.randrange(1, 30))
            tally.add("vanished")
            continue
        job = client.submit(prompt_of(number), **settings, api_name="/compare")
        if behaviour == "cancels":
            time.sleep(chance.uniform(0.2, 6.0))
            job.cancel()
            tally.add("cancelled")
            continue
        try:
            result = job.result(timeout=PATIENCE_S)["result"]
        except Exception as error:  # noqa: BLE001 - counted and shown at the end
            tally.add("failed")
            with tally.lock:
                tally.wrong.append(f"client {number}: {type(error).__name__}: {error}"[:200])
            continue
        with tally.lock:
            tally.waits_s.append(time.monotonic() - started)
        answers = (result["baseline"]["token_ids"], result["assisted"]["token_ids"])
        right = all(list(ids) == expected for ids in answers)
        tally.add("right" if right else "wrong")
        if not right:
            with tally.lock:
                tally.wrong.append(f"client {number} got another answer")
    client.close()


def load(
    url: str,
    *,
    clients: int,
    seconds: float,
    settings: dict[str, Any],
    process: psutil.Process | None = None,
) -> dict[str, Any]:
    """Run the clients against a started app; the figures as a dictionary."""
    first = Client(url, verbose=False)
    expected = [ask(first, number, settings) for number in range(clients)]
    tally, sizes = Tally(), []
    until = time.monotonic() + seconds
    threads = [
        threading.Thread(
            target=one_client, args=(url, n, expected[n], settings, until, tally), daemon=True
        )
        for n in range(clients)
    ]
    for thread in threads:
        thread.start()
    for _ in range(10):
        time.sleep(max(0.0, seconds / 10))
        if process is not None:
            sizes.append(round(process.memory_info().rss / 2**20, 1))
    for thread in threads:
        thread.join(PATIENCE_S)
    started = time.monotonic()
    alone = ask(first, 0, settings) == expected[0]
    first.close()
    waits = sorted(tally.waits_s)
    return {
        "clients": clients,
        "seconds": seconds,
        "ended": dict(sorted(tally.ended.items())),
        "wrong": tally.wrong[:10],
        "still_running_clients": sum(thread.is_alive() for thread in threads),
        "wait_s": {
            "median": round(statistics.median(waits), 1) if waits else None,
            "largest": round(waits[-1], 1) if waits else None,
        },
        "memory_mb": sizes,
        "alone_afterwards": {"right": alone, "seconds": round(time.monotonic() - started, 1)},
    }


def start(port: int) -> subprocess.Popen[bytes]:
    """The app in a process of its own, as `python app.py` starts it."""
    environment = {**os.environ, "GRADIO_SERVER_PORT": str(port)}
    return subprocess.Popen(
        [sys.executable, "app.py"],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--clients", type=int, default=20)
    parser.add_argument("--minutes", type=float, default=3.0)
    parser.add_argument("--tokens", type=int, default=4)
    arguments = parser.parse_args()
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    server = start(port)
    url = f"http://127.0.0.1:{port}/"
    try:
        deadline = time.monotonic() + 120
        while True:
            try:
                httpx.get(f"{url}config")
                break
            except httpx.HTTPError:
                if server.poll() is not None or time.monotonic() > deadline:
                    raise SystemExit("The app did not start.") from None
                time.sleep(0.5)
        figures = load(
            url,
            clients=arguments.clients,
            seconds=arguments.minutes * 60,
            settings={"max_new_tokens": arguments.tokens},
            process=psutil.Process(server.pid),
        )
    finally:
        server.terminate()
        server.wait(30)
    print(json.dumps(figures, indent=2))


if __name__ == "__main__":
    main()

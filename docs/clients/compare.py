"""Compares a pair from another program: `python docs/clients/compare.py http://localhost:7860`."""

import sys

from gradio_client import Client


def compare(url: str, prompt: str, **settings: object) -> dict:
    """The compare object of one run; says how far it has come while it waits and runs."""
    job = Client(url, verbose=False).submit(prompt, **settings, api_name="/compare")
    for update in job:  # leaving the loop early and calling job.cancel() stops the run
        if update["status"] == "running":
            print(f"{update['phase']}: {update['num_new_tokens']} tokens", file=sys.stderr)
    return job.result()["result"]  # raises with one line that says what was wrong


if __name__ == "__main__":
    address = sys.argv[1] if len(sys.argv) > 1 else "http://localhost:7860"
    result = compare(address, "Name three colours of the sea.", max_new_tokens=32)
    print(result["assisted"]["text"])
    print("identical:", result["identical"], " decode speedup:", result["decode_speedup"])

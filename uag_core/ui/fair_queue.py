"""Gradio's queue, in which visitors take turns and nobody can fill it alone.

A visitor is a session: a tab of a browser or a client object. Whoever waits with several runs lets
the others go first after each of them; among visitors it is first come, first served. Positions
and expected waits are Gradio's own and reach the page and the clients. Knows no run.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from gradio.queueing import Event, Queue

MAX_WAITING_EACH = 8


class FairQueue(Queue):
    """Put in the place of a `Queue` by its class alone: it has no state of its own."""

    async def push(self, body: Any, request: Any, username: Any) -> Any:
        if body.fn_index not in self.blocks.fns:
            return False, "There is no such function.", "error"
        waiting = sum(
            event.session_hash == body.session_hash
            for queue in self.event_queue_per_concurrency_id.values()
            for event in queue.queue
        )
        if body.session_hash is not None and waiting >= MAX_WAITING_EACH:
            line = f"{waiting} of your runs are waiting already: let one finish, or cancel one."
            return False, line, "queue_full"
        pushed = await super().push(body, request, username)
        if pushed[0]:
            self.take_turns()
        return pushed

    def take_turns(self) -> None:
        """Put every line into its fair order and tell those that wait."""
        running = [event for job in self.active_jobs if job for event in job]
        for name, queue in self.event_queue_per_concurrency_id.items():
            busy = Counter(e.session_hash for e in running if e.concurrency_id == name)
            ordered = fair_order(queue.queue, busy)
            if ordered != queue.queue:
                queue.queue[:] = ordered
                self.broadcast_estimations(name)


def fair_order(waiting: list[Event], busy: Counter[str]) -> list[Event]:
    """`waiting` by how many runs of the same visitor come before, then by time of arrival."""
    before = Counter(busy)
    places: dict[str, int] = {}
    for event in sorted(waiting, key=lambda event: event.enqueue_time):
        places[event._id] = before[event.session_hash]
        before[event.session_hash] += 1
    return sorted(waiting, key=lambda event: (places[event._id], event.enqueue_time))

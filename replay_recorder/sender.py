"""Delivers what waits in the spool, in a thread of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable

from replay_recorder.assembly import SpoolError, assemble
from replay_recorder.guard import guard, logger
from replay_recorder.http_client import Client, Delivered, Later, Outcome, Refused
from replay_recorder.spool import Parcel, Spool

BATCH_RUNS = 50
BATCH_BYTES = 3 * 1024 * 1024
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_LOOK_EVERY = 30.0
"""Seconds between looks for what other processes left behind."""
_TIMEOUT = 30.0

Post = Callable[[bytes, float], Outcome]


class Sender:
    """Sends until the spool is empty, then waits to be woken. Order is kept as far as the server lets it."""

    def __init__(self, spool: Spool, client: Client) -> None:
        self.delivered = 0
        self.refused = 0
        self.trouble: str | None = None
        """Why the last attempt failed; None when it did not."""
        self._spool = spool
        self._client = client
        self._wake = threading.Event()
        self._stopping = threading.Event()
        self._turn = threading.Lock()
        self._wait = _FIRST_WAIT
        self._not_before = 0.0
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        if self._thread is None or not self._thread.is_alive():
            self._thread = threading.Thread(target=self._loop, name="replay-recorder", daemon=True)
            self._thread.start()

    def wake(self) -> None:
        self._wake.set()

    def stop(self, timeout: float) -> None:
        """Deliver what is left as far as the time allows; a server that is away is not waited for."""
        deadline = time.monotonic() + timeout
        self._stopping.set()
        self._wake.set()
        if self._thread is not None:
            self._thread.join(timeout)
        if self._turn.acquire(timeout=max(deadline - time.monotonic(), 0)):
            try:
                self._deliver_until(deadline)
            finally:
                self._turn.release()

    def flush(self, timeout: float) -> bool:
        """Deliver now; whether nothing is left."""
        with self._turn:
            self._deliver_until(time.monotonic() + timeout)
        return self._spool.waiting == 0

    def _deliver_until(self, deadline: float) -> None:
        while (left := deadline - time.monotonic()) > 0:
            with guard("sender"):
                if self._round(min(left, _TIMEOUT)):
                    continue
            return

    def _loop(self) -> None:
        while not self._stopping.is_set():
            pause = self._not_before - time.monotonic()
            if pause > 0:
                self._stopping.wait(pause)
                continue
            self._wake.clear()
            with guard("sender"), self._turn:
                if self._round(_TIMEOUT):
                    continue
            if self._not_before <= time.monotonic():
                self._wake.wait(_LOOK_EVERY)

    # --- one round

    def _round(self, timeout: float) -> bool:
        """Send one batch; whether there may be more that can be sent now."""
        parcels = self._next_batch()
        if not parcels:
            return False
        try:
            return self._send(parcels, timeout)
        finally:
            for parcel, _ in parcels:
                parcel.release()

    def _next_batch(self) -> list[tuple[Parcel, bytes]]:
        batch: list[tuple[Parcel, bytes]] = []
        size = 0
        for parcel in self._spool.parcels():
            record = self._assembled(parcel)
            if record is None:
                continue
            if batch and size + len(record) > BATCH_BYTES:
                parcel.release()
                break
            batch.append((parcel, record))
            size += len(record)
            if len(batch) == BATCH_RUNS:
                break
        return batch

    def _assembled(self, parcel: Parcel) -> bytes | None:
        try:
            return assemble(parcel.read())
        except (SpoolError, UnicodeDecodeError) as error:
            self._give_up(parcel, str(error))
        except OSError:
            parcel.release()
        return None

    def _send(self, parcels: list[tuple[Parcel, bytes]], timeout: float) -> bool:
        body = parcels[0][1] if len(parcels) == 1 else _batch([record for _, record in parcels])
        outcome = self._client.post(body, timeout=timeout)
        if isinstance(outcome, Refused) and len(parcels) > 1:
            # A batch is all or nothing: one by one shows which of them it is.
            return all([self._send([parcel], timeout) for parcel in parcels])
        return self._settle(parcels, outcome)

    def _settle(self, parcels: list[tuple[Parcel, bytes]], outcome: Outcome) -> bool:
        if isinstance(outcome, Later):
            self._put_off(outcome)
            return False
        self._wait, self._not_before, self.trouble = _FIRST_WAIT, 0.0, None
        for parcel, _ in parcels:
            if isinstance(outcome, Delivered):
                parcel.delivered()
                self.delivered += 1
            else:
                self._give_up(parcel, outcome.reason)
        return True

    def _give_up(self, parcel: Parcel, reason: str) -> None:
        self.refused += 1
        parcel.refused(reason)
        logger.warning("The server did not take the recording %s: %s", parcel.name, reason)

    def _put_off(self, outcome: Later) -> None:
        """Wait as long as the server asks, else twice as long each time, with a spread between processes."""
        if self.trouble is None:
            logger.warning("Recordings cannot be delivered (%s); they are kept and sent later.", outcome.reason)
        self.trouble = outcome.reason
        wait = outcome.after if outcome.after is not None else self._wait * random.uniform(0.75, 1.25)
        self._wait = min(self._wait * 2, _LONGEST_WAIT)
        self._not_before = time.monotonic() + wait


def _batch(records: list[bytes]) -> bytes:
    return b'{"runs":[' + b",".join(records) + b"]}"

"""Delivers what waits in the spool, in a thread of its own."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator

from replay_recorder.delivery.http_client import Client, Later, Outcome, Refused
from replay_recorder.delivery.parcels import Parcel
from replay_recorder.delivery.spool import Spool
from replay_recorder.guard import guard, logger
from replay_recorder.writing.assembly import SpoolError, assemble, is_empty

BATCH_RUNS = 50
BATCH_BYTES = 3 * 1024 * 1024
_FIRST_WAIT = 0.5
_LONGEST_WAIT = 60.0
_LOOK_EVERY = 30.0
"""Seconds between looks for what other processes left behind."""

Batch = list[tuple[Parcel, bytes]]


_SPREAD = random.Random()
"""Its own: the agent may have seeded the common one, and counts on what it gives."""


class Sender:
    """Sends what waits, oldest first, then rests until it is woken. Only its thread ever waits for the server."""

    def __init__(self, spool: Spool, client: Client, *, timeout: float = 30.0) -> None:
        self.delivered = 0
        self.refused = 0
        self.trouble: str | None = None
        """Why something could not be delivered; None once everything was."""
        self._spool = spool
        self._client = client
        self._timeout = timeout
        self._suspects: dict[str, int] = {}
        """Recordings that the server may have stumbled over, with the number of the attempt: sent last, and alone."""
        self._attempts = 0
        self._failures = 0
        """Attempts in vain since everything could be delivered."""
        self._logged: set[int] = set()
        self._not_before = 0.0
        self._is_told_to_wait = False
        self._thread: threading.Thread | None = None
        self._changed = threading.Condition()
        """Guards the five below."""
        self._is_woken = False
        self._asked = 0
        """How often somebody asked for everything to be delivered, ..."""
        self._answered = 0
        """... and which of these requests is served."""
        self._deadline = 0.0
        self._is_stopping = False

    def start(self) -> None:
        """Raises nothing; where no thread can be started, recordings wait for another process."""
        with guard("start of the sender"), self._changed:
            if not self._is_running():
                self._thread = threading.Thread(target=self._loop, name="replay-recorder", daemon=True)
                self._thread.start()

    def wake(self) -> None:
        """There is something new."""
        with self._changed:
            self._is_woken = True
            self._changed.notify_all()

    def flush(self, timeout: float) -> bool:
        """Deliver now; whether nothing is left. Returns earlier when the server cannot take it now."""
        with self._changed:
            return self._flush(timeout)

    def stop(self, timeout: float) -> None:
        """The same, and no more after that."""
        with self._changed:
            # Set first: what the thread began after this pass, the end of the process would tear.
            self._is_stopping = True
            self._flush(timeout)

    def _flush(self, timeout: float) -> bool:
        self._asked += 1
        mine = self._asked
        self._deadline = max(self._deadline, time.monotonic() + timeout)
        self._changed.notify_all()
        self.start()
        self._changed.wait_for(lambda: self._answered >= mine or not self._is_running(), timeout)
        return self._spool.waiting == 0

    def _is_running(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    # --- the thread

    def _loop(self) -> None:
        while True:
            with self._changed:
                asked, self._is_woken = self._asked, False
            with guard("sender"):
                self._serve()
            with self._changed:
                self._answered = asked
                self._changed.notify_all()
                if self._is_stopping and self._asked == asked:
                    # Said under the lock: whoever asks from now on starts another.
                    self._thread = None
                    return
                pause = max(self._not_before - time.monotonic(), 0.0)
                self._changed.wait_for(self._is_called, pause or _LOOK_EVERY)

    def _is_called(self) -> bool:
        is_time = time.monotonic() >= self._not_before
        return self._is_stopping or self._asked > self._answered or (self._is_woken and is_time)

    def _serve(self) -> None:
        """Send all; when the server asks to wait and somebody has the time for that, once more."""
        while not self._send_all():
            if not self._is_told_to_wait or self._not_before > self._deadline:
                return
            time.sleep(max(self._not_before - time.monotonic(), 0.0))

    def _send_all(self) -> bool:
        """Everything that waits, once; False as soon as something has to wait."""
        if self._is_told_to_wait and time.monotonic() < self._not_before:
            return False
        self._spool.measure()
        for parcels in self._batches():
            try:
                if self._is_over() or not self._send(self._taken(parcels)):
                    return False
            finally:
                for parcel in parcels:
                    parcel.release()
        self._suspects.clear()
        self._failures, self.trouble = 0, None
        return True

    def _is_over(self) -> bool:
        return self._is_stopping and time.monotonic() > self._deadline

    def _batches(self) -> Iterator[list[Parcel]]:
        batch: list[Parcel] = []
        size = 0
        for parcel in self._spool.parcels(last=self._suspects):
            is_alone = parcel.name in self._suspects
            if batch and (is_alone or len(batch) == BATCH_RUNS or size + parcel.size > BATCH_BYTES):
                yield batch
                batch, size = [], 0
            batch.append(parcel)
            size += parcel.size
        if batch:
            yield batch

    def _taken(self, parcels: list[Parcel]) -> Batch:
        """Those that are ours to send, with their records."""
        taken = [parcel for parcel in parcels if parcel.take()]
        found = [(parcel, self._record(parcel)) for parcel in taken]
        return [(parcel, record) for parcel, record in found if record is not None]

    def _record(self, parcel: Parcel) -> bytes | None:
        """None for what holds none: a run that was killed at once, or what is no recording, which is put aside."""
        with guard("record"):
            content = parcel.read()
            if is_empty(content):
                parcel.remove()
                return None
            try:
                return assemble(content)
            except (SpoolError, UnicodeDecodeError) as error:
                self._refuse(parcel, Refused(reason=f"it is no recording: {error}", status=0))
        return None

    def _send(self, batch: Batch) -> bool:
        """Whether the next may follow."""
        if not batch:
            return True
        body = batch[0][1] if len(batch) == 1 else _together([record for _, record in batch])
        outcome = self._client.post(body, timeout=self._timeout)
        if isinstance(outcome, Refused) and len(batch) > 1:
            # A batch is all or nothing: one by one shows which of them it is.
            return all(self._send([each]) for each in batch)
        self._settle([parcel for parcel, _ in batch], outcome)
        return not isinstance(outcome, Later)

    def _settle(self, parcels: list[Parcel], outcome: Outcome) -> None:
        if isinstance(outcome, Later):
            self._put_off(parcels, outcome)
            return
        for parcel in parcels:
            with guard("spool"):
                if isinstance(outcome, Refused):
                    self._refuse(parcel, outcome)
                else:
                    self.delivered += 1
                    parcel.remove()

    def _refuse(self, parcel: Parcel, outcome: Refused) -> None:
        self.refused += 1
        if outcome.status not in self._logged:
            self._logged.add(outcome.status)
            logger.warning(
                "The recording %s is put aside in %s: %s. Further ones are counted and not logged.",
                parcel.name, self._spool.refused_folder, outcome.reason,
            )  # fmt: skip
        parcel.refused(outcome.reason)

    def _put_off(self, parcels: list[Parcel], outcome: Later) -> None:
        if self.trouble is None:
            logger.warning("Recordings cannot be delivered (%s); they wait in %s.", outcome.reason, self._spool.folder)
        self.trouble = outcome.reason
        self._attempts += 1
        if outcome.is_suspect:
            self._suspects.update({parcel.name: self._attempts for parcel in parcels})
        self._is_told_to_wait = outcome.after is not None
        self._not_before = time.monotonic() + pause_after(self._failures, outcome.after, _SPREAD.random())
        self._failures += 1


def pause_after(failures: int, asked: float | None, spread: float) -> float:
    """Seconds: as long as the server asks, else twice as long each time; up to half more, as `spread` says (0 to 1),
    so that many processes do not come back at once."""
    wait = min(_FIRST_WAIT * 2 ** min(failures, 16), _LONGEST_WAIT) if asked is None else asked
    return wait * (1 + spread / 2)


def _together(records: list[bytes]) -> bytes:
    return b'{"runs":[' + b",".join(records) + b"]}"

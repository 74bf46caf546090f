import os
import threading

from replay_recorder.fork_lock import ForkLock


def test_a_child_takes_a_lock_that_a_thread_held_when_it_was_forked():
    lock, held, release = ForkLock(), threading.Event(), threading.Event()

    def hold() -> None:
        with lock:
            held.set()
            release.wait()

    thread = threading.Thread(target=hold)
    thread.start()
    held.wait()
    child = os.fork()
    if child == 0:
        with lock:
            os._exit(7)
    _, status = os.waitpid(child, 0)
    release.set()
    thread.join()

    assert os.waitstatus_to_exitcode(status) == 7


def test_two_threads_take_turns():
    lock, inside, seen = ForkLock(), [0], []

    def work() -> None:
        for _ in range(200):
            with lock, lock:
                inside[0] += 1
                seen.append(inside[0])
                inside[0] -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(seen) == {1}
    assert len(seen) == 800

import time
from pathlib import Path
from tests.tasks.test_workers import *
from tests.tasks import test_workers as w
def test_measure(project, redis):
    import statistics
    t=time.monotonic(); runs=make_runs(project, 40); print("ingest 40", time.monotonic()-t)
    with working(Worker(redis.url)) as worker:
        first=request_replay(run=runs[0]); wait_for(1); wait_until(lambda: len(worker.children())>=1, 5); time.sleep(2)
        t=time.monotonic(); ts=[]
        for r in runs:
            q=time.monotonic(); request_replay(run=r); ts.append(time.monotonic()-q)
        print("request ms", statistics.median(ts)*1000, max(ts)*1000)
        wait_for(41); print("40 replays", time.monotonic()-t)
        lat=[]
        for i in range(5):
            q=time.monotonic(); r=request_replay(run=runs[1]); wait_until(lambda: is_over(r), 10); lat.append(round(time.monotonic()-q,3))
        print("one small replay request to done", lat)
        for pid in (worker.process.pid, *worker.children()):
            print(pid, [l.strip() for l in Path(f"/proc/{pid}/status").read_text().splitlines() if l.startswith(("VmRSS","VmHWM"))])

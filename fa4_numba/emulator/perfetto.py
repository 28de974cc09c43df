"""Timelines as Chrome trace events, which Perfetto (and chrome://tracing) open."""

import json


def perfetto_json(events) -> str:
    """Return a machine's ``timeline`` as trace-event JSON.

    One process per CTA, one thread per warp or unit. A microsecond stands for one executed warp-instruction: the order
    of execution, not a time.
    """
    records, last = [], {}
    end = max((event.at for event in events), default=0) + 1
    for event in events:
        track = (event.cta, event.who)
        if track in last:
            records.append(_slice(last[track], event.at))
        last[track] = event
    records += [_slice(event, end) for event in last.values()]
    return json.dumps({"traceEvents": records, "displayTimeUnit": "ns"})


def _slice(event, until: int) -> dict:
    instant = event.who in ("MMA", "TMA")
    duration = 1 if instant else max(until - event.at, 1)
    name = f"CTA {event.cta}"
    return {"name": event.what, "ph": "X", "ts": event.at, "dur": duration, "pid": name, "tid": event.who}

-- wrk.lua: lets wrk print its results as one line, in microseconds. loads.py gives it to wrk: wrk -s wrk.lua ...
function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format("dcollect %d %d %d %d %d %d %d %d %.1f %.1f %d %d %d %d %d %d\n",
        summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout,
        latency.mean, latency.stdev, latency.min, latency:percentile(50), latency:percentile(90),
        latency:percentile(95), latency:percentile(99), latency.max))
end

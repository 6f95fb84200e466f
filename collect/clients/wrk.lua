-- wrk.lua: lets wrk print its results as one line, in microseconds. loads.py gives it to wrk: wrk -s wrk.lua ...
-- With two arguments, a number of documents and a seed, each request is for one of them: URL and its number.
-- With one argument, a URL, each request asks a proxy for it.
local documents, threads = 0, 0

function setup(thread)
    threads = threads + 1
    thread:set("place", threads)
end

function init(arguments)
    if #arguments == 1 then
        wrk.path = arguments[1]
        wrk.headers["Host"] = arguments[1]:match("//([^/]+)")
    end
    if #arguments == 2 then
        documents = tonumber(arguments[1])
        math.randomseed(1000 * tonumber(arguments[2]) + place)
        request = function() return wrk.format(nil, wrk.path .. math.random(0, documents - 1)) end
    end
end

function done(summary, latency, requests)
    local e = summary.errors
    io.write(string.format("dcollect %d %d %d %d %d %d %d %d %.1f %.1f %d %d %d %d %d %d\n",
        summary.requests, summary.duration, summary.bytes, e.connect, e.read, e.write, e.status, e.timeout,
        latency.mean, latency.stdev, latency.min, latency:percentile(50), latency:percentile(90),
        latency:percentile(95), latency:percentile(99), latency.max))
end

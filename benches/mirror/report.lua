-- One line for `load.py`.
function done(summary, latency, requests)
    local errors = summary.errors
    local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
    print(string.format("measured %d %d %d %d", summary.bytes, summary.requests, summary.duration, failed))
end

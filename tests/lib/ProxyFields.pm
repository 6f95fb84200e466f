package ProxyFields;

# Reads Cache-Status, makes chunked bodies, and has common fields, for the tests of the proxy.

use v5.36;
use Exporter qw(import);
use Harness qw(server_processes);

our @EXPORT = qw(cache_status chunked waiting %few %fresh %stale);

our %few   = (warnings => qr/limit of \d+ descriptors/);    # for stop(): a proxy may print that it has few descriptors
our %fresh = ('Cache-Control' => 'max-age=60');
our %stale = ('Cache-Control' => 'max-age=60', Age => 100);

# Returns what the proxy says in Cache-Status, without the time to live. The value of an origin comes first.
sub cache_status ($response) {
    return join(' | ', @{ $response->{fields}{'cache-status'} // [] }) =~ s/^fork-vs-thread; //r =~ s/; ttl=.*//r;
}

# Returns how many requests wait for another one that fetches: each has a pipe of the cache directory open.
sub waiting ($cache) {
    return scalar grep { (readlink // '') =~ m{^\Q$cache\E/news-} } map { glob "/proc/$_/fd/*" } server_processes();
}

# Returns a chunked body of these chunks.
sub chunked (@chunks) { return join('', map { sprintf "%x\r\n%s\r\n", length, $_ } @chunks) . "0\r\n\r\n" }

1;

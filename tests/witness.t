#!/usr/bin/perl
# The witness, a client of the study, over UDP and over TLS, with servers whose faults are known.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();

# A server with faults. It responds over TCP without a fault. Over UDP every tenth request gets the fault that its path names: the
# response is lost, late, too short, cut off, no HTTP, of another protocol, or an error page.
my $fake = "$scratch/faulty_server";
spit($fake, <<'END');
#!/usr/bin/perl
use strict;
use IO::Select;
use IO::Socket::INET;
use Time::HiRes 'sleep';
$SIG{TERM} = sub { exit 0 };
$SIG{PIPE} = $SIG{USR1} = 'IGNORE';
my $listener = IO::Socket::INET->new(Listen => 100, LocalAddr => '127.0.0.1') or die $!;
my $datagrams = IO::Socket::INET->new(Proto => 'udp', LocalAddr => '127.0.0.1', LocalPort => $listener->sockport) or die $!;
$| = 1;
print 'listening on http://127.0.0.1:', $listener->sockport, "/\n";
sub response { my ($status, $bytes) = @_; return "HTTP/1.1 $status\r\nContent-Length: $bytes\r\n\r\n" . 'x' x $bytes }
my ($select, $count) = (IO::Select->new($listener, $datagrams), 0);
while (1) {
    for my $ready ($select->can_read) {
        if ($ready == $listener) {
            my $client = $listener->accept or next;
            sysread $client, my $head, 4096;
            syswrite $client, response('200 OK', 1000);
            close $client;
            next;
        }
        my $peer = $datagrams->recv(my $request, 65536) // next;
        my ($fault) = $request =~ m{\AGET /(\S+) HTTP/1\.1\r\nHost: localhost\r\n\r\n\z} or die "request: $request";
        my $now = ++$count % 10 == 0 ? $fault : '';
        next if $now eq 'lost';
        sleep 0.1 if $now eq 'late';
        my $response = $now eq 'error' ? response('404 Not Found', 1000) : response('200 OK', $now eq 'short' ? 999 : 1000);
        send $datagrams, $now eq 'cut' ? substr($response, 0, -1) : $now eq 'none' ? 'x' :
            $now eq 'foreign' ? $response =~ s/HTTP/ICAP/r : $response, 0, $peer;
    }
}
END
chmod 0755, $fake;

# --- The witness over UDP --------------------------------------------------------------------------------------------

# The numbers that are neither times nor bytes.
sub counts ($seen) { return [@$seen{qw(status complete lost refused unanswered non2xx length again_ms wrong resumed protocol)}] }

my $port = start_program($fake);
my $seen = witness('--udp', '--timeout', 5000, '--requests', 50, '--concurrency', 4, $port, '/small.txt');
is $seen->{fields}, 1 + @witness_numbers, 'udp: the line has all its numbers';
is_deeply counts($seen), [0, 50, 0, 0, 0, 0, 1000, '-', 0, 0, '-'], 'udp: 50 of 50 requests get their responses';
is $seen->{bytes}, 50 * length("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" . 'x' x 1000), 'udp: the bytes of heads and bodies are counted';
ok $seen->{min} > 0 && $seen->{min} <= $seen->{p50} && $seen->{p50} <= $seen->{p90} && $seen->{p90} <= $seen->{p95} && $seen->{p95} <= $seen->{p99}
    && $seen->{p99} <= $seen->{max} && $seen->{max} < 5000, 'udp: the quantiles of times are in order' or diag($seen->{out});
like $seen->{min}, qr/\A\d+\.\d{3}\z/, 'udp: times have microseconds';

$seen = witness('--udp', '--requests', 40, '--timeout', 250, $port, '/lost');
is $seen->{complete}, 40, 'udp: a request whose response is lost is sent again';
cmp_ok $seen->{lost}, '>=', 3, 'udp: lost responses are counted';
cmp_ok $seen->{lost}, '<=', 20, 'udp: no other responses are counted as lost, except some on a busy machine';
cmp_ok $seen->{max}, '>=', 249, 'udp: the time of a request that was sent again counts from the first try';
cmp_ok $seen->{p50}, '<', 249, 'udp: other requests do not wait for a lost response';

# On a busy machine the witness itself may be so late that it sees the late response before its timeout. That try does not count.
for (1 .. 10) {
    $seen = witness('--udp', '--requests', 12, '--timeout', 40, $port, '/late');
    last if $seen->{lost} || $seen->{wrong};
}
ok $seen->{complete} == 12 && $seen->{lost} >= 1 && $seen->{wrong} == 0, 'udp: a late response is not taken for the response to the next try' or diag($seen->{out});
is witness('--udp', '--timeout', 5000, '--requests', 50, $port, '/error')->{non2xx}, 5, 'udp: error responses are counted';
$seen = witness('--udp', '--timeout', 5000, '--requests', 50, $port, '/short');
is $seen->{complete}, 50, 'udp: responses of another length count as complete';
cmp_ok abs($seen->{wrong} - 9.5), '<', 1, 'udp: a response of another length than the one before is wrong: each tenth and the one after it';    # nothing comes after the last one
for my $fault (qw(cut none foreign)) {
    $seen = witness('--udp', '--timeout', 5000, '--requests', 45, $port, "/$fault");
    is_deeply [@$seen{qw(complete wrong)}], [45, $seen->{lost}], "udp, $fault: the response is wrong, and the request is sent again";
    cmp_ok $seen->{wrong}, '>=', 4, "udp, $fault: each such response is counted as wrong";
}
$seen = witness('--udp', '--requests', 5, '--concurrency', 2, '--seconds', 1, 1, '/small.txt');
is_deeply [@$seen{qw(status complete lost unanswered)}], [0, 0, 2, 2], 'udp: requests to a port where nothing listens are counted as lost';

# --- The witness over TLS --------------------------------------------------------------------------------------------

my $made = make($top, 'certificate', "CERTIFICATE=$scratch/certificate");
is $made->{status}, 0, 'make certificate: exit status 0' or diag($made->{err});
my @tls = (0, '--tls', '--cert', "$scratch/certificate/cert.pem", '--key', "$scratch/certificate/key.pem", '--root', "$top/data");
for my $model (qw(thread epoll)) {
    my $encrypted = start_program("$top/${model}_server", @tls);
    is_deeply counts(witness('--tls', 'new', '--requests', 30, '--concurrency', 3, $encrypted, '/big.txt')),
        [0, 30, 0, 0, 0, 0, 10000, '-', 0, 0, 'TLSv1.3'], "tls: each connection has a new session ($model)";
    is_deeply counts(witness('--tls', 'resumed', '--requests', 30, '--concurrency', 3, $encrypted, '/small.txt')),
        [0, 30, 0, 0, 0, 0, 1000, '-', 0, 27, 'TLSv1.3'], "tls: all connections but the first of each client are resumed ($model)";
    is witness('--requests', 5, $encrypted, '/small.txt')->{non2xx}, 5, "tls: requests without --tls get error responses ($model)";
}
$seen = witness('--tls', 'new', '--requests', 5, '--seconds', 1, $port, '/small.txt');
is_deeply [@$seen{qw(status complete unanswered)}], [0, 0, 1], 'tls: the witness ends although the server does not speak TLS';

for my $case ([['--udp', '--tls', 'new'], qr/--udp and --tls/], [['--tls', 'old'], qr/--tls is new or resumed, not 'old'/],
    [['--fault', '/' . 'x' x 400], qr/a path has at most 400 bytes, not 401/],
    [['--timeout', 5], qr/--timeout is for --udp/], [['--udp', '--timeout', 0], qr/--timeout is a number from 1/]) {
    my $run = run_command("$top/collect/clients/witness", @{ $case->[0] }, 1, '/');
    ok $run->{status} == 2 && $run->{err} =~ $case->[1] && $run->{out} eq '', "witness @{ $case->[0] } is refused with exit status 2 and a line that says why" or diag($run->{err});
}
like run_command("$top/collect/clients/witness", '--help')->{out}, qr/--tls HOW.*--udp.*--timeout MS/s, 'witness --help explains --tls, --udp and --timeout';

done_testing;

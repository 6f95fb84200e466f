#!/usr/bin/perl
# The witness, a client of the study, by UDP and by TLS against servers that do what they are told.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use File::Path qw(make_path);

my $top     = "$FindBin::Bin/..";
my $scratch = scratch();
$ENV{TMPDIR} = "$scratch/tmp";
make_path($ENV{TMPDIR});

# A server whose line says where it listens; its command stands in a shell's words.
my @started;
sub started (@command) {
    my $out = "$scratch/ready." . @started;
    my $pid = fork // die "fork: $!\n";
    if (!$pid) {
        open STDOUT, '>', $out or die $!;
        open STDERR, '>', "$out.errors" or die $!;
        exec @command or exit 127;
    }
    push @started, $pid;
    until_true(sub { -e $out && slurp($out) =~ /\n/ }) or die "@command does not get ready\n";
    return (slurp($out) =~ /:(\d+)\//)[0];
}
END { if (@started) { local $?; kill KILL => @started; waitpid $_, 0 for @started } }

# Answers small.txt by TCP and by UDP, by UDP in the way that the path names: of every tenth request the response is left out, comes
# too late, is short, is cut, is none or of another protocol, or is an error page.
my $fake = "$scratch/fake/thread_server";
make_path("$scratch/fake");
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
my ($select, $asked) = (IO::Select->new($listener, $datagrams), 0);
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
        my ($way) = $request =~ m{\AGET /(\S+) HTTP/1\.1\r\nHost: localhost\r\n\r\n\z} or die "asked: $request";
        my $tenth = ++$asked % 10 == 0 ? $way : '';
        next if $tenth eq 'lost';
        sleep 0.1 if $tenth eq 'late';
        my $response = $tenth eq 'error' ? response('404 Not Found', 1000) : response('200 OK', $tenth eq 'short' ? 999 : 1000);
        send $datagrams, $tenth eq 'cut' ? substr($response, 0, -1) : $tenth eq 'none' ? 'x' :
            $tenth eq 'foreign' ? $response =~ s/HTTP/ICAP/r : $response, 0, $peer;
    }
}
END
chmod 0755, $fake;

# --- The witness by UDP ----------------------------------------------------------------------------------------------

my @names = qw(seconds complete lost refused unanswered non2xx length again_ms mean sd min p50 p90 p95 p99 max bytes wrong resumed protocol);
sub witness (@arguments) {
    my $run = run_command("$top/collect/clients/witness", @arguments);
    my %said;
    @said{@names} = (split ' ', $run->{out})[1 .. @names];
    return { %$run, %said, fields => scalar(split ' ', $run->{out} =~ s{\n.*}{}sr) };
}

# What is neither a time nor a number of bytes.
sub counts ($seen) { return [@$seen{qw(status complete lost refused unanswered non2xx length again_ms wrong resumed protocol)}] }

my $port = started($fake);
my $seen = witness('--udp', '--timeout', 5000, '--requests', 50, '--concurrency', 4, $port, '/small.txt');
is $seen->{fields}, 1 + @names, 'udp: the line has all its fields';
is_deeply counts($seen), [0, 50, 0, 0, 0, 0, 1000, '-', 0, 0, '-'], 'udp: all is well';
is $seen->{bytes}, 50 * length("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" . 'x' x 1000), 'udp: bytes, heads and all';
ok $seen->{min} > 0 && $seen->{min} <= $seen->{p50} && $seen->{p50} <= $seen->{p90} && $seen->{p90} <= $seen->{p95} && $seen->{p95} <= $seen->{p99}
    && $seen->{p99} <= $seen->{max} && $seen->{max} < 5000, 'udp: times, in their order' or diag($seen->{out});
like $seen->{min}, qr/\A\d+\.\d{3}\z/, 'udp: times in microseconds';

$seen = witness('--udp', '--requests', 40, '--timeout', 250, $port, '/lost');
is $seen->{complete}, 40, 'udp: what is lost is asked again';
cmp_ok $seen->{lost}, '>=', 3, 'udp: and counted';
cmp_ok $seen->{lost}, '<=', 20, 'udp: and no others, but what a busy machine keeps for so long';
cmp_ok $seen->{max}, '>=', 249, 'udp: its time counts from the first try on';
cmp_ok $seen->{p50}, '<', 249, 'udp: the others do not wait for it';
$seen = witness('--udp', '--requests', 12, '--timeout', 40, $port, '/late');
ok $seen->{complete} == 12 && $seen->{lost} >= 1 && $seen->{wrong} == 0, 'udp: a response that is late is not taken for that to the next try' or diag($seen->{out});
is witness('--udp', '--timeout', 5000, '--requests', 50, $port, '/error')->{non2xx}, 5, 'udp: error pages are told';
$seen = witness('--udp', '--timeout', 5000, '--requests', 50, $port, '/short');
is $seen->{complete}, 50, 'udp: responses of two lengths';
cmp_ok abs($seen->{wrong} - 9.5), '<', 1, 'udp: one of another length than the one before is wrong: each tenth, and the next';    # the last has no next
for my $way (qw(cut none foreign)) {
    $seen = witness('--udp', '--timeout', 5000, '--requests', 45, $port, "/$way");
    is_deeply [@$seen{qw(complete wrong)}], [45, $seen->{lost}], "udp: wrong, and asked again: $way";
    cmp_ok $seen->{wrong}, '>=', 4, "udp: each of them: $way";
}
$seen = witness('--udp', '--requests', 5, '--concurrency', 2, '--seconds', 1, 1, '/small.txt');
is_deeply [@$seen{qw(status complete lost unanswered)}], [0, 0, 2, 2], 'udp: nobody is there, and it ends';

# --- The witness by TLS ----------------------------------------------------------------------------------------------

my $made = run_command('make', '-s', '-C', $top, 'certificate', "CERTIFICATE=$scratch/certificate");
is $made->{status}, 0, 'make certificate, elsewhere' or diag($made->{err});
my @tls = (0, '--tls', '--cert', "$scratch/certificate/cert.pem", '--key', "$scratch/certificate/key.pem", '--root', "$top/data");
for my $model (qw(thread epoll)) {
    my $encrypted = started("$top/${model}_server", @tls);
    is_deeply counts(witness('--tls', 'new', '--requests', 30, '--concurrency', 3, $encrypted, '/big.txt')),
        [0, 30, 0, 0, 0, 0, 10000, '-', 0, 0, 'TLSv1.3'], "tls: new sessions ($model)";
    is_deeply counts(witness('--tls', 'resumed', '--requests', 30, '--concurrency', 3, $encrypted, '/small.txt')),
        [0, 30, 0, 0, 0, 0, 1000, '-', 0, 27, 'TLSv1.3'], "tls: all but the first of each client are resumed ($model)";
    is witness('--requests', 5, $encrypted, '/small.txt')->{non2xx}, 5, "tls: without it, error pages ($model)";
}
$seen = witness('--tls', 'new', '--requests', 5, '--seconds', 1, $port, '/small.txt');
is_deeply [@$seen{qw(status complete unanswered)}], [0, 0, 1], 'tls: the server speaks none, and it ends';

for my $case ([['--udp', '--tls', 'new'], qr/--udp and --tls/], [['--tls', 'old'], qr/--tls is new or resumed, not 'old'/],
    [['--fault', '/' . 'x' x 400], qr/a path has at most 400 bytes, not 401/],
    [['--timeout', 5], qr/--timeout is for --udp/], [['--udp', '--timeout', 0], qr/--timeout is a number from 1/]) {
    my $run = run_command("$top/collect/clients/witness", @{ $case->[0] }, 1, '/');
    ok $run->{status} == 2 && $run->{err} =~ $case->[1] && $run->{out} eq '', "refused: witness @{ $case->[0] }" or diag($run->{err});
}
like run_command("$top/collect/clients/witness", '--help')->{out}, qr/--tls HOW.*--udp.*--timeout MS/s, 'witness --help tells of them';

done_testing;

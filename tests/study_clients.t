#!/usr/bin/perl
# The clients of the study: the crowd, which holds connections, and the witness, which counts what it loses; and the servers of
# `make crash`, which one request ends.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use StudyClients;

my $top = "$FindBin::Bin/..";

# Starts a server of this project. Returns its port.
sub start ($path, @options) { return start_program("$top/$path", @options, 0) }

# --- The crowd -----------------------------------------------------------------------------------------------------

# Runs a crowd for some seconds.
sub crowd (@arguments) { return run_command("$top/collect/clients/hold_connections", '--patience', 2, '--seconds', 5, @arguments) }

my $port = start('epoll_server', '--idle-timeout', 60);
is crowd('idle', 300, $port, '/small.txt')->{out}, "ready 300 300\nend 300 0 0 0\n", 'crowd: 300 idle clients are connected until the end';
is crowd('slow', 20,  $port, '/small.txt')->{out}, "ready 20 20\nend 20 0 0 0\n",    'crowd: 20 slow clients are connected until the end';
is crowd('idle', 5, start('iterative_server', '--idle-timeout', 60), '/small.txt')->{out}, "ready 1 5\nend 1 0 0 0\n",
    'crowd: one of 5 clients is served by a server of one connection at a time';
like crowd('idle', 5, start('epoll_server', '--idle-timeout', 1), '/small.txt')->{out}, qr/\Aready 5 5\nend 0 5 0 0\n\z/,
    'crowd: connections that the server closes are counted as lost';
like crowd('slow', 3, start('thread_server', '--request-timeout', 1), '/small.txt')->{out}, qr/\Aready 3 3\nend \d 0 [1-9]\d* 0\n\z/,
    'crowd: slow clients that the server cuts off are counted';
like crowd('idle', 5, 1, '/small.txt')->{out}, qr/\Aready 0 5\nend 0 0 0 5\n\z/, 'crowd: clients of a port where nothing listens are counted';
is crowd('idle')->{status}, 2, 'crowd: missing arguments are refused with exit status 2';
is crowd('many', 5, $port, '/')->{status}, 2, 'crowd: an unknown kind is refused with exit status 2';

# --- The witness ---------------------------------------------------------------------------------------------------

my $seen = witness('--requests', 50, '--concurrency', 5, $port, '/small.txt');
is_deeply [@$seen{qw(status complete lost refused unanswered non2xx length again_ms)}], [0, 50, 0, 0, 0, 0, 1000, '-'], 'witness: 50 of 50 requests get their responses';
is witness('--requests', 5, $port, '/absent.txt')->{non2xx}, 5, 'witness: error responses are counted';
$seen = witness('--requests', 5, '--concurrency', 2, '--seconds', 1, 1, '/small.txt');
is_deeply [@$seen{qw(status complete lost unanswered)}], [0, 0, 2, 2], 'witness: requests to a port where nothing listens are counted as lost';
cmp_ok $seen->{max}, '>=', 900, 'witness: the time of a request without a response counts';
$seen = witness('--requests', 20, '--fault', '/crash', $port, '/small.txt');
is $seen->{status}, 3, 'witness: a fault that does not happen is reported by exit status 3';

# --- Servers with a fault --------------------------------------------------------------------------------------------

my $made = make($top, 'crash');
is $made->{status}, 0, 'make crash: exit status 0' or diag($made->{err});
for my $server (map { s{.*/}{}r =~ s{\.c\z}{}r } glob "$top/*_server.c") {
    unlike slurp("$top/$server"), qr{/crash\0}, "$server: the normal build has no /crash";
    like slurp("$top/build/crash/$server"), qr{/crash\0}, "$server: the build of make crash has /crash";
}
my %outcome;
for my $model (qw(fork prefork epoll thread pool iterative)) {
    # A server that comes back may take its time on a slow machine. A server that does not is not waited for as long.
    my $patience = $model =~ /fork|epoll/ ? 60_000 : 300;
    my $outcome = witness('--requests', 300, '--concurrency', 4, '--fault', '/crash', '--patience', $patience, '--seconds', 90,
        start("build/crash/${model}_server"), '/small.txt');
    is $outcome->{status}, 0, "$model, /crash: the fault happens" or diag($outcome->{err});
    if ($model =~ /fork|epoll/) {
        like $outcome->{again_ms}, qr/\A\d+\.\d+\z/, "$model, /crash: the server serves again";
        cmp_ok $outcome->{complete}, '>=', 300, "$model, /crash: all requests get responses at the end";
        is $outcome->{lost}, 0, "$model, /crash: no other client loses a request" if $model =~ /fork/;
    }
    else {
        is $outcome->{again_ms}, 'never', "$model, /crash: the server does not serve again";
        cmp_ok $outcome->{lost}, '>', 0, "$model, /crash: other clients lose requests";
    }
}

done_testing;

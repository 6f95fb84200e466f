#!/usr/bin/perl
# What a stop waits for, and what it does not: idle connections, requests that are half sent, downloads, clients that stop
# reading, jobs of the shell, a second signal; and the summary.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_REUSEADDR pack_sockaddr_in inet_aton);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big, 'sparse.bin' => '');
truncate "$root/sparse.bin", 1 << 30 or die "truncate: $!";
my @user = $> == 0 ? qw(setpriv --reuid=65534 --regid=65534 --clear-groups) : ();

# Starts a process that has nothing to do with the server, writes its number to a file, and becomes the server.
my $LEAVE_JOB = <<'END';
my $file = shift;
my $job = fork;
if ($job == 0) { setsid; exec 'sleep', 3600 }
open my $out, '>', $file;
print $out $job;
close $out;
exec @ARGV;
END

# Returns true if another server could listen at the port.
sub can_listen ($port) {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_REUSEADDR, 1;
    return bind($socket, pack_sockaddr_in($port, inet_aton('127.0.0.1'))) && listen $socket, 1;
}

each_server(sub ($model) {
    # An idle connection stays open until a response can say that it closes.
    my $server = patient_server($root);
    my $idle = $server->connect;
    $idle->ask(request(GET => '/small.txt'));
    $server->deliver('TERM');
    my $response = $idle->ask(request(GET => '/small.txt'));
    is $response->{status}, 200, 'an idle connection still gets a response after SIGTERM';
    ok !$response->persistent, 'the response to an idle connection after SIGTERM says that the connection closes';
    ok $idle->ends, 'an idle connection closes after its response after SIGTERM';
    $idle->close;    # the server waits two seconds for a client that keeps its end open
    $server->ended;

    # A shell that becomes the server may have left it a job: that ends when it likes.
    my $scratch = scratch();
    my $job = "$scratch/job";
    $server = patient_server($root, through => ['perl', '-MPOSIX=setsid', '-e', $LEAVE_JOB, $job], options => ['--status']);
    my $process = slurp($job);
    is $server->get('/small.txt')->{status}, 200, 'a server with a job of the shell that became it serves';
    $server->deliver('TERM');
    $server->ended(name => 'a job of the shell does not delay the stop');
    ok kill(KILL => $process), 'the job goes on after the server';

    # If the job is killed, that is no end of a connection.
    $server = patient_server($root, through => ['perl', '-MPOSIX=setsid', '-e', $LEAVE_JOB, $job], options => ['--status']);
    kill KILL => slurp($job);
    $server->get('/small.txt') for 1 .. 3;
    my $counted;
    my $sees = sub { ($counted) = $server->get('/.status')->{body} =~ /"active": (\d+)/; return $counted == 1 };
    ok until_true($sees), 'a job that was killed is not counted off the connections' or diag("$counted connections");
    $server->stop;

    # A server that may not refuse new clients itself has a helper process for that, which here does not answer.
    $server = start_server(root => $root, through => \@user, path => program_copy());
    my @beside = map { $_->[0] } grep { $_->[2] eq 'handover' } group_processes($server->pid);
    ok @beside && @beside == kill(STOP => @beside), 'the process beside the server is stopped';
    is $server->get('/small.txt')->{status}, 200, 'the process beside the server does not run: the server serves';
    $server->signal('TERM');
    ok until_true(sub { slurp("/proc/@{[ $server->pid ]}/stat") =~ /\) Z/ }), 'and stops';
    kill CONT => @beside;
    $server->ended;

    # A request that is half sent when the signal arrives
    $server = patient_server($root);
    my $half = $server->connect;
    $half->send("GET /small.txt HTTP/1.1\r\nHo");
    until_true(sub { $server->has_read($half) });
    $server->deliver('TERM');
    $half->send("st: localhost\r\n\r\n");
    is $half->response->{status}, 200, 'a request that is half sent when SIGTERM arrives gets a response';
    $half->close;
    $server->ended;

    # SIGINT without a connection
    $server = start_server(root => $root);
    $server->get('/small.txt');
    my $summary = $server->stop(signal => 'INT', name => 'SIGINT stops the server as SIGTERM does');
    like $summary, qr/\A$model->{name}_server: /, 'the summary begins with the name of the server';
    my $line = $summary;
    for my $part (
        qr/\b1 connections?\b/, qr/\b1 at once/, qr/\b1 requests?\b/, qr/\b0 errors?\b/, qr/\b1\d{3} bytes/, qr/CPU/,
        qr/\d+ [KM]iB.*memory/
    ) {
        like $line, $part, "the summary matches $part";
    }
    unlike $line, qr{/request}, 'CPU per request is not told of one request: most of it went into the start';
    my $made = $model->{workers} // 1;
    like $line, qr/\b$made (?:process|thread)/, 'the summary has the number of processes or threads' if !$model->{single};

    $server = start_server(root => $root);
    my $many = $server->connect;
    $many->send(request(GET => '/small.txt') x 999 . request(GET => '/small.txt', Connection => 'close'));
    $many->fill($PATIENCE) until $many->{ended};
    like $server->stop, qr{\b1000 requests\b.* CPU, \d+\.\d us/request}, 'CPU per request is told of 1,000 requests';

    # During a slow download the port is free for the next server, and the stop waits for the download.
    $server = patient_server($root);
    my $slow = $server->connect;
    $slow->send(request(GET => '/big.bin'));
    $slow->fill($PATIENCE);
    my @waiting = map { $server->connect } 1 .. ($model->{single} ? 3 : 0);
    $_->send(request(GET => '/small.txt', Connection => 'close')) for @waiting;
    $server->deliver('TERM');
    ok until_true(sub { can_listen($server->port) }), 'after SIGTERM the port is free while a download continues';
    ok $server->alive, 'after SIGTERM the server waits for a download';
    is length $slow->response->{body}, $big, 'after SIGTERM a download arrives whole';
    $slow->close;
    is scalar(grep { $_->response->{status} == 200 } @waiting), 3, 'clients that waited for the download to end get their responses'
        if @waiting;
    $_->close for @waiting;
    $server->ended(name => 'after SIGTERM the server ends when the download has ended, before --stop-timeout');

    # A client that stops reading delays the stop until --stop-timeout at most.
    $server = start_server(root => $root, options => ['--stop-timeout', 0.2]);
    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    $stalled->fill($PATIENCE);
    $server->stop(name => 'a client that stops reading does not delay the stop beyond --stop-timeout');
    $stalled->close;

    # A second signal ends the server at once.
    for my $signal (qw(TERM INT)) {
        $server = patient_server($root);
        $stalled = $server->connect;
        $stalled->send(request(GET => '/sparse.bin'));
        $stalled->fill($PATIENCE);
        $server->deliver('TERM');
        ok $server->alive, "the server waits for its client after SIGTERM (before SIG$signal)";
        $server->stop(signal => $signal, name => "a second signal, SIG$signal, ends the server at once");
        $stalled->close;
    }
});

done_testing;

#!/usr/bin/perl
# A stop by SIGTERM loses nothing: each request that was sent whole gets a whole response. Connections that are
# refused after the signal do not count as lost.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Crowd;
use Origin;
use Proxy qw(%few);
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_RCVBUF SO_REUSEADDR pack_sockaddr_in inet_aton);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big, 'sparse.bin' => '');
truncate "$root/sparse.bin", 1 << 30 or die "truncate: $!";
my $origin = Origin->new;

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

my @user = $> == 0 ? qw(setpriv --reuid=65534 --regid=65534 --clear-groups) : ();
my $can_trace = !sanitized() && run_command(@user, qw(strace -D -o /dev/null true))->{status} == 0;

# Starts a server that waits for its clients longer than any test takes, so that a slow machine loses no request.
sub patient_server (%how) {
    return start_server(root => $root, %how, options => ['--stop-timeout', 3600, @{ $how{options} // [] }]);
}

# Sends SIGTERM to a server that has many clients, and runs these to their end. Returns what went wrong.
sub stop_among_clients ($server, %count) {
    $Crowd::signalled = 0;
    my %clients = map { my $kind = $_; ($kind => [map { client($server->port, $kind) } 1 .. $count{$kind}]) } qw(busy download hasty);
    $_->{hold} = 1 for @{ $clients{download} };
    my @crowd = map { @{ $clients{$_} } } qw(busy download hasty);
    run_until(\@crowd, sub {
        return $clients{busy}[0]{responses} > 0 if model()->{single};
        return !grep({ $_->{responses} < 3 } map { @{ $clients{$_} } } qw(busy hasty)) && !grep { !length $_->{in} } @{ $clients{download} };
    });
    # These may still be in the listen queue when the signal arrives.
    my @late = map { client($server->port, 'once') } 1 .. $count{late};
    writable($_) for grep { !$_->{over} } @late;
    push @crowd, @late;
    $server->signal('TERM');
    $Crowd::signalled = 1;
    for my $client (@{ $clients{download} }) {
        $client->{hold} = 0;
        setsockopt $client->{socket}, SOL_SOCKET, SO_RCVBUF, $big;
    }
    run_until(\@crowd, sub { 0 });

    my $told = grep { $_->{over} eq 'done' } @{ $clients{busy} };
    my $refused = grep { $_->{refused} } @{ $clients{hasty} };
    my @flaws = map { "a client of kind $_->{kind}: $_->{over}" } grep { $_->{lost} } @crowd;
    push @flaws, "a client of kind $_->{kind} does not end" for grep { !$_->{over} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets a wrong response" for grep { $_->{bad} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets $_->{responses} responses" for grep { $_->{responses} != 1 } @{ $clients{download} }, @late;
    push @flaws, "$told of $count{busy} busy clients get Connection: close" if $told != $count{busy};
    push @flaws, "$refused of $count{hasty} hasty clients are refused at the end" if $refused != $count{hasty};
    return @flaws;
}

# Returns the status of the response, and closes the connection: the server waits two seconds for a client that keeps it open.
sub status_and_end ($client) {
    my $status = $client->response->{status};
    $client->close;
    return $status;
}

# Returns true if another server could listen at the port.
sub can_listen ($port) {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_REUSEADDR, 1;
    return bind($socket, pack_sockaddr_in($port, inet_aton('127.0.0.1'))) && listen $socket, 1;
}

each_way_to_accept(sub ($model) {
    for my $round (1 .. (sanitized() ? 1 : 2)) {
        my $server = patient_server();
        my @flaws = stop_among_clients($server, busy => 32, download => $model->{single} ? 2 : 8, hasty => 8, late => 16);
        ok !@flaws, "round $round: SIGTERM with busy clients, downloads and new clients: each request gets its response, and persistent connections get Connection: close"
            or diag(join "\n", @flaws);
        $server->ended;
    }

    # The kernel may hold back a client that says nothing: it is not in the listen queue.
    my $patient = patient_server();
    my $silent  = $patient->connect;
    $patient->deliver('TERM');
    ok !$silent->fill(0.5), 'SIGTERM, a client has connected before: it says nothing for a while';
    is $silent->ask(request(GET => '/small.txt', Connection => 'close'))->{status}, 200, 'SIGTERM, a client has connected before: it gets its response';
    $silent->close;
    $patient->ended;

    # Between the last look at the queue and its end no client comes, also where the kernel allows users no filter.
    if ($can_trace) {
        my %crowd  = (busy => 2, download => 1, hasty => 4, late => 2);
        my @places = $model->{limited} ? ('--workers', 9) : ();    # for all of them at once; each is traced
        my @delay  = qw(strace -D -f -qq -o /dev/null -e trace=shutdown -e inject=shutdown:delay_enter=10000);
        my $server = patient_server(through => [@user, @delay], path => program_copy(), options => \@places);
        my @flaws  = stop_among_clients($server, %crowd);
        ok !@flaws, 'SIGTERM, a user, time before the port is closed: no request is lost' or diag(join "\n", @flaws);
        $server->ended;

        # Workers listen until new clients are refused, however late that is.
        @delay  = qw(strace -D -f -qq -o /dev/null -e trace=getsockname -e inject=getsockname:delay_enter=150000);
        $server = patient_server(through => [@user, @delay], path => program_copy(), options => \@places);
        @flaws  = stop_among_clients($server, %crowd);
        ok !@flaws, 'SIGTERM, a user, time before new clients are refused: no request is lost' or diag(join "\n", @flaws);
        $server->ended;
    }

    # Clients that wait in the listen queue when the signal arrives are served when a place is free. The client that has the only
    # place waits for an origin, so that it does not have to give way.
    $origin->play('/held', [\"held$model->{label}", @{ response(200, 'held') }]);
    $origin->play('/next', response(200, 'next'));
    my $server = start_server(options => [qw(--service proxy --no-cache --stop-timeout 3600 --max-connections 1), $model->{limited} ? qw(--workers 1) : ()]);
    my $held = $server->connect;
    $held->send(request(GET => $origin->url('/held')));
    ok until_true(sub { $origin->count('/held') }), 'SIGTERM, --max-connections 1: a client has the only place before';
    my @queued = map { $server->connect } 1 .. 3;
    $_->send(request(GET => $origin->url('/next'), Connection => 'close')) for @queued;
    ok !$queued[0]->fill(0.2), 'SIGTERM, --max-connections 1: three clients wait before';
    $server->deliver('TERM');
    ok !$queued[0]->fill(0.2), 'SIGTERM, --max-connections 1: they wait after the signal';
    $origin->open_gate("held$model->{label}");
    is status_and_end($held), 200, 'SIGTERM, --max-connections 1: the first client gets its response after the signal';
    is scalar(grep { status_and_end($_) == 200 } @queued), 3, 'SIGTERM, --max-connections 1: the three clients are served then';
    $server->ended(%few);
});

each_server(sub ($model) {
    # An idle connection stays open until a response can say that it closes.
    my $server = patient_server();
    my $idle = $server->connect;
    $idle->ask(request(GET => '/small.txt'));
    $server->deliver('TERM');
    my $response = $idle->ask(request(GET => '/small.txt'));
    is $response->{status}, 200, 'an idle connection still gets a response after SIGTERM';
    ok !$response->persistent, 'the response to an idle connection after SIGTERM says that the connection closes';
    ok $idle->ends, 'an idle connection closes after its response after SIGTERM';
    $server->ended;

    # A shell that becomes the server may have left it a job: that ends when it likes.
    my $scratch = scratch();
    my $job = "$scratch/job";
    $server = patient_server(through => ['perl', '-MPOSIX=setsid', '-e', $LEAVE_JOB, $job], options => ['--status']);
    my $process = slurp($job);
    is $server->get('/small.txt')->{status}, 200, 'a server with a job of the shell that became it serves';
    $server->deliver('TERM');
    $server->ended(name => 'a job of the shell does not delay the stop');
    ok kill(KILL => $process), 'the job goes on after the server';

    # If the job is killed, that is no end of a connection.
    $server = patient_server(through => ['perl', '-MPOSIX=setsid', '-e', $LEAVE_JOB, $job], options => ['--status']);
    kill KILL => slurp($job);
    $server->get('/small.txt') for 1 .. 3;
    my $counted;
    my $sees = sub { ($counted) = $server->get('/.status')->{body} =~ /"active": (\d+)/; return $counted == 1 };
    ok until_true($sees), 'a job that was killed is not counted off the connections' or diag("$counted connections");
    $server->stop;

    # The process beside the server that refuses new clients, where the server may not, does not answer.
    $server = start_server(root => $root, through => \@user, path => program_copy());
    my @beside = map { $_->[0] } grep { $_->[2] eq 'handover' } group_processes($server->pid);
    ok @beside && @beside == kill(STOP => @beside), 'the process beside the server is stopped';
    is $server->get('/small.txt')->{status}, 200, 'the process beside the server does not run: the server serves';
    $server->signal('TERM');
    ok until_true(sub { slurp("/proc/@{[ $server->pid ]}/stat") =~ /\) Z/ }), 'and stops';
    kill CONT => @beside;
    $server->ended;

    # A request that is half sent when the signal arrives
    $server = patient_server();
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
        qr{us/request|microseconds}, qr/\d+ [KM]iB.*memory/
    ) {
        like $line, $part, "the summary matches $part";
    }
    my $made = $model->{workers} // 1;
    like $line, qr/\b$made (?:process|thread)/, 'the summary has the number of processes or threads' if !$model->{single};

    # During a slow download the port is free for the next server, and the stop waits for the download.
    $server = patient_server();
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
    is scalar(grep { status_and_end($_) == 200 } @waiting), 3, 'clients that waited for the download to end get their responses'
        if @waiting;
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
        $server = patient_server();
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

#!/usr/bin/perl
# Workers: a worker that dies is replaced, and only its own connections end; no worker outlives the first process; workers
# share the work.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Injection;
use IO::Select;

my $root = tree('small.txt' => "small\n");

# Returns the processes of the server except the first one.
sub workers ($server) {
    return map { $_->[0] } grep { $_->[0] != $server->pid } serving_processes($server->pid);
}

# Stops a process, and waits until it has stopped: the signal takes effect only when the process leaves the kernel.
sub halt ($server, $process) {
    kill STOP => $process;
    until_true(sub { grep { $_->[0] == $process && $_->[1] eq 'T' } group_processes($server->pid) })
        or die "process $process does not stop\n";
}

# Returns true if the connection has ended or has bytes to read.
sub gone ($client) {
    return IO::Select->new($client->{socket})->can_read(0);
}

each_way_to_accept(sub ($model) {
    for my $case (['--workers', 0], ['--workers', 'many'], ['--workers', 5000], ['--accept', 'somehow']) {
        my $run = run_server(@$case, 0);
        is $run->{status}, 2, "@$case is refused with exit status 2";
        is scalar(() = $run->{err} =~ /\n/g), 1, "@$case is refused with one line" or diag($run->{err});
    }
    if (!$model->{workers}) {
        like run_server('--workers', 2, 0)->{err}, qr/unknown option '--workers'/, 'a model without workers has no option --workers';
        return;
    }

    # The statistics list each worker, and count the requests of all.
    my $folder = scratch();
    my $file   = "$folder/stats";
    my $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file]);
    like $server->{ready}, qr/\(4, --accept \w+\)/, 'the ready line has the number of workers and the way to accept';
    is $server->get('/small.txt')->{status}, 200, 'four workers serve a request' for 1 .. 8;
    my $summary = $server->stop;
    my $stats   = json($file);
    is scalar @{ $stats->{workers} }, 4, 'the statistics list four workers';
    is $stats->{requests}, 8, 'the statistics count the requests of all workers';
    like $summary, qr/\b4 (?:processes|threads) made/, 'the summary has the number of workers';

    # Workers that need more descriptors than the soft limit raise it; the hard limit bounds their number.
    $server = start_server(root => $root, through => [qw(prlimit --nofile=64:4096)], options => ['--workers', 60]);
    like $server->{ready}, qr/\(60, /, 'a soft limit of 64 descriptors: the server raises it and makes 60 workers';
    is $server->get('/small.txt')->{status}, 200, 'a soft limit of 64 descriptors: the server serves';
    $server->stop(warnings => qr/ descriptors allows /);
    $server = start_server(root => $root, through => [qw(prlimit --nofile=64)], options => ['--workers', 60], failure => 1);
    if ($server && $server->errors =~ / allows (\d+) connections at once, not 60$/m) {
        like $server->{ready}, qr/\($1, /, 'a hard limit of 64 descriptors: the server makes as many threads as it allows';
        is $server->get('/small.txt')->{status}, 200, 'a hard limit of 64 descriptors: the threads serve';
    }
    $server->stop(warnings => qr/ descriptors allows /) if $server;

    # The following cases kill workers one by one, which threads do not allow.
    $server = start_server(root => $root, options => ['--workers', 4, '--idle-timeout', 60]);
    my @workers = workers($server);
    if (!@workers) {
        pass('the workers are threads');
        $server->stop;
        return;
    }
    is scalar @workers, 4, 'four worker processes are there before the first request';

    # Three connections: each on another worker where a worker serves one connection at a time.
    my @clients = map { $server->connect } 1 .. ($model->{single} ? 0 : 3);
    is $_->ask(request(GET => '/small.txt'))->{status}, 200, 'a connection is served before its worker is killed' for @clients;
    for my $worker (@workers) {
        kill KILL => $worker;
        ok until_true(sub { !grep { $_ == $worker } workers($server) }), 'a worker ends when it is killed';
        ok until_true(sub { workers($server) == 4 }), 'a worker that was killed is replaced';
        my @lost = grep { $_->ends } grep { !$_->{gone} && gone($_) } @clients;
        $_->{gone} = 1 for @lost;
        cmp_ok scalar @lost, '<=', 1, 'a worker that was killed takes at most one connection with it' if $model->{limited};
        is $server->get('/small.txt')->{status}, 200, 'after a worker was killed the server serves';
    }
    # The kernel ends the operations of a ring after its process.
    ok until_true(sub { !grep { !$_->{gone} && !gone($_) } @clients }), 'when all workers were killed, all connections have ended';
    $server->stop(warnings => qr/^$model->{name}_server: worker \d+ \(process \d+\) was ended by signal 9/);

    # One of the workers holds the accept lock or mutex. Killing all of them in turn kills that one too.
    $server = start_server(root => $root, options => ['--workers', 3]);
    for my $round (1 .. 2) {
        for my $worker (workers($server)) {
            kill KILL => $worker;
            until_true(sub { !grep { $_ == $worker } workers($server) });
            is $server->get('/small.txt')->{status}, 200, "round $round: the server serves right after a worker was killed, whatever lock that held";
        }
        ok until_true(sub { workers($server) == 3 }), "round $round: all workers are replaced";
    }
    $server->stop(warnings => qr/^$model->{name}_server: worker \d+ \(process \d+\) was ended by signal 9/);

    # A worker that dies after it has accepted a connection is replaced at once, however often, so that other clients do not wait.
    $server = start_server(root => $root, options => ['--workers', 1, '--idle-timeout', 60]);
    for my $round (1 .. 8) {
        my $client = $server->connect;
        $client->ask(request(GET => '/small.txt'));
        kill KILL => workers($server);
        until_true(sub { $client->ends });
        is $server->get('/small.txt')->{status}, 200, "death $round: the replacement serves the next client";
    }
    unlike $server->errors, qr/next try/, 'a worker that had accepted a connection is replaced without a delay';
    $server->stop(warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);

    # A worker that dies before it has accepted a connection is replaced with a growing delay.
    $server = start_server(root => $root, options => ['--workers', 1]);
    my %killed;
    ok until_true(sub {
        for my $worker (workers($server)) { $killed{$worker} = kill KILL => $worker }
        return $server->errors =~ /keeps dying: the next try is in [\d.]+ s/;
    }), 'the server says that a worker keeps dying, and when it tries again';
    cmp_ok scalar keys %killed, '<', 50, 'fewer than 50 workers die before the server delays the next one';
    until_true(sub { !grep { $killed{$_} } workers($server) });    # one that dies late would take the client with it
    is $server->get('/small.txt')->{status}, 200, 'a client that comes while there is no worker is served by the next one';
    $server->stop(warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);

    # --accept few: only as many event loops listen as the load needs.
    if (!@{ $model->{options} } && (describe()->{accept}[0] // '') eq 'few') {
        $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file]);
        $server->get('/small.txt') for 1 .. 40;
        $server->stop;
        is join(' ', sort map { $_->{requests} } @{ json($file)->{workers} }), '0 0 0 40', '--accept few: one loop serves clients that come one by one';

        $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file, '--idle-timeout', 60]);
        my @persistent = map { my $client = $server->connect; $client->ask(request(GET => '/small.txt')); $client } 1 .. 40;
        is $_->ask(request(GET => '/small.txt'))->{status}, 200, '--accept few: a persistent connection is served' for @persistent;
        $server->stop;
        my @share = sort { $a <=> $b } map { $_->{connections} } @{ json($file)->{workers} };
        cmp_ok $share[0], '>=', 4, "--accept few: each loop has some of the persistent connections (@share)";

        $server = start_server(root => $root, options => ['--workers', 2, '--stats', $file]);
        ok until_true(sub {
            is run_command(qw(ab -q -k -n 20000 -c 20), $server->url . 'small.txt')->{status}, 0, '--accept few: ab reports no error';
            $server->deliver('USR1');
            return 2 == grep { $_->{requests} > 0 } @{ json($file)->{workers} // [] };
        }), '--accept few: two loops share the load of ab';
        $server->stop;
    }

    # --accept pass: connections are passed to living workers only, and a connection that was passed to a worker that dies is not lost.
    if ("@{ $model->{options} }" eq '--accept pass') {
        my %killed = (warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);
        within(1.6, '--accept pass: while a dead worker is not yet replaced, another one gets its connections', sub ($) {
            $server = start_server(root => $root, options => ['--workers', 2]);
            my ($other) = (sort { $a <=> $b } workers($server))[1];
            my $before;
            until_true(sub {
                $before = now();
                kill KILL => grep { $_ != $other } workers($server);
                return $server->errors =~ /worker 0 .* the next try is in 1\.6 s/;
            });
            my $status = $server->get('/small.txt')->{status};
            my $now = join ' ', workers($server);
            my $seconds = now() - $before;
            $server->stop(%killed);
            return ($seconds, $status == 200 ? () : "status $status", $now eq $other ? () : "the workers are $now, and not $other");
        });

        $server = start_server(root => $root, options => ['--workers', 1]);
        my ($stopped) = workers($server);
        halt($server, $stopped);
        my $client = $server->connect;
        $client->send(request(GET => '/small.txt'));
        until_true(sub { 0 }, 0.3);
        kill KILL => $stopped;
        is $client->response->{status}, 200, '--accept pass: a connection that was passed to a worker that dies is served by its replacement';
        $client->close;
        $server->stop(%killed);

        $server = start_server(root => $root, options => ['--workers', 1, '--stop-timeout', 3600]);
        ($stopped) = workers($server);
        halt($server, $stopped);
        $client = $server->connect;
        $client->send(request(GET => '/small.txt'));
        until_true(sub { 0 }, 0.3);
        $server->deliver('TERM');
        kill KILL => $stopped;
        is $client->response->{status}, 200, '--accept pass: nor is one whose worker dies at a stop';
        $client->close;
        $server->ended(%killed, name => '--accept pass: and the server ends');

        # A connection that cannot be passed is lost, and its worker is not.
        $server = start_server(root => $root, options => [qw(--workers 1 --no-sandbox)]);
        my $tracer = command_exists('strace') && !sanitized() ? inject('sendmsg:error=ENOBUFS:when=1', [$server->pid]) : undef;
        if ($tracer) {
            ok $server->connect->ends, '--accept pass: a connection that the kernel does not pass ends';
            is $server->get('/small.txt')->{status}, 200, '--accept pass: the next one is served by the same worker' for 1, 2;
        } else {
            skip_case('a call that fails: without strace, or with a sanitizer');
        }
        $server->stop;
        waitpid $tracer, 0 if $tracer;

        # The kernel refuses a worker the message, once.
        $server = start_server(root => $root, options => [qw(--workers 1 --no-sandbox)]);
        my @before = workers($server);
        $tracer = command_exists('strace') && !sanitized() ? inject('recvmsg:error=ENOMEM:when=1', \@before) : undef;
        if ($tracer) {
            is $server->get('/small.txt')->{status}, 200, '--accept pass: a worker that fails to take a connection tries again' for 1, 2;
            is_deeply [workers($server)], \@before, '--accept pass: and goes on';
        } else {
            skip_case('a call that fails: without strace, or with a sanitizer');
        }
        $server->stop;
        waitpid $tracer, 0 if $tracer;

        # A client has been passed to a worker whose replacement is due later than the signal.
        $server = start_server(root => $root, options => ['--workers', 1, '--stop-timeout', 3600]);
        until_true(sub { kill KILL => workers($server); $server->errors =~ /the next try is in [1-9][.\d]* s/ });
        $client = $server->connect;
        $client->send(request(GET => '/small.txt'));
        until_true(sub { 0 }, 0.3);
        $server->deliver('TERM');
        is $client->response->{status}, 200, '--accept pass: a client that waits for a worker at a stop gets one';
        $client->close;
        $server->ended(%killed, name => '--accept pass: and then the server ends');
    }

    # No worker outlives the first process.
    $server = start_server(root => $root, options => ['--workers', 3]);
    kill KILL => $server->pid;
    waitpid $server->pid, 0;
    ok until_true(sub { !workers($server) }), 'the workers end when the first process is killed';
    $server->discard;
});

done_testing;

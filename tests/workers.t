#!/usr/bin/perl
# Workers: one that dies is replaced, and takes only its own connections with it, whatever it held; none outlives the first
# process; they share the work.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Select;
use JSON::PP ();

my $root = tree('small.txt' => "small\n");

# The processes of the server but for the first one.
sub workers ($server) {
    return map { $_->[0] } grep { $_->[0] != $server->pid && $_->[1] ne 'Z' } group_processes($server->pid);
}

# Stops a process where it stands: the signal takes effect when it leaves the kernel, which may be later.
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
        is $run->{status}, 2, "@$case: status 2";
        is scalar(() = $run->{err} =~ /\n/g), 1, "@$case: one line" or diag($run->{err});
    }
    if (!$model->{workers}) {
        like run_server('--workers', 2, 0)->{err}, qr/unknown option '--workers'/, 'it has no workers, and says so';
        return;
    }

    # All workers get something to do where they wait in turn; and what they did adds up.
    my $folder = scratch();
    my $file   = "$folder/stats";
    my $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file]);
    like $server->{ready}, qr/\(4, --accept \w+\)/, 'the ready line tells the number of workers, and how they accept';
    is $server->get('/small.txt')->{status}, 200, 'a request' for 1 .. 8;
    my $summary = $server->stop;
    my $stats   = JSON::PP::decode_json(slurp($file));
    is scalar @{ $stats->{workers} }, 4, 'four workers are told of';
    is $stats->{requests}, 8, 'all requests are counted';
    like $summary, qr/\b4 (?:processes|threads) made/, 'the summary tells how many were made';

    # Workers that need more descriptors than the soft limit raise it; the hard limit bounds their number.
    $server = start_server(root => $root, through => [qw(prlimit --nofile=64:4096)], options => ['--workers', 60]);
    like $server->{ready}, qr/\(60, /, 'a soft limit of 64 descriptors: 60 workers';
    is $server->get('/small.txt')->{status}, 200, 'and they serve';
    $server->stop(warnings => qr/ descriptors allows /);
    $server = start_server(root => $root, through => [qw(prlimit --nofile=64)], options => ['--workers', 60], failure => 1);
    if ($server && $server->errors =~ / allows (\d+) connections at once, not 60$/m) {
        like $server->{ready}, qr/\($1, /, 'threads that there are no descriptors for are not made';
        is $server->get('/small.txt')->{status}, 200, 'and the others serve';
    }
    $server->stop(warnings => qr/ descriptors allows /) if $server;

    # Threads live and die together.
    $server = start_server(root => $root, options => ['--workers', 4, '--idle-timeout', 60]);
    my @workers = workers($server);
    if (!@workers) {
        pass('its workers are threads');
        $server->stop;
        return;
    }
    is scalar @workers, 4, 'four processes are there before there is work';

    # A connection on each worker that takes one alone; on one at least otherwise.
    my @clients = map { $server->connect } 1 .. ($model->{single} ? 0 : 3);
    is $_->ask(request(GET => '/small.txt'))->{status}, 200, 'a connection is served' for @clients;
    for my $worker (@workers) {
        kill KILL => $worker;
        ok until_true(sub { !grep { $_ == $worker } workers($server) }), 'a worker is killed';
        ok until_true(sub { workers($server) == 4 }), 'another one replaces it';
        my @lost = grep { $_->ends } grep { !$_->{gone} && gone($_) } @clients;
        $_->{gone} = 1 for @lost;
        cmp_ok scalar @lost, '<=', 1, 'at most one connection is lost with it' if $model->{limited};
        is $server->get('/small.txt')->{status}, 200, 'and all goes on';
    }
    is scalar(grep { $_->{gone} } @clients), scalar(@clients), 'each connection went with its worker';
    $server->stop(warnings => qr/^$model->{name}_server: worker \d+ \(process \d+\) was ended by signal 9/);

    # One that holds the lock, or the mutex, while it waits: whichever it is, it is among those killed here.
    $server = start_server(root => $root, options => ['--workers', 3]);
    for my $round (1 .. 2) {
        for my $worker (workers($server)) {
            kill KILL => $worker;
            until_true(sub { !grep { $_ == $worker } workers($server) });
            is $server->get('/small.txt')->{status}, 200, "round $round: served though a worker died a moment ago";
        }
        ok until_true(sub { workers($server) == 3 }), "round $round: all workers are there again";
    }
    $server->stop(warnings => qr/^$model->{name}_server: worker \d+ \(process \d+\) was ended by signal 9/);

    # A worker that dies of a connection is replaced at once, however often: others wait for no delay.
    $server = start_server(root => $root, options => ['--workers', 1, '--idle-timeout', 60]);
    for my $round (1 .. 8) {
        my $client = $server->connect;
        $client->ask(request(GET => '/small.txt'));
        kill KILL => workers($server);
        until_true(sub { $client->ends });
        is $server->get('/small.txt')->{status}, 200, "death $round: served by the next worker";
    }
    unlike $server->errors, qr/next try/, 'no replacement was held back';
    $server->stop(warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);

    # One that dies before it accepted anything is not replaced as fast as it dies.
    $server = start_server(root => $root, options => ['--workers', 1]);
    my $deaths = 0;
    ok until_true(sub {
        for my $worker (workers($server)) { $deaths += kill KILL => $worker }
        return $server->errors =~ /keeps dying: the next try is in [\d.]+ s/;
    }), 'a worker that keeps dying is told of, and waits';
    cmp_ok $deaths, '<', 50, 'it did not die very often before that';
    is $server->get('/small.txt')->{status}, 200, 'a client that came while there was none is served by the next one';
    $server->stop(warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);

    # As few event loops listen as the load needs.
    if ("@{ $model->{options} }" eq '--accept few') {
        $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file]);
        $server->get('/small.txt') for 1 .. 40;
        $server->stop;
        is join(' ', sort map { $_->{requests} } @{ JSON::PP::decode_json(slurp($file))->{workers} }), '0 0 0 40', 'one loop serves those who come one by one';

        $server = start_server(root => $root, options => ['--workers', 4, '--stats', $file, '--idle-timeout', 60]);
        my @stay = map { my $client = $server->connect; $client->ask(request(GET => '/small.txt')); $client } 1 .. 40;
        is $_->ask(request(GET => '/small.txt'))->{status}, 200, 'a client that remains connected' for @stay;
        $server->stop;
        my @share = sort { $a <=> $b } map { $_->{connections} } @{ JSON::PP::decode_json(slurp($file))->{workers} };
        cmp_ok $share[0], '>=', 4, "clients that stay are spread over all (@share)";

        $server = start_server(root => $root, options => ['--workers', 2, '--stats', $file]);
        ok until_true(sub {
            is run_command(qw(ab -q -k -n 20000 -c 20), $server->url . 'small.txt')->{status}, 0, 'much work';
            $server->signal('USR1');
            until_true(sub { !$server->pending_signals });
            return 2 == grep { $_->{requests} > 0 } @{ (eval { JSON::PP::decode_json(slurp($file)) } // { workers => [] })->{workers} };
        }), 'much work is shared';
        $server->stop;
    }

    # Connections are passed to those that live; and one that was passed to a worker that dies holds up nobody.
    if ("@{ $model->{options} }" eq '--accept pass') {
        my %killed = (warnings => qr/^$model->{name}_server: worker 0 \(process \d+\) was ended by signal 9/);
        within(1.6, 'a connection is passed to another worker while one is not yet replaced', sub ($) {
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
        is $client->response->{status}, 200, 'a connection that was on its way to a worker that died is served by the next one';
        $client->close;
        $server->stop(%killed);

        $server = start_server(root => $root, options => ['--workers', 1, '--stop-timeout', 3600]);
        ($stopped) = workers($server);
        halt($server, $stopped);
        $client = $server->connect;
        until_true(sub { 0 }, 0.3);
        $server->signal('TERM');
        until_true(sub { !$server->pending_signals });
        kill KILL => $stopped;
        $server->ended(%killed, name => 'a stop does not wait for a connection that was passed to a worker that died');
        $client->close;
    }

    # Nothing outlives the first process.
    $server = start_server(root => $root, options => ['--workers', 3]);
    kill KILL => $server->pid;
    waitpid $server->pid, 0;
    ok until_true(sub { !workers($server) }), 'when the first process is killed, its workers end';
    $server->discard;
});

done_testing;

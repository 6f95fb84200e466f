#!/usr/bin/perl
# Too few descriptors or processes: clients wait or get 503, the server does not spin, and it recovers.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Injection;

my $root  = tree('small.txt' => "small\n");
my $users = 0;

# Watches for a second. Returns the share of one processor that the server takes, and its lines on standard error per second.
sub watch ($server) {
    my ($lines, $cpu, $start) = (scalar(() = $server->errors =~ /\n/g), cpu_seconds($server->pid), now());
    until_true(sub { now() >= $start + 1 });
    my $passed = now() - $start;
    return ((cpu_seconds($server->pid) - $cpu) / $passed, ((() = $server->errors =~ /\n/g) - $lines) / $passed);
}

# Tests that a server comes to rest when it can take no more connections. A server that spins never does.
sub looks_calm ($server, $situation) {
    my ($share, $lines);
    my $calm = until_true(sub {
        ($share, $lines) = watch($server);
        return $lines <= 4 && ($share < 0.01 || sanitized());
    });
    ok $server->alive, "$situation: the server does not end";
    ok $calm, "$situation: the server takes under 1% of a processor, and prints at most four lines a second" or diag("$share of a processor, $lines lines a second");
    skip_case("$situation: the CPU time of a sanitized server is not comparable") if sanitized();
}

# Returns how long the server takes for as many requests, one after another, each on its own connection.
sub seconds_of ($server, $requests) {
    my $start = now();
    for (1 .. $requests) { die "no response\n" if $server->get('/small.txt')->{status} != 200 }
    return now() - $start;
}

# Tests that a server serves soon after all of its clients have left: in two seconds, or in twice the time that as many other
# clients take, and in ten in any case. A busy machine may delay one request; a server that waits for something else delays it
# each time.
sub recovers ($server, $situation, $clients) {
    my (@times, $soon);
    for my $try (1 .. 5) {
        if ($try > 1) {
            my @again = map { $server->connect } 1 .. $clients;
            $_->send(request(GET => '/small.txt')) for @again;
            watch($server);
            $_->close for @again;
        }
        my $start = now();
        is $server->get('/small.txt')->{status}, 200, "$situation: the server serves again";
        push @times, now() - $start;
        $soon = $times[-1] < 2 || $times[-1] < 10 && $times[-1] < 2 * seconds_of($server, $clients);
        last if $soon;
    }
    ok $soon, "$situation: the server serves again soon, in one of five tries at least" or diag("@times");
    is $server->get('/small.txt')->{status}, 200, "$situation: the server serves the next request";
}

each_server(sub ($model) {
    # 64 descriptors and 400 clients that send nothing
    for my $limits (['64', 'a hard limit of 64 descriptors'], ['64:4096', 'a soft limit of 64 descriptors']) {
        my ($limit, $name) = @$limits;
        my $server = start_server(root => $root, through => ['prlimit', "--nofile=$limit"],
            options => [qw(--request-timeout 120 --idle-timeout 120), $model->{workers} ? qw(--workers 8) : ()]);
        my @clients = map { $server->connect } 1 .. 400;
        looks_calm($server, "$name, 400 silent clients");
        $_->close for @clients;
        recovers($server, $name, 400);

        @clients = map { $server->connect } 1 .. 400;
        $_->send(request(GET => '/small.txt')) for @clients;
        looks_calm($server, "$name, 400 persistent connections");
        my %statuses;
        for my $client (@clients) {
            $client->fill(0);
            $statuses{ $client->pending =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
        }
        ok $statuses{200}, "$name: some of 400 clients are served";
        is_deeply [grep { !/^(?:200|503|none)$/ } keys %statuses], [], "$name: the other clients wait, or get 503";
        $_->close for @clients;
        recovers($server, $name, 400);
        $server->stop(warnings => qr/^$model->{name}_server: .+/);
    }

    # Once, the kernel has no memory to watch a descriptor: at most the connection that it belongs to ends.
    my $can_trace = command_exists('strace') && !sanitized();
    for my $nth ($model->{label} =~ /\Aepoll/ && $can_trace ? 1 .. 8 : ()) {
        my $server = start_server(root => $root, options => [qw(--no-sandbox --workers 1 --max-connections 2)]);
        my ($worker) = grep { $_ != $server->pid } map { $_->[0] } serving_processes($server->pid);
        my $tracer = inject("epoll_ctl:error=ENOMEM:when=$nth", [$worker]);
        my @clients = map { $server->connect } 1 .. 3;    # the third has no seat: so the worker listens no longer
        $_->send("GET /small.txt HTTP/1.1\r\n") for @clients;
        $clients[2]->fill(0.1);
        $_->close for @clients;
        my $serves = sub {    # the next connection may be the one that cannot be watched
            my $next = $server->connect;
            eval { $next->send(request(GET => '/small.txt', Connection => 'close')) };
            $next->fill(1);
            return $next->pending =~ m{^HTTP/1\.1 200 };
        };
        ok until_true($serves), "without memory for a descriptor that the worker watches (call $nth): it goes on to serve" if $tracer;
        skip_case('a call that fails: strace cannot be used here') if !$tracer;
        $server->stop(warnings => qr/cannot listen: /);
        waitpid $tracer, 0 if $tracer;
    }

    # Two workers listen, since requests that block were too many for one. A client wakes one of them, which cannot accept it,
    # and soon after gives up listening, since there is no work: the other worker was not woken.
    if ($can_trace && grep { $_ eq 'few' } @{ describe()->{accept} }) {
        my $server  = start_server(root => $root, options => [qw(--no-sandbox --workers 2 --service work)]);
        my @workers = map { $_->[0] } grep { $_->[0] != $server->pid } serving_processes($server->pid);
        my ($served, $cannot) = (0, 0);
        for (1 .. 10) {
            my @clients = map { $server->connect } 1 .. 4;
            for (1 .. 4) {
                $_->send(request(GET => '/block/15000')) for @clients;
                $_->response                             for @clients;
            }
            $_->close for @clients;
            my $tracer = inject('accept4:error=EMFILE:when=1', \@workers);
            last if $cannot = !$tracer;
            my $client = $server->connect;
            $client->send(request(GET => '/cpu/1', Connection => 'close'));
            $served += ($client->response->{status} // 0) == 200;
            kill INT => $tracer;
            waitpid $tracer, 0;
        }
        is $served, 10, 'a client that a worker cannot accept is served soon after' if !$cannot;
        skip_case('a client that a worker cannot accept: strace cannot be used here') if $cannot;
        $server->stop(warnings => qr/./);
    }

    # A limit of processes counts all processes of a user, also those that have ended and nobody has waited for. So the user must
    # run nothing else, and each server has a user of its own.
    if ($> != 0) {
        skip_case('only root can start the server as a user that runs nothing else');
        return;
    }
    my $uid = 60_000 + ($$ * 16 + $users++) % 5000;
    my @as_user = ('setpriv', "--reuid=$uid", "--regid=$uid", '--clear-groups', 'prlimit', '--nproc=12');
    my $server = start_server(root => $root, through => \@as_user, path => program_copy(), directory => $root,
        options => [qw(--idle-timeout 120), $model->{workers} ? qw(--workers 8) : ()]);
    my @clients = map { $server->connect } 1 .. 60;
    $_->send(request(GET => '/small.txt')) for @clients;
    looks_calm($server, '12 processes and 60 clients');
    my %statuses;
    for my $client (@clients) {
        $client->fill(0);
        $statuses{ $client->pending =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
    }
    ok $statuses{200}, '12 processes and 60 clients: some clients are served';
    is_deeply [grep { !/^(?:200|503|none)$/ } keys %statuses], [], '12 processes and 60 clients: the other clients wait, or get 503';
    cmp_ok $statuses{200}, '<', 60, '12 processes and 60 clients: not all clients are served' if $model->{each} || $model->{limited};
    $_->close for @clients;
    recovers($server, '12 processes', 60);
    is scalar(grep { $server->get('/small.txt')->{status} == 200 } 1 .. 50), 50, '12 processes: the server serves 50 requests afterwards';
    $server->stop(warnings => qr/^$model->{name}_server: .+/);
});

done_testing;

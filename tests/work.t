#!/usr/bin/perl
# --service work: it computes, waits, blocks its thread and writes to memory, and refuses what is no amount; event loops serve
# others while requests wait.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $SLEEPERS = 20;
my $SECOND   = 1_000_000;
# An event loop measures only now and then how long requests block it: in every second run, 0.8 s of such requests were
# too few.
my $BLOCKED_ROUNDS = 250;

# A connection needs two descriptors: for its socket and for a timer.
my %SCARCE = (warnings => qr/a limit of \d+ descriptors/);

my %limit = (cpu => $SECOND, sleep => $SECOND, block => $SECOND, touch => 65_536);
my %text  = (
    cpu   => 'The server computed.',
    sleep => 'A timer has expired.',
    block => 'The thread was held.',
    touch => 'Pages were modified.',
);

# Opens connections that have each had a response, so that the server reads what comes next.
sub connections ($server, $count) {
    my @connections = map { $server->connect } 1 .. $count;
    $_->ask(request(GET => '/cpu/0')) for @connections;
    return @connections;
}

my $computed; # the most CPU time was asked for

# Returns the statuses of the responses to one request on each connection that was sent before.
sub statuses (@connections) { return map { $_->response->{status} } @connections }

# Returns the counters of a server that has done some work and has ended.
sub counters ($work, @options) {
    my $folder = scratch();
    my $server = start_server(options => [qw(--service work --stats), "$folder/stats.json", @options]);
    $work->($server);
    $server->stop(%SCARCE);
    return json("$folder/stats.json");
}

# The responses name the threads that wrote them: those of the workers, or one for each connection.
sub test_threads ($server, @threads) {
    my %named = map { 0 + $_ => 1 } @threads;
    if (model()->{each}) {
        is scalar(keys %named), scalar @threads, 'each response names another thread';
        return;
    }
    my %living = map { m{/(\d+)\z} ? ($1 => 1) : () } map { glob "/proc/$_->[0]/task/*" } group_processes($server->{pid});
    is_deeply [grep { !$living{$_} } keys %named], [], 'the responses name threads of the server';
}

sub test_requests ($server) {
    my @threads;
    like $server->{ready}, qr{ serves /cpu/N, }, 'the ready line says what is served';
    for my $kind (sort keys %text) {
        for my $amount (0, 1, 1000) {
            my $response = $server->get("/$kind/$amount");
            my ($done, $thread) = $response->{body} =~ /\A(.*) Thread ([0-9]{7})\.\n\z/;
            is "$response->{status} " . ($done // ''), "200 $text{$kind}", "/$kind/$amount gets 200 and says what was done";
            push @threads, $thread // 0;
            is $response->field('Cache-Control'), 'no-cache', "/$kind/$amount: no cache answers the next request";
        }
        is $server->get("/$kind/1?x=1")->{status}, 200, "/$kind/1: a query changes nothing";
        # A second of CPU time for each model would show no more than one for the first of them.
        is $server->get("/$kind/$limit{$kind}")->{status}, 200, "/$kind/$limit{$kind}, the most, gets 200"
            if $kind ne 'cpu' || !$computed++;
        my $head = $server->head("/$kind/1");
        is "$head->{status} $head->{body}", '200 ', "HEAD /$kind/1 gets 200 and no body";
        is $head->field('Content-Length'), 37, "HEAD /$kind/1 gets the length, which all kinds have";
        for my $amount ($limit{$kind} + 1, qw(18446744073709551617 01 00 +1 -1 1.5 1e3 0x1 1/ x %31), '') {
            my $response = $server->get("/$kind/$amount");
            is $response->{status}, 400, "/$kind/$amount is refused with 400";
            ok !$response->has('Cache-Control'), "/$kind/$amount: the error has no Cache-Control";
        }
        for my $method (qw(OPTIONS POST PUT DELETE TRACE PATCH BREW)) {
            my $response = $server->exchange(request($method => "/$kind/1", Connection => 'close', 'Content-Length' => 0));
            is $response->{status} . ' ' . $response->field('Allow'), '405 GET, HEAD', "$method /$kind/1 is refused with 405";
        }
    }
    test_threads($server, @threads);
    is $server->get($_)->{status}, 404, "$_ gets 404" for qw(/ /cpu /cpus/1 /CPU/1 //cpu/1 /small.txt /sleep);
    is $server->get('https://localhost/cpu/1')->{status}, 421, 'a target that names https is refused with 421';
    is $server->get('http://localhost/cpu/1')->{status}, 200, 'a target that names http is served';
}

# Requests on one connection: pipelined, and with bodies, which this service does not read.
sub test_connections ($server) {
    my @paths = map { ("/cpu/10", "/sleep/$_", "/block/10", "/touch/$_", '/x') } 0, 300, 20_000;
    my @responses = $server->exchange(join '', map { request(GET => $paths[$_], $_ == $#paths ? (Connection => 'close') : ()) } 0 .. $#paths);
    is_deeply [map { $_->{status} } @responses], [(200, 200, 200, 200, 404) x 3], 'pipelined requests get their responses in order';
    like $server->exchange("GET /sleep/100 HTTP/1.0\r\n\r\n")->{body}, qr/\A\Q$text{sleep}\E Thread /, 'a request of HTTP/1.0 gets its response';
    for my $path ('/cpu/1', '/sleep/1000') {
        my @got = $server->exchange(request(GET => $path, 'Content-Length' => 5, body => 'abcde'));
        is_deeply [map { $_->{status} } @got], [200], "$path with a body gets 200, and the connection ends";
        @got = $server->exchange(request(GET => $path, 'Transfer-Encoding' => 'chunked', body => "3\r\nabc\r\n0\r\n\r\n") . request(GET => '/cpu/0'));
        is_deeply [map { $_->{status} } @got], [200], "$path with chunks gets 200, and what follows is not taken for a request";
    }
}

# Each kind of work takes at least as long as it says, by the clock that it names.
sub test_amounts () {
    my ($waited, $blocked);
    counters(sub ($server) {
        my $start = now();
        $server->get('/sleep/50000');
        $waited = now() - $start;
        $start = now();
        $server->get('/block/50000');
        $blocked = now() - $start;
    });
    cmp_ok $waited,  '>=', 0.05, '/sleep waits at least as long as it says';
    cmp_ok $blocked, '>=', 0.05, '/block blocks at least as long as it says';
    my $counters = counters(sub ($server) { $server->get('/cpu/150000') for 1 .. 2 });
    cmp_ok $counters->{cpu_seconds}, '>=', 0.3, '/cpu takes at least as much CPU time as it says';
}

# Requests that wait hold up nobody else. A try in which they had the time to end does not count.
sub test_sleepers ($server) {
    my @connections = connections($server, $SLEEPERS + 1);
    my $other = pop @connections;
    within(1, "$SLEEPERS requests wait, and another client is answered first", sub ($number) {
        my $start = now();
        $_->send(request(GET => "/sleep/$SECOND")) for @connections;
        my @flaws = grep { $_ != 200 } $other->ask(request(GET => '/cpu/1'))->{status};
        push @flaws, 'a request that waits was answered first' if grep { $_->fill(0) } @connections;
        my $seconds = now() - $start;
        push @flaws, map { "status $_" } grep { $_ != 200 } statuses(@connections);
        return ($seconds, @flaws);
    });
    $_->close for @connections, $other;
}

# One event loop finds all requests at once, and those that wait come first. The log has the order of the responses.
sub test_loop () {
    my $folder = scratch();
    my $log    = "$folder/access.log";
    my $server = start_server(options => [qw(--service work --workers 1 --log), $log]);
    my @connections = connections($server, 51);
    my $before = () = slurp($log) =~ /\n/g;
    $server->paused(sub {
        $_->send(request(GET => '/sleep/300000')) for @connections[0 .. 49];
        $connections[50]->send(request(GET => '/cpu/1'));
    });
    is_deeply [statuses(@connections)], [(200) x 51], 'an event loop answers 50 requests that wait, and one that does not';
    my @lines = split /\n/, slurp($log);
    my ($place) = grep { $lines[$before + $_] =~ m{ /cpu/1 } } 0 .. 50;
    is $place, 0, 'an event loop answers while 50 requests wait';
    $_->close for @connections;
    $server->stop(%SCARCE);
}

# An event loop that requests block gets help, though it uses no processor.
sub test_blocked_loop () {
    my $server = start_server(options => [qw(--service work --workers 2)]);
    my (%served, $bodies);
    for (1 .. $BLOCKED_ROUNDS) {
        my @clients = map { $server->connect } 1 .. 8;
        $_->send(request(GET => '/block/5000', Connection => 'close')) for @clients;
        $bodies = join '', map { $_->response->{body} } @clients;
        $served{$_}++ for $bodies =~ / Thread ([0-9]+)/g;
        $_->close for @clients;
        last if keys %served > 1;
    }
    is scalar(keys %served), 2, 'requests that block an event loop: the other one serves, too' or diag($bodies);
    $server->stop(%SCARCE);
}

# A stop finishes the requests that have begun: even all of them in one loop take less time than the patience of a stop.
sub test_stop ($kind) {
    my $server = start_server(options => [qw(--service work)]);
    my @connections = connections($server, model()->{single} ? 1 : $SLEEPERS);
    $_->send(request(GET => "/$kind/150000")) for @connections;
    until_true(sub { !grep { !$server->has_read($_) } @connections });
    $server->signal('TERM');
    is_deeply [grep { $_ != 200 } statuses(@connections)], [], "/$kind: a stop finishes the requests that have begun";
    $_->close for @connections;
    $server->ended(%SCARCE);
}

each_server(sub ($model) {
    my $empty  = scratch();
    my $server = start_server(options => [qw(--service work)], directory => "$empty");
    test_requests($server);
    test_connections($server);
    $server->stop(%SCARCE);
    test_amounts();
    if ($model->{workers} && !$model->{limited}) {
        test_loop();
        test_blocked_loop();
    }
    test_stop($_) for qw(sleep block);

    $server = start_server(options => [qw(--service work --udp)]);
    like $server->ask_udp(request(GET => "/$_/1000"))->{body}, qr/\A\Q$text{$_}\E Thread /, "/$_/1000 is served in a datagram" for sort keys %text;
    $server->stop(%SCARCE);
});

each_way_to_accept(sub ($model) {
    my $server = start_server(options => [qw(--service work)]);
    like $server->get("/$_/1000")->{body}, qr/\A\Q$text{$_}\E Thread /, "/$_/1000 is served" for sort keys %text;
    if ($model->{single}) { skip_case('one connection at a time: others wait for a request that waits') }
    else                  { test_sleepers($server) }
    $server->stop(%SCARCE);
});

done_testing;

#!/usr/bin/perl
# Limits: the size of a request, deadlines that a trickle of bytes does not extend, and the number of connections at once.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use POSIX ();
use ProxyFields qw(%few);
use Socket qw(SOL_SOCKET SO_RCVBUF);

my $size = 64 * 1024 * 1024;
my $root = tree('small.txt' => "small\n", 'middle.bin' => 'm' x (16 * 1024 * 1024), 'sparse.bin' => '');
truncate "$root/sparse.bin", $size or die "truncate: $!";

my $origin = Origin->new;

# Returns a request line of so many bytes, with its line end.
sub line_of ($bytes) {
    my $line = "GET /small.txt? HTTP/1.1\r\n";
    return "GET /small.txt?" . 'q' x ($bytes - length $line) . " HTTP/1.1\r\n";
}

# Returns true if no process and no thread of the server runs.
sub sleeps ($server) {
    my @states = map { (eval { slurp($_) } // '') =~ /\) (\S) /g } map { glob "/proc/$_->[0]/task/*/stat" } group_processes($server->pid);
    return !grep { !/[SZ]/ } @states;
}

each_server(sub ($model) {
    my $server = start_server(root => $root);
    my $fields = "Host: x\r\nConnection: close\r\n";
    for my $case (
        [200, 'a request line of 8,190 bytes',  line_of(8190) . "$fields\r\n"],
        [414, 'a request line of 8,200 bytes',  line_of(8200) . "$fields\r\n"],
        [414, 'a request line of 30,000 bytes', line_of(30_000) . "$fields\r\n"],
        [414, 'a request line of 1,000,000 bytes', line_of(1_000_000) . "$fields\r\n"],
        [414, 'a request line without end',     'GET /' . 'x' x 9000],
        [501, 'a method without end',           'G' x 9000],
        [200, '100 fields',                     "GET /small.txt HTTP/1.1\r\n$fields" . "X: y\r\n" x 98 . "\r\n"],
        [431, '101 fields',                     "GET /small.txt HTTP/1.1\r\n$fields" . "X: y\r\n" x 99 . "\r\n"],
        [431, 'fields without end',             "GET /small.txt HTTP/1.1\r\n$fields" . "X: y\r\n" x 6000],
        [200, 'a head of 31,000 bytes',
            "GET /small.txt HTTP/1.1\r\n$fields" . ('X: ' . 'v' x 995 . "\r\n") x 30 . 'Y: ' . 'v' x 900 . "\r\n\r\n"],
        [200, 'a field of 31,000 bytes',        "GET /small.txt HTTP/1.1\r\n${fields}X: " . 'v' x 31_000 . "\r\n\r\n"],
        [431, 'a head of 34,000 bytes',         "GET /small.txt HTTP/1.1\r\n$fields" . ('X: ' . 'v' x 995 . "\r\n") x 34 . "\r\n"],
        [431, 'a field of 33,000 bytes',        "GET /small.txt HTTP/1.1\r\n${fields}X: " . 'v' x 33_000 . "\r\n\r\n"],
        [431, 'a field without end',            "GET /small.txt HTTP/1.1\r\n${fields}X: " . 'v' x 40_000],
        [431, 'a field of 5,000,000 bytes',     "GET /small.txt HTTP/1.1\r\n${fields}X: " . 'v' x 5_000_000 . "\r\n\r\n"],
        [431, 'a field name of 33,000 bytes',   "GET /small.txt HTTP/1.1\r\n$fields" . 'X' x 33_000 . ": v\r\n\r\n"],
    ) {
        my ($status, $name, $bytes, @others) = @$case;
        my $response = $server->exchange($bytes);
        ok scalar(grep { $response->{status} == $_ } $status, @others), "$name gets $status" or diag("got $response->{status}");
    }
    # The limit counts for each request, not for the connection.
    my $long = line_of(8000) . "Host: x\r\n" . ('X: ' . 'v' x 995 . "\r\n") x 20 . "\r\n";
    my @responses = $server->exchange($long x 20 . request(GET => '/small.txt', Connection => 'close'));
    is scalar(grep { $_->{status} == 200 } @responses), 21, '20 requests of 28 KiB each on one connection are all served';

    $server->connect for 1 .. 300;
    is $server->get('/small.txt')->{status}, 200, 'after 300 connections that send nothing, the server serves the next one';
    $server->stop;
});

# Lets clients send to a server whose deadlines are a second. A client has its first bytes, and a list of further bytes, which
# it sends one after the other until the server responds.
sub send_slowly ($server, @clients) {
    $server->paused(sub {
        $_->{from} = now() for @clients;
        for my $client (@clients) {
            $client->{connection} = $server->connect;
            $client->{connection}->send($client->{first});
        }
    });
    my @dripping = grep { $_->{drip} } @clients;
    while (@dripping = grep { !$_->{connection}->fill(0) && @{ $_->{drip} } } @dripping) {
        $_->{connection}->send(shift @{ $_->{drip} }) for @dripping;
        select undef, undef, undef, 0.02;
    }
}

# The request and idle deadlines, all clients at once where the model serves several
each_server(sub ($model) {
    my $server = start_server(root => $root, options => [qw(--request-timeout 1 --idle-timeout 1)]);
    my $get = request(GET => '/small.txt');
    my @clients = (
        { name => 'a head that comes byte by byte', statuses => [408],
            first => 'G', drip => [split //, substr request(GET => '/small.txt', 'X-Slow' => 'z' x 10_000), 1] },
        { name => 'a body that comes byte by byte', statuses => [408],
            first => request(POST => '/small.txt', 'Content-Length' => 10_000), drip => [('b') x 9_000] },
        { name => 'chunks that come one by one', statuses => [408],
            first => request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked'), drip => [("1\r\nx\r\n") x 9_000] },
        { name => 'a head that stops halfway',             statuses => [408],      first => "GET /small.txt HTTP/1.1\r\nHost: x\r\n" },
        { name => 'a client that sends nothing',           statuses => [],         first => '' },
        { name => 'a client that sends one request only',  statuses => [200],      first => $get },
        { name => 'a second request that stops halfway',   statuses => [200, 408], first => $get . 'GET /small' },
    );
    for my $together ($model->{single} ? map { [$_] } @clients : \@clients) {
        send_slowly($server, @$together);
        for my $client (@$together) {
            my $connection = $client->{connection};
            my @responses = map { $connection->response } @{ $client->{statuses} };
            my $name = $client->{name};
            is join(' ', map { $_->{status} } @responses), join(' ', @{ $client->{statuses} }), "$name gets " . (join(' ', @{ $client->{statuses} }) || 'no response');
            ok !$responses[-1]->persistent, "$name: the 408 has Connection: close" if @responses && $responses[-1]{status} == 408;
            ok $connection->ends, "$name: the connection ends";
            cmp_ok now() - $client->{from}, '>=', 1, "$name: the connection does not end before the deadline";
            ok scalar(@{ $client->{drip} }), "$name: each byte does not extend the deadline" if $client->{drip};
            $connection->close;
        }
    }
    is $server->get('/small.txt')->{status}, 200, 'after all slow clients, the server serves the next one';
    $server->stop;

    $server = start_server(root => $root, options => [qw(--write-timeout 1)]);
    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    ok until_true(sub { ($server->end_of($stalled) // { state => 0 })->{state} != TcpState::ESTABLISHED }), 'the server closes the connection of a client that stops reading';
    $stalled->drain;
    cmp_ok length($stalled->pending), '<', $size, 'a client that stops reading does not get the whole file';
    $stalled->close;
    $server->stop;

    # A slow reader may take longer than the deadline, as long as it makes progress. A try in which this test itself was
    # delayed by half of the deadline does not count; the next one has a longer deadline.
    for my $deadline (1, 2, 4, 8, 16) {
        $server = start_server(root => $root, options => ['--write-timeout', $deadline]);
        my $steady = $server->connect;
        $steady->send(request(GET => '/middle.bin'));
        my ($last, $longest) = (now(), 0);
        my $got = sub { length($steady->pending) - 4 - index $steady->pending, "\r\n\r\n" };
        while ($got->() < 16 * 1024 * 1024 && $steady->fill($PATIENCE) && !$steady->{ended}) {
            select undef, undef, undef, 0.03 * $deadline;
            my $gap = now() - $last;
            $last += $gap;
            $longest = $gap if $gap > $longest;
        }
        $steady->close;
        $server->stop;
        next if $got->() != 16 * 1024 * 1024 && $longest > $deadline / 2 && $deadline < 16;
        is $got->(), 16 * 1024 * 1024, 'a client that reads slowly and steadily gets the whole file';
        last;
    }
});

# Returns true for a model whose connections give their places up to clients that wait.
sub yields ($model) { return !$model->{single} && !$model->{limited} }

# In a crowd, the kernel does not queue much for a client that has read nothing or little: thousands of them would exhaust its
# memory.
each_server(sub ($model) {
    if (!yields($model)) {
        skip_case('this model does not serve a crowd at once');
        return;
    }
    my $server = start_server(root => $root);
    my @crowd = map { $server->connect } 1 .. 260;
    $_->send(request(GET => '/small.txt')) for @crowd;
    is scalar(grep { $_->fill($PATIENCE) } @crowd), 260, '260 connections are served and stay open';
    my $silent = $server->connect(Sockopts => [[SOL_SOCKET, SO_RCVBUF, 4096]]);
    $silent->send(request(GET => '/middle.bin'));
    my $queued = sub { $server->end_of($silent)->{unacknowledged} };
    ok until_true(sub { $queued->() > 0 && sleeps($server) }), 'the server waits for a client that does not read';
    cmp_ok $queued->(), '<', 128 * 1024, 'less than 128 KiB are queued for it';
    ok until_true(sub { $silent->fill(1); length $silent->pending > 40_000 }), 'it reads a little';
    ok until_true(sub { $queued->() > 0 && sleeps($server) }), 'the server waits for it again';
    cmp_ok $queued->(), '<', 128 * 1024, 'still less than 128 KiB are queued for it';
    $silent->close;
    $_->close for @crowd;
    $server->stop;
});

# When all places are taken, idle connections give way first, then those without a whole request, then slow bodies and slow
# readers; no connection that makes progress does.
each_server(sub ($model) {
    if (!yields($model)) {
        skip_case('connections of this model do not give way');
        return;
    }
    my @one = ('--max-connections', 3, $model->{workers} ? ('--workers', 1) : ());
    my $scratch = scratch();
    my $stats = "$scratch/stats.json";
    my $server = start_server(root => $root, options => [@one, '--stats', $stats, '--request-timeout', 600, '--idle-timeout', 600]);
    my %first = (
        head => "GET /small.txt HTTP/1.1\r\nHost: x\r\n",
        body => request(POST => '/small.txt', 'Content-Length' => 10) . 'x',
        idle => request(GET => '/small.txt'),
    );
    my $begin = sub ($kind) {
        my $connection = $server->connect;
        $connection->send($first{$kind});
        $connection->response if $kind eq 'idle';
        until_true(sub { $server->has_read($connection) && sleeps($server) });
        # Only connections that have waited for a quarter of a second give way.
        my $waits = now();
        until_true(sub { now() - $waits > 0.5 });
        return $connection;
    };
    my $passes = sub { $server->get('/small.txt')->{status} };
    my $old_body = $begin->('body');
    my $old_head = $begin->('head');
    my $idle     = $begin->('idle');
    is $passes->(), 200, 'all places taken by a body, a head and an idle connection: another client is served';
    ok $idle->ends, 'the idle connection gives way, although it is the youngest';
    my $head = $begin->('head');
    is $passes->(), 200, 'all places taken by two heads and a body: another client is served';
    ok $old_head->ends, 'the older one of two heads gives way';
    my $body = $begin->('body');
    is $passes->(), 200, 'all places taken by a head and two bodies: another client is served';
    ok $head->ends, 'a head gives way before bodies';
    my $last = $begin->('body');
    is $passes->(), 200, 'all places taken by three bodies: another client is served';
    ok $old_body->ends, 'the oldest one of three bodies gives way';
    is $_->ask('x' x 9)->{status}, 405, 'a body that did not give way is still read' for $body, $last;
    $_->close for $body, $last;
    $server->stop;
    is json($stats)->{gave_way}, 4, 'the statistics count the connections that gave way';

    $server = start_server(root => $root, options => \@one);
    my @readers = map { $server->connect } 1 .. 3;
    $_->send(request(GET => '/middle.bin', Connection => 'close')) for @readers;
    $_->fill($PATIENCE) for @readers;
    my $waiting = $server->connect;
    $waiting->send(request(GET => '/small.txt', Connection => 'close'));
    while (my @left = grep { !$_->{ended} } @readers) { $_->fill($PATIENCE) for @left }
    is scalar(grep { length($_->response->{body}) == 16 * 1024 * 1024 } @readers), 3, 'all places taken by clients that read their responses: each gets all of it';
    is $waiting->response->{status}, 200, 'all places taken by clients that read their responses: another client is served afterwards';
    my @stalled = map { $server->connect } 1 .. 3;
    $_->send(request(GET => '/sparse.bin', Connection => 'close')) for @stalled;
    $_->fill($PATIENCE) for @stalled;
    is $passes->(), 200, 'all places taken by clients that read nothing: another client is served';
    $_->close for @stalled;
    $server->stop;

    # Clients that send one request after another are never idle for long, and have their turn.
    $server = start_server(root => $root, options => \@one);
    my @busy  = map { $server->connect } 1 .. 3;
    my $ruler = $$;
    my $asker = fork // die "fork: $!\n";
    if ($asker == 0) {
        while (getppid == $ruler && @busy) {
            for my $client (@busy) { $client->{over} = !eval { $client->ask(request(GET => '/small.txt'))->persistent } }
            @busy = grep { !$_->{over} } @busy;
            select undef, undef, undef, 0.02;    # how often they ask is what is tested
        }
        POSIX::_exit(0);
    }
    $_->close for @busy;
    is $passes->(), 200, 'all places taken by clients that ask again and again: another client is served';
    kill KILL => $asker;
    waitpid $asker, 0;
    $server->stop;

    $server = start_server(root => $root, options => [@one, '--request-timeout', 600]);
    my @trickles = map { $server->connect } 1 .. 3;
    $_->send("GET /small.txt HTTP/1.1\r\nHost: x\r\nX: ") for @trickles;
    my $parent   = $$;
    my $trickler = fork // die "fork: $!\n";
    if ($trickler == 0) {
        while (getppid == $parent) {
            eval { $_->send('x') } for @trickles;
            select undef, undef, undef, 0.02;    # a byte now and then is what is tested
        }
        POSIX::_exit(0);
    }
    is $passes->(), 200, 'all places taken by clients that send a byte now and then: another client is served';
    kill KILL => $trickler;
    waitpid $trickler, 0;
    $_->close for @trickles;
    $server->stop;
});

# The same for a proxy whose clients keep it waiting.
each_server(sub ($model) {
    return if !yields($model);
    my $here = '127.0.0.1:' . $origin->port;
    $origin->play('/next', response(200, 'next'));
    my %slow = (
        'bodies that stop'          => request(POST => $origin->url('/upload'), 'Content-Length' => 100, body => 'abc'),
        'tunnels that are not used' => "CONNECT $here HTTP/1.1\r\nHost: $here\r\n\r\n",
    );
    for my $kind (sort keys %slow) {
        my $server = start_server(
            options => [qw(--service proxy --no-cache --max-connections 3 --request-timeout 600), $model->{workers} ? qw(--workers 1) : ()]);
        my @crowd = map { $server->connect } 1 .. 3;
        $_->send($slow{$kind}) for @crowd;
        until_true(sub { 3 == grep { $server->has_read($_) } @crowd });
        if ($kind =~ /tunnels/) { $_->fill($PATIENCE) for @crowd }    # each is told that its tunnel is open
        is $server->get($origin->url('/next'))->{status}, 200, "all places of a proxy taken by $kind: another client is served";
        is scalar(grep { $_->open } @crowd), 2, "and one of the $kind gives way";
        $_->close for @crowd;
        $server->stop(%few);
    }
});

# The child processes of a server that serve.
sub servers ($server) {
    my $pid = $server->pid;
    return grep { eval { slurp("/proc/$_/comm") =~ /_server$/ } } split ' ', slurp("/proc/$pid/task/$pid/children");
}

# Sends a request on the connection. Returns 1 if a 200 comes, and 0 if anything else does or the connection ends.
sub try_address ($server, $connection) {
    eval { $connection->send(request(GET => '/small.txt')) };
    $connection->fill($PATIENCE);
    return $connection->pending =~ m{^HTTP/1.1 200 } ? 1 : 0;
}

# Limits of one client address
each_way_to_accept(sub ($model) {
    if ($model->{single}) {
        skip_case('it serves one connection at a time');
        return;
    }
    my $scratch = scratch();
    my $stats = "$scratch/stats.json";
    my $server = start_server(root => $root, options => ['--max-per-address', 2, '--stats', $stats]);
    my @held = map { $server->connect } 1 .. 2;
    is scalar(grep { try_address($server, $_) } @held), 2, '--max-per-address 2: two connections of one address are served';
    my $third = $server->connect;
    ok $third->ends, 'a third one is closed';
    my $other = $server->connect(LocalHost => '127.0.0.2');
    ok try_address($server, $other), 'one of another address is served';
    (shift @held)->close;
    ok until_true(sub { try_address($server, $held[1] = $server->connect) }), 'when one has ended, the next is served';
    my @children = servers($server);
    if (@children) {
        kill KILL => @children;
        $_->drain for @held, $other;
        @held = ();
        for my $number (1, 2) {
            ok until_true(sub { try_address($server, $held[$number - 1] = $server->connect) }),
                "when the processes have been killed, their connections do not count: $number";
        }
        ok !try_address($server, $server->connect), 'the limit still holds';
    }
    $_->close for @held, $other;
    $server->stop(warnings => qr/signal 9/);
    cmp_ok json($stats)->{refused}, '>=', 1, 'the counters tell how many were refused';

    $server = start_server(root => $root, options => ['--rate-per-address', 2]);
    my @rapid = map { $server->connect } 1 .. 40;
    my $served = grep { try_address($server, $_) } @rapid;
    ok $served > 0 && $served < 40, '--rate-per-address 2: of 40 connections at once some are closed';
    ok try_address($server, $server->connect(LocalHost => '127.0.0.2')), 'one of another address is served';
    ok until_true(sub { try_address($server, $server->connect) }), 'later the address may connect again';
    $_->close for @rapid;    # a stop waits for clients that have a connection, since a request may be on its way
    $server->stop;
});

each_way_to_accept(sub ($model) {
    # --max-connections
    my $limit = $model->{single} ? 1 : 3;
    if (yields($model)) {
        my $server = start_server(root => $root, options => ['--max-connections', $limit]);
        my @clients;
        $server->paused(sub { @clients = map { my $one = $server->connect; $one->send(request(GET => '/small.txt')); $one } 1 .. 20 });
        is scalar(grep { $_->response->{status} == 200 } @clients), 20, "--max-connections $limit: 20 persistent connections are served, because idle ones give way";
        $_->close for @clients;
        like $server->stop, qr/(?<!\d)$limit at once/, 'the summary says how many connections there were at once';
    } else {
        my $server = start_server(root => $root, options => ['--max-connections', $limit]);
        my @held = map { $server->connect } 1 .. $limit;
        is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, "--max-connections: $limit at once are served";
        my @waiting = map { $server->connect } 1 .. 5;
        $_->send(request(GET => '/small.txt', Connection => 'close')) for @waiting;
        ok !$waiting[-1]->fill(0.3), '--max-connections: more clients than the limit wait' if @waiting;
        is scalar(grep { $_->pending ne '' } @waiting), 0, '--max-connections: no client that waits gets a byte';
        is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, '--max-connections: clients within the limit are served while others wait';
        (shift @held)->close;
        is scalar(grep { $_->response->{status} == 200 } @waiting), 5, '--max-connections: clients that wait are served when another one leaves';
        $_->close for @held, @waiting;
        my $summary = $server->stop;
        like $summary, qr/(?<!\d)$limit at once/, 'the summary says how many connections there were at once';
    }

    if (!$model->{single}) {
        my $server = start_server(root => $root);
        my $many  = $model->{limited} ? $model->{workers} : 200;
        my @crowd = map { $server->connect } 1 .. $many;
        is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @crowd), $many,
            "by default $many connections at once are served";
        $_->close for @crowd;
        $server->stop;
    } else {
        skip_case('it serves one connection at a time');
    }
});

done_testing;

#!/usr/bin/perl
# Limits: sizes of a request, deadlines that a trickle of bytes does not move, how many connections at once.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $size = 64 * 1024 * 1024;
my $root = tree('small.txt' => "small\n", 'middle.bin' => 'm' x (16 * 1024 * 1024), 'sparse.bin' => '');
truncate "$root/sparse.bin", $size or die "truncate: $!";

# A request line of so many bytes, its line end included.
sub line_of ($bytes) {
    my $line = "GET /small.txt? HTTP/1.1\r\n";
    return "GET /small.txt?" . 'q' x ($bytes - length $line) . " HTTP/1.1\r\n";
}

# The state of the server's end of a connection, from the kernel's table; nothing when it is gone.
sub server_end ($server, $connection) {
    my $ports = sprintf ':%04X [0-9A-F]+:%04X ', $server->port, $connection->{socket}->sockport;
    open my $table, '<', '/proc/net/tcp' or die "/proc/net/tcp: $!";
    while (<$table>) {
        return $1 if /$ports([0-9A-F]{2}) /;
    }
    return;
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
        ok scalar(grep { $response->{status} == $_ } $status, @others), "$name: $status" or diag("got $response->{status}");
    }
    # The limit is a request's, not a connection's.
    my $long = line_of(8000) . "Host: x\r\n" . ('X: ' . 'v' x 995 . "\r\n") x 20 . "\r\n";
    my @responses = $server->exchange($long x 20 . request(GET => '/small.txt', Connection => 'close'));
    is scalar(grep { $_->{status} == 200 } @responses), 21, '20 requests of 28 KiB each, one behind the other';

    $server->connect for 1 .. 300;
    is $server->get('/small.txt')->{status}, 200, '300 connections that come and go without a byte: the server goes on';
    $server->stop;
});

# Lets clients talk with a server whose deadlines are a second, all at once where the model serves several. A client has a name,
# its first bytes, and bytes that it sends one after the other until the server answers.
sub talk ($server, @clients) {
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

# Deadlines
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
        { name => 'a connection without a byte',           statuses => [],         first => '' },
        { name => 'a request, and then nothing',           statuses => [200],      first => $get },
        { name => 'a second request that stops halfway',   statuses => [200, 408], first => $get . 'GET /small' },
    );
    for my $together ($model->{single} ? map { [$_] } @clients : \@clients) {
        talk($server, @$together);
        for my $client (@$together) {
            my $connection = $client->{connection};
            my @responses = map { $connection->response } @{ $client->{statuses} };
            my $name = $client->{name};
            is join(' ', map { $_->{status} } @responses), join(' ', @{ $client->{statuses} }), "$name: " . (join(' ', @{ $client->{statuses} }) || 'no response');
            ok !$responses[-1]->persistent, "$name: Connection: close" if @responses && $responses[-1]{status} == 408;
            ok $connection->ends, "$name: then the connection ends";
            cmp_ok now() - $client->{from}, '>=', 1, "$name: not before the deadline";
            ok scalar(@{ $client->{drip} }), "$name: the bytes do not move the deadline" if $client->{drip};
            $connection->close;
        }
    }
    is $server->get('/small.txt')->{status}, 200, 'after all that the server is well';
    $server->stop;

    $server = start_server(root => $root, options => [qw(--write-timeout 1)]);
    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    ok until_true(sub { (server_end($server, $stalled) // '') ne '01' }), 'a reader that stalls is cut off';
    $stalled->drain;
    cmp_ok length($stalled->pending), '<', $size, 'and did not get it all';
    $stalled->close;
    $server->stop;

    # A reader that takes its time may take longer than the deadline in all. Where this test itself was held up for half of the
    # deadline, the try says nothing, and the next one has a longer deadline.
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
        is $got->(), 16 * 1024 * 1024, 'a slow and steady reader gets it all';
        last;
    }
});

each_way_to_accept(sub ($model) {
    # How many at once
    my $limit = $model->{single} ? 1 : 3;
    my $server = start_server(root => $root, options => ['--max-connections', $limit]);
    my @held = map { $server->connect } 1 .. $limit;
    is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, "$limit at once are served";
    my @waiting = map { $server->connect } 1 .. 5;
    $_->send(request(GET => '/small.txt', Connection => 'close')) for @waiting;
    ok !$waiting[-1]->fill(0.3), 'more than that wait' if @waiting;
    is scalar(grep { $_->pending ne '' } @waiting), 0, 'none of them is served yet';
    is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, 'those at once still are';
    (shift @held)->close;
    is scalar(grep { $_->response->{status} == 200 } @waiting), 5, 'when one goes, those that wait are served';
    $_->close for @held, @waiting;
    my $summary = $server->stop;
    like $summary, qr/(?<!\d)$limit at once/, 'the summary tells how many there were at once';

    if (!$model->{single}) {
        $server = start_server(root => $root);
        my $many  = $model->{limited} ? $model->{workers} : 200;
        my @crowd = map { $server->connect } 1 .. $many;
        is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @crowd), $many,
            "$many connections at once are served";
        $_->close for @crowd;
        $server->stop;
    } else {
        skip_case('it serves one connection at a time');
    }
});

done_testing;

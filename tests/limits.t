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

each_way_to_accept(sub ($model) {
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
        my $reply = $server->exchange($bytes);
        ok scalar(grep { $reply->{status} == $_ } $status, @others), "$name: $status" or diag("got $reply->{status}");
    }
    # The limit is a request's, not a connection's.
    my $long = line_of(8000) . "Host: x\r\n" . ('X: ' . 'v' x 995 . "\r\n") x 20 . "\r\n";
    my @replies = $server->exchange($long x 20 . request(GET => '/small.txt', Connection => 'close'));
    is scalar(grep { $_->{status} == 200 } @replies), 21, '20 requests of 28 KiB each, one behind the other';

    $server->connect for 1 .. 300;
    is $server->get('/small.txt')->{status}, 200, '300 connections that come and go without a byte: the server goes on';
    $server->stop;

    # Deadlines
    $server = start_server(root => $root, options => [qw(--request-timeout 1 --idle-timeout 1 --write-timeout 1)]);

    my $trickle = $server->connect;
    my $sent = 0;
    for my $byte (split //, request(GET => '/small.txt', 'X-Slow' => 'z' x 600)) {
        $trickle->send($byte) or last;
        $sent++;
        last if $trickle->fill(0.05);
    }
    my $reply = $trickle->reply;
    is $reply->{status}, 408, 'a head that comes byte by byte is cut off at the deadline: 408';
    cmp_ok $sent, '>', 5, 'but not before it';
    ok !$reply->persistent, '408 says Connection: close';
    ok $trickle->ends, '408: and the connection ends';
    $trickle->close;

    my $stuck = $server->connect;
    $stuck->send("GET /small.txt HTTP/1.1\r\nHost: x\r\n");
    is $stuck->reply->{status}, 408, 'a head that stops halfway: 408';
    ok $stuck->ends, 'a head that stops halfway: the connection ends';
    $stuck->close;

    my $body = $server->connect;
    $body->send(request(POST => '/small.txt', 'Content-Length' => 1000));
    for (1 .. 900) {
        $body->send('b') or last;
        last if $body->fill(0.05);
    }
    $reply = $body->reply;
    is $reply->{status}, 408, 'a body that comes byte by byte is cut off: 408';
    ok $body->ends, 'a body that comes byte by byte: the connection ends';
    $body->close;

    my $chunks = $server->connect;
    $chunks->send(request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked'));
    for (1 .. 900) {
        $chunks->send("1\r\nx\r\n") or last;
        last if $chunks->fill(0.05);
    }
    is $chunks->reply->{status}, 408, 'chunks that come one by one are cut off: 408';
    $chunks->close;

    my $silent = $server->connect;
    ok $silent->ends, 'a connection without a byte is closed without a byte';
    $silent->close;

    my $idle = $server->connect;
    is $idle->ask(request(GET => '/small.txt'))->{status}, 200, 'a request, and then nothing: first the reply';
    ok $idle->ends, 'then the end, without a byte more';
    $idle->close;

    my $second = $server->connect;
    $second->ask(request(GET => '/small.txt'));
    $second->send('GET /small');
    is $second->reply->{status}, 408, 'a second request that stops halfway: 408';
    ok $second->ends, 'and the end';
    $second->close;

    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    ok until_true(sub { (server_end($server, $stalled) // '') ne '01' }), 'a reader that stalls is cut off';
    $stalled->drain;
    cmp_ok length($stalled->pending), '<', $size, 'and did not get it all';
    $stalled->close;

    # A reader that takes its time, but takes: it may take longer than the deadline in all.
    my $steady = $server->connect;
    $steady->send(request(GET => '/middle.bin'));
    my $from = now();
    while (!$steady->{ended} && length $steady->pending < 16 * 1024 * 1024) {
        $steady->fill($PATIENCE) or last;
        select undef, undef, undef, 0.03;
    }
    is length $steady->reply->{body}, 16 * 1024 * 1024, 'a slow and steady reader gets it all';
    $steady->close;
    is $server->get('/small.txt')->{status}, 200, 'after all that the server is well';
    $server->stop;

    # How many at once
    my $limit = $model->{single} ? 1 : 3;
    $server = start_server(root => $root, options => ['--max-connections', $limit, '--idle-timeout', 60]);
    my @held = map { $server->connect } 1 .. $limit;
    is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, "$limit at once are served";
    my @waiting = map { $server->connect } 1 .. 5;
    $_->send(request(GET => '/small.txt', Connection => 'close')) for @waiting;
    ok !$waiting[-1]->fill(0.3), 'more than that wait' if @waiting;
    is scalar(grep { $_->pending ne '' } @waiting), 0, 'none of them is served yet';
    is scalar(grep { $_->ask(request(GET => '/small.txt'))->{status} == 200 } @held), $limit, 'those at once still are';
    (shift @held)->close;
    is scalar(grep { $_->reply->{status} == 200 } @waiting), 5, 'when one goes, those that wait are served';
    $_->close for @held, @waiting;
    my $summary = $server->stop;
    like $summary, qr/(?<!\d)$limit at once/, 'the summary tells how many there were at once';

    if (!$model->{single}) {
        $server = start_server(root => $root);
        my $many  = $model->{limited} ? $model->{crew} : 200;
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

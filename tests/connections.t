#!/usr/bin/perl
# Which connections stay open: HTTP/1.0 and 1.1, Connection in its many spellings, half-closed clients, --protocol simple.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# version, Connection field or undef, does it stay open?
my @table = (
    ['HTTP/1.1', undef,                    1],
    ['HTTP/1.1', 'keep-alive',             1],
    ['HTTP/1.1', 'close',                  0],
    ['HTTP/1.1', 'Close',                  0],
    ['HTTP/1.1', 'CLOSE',                  0],
    ['HTTP/1.1', 'keep-alive, close',      0],
    ['HTTP/1.1', 'close, keep-alive',      0],
    ['HTTP/1.1', 'foo ,, close',           0],
    ['HTTP/1.1', "foo,\tclose\t",          0],
    ['HTTP/1.1', 'closed',                 1],
    ['HTTP/1.1', 'enclose',                1],
    ['HTTP/1.1', 'upgrade',                1],
    ['HTTP/1.1', '',                       1],
    ['HTTP/1.2', undef,                    1],
    ['HTTP/1.9', 'close',                  0],
    ['HTTP/1.0', undef,                    0],
    ['HTTP/1.0', 'close',                  0],
    ['HTTP/1.0', 'keep-alive',             1],
    ['HTTP/1.0', 'Keep-Alive',             1],
    ['HTTP/1.0', 'foo, keep-alive',        1],
    ['HTTP/1.0', 'keep-alive, close',      0],
    ['HTTP/1.0', 'keep-alives',            0],
);

each_server(sub ($model) {
    my $server = start_server();

    for my $row (@table) {
        my ($version, $option, $open) = @$row;
        my $name = "$version, " . (defined $option ? "Connection: $option" : 'no Connection');
        my @fields = (version => $version, defined $option ? (Connection => $option) : ());
        my $connection = $server->connect;
        my $response = $connection->ask(request(GET => '/small.txt', @fields));
        is $response->{status}, 200, "$name: 200";
        is $response->{version}, 'HTTP/1.1', "$name: the response is HTTP/1.1";
        is !!$response->persistent, !!$open, "$name: the response says that it " . ($open ? 'stays' : 'closes');
        if ($open) {
            like $response->field('Connection'), qr/^keep-alive$/i, "$name: keep-alive is echoed" if $version eq 'HTTP/1.0';
            is $connection->ask(request(GET => '/big.txt', Connection => 'close'))->{status}, 200, "$name: and it does";
        } else {
            like $response->field('Connection'), qr/^close$/i, "$name: Connection: close is said";
        }
        ok $connection->ends, "$name: then it ends";
    }

    my ($two) = $server->exchange(request(GET => '/small.txt', Connection => 'foo', Connection => 'close'));
    is $two->{status}, 200, 'two Connection fields count as one list';
    my $no_host = $server->exchange(request(GET => '/small.txt', version => 'HTTP/1.0', Host => undef));
    is $no_host->{status}, 200, 'HTTP/1.0 needs no Host';

    my @responses = $server->exchange(request(GET => '/none') . request(GET => '/') . request(POST => '/small.txt')
            . request(BREW => '/small.txt') . request(OPTIONS => '*') . request(GET => '/small.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [404, 403, 405, 501, 204, 200],
        'a response that says no to a good request does not end the connection';

    my $half = $server->connect;
    $half->send(request(GET => '/small.txt') . request(GET => '/big.txt'));
    $half->finish;
    my @half = map { $half->response } 1 .. 2;
    is_deeply [map { $_->{status} } @half], [200, 200], 'a client that sends no more is answered in full';
    ok $half->ends, 'and then the connection ends';

    $half = $server->connect;
    $half->send('GET /small.txt HTTP/1.1' . "\r\nHost: x\r\n");
    $half->finish;
    $half->drain;
    ok !$half->{failure}, 'a client that ends in the middle of a head: the connection ends cleanly';

    my $silent = $server->connect;
    $silent->finish;
    ok $silent->ends, 'a client that ends without a byte gets none';

    my $empty_lines = $server->exchange("\r\n\r\n" . request(GET => '/small.txt', Connection => 'close'));
    is $empty_lines->{status}, 200, 'a few empty lines before a request are tolerated';

    {
        my $gone = $server->connect;
        $gone->send(request(GET => '/big.txt') x 20);
        $gone->{socket}->setsockopt(Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0);
    }
    is $server->get('/small.txt')->{status}, 200, 'a client that resets its connection harms nobody';

    my $connection = $server->connect;
    my @many = map { $connection->ask(request(GET => '/small.txt'))->{status} } 1 .. 300;
    is scalar(grep { $_ == 200 } @many), 300, '300 requests one after the other on one connection';
    $connection->close;
    $server->stop;

    $server = start_server(options => [qw(--protocol simple)]);
    for my $version ('HTTP/1.0', 'HTTP/1.1') {
        my $simple = $server->connect;
        my $response = $simple->ask(request(GET => '/small.txt', version => $version, Connection => 'keep-alive')
                . request(GET => '/big.txt', version => $version));
        is $response->{status}, 200, "--protocol simple, a request of $version: 200";
        is $response->{version}, 'HTTP/1.0', "--protocol simple, a request of $version: the response is HTTP/1.0";
        ok !$response->persistent, "--protocol simple, a request of $version: it does not stay";
        ok $simple->ends, "--protocol simple, a request of $version: one response, and the connection ends";
    }
    is $server->get('/none')->{version}, 'HTTP/1.0', '--protocol simple: an error is HTTP/1.0 too';
    $server->stop;
});

done_testing;

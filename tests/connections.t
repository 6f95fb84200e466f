#!/usr/bin/perl
# Persistent connections: HTTP/1.0 and 1.1, the Connection field in many spellings, half-closed clients, --protocol simple.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# version, Connection field or undef, whether the connection stays open
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
        is !!$response->persistent, !!$open, "$name: the response says that the connection " . ($open ? 'stays open' : 'closes');
        if ($open) {
            like $response->field('Connection'), qr/^keep-alive$/i, "$name: the response has Connection: keep-alive" if $version eq 'HTTP/1.0';
            is $connection->ask(request(GET => '/big.txt', Connection => 'close'))->{status}, 200, "$name: the connection stays open for the next request";
        } else {
            like $response->field('Connection'), qr/^close$/i, "$name: the response has Connection: close";
        }
        ok $connection->ends, "$name: the connection ends after the last response";
    }

    my ($two) = $server->exchange(request(GET => '/small.txt', Connection => 'foo', Connection => 'close'));
    is $two->{status}, 200, 'two Connection fields count as one list';
    my $no_host = $server->exchange(request(GET => '/small.txt', version => 'HTTP/1.0', Host => undef));
    is $no_host->{status}, 200, 'HTTP/1.0 needs no Host';

    my @responses = $server->exchange(request(GET => '/none') . request(GET => '/') . request(POST => '/small.txt')
            . request(BREW => '/small.txt') . request(OPTIONS => '*') . request(GET => '/small.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [404, 200, 405, 501, 204, 200],
        'an error response to a well-formed request does not end the connection';

    my $half = $server->connect;
    $half->send(request(GET => '/small.txt') . request(GET => '/big.txt'));
    $half->finish;
    my @half = map { $half->response } 1 .. 2;
    is_deeply [map { $_->{status} } @half], [200, 200], 'a client that has closed its side gets all responses';
    ok $half->ends, 'a client that has closed its side: the connection ends after the responses';

    $half = $server->connect;
    $half->send('GET /small.txt HTTP/1.1' . "\r\nHost: x\r\n");
    $half->finish;
    $half->drain;
    ok !$half->{failure}, 'a client that closes its side in the middle of a head: the connection ends without a reset';

    my $silent = $server->connect;
    $silent->finish;
    ok $silent->ends, 'a client that closes its side without a byte gets no byte';

    my $empty_lines = $server->exchange("\r\n\r\n" . request(GET => '/small.txt', Connection => 'close'));
    is $empty_lines->{status}, 200, 'empty lines before a request are ignored';

    {
        my $gone = $server->connect;
        $gone->send(request(GET => '/big.txt') x 20);
        $gone->{socket}->setsockopt(Socket::SOL_SOCKET(), Socket::SO_LINGER(), pack 'ii', 1, 0);
    }
    is $server->get('/small.txt')->{status}, 200, 'after a client has reset its connection, the server serves others';

    my $connection = $server->connect;
    my @many = map { $connection->ask(request(GET => '/small.txt'))->{status} } 1 .. 300;
    is scalar(grep { $_ == 200 } @many), 300, 'one connection serves 300 requests one after the other';
    $connection->close;
    $server->stop;

    $server = start_server(options => [qw(--protocol simple)]);
    for my $version ('HTTP/1.0', 'HTTP/1.1') {
        my $simple = $server->connect;
        my $response = $simple->ask(request(GET => '/small.txt', version => $version, Connection => 'keep-alive')
                . request(GET => '/big.txt', version => $version));
        is $response->{status}, 200, "--protocol simple, a request of $version: 200";
        is $response->{version}, 'HTTP/1.0', "--protocol simple, a request of $version: the response is HTTP/1.0";
        ok !$response->persistent, "--protocol simple, a request of $version: the response says that the connection closes";
        ok $simple->ends, "--protocol simple, a request of $version: the connection ends after one response";
    }
    is $server->get('/none')->{version}, 'HTTP/1.0', '--protocol simple: an error response is HTTP/1.0 too';
    $server->stop;
});

done_testing;

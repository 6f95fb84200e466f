#!/usr/bin/perl
# Request bodies: the server reads and discards them, up to a limit, and then reads the next request.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $limit = 1024 * 1024;

sub chunked (@sizes) {
    return join('', map { sprintf "%x\r\n%s\r\n", $_, 'b' x $_ } @sizes) . "0\r\n\r\n";
}

each_server(sub ($model) {
    my $server = start_server();
    my $next = request(GET => '/small.txt', Connection => 'close');

    my @taken = (
        ['Content-Length: 0',            'Content-Length' => 0,     body => ''],
        ['Content-Length: 5',            'Content-Length' => 5,     body => 'hello'],
        ['Content-Length: 00005',        'Content-Length' => '00005', body => 'hello'],
        ['a body that looks like a request', 'Content-Length' => length request(GET => '/none'),
            body => request(GET => '/none')],
        ['a body of line ends',          'Content-Length' => 6,     body => "\r\n\r\n\r\n"],
        ['64 KiB',                       'Content-Length' => 65536, body => 'x' x 65536],
        ['exactly the limit',            'Content-Length' => $limit, body => 'x' x $limit],
        ['one chunk',                    'Transfer-Encoding' => 'chunked', body => chunked(5)],
        ['no chunk',                     'Transfer-Encoding' => 'chunked', body => chunked()],
        ['200 chunks',                   'Transfer-Encoding' => 'chunked', body => chunked(1 .. 200)],
        ['chunks up to the limit',       'Transfer-Encoding' => 'chunked', body => chunked((65536) x 16)],
        ['Transfer-Encoding: CHUNKED',   'Transfer-Encoding' => 'CHUNKED', body => chunked(3)],
        ['upper-case sizes',             'Transfer-Encoding' => 'chunked', body => "A\r\n0123456789\r\n0\r\n\r\n"],
        ['sizes with leading zeros',     'Transfer-Encoding' => 'chunked', body => "000a\r\n0123456789\r\n000\r\n\r\n"],
        ['a chunk extension',            'Transfer-Encoding' => 'chunked', body => "3;name=value\r\nabc\r\n0\r\n\r\n"],
        ['a quoted chunk extension',     'Transfer-Encoding' => 'chunked', body => "3;n=\"a;\\\"b\"\r\nabc\r\n0;last\r\n\r\n"],
        ['trailers',                     'Transfer-Encoding' => 'chunked',
            body => "3\r\nabc\r\n0\r\nX-Sum: 1\r\nX-More: two words\r\n\r\n"],
        ['a chunk that looks like the end', 'Transfer-Encoding' => 'chunked', body => "7\r\n\r\n0\r\n\r\n\r\n0\r\n\r\n"],
    );
    for my $row (@taken) {
        my ($name, @fields) = @$row;
        for my $method (qw(POST GET)) {
            my @responses = $server->exchange(request($method => '/big.txt', @fields) . $next);
            is_deeply [map { $_->{status} } @responses], [$method eq 'GET' ? 200 : 405, 200],
                "$method with $name: the request and the next one get responses";
        }
    }

    my @refused = (
        ['Content-Length over the limit', 'Content-Length' => $limit + 1, body => 'x' x ($limit + 1)],
        ['Content-Length of 2^63',        'Content-Length' => '9223372036854775808'],
        ['Content-Length of 2^64 - 1',    'Content-Length' => '18446744073709551615'],
        ['chunks over the limit',         'Transfer-Encoding' => 'chunked', body => chunked((65536) x 16, 1)],
        ['a chunk over the limit',        'Transfer-Encoding' => 'chunked', body => "100001\r\nabc"],
        ['chunks of one byte that are mostly extension', 'Transfer-Encoding' => 'chunked',
            body => ("1;" . 'x' x 8000 . "\r\na\r\n") x 200 . "0\r\n\r\n"],
        ['endless trailers',              'Transfer-Encoding' => 'chunked', body => "0\r\n" . "X: y\r\n" x 200_000],
    );
    for my $row (@refused) {
        my ($name, @fields) = @$row;
        my @responses = $server->exchange(request(POST => '/small.txt', @fields) . $next);
        is_deeply [map { $_->{status} } @responses], [$name =~ /trailers|extension/ ? $responses[0]{status} : 413],
            "$name: the request is refused, and the next one is not read";
        like $responses[0]{status}, qr/^(?:413|431|400)$/, "$name: the status is 413, 431 or 400";
        ok !$responses[0]->persistent, "$name: the response closes the connection";
    }

    for my $version ('HTTP/1.1', 'HTTP/1.0') {
        my $connection = $server->connect;
        $connection->send(request(POST => '/small.txt', version => $version, Expect => '100-continue', 'Content-Length' => 5,
                Connection => 'keep-alive'));
        if ($version eq 'HTTP/1.1') {
            my $interim = $connection->response;
            if ($interim->{status} == 100) {
                pass('Expect: 100-continue: 100 comes before the body');
                $connection->send('hello');
                is $connection->response->{status}, 405, 'Expect: 100-continue: the final response follows the body';
            } else {    # RFC 9110 also allows a final response at once.
                is $interim->{status}, 405, 'Expect: 100-continue: a final response comes instead of 100';
                ok !$interim->persistent, 'Expect: 100-continue: a final response without the body closes the connection';
            }
        } else {
            $connection->send('hello');
            is $connection->response->{status}, 405, 'Expect in HTTP/1.0 is ignored: no 100 comes';
        }
    }
    my $asked = $server->connect;
    $asked->send(request(GET => '/small.txt', Expect => '100-Continue', 'Content-Length' => 5));
    is $asked->response->{status}, 100, 'a GET with Expect: 100-Continue gets 100';
    $asked->send('hello');
    is $asked->response->{status}, 200, 'a GET with Expect: 100-Continue gets 200 after its body';
    $asked->send(request(GET => '/big.txt', Expect => '100-continue', Connection => 'close'));
    is $asked->response->{status}, 200, 'Expect without a body: 200 comes at once';
    ok $asked->ends, 'Expect without a body: the connection closes as the request asked';

    $asked = $server->connect;
    $asked->send(request(GET => '/small.txt', Expect => '100-continue', 'Transfer-Encoding' => 'chunked'));
    is $asked->response->{status}, 100, 'Expect with a chunked body: 100 comes before the body';
    $asked->send(chunked(5, 6));
    is $asked->response->{status}, 200, 'Expect with a chunked body: 200 follows the body';
    $asked->close;

    my @at_once = $server->exchange(request(GET => '/small.txt', Expect => '100-continue', 'Content-Length' => 5,
            body => 'hello') . $next);
    is_deeply [grep { $_ != 100 } map { $_->{status} } @at_once], [200, 200],
        'a client that sends the body without waiting for 100 gets both final responses';

    my $over = $server->exchange(request(GET => '/small.txt', Expect => '100-continue', 'Content-Length' => $limit + 1));
    is $over->{status}, 413, 'Expect with a body over the limit gets 413 instead of 100';

    for my $expectation ('200-ok', '100-continue, other', 'nonsense', '100-continue=x') {
        my $response = $server->exchange(request(GET => '/small.txt', Expect => $expectation, Connection => 'close'));
        is $response->{status}, 417, "Expect: $expectation is refused with 417";
    }

    my $cut = $server->connect;
    $cut->send(request(POST => '/small.txt', 'Content-Length' => 100, body => 'x' x 50));
    $cut->finish;
    $cut->drain;
    ok !$cut->{failure}, 'a client that closes in the middle of a body: the connection ends without a reset';
    is $server->get('/small.txt')->{status}, 200, 'a client that closes in the middle of a body: the server serves the next client';
    $server->stop;
});

done_testing;

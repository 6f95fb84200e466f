#!/usr/bin/perl
# Request bodies are read and discarded, up to a limit, and the connection continues right behind them.
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
                "$method with $name: answered, and the next request too";
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
            "$name: 413, and nothing behind it is read";
        like $responses[0]{status}, qr/^(?:413|431|400)$/, "$name: the right kind";
        ok !$responses[0]->persistent, "$name: the connection ends";
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
                is $connection->response->{status}, 405, 'Expect: 100-continue: then the response';
            } else {    # a final status instead of 100 is right too, if the connection then stays usable or closes
                is $interim->{status}, 405, 'Expect: 100-continue: a final response instead of the interim one';
                ok !$interim->persistent, 'Expect: 100-continue: the body is not awaited, so the connection ends';
            }
        } else {
            $connection->send('hello');
            is $connection->response->{status}, 405, 'Expect in HTTP/1.0 is ignored: no interim response';
        }
    }
    my $asked = $server->connect;
    $asked->send(request(GET => '/small.txt', Expect => '100-Continue', 'Content-Length' => 5));
    is $asked->response->{status}, 100, 'Expect: 100-Continue of a GET: 100';
    $asked->send('hello');
    is $asked->response->{status}, 200, 'Expect: 100-Continue of a GET: then 200';
    $asked->send(request(GET => '/big.txt', Expect => '100-continue', Connection => 'close'));
    is $asked->response->{status}, 200, 'Expect without a body: no interim response is needed';
    ok $asked->ends, 'Expect without a body: the connection goes on as asked';

    $asked = $server->connect;
    $asked->send(request(GET => '/small.txt', Expect => '100-continue', 'Transfer-Encoding' => 'chunked'));
    is $asked->response->{status}, 100, 'Expect before chunks: 100';
    $asked->send(chunked(5, 6));
    is $asked->response->{status}, 200, 'Expect before chunks: then 200';
    $asked->close;

    my @at_once = $server->exchange(request(GET => '/small.txt', Expect => '100-continue', 'Content-Length' => 5,
            body => 'hello') . $next);
    is_deeply [grep { $_ != 100 } map { $_->{status} } @at_once], [200, 200],
        'a body that does not wait for the 100: the interim response may be left out';

    my $over = $server->exchange(request(GET => '/small.txt', Expect => '100-continue', 'Content-Length' => $limit + 1));
    is $over->{status}, 413, 'Expect with a body over the limit: 413 and no 100';

    for my $expectation ('200-ok', '100-continue, other', 'nonsense', '100-continue=x') {
        my $response = $server->exchange(request(GET => '/small.txt', Expect => $expectation, Connection => 'close'));
        is $response->{status}, 417, "Expect: $expectation: 417";
    }

    my $cut = $server->connect;
    $cut->send(request(POST => '/small.txt', 'Content-Length' => 100, body => 'x' x 50));
    $cut->finish;
    $cut->drain;
    ok !$cut->{failure}, 'a body that ends early: the connection ends cleanly';
    is $server->get('/small.txt')->{status}, 200, 'and the server goes on';
    $server->stop;
});

done_testing;

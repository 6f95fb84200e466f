#!/usr/bin/perl
# Strict framing: a request that two parsers could read differently is refused with the right status, and the client
# receives that response before the connection closes.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $host = "Host: localhost\r\n";
my $get  = "GET /small.txt HTTP/1.1\r\n";
my $post = "POST /small.txt HTTP/1.1\r\n$host";
my $coded = "${post}Transfer-Encoding: chunked\r\n\r\n";

# name, bytes, status
my @refused = (
    # Line ends
    ['a bare LF after the request line',  "GET /small.txt HTTP/1.1\n${host}\r\n",                400],
    ['a bare LF after a field',           "${get}Host: localhost\n\r\n",                         400],
    ['a bare LF as the empty line',       "${get}${host}\n",                                     400],
    ['bare LFs alone',                    "GET /small.txt HTTP/1.1\nHost: localhost\n\n",        400],
    ['a bare CR in the request line',     "GET /small.txt\rHTTP/1.1\r\n${host}\r\n",             400],
    ['a bare CR in a field value',        "${get}${host}X: a\rb\r\n\r\n",                        400],
    ['a bare CR as a line end',           "${get}Host: localhost\rX: y\r\n\r\n",                 400],
    ['CR CR LF',                          "${get}Host: localhost\r\r\n\r\n",                     400],
    ['a CR before the empty line',        "${get}${host}\r\r\n",                                 400],
    ['a bare LF before the request',      "\n${get}${host}\r\n",                                 400],
    ['a bare CR before the request',      "\rG${get}${host}\r\n",                                400],
    ['empty lines without end',           "\r\n" x 5000 . "${get}${host}\r\n",                   400],

    # Fields
    ['a space before the colon',          "${get}Host : localhost\r\n\r\n",                      400],
    ['a tab before the colon',            "${get}${host}X\t: y\r\n\r\n",                         400],
    ['a space before Content-Length\'s colon', "${post}Content-Length : 5\r\n\r\nhello",         400],
    ['a folded line',                     "${get}${host}X: a\r\n b\r\n\r\n",                     400],
    ['a line folded by a tab',            "${get}${host}X: a\r\n\tb\r\n\r\n",                    400],
    ['a space before the first field',    "${get} ${host}\r\n",                                  400],
    ['a field without a colon',           "${get}${host}X-Field\r\n\r\n",                        400],
    ['a field without a name',            "${get}${host}: value\r\n\r\n",                        400],
    ['a space in a field name',           "${get}${host}X Y: z\r\n\r\n",                         400],
    (map { [sprintf('byte %02x in a field name', $_), "${get}${host}X" . chr($_) . "Y: z\r\n\r\n", 400] }
        0, 1, 8, 11, 12, 27, 31, 34, 40, 44, 47, 59, 60, 61, 64, 91, 92, 123, 127, 128, 160, 255),
    (map { [sprintf('byte %02x in a field value', $_), "${get}${host}X: a" . chr($_) . "b\r\n\r\n", 400] }
        0, 1, 7, 8, 11, 12, 27, 31, 127),

    # Length
    ['Content-Length and Transfer-Encoding', "${post}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
    ['Transfer-Encoding and Content-Length', "${post}Transfer-Encoding: chunked\r\nContent-Length: 5\r\n\r\n0\r\n\r\n", 400],
    ['differing Content-Lengths',         "${post}Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello", 400],
    ['the same Content-Length twice',     "${post}Content-Length: 5\r\nContent-Length: 5\r\n\r\nhello", 400],
    (map { ["Content-Length '$_'", "${post}Content-Length: $_\r\n\r\nhello", 400] }
        '', '+5', '-5', '5 5', '5,5', '5, 6', '0x5', '5x', '5.0', '1e1', "'5'", '"5"', '18446744073709551616',
        '99999999999999999999999999999999999999', '5;'),

    # Transfer-Encoding
    ['an unknown coding',                 "${post}Transfer-Encoding: rot13\r\n\r\n",             501],
    ['a known coding before chunked',     "${post}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n", 501],
    ['an unknown coding before chunked',  "${post}Transfer-Encoding: x\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 501],
    ['chunked is not the last coding',    "${post}Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", [400, 501]],
    ['chunked twice',                     "${post}Transfer-Encoding: chunked, chunked\r\n\r\n0\r\n\r\n", 400],
    ['chunked in two fields',             "${post}Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],
    ['chunked with a parameter',          "${post}Transfer-Encoding: chunked;x=y\r\n\r\n0\r\n\r\n", [400, 501]],
    ['a quoted chunked',                  "${post}Transfer-Encoding: \"chunked\"\r\n\r\n0\r\n\r\n", [400, 501]],
    ['an empty Transfer-Encoding',        "${post}Transfer-Encoding:\r\n\r\n",                   [400, 501]],
    ['xchunked',                          "${post}Transfer-Encoding: xchunked\r\n\r\n0\r\n\r\n", 501],
    ['identity',                          "${post}Transfer-Encoding: identity\r\n\r\n",          [400, 501]],
    ['a vertical tab around chunked',     "${post}Transfer-Encoding: \x0bchunked\r\n\r\n0\r\n\r\n", 400],
    ['Transfer-Encoding in HTTP/1.0',     "POST /small.txt HTTP/1.0\r\n${host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400],

    # Chunks
    (map { ["chunk size '" . s/\r/\\r/gr =~ s/\n/\\n/gr . "'", "$coded$_\r\nhello\r\n0\r\n\r\n", 400] }
        '', '+5', '-1', '-5', '0x5', ' 5', '5 5', 'g', '5h', "5\r", "\x005", "5\t5", ';x=y', ' '),
    ['a chunk size over 64 bits',         "${coded}10000000000000005\r\nhello\r\n0\r\n\r\n",     [400, 413]],
    ['a chunk size of 16 F',              "${coded}FFFFFFFFFFFFFFFF\r\nhello\r\n0\r\n\r\n",      [400, 413]],
    ['a bare LF after a chunk size',      "${coded}5\nhello\r\n0\r\n\r\n",                       400],
    ['a bare LF in a chunk extension',    "${coded}5;x\ny\r\nhello\r\n0\r\n\r\n",                400],
    ['a control byte in a chunk extension', "${coded}5;x\x01\r\nhello\r\n0\r\n\r\n",             400],
    ['a bare LF after a chunk',           "${coded}5\r\nhello\n0\r\n\r\n",                       400],
    ['no line end after a chunk',         "${coded}5\r\nhello0\r\n\r\n",                         400],
    ['a chunk that is longer than its size', "${coded}4\r\nhello\r\n0\r\n\r\n",                  400],
    ['a bare LF at the end of chunks',    "${coded}0\r\n\nXXXX\r\n\r\n",                         400],
    ['a bare LF after a trailer',         "${coded}0\r\nX: y\n\r\n",                             400],
    ['a NUL in a trailer',                "${coded}0\r\nX: \x00y\r\n\r\n",                       400],
    ['a bare CR in a trailer',            "${coded}0\r\nX: a\rb\r\n\r\n",                        400],

    # Host
    ['no Host',                           "${get}\r\n",                                          400],
    ['two different Hosts',               "${get}${host}Host: elsewhere\r\n\r\n",                400],
    ['the same Host twice',               "${get}${host}${host}\r\n",                            400],
    ['two Hosts in HTTP/1.0',             "GET /small.txt HTTP/1.0\r\n${host}${host}\r\n",       400],
    (map { ["Host '$_'", "${get}Host: $_\r\n\r\n", 400] }
        'a b', 'a/b', 'user@host', 'host:port', '<host>', '[::1', 'a?b', 'a#b', 'host:123456', "h\x80st"),

    # Request line
    ['no target',                         "GET HTTP/1.1\r\n${host}\r\n",                         400],
    ['no version',                        "GET /small.txt\r\n${host}\r\n",                       400],
    ['HTTP/0.9',                          "GET /small.txt\r\n",                                  400],
    ['two spaces after the method',       "GET  /small.txt HTTP/1.1\r\n${host}\r\n",             400],
    ['two spaces after the target',       "GET /small.txt  HTTP/1.1\r\n${host}\r\n",             400],
    ['a space in the target',             "GET /small .txt HTTP/1.1\r\n${host}\r\n",             400],
    ['a space after the version',         "GET /small.txt HTTP/1.1 \r\n${host}\r\n",             400],
    ['a space before the method',         " GET /small.txt HTTP/1.1\r\n${host}\r\n",             400],
    ['tabs instead of spaces',            "GET\t/small.txt\tHTTP/1.1\r\n${host}\r\n",            400],
    ['an empty method',                   " /small.txt HTTP/1.1\r\n${host}\r\n",                 400],
    (map { [sprintf('byte %02x in the method', $_), 'GE' . chr($_) . "T /small.txt HTTP/1.1\r\n${host}\r\n", 400] }
        0, 1, 9, 34, 40, 44, 47, 58, 60, 64, 91, 123, 127, 128, 255),
    (map { [sprintf('byte %02x in the target', $_), 'GET /small' . chr($_) . ".txt HTTP/1.1\r\n${host}\r\n", 400] }
        0, 1, 8, 9, 11, 12, 31, 34, 35, 60, 62, 92, 94, 96, 123, 124, 125, 127, 128, 195, 255),
    (map { [sprintf('byte %02x in a query', $_), 'GET /small.txt?' . chr($_) . " HTTP/1.1\r\n${host}\r\n", 400] }
        0, 9, 31, 34, 35, 60, 62, 127, 128, 255),
    (map { ["version '$_'", "GET /small.txt $_\r\n${host}\r\n", 400] }
        'http/1.1', 'HTTP/1', 'HTTP/1.', 'HTTP/.1', 'HTTP/1.10', 'HTTP/01.1', 'HTTP/1.01', 'HTTP 1.1', 'HTTP/1,1',
        'HTTPS/1.1', 'HTTP/x.1', 'HTTP/1.x', 'HTTP/-1.1', 'HTTP/+1.1', 'HTTP/1.1.1', 'ICAP/1.0', 'HTTP//1.1', "HTTP/1.1\x00"),
    (map { ["version $_", "GET /small.txt $_\r\n${host}\r\n", 505] } 'HTTP/2.0', 'HTTP/3.0', 'HTTP/0.9', 'HTTP/9.9'),
    ['the preface of HTTP/2',             "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",                    505],
    ['a TLS ClientHello',                    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" . "\x00" x 500, 400],
    ['random bytes',                            join('', map { chr($_ * 73 % 256) } 1 .. 600),         400],

    # Targets
    (map { ["target $_", "GET $_ HTTP/1.1\r\n${host}\r\n", 400] }
        'small.txt', 'localhost', 'http:', 'http:/', 'http://', 'http:///small.txt', 'http://user@localhost/small.txt',
        'http://user:word@localhost/small.txt', 'ftp://localhost/small.txt', 'file:///etc/passwd', '://x', '?', '?x',
        'http://a b/', 'http://localhost:port/', '/small.txt#part', 'localhost:80', 'javascript:x'),
    ['CONNECT of a path',                 "CONNECT /small.txt HTTP/1.1\r\n${host}\r\n",          [400, 405]],
    ['OPTIONS of nothing',                "OPTIONS HTTP/1.1\r\n${host}\r\n",                     400],
);

# name, bytes of a valid request, status
my @accepted = (
    ['no space after the colon',       "${get}Host:localhost\r\n",                      200],
    ['spaces and tabs around a value',          "${get}Host: \t localhost \t \r\n",              200],
    ['an empty value',                 "${get}${host}X:\r\n",                           200],
    ['bytes over 127 in a value',      "${get}${host}X: \x80\xff\xc3\xbc\r\n",          200],
    ['an unusual but valid field name',    "${get}${host}!#\$%&'*+-.^_`|~9: y\r\n",         200],
    ['a port in Host',                 "${get}Host: localhost:8080\r\n",                200],
    ['an IPv6 address in Host',        "${get}Host: [::1]:80\r\n",                      200],
    ['a colon without a port in Host', "${get}Host: localhost:\r\n",                200],
    ['a comma in Host',                "${get}Host: a,b\r\n",                         200],
    ['an empty Host',                  "${get}Host:\r\n",                               200],
    ['a field name in mixed case',     "${get}hOsT: localhost\r\n",                     200],
    ['a target with a query',          "GET /small.txt?a=b&c=%20/?:@ HTTP/1.1\r\n$host", 200],
    ['characters that browsers do not escape in a query', "GET /small.txt?a|b^c`d{e}f\\g HTTP/1.1\r\n$host", 200],
    ['an absolute target',             "GET http://localhost/small.txt HTTP/1.1\r\n$host", 200],
    ['an absolute target with port',   "GET http://localhost:80/small.txt?x HTTP/1.1\r\n$host", 200],
    ['an absolute target in capitals', "GET HTTP://LOCALHOST/small.txt HTTP/1.1\r\n$host", 200],
    ['an absolute target, other Host', "GET http://localhost/small.txt HTTP/1.1\r\nHost: elsewhere\r\n", 200],
    ['an absolute target, no path',    "GET http://localhost HTTP/1.1\r\n$host",        200],
    ['an absolute target, query only', "GET http://localhost?x HTTP/1.1\r\n$host",      200],
    ['an escaped letter',              "GET /sm%61ll.txt HTTP/1.1\r\n$host",            200],
    ['a target of valid punctuation',        "GET /-._~!\$&'()*+,;=:\@ HTTP/1.1\r\n$host",    404],
);

each_server(sub ($model) {
    my $server = start_server();
    my $next = request(GET => '/big.txt');

    for my $row (@refused) {
        my ($name, $bytes, $statuses) = @$row;
        my @statuses = ref $statuses ? @$statuses : $statuses;
        my $connection = $server->connect;
        my @responses = parse_responses($connection->converse($bytes . $next));
        my @flaws = map { @{ $_->{flaws} } } @responses;
        my $got = join ' ', map { $_->{status} } @responses;
        push @flaws, "got $got" if !grep { $got eq $_ } @statuses;
        push @flaws, 'the response does not say that the connection closes' if @responses && $got ne '405' && $responses[0]->persistent;
        push @flaws, "the connection ends by $connection->{failure}" if $connection->{failure};
        ok !@flaws, "$name is refused with " . join(' or ', @statuses) . ', and the connection closes' or diag(join "\n", @flaws);
    }

    for my $row (@accepted) {
        my ($name, $bytes, $status) = @$row;
        my @responses = $server->exchange("$bytes\r\n" . request(GET => '/big.txt', Connection => 'close'));
        is_deeply [map { $_->{status} } @responses], [$status, 200], "$name gets $status, and the server reads the next request";
    }

    # The response must arrive although the client first sends all its bytes and reads only then.
    for my $size (100_000, 1_000_000, 4_000_000) {
        my $connection = $server->connect;
        my $whole = $connection->send("GET /small.txt HTTP/1.1\r\nHost : x\r\n\r\n" . 'x' x $size);
        my $response = $connection->response;
        ok $whole, "$size bytes after a refused request: the server accepts all of them";
        is $response->{status}, 400, "$size bytes after a refused request: the client receives 400";
        like $response->{body}, qr{</html>\s*\z}i, "$size bytes after a refused request: the client receives the whole error page";
        $connection->close;
    }
    my $connection = $server->connect;
    $connection->send("POST /small.txt HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
    my $sent = $connection->send('x' x 5_000_000);
    ok $sent, 'a body over the limit: the server accepts all its bytes';
    is $connection->response->{status}, 413, 'a body over the limit: the client receives 413';
    $connection->close;
    is $server->get('/small.txt')->{status}, 200, 'after all refused requests, the server serves a good one';
    $server->stop;
});

done_testing;

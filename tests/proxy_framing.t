#!/usr/bin/perl
# Framing by the proxy, between hostile clients and hostile origins: where each message ends, so that no message can be read as
# two (request smuggling).
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_RCVBUF TCP_INFO);

use constant TCP_CLOSE => 7;    # a TCP state, the first byte of TCP_INFO

my $origin = Origin->new;
my $here   = '127.0.0.1:' . $origin->port;

sub start_proxy (@options) { return start_server(options => ['--service', 'proxy', '--no-cache', @options]) }

# A request that is hidden in a body. If the proxy read it as a request, the origin would get it.
my $hidden = request(GET => $origin->url('/hidden'));

# Sends a request with the hidden request in or after its body. There must be one response, which closes the connection.
sub refuses_hidden ($proxy, $status, $what, $bytes) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @responses = $proxy->exchange($bytes);
    is join(',', map { $_->{status} } @responses), $status, "$what: the only response is a $status";
    ok !($responses[-1] // $Harness::nothing)->persistent, "$what: the response says that the connection ends";
}

# Sends the hidden request as the body of another one, with a length and in chunks.
sub refuses_hidden_body ($proxy, $status, $what, $method, $target, @fields) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    refuses_hidden($proxy, $status, "$what, with a length",
        request($method => $target, @fields, 'Content-Length' => length $hidden, body => $hidden));
    refuses_hidden($proxy, $status, "$what, in chunks",
        request($method => $target, @fields, 'Transfer-Encoding' => 'chunked', body => chunked($hidden)));
}

each_server(sub ($model) {
    my $proxy  = start_proxy('--classroom', '--max-body', 10_000);
    my $closed = Origin->new;
    my $nobody = '127.0.0.1:' . $closed->port;
    $closed->stop;
    $origin->play('/hidden', response(200, 'hidden'));

    # --- responses of the proxy itself, which does not read the body ---
    refuses_hidden_body($proxy, 204, 'OPTIONS with Max-Forwards: 0', OPTIONS => $origin->url('/x'), 'Max-Forwards' => 0);
    refuses_hidden_body($proxy, 204, 'OPTIONS * with Max-Forwards: 0', OPTIONS => '*', 'Max-Forwards' => 0);
    refuses_hidden_body($proxy, 405, 'TRACE', TRACE => $origin->url('/x'));
    refuses_hidden_body($proxy, 403, 'an address that is not allowed', POST => 'http://192.0.2.1/');
    refuses_hidden_body($proxy, 502, 'an unknown host name', POST => 'http://no.such.name.example/');
    refuses_hidden_body($proxy, 404, 'an origin that does not listen', POST => "http://$nobody/");
    refuses_hidden_body($proxy, 508, 'the proxy itself', POST => 'http://127.0.0.1:' . $proxy->port . '/');
    refuses_hidden_body($proxy, 414, '/10000 with --classroom', POST => $origin->url('/10000'));
    refuses_hidden_body($proxy, 400, 'a target without a host', POST => '/x');
    refuses_hidden_body($proxy, 400, 'a target with https', POST => "https://$here/");
    refuses_hidden($proxy, 413, 'a body over the limit', request(POST => $origin->url('/x'), 'Content-Length' => 10_001, body => $hidden));
    refuses_hidden($proxy, 417, 'an unknown expectation', request(POST => $origin->url('/x'), Expect => 'x', 'Content-Length' => length $hidden, body => $hidden));
    # Bytes after CONNECT are meant for the tunnel.
    refuses_hidden($proxy, $_->[0], "CONNECT $_->[1]", request(CONNECT => $_->[1], Host => $_->[1]) . $hidden)
        for [403, '192.0.2.1:80'], [404, $nobody], [508, '127.0.0.1:' . $proxy->port], [400, '127.0.0.1'], [502, 'no.such.name.example:80'];
    refuses_hidden($proxy, 400, 'CONNECT with a body', request(CONNECT => $here, Host => $here, 'Content-Length' => length $hidden, body => $hidden));
    is $origin->count('/hidden'), 0, 'refused requests: the origin does not get the hidden request';

    # --- requests that two parsers could read differently ---
    my %ambiguous = (
        'two lengths'                 => [400, 'Content-Length' => 0, 'Content-Length' => length $hidden],
        'the same length twice'       => [400, 'Content-Length' => 3, 'Content-Length' => 3],
        'a list of lengths'           => [400, 'Content-Length' => '3, 3'],
        'a length with a sign'        => [400, 'Content-Length' => '+3'],
        'a length and chunks'         => [400, 'Content-Length' => 3, 'Transfer-Encoding' => 'chunked'],
        'chunks and a length'         => [400, 'Transfer-Encoding' => 'chunked', 'Content-Length' => 3],
        'chunked in chunked'            => [400, 'Transfer-Encoding' => 'chunked, chunked'],
        'chunks twice'                => [400, 'Transfer-Encoding' => 'chunked', 'Transfer-Encoding' => 'chunked'],
        'chunks that are not last'    => [400, 'Transfer-Encoding' => 'chunked, gzip'],
        'an unknown coding'           => [501, 'Transfer-Encoding' => 'xchunked'],
        'a coding in quotes'          => [501, 'Transfer-Encoding' => '"chunked"'],
        'no coding'                   => [400, 'Transfer-Encoding' => ''],
        'chunks of HTTP/1.0'          => [400, version => 'HTTP/1.0', 'Transfer-Encoding' => 'chunked'],
        'a space before the colon'    => [400, 'Transfer-Encoding ' => 'chunked'],
        'a folded coding'             => [400, 'X' => "y\r\n Transfer-Encoding: chunked"],
        'a bare line feed'            => [400, 'X' => "y\nTransfer-Encoding: chunked"],
        'a bare carriage return'      => [400, 'X' => "y\rTransfer-Encoding: chunked"],
    );
    for my $name (sort keys %ambiguous) {
        my ($status, @fields) = @{ $ambiguous{$name} };
        refuses_hidden($proxy, $status, $name, request(POST => $origin->url('/x'), @fields, body => "0\r\n\r\n$hidden"));
    }
    is $origin->count('/x'), 0, 'ambiguous requests: the origin gets none of them';
    is $origin->count('/hidden'), 0, 'ambiguous requests: the origin does not get the hidden request';

    # The origin must not get an invalid chunked body as a complete one.
    my %chunks = (
        'no size'                  => [400, "\r\n$hidden"],
        'a size over 64 bits'      => [413, "10000000000000003\r\nabc\r\n0\r\n\r\n$hidden"],
        'a negative size'          => [400, "-1\r\nabc\r\n0\r\n\r\n$hidden"],
        'a bare line feed'         => [400, "3\nabc\n0\n\n$hidden"],
        'a line feed in an extension' => [400, "3;a\nb\r\nabc\r\n0\r\n\r\n$hidden"],
        'more than its size'       => [400, "3\r\nabcd\r\n0\r\n\r\n$hidden"],
        'a folded trailer'         => [400, "0\r\n X: y\r\n\r\n$hidden"],
        'an endless extension'     => [431, '3;' . 'a' x 20_000 . "\r\nabc\r\n0\r\n\r\n$hidden"],
        'endless trailers'         => [431, "0\r\n" . "a: b\r\n" x 4000 . "\r\n$hidden"],
    );
    $origin->play('/chunks', response(200, 'x'));
    for my $name (sort keys %chunks) {
        my ($status, $body) = @{ $chunks{$name} };
        refuses_hidden($proxy, $status, "a chunked body with $name", request(POST => $origin->url('/chunks'), 'Transfer-Encoding' => 'chunked', body => $body));
    }
    ok !(grep { /\r\n\r\n(?:.*\r\n)?0\r\n\r\n\z/s } $origin->requests('/chunks')), 'invalid chunked bodies: the origin gets none of them complete';
    is $origin->count('/hidden'), 0, 'invalid chunked bodies: the origin does not get the hidden request';

    # --- what the origin gets ---
    $origin->play('/framed', response(200, 'x'));
    my $framed = sub (@fields) {
        $proxy->exchange(request(POST => $origin->url('/framed'), @fields, Connection => 'close'));
        return ($origin->requests('/framed'))[-1] // '';
    };
    like $framed->('Transfer-Encoding' => 'Chunked', body => "003;a=\"b;\\\"\"\r\nabc\r\n0;z\r\nA: b\r\n\r\n"),
        qr/\r\nTransfer-Encoding: chunked\r\n.*\r\n\r\n3\r\nabc\r\n0\r\n\r\n\z/s, 'the origin gets a chunked body without extensions and trailers';
    like $framed->('Content-Length' => '0003', body => 'abc'), qr/\r\nContent-Length: 3\r\n.*\r\n\r\nabc\z/s, 'the origin gets Content-Length without leading zeros';
    like $framed->('Content-Length' => 3, Connection => 'Content-Length, Transfer-Encoding, Host', body => 'abc'),
        qr/\r\nHost: \Q$here\E\r\nContent-Length: 3\r\n.*\r\n\r\nabc\z/s, 'Connection cannot remove Content-Length or Host';
    unlike $framed->(Connection => 'close'), qr/^(?:Content-Length|Transfer-Encoding):/mi, 'the origin gets no framing fields for a request without a body';
    my @odd = ('/a%2e%2E/%2f%00%zz?%23=%0d%0a%20', '//two/../x', '/;a=b,c:@&=+$!*\'()', '/[]?[]', '/..');
    $origin->play($_, response(200, 'x')) for @odd;
    is $proxy->get($origin->url($_))->{status}, 200, "the origin gets the target $_ unchanged" for @odd;
    $origin->play('/?q', response(200, 'root'));
    is $proxy->get("http://$here?q")->{body}, 'root', 'the origin gets / for an empty path';
    is scalar($proxy->exchange(request(GET => $_, Connection => 'close')))->{status}, 400, "the target $_ is refused with 400"
        for $origin->url('/x#f'), "http://user:word\@$here/x", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", 'http://[::1/', "http://[127.0.0.1]/", 'http://::1/',
            'http://[fe80::1%25lo]/', "http://$here\\x/", 'http:/x', 'http://';
    is scalar($proxy->exchange(request(CONNECT => $_, Host => 'x', Connection => 'close')))->{status}, 400, "CONNECT $_ is refused with 400"
        for '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1:', ':80', "http://$here/", "$here/", "u\@$here";
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => $_, Connection => 'close')))->{status}, 400, "Host: $_ is refused with 400"
        for 'a b', 'a/b', 'u@a', 'a:b', '[::1';
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => 'a', host => 'a', Connection => 'close')))->{status}, 400, 'two Host fields are refused with 400';
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => undef, Connection => 'close')))->{status}, 400, 'a request without Host is refused with 400';
    $origin->play('/many', response(200, 'x'));
    is $proxy->get($origin->url('/many'), map { ("X-$_" => 'y') } 1 .. 98)->{status}, 200, 'a request with 100 fields is forwarded';
    is $proxy->get($origin->url('/many'), map { ("X-$_" => 'y') } 1 .. 99)->{status}, 431, 'a request with 101 fields is refused with 431';
    is $proxy->get($origin->url('/many'), X => 'y' x 32_000)->{status}, 200, 'a request with a field of 32,000 bytes is forwarded';
    is $proxy->get($origin->url('/many'), Connection => join ',', ('x') x 99)->{status}, 200, 'a request with 100 connection options is forwarded';
    is $proxy->get($origin->url('/many'), Connection => join ',', ('x') x 100)->{status}, 431, 'a request with 101 connection options is refused with 431';
    is $proxy->get($origin->url('/many'), X => 'y' x 33_000)->{status}, 431, 'a request with a field of 33,000 bytes is refused with 431';
    is $proxy->get($origin->url('/' . 'y' x 8200))->{status}, 414, 'a target that is too long is refused with 414';

    # --- HTTP/1.0 clients ---
    $origin->play('/old', response(200, 'old'));
    my @responses = $proxy->exchange(request(GET => $origin->url('/old'), version => 'HTTP/1.0', Connection => 'keep-alive'));
    ok !$responses[0]->persistent, 'the connection of a client of HTTP/1.0 closes in spite of keep-alive (RFC 9112, section 9.3)';
    unlike +($origin->requests('/old'))[0], qr/keep-alive/i, 'keep-alive of a client of HTTP/1.0 is not forwarded';
    is $proxy->get($origin->url('/old'), 'Proxy-Connection' => 'close')->{body}, 'old', 'a request with Proxy-Connection: close is served';
    my $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/old'), 'Proxy-Connection' => 'close'));
    ok $client->ask(request(GET => $origin->url('/old')))->{body} eq 'old', 'Proxy-Connection: close does not close the connection';
    $client->close;
    $proxy->stop(%few);

    # --- responses of hostile origins ---
    $proxy = start_proxy();
    my $second = "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 6\r\n\r\nhidden";
    my %said = (
        'more than the length'         => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc$second"],
        'more than the chunks'         => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n$second"],
        'a length of nothing'          => [200, '',    "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 0\r\n\r\n$second"],
        'a 204 with a length'          => [204, '',    "HTTP/1.1 204 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc$second"],
        'a 204 with chunks'            => [204, '',    "HTTP/1.1 204 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n$second"],
        'a 304 with a body'            => [304, '',    "HTTP/1.1 304 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc$second"],
        'a 304 with chunks'            => [304, '',    "HTTP/1.1 304 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n$second"],
        'the same length three times'  => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nContent-Length: 3, 3\r\n\r\nabc$second"],
        'bare line feeds'              => [200, 'abc', "HTTP/1.1 200 OK\nServer: s\nContent-Length: 3\n\nabc$second"],
        'a space before the colon'     => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length : 3\r\n\r\nabc$second"],
        'no reason'                    => [200, 'abc', "HTTP/1.1 200\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc$second"],
        'Connection: Content-Length'   => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc$second"],
        'extensions and trailers'      => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"\\\"\"\r\nabc\r\n0;b\r\nContent-Length: 9\r\n\r\n$second"],
        'HTTP/1.0'                     => [200, "abc$second", "HTTP/1.0 200 OK\r\nServer: s\r\nConnection: keep-alive\r\n\r\nabc$second"],
        'a length over 64 bits'        => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 18446744073709551619\r\n\r\nabc"],
        'a length of 2^64 - 1'         => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 18446744073709551615\r\n\r\nabc"],
        'an empty list of lengths'     => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: ,\r\n\r\nabc"],
        'a length in quotes'           => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: \"3\"\r\n\r\nabc"],
        'a 204 with two lengths'       => [502, undef, "HTTP/1.1 204 OK\r\nServer: s\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"],
        'a length and chunks in a 103' => [502, undef, "HTTP/1.1 103 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n$second"],
        'an empty line first'          => [502, undef, "\r\nHTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
        '201 fields'                   => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\n" . "A: b\r\n" x 200 . "\r\nabc"],
        '200 connection options'       => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nConnection: " . join(', ', ('x') x 200) . "\r\n\r\nabc"],
        '201 names in Vary'            => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nVary: " . join(', ', ('x') x 201) . "\r\n\r\nabc"],
        '201 connection options'       => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nConnection: " . join(', ', ('x') x 201) . "\r\n\r\nabc"],
        '200 names in no-cache'        => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nCache-Control: no-cache=\"" . join(', ', ('x') x 200) . "\"\r\n\r\nabc"],
        '201 names in no-cache'        => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nCache-Control: no-cache=\"" . join(', ', ('x') x 201) . "\"\r\n\r\nabc"],
        'HTTP/2'                       => [502, undef, "HTTP/2.0 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
        'a status of four digits'      => [502, undef, "HTTP/1.1 2000 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
    );
    $origin->play('/next', response(200, 'next'));
    for my $name (sort keys %said) {
        my ($status, $body, @bytes) = @{ $said{$name} };
        $origin->play('/said', [@bytes]);
        @responses = $proxy->exchange(request(GET => $origin->url('/said'), 'If-None-Match' => '"x"') . request(GET => $origin->url('/next'), Connection => 'close'));
        is join(',', map { $_->{status} } @responses), "$status,200", "the origin sends $name: the client gets $status, and a 200 for its next request";
        is $responses[0]{body}, $body, "the origin sends $name: the client gets the right body" if defined $body;
        is $responses[-1]{body}, 'next', "the origin sends $name: the client gets the right body for its next request";
    }
    $origin->play('/head', [@{ response(200, 'abc') }, $second]);
    @responses = $proxy->exchange(request(HEAD => $origin->url('/head')) . request(GET => $origin->url('/next'), Connection => 'close'), 'HEAD', 'GET');
    is join(',', map { "$_->{status} $_->{body}" } @responses), '200 ,200 next', 'the origin sends a body to HEAD: the client gets the right responses';
    is $responses[0]->field('Content-Length'), 3, 'the origin sends a body to HEAD: Content-Length is forwarded';
    $origin->play('/head', ["HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n"]);
    @responses = $proxy->exchange(request(HEAD => $origin->url('/head')) . request(GET => $origin->url('/next'), Connection => 'close'), 'HEAD', 'GET');
    is join(',', map { "$_->{status} $_->{body}" } @responses), '200 ,200 next', 'the origin sends a chunked head to HEAD: the client gets the right responses';

    # --- interim responses ---
    $origin->play('/before', ["HTTP/1.1 100 Continue\r\nContent-Length: 9\r\nConnection: x\r\nX: y\r\n\r\n", "HTTP/1.1 103 Hints\r\nLink: </a>\r\nTransfer-Encoding: chunked\r\n\r\n", response(200, 'abc')->[0]]);
    @responses = $proxy->exchange(request(GET => $origin->url('/before')) . request(GET => $origin->url('/next'), Connection => 'close'));
    is join(',', map { "$_->{status} $_->{body}" } @responses), '100 ,103 ,200 abc,200 next', 'interim responses are forwarded in order';
    ok !(grep { $_->has('Content-Length') || $_->has('Transfer-Encoding') || $_->has('X') } @responses[0, 1]), 'interim responses have no framing fields and no fields of the connection';
    is $responses[1]->field('Link'), '</a>', 'interim responses have their fields';
    like $_->field('Via'), qr/^1\.1 fork-vs-thread-/, "an interim response $_->{status} has Via" for @responses[0, 1];

    # The proxy waits for a client that has not yet read the first response: all buffers are full when the second request begins.
    my ($big, $hint) = ('x' x 8_000_000, "HTTP/1.1 103 Hints\r\nLink: " . 'y' x 30_000 . "\r\n\r\n");
    $origin->play('/big', response(200, $big));
    $origin->play('/hints', [($hint) x 100, response(200, 'abc')->[0]]);
    $client = $proxy->connect(Sockopts => [[SOL_SOCKET, SO_RCVBUF, 65536]]);
    $client->send(request(GET => $origin->url('/big')) . request(GET => $origin->url('/hints')));
    until_true(sub { $client->fill(0.01); $client->{ended} || $origin->count('/hints') });
    is length $client->response->{body}, length $big, 'a client that reads late gets the first response whole';
    is scalar(grep { $client->response->{status} == 103 } 1 .. 100), 100, 'a client that reads late gets all 100 interim responses of the second one';
    is $client->response->{body}, 'abc', 'a client that reads late gets the second response';
    $client->close;

    # A client that waits for 100 gets it from the origin, or the final response instead.
    $origin->play('/early/100', ["HTTP/1.1 100 Continue\r\n\r\n", \'body', response(200, 'abc')->[0]]);
    $client = $proxy->connect;
    $client->send(request(POST => $origin->url('/early/100'), Expect => '100-continue', 'Content-Length' => 3));
    is $client->response->{status}, 100, 'Expect: 100-continue: 100 of the origin comes before the body';
    $client->send('abc');
    $origin->open_gate('body');
    is $client->response->{body}, 'abc', 'Expect: 100-continue: the final response comes after the body';
    $client->close;
    $origin->play('/early/417', response(417, 'no'));
    $client = $proxy->connect;
    my $response = $client->ask(request(POST => $origin->url('/early/417'), Expect => '100-continue', 'Content-Length' => length $hidden));
    is $response->{status}, 417, 'Expect: 100-continue: 417 of the origin is forwarded';
    ok !$response->persistent, 'Expect: 100-continue: the 417 says that the connection closes';
    $client->send($hidden);
    ok $client->ends, 'Expect: 100-continue: a body after the 417 is not read as a request';
    $client->close;
    is $origin->count('/hidden'), 0, 'Expect: 100-continue: the origin does not get a body after the 417';

    # --- Max-Forwards ---
    my $max = sub (@fields) {
        $origin->play('/max', response(200, 'x'));
        $proxy->exchange(request(OPTIONS => $origin->url('/max'), @fields, Connection => 'close'));
        return head_of(($origin->requests('/max'))[0])->{'max-forwards'};
    };
    is $max->('Max-Forwards' => 1), 0, 'Max-Forwards: 1 becomes 0';
    is $max->('Max-Forwards' => '18446744073709551616'), '18446744073709551614', 'a Max-Forwards over 64 bits becomes the largest number';
    is $max->('Max-Forwards' => 'x'), undef, 'a Max-Forwards that is no number is removed';
    my $options = $proxy->exchange(request(OPTIONS => $origin->url('/max'), 'Max-Forwards' => 0, Connection => 'close'));
    like $options->field('Allow'), qr/\bCONNECT\b/, 'Allow of a forward proxy has CONNECT';

    # --- error pages ---
    my @pages = ([403, 'http://192.0.2.1/'], [502, "http://$nobody/"], [508, $proxy->url], [400, '/x']);
    for (@pages) {
        my ($status, $target) = @$_;
        my $page = $proxy->get($target);
        is $page->{status}, $status, "$target gets $status";
        like $page->field('Content-Type'), qr{^text/html}, "$status has an HTML page";
        like $page->{body}, qr{<title>$status .*</html>}s, "$status: the page has the status as its title";
        is $proxy->head($target)->{body}, '', "$status: HEAD has no body";
    }
    $proxy->stop(%few);

    # --- a reverse proxy ---
    $proxy = start_proxy('--origin', "http://$here");
    refuses_hidden_body($proxy, 405, 'CONNECT', CONNECT => $here, Host => $here);
    refuses_hidden_body($proxy, 204, 'OPTIONS with Max-Forwards: 0', OPTIONS => '/x', 'Max-Forwards' => 0);
    is $origin->count('/hidden'), 0, '--origin: the origin does not get the hidden request';
    unlike $proxy->exchange(request(OPTIONS => '/x', 'Max-Forwards' => 0, Connection => 'close'))->field('Allow'), qr/CONNECT/, '--origin: Allow does not have CONNECT';
    $client = $proxy->connect;
    is $client->ask(request(GET => '/old', version => 'HTTP/1.0', Connection => 'keep-alive'))->{body}, 'old', '--origin: a client of HTTP/1.0 with keep-alive is served';
    is $client->ask(request(GET => '/old', version => 'HTTP/1.0', Connection => 'keep-alive'))->{body}, 'old', '--origin: the connection of a client of HTTP/1.0 with keep-alive stays open';
    $client->close;
    $origin->play('*', response(200, ''));
    $proxy->exchange(request(OPTIONS => "https://$here", Connection => 'close'));
    is head_of(($origin->requests('*'))[0] // "\r\n")->{line}, 'OPTIONS * HTTP/1.1', '--origin: OPTIONS of a target without a path is forwarded as OPTIONS *, whatever its scheme';
    $proxy->stop(%few);

    # --- after a stale response ---
    my $cache = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache"]);
    refuses_hidden_body($proxy, 504, 'a miss with only-if-cached', $_ => $origin->url('/x'), 'Cache-Control' => 'only-if-cached') for qw(GET POST);
    is $origin->count('/hidden'), 0, 'a miss with only-if-cached: the origin does not get the hidden request';
    my %stale = ('Cache-Control' => 'max-age=60, stale-while-revalidate=1000', Age => 100);
    $origin->play('/stale', response(200, 'old', %stale), ["HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n", response(200, 'new', %stale)->[0]]);
    $proxy->get($origin->url('/stale'));
    $client = $proxy->connect;
    is $client->ask(request(GET => $origin->url('/stale')))->{body}, 'old', 'stale-while-revalidate: the stale entry is served at once';
    $response = $client->ask(request(GET => $origin->url('/next')));
    is "$response->{status} $response->{body}", '200 next', 'stale-while-revalidate: the client does not get interim responses of the validation';
    $client->close;
    is $origin->count('/stale'), 2, 'stale-while-revalidate: the origin gets the validation';
    my $long = 'x' x 10_000_000;
    $origin->play('/stale/long', response(200, $long, %stale));
    is length $proxy->get($origin->url('/stale/long'))->{body}, length $long, 'stale-while-revalidate: a long response is stored';
    $origin->play('/stale/silent', response(200, $long, %stale), [\'never']);
    $proxy->get($origin->url('/stale/silent'));
    $proxy->stop(%few);
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache", '--write-timeout', 0.1]);
    $client = $proxy->connect;
    $client->send(request(GET => $origin->url('/stale/long')) . request(GET => $origin->url('/next')));
    until_true(sub { $origin->count('/stale/long') == 2 });
    my $got = $client->drain;
    ok $client->{ended}, 'a client that does not read a stale entry: the connection ends';
    cmp_ok length $got, '<', length $long, 'a client that does not read a stale entry does not get it whole';
    ok $got !~ /next\z/, 'a client that does not read a stale entry gets no other response after it';
    $client->close;
    $proxy->stop(%few);

    # The background validation has --origin-timeout, and no longer.
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache", qw(--write-timeout 0.1 --origin-timeout 0.2)]);
    $client = $proxy->connect;
    $client->send(request(GET => $origin->url('/stale/silent')));
    # (The client reads nothing, not even the end of the connection. The kernel knows the state.)
    ok scalar until_true(sub { unpack('C', getsockopt $client->{socket}, IPPROTO_TCP, TCP_INFO) == TCP_CLOSE }), 'a client that does not read a stale entry, and an origin that does not respond: the connection ends';
    is $origin->count('/stale/silent'), 2, 'a client that does not read a stale entry: the origin gets the validation';
    is scalar($proxy->exchange(request(OPTIONS => '*', 'Max-Forwards' => 0, Connection => 'close')))->{status}, 204, 'a client that does not read a stale entry: the proxy serves others afterwards';
    $client->close;
    $proxy->stop(%few);
});

done_testing;

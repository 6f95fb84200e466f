#!/usr/bin/perl
# The proxy between hostile clients and hostile origins: where each message ends, and that nobody can make two of one.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use Socket qw(IPPROTO_TCP SOL_SOCKET SO_RCVBUF TCP_INFO);

use constant TCP_CLOSE => 7;    # of the states that TCP_INFO begins with

my $origin = Origin->new;
my $here   = '127.0.0.1:' . $origin->port;
my %few    = (warnings => qr/limit of \d+ descriptors/);

sub start_proxy (@options) { return start_server(options => ['--service', 'proxy', '--no-cache', @options]) }
sub chunked (@parts) { return join('', map { sprintf "%x\r\n%s\r\n", length, $_ } @parts) . "0\r\n\r\n" }

# What must never be read as a request: the origin would know of it.
my $hidden = request(GET => $origin->url('/hidden'));

# Sends a request whose body, or what follows it, is a request: it has one answer, which ends the connection.
sub smuggles_not ($proxy, $status, $what, $bytes) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my @responses = $proxy->exchange($bytes);
    is join(',', map { $_->{status} } @responses), $status, "$what: $status alone, and what it brings along is no request";
    ok !($responses[-1] // $Harness::nothing)->persistent, "$what: the response says that the connection ends";
}

# Both framings of a request that has another one for its body.
sub smuggles_no_body ($proxy, $status, $what, $method, $target, @fields) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    smuggles_not($proxy, $status, "$what, with a length",
        request($method => $target, @fields, 'Content-Length' => length $hidden, body => $hidden));
    smuggles_not($proxy, $status, "$what, in chunks",
        request($method => $target, @fields, 'Transfer-Encoding' => 'chunked', body => chunked($hidden)));
}

each_server(sub ($model) {
    my $proxy  = start_proxy('--classroom', '--max-body', 10_000);
    my $closed = Origin->new;
    my $nobody = '127.0.0.1:' . $closed->port;
    $closed->stop;
    $origin->play('/hidden', response(200, 'hidden'));

    # --- what the proxy answers itself, before the body is taken ---
    smuggles_no_body($proxy, 204, 'OPTIONS that may go no further', OPTIONS => $origin->url('/x'), 'Max-Forwards' => 0);
    smuggles_no_body($proxy, 204, 'OPTIONS * that may go no further', OPTIONS => '*', 'Max-Forwards' => 0);
    smuggles_no_body($proxy, 405, 'TRACE', TRACE => $origin->url('/x'));
    smuggles_no_body($proxy, 403, 'an address that is not allowed', POST => 'http://192.0.2.1/');
    smuggles_no_body($proxy, 502, 'a name that is not known', POST => 'http://no.such.name.example/');
    smuggles_no_body($proxy, 404, 'nobody listens', POST => "http://$nobody/");
    smuggles_no_body($proxy, 508, 'the proxy itself', POST => 'http://127.0.0.1:' . $proxy->port . '/');
    smuggles_no_body($proxy, 414, 'a number that is too large', POST => $origin->url('/10000'));
    smuggles_no_body($proxy, 400, 'a path alone', POST => '/x');
    smuggles_no_body($proxy, 400, 'the other scheme', POST => "https://$here/");
    smuggles_not($proxy, 413, 'a long body', request(POST => $origin->url('/x'), 'Content-Length' => 10_001, body => $hidden));
    smuggles_not($proxy, 417, 'an expectation', request(POST => $origin->url('/x'), Expect => 'x', 'Content-Length' => length $hidden, body => $hidden));
    # What comes behind CONNECT was meant for the tunnel.
    smuggles_not($proxy, $_->[0], "CONNECT $_->[1]", request(CONNECT => $_->[1], Host => $_->[1]) . $hidden)
        for [403, '192.0.2.1:80'], [404, $nobody], [508, '127.0.0.1:' . $proxy->port], [400, '127.0.0.1'], [502, 'no.such.name.example:80'];
    smuggles_not($proxy, 400, 'CONNECT with a body', request(CONNECT => $here, Host => $here, 'Content-Length' => length $hidden, body => $hidden));
    is $origin->count('/hidden'), 0, 'the origin has never seen it';

    # --- requests that two readers could read in two ways ---
    my %ambiguous = (
        'two lengths'                 => [400, 'Content-Length' => 0, 'Content-Length' => length $hidden],
        'the same length twice'       => [400, 'Content-Length' => 3, 'Content-Length' => 3],
        'a list of lengths'           => [400, 'Content-Length' => '3, 3'],
        'a length with a sign'        => [400, 'Content-Length' => '+3'],
        'a length and chunks'         => [400, 'Content-Length' => 3, 'Transfer-Encoding' => 'chunked'],
        'chunks and a length'         => [400, 'Transfer-Encoding' => 'chunked', 'Content-Length' => 3],
        'chunks of chunks'            => [400, 'Transfer-Encoding' => 'chunked, chunked'],
        'chunks twice'                => [400, 'Transfer-Encoding' => 'chunked', 'Transfer-Encoding' => 'chunked'],
        'chunks that are not last'    => [400, 'Transfer-Encoding' => 'chunked, gzip'],
        'a coding that is not known'  => [501, 'Transfer-Encoding' => 'xchunked'],
        'a coding in quotes'          => [501, 'Transfer-Encoding' => '"chunked"'],
        'no coding'                   => [400, 'Transfer-Encoding' => ''],
        'chunks of HTTP/1.0'          => [400, version => 'HTTP/1.0', 'Transfer-Encoding' => 'chunked'],
        'a blank before the colon'    => [400, 'Transfer-Encoding ' => 'chunked'],
        'a folded coding'             => [400, 'X' => "y\r\n Transfer-Encoding: chunked"],
        'a bare line end'             => [400, 'X' => "y\nTransfer-Encoding: chunked"],
        'a bare carriage return'      => [400, 'X' => "y\rTransfer-Encoding: chunked"],
    );
    for my $name (sort keys %ambiguous) {
        my ($status, @fields) = @{ $ambiguous{$name} };
        smuggles_not($proxy, $status, $name, request(POST => $origin->url('/x'), @fields, body => "0\r\n\r\n$hidden"));
    }
    is $origin->count('/x'), 0, 'of all those the origin has seen nothing';
    is $origin->count('/hidden'), 0, 'nor of what they hid';

    # Chunks that break off are not made whole for the origin.
    my %chunks = (
        'no size'                  => [400, "\r\n$hidden"],
        'a size over 64 bits'      => [413, "10000000000000003\r\nabc\r\n0\r\n\r\n$hidden"],
        'a negative size'          => [400, "-1\r\nabc\r\n0\r\n\r\n$hidden"],
        'a bare line end'          => [400, "3\nabc\n0\n\n$hidden"],
        'one in an extension'      => [400, "3;a\nb\r\nabc\r\n0\r\n\r\n$hidden"],
        'more than its size'       => [400, "3\r\nabcd\r\n0\r\n\r\n$hidden"],
        'a folded trailer'         => [400, "0\r\n X: y\r\n\r\n$hidden"],
        'an endless extension'     => [431, '3;' . 'a' x 20_000 . "\r\nabc\r\n0\r\n\r\n$hidden"],
        'endless trailers'         => [431, "0\r\n" . "a: b\r\n" x 4000 . "\r\n$hidden"],
    );
    $origin->play('/chunks', response(200, 'x'));
    for my $name (sort keys %chunks) {
        my ($status, $body) = @{ $chunks{$name} };
        smuggles_not($proxy, $status, "chunks with $name", request(POST => $origin->url('/chunks'), 'Transfer-Encoding' => 'chunked', body => $body));
    }
    ok !(grep { /\r\n\r\n(?:.*\r\n)?0\r\n\r\n\z/s } $origin->requests('/chunks')), 'the origin has none of them whole';
    is $origin->count('/hidden'), 0, 'nor what is behind them';

    # --- what the origin gets ---
    $origin->play('/framed', response(200, 'x'));
    my $framed = sub (@fields) {
        $proxy->exchange(request(POST => $origin->url('/framed'), @fields, Connection => 'close'));
        return ($origin->requests('/framed'))[-1] // '';
    };
    like $framed->('Transfer-Encoding' => 'Chunked', body => "003;a=\"b;\\\"\"\r\nabc\r\n0;z\r\nA: b\r\n\r\n"),
        qr/\r\nTransfer-Encoding: chunked\r\n.*\r\n\r\n3\r\nabc\r\n0\r\n\r\n\z/s, 'chunks without their extensions and trailers';
    like $framed->('Content-Length' => '0003', body => 'abc'), qr/\r\nContent-Length: 3\r\n.*\r\n\r\nabc\z/s, 'a length in its simplest form';
    like $framed->('Content-Length' => 3, Connection => 'Content-Length, Transfer-Encoding, Host', body => 'abc'),
        qr/\r\nHost: \Q$here\E\r\nContent-Length: 3\r\n.*\r\n\r\nabc\z/s, 'Connection cannot take the framing or the host away';
    unlike $framed->(Connection => 'close'), qr/^(?:Content-Length|Transfer-Encoding):/mi, 'no framing where there was none';
    my @odd = ('/a%2e%2E/%2f%00%zz?%23=%0d%0a%20', '//two/../x', '/;a=b,c:@&=+$!*\'()', '/[]?[]', '/..');
    $origin->play($_, response(200, 'x')) for @odd;
    is $proxy->get($origin->url($_))->{status}, 200, "$_ is asked for as it is" for @odd;
    $origin->play('/?q', response(200, 'root'));
    is $proxy->get("http://$here?q")->{body}, 'root', 'an empty path is /';
    is scalar($proxy->exchange(request(GET => $_, Connection => 'close')))->{status}, 400, "$_: 400"
        for $origin->url('/x#f'), "http://user:word\@$here/x", "http://127.0.0.1:65536/", "http://127.0.0.1:-1/", 'http://[::1/', "http://[127.0.0.1]/", 'http://::1/',
            'http://[fe80::1%25lo]/', "http://$here\\x/", 'http:/x', 'http://';
    is scalar($proxy->exchange(request(CONNECT => $_, Host => 'x', Connection => 'close')))->{status}, 400, "CONNECT $_: 400"
        for '127.0.0.1:0', '127.0.0.1:65536', '127.0.0.1:', ':80', "http://$here/", "$here/", "u\@$here";
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => $_, Connection => 'close')))->{status}, 400, "Host: $_: 400"
        for 'a b', 'a/b', 'u@a', 'a:b', '[::1';
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => 'a', host => 'a', Connection => 'close')))->{status}, 400, 'Host twice: 400';
    is scalar($proxy->exchange(request(GET => $origin->url('/framed'), Host => undef, Connection => 'close')))->{status}, 400, 'no Host: 400';
    $origin->play('/many', response(200, 'x'));
    is $proxy->get($origin->url('/many'), map { ("X-$_" => 'y') } 1 .. 98)->{status}, 200, 'a hundred fields';
    is $proxy->get($origin->url('/many'), map { ("X-$_" => 'y') } 1 .. 99)->{status}, 431, 'one more: 431';
    is $proxy->get($origin->url('/many'), X => 'y' x 32_000)->{status}, 200, 'a long head';
    is $proxy->get($origin->url('/many'), Connection => join ',', ('x') x 99)->{status}, 200, 'a hundred connection options, with close';
    is $proxy->get($origin->url('/many'), Connection => join ',', ('x') x 100)->{status}, 431, 'one more: 431';
    is $proxy->get($origin->url('/many'), X => 'y' x 33_000)->{status}, 431, 'one that is too long: 431';
    is $proxy->get($origin->url('/' . 'y' x 8200))->{status}, 414, 'a target that is too long: 414';

    # --- HTTP/1.0 clients ---
    $origin->play('/old', response(200, 'old'));
    my @responses = $proxy->exchange(request(GET => $origin->url('/old'), version => 'HTTP/1.0', Connection => 'keep-alive'));
    ok !$responses[0]->persistent, 'a proxy keeps no connection to a client of HTTP/1.0 (RFC 9112, section 9.3)';
    unlike +($origin->requests('/old'))[0], qr/keep-alive/i, 'and says nothing of it to the origin';
    is $proxy->get($origin->url('/old'), 'Proxy-Connection' => 'close')->{body}, 'old', 'Proxy-Connection means nothing';
    my $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/old'), 'Proxy-Connection' => 'close'));
    ok $client->ask(request(GET => $origin->url('/old')))->{body} eq 'old', 'whatever it says';
    $client->close;
    $proxy->stop(%few);

    # --- what origins say ---
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
        'bare line ends'               => [200, 'abc', "HTTP/1.1 200 OK\nServer: s\nContent-Length: 3\n\nabc$second"],
        'a blank before the colon'     => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length : 3\r\n\r\nabc$second"],
        'no reason'                    => [200, 'abc', "HTTP/1.1 200\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc$second"],
        'a hop that names the length'  => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc$second"],
        'extensions and trailers'      => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3;a=\"\\\"\"\r\nabc\r\n0;b\r\nContent-Length: 9\r\n\r\n$second"],
        'HTTP/1.0'                     => [200, "abc$second", "HTTP/1.0 200 OK\r\nServer: s\r\nConnection: keep-alive\r\n\r\nabc$second"],
        'a length over 64 bits'        => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 18446744073709551619\r\n\r\nabc"],
        'a length of 2^64 - 1'         => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 18446744073709551615\r\n\r\nabc"],
        'an empty list of lengths'     => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: ,\r\n\r\nabc"],
        'a length in quotes'           => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: \"3\"\r\n\r\nabc"],
        'a 204 with two lengths'       => [502, undef, "HTTP/1.1 204 OK\r\nServer: s\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabc"],
        'a length and chunks in a 103' => [502, undef, "HTTP/1.1 103 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n$second"],
        'an empty line first'          => [502, undef, "\r\nHTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
        'two hundred and one fields'   => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\n" . "A: b\r\n" x 200 . "\r\nabc"],
        'many connection options'      => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nConnection: " . join(', ', ('x') x 200) . "\r\n\r\nabc"],
        'too many to vary on'          => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nVary: " . join(', ', ('x') x 201) . "\r\n\r\nabc"],
        'too many of them'             => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nConnection: " . join(', ', ('x') x 201) . "\r\n\r\nabc"],
        'many names not to be cached'  => [200, 'abc', "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nCache-Control: no-cache=\"" . join(', ', ('x') x 200) . "\"\r\n\r\nabc"],
        'too many names for that'      => [502, undef, "HTTP/1.1 200 OK\r\nServer: s\r\nContent-Length: 3\r\nCache-Control: no-cache=\"" . join(', ', ('x') x 201) . "\"\r\n\r\nabc"],
        'HTTP/2'                       => [502, undef, "HTTP/2.0 200 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
        'a status of four digits'      => [502, undef, "HTTP/1.1 2000 OK\r\nServer: s\r\nContent-Length: 3\r\n\r\nabc"],
    );
    $origin->play('/next', response(200, 'next'));
    for my $name (sort keys %said) {
        my ($status, $body, @bytes) = @{ $said{$name} };
        $origin->play('/said', [@bytes]);
        @responses = $proxy->exchange(request(GET => $origin->url('/said'), 'If-None-Match' => '"x"') . request(GET => $origin->url('/next'), Connection => 'close'));
        is join(',', map { $_->{status} } @responses), "$status,200", "the origin sends $name: $status, and the next request has its own response";
        is $responses[0]{body}, $body, "its body ($name)" if defined $body;
        is $responses[-1]{body}, 'next', "and the next one, too ($name)";
    }
    $origin->play('/head', [@{ response(200, 'abc') }, $second]);
    @responses = $proxy->exchange(request(HEAD => $origin->url('/head')) . request(GET => $origin->url('/next'), Connection => 'close'), 'HEAD', 'GET');
    is join(',', map { "$_->{status} $_->{body}" } @responses), '200 ,200 next', 'a HEAD that is answered with a body';
    is $responses[0]->field('Content-Length'), 3, 'keeps its length';
    $origin->play('/head', ["HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n"]);
    @responses = $proxy->exchange(request(HEAD => $origin->url('/head')) . request(GET => $origin->url('/next'), Connection => 'close'), 'HEAD', 'GET');
    is join(',', map { "$_->{status} $_->{body}" } @responses), '200 ,200 next', 'one that would be in chunks';

    # --- what comes before the response ---
    $origin->play('/before', ["HTTP/1.1 100 Continue\r\nContent-Length: 9\r\nConnection: x\r\nX: y\r\n\r\n", "HTTP/1.1 103 Hints\r\nLink: </a>\r\nTransfer-Encoding: chunked\r\n\r\n", response(200, 'abc')->[0]]);
    @responses = $proxy->exchange(request(GET => $origin->url('/before')) . request(GET => $origin->url('/next'), Connection => 'close'));
    is join(',', map { "$_->{status} $_->{body}" } @responses), '100 ,103 ,200 abc,200 next', 'responses before the response, in order';
    ok !(grep { $_->has('Content-Length') || $_->has('Transfer-Encoding') || $_->has('X') } @responses[0, 1]), 'without framing and hops';
    is $responses[1]->field('Link'), '</a>', 'with their fields';
    like $_->field('Via'), qr/^1\.1 fork-vs-thread-/, "$_->{status} has Via" for @responses[0, 1];

    # A client that has not read yet what came long before is waited for: all buffers are full when the second request has its turn.
    my ($big, $hint) = ('x' x 8_000_000, "HTTP/1.1 103 Hints\r\nLink: " . 'y' x 30_000 . "\r\n\r\n");
    $origin->play('/big', response(200, $big));
    $origin->play('/hints', [($hint) x 100, response(200, 'abc')->[0]]);
    $client = $proxy->connect(Sockopts => [[SOL_SOCKET, SO_RCVBUF, 65536]]);
    $client->send(request(GET => $origin->url('/big')) . request(GET => $origin->url('/hints')));
    until_true(sub { $client->fill(0.01); $client->{ended} || $origin->count('/hints') });
    is length $client->response->{body}, length $big, 'a response that is read late';
    is scalar(grep { $client->response->{status} == 103 } 1 .. 100), 100, 'and what is said before the next one';
    is $client->response->{body}, 'abc', 'and that';
    $client->close;

    # A client that waits for 100 gets it from the origin, or the final response instead.
    $origin->play('/early/100', ["HTTP/1.1 100 Continue\r\n\r\n", \'body', response(200, 'abc')->[0]]);
    $client = $proxy->connect;
    $client->send(request(POST => $origin->url('/early/100'), Expect => '100-continue', 'Content-Length' => 3));
    is $client->response->{status}, 100, '100 comes before the body';
    $client->send('abc');
    $origin->open_gate('body');
    is $client->response->{body}, 'abc', 'and the response after it';
    $client->close;
    $origin->play('/early/417', response(417, 'no'));
    $client = $proxy->connect;
    my $response = $client->ask(request(POST => $origin->url('/early/417'), Expect => '100-continue', 'Content-Length' => length $hidden));
    is $response->{status}, 417, 'the origin expects nothing: 417';
    ok !$response->persistent, 'and the response says that the connection ends';
    $client->send($hidden);
    ok $client->ends, 'so that the body, if it comes nevertheless, is no request';
    $client->close;
    is $origin->count('/hidden'), 0, 'for the origin neither';

    # --- Max-Forwards ---
    my $max = sub (@fields) {
        $origin->play('/max', response(200, 'x'));
        $proxy->exchange(request(OPTIONS => $origin->url('/max'), @fields, Connection => 'close'));
        return head_of(($origin->requests('/max'))[0])->{'max-forwards'};
    };
    is $max->('Max-Forwards' => 1), 0, 'Max-Forwards: 1 is 0 for the origin';
    is $max->('Max-Forwards' => '18446744073709551616'), '18446744073709551614', 'one that is over 64 bits is the largest';
    is $max->('Max-Forwards' => 'x'), undef, 'one that is no number is none';
    my $options = $proxy->exchange(request(OPTIONS => $origin->url('/max'), 'Max-Forwards' => 0, Connection => 'close'));
    like $options->field('Allow'), qr/\bCONNECT\b/, 'a forward proxy can do CONNECT';

    # --- pages ---
    my @pages = ([403, 'http://192.0.2.1/'], [502, "http://$nobody/"], [508, $proxy->url], [400, '/x']);
    for (@pages) {
        my ($status, $target) = @$_;
        my $page = $proxy->get($target);
        is $page->{status}, $status, "$target: $status";
        like $page->field('Content-Type'), qr{^text/html}, "$status is a page";
        like $page->{body}, qr{<title>$status .*</html>}s, "$status: which says what it is";
        is $proxy->head($target)->{body}, '', "$status: HEAD has no body";
    }
    $proxy->stop(%few);

    # --- before one origin ---
    $proxy = start_proxy('--origin', "http://$here");
    smuggles_no_body($proxy, 405, 'CONNECT', CONNECT => $here, Host => $here);
    smuggles_no_body($proxy, 204, 'OPTIONS that may go no further', OPTIONS => '/x', 'Max-Forwards' => 0);
    is $origin->count('/hidden'), 0, 'the one origin has seen nothing, either';
    unlike $proxy->exchange(request(OPTIONS => '/x', 'Max-Forwards' => 0, Connection => 'close'))->field('Allow'), qr/CONNECT/, 'it cannot do CONNECT';
    $client = $proxy->connect;
    is $client->ask(request(GET => '/old', version => 'HTTP/1.0', Connection => 'keep-alive'))->{body}, 'old', 'a gateway is a server to its clients';
    is $client->ask(request(GET => '/old', version => 'HTTP/1.0', Connection => 'keep-alive'))->{body}, 'old', 'and keeps the connection of one of HTTP/1.0';
    $client->close;
    $origin->play('*', response(200, ''));
    $proxy->exchange(request(OPTIONS => "https://$here", Connection => 'close'));
    is head_of(($origin->requests('*'))[0] // "\r\n")->{line}, 'OPTIONS * HTTP/1.1', 'OPTIONS of a whole server, of either scheme';
    $proxy->stop(%few);

    # --- behind a response that was stale ---
    my $cache = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache"]);
    smuggles_no_body($proxy, 504, 'what can only be had from the store', $_ => $origin->url('/x'), 'Cache-Control' => 'only-if-cached') for qw(GET POST);
    is $origin->count('/hidden'), 0, 'the origin is not asked for anything';
    my %stale = ('Cache-Control' => 'max-age=60, stale-while-revalidate=1000', Age => 100);
    $origin->play('/stale', response(200, 'old', %stale), ["HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n", response(200, 'new', %stale)->[0]]);
    $proxy->get($origin->url('/stale'));
    $client = $proxy->connect;
    is $client->ask(request(GET => $origin->url('/stale')))->{body}, 'old', 'what is stale comes at once';
    $response = $client->ask(request(GET => $origin->url('/next')));
    is "$response->{status} $response->{body}", '200 next', 'what the origin says before its next response is not said to the client, who has its own';
    $client->close;
    is $origin->count('/stale'), 2, 'though it was asked';
    my $long = 'x' x 10_000_000;
    $origin->play('/stale/long', response(200, $long, %stale));
    is length $proxy->get($origin->url('/stale/long'))->{body}, length $long, 'a long one is stored';
    $origin->play('/stale/silent', response(200, $long, %stale), [\'never']);
    $proxy->get($origin->url('/stale/silent'));
    $proxy->stop(%few);
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache", '--write-timeout', 0.1]);
    $client = $proxy->connect;
    $client->send(request(GET => $origin->url('/stale/long')) . request(GET => $origin->url('/next')));
    until_true(sub { $origin->count('/stale/long') == 2 });
    my $got = $client->drain;
    ok $client->{ended}, 'a client that did not take a stale response is left';
    cmp_ok length $got, '<', length $long, 'before it is whole';
    ok $got !~ /next\z/, 'and with no other response behind that';
    $client->close;
    $proxy->stop(%few);

    # The origin has its time then, too, and no more.
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache", qw(--write-timeout 0.1 --origin-timeout 0.2)]);
    $client = $proxy->connect;
    $client->send(request(GET => $origin->url('/stale/silent')));
    # (it reads nothing, not even to learn of the end: the kernel knows)
    ok scalar until_true(sub { unpack('C', getsockopt $client->{socket}, IPPROTO_TCP, TCP_INFO) == TCP_CLOSE }), 'behind a client that did not take a stale response, an origin that says nothing is not waited for';
    is $origin->count('/stale/silent'), 2, 'it was asked';
    is scalar($proxy->exchange(request(OPTIONS => '*', 'Max-Forwards' => 0, Connection => 'close')))->{status}, 204, 'and others are served';
    $client->close;
    $proxy->stop(%few);
});

done_testing;

#!/usr/bin/perl
# The proxy without a cache: which requests and fields it forwards, to which origins, and its response when an origin fails.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Socket qw(SOL_SOCKET SO_RCVBUF);
use Origin;
use ProxyFields;

my $origin = Origin->new;
my $here   = '127.0.0.1:' . $origin->port;

# A proxy without a cache. It may print that it has few descriptors.
sub start_proxy (@options) { return start_server(options => ['--service', 'proxy', '--no-cache', @options]) }

sub get ($proxy, $path, @fields) { return $proxy->get($origin->url($path), @fields) }

each_server(sub ($model) {
    my $proxy = start_proxy();
    my $big   = substr +(join '', map { chr($_ * 7 % 251) } 1 .. 251) x 2000, 0, 300_000;

    # --- heads ---
    $origin->play('/plain?x=1', response(200, "hello\n", 'X-Thing' => 'y', Connection => 'X-Hop, close', 'X-Hop' => '1',
        'Keep-Alive' => 'timeout=5', 'Proxy-Connection' => 'close', Trailer => 'X'));
    my $response = get($proxy, '/plain?x=1', 'X-Mine' => 'a', 'Connection' => 'X-Drop', 'X-Drop' => '1', TE => 'trailers',
        'Proxy-Connection' => 'keep-alive', 'Keep-Alive' => '1', 'Proxy-Authorization' => 'Basic eA==', Upgrade => 'h2c',
        Cookie => 'c=d');
    is $response->{status}, 200, 'the status of the origin is forwarded';
    is $response->{body}, "hello\n", 'the body of the origin is forwarded';
    is $response->field('X-Thing'), 'y', 'the fields of the origin are forwarded';
    ok !$response->has($_), "$_ of the origin, which concerns one connection only, is not forwarded" for qw(X-Hop Keep-Alive Proxy-Connection Trailer);
    like $response->field('Via'), qr/^1\.1 fork-vs-thread-[0-9a-f]{8}\z/, 'the response has Via';
    my $head = head_of(($origin->requests('/plain?x=1'))[0]);
    is $head->{line}, 'GET /plain?x=1 HTTP/1.1', 'the origin gets the path of the target';
    is $head->{host}, $here, 'the origin gets the host of the target as Host';
    is $head->{'x-mine'}, 'a', 'the origin gets the fields of the request';
    is $head->{cookie}, 'c=d', 'the origin gets cookies';
    ok !exists $head->{$_}, "$_ of the request is not forwarded"
        for qw(x-drop te proxy-connection keep-alive proxy-authorization upgrade);
    like $head->{via}, qr/^1\.1 fork-vs-thread-[0-9a-f]{8}\z/, 'the request has Via';

    $origin->play('/host', response(200, ''));
    $proxy->get("http://localhost:" . $origin->port . '/host', Host => 'other.example');
    is head_of(($origin->requests('/host'))[0])->{host}, 'localhost:' . $origin->port, 'Host is that of the target, not that of the request';
    $origin->play('/via', [@{ response(200, '', Via => '1.0 before') }]);
    is join(', ', @{ get($proxy, '/via', Via => '1.0 first')->{fields}{via} }) =~ s/-[0-9a-f]{8}\z//r, '1.0 before, 1.1 fork-vs-thread',
        'the proxy appends itself to Via of the response';
    like head_of(($origin->requests('/via'))[0])->{via}, qr/^1\.0 first, 1\.1 fork-vs-thread-/, 'the proxy appends itself to Via of the request';
    $origin->play('/nodate', response(200, 'x', Date => undef));
    ok get($proxy, '/nodate')->has('Date'), 'a response without Date gets one';
    $origin->play('/old', ["HTTP/1.0 200 OK\r\nServer: s\r\n\r\nold"]);
    $response = get($proxy, '/old');
    is $response->{body}, 'old', 'a body that ends with the connection is forwarded';
    is $response->{version}, 'HTTP/1.1', 'a response of HTTP/1.0 is forwarded as HTTP/1.1';
    like $response->field('Via'), qr/^1\.0 /, 'Via has the version of the origin';

    # --- bodies from the origin ---
    $origin->play('/big', response(200, $big));
    is get($proxy, '/big')->{body}, $big, 'a large body is forwarded';
    $origin->play('/chunked', response(200, chunked('a', 'bc', $big, 'd'), 'Transfer-Encoding' => 'chunked'));
    $response = get($proxy, '/chunked');
    is $response->{body}, "abc${big}d", 'a chunked body is forwarded';
    is $response->field('Transfer-Encoding'), 'chunked', 'a chunked body is chunked for the client';
    $origin->play('/trailer', response(200, "1\r\na\r\n0\r\nX-Trailer: y\r\n\r\n", 'Transfer-Encoding' => 'chunked'));
    is get($proxy, '/trailer')->{body}, 'a', 'trailers are not forwarded';
    my $old = $proxy->exchange(request(GET => $origin->url('/chunked'), version => 'HTTP/1.0'));
    is $old->{body}, "abc${big}d", 'a client of HTTP/1.0 gets a chunked body whole';
    ok !$old->has('Transfer-Encoding'), 'a client of HTTP/1.0 gets no chunks';
    for my $status (204, 304) {
        $origin->play("/$status", response($status, undef, ETag => '"e"'));
        $response = get($proxy, "/$status", 'If-None-Match' => '"e"');
        is "$response->{status} $response->{body}", "$status ", "$status has no body";
    }
    $origin->play('/head', response(200, undef, 'Content-Length' => 12345));
    $response = $proxy->head($origin->url('/head'));
    is $response->field('Content-Length'), 12345, 'HEAD: Content-Length is forwarded';
    $origin->play('/reason', ["HTTP/1.1 299 Strange things\r\nServer: s\r\nContent-Length: 0\r\n\r\n"]);
    is get($proxy, '/reason')->{reason}, 'Strange things', 'the reason of an unknown status is forwarded';

    # --- persistence and pipelines ---
    $origin->play("/p$_", response(200, "page $_")) for 1 .. 3;
    my $client = $proxy->connect;
    for (1 .. 3) {
        $response = $client->ask(request(GET => $origin->url("/p$_")));
        is $response->{body}, "page $_", "request $_ of a persistent connection gets its response";
    }
    ok $client->open, 'a connection stays open after three requests';
    $client->close;
    my @responses = $proxy->exchange(join '', map { request(GET => $origin->url("/p$_"), $_ == 3 ? (Connection => 'close') : ()) } 1 .. 3);
    is join(',', map { $_->{body} } @responses), 'page 1,page 2,page 3', 'pipelined requests get responses in order';
    @responses = $proxy->exchange(request(POST => $origin->url('/p1'), 'Content-Length' => 3, body => 'abc')
        . request(POST => $origin->url('/p2'), 'Transfer-Encoding' => 'chunked', body => chunked('abc', 'd'))
        . request(GET => $origin->url('/p3'), Connection => 'close'));
    is join(',', map { $_->{body} } @responses), 'page 1,page 2,page 3', 'pipelined requests with bodies get responses in order';

    # --- bodies to the origin ---
    $origin->play('/upload', response(201, "made\n"));
    is scalar($proxy->exchange(request(POST => $origin->url('/upload'), 'Content-Length' => length $big, Connection => 'close', body => $big)))->{status},
        201, 'a request with a large body gets the response of the origin';
    like +($origin->requests('/upload'))[-1], qr/\r\n\r\n\Q$big\E\z/, 'a large body reaches the origin unchanged';
    $proxy->exchange(request(PUT => $origin->url('/upload'), 'Transfer-Encoding' => 'chunked', Connection => 'close', body => chunked('abc', $big)));
    my $sent = ($origin->requests('/upload'))[-1];
    is head_of($sent)->{'transfer-encoding'}, 'chunked', 'a chunked body reaches the origin in chunks';
    my $body = $sent =~ s/.*?\r\n\r\n//sr;
    my $whole = '';
    while ($body =~ s/^([0-9a-f]+)\r\n//) { $whole .= substr $body, 0, hex $1, ''; $body =~ s/^\r\n// or last }
    ok $whole eq "abc$big", 'a chunked body reaches the origin whole';
    $origin->play('/early', response(403, "no\n"));
    $client = $proxy->connect;
    $client->send(request(POST => $origin->url('/early'), 'Content-Length' => 100_000_000, body => 'x' x 1000));
    is $client->response->{status}, 403, 'a response that comes before the body is sent is forwarded';
    $client->close;
    $origin->play('/expect', ["HTTP/1.1 100 Continue\r\n\r\n", response(200, "thanks\n")->[0]]);
    $client = $proxy->connect;
    $client->send(request(POST => $origin->url('/expect'), 'Content-Length' => 4, Expect => '100-continue', body => 'data'));
    is $client->response->{status}, 100, '100 of the origin is forwarded';
    is $client->response->{body}, "thanks\n", 'the final response follows 100 of the origin';
    is head_of(($origin->requests('/expect'))[0])->{expect}, '100-continue', 'Expect is forwarded';
    $client->close;
    $origin->play('/hints', ["HTTP/1.1 103 Hints\r\nLink: </a>\r\n\r\n", response(200, 'x')->[0]]);
    @responses = $proxy->exchange(request(GET => $origin->url('/hints'), Connection => 'close'));
    is join(',', map { $_->{status} } @responses), '103,200', '103 of the origin is forwarded';
    @responses = $proxy->exchange(request(GET => $origin->url('/hints'), version => 'HTTP/1.0'));
    is join(',', map { $_->{status} } @responses), '200', '103 is not forwarded to a client of HTTP/1.0';

    # --- methods ---
    $origin->play('/method', response(200, 'ok'));
    is scalar($proxy->exchange(request($_ => $origin->url('/method'), Connection => 'close')))->{status}, 200, "$_ is forwarded"
        for qw(PUT DELETE PATCH OPTIONS PROPFIND);
    like +($origin->requests('/method'))[-1], qr/^PROPFIND /, 'an unknown method is forwarded unchanged';
    $origin->play('*', response(200, ''));
    $proxy->exchange(request(OPTIONS => $origin->url(''), Connection => 'close', 'Max-Forwards' => 3));
    is head_of(($origin->requests('*'))[0])->{line}, 'OPTIONS * HTTP/1.1', 'OPTIONS of a target without a path is forwarded as OPTIONS *';
    is head_of(($origin->requests('*'))[0])->{'max-forwards'}, 2, 'Max-Forwards is decremented';
    is scalar($proxy->exchange(request(OPTIONS => $origin->url('/none'), Connection => 'close', 'Max-Forwards' => 0)))->{status}, 204,
        'OPTIONS with Max-Forwards: 0 gets 204 from the proxy';
    is scalar($proxy->exchange(request(TRACE => $origin->url('/none'), Connection => 'close')))->{status}, 405, 'TRACE is refused with 405';
    is $origin->count('/none'), 0, 'OPTIONS with Max-Forwards: 0 and TRACE do not reach the origin';

    # --- which addresses are allowed ---
    is $proxy->get("http://$here/plain?x=1")->{status}, 200, 'a loopback address is allowed';
    is $proxy->get("http://[::ffff:127.0.0.1]:" . $origin->port . '/plain?x=1')->{status}, 200, 'a loopback address is allowed in its IPv6 form';
    is $proxy->get("http://$_/")->{status}, 403, "the address $_ is refused with 403"
        for qw(192.0.2.1 192.0.2.1:80 [2001:db8::1] 0.0.0.0 [::] 10.0.0.1 169.254.169.254 224.0.0.1 [::ffff:10.0.0.1]);
    is $proxy->get('http://no.such.name.example/')->{status}, 502, 'an unknown host name gets 502';
    is $proxy->get("http://$_/")->{status}, 502, "the host $_ is no IPv4 address and gets 502" for qw(2130706433 0x7f.1 127.1);
    is scalar($proxy->exchange(request(GET => $_, Connection => 'close')))->{status}, 400, "the target $_ is refused with 400"
        for '/path', "http://127.0.0.1:0/", 'http://127.0.0.1:99999/', 'http:///x', 'ftp://127.0.0.1/', 'https://127.0.0.1/', 'http://u@127.0.0.1/';
    is $proxy->get("http://127.0.0.1:" . $proxy->port . '/')->{status}, 508, 'a request for the proxy itself gets 508';
    is $proxy->get("http://localhost:" . $proxy->port . '/')->{status}, 508, 'a request for the proxy itself by name gets 508';
    my ($via) = get($proxy, '/plain?x=1')->field('Via') =~ /(\S+)\z/;
    is get($proxy, '/plain?x=1', Via => "1.0 a, 1.1 $via (x)")->{status}, 508, 'a request whose Via names the proxy gets 508';

    # --- origins that fail ---
    my $closed = Origin->new;
    my $nobody = $closed->port;
    $closed->stop;
    is $proxy->get("http://127.0.0.1:$nobody/")->{status}, 502, 'an origin that does not listen: 502';
    my %hostile = (
        'nothing'                  => [''],
        'a banner of SSH'          => ["SSH-2.0-x\r\n\r\n"],
        'half a head'              => ["HTTP/1.1 200 OK\r\nA: b"],
        'a reset'                  => [\''],
        'a folded field'           => ["HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n"],
        'two lengths'              => ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab"],
        'length and chunks'        => ["HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"],
        'a coding'                 => ["HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"],
        'a bare CR'                => ["HTTP/1.1 200 OK\r\nA: b\rSet-Cookie: c=d\r\n\r\n"],
        'a NUL'                    => ["HTTP/1.1 200 OK\r\nA: \0\r\n\r\n"],
        'a head that never ends'   => ["HTTP/1.1 200 OK\r\n", ("A: " . 'b' x 1000 . "\r\n") x 100],
        'a 101 that nobody asked for' => ["HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n"],
    );
    for my $name (sort keys %hostile) {
        $origin->play('/hostile', $hostile{$name});
        is get($proxy, '/hostile')->{status}, 502, "an origin that sends $name: 502";
    }
    my %broken = (
        'less than its length' => response(200, 'abc', 'Content-Length' => 10),
        'half a chunk'         => response(200, "5\r\nab", 'Transfer-Encoding' => 'chunked'),
        'no last chunk'        => response(200, "2\r\nab\r\n", 'Transfer-Encoding' => 'chunked'),
        'a bad chunk'          => response(200, "2\r\nab\r\nxyz\r\n", 'Transfer-Encoding' => 'chunked'),
    );
    for my $name (sort keys %broken) {
        $origin->play('/kept', [$broken{$name}[0] =~ s/\r\n/\r\nCache-Control: max-age=60\r\n/r]);
        $client = $proxy->connect;
        my $kept = $client->converse(request(GET => $origin->url('/kept'), Connection => 'close'));
        like $kept, qr{^HTTP/1\.1 (?:502 .*<h1>|200 )}s, "the origin sends $name, may be stored: the response is a 502, or begins";
        unlike $kept, qr/\AHTTP\/1\.1 200 .*\r\n0\r\n\r\n\z/s, "the origin sends $name, may be stored: the client can tell that the response is not whole";
        $client->close;
        $origin->play('/broken', $broken{$name});
        $client = $proxy->connect;
        my $bytes = $client->converse(request(GET => $origin->url('/broken')));
        like $bytes, qr{^HTTP/1\.1 200 }, "the origin sends $name: the response begins";
        unlike $bytes, qr/\r\n0\r\n\r\n\z/, "the origin sends $name: the client can tell that the response is not whole";
        $client->close;
    }
    $origin->play('/unended', [@{ response(200, undef) }, 'abc', \'']);
    $client = $proxy->connect;
    $client->converse(request(GET => $origin->url('/unended'), version => 'HTTP/1.0'));
    ok $client->{failure}, 'a body without a length that ends by a reset: the client gets a reset';
    $client->close;
    $proxy->stop(%few);

    # --- timeouts and limits ---
    # Each server has one short timeout. All others are long, so that a slow machine does not fail a case.
    $proxy = start_proxy('--origin-timeout', 1);
    $origin->play('/never', [\'never']);
    is get($proxy, '/never')->{status}, 504, 'an origin that does not respond: 504';
    $origin->play('/stuck', [@{ response(200, 'abc', 'Content-Length' => 10) }, \'never']);
    within(1, 'an origin that stops in the middle of a body: the response ends there', sub ($) {
        my $begin = now();
        $client = $proxy->connect;
        $client->send(request(GET => $origin->url('/stuck')));
        until_true(sub { $client->fill($PATIENCE); $client->{ended} || $client->pending =~ /\r\n\r\n./s });
        my $seconds = now() - $begin;    # until the body began
        my $got = $client->drain;
        $client->close;
        return ($seconds, $got =~ /\AHTTP\/1\.1 200 .*\r\n\r\nabc\z/s ? () : "got '$got'");
    });
    $proxy->stop(%few);
    for my $of_origin (0.3, 20) {
        $proxy = start_proxy('--origin-timeout', $of_origin, '--request-timeout', 0.5);
        $client = $proxy->connect;
        $client->send(request(POST => $origin->url('/upload'), 'Content-Length' => 100, body => 'abc'));
        is $client->response->{status}, 408, "a client that does not send its body: 408 (--origin-timeout $of_origin)";
        $client->close;
        $proxy->stop(%few);
    }
    $proxy = start_proxy('--max-body', 1000);
    my $limited = sub (@fields) { scalar($proxy->exchange(request(POST => $origin->url('/upload'), Connection => 'close', @fields)))->{status} };
    is $limited->('Content-Length' => 1000, body => 'x' x 1000), 201, '--max-body: a body of the allowed length is forwarded';
    is $limited->('Content-Length' => 1001, body => 'x' x 1001), 413, '--max-body: a body of one byte more is refused with 413';
    is $limited->('Transfer-Encoding' => 'chunked', body => chunked('x' x 600, 'x' x 600)), 413, '--max-body: a chunked body that is too long is refused with 413';
    $origin->play('/talks', [("HTTP/1.1 103 Hints\r\n\r\n") x 1000, response(200, 'x')->[0]]);
    my @said = $proxy->exchange(request(GET => $origin->url('/talks'), Connection => 'close'));
    is $said[-1]{status}, 502, 'an origin that sends 1,000 interim responses: 502';
    $proxy->stop(%few);

    # --- tunnels ---
    $proxy = start_proxy();
    $origin->play('/tunnel', response(200, $big));
    $client = $proxy->connect;
    $client->send("CONNECT $here HTTP/1.1\r\nHost: $here\r\n\r\n");
    ok scalar until_true(sub { $client->fill(1); $client->pending =~ /\r\n\r\n\z/ }), 'CONNECT gets a response';
    like $client->pending, qr{^HTTP/1\.1 200 }, 'CONNECT gets 200';
    $client->{buffer} = '';
    $response = $client->ask("GET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n");
    is $response->{body}, $big, 'a tunnel forwards bytes both ways';
    ok !$response->has('Via'), 'a tunnel does not change responses';
    ok $client->ends, 'a tunnel ends when the origin closes';
    $client->close;
    $client = $proxy->connect;
    my $bytes = $client->converse("CONNECT $here HTTP/1.1\r\nHost: $here\r\n\r\nGET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n");
    like $bytes, qr/\r\n\r\nHTTP.*\Q$big\E\z/s, 'bytes that follow CONNECT at once go through the tunnel';
    $client->close;
    $client = $proxy->connect(Sockopts => [[SOL_SOCKET, SO_RCVBUF, 4096]]);
    $client->send("CONNECT $here HTTP/1.1\r\nHost: $here\r\n\r\nGET /tunnel HTTP/1.1\r\nHost: x\r\n\r\n");
    $client->{socket}->shutdown(1);
    my ($established, $half_closed) = (1, 8);
    ok until_true(sub { my $end = $proxy->end_of($client); !$end || !grep { $end->{state} == $_ } $established, $half_closed }),
        'the proxy closes a tunnel whose both sides have ended';
    while (!$client->{ended}) { $client->fill($PATIENCE) or last }
    ok $client->pending =~ /\Q$big\E\z/, 'a client that reads slowly gets all of it';
    $client->close;
    my $connect = sub ($target) { scalar($proxy->exchange("CONNECT $target HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))->{status} };
    is $connect->('192.0.2.1:443'), 403, 'CONNECT to an address that is not allowed is refused with 403';
    is $connect->('127.0.0.1:' . $proxy->port), 508, 'CONNECT to the proxy itself gets 508';
    is $connect->("127.0.0.1:$nobody"), 502, 'CONNECT to a port where nothing listens gets 502';
    is $connect->('127.0.0.1'), 400, 'CONNECT without a port is refused with 400';
    my ($direct) = run_command('curl', '-s', '-p', '-x', $proxy->url, '-o', '/dev/null', '-w', '%{http_code} %{size_download}', $origin->url('/tunnel'));
    is $direct->{out}, '200 ' . length $big, 'curl gets a document through a tunnel';
    ($direct) = run_command('curl', '-s', '-x', $proxy->url, '-d', 'a=b', '-o', '/dev/null', '-w', '%{http_code}', $origin->url('/method'));
    is $direct->{out}, '200', 'curl posts a form through the proxy';
    if ($model->{single} || !has_browser()) {
        skip_case('no browser is used here, or the model serves one connection at a time');
    } else {
        $origin->play('/page.html', response(200, '<!DOCTYPE html><title>t</title><p id=p></p><script src="/page.js"></script>', 'Content-Type' => 'text/html'));
        $origin->play('/page.js', response(200, 'document.getElementById("p").textContent = "by " + "proxy"', 'Content-Type' => 'text/javascript'));
        like browse($origin->url('/page.html'), '--proxy-server=' . ($proxy->url =~ s{/\z}{}r), '--proxy-bypass-list=<-loopback>'), qr{<p id="p">by proxy</p>}, 'a browser that uses the proxy shows a page and runs its script';
        like +($origin->requests('/page.js'))[0] // '', qr/^Via: 1\.1 fork-vs-thread/m, 'the browser requests the script through the proxy';
    }
    $proxy->stop(%few);

    # --- a reverse proxy ---
    $proxy = start_proxy('--origin', "http://$here/");
    like $proxy->{ready}, qr{serves as a proxy for http://\Q$here\E/}, '--origin: the ready line names the origin';
    is $proxy->get('/plain?x=1')->{body}, "hello\n", '--origin: a path is requested from the origin';
    is head_of(($origin->requests('/plain?x=1'))[-1])->{host}, $here, '--origin: Host is the origin';
    is $proxy->get('http://anything.example/plain?x=1')->{body}, "hello\n", '--origin: a target with another host is requested from the origin';
    is scalar($proxy->exchange("CONNECT $here HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"))->{status}, 405, '--origin: CONNECT is refused with 405';
    $proxy->stop(%few);

    # --- --classroom ---
    $proxy = start_proxy('--classroom');
    $origin->play($_, response(200, $_)) for qw(/9999 /10000 /x10000);
    is get($proxy, '/9999')->{status}, 200, '--classroom: /9999 gets 200';
    is get($proxy, '/10000')->{status}, 414, '--classroom: /10000 is refused with 414';
    is get($proxy, '/99999999999999999999999999')->{status}, 414, '--classroom: a number of 26 digits is refused with 414';
    is $origin->count('/10000'), 0, '--classroom: a number that is too large is not requested from the origin';
    is get($proxy, '/x10000')->{status}, 200, '--classroom: a path that is no number gets 200';
    is $proxy->get("http://127.0.0.1:$nobody/1")->{status}, 404, '--classroom: an origin that does not listen: 404';
    $proxy->stop(%few);

    # --- the command line ---
    for my $bad (['--origin', 'http://'], ['--origin', 'http://127.0.0.1:1/path'], ['--max-body', 'x'], ['--max-body', '0'],
        ['--cache-size', '5Z'], ['--origin-timeout', '-1'], ['--stale-if-error', 'x'], ['--origin', 'http://127.0.0.1:99999'], ['--allow', '10.0.0.1'],
        ['--allow', '10.0.0.1:99999'], ['--allow', ':80'], ['--allow', 'loopbacks']) {
        my $run = run_server('--service', 'proxy', '--no-cache', @$bad, 0);
        is $run->{status}, 2, "@$bad is refused with exit status 2";
    }
    for my $bad (['--bind', '0.0.0.0'], ['--bind', '::'], ['--bind', '127.0.0.1', '--bind', '0.0.0.0'], ['--origin', 'http://no.such.name.example', '--name-server', "127.0.0.1:$nobody"], ['--allow', 'no.such.name.example:80'], ['--cache', '/dev/null/x']) {
        my $run = run_server('--service', 'proxy', $bad->[0] eq '--cache' ? () : '--no-cache', @$bad, 0);
        is $run->{status}, 1, "@$bad is refused with exit status 1";
        like $run->{err} =~ s/^.*limit of \d+ descriptors.*\n//mr, qr/\A[^\n]+\n\z/, "@$bad is refused with one line that says why";
    }
});

done_testing;

#!/usr/bin/perl
# The proxy and its connections to origins: which are kept and used again, which never are, and when a request is repeated.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;

sub start_proxy (@options) { return start_server(options => ['--service', 'proxy', '--no-cache', @options]) }

# A response after which the origin waits for the next request on the connection.
sub kept ($status, $body, @fields) { return [response($status, $body, @fields)->[0], \'+'] }

# Plays these responses at a path, and then asks there and at another path on one connection. Returns the statuses, and
# "same" or "other" for the origin's connection of the second request.
sub twice ($proxy, $first, @request) {
    state $number = 0;
    my ($path, $next) = ('/first' . ++$number, "/second$number");
    $origin->play($path, $first);
    $origin->play($next, kept(200, 'next'));
    my $client   = $proxy->connect;
    my $method   = @request ? shift @request : 'GET';
    my @statuses = map { $_ ? $_->{status} : 'none' } $client->ask(request($method => $origin->url($path), @request), $method),
        $client->ask(request(GET => $origin->url($next)));
    $client->close;
    my @connections = ($origin->connections($path), $origin->connections($next));
    return join ' ', @statuses, $connections[0] eq ($connections[-1] // '') ? 'same' : 'other';
}

# Opens a connection to the origin that is kept, and asks on it. Returns the status of the second response.
sub after_warming ($proxy, $method, $path, @fields) {
    $origin->play('/warm', kept(200, 'warm'));
    my $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/warm')));
    my $response = $client->ask(request($method => $origin->url($path), @fields), $method);
    $client->close;
    return $response ? $response->{status} : 'none';
}

sub is_kept ($path) {
    my ($warm) = $origin->connections('/warm');
    my ($here) = $origin->connections($path);
    return $warm eq ($here // '');
}

each_server(sub ($model) {
    my @one   = $model->{workers} ? ('--workers', 1) : ();
    my $proxy = start_proxy(@one);

    # --- connections that are kept ---
    is twice($proxy, kept(200, 'a')), '200 200 same', 'the next request goes over the connection of the one before';
    is twice($proxy, kept(200, 'a' x 300_000)), '200 200 same', 'after a long response, too';
    is twice($proxy, kept(200, chunked('a', 'b' x 1000), 'Transfer-Encoding' => 'chunked')), '200 200 same', 'after chunks';
    is twice($proxy, kept(200, '', 'Content-Length' => 0)), '200 200 same', 'after an empty body';
    is twice($proxy, kept(204, undef)), '204 200 same', 'after a 204';
    is twice($proxy, kept(304, undef, ETag => '"x"'), GET => 'If-None-Match' => '"x"'), '304 200 same', 'after a 304';
    is twice($proxy, kept(500, 'x')), '500 200 same', 'after an error';
    is twice($proxy, kept(200, 'x'), 'DELETE'), '200 200 same', 'after DELETE';
    is twice($proxy, kept(200, 'x'), GET => Authorization => 'Basic eA=='), '200 200 same', 'after a request with a password';
    ok !exists head_of(($origin->requests('/first1'))[0])->{connection}, 'the origin is not told to close the connection';

    # --- connections that are not ---
    is twice($proxy, kept(200, 'a', Connection => 'close')), '200 200 other', 'Connection: close ends the connection';
    is twice($proxy, kept(200, 'a', Connection => 'X-One, Close')), '200 200 other', 'it does so in a list';
    is twice($proxy, kept(200, undef), 'HEAD'), '200 200 other', 'after HEAD the connection ends: a body might follow';
    is twice($proxy, kept(200, 'x'), POST => 'Content-Length' => 1, body => 'x'), '200 200 other', 'after a request with a body the connection ends';
    is twice($proxy, kept(200, 'x'), GET => Authorization => $_), '200 200 other', "after a request that authenticates its connection by $_ the connection ends"
        for 'NTLM eA==', 'Negotiate eA==';
    is twice($proxy, [response(200, 'a')->[0] . 'b', \'+']), '200 200 other', 'bytes behind a response end the connection';
    is twice($proxy, [response(200, 'a')->[0] . response(200, 'b')->[0], \'+']), '200 200 other', 'so does a second response';
    is twice($proxy, [response(204, undef, 'Content-Length' => 1)->[0] . 'x', \'+']), '204 200 other', 'so does a body of a 204';
    is twice($proxy, [response(304, undef, 'Content-Length' => 1)->[0] . 'x', \'+'], GET => 'If-None-Match' => '*'), '304 200 other', 'so does a body of a 304';
    is twice($proxy, ["HTTP/1.0 200 OK\r\nServer: s\r\nConnection: keep-alive\r\nContent-Length: 1\r\n\r\na", \'+']), '200 200 other', 'a connection of HTTP/1.0 is not kept';
    is twice($proxy, ["HTTP/1.1 200 OK\r\nServer: s\r\n\r\na", \'.']), '200 200 other', 'a response that ends with the connection is not followed by another';

    $origin->play('/hints', ["HTTP/1.1 103 Hints\r\n\r\n" . response(200, 'a')->[0], \'+']);
    $origin->play('/asked', kept(200, 'asked'));
    my $client = $proxy->connect;
    $client->send(request(GET => $origin->url('/hints')));
    is join(' ', map { $client->response->{status} } 1 .. 2) . ' ' . $client->ask(request(GET => $origin->url('/asked')))->{body}, '103 200 asked', 'an interim response is forwarded';
    isnt(($origin->connections('/hints'))[0], ($origin->connections('/asked'))[0], 'after an interim response the connection ends');
    $client->close;

    # What an origin sends before it is asked is never taken for a response.
    $origin->play('/early', [response(200, 'a')->[0], \'more', response(200, 'forged')->[0], \'!sent', \'+']);
    $origin->play('/asked', kept(200, 'asked'));
    $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/early')));
    $origin->open_gate('more');
    $origin->has_come('sent');
    is $client->ask(request(GET => $origin->url('/asked')))->{body}, 'asked', 'a response that comes before its request is not used';
    isnt(($origin->connections('/early'))[0], ($origin->connections('/asked'))[0], 'its connection is not used either');
    $client->close;

    $origin->play('/ends', [response(200, 'a')->[0], \'.', \'!ended', \'-']);
    $origin->play('/asked', kept(200, 'asked'));
    $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/ends')));
    $origin->has_come('ended');
    is $client->ask(request(GET => $origin->url('/asked')))->{status}, 200, 'a connection that the origin has closed is not used';
    is $origin->count('/asked'), 1, 'the request is sent once';
    $client->close;

    # --- requests that are repeated ---
    for (['closes', []], ['resets', [\'']], ['sends 408 on', response(408, 'late', Connection => 'close')]) {
        my ($what, $steps) = @$_;
        $origin->play('/again', $steps, response(200, 'x'));
        is after_warming($proxy, GET => '/again'), 200, "an origin that $what a kept connection: the request is repeated";
        is join(' ', map { $_ eq ($origin->connections('/warm'))[0] ? 'kept' : 'new' } $origin->connections('/again')), 'kept new',
            "an origin that $what a kept connection: the second time on a new connection";
        $origin->play('/never', $steps);
        like after_warming($proxy, GET => '/never'), qr/^(?:502|408)\z/, "an origin that $what each connection: the client gets an error";
        is $origin->count('/never'), 2, "an origin that $what each connection: the request is repeated once";
    }
    $origin->play('/part', ["HTTP/1.1 200 OK\r\nContent-"], response(200, 'x'));
    is after_warming($proxy, GET => '/part'), 502, 'an origin that closes in a response: the client gets a 502';
    is $origin->count('/part'), 1, 'an origin that closes in a response: the request is not repeated';
    ok is_kept('/part'), 'it came on the kept connection';
    $origin->play('/fresh', [], response(200, 'x'));
    is get($proxy, '/fresh')->{status}, 502, 'an origin that closes a new connection: the client gets a 502';
    is $origin->count('/fresh'), 1, 'an origin that closes a new connection: the request is not repeated';
    for my $method (qw(POST PATCH)) {
        $origin->play('/once', [], response(200, 'x'));
        is after_warming($proxy, $method => '/once', 'Content-Length' => 0), 502, "$method: an origin that closes the connection gives a 502";
        is $origin->count('/once'), 1, "$method is sent once";
        ok !is_kept('/once'), "$method does not go over a kept connection";
    }
    $origin->play('/body', response(200, 'x'));
    is after_warming($proxy, PUT => '/body', 'Content-Length' => 3, body => 'abc'), 200, 'PUT with a body is forwarded';
    ok !is_kept('/body'), 'a request with a body does not go over a kept connection';
    $proxy->stop(%few);

    # --- whose they are ---
    if ($model->{lasting}) {
        $proxy = start_proxy(@one);
        $origin->play('/shared', kept(200, 'x'));
        get($proxy, '/shared') for 1 .. 3;
        my %connections = map { $_ => 1 } $origin->connections('/shared');
        is scalar keys %connections, 1, 'clients share connections, one after the other';
        $proxy->stop(%few);
    }

    # --- their end ---
    $proxy = start_proxy(@one, '--origin-idle', 0);
    is twice($proxy, kept(200, 'a')), '200 200 other', '--origin-idle 0: no connection is kept';
    is head_of(($origin->requests('/again'))[0])->{connection} // 'keep', 'keep', 'a kept connection is not announced as closed';
    $origin->play('/closes', response(200, 'x'));
    get($proxy, '/closes');
    is head_of(($origin->requests('/closes'))[0])->{connection}, 'close', '--origin-idle 0: the origin is told to close the connection';
    $proxy->stop(%few);

    $proxy = start_proxy(@one, '--origin-idle-timeout', 0.05);
    $origin->play('/idle', [response(200, 'x')->[0], \'-', \'!idle']);
    $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/idle')));
    $client->close;
    ok scalar $origin->has_come('idle'), '--origin-idle-timeout: an idle connection ends without another request';
    $proxy->stop(%few);

    $proxy = start_proxy(@one);
    $origin->play('/hup', kept(200, 'x'));
    $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/hup'))) for 1 .. 2;
    my ($before, $same) = $origin->connections('/hup');
    is $same, $before, 'before SIGHUP the connection is used again';
    $proxy->signal('HUP');
    ok scalar until_true(sub { $client->ask(request(GET => $origin->url('/hup'))); ($origin->connections('/hup'))[-1] ne $before }),
        'SIGHUP: connections of before are not used again';
    $client->close;
    $origin->play('/stop', [response(200, 'x')->[0], \'-', \'!stop']);
    $client = $proxy->connect;
    $client->ask(request(GET => $origin->url('/stop')));
    $proxy->stop(%few);
    ok scalar $origin->has_come('stop'), 'idle connections end at a stop';
    $client->close;

    # --- what the origin learns of the client ---
    my @forged = ('X-Forwarded-For' => '10.0.0.1', 'X_Forwarded_For' => '10.0.0.2', 'X-Forwarded-Proto' => 'https', 'X-Real-IP' => '10.0.0.3',
        Forwarded => 'for=10.0.0.4', 'X-Forwarded-Host' => 'evil.example', 'X-Other' => 'o');
    my $told = sub ($cached, @options) {
        my $store = scratch();
        my $proxy = start_server(options => ['--service', 'proxy', $cached ? ('--cache', "$store") : '--no-cache', @options]);
        my $path  = @options && $options[0] eq '--origin' ? '/told' : $origin->url('/told');
        $origin->play('/told', response(200, 'x'));
        $proxy->get($path, @forged, Host => 'a.example');
        $proxy->stop(%few);
        my $head = head_of(($origin->requests('/told'))[0]);
        delete @$head{qw(line host via connection)};
        return join '; ', map { "$_: $head->{$_}" } sort keys %$head;
    };
    my @to = ('--origin', $origin->url(''));
    is $told->(0, @to), 'forwarded: for=127.0.0.1;proto=http;host="a.example"; x-forwarded-for: 127.0.0.1; x-forwarded-host: a.example; x-forwarded-proto: http; x-other: o',
        '--origin: the origin learns the address of the client, and nothing that it has forged';
    is $told->(1, @to), 'forwarded: for=127.0.0.1;proto=http; x-forwarded-for: 127.0.0.1; x-forwarded-proto: http; x-other: o',
        '--origin with a cache: the origin does not learn the Host of one client, since others may get the response';
    is $told->(1, @to, qw(--forwarded standard)), 'forwarded: for=127.0.0.1;proto=http; x-other: o', '--forwarded standard';
    is $told->(1, @to, qw(--forwarded off)), 'x-other: o', '--forwarded off: the origin learns nothing';
    is $told->(1, @to, qw(--forwarded x --forwarded-append)), 'forwarded: for=10.0.0.4; x-forwarded-for: 10.0.0.1, 127.0.0.1; x-forwarded-host: evil.example; x-forwarded-proto: https; x-other: o; x-real-ip: 10.0.0.3',
        '--forwarded-append: what a trusted proxy says is kept';
    like $told->(1), qr/forwarded: for=10\.0\.0\.4; x-forwarded-for: 10\.0\.0\.1; /, 'a forward proxy tells origins nothing of its clients, and forwards what they say';

    # --- with a cache ---
    my $cache = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$cache", @one]);
    $origin->play('/cached', kept(200, 'x', ETag => '"x"', 'Cache-Control' => 'max-age=0'), kept(304, undef, ETag => '"x"'));
    $client = $proxy->connect;
    my @bodies = map { $client->ask(request(GET => $origin->url('/cached')))->{body} } 1 .. 3;
    $client->close;
    is "@bodies", 'x x x', 'entries are validated over kept connections';
    my %connections = map { $_ => 1 } $origin->connections('/cached');
    is scalar keys %connections, 1, 'validations go over one connection';
    $proxy->stop(%few);

    # Servers that tell the origin other things share no entry, although they share a directory.
    my $shared = scratch();
    my $with   = sub (@options) { start_server(options => ['--service', 'proxy', '--cache', "$shared", @options]) };
    my $ask    = sub ($path, @options) {
        my $proxy    = $with->(@options);
        my $response = $proxy->get(@options ? $path : $origin->url($path));
        $proxy->stop(%few);
        return cache_status($response);
    };
    $origin->play('/kinds', response(200, 'x', %fresh));
    for my $case ([], [@to], [@to, '--forwarded-append']) {
        like $ask->('/kinds', @$case), qr/^fwd=uri-miss/, "a server of another kind has no entry of others (@$case)";
        is $ask->('/kinds', @$case), 'hit', "one of the same kind has (@$case)";
    }
    $origin->play('/vary', response(200, 'x', %fresh, Vary => 'X-Forwarded-For'));
    $ask->('/vary', @to);
    like $ask->('/vary', @to), qr/^fwd=uri-miss/, 'a response that varies by the address of the client is for nobody else';
});

sub get ($proxy, $path, @fields) { return $proxy->get($origin->url($path), @fields) }

done_testing;

#!/usr/bin/perl
# The cache of the proxy: the rules of RFC 9111 that a client can observe. No case waits: the origin gives its responses the age
# that a case needs. proxy_rules.t has further cases.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;
my $proxy;

sub get ($path, @fields) { return $proxy->get($origin->url($path), @fields) }
sub exchange ($method, $path, @fields) { return scalar $proxy->exchange(request($method => $origin->url($path), Connection => 'close', @fields), $method) }

my @cc = ('Cache-Control');

# Tests whether a second request is served from the cache.
my $number = 0;
sub is_stored ($name, $kept, $response, $request = []) {
    my $path = '/kept' . ++$number;
    $origin->play($path, $response);
    for (1 .. 2) { # the response may be incomplete
        my $client = $proxy->connect;
        $client->converse(request(GET => $origin->url($path), @$request, Connection => 'close'));
        $client->close;
    }
    my $count = $origin->count($path);
    is $count, $kept ? 1 : 2, "$name: " . ($kept ? 'stored' : 'not stored');
}

# Tests whether the proxy uses an entry for a request although the origin has another response by now.
sub is_used ($name, $used, $response, @request) {
    my $path = '/used' . ++$number;
    $origin->play($path, $response, response(200, 'second', %fresh));
    get($path);
    is get($path, @request)->{body}, $used ? 'first' : 'second', "$name: " . ($used ? 'used' : 'not used');
}

each_server(sub ($model) {
    my $directory = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$directory/cache"]);

    # --- 3: what is stored ---
    is_stored('max-age', 1, response(200, 'x', %fresh));
    is_stored('s-maxage', 1, response(200, 'x', 'Cache-Control' => 's-maxage=60'));
    is_stored('Expires', 1, response(200, 'x', Expires => http_date(time + 60)));
    is_stored('Last-Modified long ago', 1, response(200, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_stored('no freshness information', 0, response(200, 'x'));
    is_stored('no-store', 0, response(200, 'x', 'Cache-Control' => 'max-age=60, no-store'));
    is_stored('private', 0, response(200, 'x', 'Cache-Control' => 'max-age=60, private'));
    is_stored('no-cache', 0, response(200, 'x', 'Cache-Control' => 'max-age=60, no-cache'));
    is_stored('Expires: 0', 0, response(200, 'x', Expires => '0'));
    is_stored('max-age=0', 0, response(200, 'x', 'Cache-Control' => 'max-age=0'));
    is_stored('a malformed max-age', 0, response(200, 'x', 'Cache-Control' => 'max-age=6o', Expires => http_date(time + 60)));
    is_stored('s-maxage=0 before max-age', 0, response(200, 'x', 'Cache-Control' => 'max-age=60, s-maxage=0'));
    is_stored('Vary: *', 0, response(200, 'x', %fresh, Vary => '*'));
    is_stored("status $_ with max-age", 1, response($_, 'x', %fresh)) for 203, 301, 302, 307, 308, 404, 410, 500, 503;
    is_stored("status 204 with max-age", 1, response(204, undef, %fresh));
    is_stored('status 404 with Last-Modified alone', 1, response(404, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_stored('status 500 with Last-Modified alone', 0, response(500, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_stored('status 206', 0, response(206, 'x', %fresh, 'Content-Range' => 'bytes 0-0/1'), [Range => 'bytes=0-0']);
    is_stored('Authorization', 0, response(200, 'x', %fresh), [Authorization => 'Basic eA==']);
    is_stored("Authorization with $_", 1, response(200, 'x', 'Cache-Control' => "max-age=60, $_"), [Authorization => 'Basic eA=='])
        for qw(public must-revalidate s-maxage=60);
    is_stored('a request with no-store', 0, response(200, 'x', %fresh), ['Cache-Control' => 'no-store']);
    is_stored('a body that ends with the connection', 1, ["HTTP/1.1 200 OK\r\nServer: s\r\nCache-Control: max-age=60\r\n\r\nuntil the end"]);
    is_stored('a chunked body', 1, response(200, "3\r\nabc\r\n0\r\n\r\n", %fresh, 'Transfer-Encoding' => 'chunked'));
    is_stored('a body cut short', 0, response(200, 'abc', %fresh, 'Content-Length' => 10));
    is_stored('a chunked body cut short', 0, response(200, "3\r\nabc\r\n", %fresh, 'Transfer-Encoding' => 'chunked'));
    is_stored('an empty body', 1, response(200, '', %fresh));
    is_stored('a cookie, with max-age', 1, response(200, 'x', %fresh, 'Set-Cookie' => 'a=b'));
    is_stored('a cookie, without max-age', 0, response(200, 'x', 'Last-Modified' => http_date(time - 10_000), 'Set-Cookie' => 'a=b'));
    is_stored('no-store with must-understand', 1, response(200, 'x', 'Cache-Control' => 'max-age=60, no-store, must-understand'));
    is_stored('must-understand and an unknown status', 0, response(299, 'x', 'Cache-Control' => 'max-age=60, must-understand'));

    $origin->play('/fields', response(200, 'x', 'Cache-Control' => 'max-age=60, private="x-mine, set-cookie", no-cache="x-check"',
        'X-Mine' => '1', 'X-Check' => '2', 'X-Other' => '3', Connection => 'x-hop', 'X-Hop' => '4', 'Set-Cookie' => 'c=d'));
    my $response = get('/fields');
    is join(' ', map { $response->field($_) // '-' } qw(X-Mine X-Check X-Other)), '1 2 3', 'the first response has all fields';
    ok !$response->has('X-Hop'), 'it has no field that Connection names';
    $response = get('/fields');
    ok !$response->has($_), "a response from the cache has no $_" for qw(X-Mine X-Check X-Hop Set-Cookie);
    is $response->field('X-Other'), 3, 'a response from the cache has all other fields';

    # --- 4: how it is used ---
    $origin->play('/hit', response(200, "stored\n", %fresh, 'X-Thing' => 'y', ETag => '"e"', 'Content-Type' => 'text/odd', Date => http_date(time - 5)));
    $response = get('/hit');
    is cache_status($response), 'fwd=uri-miss; fwd-status=200; stored', 'Cache-Status of a miss says that the response was stored';
    ok !$response->has('Age'), 'a response from the origin has no Age';
    $response = get('/hit');
    is cache_status($response), 'hit', 'Cache-Status of a hit says hit';
    is $response->{body}, "stored\n", 'a hit has the stored body';
    is $response->field('X-Thing'), 'y', 'a hit has the stored fields';
    is $response->field('Content-Type'), 'text/odd', 'a hit has the stored Content-Type';
    is $response->{reason}, 'Whatever', 'a hit has the stored reason phrase';
    cmp_ok $response->field('Age'), '>=', 5, 'Age of a hit counts from Date';
    cmp_ok $response->field('Age'), '<', 50, 'Age of a hit is in seconds';
    like $response->field('Cache-Status'), qr/; ttl=5\d\z/, 'Cache-Status of a hit has the remaining freshness';
    like $response->field('Via'), qr/^1\.1 fork-vs-thread-/, 'a hit has Via';
    $origin->play('/aged', response(200, 'x', %fresh, Age => 30));
    get('/aged');
    cmp_ok get('/aged')->field('Age'), '>=', 30, 'Age of a hit counts from the Age of the stored response';
    $response = exchange(HEAD => '/hit');
    is $response->field('Content-Length'), 7, 'HEAD is served from the response to GET';
    is $origin->count('/hit'), 1, 'HEAD of an entry does not reach the origin';
    $origin->play('/hit?', response(200, 'x', %fresh));
    get('/hit?');
    is $origin->count('/hit?'), 1, 'a target with an empty query is another entry';
    is $proxy->get('http://127.0.0.1:' . $origin->port . '/hit')->{body}, "stored\n", 'another spelling of the address is the same entry';
    my $client = $proxy->connect;
    $client->send(join '', map { request(GET => $origin->url('/hit')) } 1 .. 3);
    is $client->response->{body}, "stored\n", "hit $_ of pipelined requests" for 1 .. 3;
    $client->close;

    is_used('fresh', 1, response(200, 'first', %fresh));
    is_used('stale', 0, response(200, 'first', %stale));
    is_used('its Date is long ago', 0, response(200, 'first', %fresh, Date => http_date(time - 100)));
    is_used('its Age is not a number', 1, response(200, 'first', %fresh, Age => 'old'));
    is_used('with must-revalidate, fresh', 1, response(200, 'first', 'Cache-Control' => 'max-age=60, must-revalidate'));
    is_used("request: $_", 0, response(200, 'first', %fresh, Age => 20), 'Cache-Control' => $_)
        for qw(no-cache max-age=0 max-age=10 min-fresh=50);
    is_used("request: $_", 1, response(200, 'first', %fresh, Age => 20), 'Cache-Control' => $_) for qw(max-age=50 min-fresh=20 max-stale);
    is_used('request: Pragma: no-cache', 0, response(200, 'first', %fresh), Pragma => 'no-cache');
    is_used('stale, request: max-stale', 1, response(200, 'first', %stale), 'Cache-Control' => 'max-stale');
    is_used('stale, request: max-stale=100', 1, response(200, 'first', %stale), 'Cache-Control' => 'max-stale=100');
    is_used('stale, request: max-stale=10', 0, response(200, 'first', %stale), 'Cache-Control' => 'max-stale=10');
    is_used("stale, $_, request: max-stale", 0, response(200, 'first', 'Cache-Control' => "max-age=60, $_", Age => 100), 'Cache-Control' => 'max-stale')
        for qw(must-revalidate proxy-revalidate s-maxage=60);
    is_used('request: If-Match', 0, response(200, 'first', %fresh, ETag => '"e"'), 'If-Match' => '"e"');
    $origin->play('/only', response(200, 'x', %fresh));
    is get('/only', 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: a miss gets 504';
    get('/only');
    is get('/only', 'Cache-Control' => 'only-if-cached')->{status}, 200, 'only-if-cached: a hit gets 200';
    $origin->play('/onlystale', response(200, 'x', %stale));
    get('/onlystale');
    is get('/onlystale', 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: a stale entry gets 504';

    # --- 4.1: Vary ---
    $origin->play('/vary', response(200, 'a', %fresh, Vary => 'Accept-Language, X-Kind'), response(200, 'b', %fresh, Vary => 'Accept-Language, X-Kind'));
    is get('/vary', 'Accept-Language' => 'en')->{body}, 'a', 'Vary: the first request gets the first response';
    $response = get('/vary', 'Accept-Language' => 'de');
    is $response->{body}, 'b', 'Vary: a request with another language gets another response';
    is cache_status($response), 'fwd=vary-miss; fwd-status=200; stored', 'Vary: Cache-Status says vary-miss';
    is get('/vary', 'Accept-Language' => 'en')->{body}, 'a', 'Vary: both responses are stored';
    is get('/vary', 'Accept-Language' => ' en ', Accept => 'x')->{body}, 'a', 'Vary: other fields and blanks do not count';
    is get('/vary', 'Accept-Language' => 'de')->{body}, 'b', 'Vary: the second response is still stored';
    get('/vary', 'Accept-Language' => 'en', 'X-Kind' => '1');
    is $origin->count('/vary'), 3, 'Vary: a field that is present does not match one that is missing';

    # --- 4.3: validation ---
    my $modified = http_date(time - 86_400);
    $origin->play('/valid', response(200, 'body', %stale, ETag => '"v1"', 'Last-Modified' => $modified, 'X-A' => '1', 'X-B' => '1'),
        response(304, undef, 'Cache-Control' => 'max-age=60', ETag => '"v1"', 'X-B' => '2', 'Content-Length' => 999));
    get('/valid', 'X-Any' => 1);
    $response = get('/valid', 'X-Any' => 2);
    is "$response->{status} $response->{body}", '200 body', 'a stale entry that the origin validates is used';
    is cache_status($response), 'fwd=stale; fwd-status=304', 'a validated entry: Cache-Status says stale and 304';
    my $head = head_of(($origin->requests('/valid'))[1]);
    is $head->{'if-none-match'}, '"v1"', 'validation: the request has If-None-Match with the ETag';
    is $head->{'if-modified-since'}, $modified, 'validation: the request has If-Modified-Since with Last-Modified';
    is $head->{'x-any'}, 2, 'validation: the request has the fields of the client';
    is join(',', map { $response->field($_) } qw(X-A X-B Content-Length)), '1,2,4', 'a validated entry gets the fields of the 304 except Content-Length';
    is cache_status(get('/valid')), 'hit', 'a validated entry is fresh again';
    is $origin->count('/valid'), 2, 'a validated entry is served without the origin';
    $origin->play('/changed', response(200, 'old', %stale, ETag => '"1"'), response(200, 'new', %fresh, ETag => '"2"'));
    get('/changed');
    is get('/changed')->{body}, 'new', 'a 200 to a validation is forwarded';
    is get('/changed')->{body}, 'new', 'a 200 to a validation replaces the entry';
    is $origin->count('/changed'), 2, 'the replaced entry is served without the origin';
    $origin->play('/other', response(200, 'old', %stale, ETag => '"1"'), response(304, undef, ETag => '"2"'), response(200, 'new', %fresh));
    get('/other');
    is get('/other')->{body}, 'new', 'a 304 with another ETag validates nothing: the proxy requests the whole response';
    ok !exists head_of(($origin->requests('/other'))[2])->{'if-none-match'}, 'after a 304 with another ETag the request has no conditions';
    $origin->play('/nocache', response(200, 'a', 'Cache-Control' => 'no-cache, max-age=60', ETag => '"1"'), response(304, undef, ETag => '"1"'));
    get('/nocache');
    is get('/nocache')->{body}, 'a', "no-cache: a validated entry is used ($_)" for 1, 2;
    is $origin->count('/nocache'), 3, 'no-cache: each request validates the entry';
    $origin->play('/weak', response(200, 'a', %stale, ETag => 'W/"1"'), response(304, undef, ETag => 'W/"1"', %fresh));
    get('/weak');
    is get('/weak')->{body}, 'a', 'an entry with a weak ETag can be validated';
    is head_of(($origin->requests('/weak'))[1])->{'if-none-match'}, 'W/"1"', 'validation: a weak ETag is sent';
    $origin->play('/gone', response(200, 'a', %stale, ETag => '"1"'), response(404, 'no', 'Cache-Control' => 'no-store'), response(200, 'b', %fresh));
    get('/gone');
    is get('/gone')->{status}, 404, 'a 404 to a validation is forwarded';
    is get('/gone')->{body}, 'b', 'a 404 to a validation removes the entry';

    # --- conditions and ranges of the client ---
    $origin->play('/cond', response(200, 'abcdefghij', %fresh, ETag => '"e"', 'Last-Modified' => $modified, 'Content-Type' => 'text/odd'));
    get('/cond');
    for my $case ([304, 'If-None-Match' => '"e"'], [304, 'If-None-Match' => 'W/"e"'], [304, 'If-None-Match' => '*'], [200, 'If-None-Match' => '"f"'],
        [304, 'If-Modified-Since' => $modified], [200, 'If-Modified-Since' => http_date(time - 100_000)],
        [200, 'If-None-Match' => '"f"', 'If-Modified-Since' => $modified],
        [206, Range => 'bytes=2-4'], [206, Range => 'bytes=-3'], [416, Range => 'bytes=10-'], [200, Range => 'lines=1-2'],
        [206, Range => 'bytes=2-4', 'If-Range' => '"e"'], [200, Range => 'bytes=2-4', 'If-Range' => '"f"'],
        [206, Range => 'bytes=2-4', 'If-Range' => $modified], [304, Range => 'bytes=2-4', 'If-None-Match' => '"e"']) {
        my ($status, @fields) = @$case;
        $response = get('/cond', @fields);
        is $response->{status}, $status, "from the cache, @fields: $status";
        is $response->field('ETag'), '"e"', "from the cache, @fields: the $status has the ETag" if $status != 416;
    }
    is get('/cond', Range => 'bytes=2-4')->{body}, 'cde', 'a range comes from the cache';
    is $origin->count('/cond'), 1, 'conditions and ranges of a fresh entry do not reach the origin';
    $origin->play('/parts', response(200, join('', 1000 .. 2000), %fresh, 'Content-Type' => 'text/odd'));
    get('/parts');
    my @parts = parse_parts(get('/parts', Range => 'bytes=0-3,2000-2003'));
    is join(' ', map { "$_->[0]{'content-type'} $_->[1]" } @parts), 'text/odd 1000 text/odd 1500', 'several ranges come from the cache';
    is $origin->count('/parts'), 1, 'several ranges of an entry do not reach the origin';
    $origin->play('/cond2', response(200, 'abcdefghij', %stale, ETag => '"e"'), response(304, undef, %stale, ETag => '"e"'));
    get('/cond2');
    is get('/cond2', Range => 'bytes=2-4')->{body}, 'cde', 'a range of a stale entry is served after a validation';
    ok !exists head_of(($origin->requests('/cond2'))[1])->{range}, 'the validation of a stale entry has no Range';
    is get('/cond2', 'If-None-Match' => '"e"')->{status}, 304, 'If-None-Match for a stale entry gets 304 after a validation';
    $origin->play('/weakrange', response(200, 'abcdefghij', %fresh, ETag => 'W/"e"'));
    get('/weakrange');
    is get('/weakrange', Range => 'bytes=2-4', 'If-Range' => 'W/"e"')->{status}, 200, 'If-Range with a weak ETag gets the whole response';
    $origin->play('/miss304', response(304, undef, ETag => '"e"'));
    is get('/miss304', 'If-None-Match' => '"e"')->{status}, 304, 'If-None-Match for a miss gets the 304 of the origin';
    is head_of(($origin->requests('/miss304'))[0])->{'if-none-match'}, '"e"', 'If-None-Match for a miss reaches the origin';

    # --- 4.3.5: HEAD ---
    $origin->play('/headsame', response(200, 'body', %stale, ETag => '"1"'), response(200, undef, %fresh, ETag => '"1"', 'Content-Length' => 4));
    get('/headsame');
    exchange(HEAD => '/headsame', 'Cache-Control' => 'no-cache');
    is get('/headsame')->{body}, 'body', 'a HEAD with the same ETag freshens the entry';
    is $origin->count('/headsame'), 2, 'an entry that a HEAD has freshened is served without the origin';
    $origin->play('/headother', response(200, 'body', %fresh, ETag => '"1"'), response(200, undef, %fresh, ETag => '"2"', 'Content-Length' => 4), response(200, 'new', %fresh));
    get('/headother');
    exchange(HEAD => '/headother', 'Cache-Control' => 'no-cache');
    is get('/headother')->{body}, 'new', 'a HEAD with another ETag invalidates the entry';

    # --- 4.4: invalidation ---
    for my $case ([POST => 200, 0], [PUT => 204, 0], [DELETE => 303, 0], [PROPFIND => 200, 0], [POST => 404, 1], [POST => 500, 1], [OPTIONS => 200, 1]) {
        my ($method, $status, $kept) = @$case;
        my $path = "/inv-$method-$status";
        $origin->play($path, response(200, 'x', %fresh), response($status, $status == 204 ? undef : 'done'), response(200, 'y', %fresh));
        get($path);
        exchange($method => $path, 'Content-Length' => 0);
        is get($path)->{body}, $kept ? 'x' : 'y', "$method with $status: the entry is " . ($kept ? 'not invalidated' : 'invalidated');
    }
    for my $case (['Location', '/inv-target', 0], ['Content-Location', $origin->url('/inv-target'), 0],
        ['Location', 'http://127.0.0.1:1/inv-target', 1], ['Location', '//127.0.0.1/inv-target', 1], ['Location', $origin->url('/inv-target') =~ s/127/u\@127/r, 1]) {
        my ($field, $value, $kept) = @$case;
        $origin->play('/inv-target', response(200, 'x', %fresh), response(200, 'y', %fresh));
        get('/inv-target', 'Cache-Control' => 'no-cache');
        $origin->play('/inv-source', response(201, 'made', $field => $value));
        exchange(POST => '/inv-source', 'Content-Length' => 0);
        is get('/inv-target')->{body}, $kept ? 'x' : 'y', "$field: $value: the entry is " . ($kept ? 'not invalidated' : 'invalidated');
    }

    # --- RFC 5861 ---
    $origin->play('/error', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=100', Age => 100, ETag => '"1"'), response(503, 'down'));
    get('/error');
    $response = get('/error');
    is "$response->{status} $response->{body}", '200 a', 'stale-if-error: the stale entry is served instead of a 503';
    like $response->field('Cache-Status'), qr/fwd=stale; fwd-status=503; ttl=-/, 'stale-if-error: Cache-Status has the 503';
    $origin->play('/error3', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=100, no-cache="x-check"', Age => 100, 'X-Check' => 'secret'), response(503, 'down'));
    get('/error3');
    $response = get('/error3');
    ok $response->{status} == 200 && !$response->has('X-Check'), 'stale-if-error: the stale entry is served without its no-cache field';
    $origin->play('/error2', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=10', Age => 100), response(503, 'down'));
    get('/error2');
    is get('/error2')->{status}, 503, 'stale-if-error with too short a time: the 503 is forwarded';
    is get('/error2', 'Cache-Control' => 'stale-if-error=1000')->{status}, 200, 'stale-if-error of the client allows the stale entry';
    $origin->play('/error3', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=1000, must-revalidate', Age => 100, ETag => '"1"'), response(503, 'down'));
    get('/error3');
    is get('/error3')->{status}, 503, 'must-revalidate overrides stale-if-error';
    $origin->play('/error4', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=1000', Age => 100, ETag => '"1"'), [\'']);
    get('/error4');
    is get('/error4')->{body}, 'a', 'stale-if-error: the stale entry is served when the origin breaks off';
    $origin->play('/error5', response(200, 'a', 'Cache-Control' => 'max-age=60, stale-if-error=1000', Age => 100, ETag => '"1"'), response(404, 'gone'));
    get('/error5');
    is get('/error5')->{status}, 404, 'stale-if-error does not cover a 404';
    $origin->play('/while', response(200, 'old', 'Cache-Control' => 'max-age=60, stale-while-revalidate=100', Age => 100, ETag => '"1"'), response(200, 'new', %fresh, ETag => '"2"'));
    get('/while');
    $response = get('/while');
    is $response->{body}, 'old', 'stale-while-revalidate: the stale entry is served at once';
    like $response->field('Cache-Status'), qr/^fork-vs-thread; hit; ttl=-/, 'stale-while-revalidate: Cache-Status says that the entry is stale';
    ok scalar until_true(sub { get('/while')->{body} eq 'new' }), 'stale-while-revalidate: the new response is stored in the background';
    is $origin->count('/while'), 2, 'stale-while-revalidate: the proxy requests the new response once';
    $origin->play('/while304', response(200, 'old', 'Cache-Control' => 'max-age=60, stale-while-revalidate=100', Age => 100, ETag => '"1"'),
        response(304, undef, %fresh, ETag => '"1"'));
    get('/while304');
    is get('/while304')->{body}, 'old', 'stale-while-revalidate: an unchanged entry is served at once';
    ok scalar until_true(sub { get('/while304')->field('Cache-Status') =~ /hit; ttl=\d/ }), 'stale-while-revalidate: an unchanged entry is fresh after the validation';
    $origin->play('/while2', response(200, 'old', 'Cache-Control' => 'max-age=60, stale-while-revalidate=100', Age => 100, ETag => '"1"'), response(500, 'no'));
    get('/while2');
    my $stays = $proxy->connect;
    is $stays->ask(request(GET => $origin->url('/while2')))->{body}, 'old', "stale-while-revalidate: one connection gets the stale entry again and again ($_)" for 1 .. 3;
    $stays->close;

    # --- an origin that has stopped ---
    my $closing = Origin->new;
    $closing->play('/x', response(200, 'x', %stale, ETag => '"1"'));
    $closing->play('/y', response(200, 'y', 'Cache-Control' => 'max-age=60, stale-if-error=1000', Age => 100));
    $closing->play('/z', response(200, 'z', %fresh));
    $proxy->get($closing->url($_)) for qw(/x /y /z);
    $closing->stop;
    is $proxy->get($closing->url('/x'))->{status}, 504, 'a stale entry of an origin that does not run gets 504';
    is $proxy->get($closing->url('/y'))->{body}, 'y', 'stale-if-error: a stale entry of an origin that does not run is served';
    is $proxy->get($closing->url('/z'))->{body}, 'z', 'a fresh entry of an origin that does not run is served';

    $proxy->stop(%few);
});

done_testing;

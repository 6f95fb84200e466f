#!/usr/bin/perl
# The rules of RFC 9111 and of those that it refers to (RFC 9110, 9211, 5861, 6585): the cases that proxy_cache.t does not
# have. No case waits: the origin gives its responses the age that a case needs.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields qw(cache_status %few);

my $origin = Origin->new;
my $proxy;
my $number = 0;

my %fresh = ('Cache-Control' => 'max-age=3600');
my %stale = ('Cache-Control' => 'max-age=3600', Age => 4000);
my @cache_only = ('Cache-Control' => 'only-if-cached, max-stale');

sub get ($path, @fields) { return $proxy->get($origin->url($path), @fields) }
sub exchange ($method, $path, @fields) { return scalar $proxy->exchange(request($method => $origin->url($path), Connection => 'close', @fields), $method) }
sub all_of ($response, $name) { return join ' | ', @{ $response->{fields}{ lc $name } // [] } }

# Returns a path that no other case uses, at which the origin sends these responses.
sub path_of (@responses) {
    my $path = '/rule' . ++$number;
    $origin->play($path, @responses);
    return $path;
}

# Returns the stored body for a request; '' if there is none.
sub stored ($path, @fields) {
    my $response = get($path, @fields, @cache_only);
    return $response->{status} == 504 ? '' : $response->{body};
}

# Tests whether the response to such a request is stored for requests without these fields.
sub is_stored ($name, $kept, $response, @request) {
    my $path = path_of($response, response(200, 'other', %fresh));
    get($path, @request);
    my $status = get($path, @cache_only)->{status};
    is $status == 504 ? 0 : 1, $kept, "$name: " . ($kept ? 'stored' : 'not stored');
}

# Returns the head of the last request that the origin got for the path.
sub last_request ($path) { return head_of(($origin->requests($path))[-1]) }

sub test_storing () {
    my $response = response(200, 'x', %fresh);
    for my $case ([412 => 'If-Match' => '"z"'], [416 => Range => 'bytes=9-'], [417 => 'X-Any' => 1], [408], [407], [413], [421], [425], [426], [428], [429], [431], [511]) {
        my ($status, @request) = @$case;
        is_stored("status $status", 0, response($status, 'x', 'Cache-Control' => 'public, max-age=3600'), @request);
    }
    is_stored('status 451', 1, response(451, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_stored('an unknown status, 299, with max-age', 1, response(299, 'x', %fresh));
    is_stored('an unknown status with Last-Modified alone', 0, response(299, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_stored('an unknown status with no-store and must-understand', 0, response(299, 'x', 'Cache-Control' => 'max-age=3600, no-store, must-understand'));
    is_stored('a 200 to a request with If-None-Match', 1, $response, 'If-None-Match' => '"z"');
    is_stored('a 200 to a request with Range', 1, $response, Range => 'bytes=0-0');
    is_stored('a 206 to a request with Range', 0, response(206, 'x', %fresh, 'Content-Range' => 'bytes 0-0/9'), Range => 'bytes=0-0');
    is_stored('a 206 to a request without Range', 0, response(206, 'x', %fresh, 'Content-Range' => 'bytes 0-0/9'));
    is_stored('a 304 to a request with If-None-Match', 0, response(304, undef, %fresh, ETag => '"z"'), 'If-None-Match' => '"z"');
    is_stored("Authorization and $_", 0, response(200, 'x', 'Cache-Control' => "max-age=3600, $_"), Authorization => 'Basic eA==')
        for qw(proxy-revalidate no-transform must-understand no-cache);
    is_stored('a response whose Connection names Cache-Control', 0, response(200, 'x', %fresh, Connection => 'Cache-Control', 'Last-Modified' => http_date(time - 100_000)));
    is_stored('a response with a malformed Vary', 0, response(200, 'x', %fresh, Vary => 'a b'));
    is_stored('a response to GET with a body', 0, $response, 'Content-Length' => 1, body => 'b');
    my $path = path_of(response(200, undef, %fresh, 'Content-Length' => 5), $response);
    exchange(HEAD => $path);
    is stored($path), '', 'a response to HEAD is not stored as a response to GET';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache="Content-Type"', 'Content-Type' => 'text/odd'));
    get($path);
    ok !get($path)->has('Content-Type'), 'no-cache="Content-Type": a hit does not have the field';
    $path = path_of(response(200, 'x', %fresh, Connection => 'x-hop', 'X-Hop' => 1, 'Keep-Alive' => 'x', 'Proxy-Authenticate' => 'Basic realm=x', 'X-New' => 'kept'));
    get($path);
    my $hit = get($path);
    ok !$hit->has($_), "$_ is not stored" for qw(X-Hop Keep-Alive Proxy-Authenticate);
    is $hit->field('X-New'), 'kept', 'an unknown field is stored';
}

sub test_vary () {
    my @vary = (%fresh, Vary => 'X-Kind');
    my $path = path_of(response(200, 'none', @vary), response(200, 'a', @vary));
    get($path, 'X-Kind' => 'a', Connection => 'close, x-kind');
    ok !exists last_request($path)->{'x-kind'}, 'a field that Connection names does not reach the origin';
    is get($path, 'X-Kind' => 'a')->{body}, 'a', 'Vary: a field that Connection names does not count when the response is stored';
    is get($path)->{body}, 'none', 'Vary: that response is used for requests without the field';
    is get($path, 'X-Kind' => 'a', Connection => 'close, x-kind')->{body}, 'none', 'Vary: that response is used for requests whose Connection names the field';
    is $origin->count($path), 2, 'Vary: those requests do not reach the origin';
    $path = path_of(response(200, 'first', @vary), response(200, 'second', @vary));
    get($path, 'X-Kind' => 'a,b');
    is get($path, 'X-Kind' => 'a, b')->{body}, 'second', 'Vary: a field that is not known to be a list must match with its blanks';
    $path = path_of(response(200, 'first', %fresh, Vary => 'Accept-Language'));
    get($path, 'Accept-Language' => 'de,en');
    is get($path, 'Accept-Language' => 'de ,  en')->{body}, 'first', 'Vary: a field that is a list matches whatever its blanks';
    is $origin->count($path), 1, 'Vary: a list with other blanks does not reach the origin';
    $path = path_of(response(200, 'a', @vary), response(200, 'b', @vary), response(200, 'c', %fresh, Vary => 'X-Other'));
    get($path, 'X-Kind' => $_) for qw(a b c);
    is get($path, 'X-Other' => '', 'X-Kind' => 'a')->{body}, 'c', 'Vary: the Vary of the newest response counts';
    my @often = (%fresh, Vary => 'X-Long, x-long, X-LONG, X-Long, X-Kind');
    my @long  = ('X-Long' => 'x' x 3000);
    $path = path_of(response(200, 'first', @often), response(200, 'second', @often));
    get($path, @long, 'X-Kind' => 'a');
    is get($path, @long, 'X-Kind' => 'b')->{body}, 'second', 'Vary: a name that is repeated does not hide the names after it';
    $path = path_of(response(200, 'a', @vary), response(200, 'second', %fresh));
    get($path, 'X-Kind' => 'a');
    is get($path)->{body}, 'second', 'Vary: a missing field does not match one that is present';
    is cache_status(get($path, 'X-Kind' => 'a')), 'hit', 'Vary: a newer response without Vary is used for all requests';
}

sub test_freshness () {
    for my $case (['30, 50' => 30], ['30' => 30], ['x' => 0], ['-5' => 0], ['"30"' => 0], ['5.5' => 0], ['2147483648' => 2147483648], ['99999999999999999999' => 2147483648]) {
        my ($age, $least) = @$case;
        my $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=99999999999', Age => $age));
        get($path);
        my $told = get($path, @cache_only)->field('Age');
        ok $told >= $least && $told <= $least + 1000 && $told <= 2147483648, "Age: $age: a hit has at least $least ($told)";
    }
    my $path = path_of([response(200, 'x', %fresh, Age => 20)->[0] =~ s/\r\n\r\n/\r\nAge: 3000\r\n\r\n/r]);
    get($path);
    my $told = get($path)->field('Age');
    ok $told >= 20 && $told < 2000, "two Age fields: the first counts ($told)";
    my $once = path_of(response(200, 'x', %fresh, Date => http_date(time + 1000)));
    get($once);
    cmp_ok get($once)->field('Age'), '<', 900, 'a Date in the future does not change the age';
    $path = path_of([response(200, 'x', 'Cache-Control' => 'max-age=3600')->[0] =~ s/Date: [^\r]*\r\n//r]);
    my $first = get($path);
    like $first->field('Date'), qr/GMT\z/, 'a response without Date gets one';
    is get($path)->field('Date'), $first->field('Date'), 'a response without Date: a hit has the Date that the proxy added';
    is cache_status(get($path)), 'hit', 'a response without Date is stored';
    for my $case (['max-age="3600"', 1], ['max-age=3600, max-age=3600', 1], ['max-age=3600, max-age=70', 0], ['max-age=70, max-age="3600"', 0], ['max-age=99999999999999999999', 1],
        ['MAX-AGE=3600', 1], ['max-age=3600 ,', 1], ['max-age', 0], ['max-age=', 0], ['s-maxage=3600', 1], ['max-age=3600, s-maxage=x', 0]) {
        my ($said, $used) = @$case;
        my $path = path_of(response(200, 'first', 'Cache-Control' => $said), response(200, 'second', %fresh));
        get($path);
        is get($path)->{body}, $used ? 'first' : 'second', "$said: " . ($used ? 'fresh' : 'stale');
    }
    my $soon = http_date(time + 1000);
    for my $case (['0', 0], ['-1', 0], ['', 0], ['tomorrow', 0], [$soon =~ s/GMT/PST/r, 0], [$soon, 1], [lc $soon, 1], [http_date(time + 1000, 'rfc850'), 1], [http_date(time + 1000, 'asctime'), 1]) {
        my ($expires, $used) = @$case;
        my $path = path_of(response(200, 'first', Expires => $expires, 'Last-Modified' => http_date(time - 1_000_000)), response(200, 'second', %fresh));
        get($path);
        is get($path)->{body}, $used ? 'first' : 'second', "Expires: $expires: " . ($used ? 'fresh' : 'stale');
    }
    for my $case ([10_000, 500, 1], [10_000, 1100, 0], [-1000, 0, 0], [100_000_000, 80_000, 1], [100_000_000, 86_500, 0]) {
        my ($unchanged, $age, $used) = @$case;
        my $date = time - $age;
        my $path = path_of(response(200, 'first', Date => http_date($date), 'Last-Modified' => http_date($date - $unchanged)), response(200, 'second', %fresh));
        get($path);
        is get($path)->{body}, $used ? 'first' : 'second', "Last-Modified $unchanged s before Date, age $age s: " . ($used ? 'fresh' : 'stale');
    }
}

sub test_request_directives () {
    my $path = path_of(response(200, 'x', %fresh));
    is exchange(POST => $path, 'Content-Length' => 0, 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: POST gets 504';
    is get($path, 'Cache-Control' => 'only-if-cached', 'If-Match' => '"e"')->{status}, 504, 'only-if-cached: a request with If-Match gets 504';
    is exchange(HEAD => $path, 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: HEAD of a miss gets 504';
    is $origin->count($path), 0, 'only-if-cached: no request reaches the origin';
    get($path);
    is exchange(HEAD => $path, 'Cache-Control' => 'only-if-cached')->{status}, 200, 'only-if-cached: HEAD of an entry gets 200';
    is get($path, 'Cache-Control' => 'only-if-cached, no-cache')->{status}, 504, 'only-if-cached with no-cache gets 504';
    is get($path, Pragma => 'no-cache', 'Cache-Control' => 'max-age=3600')->{body}, 'x', 'Pragma does not count if there is Cache-Control';
    is $origin->count($path), 1, 'only-if-cached and Pragma: only the first GET reaches the origin';
    for my $case ([504 => 'max-stale, max-stale=2000'], [504 => 'max-stale=10'], [504 => 'max-stale=x'], [200 => 'max-stale=2000'], [504 => 'max-stale=5, max-stale=2000'], [504 => 'max-stale, max-age=10'],
        [200 => 'max-stale, max-age=9000'], [504 => 'max-stale, min-fresh=1'], [504 => 'max-stale, max-age=0'], [504 => 'max-stale, no-cache']) {
        my ($status, $said) = @$case;
        my $path = path_of(response(200, 'x', %stale));
        get($path);
        is get($path, 'Cache-Control' => "only-if-cached, $said")->{status}, $status, "an entry that has been stale for 400 s, $said: $status";
    }
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache="x-a"', Age => 4000, 'X-A' => 1, 'X-B' => 2));
    get($path);
    my $response = get($path, @cache_only);
    is $response->{status} . all_of($response, 'X-A') . all_of($response, 'X-B'), '2002', 'no-cache="x-a": a stale entry is served without that field';
    for my $said ('must-revalidate', 'proxy-revalidate', 's-maxage=3600', 'no-cache') {
        my $path = path_of(response(200, 'x', 'Cache-Control' => "max-age=3600, stale-while-revalidate=1000, stale-if-error=1000, $said", Age => 4000, ETag => '"1"'), response(503, 'down'));
        get($path);
        is get($path, @cache_only)->{status}, 504, "$said: no stale entry for max-stale of the client";
        is get($path)->{status}, 503, "$said: no stale entry for stale-while-revalidate and stale-if-error of the origin";
        is get($path, 'Cache-Control' => 'stale-if-error=1000')->{status}, 503, "$said: no stale entry for stale-if-error of the client";
    }
}

sub test_validation () {
    my $modified = http_date(time - 86_400);
    my $path     = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
    get($path);
    my $response = get($path);
    is cache_status($response), 'fwd=stale; fwd-status=304', 'a validated entry: Cache-Status says stale and 304';
    ok !$response->has('Age'), 'a validated entry has no Age in the response to the validation';
    ok get($path)->has('Age'), 'a validated entry has Age in the next response';
    $path = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"', Age => 20));
    get($path);
    cmp_ok get($path)->field('Age'), '>=', 20, 'an entry that another cache has validated has the Age of the 304';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache', ETag => '"1"'), response(304, undef, ETag => '"1"'));
    get($path);
    is cache_status(get($path)), 'fwd=stale; fwd-status=304', 'an entry with no-cache: Cache-Status says stale';
    is cache_status(get($path, 'Cache-Control' => 'no-cache')), 'fwd=stale; fwd-status=304', 'an entry with no-cache and a request with no-cache: Cache-Status says stale';

    for my $case (
        # validators of the entry, validators of the 304, whether the 304 validates the entry
        [[ETag => '"1"'], [ETag => '"1"'], 1], [[ETag => '"1"'], [ETag => 'W/"1"'], 1], [[ETag => 'W/"1"'], [ETag => '"1"'], 0], [[ETag => 'W/"1"'], [ETag => 'W/"1"'], 1],
        [[ETag => '"1"'], ['Last-Modified' => $modified], 0], [[ETag => '"1"', 'Last-Modified' => $modified], ['Last-Modified' => $modified], 1],
        [['Last-Modified' => $modified], ['Last-Modified' => $modified], 1], [['Last-Modified' => $modified], [ETag => '"1"'], 0],
        [['Last-Modified' => $modified], [ETag => 'W/"1"', 'Last-Modified' => $modified], 1], [['Last-Modified' => $modified], ['Last-Modified' => http_date(time - 90_000)], 0],
        [[ETag => '"1"'], [], 1]) {
        my ($old, $new, $meant) = @$case;
        my $path = path_of(response(200, 'old', %stale, @$old), response(304, undef, %fresh, @$new), response(200, 'new', %fresh));
        get($path);
        is get($path)->{body}, $meant ? 'old' : 'new', "stored: @$old, 304: @$new: " . ($meant ? 'validated' : 'fetched again');
        is $origin->count($path), $meant ? 2 : 3, "stored: @$old, 304: @$new: the origin gets " . ($meant ? 2 : 3) . ' requests';
    }
    $path = path_of(response(200, 'old', %stale, ETag => '*'), response(200, 'new', %fresh));
    get($path);
    is get($path)->{body}, 'new', 'an entry with a malformed ETag is fetched again';
    ok !exists last_request($path)->{'if-none-match'}, 'a malformed ETag is not sent in a validation';
    $path = path_of(response(304, undef, %fresh, ETag => '"1"'), response(200, 'x', %fresh));
    is get($path)->{status}, 502, 'a 304 to a request without conditions gets 502';
    is get($path)->{body}, 'x', 'a 304 to a request without conditions is not stored';
    $path = path_of(response(200, 'old', %stale, ETag => '"1"'), response(304, undef, ETag => '"2"'));
    get($path);
    is get($path)->{status}, 502, 'a second 304 with another ETag gets 502';

    # Which fields of a 304 update the entry
    $path = path_of(
        response(200, 'body', %stale, ETag => '"1"', 'Content-Encoding' => 'x-a', 'X-Old' => 'o', 'X-Both' => 'o', 'Set-Cookie' => 'a=b', 'Keep-Alive' => 'x', 'Content-Language' => 'de'),
        response(304, undef, 'Cache-Control' => 'max-age=3000, private="set-cookie, x-mine"', ETag => '"1"', 'Content-Encoding' => 'x-b', 'Content-Length' => 99, 'Content-Range' => 'bytes 0-1/2',
            'X-Both' => 'n', 'X-New' => 'n', 'Set-Cookie' => 'c=d', 'X-Mine' => 'n', Connection => 'x-hop', 'X-Hop' => 'n', 'Proxy-Authenticate' => 'x'));
    get($path);
    for my $response (get($path), get($path)) {
        my $from = cache_status($response) eq 'hit' ? 'from the cache' : 'validated';
        is join(',', map { all_of($response, $_) } qw(Content-Encoding X-Old X-Both X-New Content-Length Cache-Control)), 'x-a,o,n,n,4,max-age=3000, private="set-cookie, x-mine"', "an entry after a 304, $from: the fields are updated";
        ok !$response->has($_), "an entry after a 304, $from: there is no $_" for qw(Set-Cookie X-Mine X-Hop Content-Range Proxy-Authenticate Keep-Alive);
    }
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, private="x-mine"', Age => 4000, ETag => '"1"', 'X-Mine' => 'a'), response(304, undef, ETag => '"1"', 'X-Mine' => 'b'));
    get($path);
    get($path);
    ok !get($path)->has('X-Mine'), 'a field that the entry names private is not updated by a 304';
    $path = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, ETag => '"1"', 'Cache-Control' => 'no-store'), response(200, 'y', %fresh));
    get($path);
    is get($path)->{body}, 'x', 'a 304 with no-store: the entry is used';
    is stored($path), '', 'a 304 with no-store: the entry is removed';

    # A request with credentials does not remove an entry that others may use.
    my @mine = (Authorization => 'Basic eA==');
    for my $response (response(304, undef, ETag => '"1"'), response(401, 'no', 'WWW-Authenticate' => 'Basic realm=x'), response(200, 'mine', 'Cache-Control' => 'private')) {
        my ($status) = $response->[0] =~ / (\d+)/;
        my $path = path_of(response(200, 'for all', %stale, ETag => '"1"'), $response);
        get($path);
        is get($path, @mine)->{status}, $status == 304 ? 200 : $status, "a request with credentials, and $status of the origin: the client gets it";
        is stored($path), 'for all', "a request with credentials, and $status of the origin: the entry stays";
    }
    for my $response (response(416, 'no', 'Content-Range' => 'bytes */3'), response(206, 'o', 'Content-Range' => 'bytes 1-1/3')) {
        my ($status) = $response->[0] =~ / (\d+)/;
        my $path = path_of(response(200, 'all', %fresh), $response);
        get($path);
        is get($path, Range => 'bytes=1-1', 'Cache-Control' => 'no-cache')->{status}, $status, "Range with no-cache: the client gets the $status of the origin";
        is stored($path), 'all', "Range with no-cache: the entry stays after a $status";
    }
}

sub test_conditions () {
    my $modified = http_date(time - 86_400);
    my $path     = path_of(response(200, 'abcdefghij', %fresh, ETag => 'W/"e"', 'Last-Modified' => $modified, 'Content-Type' => 'text/odd', 'Content-Encoding' => 'x-a',
            Expires => http_date(time + 1000), Vary => 'X-A', 'Content-Location' => '/l'));
    get($path);
    for my $case ([304, 'If-None-Match' => '"x", W/"e"'], [304, 'If-None-Match' => '"e"'], [200, 'If-None-Match' => '"x"'], [304, 'If-None-Match' => '"x"', 'If-None-Match' => '"e"'],
        [200, 'If-None-Match' => '"x"', 'If-Modified-Since' => $modified], [304, 'If-Modified-Since' => lc $modified], [200, 'If-Modified-Since' => 'yesterday'],
        [200, 'If-Modified-Since' => $modified, 'If-Modified-Since' => $modified], [304, 'If-Modified-Since' => http_date(time)], [304, 'If-None-Match' => '*', Range => 'bytes=50-'],
        [200, Range => 'bytes=0-1', 'If-Range' => '"e"'], [200, Range => 'bytes=0-1', 'If-Range' => 'W/"e"'], [206, Range => 'bytes=0-1', 'If-Range' => $modified],
        [200, Range => 'bytes=0-1', 'If-Range' => http_date(time - 80_000)], [200, Range => 'bytes=0-1', 'If-Range' => '*'], [200, 'If-Range' => '"e"'],
        [206, Range => 'bytes=0-1', 'If-None-Match' => '"x"'], [416, Range => 'bytes=50-'], [200, Range => 'bytes=50-', 'If-Range' => '"x"'], [206, Range => 'bytes=0-500'],
        [200, Range => 'bytes=5-1'], [200, Range => 'bytes=0-1', Range => 'bytes=2-3'], [206, Range => 'BYTES=0-1'], [206, Range => 'bytes=-500'], [416, Range => 'bytes=-0']) {
        my ($status, @fields) = @$case;
        is get($path, @fields)->{status}, $status, "an entry, @fields: $status";
    }
    my $response = get($path, 'If-None-Match' => '*');
    is all_of($response, $_) ne '', 1, "a 304 has $_" for qw(Cache-Control Content-Location Date ETag Expires Vary Age Via Cache-Status);
    ok !$response->has($_), "a 304 has no $_" for qw(Content-Type Content-Encoding Content-Length);
    $response = get($path, Range => 'bytes=0-1');
    is all_of($response, $_) ne '', 1, "a 206 has $_" for qw(Cache-Control Content-Location Date ETag Expires Vary Content-Range Content-Encoding);
    $response = get($path, Range => 'bytes=50-');
    is $response->field('Content-Range'), 'bytes */10', 'a 416 has the length of the entry';
    ok !$response->has($_), "a 416 has no $_ of the entry" for qw(ETag Cache-Control Content-Encoding Expires);
    $response = exchange(HEAD => $path, Range => 'bytes=0-1');
    is "$response->{status} " . $response->field('Content-Length'), '200 10', 'HEAD with a Range gets 200';
    is exchange(HEAD => $path, 'If-None-Match' => '"e"')->{status}, 304, 'HEAD with If-None-Match gets 304';
    is $origin->count($path), 1, 'conditions and ranges of a fresh entry do not reach the origin';
    $path = path_of(response(200, 'x', %fresh, Date => http_date(time - 10)));
    get($path);
    is get($path, 'If-Modified-Since' => http_date(time))->{status}, 304, 'an entry without Last-Modified: If-Modified-Since is compared with Date, and gets 304';
    is get($path, 'If-Modified-Since' => http_date(time - 10_000))->{status}, 200, 'an entry without Last-Modified: If-Modified-Since is compared with Date, and gets 200';
    is get($path, 'If-None-Match' => '"x"')->{status}, 200, 'an entry without ETag: If-None-Match with a tag gets 200';
    is get($path, 'If-None-Match' => '*')->{status}, 304, 'an entry without ETag: If-None-Match: * gets 304';
    is $origin->count($path), 1, 'an entry without validators: conditions do not reach the origin';
    $path = path_of(response(404, 'gone', %fresh, ETag => '"e"'));
    get($path);
    is get($path, @$_)->{status}, 404, "a stored 404 ignores $_->[0]" for ['If-None-Match' => '"e"'], [Range => 'bytes=0-0'], ['If-Modified-Since' => http_date(time)];
    is $origin->count($path), 1, 'a stored 404 is served without the origin';

    $path = path_of(response(203, 'abc', %fresh, ETag => '"e"'));
    get($path);
    is get($path, 'If-None-Match' => '"e"')->{status}, 304, 'a stored 203 with If-None-Match gets 304';
    is get($path, Range => 'bytes=0-0')->{status}, 203, 'a stored 203 ignores Range';

    # Conditions and ranges of a miss are forwarded.
    $path = path_of(response(412, 'no'));
    is get($path, 'If-Match' => '"a"', 'If-Unmodified-Since' => $modified)->{status}, 412, 'a miss with If-Match gets the 412 of the origin';
    is join(',', map { last_request($path)->{$_} // '' } qw(if-match if-unmodified-since)), "\"a\",$modified", 'a miss with If-Match: the conditions reach the origin';
    $path = path_of(response(206, 'b', 'Content-Range' => 'bytes 1-1/3', %fresh));
    my @part = (Range => 'bytes=1-1', 'If-Range' => '"r"');
    is get($path, @part)->{status}, 206, 'a miss with Range gets the 206 of the origin';
    is join(',', map { last_request($path)->{$_} // '' } qw(range if-range)), 'bytes=1-1,"r"', 'a miss with Range: Range and If-Range reach the origin';
    is get($path, @part)->{status}, 206, 'a second miss with Range gets the 206 of the origin';
    is $origin->count($path), 2, 'a 206 is not stored';

    # Several ranges of entries with different Content-Types
    for my $type (undef, 'text/odd', 'text/odd; x=' . 'y' x 500) {
        my $path = path_of(response(200, join('', 1000 .. 2000), %fresh, 'Content-Type' => $type));
        get($path);
        my ($first, $second) = $proxy->exchange(request(GET => $origin->url($path), Range => 'bytes=0-3,2000-2003') . request(GET => $origin->url($path), Connection => 'close'));
        my $long = length($type // '') > 200;
        is $first->{status}, $long ? 200 : 206, 'several ranges of an entry ' . (!defined $type ? 'without Content-Type get 206' : $long ? 'with a Content-Type longer than the parts get the whole entry' : 'with Content-Type get 206');
        is_deeply [map { [$_->[0]{'content-type'}, $_->[1]] } parse_parts($first)], [[$type, '1000'], [$type, '1500']], 'several ranges: each part has its bytes and Content-Type' if !$long;
        is length $second->{body}, 4004, 'several ranges: the next response on the connection is right';
    }
}

# stale-while-revalidate, for a request with a condition or a range: the proxy validates the entry before it responds, and uses
# the stale entry if the origin fails.
sub test_revalidation_of_parts () {
    my @while = ('Cache-Control' => 'max-age=3600, stale-while-revalidate=100000', Age => 4000, ETag => '"1"');
    for my $case ([304, 'If-None-Match' => '"1"'], [206, Range => 'bytes=0-0']) {
        my ($status, @fields) = @$case;
        my $path = path_of(response(200, 'old', @while), response(304, undef, %fresh, ETag => '"1"'));
        get($path);
        is cache_status(get($path, @fields)), 'fwd=stale; fwd-status=304', "stale-while-revalidate, @fields: the entry is validated";
        like all_of(get($path), 'Cache-Status'), qr/hit; ttl=\d/, "stale-while-revalidate, @fields: the entry is fresh for others";
        for my $failure (response(503, 'down'), [\''], ['']) {
            my $path = path_of(response(200, 'old', @while), $failure);
            get($path);
            is get($path, @fields)->{status}, $status, "stale-while-revalidate, @fields: the stale entry is used when the origin fails";
        }
        $path = path_of(response(200, 'old', @while), response(200, 'new', %fresh, ETag => '"2"'));
        get($path);
        is get($path, @fields)->{body}, 'new', "stale-while-revalidate, @fields: a new response of the origin is forwarded";
    }
}

sub test_head () {
    my @head = (ETag => '"1"', 'Content-Length' => 4);
    for my $case (
        ['the same', 'body', response(200, undef, %fresh, @head)], ['another ETag', '', response(200, undef, %fresh, ETag => '"2"', 'Content-Length' => 4)],
        ['another length', '', response(200, undef, %fresh, ETag => '"1"', 'Content-Length' => 5)], ['404', '', response(404, undef, 'Content-Length' => 4)],
        ['no-store', '', response(200, undef, @head, 'Cache-Control' => 'no-store')], ['503', 'body', response(503, undef, 'Content-Length' => 4)], ['no validators', 'body', response(200, undef)]) {
        my ($name, $left, $response) = @$case;
        my $path = path_of(response(200, 'body', %fresh, ETag => '"1"'), $response);
        get($path);
        exchange(HEAD => $path, 'Cache-Control' => 'no-cache');
        is stored($path), $left, "HEAD gets $name: the entry " . ($left ? 'stays' : 'is invalidated');
    }
    my $path = path_of(response(404, 'none', %fresh), response(200, undef, %fresh, 'Content-Length' => 4), response(200, 'here', %fresh));
    get($path);
    exchange(HEAD => $path, 'Cache-Control' => 'no-cache');
    is get($path)->{body}, 'here', 'HEAD gets 200: a stored 404 is invalidated';
    $path = path_of(response(200, 'body', %fresh, ETag => '"1"', 'X-A' => 1), response(200, undef, %fresh, @head, 'X-A' => 2));
    get($path);
    exchange(HEAD => $path, 'Cache-Control' => 'no-cache');
    is get($path)->field('X-A'), 2, 'HEAD gets new fields: the entry is updated';
    exchange(HEAD => $path, 'Cache-Control' => 'no-cache, no-store');
    is stored($path), 'body', 'HEAD with no-store: the entry stays';
    $path = path_of(response(200, 'body', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
    get($path);
    my $response = exchange(HEAD => $path);
    is "$response->{status} " . $response->field('Content-Length'), '200 4', 'HEAD of a stale entry: the entry is validated';
    is cache_status(get($path)), 'hit', 'HEAD of a stale entry: the entry is fresh for GET';
}

sub test_invalidation () {
    for my $case ([POST => 201, 0], [PATCH => 200, 0], [LOCK => 200, 0], [POST => 302, 0], [POST => 400, 1], [DELETE => 412, 1], [PUT => 503, 1], [OPTIONS => 204, 1], [HEAD => 200, 1]) {
        my ($method, $status, $kept) = @$case;
        my $path = path_of(response(200, 'x', %fresh), response($status, $status == 204 || $method eq 'HEAD' ? undef : 'done'));
        get($path);
        exchange($method => $path, $method eq 'HEAD' ? ('Cache-Control' => 'no-cache') : ('Content-Length' => 0));
        is stored($path), $kept ? 'x' : '', "$method, $status: the entry " . ($kept ? 'stays' : 'is invalidated');
    }
    my $path = path_of(response(200, 'a', %fresh, Vary => 'X-Kind'), response(200, 'b', %fresh, Vary => 'X-Kind'), response(204, undef));
    get($path, 'X-Kind' => $_) for qw(a b);
    exchange(POST => $path, 'Content-Length' => 0, 'X-Kind' => 'a');
    is join(',', map { stored($path, 'X-Kind' => $_) } qw(a b)), ',', 'POST invalidates all variants of a target';
    my $here = '127.0.0.1:' . $origin->port;
    for my $case (['Content-Location', sub ($to) { $to }, 0], ['Location', sub ($to) { $origin->url("$to#part") }, 0], ['Location', sub ($to) { "http://127.0.0.2:" . $origin->port . $to }, 1],
        ['Location', sub ($to) { "https://$here$to" }, 1], ['Location', sub ($to) { "http://$here.example$to" }, 1], ['Content-Location', sub ($to) { "//$here$to" }, 0],
        ['Location', sub ($to) { "HTTP://$here$to" }, 0], ['Location', sub ($to) { "//$here.example$to" }, 1], ['Location', sub ($to) { "http://127.0.0.1$to" }, 1], ['Location', sub ($to) { "http:$to" }, 1],
        ['Location', sub ($to) { 'http:/' }, 1], ['Content-Location', sub ($to) { '' }, 1], ['Content-Location', sub ($to) { "http://$here" }, 1]) {
        my ($field, $form, $kept) = @$case;
        my $target = path_of(response(200, 'x', %fresh));
        get($target);
        my $named = $form->($target);
        exchange(POST => path_of(response(201, 'made', $field => $named)), 'Content-Length' => 0);
        is stored($target), $kept ? 'x' : '', "$field: $named: the entry there " . ($kept ? 'stays' : 'is invalidated');
        next if $kept;
        get($target);
        exchange(POST => path_of(response(409, 'no', $field => $named)), 'Content-Length' => 0);
        is stored($target), 'x', "$field: $named: the entry there stays after a 409";
        get(path_of(response(200, 'safe', $field => $named)));
        is stored($target), 'x', "$field: $named: the entry there stays after a GET";
    }
}

sub test_cache_status () {
    my $odd = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, odd="a, b", no-transform, public', Pragma => 'no-cache', Expires => '0', Warning => '214 - "x"'));
    my %said = map { $_ => all_of(get($odd), $_) } qw(Cache-Control Pragma Expires Warning);
    is cache_status(get($odd, 'Cache-Control' => 'odd, max-age=100', Pragma => 'x')), 'hit', 'unknown directives, and Pragma of a response, are ignored';
    is "@said{qw(Cache-Control Pragma Expires Warning)}", 'max-age=3600, odd="a, b", no-transform, public no-cache 0 214 - "x"', 'unknown directives, Pragma, Expires and Warning of the origin are forwarded';
    get($odd, 'Cache-Control' => 'odd="a, b", no-cache, stale-if-error=5', Pragma => 'x');
    is last_request($odd)->{$_->[0]}, $_->[1], "$_->[0] of the request is forwarded" for ['cache-control', 'odd="a, b", no-cache, stale-if-error=5'], ['pragma', 'x'];

    my $path = path_of(response(200, 'x', %fresh, 'Cache-Status' => 'inner; hit'));
    is all_of(get($path), 'Cache-Status'), 'inner; hit | fork-vs-thread; fwd=uri-miss; fwd-status=200; stored', 'Cache-Status follows that of the origin';
    like all_of(get($path), 'Cache-Status'), qr/^inner; hit \| fork-vs-thread; hit; ttl=\d+\z/, 'Cache-Status of a hit follows that of the origin';
    is cache_status(get($path, 'Cache-Control' => 'no-cache')), 'inner; hit | fork-vs-thread; fwd=request; fwd-status=200; stored', 'Cache-Status of a request with no-cache for a fresh entry says request';
    is cache_status(get($path, 'Cache-Control' => 'no-store, max-age=0')), 'inner; hit | fork-vs-thread; fwd=request; fwd-status=200', 'Cache-Status of a request with no-store does not say stored';
    $path = path_of(response(200, 'x', %stale));
    get($path);
    is cache_status(get($path)), 'fwd=stale; fwd-status=200; stored', 'Cache-Status of a stale entry says stale';
    like all_of(get($path, 'Cache-Control' => 'max-stale'), 'Cache-Status'), qr/^fork-vs-thread; hit; ttl=-[4-9]\d\d\z/, 'Cache-Status of a stale hit has a negative ttl';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'no-store'));
    is cache_status(exchange(POST => $path, 'Content-Length' => 0)), 'fwd=method; fwd-status=200', 'Cache-Status of a POST says method';
    is cache_status(get($path)), 'fwd=uri-miss; fwd-status=200', 'Cache-Status of a miss that is not stored says uri-miss';
}

each_server(sub ($model) {
    my $directory = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$directory/cache"]);
    test_storing();
    test_vary();
    test_freshness();
    test_request_directives();
    test_validation();
    test_conditions();
    test_revalidation_of_parts();
    test_head();
    test_invalidation();
    test_cache_status();
    $proxy->stop(%few);
});

done_testing;

#!/usr/bin/perl
# RFC 9111 sentence by sentence, with what it refers to (RFC 9110, 9211, 5861, 6585): the cases that proxy_cache.t does not
# have. No case waits for the clock: the origin gives its responses the age that a case needs.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;

my $origin = Origin->new;
my $proxy;
my $number = 0;

my %fresh = ('Cache-Control' => 'max-age=3600');
my %stale = ('Cache-Control' => 'max-age=3600', Age => 4000);
my @nobody_else = ('Cache-Control' => 'only-if-cached, max-stale');

sub get ($path, @fields) { return $proxy->get($origin->url($path), @fields) }
sub send_it ($method, $path, @fields) { return scalar $proxy->exchange(request($method => $origin->url($path), Connection => 'close', @fields), $method) }
sub all_of ($response, $name) { return join ' | ', @{ $response->{fields}{ lc $name } // [] } }
sub status_of ($response) { return all_of($response, 'Cache-Status') =~ s/^fork-vs-thread; //r =~ s/; ttl=.*//r }

# A path that no other case has; the origin answers there with these.
sub path_of (@responses) {
    my $path = '/rule' . ++$number;
    $origin->play($path, @responses);
    return $path;
}

# Returns the body that the cache has for a request, or nothing.
sub stored ($path, @fields) {
    my $response = get($path, @fields, @nobody_else);
    return $response->{status} == 504 ? '' : $response->{body};
}

# Returns true if the response to such a request is stored for requests without these fields.
sub is_for_all ($name, $kept, $response, @request) {
    my $path = path_of($response, response(200, 'other', %fresh));
    get($path, @request);
    my $status = get($path, @nobody_else)->{status};
    is $status == 504 ? 0 : 1, $kept, "$name: " . ($kept ? 'stored' : 'not stored');
}

# The request by which the origin was asked at last.
sub asked ($path) { return head_of(($origin->requests($path))[-1]) }

sub storing () {
    my $response = response(200, 'x', %fresh);
    for my $case ([412 => 'If-Match' => '"z"'], [416 => Range => 'bytes=9-'], [417 => 'X-Any' => 1], [408], [407], [413], [421], [425], [426], [428], [429], [431], [511]) {
        my ($status, @request) = @$case;
        is_for_all("status $status", 0, response($status, 'x', 'Cache-Control' => 'public, max-age=3600'), @request);
    }
    is_for_all('status 451', 1, response(451, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_for_all('status 299, which nobody knows, with max-age', 1, response(299, 'x', %fresh));
    is_for_all('such a status with Last-Modified alone', 0, response(299, 'x', 'Last-Modified' => http_date(time - 10_000)));
    is_for_all('no-store and must-understand', 0, response(299, 'x', 'Cache-Control' => 'max-age=3600, no-store, must-understand'));
    is_for_all('a condition that the client has made', 1, $response, 'If-None-Match' => '"z"');
    is_for_all('a whole to a request with Range', 1, $response, Range => 'bytes=0-0');
    is_for_all('a part', 0, response(206, 'x', %fresh, 'Content-Range' => 'bytes 0-0/9'), Range => 'bytes=0-0');
    is_for_all('a part that nobody has asked for', 0, response(206, 'x', %fresh, 'Content-Range' => 'bytes 0-0/9'));
    is_for_all('304 to a condition of the client', 0, response(304, undef, %fresh, ETag => '"z"'), 'If-None-Match' => '"z"');
    is_for_all("Authorization and $_", 0, response(200, 'x', 'Cache-Control' => "max-age=3600, $_"), Authorization => 'Basic eA==')
        for qw(proxy-revalidate no-transform must-understand no-cache);
    is_for_all('Cache-Control that Connection takes away', 0, response(200, 'x', %fresh, Connection => 'Cache-Control', 'Last-Modified' => http_date(time - 100_000)));
    is_for_all('Vary with what is no name', 0, response(200, 'x', %fresh, Vary => 'a b'));
    is_for_all('GET with a body', 0, $response, 'Content-Length' => 1, body => 'b');
    my $path = path_of(response(200, undef, %fresh, 'Content-Length' => 5), $response);
    send_it(HEAD => $path);
    is stored($path), '', 'a response to HEAD is not stored as one to GET';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache="Content-Type"', 'Content-Type' => 'text/odd'));
    get($path);
    ok !get($path)->has('Content-Type'), 'no-cache="Content-Type": not without validation';
    $path = path_of(response(200, 'x', %fresh, Connection => 'x-hop', 'X-Hop' => 1, 'Keep-Alive' => 'x', 'Proxy-Authenticate' => 'Basic realm=x', 'X-New' => 'kept'));
    get($path);
    my $hit = get($path);
    ok !$hit->has($_), "$_ is not stored" for qw(X-Hop Keep-Alive Proxy-Authenticate);
    is $hit->field('X-New'), 'kept', 'what is not known is';
}

sub varying () {
    my @vary = (%fresh, Vary => 'X-Kind');
    my $path = path_of(response(200, 'none', @vary), response(200, 'a', @vary));
    get($path, 'X-Kind' => 'a', Connection => 'close, x-kind');
    ok !exists asked($path)->{'x-kind'}, 'what Connection names does not reach the origin';
    is get($path, 'X-Kind' => 'a')->{body}, 'a', 'Vary: so the response is none for those who send it';
    is get($path)->{body}, 'none', 'but for those who do not';
    is get($path, 'X-Kind' => 'a', Connection => 'close, x-kind')->{body}, 'none', 'or whose Connection names it, too';
    is $origin->count($path), 2, 'from the store';
    $path = path_of(response(200, 'first', @vary), response(200, 'second', @vary));
    get($path, 'X-Kind' => 'a,b');
    is get($path, 'X-Kind' => 'a, b')->{body}, 'second', 'Vary: a field that is not known to be a list matches as it stands';
    $path = path_of(response(200, 'first', %fresh, Vary => 'Accept-Language'));
    get($path, 'Accept-Language' => 'de,en');
    is get($path, 'Accept-Language' => 'de ,  en')->{body}, 'first', 'one that is a list without its blanks';
    is $origin->count($path), 1, 'from the store';
    $path = path_of(response(200, 'a', @vary), response(200, 'b', @vary), response(200, 'c', %fresh, Vary => 'X-Other'));
    get($path, 'X-Kind' => $_) for qw(a b c);
    is get($path, 'X-Other' => '', 'X-Kind' => 'a')->{body}, 'c', 'Vary: a newer list counts';
    my @often = (%fresh, Vary => 'X-Long, x-long, X-LONG, X-Long, X-Kind');
    my @long  = ('X-Long' => 'x' x 3000);
    $path = path_of(response(200, 'first', @often), response(200, 'second', @often));
    get($path, @long, 'X-Kind' => 'a');
    is get($path, @long, 'X-Kind' => 'b')->{body}, 'second', 'Vary: a name that is there many times leaves room for the others';
    $path = path_of(response(200, 'a', @vary), response(200, 'second', %fresh));
    get($path, 'X-Kind' => 'a');
    is get($path)->{body}, 'second', 'Vary: a field that is missing does not match one that is there';
    is status_of(get($path, 'X-Kind' => 'a')), 'hit', 'a response without Vary is for all';
}

sub ages () {
    for my $case (['30, 50' => 30], ['30' => 30], ['x' => 0], ['-5' => 0], ['"30"' => 0], ['5.5' => 0], ['2147483648' => 2147483648], ['99999999999999999999' => 2147483648]) {
        my ($age, $least) = @$case;
        my $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=99999999999', Age => $age));
        get($path);
        my $told = get($path, @nobody_else)->field('Age');
        ok $told >= $least && $told <= $least + 1000 && $told <= 2147483648, "Age: $age: told as $least and the time since ($told)";
    }
    my $path = path_of([response(200, 'x', %fresh, Age => 20)->[0] =~ s/\r\n\r\n/\r\nAge: 3000\r\n\r\n/r]);
    get($path);
    my $told = get($path)->field('Age');
    ok $told >= 20 && $told < 2000, "of several Ages the first counts ($told)";
    my $once = path_of(response(200, 'x', %fresh, Date => http_date(time + 1000)));
    get($once);
    cmp_ok get($once)->field('Age'), '<', 900, 'a Date of the future makes nothing older, or younger';
    $path = path_of([response(200, 'x', 'Cache-Control' => 'max-age=3600')->[0] =~ s/Date: [^\r]*\r\n//r]);
    my $first = get($path);
    like $first->field('Date'), qr/GMT\z/, 'a response without Date gets one';
    is get($path)->field('Date'), $first->field('Date'), 'and keeps it';
    is status_of(get($path)), 'hit', 'in the store';
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
        is get($path)->{body}, $used ? 'first' : 'second', "unchanged for $unchanged s, $age s ago: " . ($used ? 'fresh' : 'stale');
    }
}

sub asking () {
    my $path = path_of(response(200, 'x', %fresh));
    is send_it(POST => $path, 'Content-Length' => 0, 'Cache-Control' => 'only-if-cached')->{status}, 504, 'only-if-cached: POST is 504';
    is get($path, 'Cache-Control' => 'only-if-cached', 'If-Match' => '"e"')->{status}, 504, 'as is what only the origin can judge';
    is send_it(HEAD => $path, 'Cache-Control' => 'only-if-cached')->{status}, 504, 'and HEAD of what is not stored';
    is $origin->count($path), 0, 'the origin hears of none';
    get($path);
    is send_it(HEAD => $path, 'Cache-Control' => 'only-if-cached')->{status}, 200, 'HEAD of what is stored';
    is get($path, 'Cache-Control' => 'only-if-cached, no-cache')->{status}, 504, 'only-if-cached and no-cache: 504';
    is get($path, Pragma => 'no-cache', 'Cache-Control' => 'max-age=3600')->{body}, 'x', 'Pragma does not count beside Cache-Control';
    is $origin->count($path), 1, 'the origin was asked once';
    for my $case ([504 => 'max-stale, max-stale=2000'], [504 => 'max-stale=10'], [504 => 'max-stale=x'], [200 => 'max-stale=2000'], [504 => 'max-stale=5, max-stale=2000'], [504 => 'max-stale, max-age=10'],
        [200 => 'max-stale, max-age=9000'], [504 => 'max-stale, min-fresh=1'], [504 => 'max-stale, max-age=0'], [504 => 'max-stale, no-cache']) {
        my ($status, $said) = @$case;
        my $path = path_of(response(200, 'x', %stale));
        get($path);
        is get($path, 'Cache-Control' => "only-if-cached, $said")->{status}, $status, "what is stale for 400 s, $said: $status";
    }
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache="x-a"', Age => 4000, 'X-A' => 1, 'X-B' => 2));
    get($path);
    my $response = get($path, @nobody_else);
    is $response->{status} . all_of($response, 'X-A') . all_of($response, 'X-B'), '2002', 'no-cache="x-a" forbids that field alone, also where staleness is allowed';
    for my $said ('must-revalidate', 'proxy-revalidate', 's-maxage=3600', 'no-cache') {
        my $path = path_of(response(200, 'x', 'Cache-Control' => "max-age=3600, stale-while-revalidate=1000, stale-if-error=1000, $said", Age => 4000, ETag => '"1"'), response(503, 'down'));
        get($path);
        is get($path, @nobody_else)->{status}, 504, "$said: not stale, whatever the client takes";
        is get($path)->{status}, 503, "$said: nor while it is asked about, nor after an error";
        is get($path, 'Cache-Control' => 'stale-if-error=1000')->{status}, 503, "$said: nor if the client would";
    }
}

sub confirming () {
    my $modified = http_date(time - 86_400);
    my $path     = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
    get($path);
    my $response = get($path);
    is status_of($response), 'fwd=stale; fwd-status=304', 'what the origin has just confirmed';
    ok !$response->has('Age'), 'has no Age';
    ok get($path)->has('Age'), 'but from then on';
    $path = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"', Age => 20));
    get($path);
    cmp_ok get($path)->field('Age'), '>=', 20, 'unless another cache has confirmed it';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, no-cache', ETag => '"1"'), response(304, undef, ETag => '"1"'));
    get($path);
    is status_of(get($path)), 'fwd=stale; fwd-status=304', 'what is fresh, and may not be used so, counts as stale';
    is status_of(get($path, 'Cache-Control' => 'no-cache')), 'fwd=stale; fwd-status=304', 'whoever asks';

    for my $case (
        # stored validators, those of the 304, whether it is about the stored response
        [[ETag => '"1"'], [ETag => '"1"'], 1], [[ETag => '"1"'], [ETag => 'W/"1"'], 1], [[ETag => 'W/"1"'], [ETag => '"1"'], 0], [[ETag => 'W/"1"'], [ETag => 'W/"1"'], 1],
        [[ETag => '"1"'], ['Last-Modified' => $modified], 0], [[ETag => '"1"', 'Last-Modified' => $modified], ['Last-Modified' => $modified], 1],
        [['Last-Modified' => $modified], ['Last-Modified' => $modified], 1], [['Last-Modified' => $modified], [ETag => '"1"'], 0],
        [['Last-Modified' => $modified], [ETag => 'W/"1"', 'Last-Modified' => $modified], 1], [['Last-Modified' => $modified], ['Last-Modified' => http_date(time - 90_000)], 0],
        [[ETag => '"1"'], [], 1]) {
        my ($old, $new, $meant) = @$case;
        my $path = path_of(response(200, 'old', %stale, @$old), response(304, undef, %fresh, @$new), response(200, 'new', %fresh));
        get($path);
        is get($path)->{body}, $meant ? 'old' : 'new', "stored: @$old, 304: @$new: " . ($meant ? 'confirmed' : 'asked again');
        is $origin->count($path), $meant ? 2 : 3, 'the origin was asked as often as that wants';
    }
    $path = path_of(response(200, 'old', %stale, ETag => '*'), response(200, 'new', %fresh));
    get($path);
    is get($path)->{body}, 'new', 'an ETag that is none';
    ok !exists asked($path)->{'if-none-match'}, 'is not asked with';
    $path = path_of(response(304, undef, %fresh, ETag => '"1"'), response(200, 'x', %fresh));
    is get($path)->{status}, 502, 'a 304 that nobody has asked for: 502';
    is get($path)->{body}, 'x', 'and nothing is stored of it';
    $path = path_of(response(200, 'old', %stale, ETag => '"1"'), response(304, undef, ETag => '"2"'));
    get($path);
    is get($path)->{status}, 502, 'nor is one that comes again and again about something else';

    # What a 304 brings, and what it does not.
    $path = path_of(
        response(200, 'body', %stale, ETag => '"1"', 'Content-Encoding' => 'x-a', 'X-Old' => 'o', 'X-Both' => 'o', 'Set-Cookie' => 'a=b', 'Keep-Alive' => 'x', 'Content-Language' => 'de'),
        response(304, undef, 'Cache-Control' => 'max-age=3000, private="set-cookie, x-mine"', ETag => '"1"', 'Content-Encoding' => 'x-b', 'Content-Length' => 99, 'Content-Range' => 'bytes 0-1/2',
            'X-Both' => 'n', 'X-New' => 'n', 'Set-Cookie' => 'c=d', 'X-Mine' => 'n', Connection => 'x-hop', 'X-Hop' => 'n', 'Proxy-Authenticate' => 'x'));
    get($path);
    for my $response (get($path), get($path)) {
        my $from = status_of($response) eq 'hit' ? 'stored again' : 'confirmed';
        is join(',', map { all_of($response, $_) } qw(Content-Encoding X-Old X-Both X-New Content-Length Cache-Control)), 'x-a,o,n,n,4,max-age=3000, private="set-cookie, x-mine"', "the fields, $from";
        ok !$response->has($_), "no $_, $from" for qw(Set-Cookie X-Mine X-Hop Content-Range Proxy-Authenticate Keep-Alive);
    }
    $path = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, private="x-mine"', Age => 4000, ETag => '"1"', 'X-Mine' => 'a'), response(304, undef, ETag => '"1"', 'X-Mine' => 'b'));
    get($path);
    get($path);
    ok !get($path)->has('X-Mine'), 'what the stored response says about a field counts for that of a 304, too';
    $path = path_of(response(200, 'x', %stale, ETag => '"1"'), response(304, undef, ETag => '"1"', 'Cache-Control' => 'no-store'), response(200, 'y', %fresh));
    get($path);
    is get($path)->{body}, 'x', 'a 304 with no-store: the response is used';
    is stored($path), '', 'and not kept';

    # What others have stored is not taken away by whoever asks with credentials.
    my @mine = (Authorization => 'Basic eA==');
    for my $response (response(304, undef, ETag => '"1"'), response(401, 'no', 'WWW-Authenticate' => 'Basic realm=x'), response(200, 'mine', 'Cache-Control' => 'private')) {
        my ($status) = $response->[0] =~ / (\d+)/;
        my $path = path_of(response(200, 'for all', %stale, ETag => '"1"'), $response);
        get($path);
        is get($path, @mine)->{status}, $status == 304 ? 200 : $status, "credentials, and $status of the origin";
        is stored($path), 'for all', 'what is stored for all stays';
    }
    for my $response (response(416, 'no', 'Content-Range' => 'bytes */3'), response(206, 'o', 'Content-Range' => 'bytes 1-1/3')) {
        my ($status) = $response->[0] =~ / (\d+)/;
        my $path = path_of(response(200, 'all', %fresh), $response);
        get($path);
        is get($path, Range => 'bytes=1-1', 'Cache-Control' => 'no-cache')->{status}, $status, "a range with no-cache: $status is of the origin";
        is stored($path), 'all', 'and says nothing of the whole';
    }
}

sub conditions () {
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
        is get($path, @fields)->{status}, $status, "what is stored, @fields: $status";
    }
    my $response = get($path, 'If-None-Match' => '*');
    is all_of($response, $_) ne '', 1, "a 304 has $_" for qw(Cache-Control Content-Location Date ETag Expires Vary Age Via Cache-Status);
    ok !$response->has($_), "and no $_, which is of the body" for qw(Content-Type Content-Encoding Content-Length);
    $response = get($path, Range => 'bytes=0-1');
    is all_of($response, $_) ne '', 1, "a 206 has $_" for qw(Cache-Control Content-Location Date ETag Expires Vary Content-Range Content-Encoding);
    $response = get($path, Range => 'bytes=50-');
    is $response->field('Content-Range'), 'bytes */10', 'a 416 tells the length';
    ok !$response->has($_), "and has nothing of the stored response: no $_" for qw(ETag Cache-Control Content-Encoding Expires);
    $response = send_it(HEAD => $path, Range => 'bytes=0-1');
    is "$response->{status} " . $response->field('Content-Length'), '200 10', 'HEAD has no ranges';
    is send_it(HEAD => $path, 'If-None-Match' => '"e"')->{status}, 304, 'but conditions';
    is $origin->count($path), 1, 'all that without the origin';
    $path = path_of(response(200, 'x', %fresh, Date => http_date(time - 10)));
    get($path);
    is get($path, 'If-Modified-Since' => http_date(time))->{status}, 304, 'without Last-Modified, Date is compared';
    is get($path, 'If-Modified-Since' => http_date(time - 10_000))->{status}, 200, 'in both directions';
    is get($path, 'If-None-Match' => '"x"')->{status}, 200, 'without ETag, no tag matches';
    is get($path, 'If-None-Match' => '*')->{status}, 304, 'but * does';
    is $origin->count($path), 1, 'without the origin';
    $path = path_of(response(404, 'gone', %fresh, ETag => '"e"'));
    get($path);
    is get($path, @$_)->{status}, 404, "a stored 404 has no conditions and no ranges: $_->[0]" for ['If-None-Match' => '"e"'], [Range => 'bytes=0-0'], ['If-Modified-Since' => http_date(time)];
    is $origin->count($path), 1, 'and is used';

    $path = path_of(response(203, 'abc', %fresh, ETag => '"e"'));
    get($path);
    is get($path, 'If-None-Match' => '"e"')->{status}, 304, 'a stored 203 has conditions';
    is get($path, Range => 'bytes=0-0')->{status}, 203, 'and no ranges';

    # Of what is not stored, the origin is asked as the client asks.
    $path = path_of(response(412, 'no'));
    is get($path, 'If-Match' => '"a"', 'If-Unmodified-Since' => $modified)->{status}, 412, 'If-Match is for the origin';
    is join(',', map { asked($path)->{$_} // '' } qw(if-match if-unmodified-since)), "\"a\",$modified", 'as it is';
    $path = path_of(response(206, 'b', 'Content-Range' => 'bytes 1-1/3', %fresh));
    my @part = (Range => 'bytes=1-1', 'If-Range' => '"r"');
    is get($path, @part)->{status}, 206, 'so is a range of what is not stored';
    is join(',', map { asked($path)->{$_} // '' } qw(range if-range)), 'bytes=1-1,"r"', 'as it is';
    is get($path, @part)->{status}, 206, 'each time';
    is $origin->count($path), 2, 'and nothing of it is stored';

    # Several ranges, whatever the type is.
    for my $type (undef, 'text/odd', 'text/odd; x=' . 'y' x 500) {
        my $path = path_of(response(200, join('', 1000 .. 2000), %fresh, 'Content-Type' => $type));
        get($path);
        my ($first, $second) = $proxy->exchange(request(GET => $origin->url($path), Range => 'bytes=0-3,2000-2003') . request(GET => $origin->url($path), Connection => 'close'));
        my $long = length($type // '') > 200;
        is $first->{status}, $long ? 200 : 206, 'several ranges: ' . (!defined $type ? 'without a type' : $long ? 'a type that is longer than the parts: the whole' : 'with a type');
        is_deeply [map { [$_->[0]{'content-type'}, $_->[1]] } parse_parts($first)], [[$type, '1000'], [$type, '1500']], 'the parts' if !$long;
        is length $second->{body}, 4004, 'and the next response begins where this one ends';
    }
}

# stale-while-revalidate, for who asks for less than the whole: there is nothing to be seen behind that, so that it is asked
# about before, and whatever the origin says, the stale response will do.
sub meanwhile () {
    my @while = ('Cache-Control' => 'max-age=3600, stale-while-revalidate=100000', Age => 4000, ETag => '"1"');
    for my $case ([304, 'If-None-Match' => '"1"'], [206, Range => 'bytes=0-0']) {
        my ($status, @fields) = @$case;
        my $path = path_of(response(200, 'old', @while), response(304, undef, %fresh, ETag => '"1"'));
        get($path);
        is status_of(get($path, @fields)), 'fwd=stale; fwd-status=304', "stale-while-revalidate, @fields: the origin is asked";
        like all_of(get($path), 'Cache-Status'), qr/hit; ttl=\d/, 'and it is fresh for others';
        for my $failure (response(503, 'down'), [\''], ['']) {
            my $path = path_of(response(200, 'old', @while), $failure);
            get($path);
            is get($path, @fields)->{status}, $status, 'stale-while-revalidate: an origin that fails is not shown';
        }
        $path = path_of(response(200, 'old', @while), response(200, 'new', %fresh, ETag => '"2"'));
        get($path);
        is get($path, @fields)->{body}, 'new', 'what has changed is';
    }
}

sub heads () {
    my @head = (ETag => '"1"', 'Content-Length' => 4);
    for my $case (
        ['the same', 'body', response(200, undef, %fresh, @head)], ['another ETag', '', response(200, undef, %fresh, ETag => '"2"', 'Content-Length' => 4)],
        ['another length', '', response(200, undef, %fresh, ETag => '"1"', 'Content-Length' => 5)], ['404', '', response(404, undef, 'Content-Length' => 4)],
        ['no-store', '', response(200, undef, @head, 'Cache-Control' => 'no-store')], ['503', 'body', response(503, undef, 'Content-Length' => 4)], ['no validators', 'body', response(200, undef)]) {
        my ($name, $left, $response) = @$case;
        my $path = path_of(response(200, 'body', %fresh, ETag => '"1"'), $response);
        get($path);
        send_it(HEAD => $path, 'Cache-Control' => 'no-cache');
        is stored($path), $left, "HEAD says $name: what is stored " . ($left ? 'stays' : 'goes');
    }
    my $path = path_of(response(404, 'none', %fresh), response(200, undef, %fresh, 'Content-Length' => 4), response(200, 'here', %fresh));
    get($path);
    send_it(HEAD => $path, 'Cache-Control' => 'no-cache');
    is get($path)->{body}, 'here', 'a stored 404, and HEAD says 200: the 404 goes';
    $path = path_of(response(200, 'body', %fresh, ETag => '"1"', 'X-A' => 1), response(200, undef, %fresh, @head, 'X-A' => 2));
    get($path);
    send_it(HEAD => $path, 'Cache-Control' => 'no-cache');
    is get($path)->field('X-A'), 2, 'what HEAD says is stored';
    send_it(HEAD => $path, 'Cache-Control' => 'no-cache, no-store');
    is stored($path), 'body', 'and stays after a HEAD with no-store';
    $path = path_of(response(200, 'body', %stale, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
    get($path);
    my $response = send_it(HEAD => $path);
    is "$response->{status} " . $response->field('Content-Length'), '200 4', 'HEAD of what is stale: it is validated';
    is status_of(get($path)), 'hit', 'and fresh for GET, too';
}

sub invalidating () {
    for my $case ([POST => 201, 0], [PATCH => 200, 0], [LOCK => 200, 0], [POST => 302, 0], [POST => 400, 1], [DELETE => 412, 1], [PUT => 503, 1], [OPTIONS => 204, 1], [HEAD => 200, 1]) {
        my ($method, $status, $kept) = @$case;
        my $path = path_of(response(200, 'x', %fresh), response($status, $status == 204 || $method eq 'HEAD' ? undef : 'done'));
        get($path);
        send_it($method => $path, $method eq 'HEAD' ? ('Cache-Control' => 'no-cache') : ('Content-Length' => 0));
        is stored($path), $kept ? 'x' : '', "$method, $status: what is stored " . ($kept ? 'stays' : 'goes');
    }
    my $path = path_of(response(200, 'a', %fresh, Vary => 'X-Kind'), response(200, 'b', %fresh, Vary => 'X-Kind'), response(204, undef));
    get($path, 'X-Kind' => $_) for qw(a b);
    send_it(POST => $path, 'Content-Length' => 0, 'X-Kind' => 'a');
    is join(',', map { stored($path, 'X-Kind' => $_) } qw(a b)), ',', 'all responses of an address go together';
    my $here = '127.0.0.1:' . $origin->port;
    for my $case (['Content-Location', sub ($to) { $to }, 0], ['Location', sub ($to) { $origin->url("$to#part") }, 0], ['Location', sub ($to) { "http://127.0.0.2:" . $origin->port . $to }, 1],
        ['Location', sub ($to) { "https://$here$to" }, 1], ['Location', sub ($to) { "http://$here.example$to" }, 1], ['Content-Location', sub ($to) { "//$here$to" }, 0],
        ['Location', sub ($to) { "HTTP://$here$to" }, 0], ['Location', sub ($to) { "//$here.example$to" }, 1], ['Location', sub ($to) { "http://127.0.0.1$to" }, 1], ['Location', sub ($to) { "http:$to" }, 1],
        ['Location', sub ($to) { 'http:/' }, 1], ['Content-Location', sub ($to) { '' }, 1], ['Content-Location', sub ($to) { "http://$here" }, 1]) {
        my ($field, $form, $kept) = @$case;
        my $target = path_of(response(200, 'x', %fresh));
        get($target);
        my $named = $form->($target);
        send_it(POST => path_of(response(201, 'made', $field => $named)), 'Content-Length' => 0);
        is stored($target), $kept ? 'x' : '', "$field: $named: what is stored there " . ($kept ? 'stays' : 'goes');
        next if $kept;
        get($target);
        send_it(POST => path_of(response(409, 'no', $field => $named)), 'Content-Length' => 0);
        is stored($target), 'x', 'but not after an error';
        get(path_of(response(200, 'safe', $field => $named)));
        is stored($target), 'x', 'nor after GET';
    }
}

sub telling () {
    my $odd = path_of(response(200, 'x', 'Cache-Control' => 'max-age=3600, odd="a, b", no-transform, public', Pragma => 'no-cache', Expires => '0', Warning => '214 - "x"'));
    my %said = map { $_ => all_of(get($odd), $_) } qw(Cache-Control Pragma Expires Warning);
    is status_of(get($odd, 'Cache-Control' => 'odd, max-age=100', Pragma => 'x')), 'hit', 'directives that nobody knows, and Pragma of a response, change nothing';
    is "@said{qw(Cache-Control Pragma Expires Warning)}", 'max-age=3600, odd="a, b", no-transform, public no-cache 0 214 - "x"', 'all are passed on';
    get($odd, 'Cache-Control' => 'odd="a, b", no-cache, stale-if-error=5', Pragma => 'x');
    is asked($odd)->{$_->[0]}, $_->[1], "$_->[0] of the request, too" for ['cache-control', 'odd="a, b", no-cache, stale-if-error=5'], ['pragma', 'x'];

    my $path = path_of(response(200, 'x', %fresh, 'Cache-Status' => 'inner; hit'));
    is all_of(get($path), 'Cache-Status'), 'inner; hit | fork-vs-thread; fwd=uri-miss; fwd-status=200; stored', 'Cache-Status: behind that of the origin';
    like all_of(get($path), 'Cache-Status'), qr/^inner; hit \| fork-vs-thread; hit; ttl=\d+\z/, 'also from the store';
    is status_of(get($path, 'Cache-Control' => 'no-cache')), 'inner; hit | fork-vs-thread; fwd=request; fwd-status=200; stored', 'fwd=request: it was fresh, and the client has not wanted it';
    is status_of(get($path, 'Cache-Control' => 'no-store, max-age=0')), 'inner; hit | fork-vs-thread; fwd=request; fwd-status=200', 'without "stored" where it is not';
    $path = path_of(response(200, 'x', %stale));
    get($path);
    is status_of(get($path)), 'fwd=stale; fwd-status=200; stored', 'fwd=stale';
    like all_of(get($path, 'Cache-Control' => 'max-stale'), 'Cache-Status'), qr/^fork-vs-thread; hit; ttl=-[4-9]\d\d\z/, 'ttl is below zero for what is stale';
    $path = path_of(response(200, 'x', 'Cache-Control' => 'no-store'));
    is status_of(send_it(POST => $path, 'Content-Length' => 0)), 'fwd=method; fwd-status=200', 'fwd=method';
    is status_of(get($path)), 'fwd=uri-miss; fwd-status=200', 'fwd=uri-miss';
}

each_server(sub ($model) {
    my $directory = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$directory/cache"]);
    storing();
    varying();
    ages();
    asking();
    confirming();
    conditions();
    meanwhile();
    heads();
    invalidating();
    telling();
    $proxy->stop(warnings => qr/limit of \d+ descriptors/);
});

done_testing;

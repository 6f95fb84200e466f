#!/usr/bin/perl
# What those who run a proxy and its origin decide about the cache: CDN-Cache-Control (RFC 9213), stale responses while the
# origin cannot be reached, responses to POST that answer a later GET, which fields of Vary mean the same, and PURGE.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;
my ($proxy, $url);
my $number = 0;

sub get ($path, @fields) { return $proxy->get($url->($path), @fields) }
sub exchange ($method, $path, @fields) { return scalar $proxy->exchange(request($method => $url->($path), Connection => 'close', @fields), $method) }

sub path_of (@responses) {
    my $path = '/policy' . ++$number;
    $origin->play($path, @responses);
    return $path;
}

# Tests whether the second of two requests is a hit.
sub is_hit ($name, $hit, $first, $second, @fields) {
    my $path = path_of(response(200, 'first', @fields), response(200, 'second', @fields));
    get($path, @$first);
    my $response = get($path, @$second);
    is $response->{body}, $hit ? 'first' : 'second', "$name: " . ($hit ? 'a hit' : 'no hit');
    return $response;
}

sub test_targeted ($gateway) {
    my $where = $gateway ? 'before its origin' : 'a forward proxy';
    my @never = ('Cache-Control' => 'no-store');
    my $response = is_hit("CDN-Cache-Control: max-age=60 and Cache-Control: no-store, $where", $gateway, [], [], 'CDN-Cache-Control' => 'max-age=60', @never);
    is $response->field('CDN-Cache-Control'), 'max-age=60', "CDN-Cache-Control is passed on, $where";
    is_hit("CDN-Cache-Control: no-store and Cache-Control: max-age=60, $where", !$gateway, [], [], 'CDN-Cache-Control' => 'no-store', %fresh);
    is_hit("a malformed CDN-Cache-Control and Cache-Control: max-age=60, $where", 1, [], [], 'CDN-Cache-Control' => 'no-store, max-age=', %fresh);
    is_hit("CDN-Cache-Control: max-age=60 and an Expires of the past, $where", $gateway, [], [], 'CDN-Cache-Control' => 'max-age=60', Expires => '0');
    is_hit("CDN-Cache-Control: max-age=60 and an Age of 100, $where", 0, [], [], 'CDN-Cache-Control' => 'max-age=60', Age => 100);
    return if !$gateway;
    my $path = path_of(response(200, 'a', 'CDN-Cache-Control' => 'max-age=60', Age => 100, ETag => '"1"'), response(304, undef, 'CDN-Cache-Control' => 'max-age=600', ETag => '"1"'), response(200, 'b'));
    get($path);
    get($path);
    is cache_status(get($path)), 'hit', 'a 304 brings a newer CDN-Cache-Control';
}

sub test_vary () {
    my @vary = (%fresh, Vary => 'Accept-Language, Accept-Encoding');
    is_hit('languages with other case, blanks and weights', 1, ['Accept-Language' => 'en-GB,DE;q=0.5'], ['Accept-Language' => 'de ; q=0.50, EN-gb;q=1.0'], @vary);
    is_hit('languages in two fields', 1, ['Accept-Language' => 'en, de'], ['Accept-Language' => 'en', 'Accept-Language' => 'de'], @vary);
    is_hit('encodings with other blanks', 1, ['Accept-Encoding' => 'gzip,br'], ['Accept-Encoding' => 'gzip , BR'], @vary);
    is_hit('languages of equal weight in another order', 0, ['Accept-Language' => 'en, de'], ['Accept-Language' => 'de, en'], @vary);
    is_hit('another weight', 0, ['Accept-Language' => 'en;q=0.5, de'], ['Accept-Language' => 'en;q=0.4, de'], @vary);
    is_hit('another language', 0, ['Accept-Language' => 'en'], ['Accept-Language' => 'en-gb'], @vary);
    is_hit('another case of another field', 0, [X => 'a'], [X => 'A'], %fresh, Vary => 'X');
}

sub post ($path, @fields) { return exchange(POST => $path, 'Content-Length' => 0, @fields) }

sub test_post () {
    my $later = response(200, 'later', %fresh);
    my $plain = sub ($path) { $path };
    for my $case (
        ['with the same Content-Location', 1, $plain, response(200, 'now', %fresh, 'Content-Location' => 'SAME')],
        ['without explicit freshness',     0, $plain, response(200, 'now', 'Last-Modified' => http_date(time - 100_000), 'Content-Location' => 'SAME')],
        ['with another Content-Location',  0, $plain, response(200, 'now', %fresh, 'Content-Location' => '/other')],
        ['without Content-Location',       0, $plain, response(200, 'now', %fresh)],
        ['with status 201',                0, $plain, response(201, 'now', %fresh, 'Content-Location' => 'SAME')],
        ['that is private',                0, $plain, response(200, 'now', 'Cache-Control' => 'private, max-age=60', 'Content-Location' => 'SAME')],
        ['with an absolute Content-Location', 1, sub ($path) { $origin->url($path) }, response(200, 'now', %fresh, 'Content-Location' => 'SAME')],
    ) {
        my ($name, $stored, $place, $response) = @$case;
        my $path = '/policy' . ++$number;
        $origin->play($path, response(200, 'before', %fresh), [map { s/SAME/$place->($path)/er } @$response], $later);
        get($path);
        is post($path)->{body}, 'now', "a response to POST $name goes to its client";
        is get($path)->{body}, $stored ? 'now' : 'later', "a response to POST $name " . ($stored ? 'answers a later GET' : 'answers no later GET');
    }
    my $path = path_of(response(200, 'before', %fresh));
    $origin->play($path, [map { s/SAME/$path/r } @{ response(200, 'now', %fresh, 'Content-Location' => 'SAME') }], response(200, 'again', %fresh));
    post($path);
    is post($path)->{body}, 'again', 'a stored response to POST answers no POST';
}

sub test_purge () {
    my $path = path_of(response(200, 'first', %fresh), response(200, 'second', %fresh));
    get($path);
    is exchange(PURGE => $path)->{status}, 204, 'PURGE of an entry: 204';
    is $origin->count($path), 1, 'PURGE does not reach the origin';
    is get($path)->{body}, 'second', 'PURGE removes the entry';
    exchange(PURGE => $path);
    is exchange(PURGE => $path)->{status}, 404, 'PURGE without an entry: 404';
    $path = path_of(response(200, 'first', %fresh, Vary => 'X'), response(200, 'second', %fresh, Vary => 'X'));
    get($path, X => $_) for qw(a a);
    is exchange(PURGE => $path)->{status}, 204, 'PURGE of an entry with Vary: 204';
    is get($path, X => 'a')->{body}, 'second', 'PURGE removes all variants';
}

# What the cache has done, in the statistics and in the summary at the end.
sub test_statistics ($model, $scratch) {
    my $server = start_server(options => ['--service', 'proxy', '--cache', "$scratch/counted", '--stats', "$scratch/stats"]);
    my $of = sub ($path, @fields) { scalar $server->get($origin->url($path), @fields) };
    my $path = path_of(response(200, 'x' x 100, %fresh));
    $of->($path) for 1 .. 3;                                           # a miss, two hits: 200 bytes
    $of->($path, Range => 'bytes=0-9');                                # a hit: 10 bytes
    $server->exchange(request(HEAD => $origin->url($path), Connection => 'close'), 'HEAD');    # a hit: none
    $path = path_of(response(200, 'x' x 1000, %stale, ETag => '"1"'), response(304, undef, %stale, ETag => '"1"'), response(200, 'y', %stale));
    $of->($path) for 1 .. 3;                                           # a miss, a revalidation: 1,000 bytes, a miss
    $of->(path_of(response(200, 'x', 'Cache-Control' => 'no-store'))); # a miss
    my $collapsed = 0;
    if (!$model->{single}) {
        my $gate = "counted$number";
        $path = path_of([\$gate, @{ response(200, 'x' x 10_000, %fresh) }]);
        my @clients = map { my $client = $server->connect; $client->send(request(GET => $origin->url($path), Connection => 'close')); $client } 1 .. 3;
        ok until_true(sub { waiting("$scratch/counted") == 2 }), 'two clients wait for the response to another one';
        $origin->open_gate($gate);
        my @responses = map { $_->response } @clients;                 # a miss, two collapsed: 20,000 bytes
        is join("\n", map { $_->{status} == 200 ? 200 : $_->{body} } @responses), "200\n200\n200", 'all of them get it';
        $_->close for @clients;
        $collapsed = 2;
    }
    my $printed = $server->stop(%few);
    my $counts  = json("$scratch/stats")->{cache};
    my $misses  = 4 + ($collapsed > 0);
    is_deeply $counts, { hits => 4, misses => $misses, revalidations => 1, collapsed => $collapsed, bytes_saved => 1210 + 10_000 * $collapsed }, '--stats counts what the cache has done';
    like slurp($server->{err}->filename), qr/, cache: 4 hits, $misses misses, 1 revalidations, $collapsed collapsed, $counts->{bytes_saved} bytes saved$/m, 'the summary says it, too';
}

# An origin that cannot be reached, and one that answers with an error.
sub test_outage () {
    my $other = Origin->new;
    my %control = (
        'a stale entry'       => [ 200, 'max-age=60' ],
        'must-revalidate'     => [ 0,   'max-age=60, must-revalidate' ],
        'proxy-revalidate'    => [ 0,   'max-age=60, proxy-revalidate' ],
        's-maxage'            => [ 0,   's-maxage=60' ],
        'no-cache'            => [ 0,   'max-age=60, no-cache' ],
        'one stale too long'  => [ 0,   'max-age=30' ],
    );
    for my $name (sort keys %control) {
        my $path = "/$name" =~ s/ /-/gr;
        $other->play($path, response(200, 'stored', 'Cache-Control' => $control{$name}[1], Age => 100), response(503, 'busy'));
        $proxy->get($other->url($path));
        is $proxy->get($other->url($path))->{status}, 503, "--stale-if-error, $name: an error of the origin goes to the client" if $name eq 'a stale entry';
    }
    $other->stop;
    for my $name (sort keys %control) {
        my $path = "/$name" =~ s/ /-/gr;
        my $response = $proxy->get($other->url($path));
        my $want = $control{$name}[0];
        ok $want ? $response->{status} == 200 && $response->{body} eq 'stored' : $response->{status} >= 502, "--stale-if-error, $name, an origin that cannot be reached: " . ($want ? 'the entry' : 'an error');
        like $response->field('Age'), qr/^1\d\d$/, "--stale-if-error, $name: Age says how old it is" if $want;
    }
    is $proxy->get($other->url('/a-stale-entry'), 'Cache-Control' => 'no-cache')->{status}, 504, '--stale-if-error: a client that says no-cache gets an error';
}

each_server(sub ($model) {
    my $scratch = scratch();
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$scratch/forward"]);
    $url   = sub ($path) { $origin->url($path) };
    test_targeted(0);
    test_vary();
    test_post();
    test_purge();
    $proxy->stop(%few);
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$scratch/reverse", '--origin', $origin->url('')]);
    $url   = sub ($path) { $path };
    test_targeted(1);
    $proxy->stop(%few);
    test_statistics($model, $scratch);
    $proxy = start_server(options => ['--service', 'proxy', '--cache', "$scratch/outage", '--stale-if-error', 60]);
    test_outage();
    $proxy->stop(%few);
});

done_testing;

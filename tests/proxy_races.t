#!/usr/bin/perl
# Concurrent clients of the proxy: no client gets a response that is older than a change, no client can remove entries that
# others may use, and no client waits for a response that it cannot use.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my $origin = Origin->new;
my %never  = ('Cache-Control' => 'max-age=0');
my $proxy;

sub start_proxy ($cache, @options) {
    return start_server(options => ['--service', 'proxy', '--cache', $cache, @options]);
}

sub get ($path, @fields) { return $proxy->get($origin->url($path), @fields) }
sub exchange ($where, $method, $path, @fields) {
    return scalar $where->exchange(request($method => $origin->url($path), Connection => 'close', @fields), $method);
}
sub gated ($name, $response) { return [\$name, @$response] }

# Returns a connection on which a request was sent.
sub send_request ($path, @fields) {
    my $client = $proxy->connect;
    $client->send(request(GET => $origin->url($path), Connection => 'close', @fields));
    return $client;
}

# Waits until the origin has so many requests for the path.
sub origin_has ($path, $count, $name) { ok scalar until_true(sub { $origin->count($path) == $count }), $name }

# Waits until so many requests wait for another one that fetches.
sub all_wait ($cache, $count, $name) { ok scalar until_true(sub { waiting($cache) == $count }), "$name: the others wait for it" }

each_server(sub ($model) {
    my $scratch = scratch();
    my $cache   = "$scratch/cache";
    my $large   = substr +(join '', map { chr($_ * 7 % 251) } 1 .. 251) x 2000, 0, 200_000;
    my $body;
    $proxy = start_proxy($cache);

    # --- a change during a response ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my $second = start_proxy($cache);
        my %change = (
            'PUT'                                  => sub ($path) { exchange($proxy, PUT => $path, 'Content-Length' => 0) },
            'DELETE through another server'        => sub ($path) { exchange($second, DELETE => $path) },
            'POST that names it as Location'       => sub ($path) { exchange($proxy, POST => '/to', 'Content-Length' => 0) },
            'POST that names it as Content-Location, elsewhere' => sub ($path) { exchange($second, POST => '/to', 'Content-Length' => 0) },
        );
        my $number = 0;
        for my $how (sort keys %change) {
            my $path    = '/race' . ++$number;
            my $elsewhere = $how =~ /^POST/;
            my @changed = $elsewhere ? () : response(204, undef);
            $origin->play($path, gated("race$number", response(200, 'before', %fresh)), @changed, response(200, 'after', %fresh));
            $origin->play('/to', response(201, '', $how =~ /Content/ ? 'Content-Location' : 'Location', $path)) if $elsewhere;
            my $client = send_request($path);
            origin_has($path, 1, "$how during a response: the origin has the first request");
            $change{$how}->($path);
            $origin->open_gate("race$number");
            is $client->response->{body}, 'before', "$how during a response: the client of the first request gets the old response";
            $client->close;
            is get($path)->{body}, 'after', "$how during a response: the next client gets the new response";
            like cache_status(get($path)), qr/^hit/, "$how during a response: the new response is stored";
        }
        $origin->play('/half', [@{ response(200, undef, %fresh, 'Content-Length' => 10) }, 'befor', \'half', 'e put'], response(204, undef), response(200, 'after', %fresh));
        my $client = send_request('/half');
        ok scalar until_true(sub { $client->fill(1); $client->pending =~ /befor/ }), 'PUT in the middle of a response: the client has the first half';
        exchange($proxy, PUT => '/half', 'Content-Length' => 0);
        $origin->open_gate('half');
        is $client->response->{body}, 'before put', 'PUT in the middle of a response: the client gets the second half';
        $client->close;
        is get('/half')->{body}, 'after', 'PUT in the middle of a response: the response is not stored';

        $body = "$large!";
        for ([small => 'body'], [large => $body]) {
            my ($size, $content) = @$_;
            $origin->play("/confirm$size", response(200, $content, %stale, ETag => '"1"'), gated($size, response(304, undef, %fresh, ETag => '"1"')),
                response(204, undef), response(200, 'after', %fresh));
            get("/confirm$size");
            $client = send_request("/confirm$size");
            origin_has("/confirm$size", 2, "PUT during the validation of a $size entry: the origin has the validation");
            exchange($proxy, PUT => "/confirm$size", 'Content-Length' => 0);
            $origin->open_gate($size);
            ok $client->response->{body} eq $content, "PUT during the validation of a $size entry: the client gets the entry";
            $client->close;
            is get("/confirm$size")->{body}, 'after', "PUT during the validation of a $size entry: the entry is not used again";
        }
        $origin->play('/vary', response(200, 'old a', %fresh, Vary => 'X'), gated('vary', response(200, 'old b', %fresh, Vary => 'X')),
            response(204, undef), response(200, 'after', %fresh, Vary => 'X'));
        get('/vary', X => 'a');
        $client = send_request('/vary', X => 'b');
        origin_has('/vary', 2, 'PUT during a response with Vary: the origin has the request');
        exchange($proxy, PUT => '/vary', 'Content-Length' => 0);
        $origin->open_gate('vary');
        $client->response;
        $client->close;
        is get('/vary', X => $_)->{body}, 'after', 'PUT during a response with Vary: no variant stays in the cache' for qw(b a);
        $second->stop(%few);

        # An origin that does not respond: clients that have waited together do not wait once more in turn.
        my $all = $proxy;
        $proxy = start_proxy("$scratch/silent", '--origin-timeout', 2);
        $origin->play('/silent', [\'silent']);
        my @clients = map { send_request('/silent') } 1 .. 6;
        is scalar(grep { $_->response->{status} == 504 } @clients), 6, 'an origin that does not respond: all clients of one target get 504';
        cmp_ok $origin->count('/silent'), '<', 6, 'an origin that does not respond: not each client makes the proxy wait anew';
        $_->close for @clients;
        # An origin that fails one fetch fails all who wait for it.
        my @half = @{ response(200, undef, %never, 'Content-Length' => 9) };    # (others do not get it as it comes)
        my $hasty = $proxy;
        $proxy = start_proxy("$scratch/patient", '--origin-timeout', 3600);
        for my $how (['ends the connection', \'fails'], ['resets it', \'fails', \''], ['breaks off its response', @half, 'half', \'fails', \'']) {
            my ($name, @steps) = @$how;
            my $path = '/fails' . ++$number;
            $origin->play($path, \@steps);
            my $leader = send_request($path);
            origin_has($path, 1, "an origin that $name: it has the first request");
            @clients = map { send_request($path) } 1 .. 6;
            all_wait("$scratch/patient", 6, "an origin that $name");
            $origin->open_gate('fails');
            is scalar(grep { $_->response->{status} >= 502 } @clients), 6, "an origin that $name: all who have waited get an error";
            is $origin->count($path), 1, "an origin that $name is asked once for all who wait";
            $_->close for @clients, $leader;
        }
        $proxy->stop(%few);
        $proxy = $hasty;
        $origin->play('/late', [@half, 'half', \'never']);
        @clients = map { send_request('/late') } 1 .. 7;
        is scalar(grep { $_->drain =~ m{\AHTTP/1\.1 (?:200 .*half|50[24] )}s } @clients), 7,
            'an origin that is late with the rest of its response: who has asked it gets the first half, and the others an error';
        cmp_ok $origin->count('/late'), '<', 7, 'an origin that is late with the rest of its response: not each client makes the proxy wait anew';
        $_->close for @clients;
        $proxy->stop(%few);
        $proxy = $all;
    }

    # --- a request of one client removes no entry that others may use ---
    my @own = (Authorization => 'Basic eDp5', 'Cache-Control' => 'no-cache');
    my %blame = (
        '401 to made-up credentials'              => [response(401, 'who?', 'WWW-Authenticate' => 'Basic'), @own],
        '401 that may be stored'                  => [response(401, 'who?', 'Cache-Control' => 'public, max-age=60'), @own],
        '404 to made-up credentials'              => [response(404, 'none', %fresh), @own],
        '200 for one user'                        => [response(200, 'mine', %fresh), @own],
        '304 to one user'                         => [response(304, undef, ETag => '"1"'), @own],
        '304 to one user with another ETag'   => [response(304, undef, ETag => '"2"'), @own],
        '400 to a request with no-cache' => [response(400, 'bad'), 'Cache-Control' => 'no-cache', X => 'y'],
        '403'                                     => [response(403, 'no'), 'Cache-Control' => 'no-cache'],
        '429'                                     => [response(429, 'too many'), 'Cache-Control' => 'no-cache'],
        '503'                                     => [response(503, 'busy'), 'Cache-Control' => 'no-cache'],
    );
    my $number = 0;
    for my $how (sort keys %blame) {
        my ($response, @fields) = @{ $blame{$how} };
        my $path = '/blame' . ++$number;
        $origin->play($path, response(200, 'for all', %fresh, ETag => '"1"'), $response, response(200, 'again', 'Cache-Control' => 'private'));
        get($path);
        get($path, @fields);
        is get($path)->{body}, 'for all', "$how: the entry stays";
    }
    $origin->play('/range', response(200, 'for all', %fresh), response(416, 'none', 'Content-Range' => 'bytes */7'));
    get('/range');
    get('/range', 'Cache-Control' => 'no-cache', Range => 'bytes=100-');
    is get('/range')->{body}, 'for all', '416 to a range: the entry stays';
    $origin->play('/head', response(200, 'for all', %fresh), response(200, undef, 'Content-Length' => 3), response(200, 'again', %fresh));
    get('/head');
    exchange($proxy, HEAD => '/head', @own);
    is get('/head')->{body}, 'for all', 'HEAD with credentials: the entry stays';
    for my $status (404, 410, 302, 200) {
        $origin->play("/gone$status", response(200, 'for all', %fresh), response($status, 'gone'), response(200, 'new', %fresh));
        get("/gone$status");
        get("/gone$status", 'Cache-Control' => 'no-cache');
        is get("/gone$status")->{body}, 'new', "$status to a request with no-cache: the entry is replaced";
    }

    # --- a fetch that lasts from one second into the next: a response that may be used for a second comes stale ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my ($attempt, $third) = (0);
        until_true(sub {
            my $path  = '/crosses' . ++$attempt;
            my @short = (Date => undef, 'Cache-Control' => 'max-age=1', ETag => '"1"');
            $origin->play($path, gated("crosses$attempt", response(200, 'body', @short)), response(304, undef, @short));
            my $client = send_request($path);
            until_true(sub { $origin->count($path) == 1 });
            my $second = time;
            until_true(sub { time > $second });
            $second = time;
            $origin->open_gate("crosses$attempt");
            $client->response;
            $client->close;
            get($path);
            $third = get($path);
            return time == $second;    # else the try says nothing
        });
        is cache_status($third), 'hit', 'a response that comes stale since its fetch has crossed a second is fresh once it is validated';
    }

    # --- validation of large entries ---
    $origin->play('/large', response(200, $large, %stale, ETag => '"1"', X => 'old'), response(304, undef, %fresh, ETag => '"1"', X => 'new'), response(200, 'again', %fresh));
    get('/large');
    my $response = get('/large');
    ok $response->{body} eq $large && $response->field('X') eq 'new', 'a large entry is served after a validation';
    $response = get('/large');
    ok $response->{body} eq $large, 'a validated large entry is served from the cache';
    is $response->field('X'), 'new', 'a validated large entry has the fields of the 304';
    is cache_status($response), 'hit', 'a validated large entry is a hit';
    is get('/large', Range => 'bytes=199990-')->{body}, substr($large, 199_990), 'a range of a validated large entry is served';
    $origin->play('/large', response(200, undef, %fresh, ETag => '"1"', X => 'newer', 'Content-Length' => length $large), response(200, 'again', %fresh));
    exchange($proxy, HEAD => '/large', 'Cache-Control' => 'no-cache');
    $response = get('/large');
    ok $response->{body} eq $large && $response->field('X') eq 'newer', 'a large entry gets the fields of a HEAD';
    is $origin->count('/large'), 1, 'a large entry that a HEAD has freshened is served without the origin';
    $origin->play('/large', response(200, undef, %fresh, ETag => '"2"', 'Content-Length' => length $large), response(200, 'again', %fresh));
    exchange($proxy, HEAD => '/large', 'Cache-Control' => 'no-cache');
    is get('/large')->{body}, 'again', 'a HEAD with another ETag invalidates a large entry';
    is scalar(() = glob "$cache/t*"), 0, 'validations leave no unfinished file in the cache';

    # --- long fields ---
    my $tag = '"' . 'e' x 3000 . '"';
    $origin->play('/tag', response(200, 'tagged', %fresh, ETag => $tag));
    get('/tag');
    $response = get('/tag', 'If-None-Match' => $tag);
    is "$response->{status} " . cache_status($response), '304 hit', 'an ETag of 3,000 characters can be validated';
    $origin->play('/wordy', response(200, 'old', %stale, ETag => '"1"', X => 'x' x 20_000), response(304, undef, %fresh, ETag => '"1"', Y => 'y' x 20_000), response(200, 'new', %fresh));
    get('/wordy');
    is get('/wordy')->{body}, 'new', 'a 304 that would make the fields of an entry too long: the proxy requests the whole response';

    # --- clients do not wait for a response that they cannot use ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my $many = 4;
        # One question serves all who wait for it: here those that came within a second of each other.
        for my $case (
            ['never fresh'      => \%never],
            ['no-cache'         => { 'Cache-Control' => 'no-cache' }],
            ['stale'            => \%stale],
            ['stale, then fresh' => \%stale, \%fresh],
            ['fresh, of which clients ask for a validation (max-age=0)' => \%fresh, \%fresh, 'Cache-Control' => 'max-age=0'],
            ['fresh, of which clients ask for a validation (no-cache)'  => \%fresh, \%fresh, 'Cache-Control' => 'no-cache'],
        ) {
            my ($name, $control, $again, @fields) = @$case;
            # A client that comes over a second later asks itself.
            within(1, "an entry that is $name: one validation serves all who wait", sub ($) {
                my $path = "/shared" . ++$number;
                $origin->play($path, response(200, 'body', %$control, ETag => '"1"'), gated("shared$number", response(304, undef, %{ $again // $control }, ETag => '"1"')));
                get($path);
                my $begin   = now();
                my @clients = map { send_request($path, @fields) } 1 .. $many;
                my @flaws;
                push @flaws, 'not one of many requests reaches the origin' if !until_true(sub { $origin->count($path) == 2 });
                push @flaws, 'the others do not wait for it'               if !until_true(sub { waiting($cache) == $many - 1 });
                my $seconds = now() - $begin;
                $origin->open_gate("shared$number");
                my @responses = map { $_->response } @clients;
                push @flaws, 'not each client gets its response' if $many != grep { $_->{body} eq 'body' } @responses;
                push @flaws, 'not all but one have waited for the same answer' if $many - 1 != grep { cache_status($_) =~ /collapsed/ } @responses;
                push @flaws, $origin->count($path) - 1 . ' validations' if $origin->count($path) != 2;
                $_->close for @clients;
                return ($seconds, @flaws);
            });
        }
        # Requests that could not fetch the entry themselves wait for one that does.
        $origin->play('/waits', gated('waits', response(200, 'body', %fresh, ETag => '"1"')));
        my $getter = send_request('/waits');
        origin_has('/waits', 1, 'a GET that fetches: it reaches the origin');
        my $header = $proxy->connect;
        $header->send(request(HEAD => $origin->url('/waits'), Connection => 'close'));
        my $part = send_request('/waits', Range => 'bytes=1-2');
        my $knows = send_request('/waits', 'If-None-Match' => '"1"');
        all_wait($cache, 3, 'HEAD, a range and a condition beside a GET that fetches');
        $origin->open_gate('waits');
        my $answer = $header->response('HEAD');
        is "$answer->{status} " . $answer->field('Content-Length'), '200 4', 'HEAD beside a GET that fetches gets the head of the entry';
        is $part->response->{body}, 'od', 'a range beside a GET that fetches comes from the entry';
        is $knows->response->{status}, 304, 'a condition beside a GET that fetches is judged by the entry';
        is $getter->response->{body}, 'body', 'the GET gets its response';
        is $origin->count('/waits'), 1, 'HEAD, a range and a condition beside a GET that fetches do not reach the origin';
        $_->close for $getter, $header, $part, $knows;
        $origin->play('/replaced', response(200, 'body', %stale, ETag => '"1"'), gated('firstreplaced', response(200, 'body', %stale, ETag => '"1"')), gated('restreplaced', response(200, 'body', %stale, ETag => '"1"')));
        get('/replaced');
        my @clients = map { send_request('/replaced') } 1 .. $many;
        origin_has('/replaced', 2, 'a stale entry that is replaced: one of many requests reaches the origin');
        $origin->open_gate('firstreplaced');
        origin_has('/replaced', 1 + $many, 'a stale entry that is replaced by a stale one: then all other requests reach the origin');
        $origin->open_gate('restreplaced');
        is scalar(grep { $_->response->{body} eq 'body' } @clients), $many, 'a stale entry that is replaced by a stale one: each client gets its response';
        $_->close for @clients;
        $origin->play('/responses', gated('responses', response(200, 'for a', %fresh, Vary => 'X')), gated('others', response(200, 'for b', %fresh, Vary => 'X')));
        @clients = (send_request('/responses', X => 'a'));
        origin_has('/responses', 1, 'Vary: the first request reaches the origin');
        push @clients, map { send_request('/responses', X => 'b') } 1 .. $many;
        $origin->open_gate('responses');
        origin_has('/responses', 2, 'Vary: one of many requests for another variant reaches the origin');
        is $clients[0]->response->{body}, 'for a', 'Vary: the first client gets its variant';
        $origin->open_gate('others');
        is scalar(grep { $_->response->{body} eq 'for b' } @clients[1 .. $many]), $many, 'Vary: the other clients get the other variant';
        is $origin->count('/responses'), 2, 'Vary: one fetch serves all clients of a variant';
        $_->close for @clients;
    }

    # --- a long response goes to those who wait for it as it comes ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my %framing = (
            'Content-Length' => [ sub ($part) { $part }, 'Content-Length' => length $large ],
            'chunks'         => [ sub ($part) { sprintf "%x\r\n%s\r\n", length $part, $part }, 'Transfer-Encoding' => 'chunked' ],
        );
        for my $framing (sort keys %framing) {
            my ($frame, @fields) = @{ $framing{$framing} };
            my $path = '/grows' . ++$number;
            my ($first, $second) = (substr($large, 0, 100_000), substr $large, 100_000);
            $origin->play($path, [@{ response(200, undef, %fresh, 'Content-Type' => 'text/x', @fields) }, $frame->($first), \"grows$number", $frame->($second) . ($framing eq 'chunks' ? "0\r\n\r\n" : '')]);
            my $leader = send_request($path);
            ok scalar until_true(sub { $leader->fill(1); length $leader->pending >= 100_000 }), "a long response ($framing): the first client has the first half";
            my @others = map { send_request($path) } 1 .. 3;
            my $old    = $proxy->connect;
            $old->send('GET ' . $origin->url($path) . " HTTP/1.0\r\n\r\n");
            my $part = send_request($path, Range => 'bytes=150000-150009');
            for my $client (@others, $old) {
                ok scalar until_true(sub { $client->fill(1); length $client->pending >= 100_000 }), "a long response ($framing): another client has the first half, too";
            }
            $origin->open_gate("grows$number");
            my @responses = map { $_->response } @others;
            is scalar(grep { $_->{body} eq $large && $_->field('Content-Type') eq 'text/x' } @responses), 3, "a long response ($framing): the others get all of it";
            is cache_status($responses[0]), 'fwd=uri-miss; collapsed', "a long response ($framing): Cache-Status says that they have shared it";
            ok $old->response->{body} eq $large, "a long response ($framing): so does a client of HTTP/1.0";
            is $part->response->{body}, substr($large, 150_000, 10), "a long response ($framing): a client that wants a range gets it";
            ok $leader->response->{body} eq $large, "a long response ($framing): the first client gets all of it";
            is $origin->count($path), 1, "a long response ($framing): the origin is asked once";
            $_->close for @others, $old, $part, $leader;
        }
        $origin->play('/growslost', [@{ response(200, undef, %fresh, 'Content-Length' => 10) }, 'first', \'growslost', \'']);
        my $leader = send_request('/growslost');
        ok scalar until_true(sub { $leader->fill(1); $leader->pending =~ /first/ }), 'a long response that breaks off: the first client has the first half';
        my $other = send_request('/growslost');
        ok scalar until_true(sub { $other->fill(1); $other->pending =~ /first/ }), 'a long response that breaks off: another client has the first half, too';
        $origin->open_gate('growslost');
        is $other->drain =~ /first\z/, 1, 'a long response that breaks off: the connection of the other client ends there';
        $_->close for $leader, $other;
        $origin->play('/growsold', [@{ response(200, undef, %fresh, 'Content-Length' => 10) }, 'first', \'growsold', 'later'], response(204, undef), response(200, 'after', %fresh));
        $leader = send_request('/growsold');
        ok scalar until_true(sub { $leader->fill(1); $leader->pending =~ /first/ }), 'PUT in the middle of a long response: the first client has the first half';
        exchange($proxy, PUT => '/growsold', 'Content-Length' => 0);
        $other = send_request('/growsold');
        all_wait($cache, 1, 'PUT in the middle of a long response: another client comes');
        $origin->open_gate('growsold');
        is $other->response->{body}, 'after', 'PUT in the middle of a long response: who comes afterwards does not get it';
        $_->close for $leader, $other;
    }

    # --- many clients of an origin that answers at once share its answers ---
    # Each client asks again as soon as all have their responses. If only requests that come during a question to the
    # origin shared its answer, fork and thread would ask 160 to 960 times.
    if ($model->{single} || $model->{limited}) {
        skip_case('the model does not serve many kept connections at a time');
    } else {
        my ($many, $rounds) = (150, 20);
        my $nearby  = start_server(options => ['--service', 'sized', '--max-age', 0]);
        my $request = request(GET => 'http://127.0.0.1:' . $nearby->{port} . '/125');
        my @clients = map { $proxy->connect } 1 .. $many;
        my %answers;
        $_->send($request), $_->response for $clients[0];
        for (1 .. $rounds) {
            $proxy->paused(sub { $_->send($request) for @clients });    # it sees all of them at once, however fast the client is
            $answers{ cache_status($_->response) }++ for @clients;
        }
        my ($asked, $shared) = @answers{ 'fwd=stale; fwd-status=304', 'fwd=stale; collapsed' };
        is $asked + $shared, $many * $rounds, "$many clients at once: each of their requests is validated";
        cmp_ok $asked, '<=', $many * $rounds / 15, "$many clients at once: one answer of the origin serves many";
        $_->close for @clients;
        $nearby->stop;
    }

    # --- a response is sent before the proxy waits for the next one ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        $origin->play('/first', response(200, 'the first', %fresh));
        $origin->play('/second', gated('second', response(200, 'the second', %fresh)));
        get('/first');
        my $leader = send_request('/second');
        origin_has('/second', 1, 'a pipeline that waits: another client fetches its second target');
        my $client = $proxy->connect;
        $client->send(request(GET => $origin->url('/first')) . request(GET => $origin->url('/second'), Connection => 'close'));
        is $client->response->{body}, 'the first', 'a pipeline that waits: the first response comes at once';
        $origin->open_gate('second');
        is $client->response->{body}, 'the second', 'a pipeline that waits: the second response comes when the fetch has ended';
        is $leader->response->{body}, 'the second', 'a pipeline that waits: the client that fetches gets its response';
        $_->close for $client, $leader;
    }

    # --- a slow client does not delay a validation ---
    if ($model->{single}) {
        skip_case('a slow client and another one: the model serves one client at a time');
    } else {
        my $huge = $large x 40;
        $origin->play('/meantime', response(200, $huge, 'Cache-Control' => 'max-age=60, stale-while-revalidate=600', Age => 100, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
        get('/meantime');
        my $slow = send_request('/meantime');
        ok scalar until_true(sub { $slow->fill(1); $slow->pending =~ /\r\n\r\n./s }), 'a slow client reads the beginning of a stale entry';
        # (A client that comes before the server knows that the first one is slow does not start a validation.)
        ok scalar until_true(sub { get('/meantime')->{body} eq $huge && $origin->count('/meantime') == 2 }), 'a slow client of a stale entry: another client gets it, and the origin gets the validation';
        ok $slow->response->{body} eq $huge, 'a slow client of a stale entry gets it whole';
        ok scalar until_true(sub { cache_status(get('/meantime')) eq 'hit' }), 'a slow client of a stale entry: the entry is fresh after the validation';
        $slow->close;
        is $origin->count('/meantime'), 2, 'a slow client of a stale entry: one validation is enough';
    }
    $proxy->stop(%few);
});

done_testing;

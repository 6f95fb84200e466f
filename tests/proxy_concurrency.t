#!/usr/bin/perl
# Many clients of the proxy at the same time: no client gets a response older than a change, no client can evict what others
# may use, and no client waits for a response that it cannot use.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;

my $origin = Origin->new;
my %few    = (warnings => qr/limit of \d+ descriptors/);
my %fresh  = ('Cache-Control' => 'max-age=60');
my %stale  = ('Cache-Control' => 'max-age=60', Age => 100);
my %never  = ('Cache-Control' => 'max-age=0');
my $proxy;

sub start_proxy ($cache, @options) {
    return start_server(options => ['--service', 'proxy', '--cache', $cache, @options]);
}

sub get ($path, @fields) { return $proxy->get($origin->url($path), @fields) }
sub send_it ($where, $method, $path, @fields) {
    return scalar $where->exchange(request($method => $origin->url($path), Connection => 'close', @fields), $method);
}
sub status_of ($response) { return $response->field('Cache-Status') =~ s/^fork-vs-thread; //r =~ s/; ttl=.*//r }
sub gated ($name, $response) { return [\$name, @$response] }

# A client that has asked.
sub asks ($path, @fields) {
    my $client = $proxy->connect;
    $client->send(request(GET => $origin->url($path), Connection => 'close', @fields));
    return $client;
}

sub is_asked ($path, $count, $name) { ok scalar until_true(sub { $origin->count($path) == $count }), $name }

each_server(sub ($model) {
    my $scratch = scratch();
    my $cache   = "$scratch/cache";
    my $large   = join '', map { chr($_ * 7 % 251) } 1 .. 200_000;
    my $body;
    $proxy = start_proxy($cache);

    # --- a change while a response is on its way ---
    if ($model->{single}) {
        skip_case('clients at the same time: the model serves one');
    } else {
        my $second = start_proxy($cache);
        my %change = (
            'PUT'                                  => sub ($path) { send_it($proxy, PUT => $path, 'Content-Length' => 0) },
            'DELETE through another server'        => sub ($path) { send_it($second, DELETE => $path) },
            'POST that names it as Location'       => sub ($path) { send_it($proxy, POST => '/to', 'Content-Length' => 0) },
            'POST that names it as Content-Location, elsewhere' => sub ($path) { send_it($second, POST => '/to', 'Content-Length' => 0) },
        );
        my $number = 0;
        for my $how (sort keys %change) {
            my $path    = '/race' . ++$number;
            my $elsewhere = $how =~ /^POST/;
            my @changed = $elsewhere ? () : response(204, undef);
            $origin->play($path, gated("race$number", response(200, 'before', %fresh)), @changed, response(200, 'after', %fresh));
            $origin->play('/to', response(201, '', $how =~ /Content/ ? 'Content-Location' : 'Location', $path)) if $elsewhere;
            my $client = asks($path);
            is_asked($path, 1, "a response is on its way, and a $how passes");
            $change{$how}->($path);
            $origin->open_gate("race$number");
            is $client->response->{body}, 'before', 'who asked before gets what was there';
            $client->close;
            is get($path)->{body}, 'after', 'and the next one what is there now';
            like status_of(get($path)), qr/^hit/, 'which is kept';
        }
        $origin->play('/half', [@{ response(200, undef, %fresh, 'Content-Length' => 10) }, 'befor', \'half', 'e put'], response(204, undef), response(200, 'after', %fresh));
        my $client = asks('/half');
        ok scalar until_true(sub { $client->fill(1); $client->pending =~ /befor/ }), 'half of a response has come';
        send_it($proxy, PUT => '/half', 'Content-Length' => 0);
        $origin->open_gate('half');
        is $client->response->{body}, 'before put', 'the other half comes after a PUT';
        $client->close;
        is get('/half')->{body}, 'after', 'and is not kept';

        $body = "$large!";
        for ([small => 'body'], [large => $body]) {
            my ($size, $content) = @$_;
            $origin->play("/confirm$size", response(200, $content, %stale, ETag => '"1"'), gated($size, response(304, undef, %fresh, ETag => '"1"')),
                response(204, undef), response(200, 'after', %fresh));
            get("/confirm$size");
            $client = asks("/confirm$size");
            is_asked("/confirm$size", 2, "a $size entry is being confirmed");
            send_it($proxy, PUT => "/confirm$size", 'Content-Length' => 0);
            $origin->open_gate($size);
            ok $client->response->{body} eq $content, 'while it is changed';
            $client->close;
            is get("/confirm$size")->{body}, 'after', 'it is not good again by that';
        }
        $origin->play('/vary', response(200, 'old a', %fresh, Vary => 'X'), gated('vary', response(200, 'old b', %fresh, Vary => 'X')),
            response(204, undef), response(200, 'after', %fresh, Vary => 'X'));
        get('/vary', X => 'a');
        $client = asks('/vary', X => 'b');
        is_asked('/vary', 2, 'one of several responses is on its way');
        send_it($proxy, PUT => '/vary', 'Content-Length' => 0);
        $origin->open_gate('vary');
        $client->response;
        $client->close;
        is get('/vary', X => $_)->{body}, 'after', 'after a PUT neither that nor another one is kept' for qw(b a);
        $second->stop(%few);

        # An origin that says nothing: nobody waits for it once more in turn.
        my $all = $proxy;
        $proxy = start_proxy("$scratch/silent", '--origin-timeout', 2);
        $origin->play('/silent', [\'silent']);
        my @clients = map { asks('/silent') } 1 .. 6;
        is scalar(grep { $_->response->{status} == 504 } @clients), 6, 'an origin that says nothing: 504 for all that want the same';
        cmp_ok $origin->count('/silent'), '<', 6, 'who has waited for it with another does not do so again';
        $_->close for @clients;
        $proxy->stop(%few);
        $proxy = $all;
    }

    # --- what one client asks for takes nothing away from the others ---
    my @own = (Authorization => 'Basic eDp5', 'Cache-Control' => 'no-cache');
    my %blame = (
        '401 to made-up credentials'              => [response(401, 'who?', 'WWW-Authenticate' => 'Basic'), @own],
        '401 that may be stored'                  => [response(401, 'who?', 'Cache-Control' => 'public, max-age=60'), @own],
        '404 to made-up credentials'              => [response(404, 'none', %fresh), @own],
        '200 for one user'                        => [response(200, 'mine', %fresh), @own],
        '304 to one user'                         => [response(304, undef, ETag => '"1"'), @own],
        '304 to one user, about something else'   => [response(304, undef, ETag => '"2"'), @own],
        '400 to a request that the origin dislikes' => [response(400, 'bad'), 'Cache-Control' => 'no-cache', X => 'y'],
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
        is get($path)->{body}, 'for all', "$how: the stored response stays";
    }
    $origin->play('/range', response(200, 'for all', %fresh), response(416, 'none', 'Content-Range' => 'bytes */7'));
    get('/range');
    get('/range', 'Cache-Control' => 'no-cache', Range => 'bytes=100-');
    is get('/range')->{body}, 'for all', '416: the stored response stays';
    $origin->play('/head', response(200, 'for all', %fresh), response(200, undef, 'Content-Length' => 3), response(200, 'again', %fresh));
    get('/head');
    send_it($proxy, HEAD => '/head', @own);
    is get('/head')->{body}, 'for all', 'HEAD, for one user: the stored response stays';
    for my $status (404, 410, 302, 200) {
        $origin->play("/gone$status", response(200, 'for all', %fresh), response($status, 'gone'), response(200, 'new', %fresh));
        get("/gone$status");
        get("/gone$status", 'Cache-Control' => 'no-cache');
        is get("/gone$status")->{body}, 'new', "$status: the stored response goes";
    }

    # --- what is large is renewed as what is small is ---
    $origin->play('/large', response(200, $large, %stale, ETag => '"1"', X => 'old'), response(304, undef, %fresh, ETag => '"1"', X => 'new'), response(200, 'again', %fresh));
    get('/large');
    my $response = get('/large');
    ok $response->{body} eq $large && $response->field('X') eq 'new', 'a large entry is confirmed';
    $response = get('/large');
    ok $response->{body} eq $large, 'and used';
    is $response->field('X'), 'new', 'with the newer fields';
    is status_of($response), 'hit', 'without asking';
    is get('/large', Range => 'bytes=199990-')->{body}, substr($large, 199_990), 'a part of it, too';
    $origin->play('/large', response(200, undef, %fresh, ETag => '"1"', X => 'newer', 'Content-Length' => length $large), response(200, 'again', %fresh));
    send_it($proxy, HEAD => '/large', 'Cache-Control' => 'no-cache');
    $response = get('/large');
    ok $response->{body} eq $large && $response->field('X') eq 'newer', 'what a HEAD says about it is noted';
    is $origin->count('/large'), 1, 'without fetching it';
    $origin->play('/large', response(200, undef, %fresh, ETag => '"2"', 'Content-Length' => length $large), response(200, 'again', %fresh));
    send_it($proxy, HEAD => '/large', 'Cache-Control' => 'no-cache');
    is get('/large')->{body}, 'again', 'and so is that it is another one';
    is scalar(() = glob "$cache/t*"), 0, 'nothing is left behind';

    # --- what does not fit ---
    my $tag = '"' . 'e' x 3000 . '"';
    $origin->play('/tag', response(200, 'tagged', %fresh, ETag => $tag));
    get('/tag');
    $response = get('/tag', 'If-None-Match' => $tag);
    is "$response->{status} " . status_of($response), '304 hit', 'a tag of 3,000 characters is known again';
    $origin->play('/wordy', response(200, 'old', %stale, ETag => '"1"', X => 'x' x 8000), response(304, undef, %fresh, ETag => '"1"', Y => 'y' x 8000), response(200, 'new', %fresh));
    get('/wordy');
    is get('/wordy')->{body}, 'new', 'a confirmation that makes the fields too long: the whole is fetched anew';

    # --- what cannot be used by others is not waited for ---
    if ($model->{single}) {
        skip_case('clients at the same time: the model serves one');
    } else {
        my $many = 4;
        for my $case ([never => \%never], [nocache => { 'Cache-Control' => 'no-cache' }]) {
            my ($name, $control) = @$case;
            $origin->play("/$name", response(200, 'body', %$control, ETag => '"1"'), gated($name, response(304, undef, %$control, ETag => '"1"')));
            get("/$name");
            my @clients = map { asks("/$name") } 1 .. $many;
            is_asked("/$name", 1 + $many, "what is never fresh ($name): each asks for himself");
            $origin->open_gate($name);
            is scalar(grep { $_->response->{body} eq 'body' } @clients), $many, 'and is answered';
            $_->close for @clients;
        }
        for my $case ([confirmed => response(304, undef, %stale, ETag => '"1"')], [replaced => response(200, 'body', %stale, ETag => '"1"')]) {
            my ($name, $again) = @$case;
            $origin->play("/$name", response(200, 'body', %stale, ETag => '"1"'), gated("first$name", $again), gated("rest$name", $again));
            get("/$name");
            my @clients = map { asks("/$name") } 1 .. $many;
            is_asked("/$name", 2, "many ask for what is stale: one asks the origin ($name)");
            $origin->open_gate("first$name");
            is_asked("/$name", 1 + $many, 'it stays stale: the others do not wait for each other');
            $origin->open_gate("rest$name");
            is scalar(grep { $_->response->{body} eq 'body' } @clients), $many, 'and are answered';
            $_->close for @clients;
        }
        $origin->play('/responses', gated('responses', response(200, 'for a', %fresh, Vary => 'X')), gated('others', response(200, 'for b', %fresh, Vary => 'X')));
        my @clients = (asks('/responses', X => 'a'));
        is_asked('/responses', 1, 'one asks for what turns out to be one of several responses');
        push @clients, map { asks('/responses', X => 'b') } 1 .. $many;
        $origin->open_gate('responses');
        is_asked('/responses', 2, 'others, for another one: one of them asks');
        is $clients[0]->response->{body}, 'for a', 'the first has his';
        $origin->open_gate('others');
        is scalar(grep { $_->response->{body} eq 'for b' } @clients[1 .. $many]), $many, 'they get it';
        is $origin->count('/responses'), 2, 'by one fetch';
        $_->close for @clients;
    }

    # --- earlier responses go before anything is waited for ---
    if ($model->{single}) {
        skip_case('clients at the same time: the model serves one');
    } else {
        $origin->play('/first', response(200, 'the first', %fresh));
        $origin->play('/second', gated('second', response(200, 'the second', %fresh)));
        get('/first');
        my $leader = asks('/second');
        is_asked('/second', 1, 'somebody fetches');
        my $client = $proxy->connect;
        $client->send(request(GET => $origin->url('/first')) . request(GET => $origin->url('/second'), Connection => 'close'));
        is $client->response->{body}, 'the first', 'who asks for that behind something else has the first at once';
        $origin->open_gate('second');
        is $client->response->{body}, 'the second', 'and then the other';
        is $leader->response->{body}, 'the second', 'by one fetch';
        $_->close for $client, $leader;
    }

    # --- a slow client keeps nobody from asking about what is stale ---
    if ($model->{single}) {
        skip_case('a slow client and another one: the model serves one');
    } else {
        my $huge = $large x 40;
        $origin->play('/meantime', response(200, $huge, 'Cache-Control' => 'max-age=60, stale-while-revalidate=600', Age => 100, ETag => '"1"'), response(304, undef, %fresh, ETag => '"1"'));
        get('/meantime');
        my $slow = asks('/meantime');
        ok scalar until_true(sub { $slow->fill(1); $slow->pending =~ /\r\n\r\n./s }), 'a client has begun to read what is stale';
        # (who comes before the kernel has said that the first one is slow is not the one)
        ok scalar until_true(sub { get('/meantime')->{body} eq $huge && $origin->count('/meantime') == 2 }), 'another one gets it, too, and has the origin asked about it';
        ok $slow->response->{body} eq $huge, 'the slow one gets all of it';
        ok scalar until_true(sub { status_of(get('/meantime')) eq 'hit' }), 'it is fresh again';
        $slow->close;
        is $origin->count('/meantime'), 2, 'by one request';
    }
    $proxy->stop(%few);
});

done_testing;

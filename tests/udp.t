#!/usr/bin/perl
# --udp: HTTP in datagrams. A datagram has one request, and gets one datagram with the response.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP;
use Origin;
use ProxyFields qw(%few);

my $limit = 65_507;    # the most bytes that a datagram of IPv4 can carry
my $large = join '', map { pack 'N', $_ * 2654435761 % 4294967296 } 1 .. 50_000;
my $root  = tree('small.txt' => 's' x 1000, 'big.txt' => join('', map { chr(65 + $_ % 57) } 1 .. 10_000), 'large.bin' => $large,
    'site/index.html' => 'index');
my $origin = Origin->new;

# Returns the statistics of --stats, newly written.
sub counters ($server, $file) {
    spit($file, '');
    $server->signal('USR1');
    return until_true(sub { my $text = slurp($file); return $text =~ /\}\n\z/ && $text });
}

# Waits until a counter of --stats has the value. Returns the counter, which has another value if that does not happen.
sub counter ($server, $file, $name, $value) {
    my $found;
    until_true(sub {
        ($found) = counters($server, $file) =~ /"$name": (\d+)/;
        return ($found // -1) == $value;
    });
    return $found;
}

# Datagrams that are no request: the server drops each, and counts it.
my $get = request(GET => '/small.txt');
my @malformed = (
    ['nothing at all',                     ''],
    ['an empty line',                      "\r\n"],
    ['a word',                             "hello\n"],
    ['zeros',                              "\0" x 100],
    ['a head without its end',             substr $get, 0, -2],
    ['half a request line',                'GET /small'],
    ['a byte behind the request',          "${get}x"],
    ['a line end behind the request',      "$get\r\n"],
    ['two requests',                       $get x 2],
    ['no Host',                            "GET /small.txt HTTP/1.1\r\n\r\n"],
    ['line feeds alone',                   "GET /small.txt HTTP/1.1\nHost: x\n\n"],
    ['HTTP/0.9',                           "GET /small.txt\r\n"],
    ['a response',                         "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ['a body that is too short',           request(POST => '/small.txt', 'Content-Length' => 10, body => 'x' x 9)],
    ['a body that is too long',            request(POST => '/small.txt', 'Content-Length' => 10, body => 'x' x 11)],
    ['a request without its body',         request(POST => '/small.txt', 'Content-Length' => 10, Expect => '100-continue')],
    ['chunks without an end',              request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "5\r\nhello\r\n")],
    ['a chunked body and a byte',          request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "0\r\n\r\nx")],
    ['a query of DNS',                     pack('n6', 7, 256, 1, 0, 0, 0) . "\7example\3com\0" . pack('n2', 255, 1)],
    ['a ClientHello',                      "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" . 'r' x 160],
    ['a head that is cut in 32 KiB',       "GET /small.txt HTTP/1.1\r\nHost: x\r\nX: " . 'y' x 20_000],
    ['letters, more than a request line',  'x' x 9000],
    ['words, more than a request line',    'hello there ' x 1000],
    ['a response with a head of 33 KiB',   "HTTP/1.1 200 OK\r\nX: " . 'y' x 33_000],
    ['a response with many fields',        "HTTP/1.1 200 OK\r\n" . ('X: ' . 'y' x 900 . "\r\n") x 40 . "\r\n"],
    ['one byte more than a request may have', request(POST => '/small.txt', 'Content-Length' => 64_930, body => 'x' x 64_930)],
    ['the largest datagram',               request(POST => '/small.txt', 'Content-Length' => 65_400, body => 'x' x 65_400)],
);
{
    my $head = length request(POST => '/small.txt', 'Content-Length' => 64_930);
    my $body = 65_001 - $head;
    $malformed[-2][1] = request(POST => '/small.txt', 'Content-Length' => $body, body => 'x' x $body);
}

sub test_requests ($server) {
    my $response = $server->ask_udp($get);
    my $other = $server->get('/small.txt');
    is $response->{status}, 200, 'a request in a datagram gets 200';
    is $response->{body}, $other->{body}, 'a request in a datagram gets the body that it gets over TCP';
    is $response->field($_), $other->field($_), "a request in a datagram gets the $_ that it gets over TCP" for qw(ETag Last-Modified Content-Type Content-Length Accept-Ranges);
    is $server->ask_udp($get, 'GET', PeerHost => '::1')->{status}, 200, 'a request in a datagram over IPv6 gets 200' if $server->errors eq '' && -e '/proc/net/if_inet6';

    my $big = $server->get('/big.txt')->{body};
    is $server->ask_udp(request(GET => '/big.txt'))->{body}, $big, 'a document of 10,000 bytes is served';
    is $server->ask_udp(request(GET => '/site/'))->{body}, 'index', 'an index is served';
    is $server->ask_udp(request(GET => '/site'))->{status}, 301, 'a directory without its slash gets 301';
    is $server->ask_udp(request(GET => '/none'))->{status}, 404, 'a missing document gets 404';
    is $server->ask_udp(request(GET => '/../../etc/passwd'))->{status}, 400, 'a path out of the root is refused with 400';
    my $head = $server->ask_udp(request(HEAD => '/large.bin'), 'HEAD');
    is $head->{status} . $head->field('Content-Length'), '200' . length $large, 'HEAD gets the length of a document that does not fit into a datagram';
    is $server->ask_udp(request(GET => '/small.txt', 'If-None-Match' => $response->field('ETag')))->{status}, 304, 'If-None-Match with the ETag gets 304';
    is $server->ask_udp(request(GET => '/small.txt', 'If-Match' => '"x"'))->{status}, 412, 'If-Match with another ETag gets 412';
    is $server->ask_udp(request(OPTIONS => '*'))->{status}, 204, 'OPTIONS gets 204';
    is $server->ask_udp(request(BREW => '/'))->{status}, $server->exchange(request(BREW => '/', Connection => 'close'))->{status}, 'an unknown method gets the status that it gets over TCP';
    is $server->ask_udp(request(POST => '/small.txt', 'Content-Length' => 3, body => 'abc'))->{status}, 405, 'POST with a body gets 405';
    is $server->ask_udp(request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "3\r\nabc\r\n0\r\n\r\n"))->{status}, 405, 'POST with a chunked body gets 405';
    my $post = request(POST => '/small.txt', 'Content-Length' => 64_000, body => 'x' x 64_000);
    is $server->ask_udp($post)->{status}, 405, 'POST with a body of 64,000 bytes gets 405';
    is $server->ask_udp(request(POST => '/small.txt', Expect => '100-continue', 'Content-Length' => 3, body => 'abc'))->{status}, 405,
        'Expect: 100-continue gets the final response only';
    is $server->ask_udp(request(GET => '/small.txt', Expect => 'miracles'))->{status}, 417, 'another expectation is refused with 417';
    is $server->ask_udp(request(CONNECT => 'localhost:80'))->{status}, 501, 'CONNECT in a datagram is refused with 501';
    is $server->ask_udp("GET /small.txt HTTP/2.0\r\nHost: x\r\n\r\n")->{status}, 505, 'HTTP/2.0 is refused with 505';
    is $server->ask_udp("GET /small.txt HTTP/1.0\r\n\r\n")->{body}, 's' x 1000, 'a request of HTTP/1.0 gets the document';
    is $server->ask_udp("GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->field('Connection'), 'close', 'a request with keep-alive gets Connection: close';
    is $server->ask_udp(request(GET => '/small.txt', map { ("X$_" => 'y' x 900) } 1 .. 30))->{status}, 200, 'a head of 27 KiB gets 200';
    is $server->ask_udp(request(GET => '/small.txt', map { ("X$_" => 'y' x 900) } 1 .. 40))->{status}, 431, 'a head of 36 KiB is refused with 431';
    is $server->ask_udp(request(GET => '/' . 'x' x 9000))->{status}, 414, 'a target of 9,000 bytes is refused with 414';
}

sub test_size ($server) {
    my $response = $server->ask_udp(request(GET => '/large.bin'));
    is $response->{status}, 403, 'a document that does not fit into a datagram gets 403';
    is $response->{reason}, 'Too Long For A Datagram', 'a document that does not fit: the reason phrase says so';
    is $response->field('Accept-Ranges'), 'bytes', 'a document that does not fit: the 403 has Accept-Ranges';
    like $response->{body}, qr/\b$limit bytes\b.*\bRange\b.*\b200000 bytes\b/s, 'a document that does not fit: the page has the limit and the length';
    ok !$response->has('ETag'), 'a document that does not fit: the 403 has no ETag';

    my $whole = '';
    while (length $whole < length $large) {
        my $from = length $whole;
        my $part = $server->ask_udp(request(GET => '/large.bin', Range => "bytes=$from-" . ($from + 59_999), 'If-Range' => $server->ask_udp(request(HEAD => '/large.bin'), 'HEAD')->field('ETag')));
        last if $part->{status} != 206;
        $whole .= $part->{body};
    }
    ok $whole eq $large, 'ranges get the whole document';
    my @parts = parse_parts($server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-9,100000-100009')));
    is join('', map { $_->[1] } @parts), substr($large, 0, 10) . substr($large, 100_000, 10), 'several ranges come in one datagram';
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=200000-'))->{status}, 416, 'a range beyond the end is refused with 416';

    my $some = $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-64999'));
    my $most = 65_000 + $limit - $some->{whole};
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-' . ($most - 1)))->{whole}, $limit, "a response of exactly $limit bytes is sent";
    is $server->ask_udp(request(GET => '/large.bin', Range => "bytes=0-$most"))->{status}, 403, "a response of $limit bytes and one more gets 403";
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-39999,100000-139999'))->{status}, 403, 'several ranges that do not fit get 403';
    is $server->ask_udp(request(HEAD => '/large.bin', Range => 'bytes=0-'), 'HEAD')->{status}, 200, 'HEAD with a range that does not fit gets 200';
}

sub test_malformed ($server, $stats, $before) {
    my @sent = map { [$_->[0], $server->datagram($_->[1])] } @malformed;
    is counter($server, $stats, 'dropped', $before + @malformed), $before + @malformed, scalar(@malformed) . ' malformed datagrams are dropped and counted';
    for (@sent) {
        my ($name, $datagram) = @$_;
        is $datagram->receive(0), undef, "$name gets no response";
    }
    is $server->ask_udp($get)->{status}, 200, 'after malformed datagrams the server serves a request';
}

# Sends random bytes and damaged requests. Some are requests by chance; the server must count each as a request or as dropped.
sub test_hostile ($server, $stats) {
    srand 42;
    counter($server, $stats, 'active', 0);
    my ($requests, $dropped) = counters($server, $stats) =~ /"requests": (\d+).*?"dropped": (\d+)/;
    my @good = ($get, request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "5\r\nhello\r\n0\r\n\r\n"),
        request(GET => '/large.bin', Range => 'bytes=0-0,5-5', 'If-None-Match' => '"x"'));
    for my $round (1 .. 300) {
        my $bytes = $good[$round % @good];
        if ($round % 4) { substr $bytes, int rand length $bytes, 1, chr int rand 256 for 1 .. 1 + rand 4 }
        else            { $bytes = join '', map { chr int rand 256 } 1 .. 1 + rand 1400 }
        $server->datagram($bytes);
        next if $round % 20;
        until_true(sub {
            my ($now_requests, $now_dropped) = counters($server, $stats) =~ /"requests": (\d+).*?"dropped": (\d+)/;
            return $now_requests + $now_dropped == $requests + $dropped + $round;
        }) or last;
    }
    my ($after_requests, $after_dropped) = counters($server, $stats) =~ /"requests": (\d+).*?"dropped": (\d+)/;
    is $after_requests + $after_dropped, $requests + $dropped + 300, 'each of 300 hostile datagrams gets a response or is counted as dropped';
    cmp_ok $after_dropped, '>', $dropped + 75, 'more than 75 of 300 hostile datagrams are dropped';
    is $server->ask_udp($get)->{status}, 200, 'after hostile datagrams the server serves a request';
}

sub test_proxy ($server) {
    my $ask = sub ($path, @fields) { return $server->ask_udp(request(GET => $origin->url($path), @fields)) };

    $origin->play('/kept', response(200, 'kept', 'Cache-Control' => 'max-age=60', ETag => '"1"'));
    is $ask->('/kept')->{body}, 'kept', 'proxy: a response comes from the origin';
    like $ask->('/kept')->field('Cache-Status'), qr/\bhit\b/, 'proxy: the next response comes from the cache';
    is $ask->('/kept', Range => 'bytes=1-2')->{body}, 'ep', 'proxy: a range comes from the cache';
    is $ask->('/kept', 'If-None-Match' => '"1"')->{status}, 304, 'proxy: If-None-Match gets 304 from the cache';
    $origin->play('/early', ["HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", @{ response(200, 'late') }]);
    is $ask->('/early')->{body}, 'late', 'proxy: an interim response of the origin is dropped';
    $origin->play('/chunks', ["HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"]);
    is $ask->('/chunks')->{body}, 'abcdef', 'proxy: a chunked response arrives';
    is $server->ask_udp('GET ' . $origin->url('/chunks') . " HTTP/1.0\r\n\r\n")->{body}, 'abcdef', 'proxy: a chunked response arrives without a length for HTTP/1.0';
    $origin->play('/long', response(200, 'x' x 70_000, 'Cache-Control' => 'no-store'));
    my $response = $ask->('/long');
    is "$response->{status} $response->{reason}", '403 Too Long For A Datagram', 'proxy: a response of 70,000 bytes gets 403';
    $origin->play('/endless', ["HTTP/1.1 200 OK\r\n\r\n", ('y' x 65_536) x 40]);
    is $ask->('/endless')->{status}, 403, 'proxy: a response without a length that becomes too long gets 403';
    $origin->play('/keep-long', response(200, 'x' x 70_000, 'Cache-Control' => 'max-age=60'));
    is $ask->('/keep-long')->{status}, 403, 'proxy: a response of 70,000 bytes that may be stored gets 403';
    $origin->play('/wrong', response(404, 'x' x 70_000));
    is $ask->('/wrong')->{status}, 404, 'proxy: a 404 with a page that does not fit stays a 404';
    $origin->play('/cut', ["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"]);
    is $ask->('/cut')->{status}, 502, 'proxy: a response that the origin breaks off gets 502';
    $origin->play('/stale', response(200, 'old', 'Cache-Control' => 'max-age=60, stale-while-revalidate=900', Age => 100, ETag => '"1"'),
        [\'stale', @{ response(304, undef, ETag => '"1"') }]);
    is $ask->('/stale')->{body}, 'old', 'proxy, stale-while-revalidate: the first response comes from the origin';
    is $ask->('/stale')->{body}, 'old', 'proxy, stale-while-revalidate: the stale entry is served before the origin has validated it';
    $origin->open_gate('stale');
    ok until_true(sub { $origin->count('/stale') == 2 }), 'proxy, stale-while-revalidate: the proxy validates the entry in the background';
    $origin->play('/post', response(200, 'thanks'));
    is $server->ask_udp(request(POST => $origin->url('/post'), 'Content-Length' => 60_000, Expect => '100-continue', body => 'b' x 60_000))->{body}, 'thanks',
        'proxy: a POST of 60,000 bytes gets the response of the origin';
    my ($posted) = $origin->requests('/post');
    is length $posted =~ s/.*?\r\n\r\n//sr, 60_000, 'proxy: a body of 60,000 bytes reaches the origin';
    unlike $posted, qr/^Expect:/mi, 'proxy: Expect is not forwarded';
    is $server->ask_udp(request(CONNECT => '127.0.0.1:' . $origin->port))->{status}, 501, 'CONNECT in a datagram is refused with 501';
    is $server->ask_udp(request(GET => 'http://192.0.2.1/'))->{status}, 403, 'proxy: a host that is not allowed is refused with 403';
}

# Binds a UDP port whose TCP port is free, outside the range from which the kernel chooses ports of clients.
sub take_port () {
    return until_true(sub {
        my $port = 20_000 + int rand 10_000;
        my $free = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $port, Listen => 1) or return;
        return IO::Socket::IP->new(Proto => 'udp', Type => Socket::SOCK_DGRAM(), LocalHost => '127.0.0.1', LocalPort => $port);
    });
}

each_server(sub ($model) {
    my $place  = scratch();
    my $server = start_server(root => $root, options => ['--udp', '--log', "$place/log", '--stats', "$place/stats"]);
    like $server->{ready}, qr/UDP/, 'the ready line names UDP';
    test_requests($server);
    test_size($server);
    my $lines = () = slurp("$place/log") =~ /^127\.0\.0\.1 - - \[[^]]+\] "GET \/large\.bin HTTP\/1\.1" 403 \d+ "-" "-"$/mg;
    is $lines, 3, 'the log has the clients and statuses of datagrams';
    is counter($server, "$place/stats", 'active', 0), 0, 'no datagram counts as active after its response';
    my ($connections, $requests) = counters($server, "$place/stats") =~ /"connections": (\d+).*?"requests": (\d+)/;
    is $connections, $requests, 'each datagram counts as a connection and a request';
    test_malformed($server, "$place/stats", 0);
    test_hostile($server, "$place/stats");

    my @crowd = map { $server->datagram(request(GET => '/big.txt')) } 1 .. 40;
    is scalar(grep { $_->response->{status} == 200 } @crowd), 40, '40 datagrams at once get responses';
    if (command_exists('socat')) {
        my $length = length $server->datagram($get)->receive;
        spit("$place/request", $get);
        my $said = run_command('sh', '-c', "socat -t 30 - UDP4:127.0.0.1:$server->{port},readbytes=$length <$place/request");
        like $said->{out}, qr{\AHTTP/1\.1 200 OK\r\n.*\r\n\r\ns{1000}\z}s, 'socat gets a response' or diag($said->{err});
    } else {
        skip_case('socat is not installed');
    }
    my ($dropped) = counters($server, "$place/stats") =~ /"dropped": (\d+)/;
    like $server->stop, qr/, $dropped datagrams dropped$/, 'the summary has the number of dropped datagrams';

    $server = start_server(options => [qw(--udp --service sized)]);
    my $sized = $server->ask_udp(request(GET => '/150'));
    is length $sized->{body}, 150, '--service sized serves a document in a datagram';
    is $server->ask_udp(request(GET => '/151', Range => 'bytes=0-9'))->{status}, 206, '--service sized serves a range in a datagram';
    is $server->ask_udp(request(GET => '/99'))->{status}, 400, '--service sized refuses a wrong size with 400 in a datagram';
    $server->stop;

    $server = start_server(options => ['--udp', '--service', 'proxy', '--cache', "$place/cache"]);
    test_proxy($server);
    $server->stop(%few);

    # The command line
    my $refused = run_server('--udp', '--tls', 0);
    is $refused->{status}, 2, '--udp with --tls is refused with exit status 2';
    like $refused->{err}, qr/^[^\n]*--udp[^\n]*--tls[^\n]*\n\z/, '--udp with --tls is refused with one line that names both';
    my $taken = take_port();
    $refused = run_server('--udp', '--root', $root, $taken->sockport);
    is $refused->{status}, 1, 'a UDP port that is in use is refused with exit status 1';
    my $port = $taken->sockport;
    like $refused->{err}, qr/^[^\n]*datagrams[^\n]*port $port\b[^\n]*in use\n\z/, 'a UDP port that is in use is refused with one line that names it';

    # Without --udp
    $server = start_server(root => $root, options => ['--stats', "$place/plain"]);
    my $nobody = $server->datagram($get);
    is $server->get('/small.txt')->{status}, 200, 'without --udp the server serves TCP';
    is $nobody->receive(0.1), undef, 'without --udp a datagram gets no response';
    unlike $server->{ready}, qr/UDP/, 'without --udp the ready line does not name UDP';
    unlike counters($server, "$place/plain"), qr/dropped/, 'without --udp the statistics do not count datagrams';
    unlike $server->stop, qr/datagram/, 'without --udp the summary does not count datagrams';
});

each_way_to_accept(sub ($model) {
    # Datagrams one after the other, beside an idle TCP connection
    my $server = start_server(root => $root, options => [qw(--udp --stop-timeout 3600)]);
    my $held = $model->{single} ? undef : $server->connect;
    is scalar(grep { $server->ask_udp($get)->{status} == 200 } 1 .. 100), 100, '100 datagrams, one after the other, get responses';
    $held->close if $held;
    is scalar(grep { $server->get('/small.txt')->{status} == 200 && $server->ask_udp($get)->{status} == 200 } 1 .. 20), 20, 'requests over TCP and UDP in turn get responses';
    my @waiting = map { $server->datagram($get) } 1 .. 20;
    $server->signal('TERM');
    is scalar(grep { $_->response->{status} == 200 } @waiting), 20, 'datagrams that wait when SIGTERM arrives get responses';
    $server->ended;

    # --max-connections limits the datagrams at once
    my $most = $model->{single} ? 1 : 2;
    $server = start_server(options => ['--udp', '--service', 'proxy', '--no-cache', '--max-connections', $most]);
    $origin->play("/held$_", [\'held', @{ response(200, 'held') }]) for 1 .. 5;
    my @held = map { $server->datagram(request(GET => $origin->url("/held$_"))) } 1 .. 5;
    my $asked = sub { scalar grep { $origin->count("/held$_") } 1 .. 5 };
    ok until_true(sub { $asked->() >= $most }), "--max-connections $most: so many datagrams are served at once";
    is $held[0]->receive(0.2), undef, '--max-connections: a datagram gets no response before its origin responds';
    cmp_ok $asked->(), '<=', $model->{single} && $model->{limited} ? $model->{workers} : $most, '--max-connections: no more datagrams than that are served at once';
    $origin->open_gate('held');
    is scalar(grep { $_->response->{body} eq 'held' } @held), 5, '--max-connections: datagrams that wait get responses when there is a place';
    $server->stop(%few);

    # A stop waits for datagrams that are being served
    $server = start_server(options => ['--udp', '--service', 'proxy', '--no-cache', '--stop-timeout', 3600]);
    $origin->play('/late', [\'late', @{ response(200, 'late') }]);
    my $late = $server->datagram(request(GET => $origin->url('/late')));
    ok until_true(sub { $origin->count('/late') }), 'a datagram waits for its origin before SIGTERM';
    $server->deliver('TERM');
    $origin->open_gate('late');
    is $late->response->{body}, 'late', 'a datagram that waits for its origin gets its response after SIGTERM';
    $server->ended(%few);
});

done_testing;

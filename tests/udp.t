#!/usr/bin/perl
# --udp: HTTP in datagrams, one request in each, and one datagram for its response.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP;
use Origin;

my $limit = 65_507;    # the most that a datagram of IPv4 can carry
my $large = join '', map { pack 'N', $_ * 2654435761 % 4294967296 } 1 .. 50_000;
my $root  = tree('small.txt' => 's' x 1000, 'big.txt' => join('', map { chr(65 + $_ % 57) } 1 .. 10_000), 'large.bin' => $large,
    'site/index.html' => 'index');
my $origin = Origin->new;

# What --stats says now.
sub counters ($server, $file) {
    spit($file, '');
    $server->signal('USR1');
    return until_true(sub { my $text = slurp($file); return $text =~ /\}\n\z/ && $text });
}

# A counter of --stats, once it has the value, or else as it is in the end.
sub counter ($server, $file, $name, $value) {
    my $found;
    until_true(sub {
        ($found) = counters($server, $file) =~ /"$name": (\d+)/;
        return ($found // -1) == $value;
    }, 20);
    return $found;
}

# Requests that are none: each is dropped, and counted.
my $get = request(GET => '/small.txt');
my @malformed = (
    ['nothing at all',                     ''],
    ['an empty line',                      "\r\n"],
    ['no HTTP',                            "hello\n"],
    ['zeros',                              "\0" x 100],
    ['a head without its end',             substr $get, 0, -2],
    ['half a request line',                'GET /small'],
    ['a byte behind the request',          "${get}x"],
    ['a line end behind the request',      "$get\r\n"],
    ['two requests',                       $get x 2],
    ['no Host',                            "GET /small.txt HTTP/1.1\r\n\r\n"],
    ['line feeds alone',                   "GET /small.txt HTTP/1.1\nHost: x\n\n"],
    ['HTTP/0.9',                           "GET /small.txt\r\n"],
    ['a response',                            "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"],
    ['a body that is too short',           request(POST => '/small.txt', 'Content-Length' => 10, body => 'x' x 9)],
    ['a body that is too long',            request(POST => '/small.txt', 'Content-Length' => 10, body => 'x' x 11)],
    ['a body that is far away',            request(POST => '/small.txt', 'Content-Length' => 10, Expect => '100-continue')],
    ['chunks without an end',              request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "5\r\nhello\r\n")],
    ['a byte behind the chunks',           request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "0\r\n\r\nx")],
    ['a line of DNS',                      pack('n6', 7, 256, 1, 0, 0, 0) . "\7example\3com\0" . pack('n2', 255, 1)],
    ['a ClientHello',                      "\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03" . 'r' x 160],
    ['a head that is cut in 32 KiB',       "GET /small.txt HTTP/1.1\r\nHost: x\r\nX: " . 'y' x 20_000],
    ['letters, more than a request line',  'x' x 9000],
    ['words, more than a request line',    'hello there ' x 1000],
    ['a response with a head of 33 KiB',      "HTTP/1.1 200 OK\r\nX: " . 'y' x 33_000],
    ['a response with many fields',           "HTTP/1.1 200 OK\r\n" . ('X: ' . 'y' x 900 . "\r\n") x 40 . "\r\n"],
    ['one byte more than is received',     request(POST => '/small.txt', 'Content-Length' => 64_930, body => 'x' x 64_930)],
    ['the largest that there can be',      request(POST => '/small.txt', 'Content-Length' => 65_400, body => 'x' x 65_400)],
);
{
    my $head = length request(POST => '/small.txt', 'Content-Length' => 64_930);
    my $body = 65_001 - $head;
    $malformed[-2][1] = request(POST => '/small.txt', 'Content-Length' => $body, body => 'x' x $body);
}

sub test_requests ($server) {
    my $response = $server->ask_udp($get);
    my $other = $server->get('/small.txt');
    is $response->{status}, 200, 'a request in a datagram: 200';
    is $response->{body}, $other->{body}, 'its body is that of TCP';
    is $response->field($_), $other->field($_), "its $_ is that of TCP" for qw(ETag Last-Modified Content-Type Content-Length Accept-Ranges);
    is $server->ask_udp($get, 'GET', PeerHost => '::1')->{status}, 200, 'at ::1, too' if $server->errors eq '' && -e '/proc/net/if_inet6';

    my $big = $server->get('/big.txt')->{body};
    is $server->ask_udp(request(GET => '/big.txt'))->{body}, $big, '10,000 bytes';
    is $server->ask_udp(request(GET => '/site/'))->{body}, 'index', 'an index';
    is $server->ask_udp(request(GET => '/site'))->{status}, 301, 'a redirection';
    is $server->ask_udp(request(GET => '/none'))->{status}, 404, '404';
    is $server->ask_udp(request(GET => '/../../etc/passwd'))->{status}, 400, 'nothing outside of the root';
    my $head = $server->ask_udp(request(HEAD => '/large.bin'), 'HEAD');
    is $head->{status} . $head->field('Content-Length'), '200' . length $large, 'HEAD tells the length of what does not fit';
    is $server->ask_udp(request(GET => '/small.txt', 'If-None-Match' => $response->field('ETag')))->{status}, 304, 'a condition: 304';
    is $server->ask_udp(request(GET => '/small.txt', 'If-Match' => '"x"'))->{status}, 412, 'a condition: 412';
    is $server->ask_udp(request(OPTIONS => '*'))->{status}, 204, 'OPTIONS';
    is $server->ask_udp(request(BREW => '/'))->{status}, $server->exchange(request(BREW => '/', Connection => 'close'))->{status}, 'a method that nobody knows: as by TCP';
    is $server->ask_udp(request(POST => '/small.txt', 'Content-Length' => 3, body => 'abc'))->{status}, 405, 'a body';
    is $server->ask_udp(request(POST => '/small.txt', 'Transfer-Encoding' => 'chunked', body => "3\r\nabc\r\n0\r\n\r\n"))->{status}, 405, 'a body in chunks';
    my $post = request(POST => '/small.txt', 'Content-Length' => 64_000, body => 'x' x 64_000);
    is $server->ask_udp($post)->{status}, 405, 'a body of 64,000 bytes';
    is $server->ask_udp(request(POST => '/small.txt', Expect => '100-continue', 'Content-Length' => 3, body => 'abc'))->{status}, 405,
        'Expect: no response comes before the last';
    is $server->ask_udp(request(GET => '/small.txt', Expect => 'miracles'))->{status}, 417, 'another expectation: 417';
    is $server->ask_udp(request(CONNECT => 'localhost:80'))->{status}, 501, 'no tunnel is made of datagrams';
    is $server->ask_udp("GET /small.txt HTTP/2.0\r\nHost: x\r\n\r\n")->{status}, 505, 'another version: 505';
    is $server->ask_udp("GET /small.txt HTTP/1.0\r\n\r\n")->{body}, 's' x 1000, 'HTTP/1.0';
    is $server->ask_udp("GET /small.txt HTTP/1.0\r\nConnection: keep-alive\r\n\r\n")->field('Connection'), 'close', 'nothing is kept alive';
    is $server->ask_udp(request(GET => '/small.txt', map { ("X$_" => 'y' x 900) } 1 .. 30))->{status}, 200, 'a head of 27 KiB';
    is $server->ask_udp(request(GET => '/small.txt', map { ("X$_" => 'y' x 900) } 1 .. 40))->{status}, 431, 'a head of 36 KiB: 431';
    is $server->ask_udp(request(GET => '/' . 'x' x 9000))->{status}, 414, 'a target of 9,000 bytes: 414';
}

sub test_size ($server) {
    my $response = $server->ask_udp(request(GET => '/large.bin'));
    is $response->{status}, 403, 'what does not fit into a datagram: 403';
    is $response->{reason}, 'Too Long For A Datagram', 'which says so';
    is $response->field('Accept-Ranges'), 'bytes', 'and points to ranges';
    like $response->{body}, qr/\b$limit bytes\b.*\bRange\b.*\b200000 bytes\b/s, 'and its page tells the limit and the length';
    ok !$response->has('ETag'), 'and nothing is said of the document that is not of the page';

    my $whole = '';
    while (length $whole < length $large) {
        my $from = length $whole;
        my $part = $server->ask_udp(request(GET => '/large.bin', Range => "bytes=$from-" . ($from + 59_999), 'If-Range' => $server->ask_udp(request(HEAD => '/large.bin'), 'HEAD')->field('ETag')));
        last if $part->{status} != 206;
        $whole .= $part->{body};
    }
    ok $whole eq $large, 'ranges bring all of it';
    my @parts = parse_parts($server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-9,100000-100009')));
    is join('', map { $_->[1] } @parts), substr($large, 0, 10) . substr($large, 100_000, 10), 'several ranges';
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=200000-'))->{status}, 416, 'a range that there is not: 416';

    my $some = $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-64999'));
    my $most = 65_000 + $limit - $some->{whole};
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-' . ($most - 1)))->{whole}, $limit, "a response of $limit bytes";
    is $server->ask_udp(request(GET => '/large.bin', Range => "bytes=0-$most"))->{status}, 403, 'one more is too many';
    is $server->ask_udp(request(GET => '/large.bin', Range => 'bytes=0-39999,100000-139999'))->{status}, 403, 'several ranges that are too long';
    is $server->ask_udp(request(HEAD => '/large.bin', Range => 'bytes=0-'), 'HEAD')->{status}, 200, 'a head alone is not';
}

sub test_malformed ($server, $stats, $before) {
    my @sent = map { [$_->[0], $server->datagram($_->[1])] } @malformed;
    is counter($server, $stats, 'dropped', $before + @malformed), $before + @malformed, scalar(@malformed) . ' malformed datagrams are dropped, and counted';
    for (@sent) {
        my ($name, $datagram) = @$_;
        my $answer = $datagram->receive(0);
        is $answer, undef, "$name: no response";
    }
    is $server->ask_udp($get)->{status}, 200, 'after that the server is well';
}

# Bytes that mean no good: some are requests by chance, and all are counted as one thing or the other.
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
        }, 20) or last;
    }
    my ($after_requests, $after_dropped) = counters($server, $stats) =~ /"requests": (\d+).*?"dropped": (\d+)/;
    is $after_requests + $after_dropped, $requests + $dropped + 300, 'of 300 hostile datagrams each was answered or dropped';
    cmp_ok $after_dropped, '>', $dropped + 75, 'most of them dropped';
    is $server->ask_udp($get)->{status}, 200, 'after that the server is well';
}

sub test_proxy ($server) {
    my $ask = sub ($path, @fields) { return $server->ask_udp(request(GET => $origin->url($path), @fields)) };

    $origin->play('/kept', response(200, 'kept', 'Cache-Control' => 'max-age=60', ETag => '"1"'));
    is $ask->('/kept')->{body}, 'kept', 'through the proxy: a miss';
    like $ask->('/kept')->field('Cache-Status'), qr/\bhit\b/, 'and a hit';
    is $ask->('/kept', Range => 'bytes=1-2')->{body}, 'ep', 'and a range of what is stored';
    is $ask->('/kept', 'If-None-Match' => '"1"')->{status}, 304, 'and a condition';
    $origin->play('/early', ["HTTP/1.1 103 Early Hints\r\nLink: x\r\n\r\n", @{ response(200, 'late') }]);
    is $ask->('/early')->{body}, 'late', 'what an origin says before its response does not come';
    $origin->play('/chunks', ["HTTP/1.1 200 OK\r\nServer: s\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n3\r\ndef\r\n0\r\n\r\n"]);
    is $ask->('/chunks')->{body}, 'abcdef', 'a response in chunks';
    is $server->ask_udp('GET ' . $origin->url('/chunks') . " HTTP/1.0\r\n\r\n")->{body}, 'abcdef', 'a response without a length';
    $origin->play('/long', response(200, 'x' x 70_000, 'Cache-Control' => 'no-store'));
    my $response = $ask->('/long');
    is "$response->{status} $response->{reason}", '403 Too Long For A Datagram', 'a response of 70,000 bytes does not fit';
    $origin->play('/endless', ["HTTP/1.1 200 OK\r\n\r\n", ('y' x 65_536) x 40]);
    is $ask->('/endless')->{status}, 403, 'nor does one whose length nobody knew';
    $origin->play('/keep-long', response(200, 'x' x 70_000, 'Cache-Control' => 'max-age=60'));
    is $ask->('/keep-long')->{status}, 403, 'nor one that could be stored';
    $origin->play('/wrong', response(404, 'x' x 70_000));
    is $ask->('/wrong')->{status}, 404, 'what is wrong stays so, however long it is said';
    $origin->play('/cut', ["HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\nabc"]);
    is $ask->('/cut')->{status}, 502, 'a response that breaks off: 502, since none of it is gone';
    $origin->play('/stale', response(200, 'old', 'Cache-Control' => 'max-age=60, stale-while-revalidate=900', Age => 100, ETag => '"1"'),
        [\'stale', @{ response(304, undef, ETag => '"1"') }]);
    is $ask->('/stale')->{body}, 'old', 'a response that is stale at once';
    is $ask->('/stale')->{body}, 'old', 'goes before the origin has said that it is good';
    $origin->open_gate('stale');
    ok until_true(sub { $origin->count('/stale') == 2 }), 'which it is asked meanwhile';
    $origin->play('/post', response(200, 'thanks'));
    is $server->ask_udp(request(POST => $origin->url('/post'), 'Content-Length' => 60_000, Expect => '100-continue', body => 'b' x 60_000))->{body}, 'thanks',
        'a body of 60,000 bytes for the origin';
    my ($posted) = $origin->requests('/post');
    is length $posted =~ s/.*?\r\n\r\n//sr, 60_000, 'arrives there';
    unlike $posted, qr/^Expect:/mi, 'and nothing is expected';
    is $server->ask_udp(request(CONNECT => '127.0.0.1:' . $origin->port))->{status}, 501, 'no tunnel is made of datagrams';
    is $server->ask_udp(request(GET => 'http://192.0.2.1/'))->{status}, 403, 'nor is it an open proxy';
}

# Takes a port of UDP that TCP would have: not one of those that clients are given.
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
    like $server->{ready}, qr/UDP/, 'the ready line speaks of UDP';
    test_requests($server);
    test_size($server);
    my $lines = () = slurp("$place/log") =~ /^127\.0\.0\.1 - - \[[^]]+\] "GET \/large\.bin HTTP\/1\.1" 403 \d+ "-" "-"$/mg;
    is $lines, 3, 'the log names clients and what they were told';
    is counter($server, "$place/stats", 'active', 0), 0, 'all datagrams have left';
    my ($connections, $requests) = counters($server, "$place/stats") =~ /"connections": (\d+).*?"requests": (\d+)/;
    is $connections, $requests, 'each datagram counts as a connection and a request';
    test_malformed($server, "$place/stats", 0);
    test_hostile($server, "$place/stats");

    my @crowd = map { $server->datagram(request(GET => '/big.txt')) } 1 .. 40;
    is scalar(grep { $_->response->{status} == 200 } @crowd), 40, '40 at once are answered';
    if (command_exists('socat')) {
        my $length = length $server->datagram($get)->receive;
        spit("$place/request", $get);
        my $said = run_command('sh', '-c', "socat -t 30 - UDP4:127.0.0.1:$server->{port},readbytes=$length <$place/request");
        like $said->{out}, qr{\AHTTP/1\.1 200 OK\r\n.*\r\n\r\ns{1000}\z}s, 'socat is answered' or diag($said->{err});
    } else {
        skip_case('there is no socat');
    }
    my ($dropped) = counters($server, "$place/stats") =~ /"dropped": (\d+)/;
    like $server->stop, qr/, $dropped datagrams dropped$/, 'the summary tells how many were dropped';

    $server = start_server(options => [qw(--udp --service sized)]);
    my $sized = $server->ask_udp(request(GET => '/150'));
    is length $sized->{body}, 150, '--service sized';
    is $server->ask_udp(request(GET => '/151', Range => 'bytes=0-9'))->{status}, 206, '--service sized: a range';
    is $server->ask_udp(request(GET => '/99'))->{status}, 400, '--service sized: 400';
    $server->stop;

    $server = start_server(options => ['--udp', '--service', 'proxy', '--cache', "$place/cache"]);
    test_proxy($server);
    $server->stop(warnings => qr/limit of \d+ descriptors/);

    # The command line
    my $refused = run_server('--udp', '--tls', 0);
    is $refused->{status}, 2, '--udp with --tls: status 2';
    like $refused->{err}, qr/^[^\n]*--udp[^\n]*--tls[^\n]*\n\z/, 'and one line that says so';
    my $taken = take_port();
    $refused = run_server('--udp', '--root', $root, $taken->sockport);
    is $refused->{status}, 1, 'a port that UDP has no more: status 1';
    my $port = $taken->sockport;
    like $refused->{err}, qr/^[^\n]*datagrams[^\n]*port $port\b[^\n]*in use\n\z/, 'and one line that says so';

    # Without --udp
    $server = start_server(root => $root, options => ['--stats', "$place/plain"]);
    my $nobody = $server->datagram($get);
    is $server->get('/small.txt')->{status}, 200, 'without --udp: TCP is served';
    is $nobody->receive(0.1), undef, 'and UDP is not';
    unlike $server->{ready}, qr/UDP/, 'nor spoken of';
    unlike counters($server, "$place/plain"), qr/dropped/, 'nor counted';
    unlike $server->stop, qr/datagram/, 'nor summed up';
});

each_way_to_accept(sub ($model) {
    # One behind the other, beside a connection by TCP that is idle
    my $server = start_server(root => $root, options => [qw(--udp --stop-timeout 3600)]);
    my $held = $model->{single} ? undef : $server->connect;
    is scalar(grep { $server->ask_udp($get)->{status} == 200 } 1 .. 100), 100, '100 datagrams, one behind the other';
    $held->close if $held;
    is scalar(grep { $server->get('/small.txt')->{status} == 200 && $server->ask_udp($get)->{status} == 200 } 1 .. 20), 20, 'TCP and UDP in turn';
    my @waiting = map { $server->datagram($get) } 1 .. 20;
    $server->signal('TERM');
    is scalar(grep { $_->response->{status} == 200 } @waiting), 20, 'what waits at a stop is still answered';
    $server->ended;

    # No more at once than connections
    my $most = $model->{single} ? 1 : 2;
    $server = start_server(options => ['--udp', '--service', 'proxy', '--no-cache', '--max-connections', $most]);
    $origin->play("/held$_", [\'held', @{ response(200, 'held') }]) for 1 .. 5;
    my @held = map { $server->datagram(request(GET => $origin->url("/held$_"))) } 1 .. 5;
    my $asked = sub { scalar grep { $origin->count("/held$_") } 1 .. 5 };
    ok until_true(sub { $asked->() >= $most }), "$most datagrams are worked on";
    is $held[0]->receive(0.2), undef, 'and wait for their origin';
    cmp_ok $asked->(), '<=', $model->{single} && $model->{limited} ? $model->{workers} : $most, '--max-connections: and no more than that';
    $origin->open_gate('held');
    is scalar(grep { $_->response->{body} eq 'held' } @held), 5, 'those that wait are answered when there is a place';
    $server->stop(warnings => qr/limit of \d+ descriptors/);

    # At a stop, too, what is under way comes to its end
    $server = start_server(options => ['--udp', '--service', 'proxy', '--no-cache', '--stop-timeout', 3600]);
    $origin->play('/late', [\'late', @{ response(200, 'late') }]);
    my $late = $server->datagram(request(GET => $origin->url('/late')));
    ok until_true(sub { $origin->count('/late') }), 'a datagram whose origin takes its time';
    $server->signal('TERM');
    until_true(sub { !$server->pending_signals });
    $origin->open_gate('late');
    is $late->response->{body}, 'late', 'is answered after SIGTERM';
    $server->ended(warnings => qr/limit of \d+ descriptors/);
});

done_testing;

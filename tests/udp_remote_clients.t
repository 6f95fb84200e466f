#!/usr/bin/perl
# --udp for clients of other machines: a response has at most three times the bytes of its request (so that the server
# is no amplifier), and comes from the address to which the request was sent.
#
# The test runs in a network namespace whose loopback interface has other addresses than those of loopback.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my @ways = (['unshare', '--net'], ['unshare', '--net', '--map-root-user']);
my $setup = 'ip link set lo up && ip addr add 192.0.2.1/24 brd 192.0.2.255 dev lo && ip addr add 192.0.2.2/32 dev lo && exec "$@"';
if (!$ENV{TEST_FAR}) {
    for my $way (@ways) {
        next if run_command(@$way, 'sh', '-c', $setup, 'sh', 'true')->{status} != 0;
        $ENV{TEST_FAR} = $> == 0 ? 'as root' : 'as the only user';
        exec @$way, 'sh', '-c', $setup, 'sh', $^X, $0 or die "exec: $!\n";
    }
}
my $six = $ENV{TEST_FAR} && run_command(qw(ip -6 addr add 2001:db8::1/128 dev lo nodad))->{status} == 0;

my $root = tree('small.txt' => 's' x 1000, 'tiny.txt' => 'tiny', 'large.bin' => 'l' x 200_000);

# Returns a request of so many bytes.
sub padded ($bytes, $method, $target, @fields) {
    my $short = length request($method, $target, @fields, 'X-Padding' => '');
    return request($method, $target, @fields, 'X-Padding' => 'x' x ($bytes - $short));
}

each_server(sub ($model) {
    if (!$ENV{TEST_FAR}) {
        skip_case('no network namespace can be made here');
        return;
    }
    my $place  = scratch();
    my $server = start_server(root => $root, options => ['--udp', '--bind', '0.0.0.0', '--log', "$place/log", $six ? ('--bind', '::') : (),
        $ENV{TEST_FAR} eq 'as the only user' ? qw(--user root) : ()]);
    my @far    = (PeerHost => '192.0.2.1');
    my $ask    = sub ($bytes, $method = 'GET') {
        my $response = $server->ask_udp($bytes, $method, @far);
        cmp_ok $response->{whole}, '<=', 3 * length $bytes, 'a request of ' . length($bytes) . " bytes gets at most three times as many: $response->{whole}" if $response->{status};
        return $response;
    };

    unlink "$root/index.html";
    my $near = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '127.0.0.1');
    is $near->{body}, 's' x 1000, 'a client of this machine gets the whole document';
    my $cut = $ask->(request(GET => '/small.txt'));
    is "$cut->{status} $cut->{reason}", '403 Too Long For A Datagram', 'a client of another machine gets a 403 instead of a document that is too long';
    is $cut->field('Accept-Ranges'), 'bytes', 'the 403 for a document that is too long has Accept-Ranges';
    is $cut->{body}, '', 'the 403 for a document that is too long has no page when it would not fit';
    is $ask->(padded(200, GET => '/small.txt'))->{status}, 403, 'a request of 200 bytes for a document of 1,000 bytes gets 403';
    like $ask->(padded(200, GET => '/small.txt'))->{body}, qr/\b600 bytes\b.*\b1000 bytes\b/, 'the 403 to a request of 200 bytes has a page with the limit and the length';
    is $ask->(padded(500, GET => '/small.txt'))->{body}, 's' x 1000, 'a request of 500 bytes gets the document of 1,000 bytes';
    is $ask->(padded(200, GET => '/small.txt', Range => 'bytes=0-99'))->{body}, 's' x 100, 'a client of another machine gets a range that fits';
    is $ask->(padded(200, HEAD => '/large.bin'), 'HEAD')->field('Content-Length'), 200_000, 'a client of another machine gets the response to HEAD';

    my $exact = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '127.0.0.1')->{whole};
    my $least = int(($exact + 2) / 3);
    is $ask->(padded($least, GET => '/small.txt'))->{status}, 200, "a request of $least bytes gets a response of $exact bytes";
    is $ask->(padded($least - 1, GET => '/small.txt'))->{status}, 403, "a request of one byte less does not get a response of $exact bytes";
    is $ask->(padded(23_000, GET => '/large.bin', Range => 'bytes=0-64999'))->{status}, 206, 'a request of 23,000 bytes gets as much as a datagram can carry';
    is $ask->(padded(30_000, GET => '/large.bin'))->{status}, 403, 'a request of 30,000 bytes does not get more than a datagram can carry';

    is $ask->(request(GET => '/none'))->{status}, 404, 'a missing document gets 404';
    is $ask->(request(GET => '/none'))->{body}, '', 'the 404 has no page when it would not fit';
    is $ask->("GET / HTTP/1.0\r\n\r\n")->{status}, 403, 'the shortest request gets a 403 of 45 bytes';
    spit("$root/index.html", 'i' x 1000);
    is $ask->("GET / HTTP/1.1\r\nHost: x\r\n\r\n")->field('Accept-Ranges'), 'bytes', 'the shortest request of HTTP/1.1 for a document that is too long gets Accept-Ranges';
    is $ask->(request(CONNECT => 'x:1'))->{status}, 501, 'CONNECT is refused with 501';

    # No response is short enough for a request of 18 bytes.
    my $silent = $server->datagram("GET / HTTP/1.0\r\n\r\n", @far);
    my $all    = $server->datagram(padded(400, GET => '/tiny.txt'), PeerHost => '192.0.2.255', Broadcast => 1);
    my $wrong  = $server->datagram("nonsense\r\n\r\n", @far);

    # The kernel would choose another source address for the response.
    my $other = $server->datagram(padded(400, GET => '/tiny.txt'), LocalHost => '192.0.2.1', PeerHost => '192.0.2.2');
    is $other->response->{body}, 'tiny', 'a response comes from the address to which the request was sent';
    if ($six) {
        my $response = $server->ask_udp(padded(400, GET => '/tiny.txt'), 'GET', PeerHost => '2001:db8::1');
        is $response->{body}, 'tiny', 'over IPv6 a client of another machine gets a response';
        $response = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '2001:db8::1');
        cmp_ok $response->{whole}, '<=', 3 * length request(GET => '/small.txt'), 'over IPv6 a response has at most three times the bytes of the request';
        is $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '::1')->{status}, 200, 'a client at ::1 is a client of this machine';
    } else {
        skip_case('there is no IPv6');
    }
    like slurp("$place/log"), qr{^192\.0\.2\.1 - - .* "GET /small\.txt HTTP/1\.1" 403 0 }m, 'the log has the status that was sent';

    my $summary = $server->stop;
    like $summary, qr/, 3 datagrams dropped$/, 'the summary counts the datagrams that got no response';
    is $silent->receive(0), undef, 'a request that is too short for any response gets none';
    is $all->receive(0), undef, 'a request to the broadcast address gets no response';
    is $wrong->receive(0), undef, 'a malformed request gets no response';
});

done_testing;

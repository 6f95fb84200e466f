#!/usr/bin/perl
# --udp for clients with addresses of other machines: a response is never longer than three times its request, and comes from
# the address that was asked.
#
# The whole test runs in a network namespace of its own, whose loopback interface has addresses that are none of loopback.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my @ways = (['unshare', '--net'], ['unshare', '--net', '--map-root-user']);
my $setup = 'ip link set lo up && ip addr add 192.0.2.1/24 brd 192.0.2.255 dev lo && ip addr add 192.0.2.2/32 dev lo && exec "$@"';
if (!$ENV{TEST_FAR}) {
    for my $way (@ways) {
        next if run_command(@$way, 'sh', '-c', $setup, 'sh', 'true')->{status} != 0;
        $ENV{TEST_FAR} = 1;
        exec @$way, 'sh', '-c', $setup, 'sh', $^X, $0 or die "exec: $!\n";
    }
}
my $six = $ENV{TEST_FAR} && run_command(qw(ip -6 addr add 2001:db8::1/128 dev lo nodad))->{status} == 0;

my $root = tree('small.txt' => 's' x 1000, 'tiny.txt' => 'tiny', 'large.bin' => 'l' x 200_000);

# A request of so many bytes.
sub padded ($bytes, $method, $target, @fields) {
    my $short = length request($method, $target, @fields, 'X-Padding' => '');
    return request($method, $target, @fields, 'X-Padding' => 'x' x ($bytes - $short));
}

each_server(sub ($model) {
    if (!$ENV{TEST_FAR}) {
        skip_case('a network namespace cannot be made here');
        return;
    }
    my $place  = scratch();
    my $server = start_server(root => $root, options => ['--udp', '--bind', '0.0.0.0', '--log', "$place/log", $six ? ('--bind', '::') : ()]);
    my @far    = (PeerHost => '192.0.2.1');
    my $ask    = sub ($bytes, $method = 'GET') {
        my $response = $server->ask_udp($bytes, $method, @far);
        cmp_ok $response->{whole}, '<=', 3 * length $bytes, length($bytes) . " bytes get no more than three times that: $response->{whole}" if $response->{status};
        return $response;
    };

    unlink "$root/index.html";
    my $near = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '127.0.0.1');
    is $near->{body}, 's' x 1000, 'a client of this machine gets it all';
    my $cut = $ask->(request(GET => '/small.txt'));
    is "$cut->{status} $cut->{reason}", '403 Too Long For A Datagram', 'any other one gets a short status';
    is $cut->field('Accept-Ranges'), 'bytes', 'that points to ranges';
    is $cut->{body}, '', 'without a page';
    is $ask->(padded(200, GET => '/small.txt'))->{status}, 403, 'a request of 200 bytes';
    like $ask->(padded(200, GET => '/small.txt'))->{body}, qr/\b600 bytes\b.*\b1000 bytes\b/, 'has room for a page, which tells the limit and the length';
    is $ask->(padded(500, GET => '/small.txt'))->{body}, 's' x 1000, 'a request of 500 bytes is given the document';
    is $ask->(padded(200, GET => '/small.txt', Range => 'bytes=0-99'))->{body}, 's' x 100, 'a range';
    is $ask->(padded(200, HEAD => '/large.bin'), 'HEAD')->field('Content-Length'), 200_000, 'a head';

    my $exact = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '127.0.0.1')->{whole};
    my $least = int(($exact + 2) / 3);
    is $ask->(padded($least, GET => '/small.txt'))->{status}, 200, "the response of $exact bytes to $least bytes";
    is $ask->(padded($least - 1, GET => '/small.txt'))->{status}, 403, 'and none to one byte less';
    is $ask->(padded(23_000, GET => '/large.bin', Range => 'bytes=0-64999'))->{status}, 206, 'a request of 23,000 bytes: as much as UDP can carry';
    is $ask->(padded(30_000, GET => '/large.bin'))->{status}, 403, 'but no more';

    is $ask->(request(GET => '/none'))->{status}, 404, 'what is wrong is told by its own status';
    is $ask->(request(GET => '/none'))->{body}, '', 'without its page';
    is $ask->("GET / HTTP/1.0\r\n\r\n")->{status}, 403, 'to the shortest request of all, in 45 bytes';
    spit("$root/index.html", 'i' x 1000);
    is $ask->("GET / HTTP/1.1\r\nHost: x\r\n\r\n")->field('Accept-Ranges'), 'bytes', 'a response that is too long, to the shortest one of HTTP/1.1';
    is $ask->(request(CONNECT => 'x:1'))->{status}, 501, 'no tunnel';

    # 54 bytes have no room for that.
    my $silent = $server->datagram("GET / HTTP/1.0\r\n\r\n", @far);
    my $all    = $server->datagram(padded(400, GET => '/tiny.txt'), PeerHost => '192.0.2.255', Broadcast => 1);
    my $wrong  = $server->datagram("nonsense\r\n\r\n", @far);

    # From the address that was asked, though the way back would begin at another one.
    my $other = $server->datagram(padded(400, GET => '/tiny.txt'), LocalHost => '192.0.2.1', PeerHost => '192.0.2.2');
    is $other->response->{body}, 'tiny', 'a response comes from the address that was asked';
    if ($six) {
        my $response = $server->ask_udp(padded(400, GET => '/tiny.txt'), 'GET', PeerHost => '2001:db8::1');
        is $response->{body}, 'tiny', 'by IPv6';
        $response = $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '2001:db8::1');
        cmp_ok $response->{whole}, '<=', 3 * length request(GET => '/small.txt'), 'by IPv6, too, no more than three times';
        is $server->ask_udp(request(GET => '/small.txt'), 'GET', PeerHost => '::1')->{status}, 200, 'and ::1 is this machine';
    } else {
        skip_case('there is no IPv6');
    }
    like slurp("$place/log"), qr{^192\.0\.2\.1 - - .* "GET /small\.txt HTTP/1\.1" 403 0 }m, 'the log tells what was said in the end';

    my $summary = $server->stop;
    like $summary, qr/, 3 datagrams dropped$/, 'what no response is short enough for is dropped, and counted';
    is $silent->receive(0), undef, 'it had none';
    is $all->receive(0), undef, 'nor had what was sent to all';
    is $wrong->receive(0), undef, 'nor what is malformed';
});

done_testing;

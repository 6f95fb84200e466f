#!/usr/bin/perl
# A proxy for clients of other machines: it connects them to what --allow names, and to no loopback service, and they remove no entry.
#
# The test runs in a network namespace whose loopback interface has other addresses than those of loopback.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Origin;
use ProxyFields;

my @ways = (['unshare', '--net'], ['unshare', '--net', '--map-root-user']);
my $setup = 'ip link set lo up && ip addr add 192.0.2.1/24 dev lo && exec "$@"';
if (!$ENV{TEST_FAR}) {
    for my $way (@ways) {
        next if run_command(@$way, 'sh', '-c', $setup, 'sh', 'true')->{status} != 0;
        $ENV{TEST_FAR} = $> == 0 ? 'as root' : 'as the only user';
        exec @$way, 'sh', '-c', $setup, 'sh', $^X, $0 or die "exec: $!\n";
    }
}
my ($open, $other) = map { Origin->new } 1 .. 2;
my @far = (PeerHost => '192.0.2.1');

sub start_proxy (@options) {
    return start_server(options => ['--service', 'proxy', '--bind', '0.0.0.0', @options, $ENV{TEST_FAR} eq 'as the only user' ? qw(--user root) : ()]);
}

# Returns the status that a client of this machine or of another one gets.
sub status ($proxy, $bytes, @from) {
    my $client   = $proxy->connect(@from);
    my $response = $client->ask($bytes);
    $client->close;
    return $response ? $response->{status} : 'none';
}

each_server(sub ($model) {
    if (!$ENV{TEST_FAR}) {
        skip_case('no network namespace can be made here');
        return;
    }
    $_->play('/x', response(200, 'x', 'Cache-Control' => 'max-age=60')) for $open, $other;
    my $cache = scratch();
    my $proxy = start_proxy('--cache', "$cache", '--allow', '127.0.0.1:' . $open->port);
    is status($proxy, request(GET => $_->url('/x'))), 200, 'a client of this machine may reach loopback' for $open, $other;
    is status($proxy, request(GET => $open->url('/x')), @far), 200, 'a client of another machine may reach what --allow names';
    is status($proxy, request(GET => $other->url('/x')), @far), 403, 'a client of another machine may reach nothing else, though it is in the cache';
    is status($proxy, request(GET => "http://$_:" . $other->port . '/x'), @far), 403, "nor by the name $_" for qw(localhost [::ffff:127.0.0.1] 127.0.0.2 [::1]);
    is status($proxy, 'CONNECT 127.0.0.1:' . $other->port . " HTTP/1.1\r\nHost: x\r\n\r\n", @far), 403, 'nor by CONNECT';
    is status($proxy, request(GET => 'http://192.0.2.1:' . $proxy->port . '/x'), @far), 403, 'the proxy itself is not reached by its other address';
    $proxy->stop(%few);

    $proxy = start_proxy('--cache', "$cache", '--origin', 'http://127.0.0.1:' . $other->port);
    is status($proxy, request(GET => '/x')), 200, 'a response is stored';
    is status($proxy, request(PURGE => '/x'), @far), 403, 'a client of another machine may not remove it by PURGE';
    is status($proxy, request(PURGE => '/x')), 204, 'a client of this machine may';
    is status($proxy, request(PURGE => '/x')), 404, 'it is removed';
    $proxy->stop(%few);

    # Anybody may have written the address of a datagram.
    $proxy = start_proxy('--no-cache', '--udp', '--origin', 'http://127.0.0.1:' . $other->port);
    $other->play('/tell', response(200, 'told'));
    for my $from (['192.0.2.1', 'unknown', '192.0.2.1'], ['127.0.0.1', '127.0.0.1', '127.0.0.1']) {
        my ($peer, $by_udp, $by_tcp) = @$from;
        my $padded = request(GET => '/tell', 'X-Padding' => 'x' x 400);
        is $proxy->ask_udp($padded, 'GET', PeerHost => $peer)->{body}, 'told', "the proxy takes a datagram from $peer";
        status($proxy, request(GET => '/tell'), PeerHost => $peer);
        is_deeply [map { $_->{'x-forwarded-for'} } map { head_of($_) } ($other->requests('/tell'))[-2, -1]], [$by_udp, $by_tcp],
            "the origin is told of a client at $peer: $by_udp by UDP, $by_tcp by TCP";
    }
    $proxy->stop(%few);

    $proxy = start_proxy('--no-cache', '--allow', 'loopback');
    is status($proxy, request(GET => $other->url('/x')), @far), 200, '--allow loopback: a client of another machine may reach loopback';
    $proxy->stop(%few);

    $proxy = start_proxy('--no-cache', '--origin', 'http://127.0.0.1:' . $other->port);
    is status($proxy, request(GET => '/x'), @far), 200, '--origin: clients of other machines reach the origin';
    $proxy->stop(%few);
});

done_testing;

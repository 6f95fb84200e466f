package TcpState;

# Asks the kernel about one end of a TCP connection over IPv4, by the netlink protocol sock_diag(7). It finds that end by its
# ports alone, where /proc/net/tcp lists every connection of the machine.
#
#   my $end = TcpState::of($server->port, $client->sockport);
#   say "$end->{state} $end->{unread} $end->{unacknowledged}" if $end;

use v5.36;
use Errno  qw(ENOENT);
use Socket qw(AF_INET SOCK_RAW IPPROTO_TCP inet_aton);

use constant {
    AF_NETLINK          => 16,
    NETLINK_SOCK_DIAG   => 4,
    NLM_F_REQUEST       => 1,
    NLMSG_ERROR         => 2,
    SOCK_DIAG_BY_FAMILY => 20,
    NO_COOKIE           => "\xff" x 8,
    ANY_STATE           => 0xffff_ffff,
    ESTABLISHED         => 1,
    LISTEN              => 10,
};

# Returns the end at a local port of the connection with a remote port: its TCP state, the bytes that its program has not read,
# and the bytes that the other end has not acknowledged. Returns nothing if there is no such end.
sub of ($local_port, $remote_port, $address = '127.0.0.1') {
    socket my $kernel, AF_NETLINK, SOCK_RAW, NETLINK_SOCK_DIAG or die "netlink: $!\n";
    my $host    = pack 'a16', inet_aton($address);
    my $request = pack 'C C x2 L n n a16 a16 L a8', AF_INET, IPPROTO_TCP, ANY_STATE, $local_port, $remote_port, $host, $host, 0, NO_COOKIE;
    my $head    = pack 'L S S L L', 16 + length $request, SOCK_DIAG_BY_FAMILY, NLM_F_REQUEST, 1, 0;
    defined send $kernel, $head . $request, 0 or die "sock_diag: $!\n";
    defined recv $kernel, my $answer, 8192, 0 or die "sock_diag: $!\n";
    my ($type, $body) = unpack 'x4 S x10 a*', $answer;
    if ($type == NLMSG_ERROR) {
        local $! = -unpack 'l', $body;
        die "sock_diag: $!\n" if $! != ENOENT;
        return;
    }
    my ($state, $unread, $unacknowledged) = unpack 'x C x2 x48 x4 L L', $body;
    # Where the connection is gone, the kernel answers with the socket that listens at the port.
    return $state == LISTEN ? undef : { state => $state, unread => $unread, unacknowledged => $unacknowledged };
}

1;

package Crowd;

# Many clients in one loop, which count the requests that are lost.
#
#   my @crowd = map { client($server->port, 'busy') } 1 .. 8;
#   run_until(\@crowd, sub { !grep { $_->{responses} < 3 } @crowd });
#
# kind: busy      keep-alive: the next request follows each response at once, until a response has Connection: close; before a
#                 stop is requested it then connects again, since a server ends connections that others wait for
#       download  one big file; while `hold` is set, the client stops reading after the first bytes
#       hasty     a connection for each request, until connections are refused
#       once      one request
#
# A client is a hash: `responses` counts its whole responses, `lost` the requests that were sent whole and got none,
# `bad` wrong responses; `refused` is true if its connection was refused; `over` says why it has ended. With `again`, a
# client of any kind connects again after its last response.

use v5.36;
use Errno    qw(EAGAIN EINPROGRESS EINTR);
use Exporter qw(import);
use Harness;
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_ERROR SO_RCVBUF pack_sockaddr_in inet_aton);

our @EXPORT = qw(client begin run_until writable);

# A stop was requested: clients that connect from now on may be refused.
our $signalled = 0;

# Returns true if a server of this user can hold back new clients while it serves those that wait in the listen queue. It
# needs a socket filter, which some kernels allow to root only. Without it a client that connects after the signal may be
# reset, which counts as refused.
sub can_hold_back () {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    my $pass_all = pack 'SCCL', 6, 0, 0, 0xffffffff;
    return setsockopt $socket, SOL_SOCKET, 26, pack 'Sx![P]P', 1, $pass_all;    # SO_ATTACH_FILTER
}
my $resets_are_refusals = !can_hold_back();

sub client ($port, $kind, %more) {
    my $client = { port => $port, kind => $kind, responses => 0, lost => 0, %more };
    begin($client);
    return $client;
}

sub begin ($client) {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_RCVBUF, 65536 if $client->{kind} eq 'download';
    $socket->blocking(0);
    my $connected = connect $socket, pack_sockaddr_in($client->{port}, inet_aton('127.0.0.1'));
    if (!$connected && $! != EINPROGRESS) {
        $client->{refused} = $client->{over} = 1;
        return;
    }
    @$client{qw(socket connecting in out asked late)} = ($socket, 1, '', '', 0, $signalled);
}

sub ask ($client) {
    $client->{out} = request(GET => $client->{kind} eq 'download' ? '/big.bin' : '/small.txt',
        $client->{kind} eq 'hasty' ? (Connection => 'close') : ());
    $client->{in}    = '';
    $client->{asked} = $client->{needed} = 0;
}

sub finish ($client, $why) {
    $client->{over} = $why;
    close $client->{socket};
}

# Handles the end of a connection: the client is refused, has lost a request, or is closed without loss.
sub ended ($client, $error) {
    if ($client->{connecting} || $client->{late} && $resets_are_refusals && $client->{in} eq '') {
        $client->{refused} = 1;
        return finish($client, 'refused');
    }
    if ($client->{asked}) {
        $client->{lost}++;
        return finish($client, "lost: $error after " . length($client->{in}) . ' bytes');
    }
    return finish($client, 'closed');
}

sub writable ($client) {
    if ($client->{connecting}) {
        my $error = unpack 'i', getsockopt $client->{socket}, SOL_SOCKET, SO_ERROR;
        return ended($client, 'refused') if $error;
        $client->{connecting} = 0;
        ask($client);
    }
    my $count = syswrite $client->{socket}, $client->{out};
    if (!defined $count) {
        return if $! == EAGAIN || $! == EINTR;
        # The request was not sent whole, so it is not lost.
        return ended($client, "$!");
    }
    substr $client->{out}, 0, $count, '';
    $client->{asked} = 1 if $client->{out} eq '';
}

sub readable ($client) {
    my $count = sysread $client->{socket}, $client->{in}, 262144, length $client->{in};
    if (!$count) {
        return if !defined $count && ($! == EAGAIN || $! == EINTR);
        return ended($client, defined $count ? 'end' : "$!");
    }
    # Do not parse a long body again before it can be whole.
    return if length $client->{in} < ($client->{needed} // 0);
    my ($head) = $client->{in} =~ /\A(.*?\r\n\r\n)/s or return;
    my ($length) = $head =~ /^Content-Length: (\d+)\r$/mi or die "no length in '$head'";
    $client->{needed} = length($head) + $length;
    return if length $client->{in} < $client->{needed};
    $client->{bad}++ if $head !~ m{\AHTTP/1\.1 200 } || length $client->{in} > length($head) + $length;
    $client->{responses}++;
    $client->{asked} = 0;
    my $last = $client->{kind} ne 'busy' || $head =~ /^Connection: close\r$/mi;
    if ($client->{kind} eq 'hasty' || $last && ($client->{again} || $client->{kind} eq 'busy' && !$signalled)) {
        close $client->{socket};
        begin($client);
    } elsif ($last) {
        finish($client, 'done');
    } else {
        ask($client);
        writable($client);
    }
}

# Runs the clients until the condition holds or all of them have ended.
sub run_until ($crowd, $condition) {
    my $end = now() + $PATIENCE;
    while (now() < $end && !$condition->()) {
        my @active = grep { !$_->{over} } @$crowd or last;
        my ($reads, $writes, @places) = ('', '');
        for my $client (@active) {
            my $place = fileno $client->{socket};
            push @places, [$client, $place];
            my $holds = $client->{hold} && length $client->{in};
            vec($reads, $place, 1)  = 1 if !$client->{connecting} && !$holds;
            vec($writes, $place, 1) = 1 if $client->{connecting} || $client->{out} ne '';
        }
        # IO::Select would take more time than the clients.
        next if select($reads, $writes, undef, 0.1) <= 0;
        for (@places) {
            my ($client, $place) = @$_;
            writable($client) if vec $writes, $place, 1;
            readable($client) if vec($reads, $place, 1) && !$client->{over} && !$client->{connecting};
        }
    }
}

1;

#!/usr/bin/perl
# Socket activation: a server takes its listening sockets from a service manager such as systemd, and tells it when it is ready
# and when it stops.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::IP;
use IO::Socket::UNIX;
use POSIX  ();
use Socket qw(SOCK_DGRAM);

# Runs a command as a service manager does: with a listener as descriptor 3, named in the environment.
my $manager = 'POSIX::dup2(shift, 3); $ENV{LISTEN_PID} = $$ + shift; $ENV{LISTEN_FDS} = 1; exec @ARGV';

sub through ($listener, $other_process = 0) {
    $^F = 1000;
    return [$^X, '-MPOSIX', '-e', $manager, fileno $listener, $other_process];
}

$^F = 1000;    # the listeners are inherited

each_way_to_accept(sub ($model) {
    my $scratch  = scratch();
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 20, ReusePort => 1) or die "listen: $@";
    my $hears = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$scratch/notify") or die "notify: $!";
    chmod 0777, "$scratch/notify";

    # A client that connects before the server starts is served.
    my $early = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $listener->sockport) or die "connect: $@";
    print {$early} request(GET => '/small.txt', Connection => 'close');
    $early->flush;
    my $server = start_server(through => through($listener), environment => { NOTIFY_SOCKET => "$scratch/notify" });
    is $server->port, $listener->sockport, 'LISTEN_FDS: the server listens on the socket that it was given';
    my $response = do { local $/; <$early> };
    like $response // '', qr{\AHTTP/1\.1 200 }, 'LISTEN_FDS: a client that connected before the server started is served';
    is $server->get('/small.txt')->{status}, 200, 'LISTEN_FDS: a client that connects later is served';
    my $state = '';
    recv $hears, $state, 100, 0;
    is $state, 'READY=1', 'NOTIFY_SOCKET: the server says that it is ready';
    $server->stop;
    recv $hears, $state, 100, 0;
    is $state, 'STOPPING=1', 'NOTIFY_SOCKET: the server says that it stops';

    # The socket outlives the server: a client that connects between two servers is served by the second one.
    my $between = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $listener->sockport);
    ok $between, 'LISTEN_FDS: a client can connect after the server has stopped' or return;
    print {$between} request(GET => '/small.txt', Connection => 'close');
    $between->flush;
    $server = start_server(through => through($listener));
    $response = do { local $/; <$between> };
    like $response // '', qr{\AHTTP/1\.1 200 }, 'LISTEN_FDS: a client that connected between two servers is served by the second';
    $server->stop;
});

each_server(sub ($model) {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 20) or die "listen: $@";
    my $server = start_server(through => through($listener, 1));
    isnt $server->port, $listener->sockport, 'LISTEN_FDS: the server does not take sockets for another process';
    $server->stop;

    my $client = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $listener->sockport) or die "connect: $@";
    my $run = run_command(@{ through($client) }, $model->{path}, 0);
    is $run->{status}, 1, 'LISTEN_FDS: a socket that does not listen is refused with exit status 1';
    like $run->{err}, qr/cannot listen at the 1 sockets of the service manager/, 'LISTEN_FDS: a socket that does not listen is refused with a line that says why';
});

# A program that ignores SIGCHLD may start a server: the server inherits that.
each_server(sub ($model) {
    my $server = start_server(through => [$^X, '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV']);
    is $server->get('/small.txt')->{status}, 200, 'SIGCHLD is ignored: the server serves';
    $server->stop;
});

done_testing;

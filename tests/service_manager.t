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

# Returns the socket of a service manager, the environment that names it, and the folder of both.
sub manager_socket () {
    my $folder = scratch();
    my $hears  = IO::Socket::UNIX->new(Type => SOCK_DGRAM, Local => "$folder/notify") or die "notify: $!";
    chmod 0777, "$folder/notify";
    return ($hears, { NOTIFY_SOCKET => "$folder/notify" }, $folder);
}

# Returns what a service manager is told next.
sub hear ($hears) {
    my $state = '';
    recv $hears, $state, 100, 0;
    return $state;
}

$^F = 1000;    # the listeners are inherited

each_way_to_accept(sub ($model) {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 20, ReusePort => 1) or die "listen: $@";
    my ($hears, $environment, $folder) = manager_socket();

    # A client that connects before the server starts is served.
    my $early = IO::Socket::IP->new(PeerHost => '127.0.0.1', PeerPort => $listener->sockport) or die "connect: $@";
    print {$early} request(GET => '/small.txt', Connection => 'close');
    $early->flush;
    my $server = start_server(through => through($listener), environment => $environment);
    is $server->port, $listener->sockport, 'LISTEN_FDS: the server listens on the socket that it was given';
    my $response = do { local $/; <$early> };
    like $response // '', qr{\AHTTP/1\.1 200 }, 'LISTEN_FDS: a client that connected before the server started is served';
    is $server->get('/small.txt')->{status}, 200, 'LISTEN_FDS: a client that connects later is served';
    is hear($hears), 'READY=1', 'NOTIFY_SOCKET: the server says that it is ready';
    $server->stop;
    is hear($hears), 'STOPPING=1', 'NOTIFY_SOCKET: the server says that it stops';

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

# The rights that the unit leaves to the service, as options of setpriv.
sub rights_of_unit () {
    my ($rights) = slurp("$FindBin::Bin/../systemd/fork-vs-thread@.service") =~ /^CapabilityBoundingSet=(.+)$/m;
    return ('setpriv', '--no-new-privs', '--bounding-set', join ',', '-all', map { '+' . lc s/^CAP_//r } split ' ', $rights);
}

# The service lives on in the process that an upgrade makes: the manager is told of it before the first one ends, and hears
# nothing of a stop until that one stops.
each_server(sub ($model) {
    my $listener = IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => 0, Listen => 20) or die "listen: $@";
    my ($hears, $environment, $folder) = manager_socket();
    my $server = start_server(through => [$> == 0 ? rights_of_unit() : (), @{ through($listener) }], environment => $environment);
    is hear($hears), 'READY=1', 'an upgrade: the first server is ready';
    $server->signal('USR2');
    my $new = until_true(sub { ($server->errors =~ /process (\d+) has taken over/)[0] }) or die "nothing takes over\n";
    is hear($hears), 'READY=1', 'an upgrade: the second server says that it is ready';
    is hear($hears), "MAINPID=$new", 'an upgrade: the first server names the process that has taken over';
    is $server->get('/small.txt')->{status}, 200, 'an upgrade: the second server serves on the socket of the manager';
    kill TERM => $new;
    $server->ended(name => 'an upgrade: both servers end', warnings => qr/has taken over|connections?.*requests?.*CPU/);
    is hear($hears), 'STOPPING=1', 'an upgrade: the manager hears of a stop';
    ok !defined recv($hears, my $more, 100, Socket::MSG_DONTWAIT()), 'an upgrade: it hears of one stop alone';
});

# Returns what systemd says of a unit in this folder, and how exposed it finds the service, from 0 to 100.
sub judged ($folder, $unit) {
    my $verified = run_command(qw(systemd-analyze verify --man=no), "$folder/$unit");
    my ($exposed) = run_command(qw(systemd-analyze security --offline=true --no-pager), "$folder/$unit")->{out} =~ /exposure level for \S+: ([\d.]+)/;
    return ($verified->{out} . $verified->{err}, defined $exposed ? 10 * $exposed : undef);
}

each_server(sub ($model) {
    return skip_case('systemd is not installed') if run_command('sh', '-c', 'command -v systemd-analyze')->{status} != 0;
    my $folder = scratch();
    my $place  = $model->{path} =~ s{/[^/]*$}{}r;
    for my $kind ('service', 'socket') {
        my $unit = slurp("$FindBin::Bin/../systemd/fork-vs-thread@.$kind") =~ s{/usr/local/bin}{$place}gr;
        spit("$folder/fork-vs-thread@.$kind", $unit);
        symlink "fork-vs-thread@.$kind", "$folder/fork-vs-thread\@$model->{name}.$kind" or die "symlink: $!";
    }
    my ($said, $exposed) = judged($folder, "fork-vs-thread\@$model->{name}.service");
    is $said, '', 'systemd accepts the unit of the service and that of its socket';
    ok defined $exposed && $exposed < 50, 'systemd calls the service well protected' or diag($exposed // 'no figure');
});

# A program that ignores SIGCHLD may start a server: the server inherits that.
each_server(sub ($model) {
    my $server = start_server(through => [$^X, '-e', '$SIG{CHLD} = "IGNORE"; exec @ARGV']);
    is $server->get('/small.txt')->{status}, 200, 'SIGCHLD is ignored: the server serves';
    $server->stop;
});

done_testing;

#!/usr/bin/perl
# An upgrade by SIGUSR2 loses no request: a new server takes over the port, and the old one ends when it has served its clients.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Crowd;
use File::Copy qw(copy);
use Socket     qw(SOL_SOCKET SO_RCVBUF);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big);
my $told = qr/has taken over|connections?.*requests?.*CPU/;

# Returns the processes that have taken over, in order.
sub successors ($server) { return $server->errors =~ /process (\d+) has taken over/g }

sub newest ($server) { return (successors($server))[-1] // $server->pid }

# Upgrades the server. Returns the process of the new server.
sub upgrade ($server, $meanwhile = sub { }) {
    my $count = () = successors($server);
    kill USR2 => newest($server);
    until_true(sub { $meanwhile->(); (() = successors($server)) > $count }) or die "nothing takes over: " . $server->errors;
    return newest($server);
}

# Returns true if a socket listens at this port.
sub listens ($port) { return (slurp('/proc/net/tcp') . slurp('/proc/net/tcp6')) =~ sprintf(':%04X \S+ 0A ', $port) }

# Stops the newest server, and tests what all of them leave behind.
sub end ($server, $name, $warnings = $told) {
    kill TERM => newest($server);
    $server->ended(name => $name, warnings => $warnings);
}

each_way_to_accept(sub ($model) {
    my $server  = patient_server($root);
    my $held    = client($server->port, 'download', hold => 1);
    run_until([$held], sub { length $held->{in} });
    my @others  = map { client($server->port, $_, again => 1) } ('busy') x 6, ('hasty') x 6;
    my $upgrades = sanitized() ? 2 : 4;
    for my $number (1 .. $upgrades) {
        my @served = map { $_->{responses} } @others;
        # A server of one connection at a time serves its client, and the others wait for the next server.
        run_until(\@others, sub { $model->{single} || !grep { $others[$_]{responses} < $served[$_] + 3 } keys @others });
        upgrade($server, sub { my $end = 0; run_until(\@others, sub { $end++ }) });
    }
    delete $_->{again}, $_->{kind} = 'once' for @others;
    $held->{hold} = 0;
    setsockopt $held->{socket}, SOL_SOCKET, SO_RCVBUF, $big;
    run_until([$held, @others], sub { 0 });

    my @flaws = map { "a client: $_->{over}" } grep { $_->{lost} || $_->{refused} } $held, @others;
    push @flaws, "a client does not end after $_->{responses} responses" for grep { !$_->{over} } $held, @others;
    push @flaws, 'a client gets a wrong response' for grep { $_->{bad} } $held, @others;
    push @flaws, 'the download is not whole' if $held->{responses} != 1;
    ok !@flaws, "$upgrades upgrades with busy clients, new clients and a download: no request is lost" or diag(join "\n", @flaws);
    is scalar(() = successors($server)), $upgrades, "$upgrades upgrades: so many servers say that they have taken over";
    end($server, "$upgrades upgrades: all servers end without errors");
});

each_server(sub ($model) {
    # The new server has the address and the arguments of the old one.
    my $log    = scratch();
    my $server = patient_server($root, options => ['--list', '--log', "$log/log"]);
    upgrade($server);
    is $server->get('/')->{status}, 200, 'the new server has the options of the old one';
    my $half = $server->connect;
    $half->send("GET /small.txt HTTP/1.1\r\nHo");
    until_true(sub { $server->has_read($half) });
    upgrade($server);
    $half->send("st: localhost\r\n\r\n");
    my $response = $half->response;
    is $response->{status}, 200, 'a request that is half sent at an upgrade gets its response';
    ok !$response->persistent, 'a request that is half sent at an upgrade: the response says that the connection closes' or diag($server->errors);
    ok $half->ends, 'a request that is half sent at an upgrade: the connection closes';
    end($server, 'after upgrades all servers end');
    is scalar(() = slurp("$log/log") =~ /^/mg), 2, 'after upgrades the log has the requests of all servers';

    # Each datagram gets a response from one of the servers.
    $server = patient_server($root, options => ['--udp']);
    my @asked = map { $server->datagram(request(GET => '/none')) } 1 .. 10;
    upgrade($server, sub { push @asked, $server->datagram(request(GET => '/none')) if @asked < 40 });
    push @asked, map { $server->datagram(request(GET => '/none')) } 1 .. 10;
    is scalar(grep { $_->response->{status} == 404 } @asked), scalar @asked, 'no datagram is lost at an upgrade';
    end($server, 'after an upgrade both servers of datagrams end', qr/$told|dropped/);

    # The new server reads the key of TLS from its file.
    my $place = scratch();
    run_command(qw(openssl req -x509 -days 2 -nodes -subj /CN=localhost -newkey ec -pkeyopt ec_paramgen_curve:P-256 -addext),
        'subjectAltName=IP:127.0.0.1', '-keyout', "$place/key.pem", '-out', "$place/cert.pem");
    $server = patient_server($root, options => ['--tls', '--cert', "$place/cert.pem", '--key', "$place/key.pem"]);
    upgrade($server);
    my $run = run_command(qw(curl --silent --show-error --noproxy *), '--cacert', "$place/cert.pem", $server->url . 'small.txt');
    is length $run->{out}, 1000, 'after an upgrade the new HTTPS server serves' or diag($run->{err});
    end($server, 'after an upgrade both HTTPS servers end');

    # A new program that cannot serve
    my $program = "$place/server";
    my $install = sub ($from) {
        copy($from, "$program.new") or die "copy: $!";
        chmod 0755, "$program.new";
        rename "$program.new", $program or die "rename: $!";
    };
    my $path = $model->{path};
    $install->($path);
    $server = patient_server($root, path => $program);
    my $warned = 0;
    my $fails = sub ($pattern, $name) {
        $server->signal('USR2');
        ok until_true(sub { (() = $server->errors =~ /this one goes on/g) > $warned }), "an upgrade to $name: the old server says that it continues";
        $warned++;
        like $server->errors, $pattern, "an upgrade to $name: the old server says why";
        is $server->get('/small.txt')->{status}, 200, "an upgrade to $name: the old server serves";
    };
    spit("$place/garbage", "no program\n\x00\xff");
    $install->("$place/garbage");
    $fails->(qr/cannot start a new server: this one goes on: Exec format error/, 'a file that is no program');
    unlink $program;
    $fails->(qr/cannot start a new server: this one goes on: No such file/, 'no file');
    $install->('/bin/true');
    $fails->(qr/the new server ended before it was ready: this one goes on/, 'a program that ends');
    $install->('/bin/false');
    $fails->(qr/the new server ended before it was ready: this one goes on/, 'a program that fails');

    # A new program that starts slowly
    my $slow = sub () {
        unlink "$place/go", "$place/came";
        spit("$place/slow", "#!/bin/sh\n>$place/came\nwhile [ ! -e $place/go ]; do sleep 0.02; done\nexec $path \"\$@\"\n");
        $install->("$place/slow");
    };
    chmod 0777, "$place";
    $slow->();
    $server->signal('USR2');
    until_true(sub { -e "$place/came" });
    $server->signal('USR2');
    ok until_true(sub { $server->errors =~ /an upgrade is under way already/ }), 'a second SIGUSR2 does not start a second server';
    is $server->get('/small.txt')->{status}, 200, 'the old server serves until the new one is ready';
    spit("$place/go", '');
    ok until_true(sub { successors($server) }), 'a new server that starts slowly takes over when it is ready';
    is $server->get('/small.txt')->{status}, 200, 'a new server that starts slowly serves';
    end($server, 'an old server and a new one that starts slowly end', qr/$told|this one goes on|under way already/);

    # A stop while the new server starts ends both servers.
    $install->($path);
    $server = patient_server($root, path => $program);
    $slow->();
    $server->signal('USR2');
    until_true(sub { -e "$place/came" });
    $server->signal('TERM');
    ok until_true(sub { !$server->alive }), 'SIGTERM while the new server starts: the old server ends';
    spit("$place/go", '');
    ok defined $server->wait_exit && !$server->{left}, 'SIGTERM while the new server starts: the new server ends';
    like $server->errors, qr/was told to stop|cannot listen at socket 3 of the server before this one/, 'SIGTERM while the new server starts: the new server says why it ends';

    # A new server that was told to stop, and then hears that the old one stops, goes on with its stop: the next signal
    # ends it. The old server ends, too, even if the new one frees the port first.
    for my $freed (describe()->{workers_per_processor} ? () : (0, 1)) {
        $install->($path);
        $server = patient_server($root, path => $program);
        $slow->();
        $server->signal('USR2');
        until_true(sub { -e "$place/came" });
        kill STOP => $server->pid;
        until_true(sub { slurp('/proc/' . $server->pid . '/stat') =~ /\) T/ });
        my $reader = $server->connect;
        $reader->send(request(GET => '/big.bin'));
        spit("$place/go", '');
        ok $reader->fill(240), 'while the old server rests, the new one serves';
        my %serving = map { $_->[0] => 1 } grep { $_->[0] != $server->pid } serving_processes($server->pid);
        my ($new) = grep { slurp("/proc/$_/stat") =~ /\) \S (\d+)/ && !$serving{$1} } keys %serving;
        kill TERM => $new;
        until_true(sub { slurp("/proc/$new/status") =~ /^ShdPnd:\s*0+$/m });
        ok until_true(sub { !listens($server->port) }), 'the new server frees the port' if $freed;
        $server->signal('TERM');
        kill CONT => $server->pid;
        ok until_true(sub { $server->errors =~ /this server stops: the one before it does not hand over/ }), 'a new server that stops hears that the old one stops';
        kill TERM => $new;
        ok until_true(sub { !-e "/proc/$new" }), 'the next signal ends it';
        $reader->close;
        $server->ended(name => 'SIGTERM to both servers', warnings => qr/./);
    }

    # The new server continues if the old one dies.
    $install->($path);
    $server = patient_server($root, path => $program);
    $slow->();
    $server->signal('USR2');
    until_true(sub { -e "$place/came" });
    kill KILL => $server->pid;
    until_true(sub { !$server->alive });
    my $client = $server->connect;
    $client->send(request(GET => '/small.txt'));
    spit("$place/go", '');
    is $client->response->{status}, 200, 'SIGKILL while the new server starts: a client that waits is served by the new one';
    $client->close;
    kill TERM => map { $_->[0] } serving_processes($server->pid);
    until_true(sub { !grep { $_->[1] ne 'Z' } group_processes($server->pid) });
    $server->discard;
});

done_testing;

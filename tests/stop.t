#!/usr/bin/perl
# A stop loses nothing: every request that was sent whole gets a whole response. Connections that are
# refused after the stop are no loss.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Errno qw(EAGAIN EINPROGRESS EINTR);
use IO::Select;
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_ERROR SO_RCVBUF SO_REUSEADDR pack_sockaddr_in inet_aton);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big, 'sparse.bin' => '');
truncate "$root/sparse.bin", 1 << 30 or die "truncate: $!";

# Can a server of this user hold new clients back while it serves those that wait? Some kernels allow no filter without
# privileges; then a client that connects after the signal may be reset, which is as good as refused.
sub can_hold_back () {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    my $pass_all = pack 'SCCL', 6, 0, 0, 0xffffffff;
    return setsockopt $socket, SOL_SOCKET, 26, pack 'Sx![P]P', 1, $pass_all;    # SO_ATTACH_FILTER
}
my $resets_are_refusals = !can_hold_back();
my @user = $> == 0 ? qw(--user root) : ();    # as the user who could, or not
my $signalled;

# --- A crowd of clients in one loop ---
# kind: busy      keep-alive, a request as soon as a response is there, until a response says close
#       download  one big file, which is read only as long as `hold` is not set and no byte has come, or after `resume`
#       hasty     a connection a request, until connections are refused
#       once      one request

sub client ($port, $kind) {
    my $client = { port => $port, kind => $kind, responses => 0, lost => 0 };
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

# The connection has ended, or failed: is a request lost?
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
        # Not sent whole, so no loss: but its connection must not have had a chance to answer.
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
    # A long body is not looked at again before it can be whole.
    return if length $client->{in} < ($client->{needed} // 0);
    my ($head) = $client->{in} =~ /\A(.*?\r\n\r\n)/s or return;
    my ($length) = $head =~ /^Content-Length: (\d+)\r$/mi or die "no length in '$head'";
    $client->{needed} = length($head) + $length;
    return if length $client->{in} < $client->{needed};
    $client->{bad}++ if $head !~ m{\AHTTP/1\.1 200 } || length $client->{in} > length($head) + $length;
    $client->{responses}++;
    $client->{asked} = 0;
    if ($client->{kind} eq 'hasty') {
        close $client->{socket};
        begin($client);
    } elsif ($client->{kind} ne 'busy' || $head =~ /^Connection: close\r$/mi) {
        finish($client, 'done');
    } else {
        ask($client);
        writable($client);
    }
}

# Lets the crowd go on until the condition holds or all are over.
sub run_until ($crowd, $condition) {
    my $end = now() + $PATIENCE;
    while (now() < $end && !$condition->()) {
        my @active = grep { !$_->{over} } @$crowd or last;
        my $reads  = IO::Select->new;
        my $writes = IO::Select->new;
        my %by;
        for my $client (@active) {
            $by{ fileno $client->{socket} } = $client;
            my $holds = $client->{hold} && length $client->{in};
            $reads->add($client->{socket})  if !$client->{connecting} && !$holds;
            $writes->add($client->{socket}) if $client->{connecting} || $client->{out} ne '';
        }
        my ($readable, $writable) = IO::Select->select($reads, $writes, undef, 0.1);
        for (@{ $writable // [] }) { my $client = $by{ fileno $_ }; writable($client) if !$client->{over} }
        for (@{ $readable // [] }) {
            my $client = $by{ fileno $_ // -1 } or next;
            readable($client) if !$client->{over} && !$client->{connecting};
        }
    }
}

# A server that waits for its clients longer than any test: what it cuts off it would cut off on any machine.
sub patient_server (@options) {
    return start_server(root => $root, options => ['--stop-timeout', 3600, @user, @options]);
}

# Sends SIGTERM, and waits until the server has seen it.
sub terminate ($server) {
    $server->signal('TERM');
    until_true(sub { !$server->pending_signals });
}

# Sends SIGTERM to a server that has many clients, which then may come to their end; what is wrong by then.
sub stop_among_clients ($server, %count) {
    $signalled = 0;
    my %clients = map { my $kind = $_; ($kind => [map { client($server->port, $kind) } 1 .. $count{$kind}]) } qw(busy download hasty);
    $_->{hold} = 1 for @{ $clients{download} };
    my @crowd = map { @{ $clients{$_} } } qw(busy download hasty);
    run_until(\@crowd, sub {
        return $clients{busy}[0]{responses} >= 200 if model()->{single};
        return !grep({ $_->{responses} < 3 } map { @{ $clients{$_} } } qw(busy hasty)) && !grep { !length $_->{in} } @{ $clients{download} };
    });
    # These may still stand in the listen queue when the signal comes.
    my @late = map { client($server->port, 'once') } 1 .. $count{late};
    writable($_) for grep { !$_->{over} } @late;
    push @crowd, @late;
    $server->signal('TERM');
    $signalled = 1;
    for my $client (@{ $clients{download} }) {
        $client->{hold} = 0;
        setsockopt $client->{socket}, SOL_SOCKET, SO_RCVBUF, $big;
    }
    run_until(\@crowd, sub { 0 });

    my $told = grep { $_->{over} eq 'done' } @{ $clients{busy} };
    my $refused = grep { $_->{refused} } @{ $clients{hasty} };
    my @flaws = map { "a client of kind $_->{kind}: $_->{over}" } grep { $_->{lost} } @crowd;
    push @flaws, "a client of kind $_->{kind} does not come to an end" for grep { !$_->{over} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets a wrong response" for grep { $_->{bad} } @crowd;
    push @flaws, "a client of kind $_->{kind} gets $_->{responses} responses" for grep { $_->{responses} != 1 } @{ $clients{download} }, @late;
    push @flaws, "$told of $count{busy} busy clients are told Connection: close" if $told != $count{busy};
    push @flaws, "$refused of $count{hasty} hasty clients are refused in the end" if $refused != $count{hasty};
    return @flaws;
}

# Returns true if another server could listen at the port.
sub can_listen ($port) {
    socket my $socket, PF_INET, SOCK_STREAM, 0 or die "socket: $!";
    setsockopt $socket, SOL_SOCKET, SO_REUSEADDR, 1;
    return bind($socket, pack_sockaddr_in($port, inet_aton('127.0.0.1'))) && listen $socket, 1;
}

each_way_to_accept(sub ($model) {
    for my $round (1 .. (sanitized() ? 1 : 2)) {
        my $server = patient_server();
        my @flaws = stop_among_clients($server, busy => 32, download => $model->{single} ? 2 : 8, hasty => 8, late => 16);
        ok !@flaws, "round $round: a stop among busy clients, downloads and new clients: each gets its response, and is told the end"
            or diag(join "\n", @flaws);
        $server->ended;
    }

    # Those that found no place before the signal get theirs when one is free.
    my $server = patient_server(qw(--max-connections 1), $model->{limited} ? qw(--workers 1) : ());
    my $held = $server->connect;
    is $held->ask(request(GET => '/small.txt'))->{status}, 200, 'a connection has the only place';
    my @queued = map { $server->connect } 1 .. 3;
    $_->send(request(GET => '/small.txt', Connection => 'close')) for @queued;
    ok !$queued[0]->fill(0.2), 'three more wait for it';
    terminate($server);
    ok !$queued[0]->fill(0.2), 'also when the signal has come';
    is $held->ask(request(GET => '/small.txt'))->{status}, 200, 'the one is served to its end';
    is scalar(grep { $_->response->{status} == 200 } @queued), 3, 'and then those three';
    $server->ended;
});

each_server(sub ($model) {
    # A keep-alive connection remains until its next response can say close.
    my $server = patient_server();
    my $idle = $server->connect;
    $idle->ask(request(GET => '/small.txt'));
    terminate($server);
    my $response = $idle->ask(request(GET => '/small.txt'));
    is $response->{status}, 200, 'an idle connection still gets a response after SIGTERM';
    ok !$response->persistent, 'which says that it closes';
    ok $idle->ends, 'and it closes';
    $server->ended;

    # A request that is under way when the signal comes
    $server = patient_server();
    my $half = $server->connect;
    $half->send("GET /small.txt HTTP/1.1\r\nHo");
    $half->fill(0.05);
    terminate($server);
    $half->send("st: localhost\r\n\r\n");
    is $half->response->{status}, 200, 'a request that is half sent when the signal comes gets a response';
    $half->close;
    $server->ended;

    # SIGINT, with nothing to do
    $server = start_server(root => $root);
    $server->get('/small.txt');
    my $summary = $server->stop(signal => 'INT', name => 'SIGINT stops as SIGTERM does');
    like $summary, qr/\A$model->{name}_server: /, 'the summary opens with the name';
    my $line = $summary;
    for my $part (
        qr/\b1 connections?\b/, qr/\b1 at once/, qr/\b1 requests?\b/, qr/\b0 errors?\b/, qr/\b1\d{3} bytes/, qr/CPU/,
        qr{us/request|microseconds}, qr/\d+ [KM]iB.*memory/
    ) {
        like $line, $part, "the summary tells $part";
    }
    my $made = $model->{workers} // 1;
    like $line, qr/\b$made (?:process|thread)/, 'the summary tells the processes or threads made' if !$model->{single};

    # While a slow download goes on, the port is free for the next server, and the stop waits as long as it was told to.
    if ($model->{name} ne 'iterative') {
        $server = patient_server();
        my $slow = $server->connect;
        $slow->send(request(GET => '/big.bin'));
        $slow->fill($PATIENCE);
        terminate($server);
        ok until_true(sub { can_listen($server->port) }), 'the port is free while a download goes on';
        ok $server->alive, 'which the stop waits for';
        is length $slow->response->{body}, $big, 'until it is whole';
        $slow->close;
        $server->ended(name => 'and then it ends, long before --stop-timeout');
    }

    # A client that does not read any more cannot hold the stop for longer.
    $server = start_server(root => $root, options => ['--stop-timeout', 0.2]);
    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    $stalled->fill($PATIENCE);
    $server->stop(name => 'a stalled client does not hold the stop beyond --stop-timeout');
    $stalled->close;

    # A second signal ends the wait.
    for my $signal (qw(TERM INT)) {
        $server = patient_server();
        $stalled = $server->connect;
        $stalled->send(request(GET => '/sparse.bin'));
        $stalled->fill($PATIENCE);
        terminate($server);
        ok $server->alive, "it waits for the client at first ($signal)";
        $server->stop(signal => $signal, name => "a second signal ends it ($signal)");
        $stalled->close;
    }
});

done_testing;

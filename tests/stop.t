#!/usr/bin/perl
# A stop loses nothing: every request that was sent whole on a connection gets a whole reply. Connections that are
# refused after the stop are no loss.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Errno qw(EAGAIN EINPROGRESS EINTR);
use IO::Select;
use Socket qw(PF_INET SOCK_STREAM SOL_SOCKET SO_ERROR SO_RCVBUF pack_sockaddr_in inet_aton);

my $big  = 8 * 1024 * 1024;
my $root = tree('small.txt' => 's' x 1000, 'big.bin' => 'b' x $big, 'sparse.bin' => '');
truncate "$root/sparse.bin", 1 << 30 or die "truncate: $!";

# --- A crowd of clients in one loop ---
# kind: busy      keep-alive, a request as soon as a reply is there, until a reply says close
#       download  one big file, which is read only as long as `hold` is not set and no byte has come, or after `resume`
#       hasty     a connection a request, until connections are refused
#       once      one request

sub client ($port, $kind) {
    my $client = { port => $port, kind => $kind, replies => 0, lost => 0 };
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
    @$client{qw(socket connecting in out asked)} = ($socket, 1, '', '', 0);
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
    if ($client->{connecting}) {
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
    $client->{replies}++;
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

each_way_to_accept(sub ($model) {
    # One after the other they must come to their end in the grace time, on a busy machine, too.
    my $downloads = $model->{single} ? 2 : 10;
    for my $round (1 .. (sanitized() ? 1 : 3)) {
        my $server = start_server(root => $root, options => [qw(--idle-timeout 60)]);
        my @busy      = map { client($server->port, 'busy') } 1 .. 32;
        my @downloads = map { client($server->port, 'download') } 1 .. $downloads;
        my @hasty     = map { client($server->port, 'hasty') } 1 .. 8;
        $_->{hold} = 1 for @downloads;
        my @crowd = (@busy, @downloads, @hasty);
        run_until(\@crowd, sub {
            return $busy[0]{replies} >= 200 if $model->{single};
            return !grep({ $_->{replies} < 3 } @busy, @hasty) && !grep { !length $_->{in} } @downloads;
        });
        # These may still stand in the listen queue when the signal comes.
        my @late = map { client($server->port, 'once') } 1 .. 20;
        writable($_) for grep { !$_->{over} } @late;
        push @crowd, @late;
        $server->signal('TERM');
        $_->{hold} = 0 for @downloads;
        run_until(\@crowd, sub { 0 });

        my $replies = 0;
        $replies += $_->{replies} for @crowd;
        my @lost = grep { $_->{lost} } @crowd;
        is scalar(@lost), 0, "round $round: SIGTERM with @{[ scalar @crowd ]} clients, $replies replies: none is lost"
            or diag(join "\n", map { "$_->{kind}: $_->{over}" } @lost);
        is scalar(grep { !$_->{over} } @crowd), 0, "round $round: all clients come to an end";
        is scalar(grep { $_->{bad} } @crowd), 0, "round $round: and each reply is right";
        is scalar(grep { $_->{replies} == 1 } @downloads), $downloads, "round $round: all downloads are finished";
        is scalar(grep { $_->{replies} == 1 } @late), 20, "round $round: what stood in the queue is answered";
        is scalar(grep { $_->{over} eq 'done' } @busy), 32,
            "round $round: each keep-alive client was told Connection: close";
        is scalar(grep { $_->{refused} } @hasty), 8, "round $round: later connections are refused";
        $server->ended;
        undef $server;
    }

    # A keep-alive connection stays until its next reply can say close.
    my $server = start_server(root => $root, options => [qw(--idle-timeout 60)]);
    my $idle = $server->connect;
    $idle->ask(request(GET => '/small.txt'));
    $server->signal('TERM');
    until_true(sub { !$server->pending_signals });
    my $reply = $idle->ask(request(GET => '/small.txt'));
    is $reply->{status}, 200, 'an idle connection is still answered after SIGTERM';
    ok !$reply->persistent, 'and told that it closes';
    ok $idle->ends, 'and closed';
    $server->ended;

    # A request that is under way when the signal comes
    $server = start_server(root => $root);
    my $half = $server->connect;
    $half->send("GET /small.txt HTTP/1.1\r\nHo");
    $half->fill(0.05);
    $server->signal('TERM');
    until_true(sub { !$server->pending_signals });
    $half->send("st: localhost\r\n\r\n");
    is $half->reply->{status}, 200, 'a request that was half sent when the signal came is answered';
    $half->close;
    $server->ended;

    # Those that found no place before the signal get theirs when one is free.
    $server = start_server(root => $root,
        options => [qw(--max-connections 1 --idle-timeout 60), $model->{limited} ? qw(--workers 1) : ()]);
    my $held = $server->connect;
    is $held->ask(request(GET => '/small.txt'))->{status}, 200, 'a connection has the only place';
    my @queued = map { $server->connect } 1 .. 3;
    $_->send(request(GET => '/small.txt', Connection => 'close')) for @queued;
    ok !$queued[0]->fill(0.3), 'three more wait for it';
    $server->signal('TERM');
    until_true(sub { !$server->pending_signals });
    ok !$queued[0]->fill(0.3), 'also when the signal has come';
    is $held->ask(request(GET => '/small.txt'))->{status}, 200, 'the one is served to its end';
    is scalar(grep { $_->reply->{status} == 200 } @queued), 3, 'and then those three';
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
    my $made = $model->{crew} // 1;
    like $line, qr/\b$made (?:process|thread)/, 'the summary tells the processes or threads made' if !$model->{single};

    # A client that does not read any more cannot hold the stop for ever.
    $server = start_server(root => $root, options => [qw(--write-timeout 600)]);
    my $stalled = $server->connect;
    $stalled->send(request(GET => '/sparse.bin'));
    $stalled->fill($PATIENCE);
    $server->stop(name => 'a stalled client does not hold the stop beyond the grace time');
    $stalled->close;

    # A second signal does not wait for the grace time.
    for my $signal (qw(TERM INT)) {
        $server = start_server(root => $root, options => [qw(--write-timeout 600)]);
        $stalled = $server->connect;
        $stalled->send(request(GET => '/sparse.bin'));
        $stalled->fill($PATIENCE);
        my $patient = stalled_stop();
        $server->signal('TERM');
        until_true(sub { !$server->pending_signals });
        ok $server->alive, "it waits for the client at first ($signal)";
        $server->stop(signal => $signal, name => "a second signal ends it ($signal)");
        ok $patient->alive, "before the grace time of another one is over ($signal)";
        $patient->discard;
        $stalled->close;
    }
});

done_testing;

#!/usr/bin/perl
# Responses that break off while they are stored: no client takes a part of one for the whole, and none is served later. The origin
# breaks off, or the process that fetches is killed.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Injection;
use Origin;
use ProxyFields;

my $origin = Origin->new;
my $proxy;

sub start_proxy ($cache, @options) { return start_server(options => ['--service', 'proxy', '--cache', $cache, @options]) }

# Returns a connection on which a request of that version was sent.
sub ask ($path, $minor = 1, %options) {
    my $client = $proxy->connect(%options);
    $client->send('GET ' . $origin->url($path) . " HTTP/1.$minor\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n");
    return $client;
}

# Waits until a client has so many bytes of a body.
sub has ($client, $count) { return scalar until_true(sub { $client->fill(1); length($client->pending) >= $count }) }

# Reads a connection to its end. Returns the verdict on the response (whole, broken, or what is wrong), and its body.
sub verdict ($client, $body) {
    my ($head, $rest) = split /\r\n\r\n/, $client->drain, 2;
    return 'no response' if !defined $rest || $head !~ m{\AHTTP/1.1 200 };
    my ($whole, $got);
    if ($head =~ /^Content-Length: (\d+)/mi) {
        $got   = $rest;
        $whole = length $rest == $1;
    } elsif ($head =~ /^Transfer-Encoding: chunked/mi) {
        ($got, $whole) = ('', 0);
        while ($rest =~ /\G([0-9a-f]+)\r\n/gc) {
            $whole = hex $1 == 0 and last;
            $got .= substr $rest, pos $rest, hex $1;
            last if (pos($rest) += hex($1) + 2) > length $rest;
        }
    } else {
        $got   = $rest;
        $whole = !$client->{failure};
    }
    return ('wrong bytes', $got) if $got ne substr $body, 0, length $got;
    return ('a part as the whole', $got) if $whole && length $got < length $body;
    return ($whole ? 'whole' : 'broken', $got);
}

# Returns the processes that write an entry. /proc shows a file that was made without a name by a number.
sub writers ($cache) {
    my %writers;
    for my $link (grep { (readlink // '') =~ m{^\Q$cache\E/[t#]} } map { glob "/proc/$_->[0]/fd/*" } group_processes($proxy->pid)) {
        my ($process, $number) = $link =~ m{^/proc/(\d+)/fd/(\d+)};
        my $info = eval { slurp("/proc/$process/fdinfo/$number") } // next;
        $writers{$process} = 1 if $info =~ /^flags:\s*\d*2$/m;    # O_RDWR: who follows only reads
    }
    return sort keys %writers;
}

# Has strace kill the process that makes this system call for the nth time, in the call. Returns strace.
sub kill_in ($call, $nth) {
    return inject("$call:signal=KILL:when=$nth", [map { $_->[0] } serving_processes($proxy->pid)], follow => 1);
}

sub end_all () {
    my $group = $proxy->pid;
    kill KILL => map { $_->[0] } group_processes($group);
    $proxy->discard;
    until_true(sub { !grep { $_->[1] ne 'Z' } group_processes($group) });
}

my $body    = substr +(join '', map { chr($_ * 7 % 251) } 1 .. 251) x 300, 0, 70_000;
my %framing = (
    'Content-Length' => [sub ($part) { $part }, 'Content-Length' => length $body],
    'chunks' => [sub ($part) { sprintf "%x\r\n%s\r\n", length $part, $part }, 'Transfer-Encoding' => 'chunked'],
);

each_server(sub ($model) {
    my $scratch = scratch();
    my $number  = 0;

    # --- the process that fetches is killed ---
    for my $framing (sort keys %framing) {
        my ($frame, @fields) = @{ $framing{$framing} };
        my $cache = "$scratch/cache" . ++$number;
        my $name  = "a killed fetch ($framing)";
        for my $leads (1, 0) {
            my $path = "/killed$number$leads";
            $proxy = start_proxy($cache);
            $origin->play($path, [@{ response(200, undef, %fresh, @fields) }, $frame->(substr $body, 0, 32_754), \"never$number$leads"], response(200, $body, %fresh));
            my $leader = ask($path, $leads);
            ok has($leader, 32_754), "$name: the client of HTTP/1.$leads that fetches has the first part";
            my @others = $model->{single} ? () : map { ask($path, $_) } 0, 1;
            ok has($_, 32_754), "$name: another client has it, too" for @others;
            my @writers = writers($cache);
            isnt scalar(@writers), 0, "$name: a process writes the entry";
            kill KILL => @writers;
            for my $client ($leader, @others) {
                my ($verdict, $got) = verdict($client, $body);
                is $verdict, 'broken', "$name: a client does not take what it has for the whole" or diag(length($got) . ' bytes: ' . substr $client->pending, 0, 300);
                $client->close;
            }
            end_all();
            $proxy = start_proxy($cache);
            ok $proxy->get($origin->url($path))->{body} eq $body, "$name: the next client gets the whole response";
            is $origin->count($path), 2, "$name: the origin sends it again";
            $proxy->stop(%few);
        }
    }

    # --- that process is killed in each step of storing ---
    if (!command_exists('strace') || sanitized()) {
        skip_case('a kill in a system call: without strace, or with a sanitizer');
    } else {
        my $name = 'a kill in a system call of a fetch';
        my %seen;
        my @part = map { substr $body, $_ * 20_000, 20_000 } 0 .. 3;
        my %play = (
            chunks => sub ($gate) { [@{ response(200, undef, %fresh, 'Transfer-Encoding' => 'chunked') }, chunked($part[0]) =~ s/0\r\n\r\n\z//r, \$gate, chunked(@part[1 .. 3])] },
            length => sub ($gate) { [@{ response(200, undef, %fresh, 'Content-Length' => length $body) }, $part[0], \$gate, @part[1 .. 3]] },
        );
        my @steps = map { my $call = $_; map { ["chunks", $call, $_] } 1 .. ($call eq 'pwrite64' ? 9 : 1) } qw(pwrite64 utimensat renameat2 unlinkat);
        push @steps, map { ['length', @$_] } [linkat => 1], [renameat2 => 1], map { [pwrite64 => $_] } 1 .. 5;
        for (@steps) {
            my ($framing, @step) = @$_;
            my $path  = '/step' . ++$number;
            my $cache = "$scratch/steps$number";
            $proxy = start_proxy($cache);
            my $tracer = kill_in(@step);
            if (!$tracer) {
                skip_case("$name: strace cannot be used here");
                end_all();
                last;
            }
            $origin->play($path, $play{$framing}->("step$number"));
            my @clients;
            for my $minor ($model->{single} ? 0 : (0, 1, 0)) {
                my $client = eval { ask($path, $minor) } // last;    # all of the server may have been killed
                push @clients, $client;
                until_true(sub { $client->fill(1); $client->{ended} || length $client->pending > 20_000 });
            }
            $origin->open_gate("step$number");
            $seen{ (verdict($_, $body))[0] }++ for @clients;
            $_->close for @clients;
            end_all();
            waitpid $tracer, 0;
            $proxy = start_proxy($cache);
            ok $proxy->get($origin->url($path))->{body} eq $body, "$name ($framing, @step): the next client gets the whole response";
            $proxy->stop(%few);
        }
        is join(', ', grep { !/^(?:whole|broken|no response)\z/ } keys %seen), '', "$name: no client takes a part for the whole" or diag(join ', ', %seen);
        cmp_ok $seen{broken} // 0, '>', 0, "$name: clients see that their responses are broken" if %seen;
    }

    # --- a client of HTTP/1.0, whose body ends with its connection, gets an end and no reset ---
    $proxy = start_proxy("$scratch/ends");
    $origin->play('/ends', [@{ response(200, undef, %fresh, 'Transfer-Encoding' => 'chunked') }, chunked(substr($body, 0, 30_000), substr $body, 30_000)]);
    my $client = ask('/ends', 0);
    is +(verdict($client, $body))[0], 'whole', 'a client of HTTP/1.0 gets a whole response in chunks, without a reset';
    $client->close;

    # --- if the origin breaks off, such a client gets a reset, which must not take away what has come ---
    my $much = $body x 8;    # the kernel takes it for a client that does not read
    my @deaf = $model->{single} ? 0 : 0 .. 1;
    $origin->play('/reset', [@{ response(200, undef, %fresh, 'Transfer-Encoding' => 'chunked') }, chunked($much) =~ s/0\r\n\r\n\z//r, \'!reset', \'reset', \'']);
    my @deaf_clients = map { ask('/reset', 0) } @deaf;
    ok scalar $origin->has_come('reset'), 'a client of HTTP/1.0 that does not read: the origin has sent a part';
    if (@deaf > 1) {
        my $reader = ask('/reset');
        ok has($reader, length $much), 'a client of HTTP/1.0 that does not read: another one has all that has come';
        $origin->open_gate('reset');
        is +(verdict($reader, "$much!"))[0], 'broken', 'a client of HTTP/1.0 that does not read: another one sees that the origin breaks off';
        $reader->close;
    } else {
        $origin->open_gate('reset');
    }
    for my $deaf (@deaf_clients) {
        my ($verdict, $got) = verdict($deaf, "$much!");
        is $verdict, 'broken', 'a client of HTTP/1.0 that reads late sees that the origin has broken off';
        is length $got, length $much, 'a client of HTTP/1.0 that reads late gets all that has come';
        $deaf->close;
    }

    # --- the origin breaks off while another client reads slowly ---
    if ($model->{single}) {
        skip_case('the model serves one client at a time');
    } else {
        my $long = $body x 120;    # more than the kernel takes for a client that does not read
        for my $framing (sort keys %framing) {
            my ($frame, $field, $value) = @{ $framing{$framing} };
            my $path = "/slow$number" . ($framing eq 'chunks');
            $value = 2 * length $long if $field eq 'Content-Length';
            $origin->play($path, [@{ response(200, undef, %fresh, $field => $value) }, $frame->($body), \"slow$path", $frame->($long), \"!$path", \"gone$path", \'']);
            my $leader = ask($path);
            ok has($leader, length $body), "an origin that breaks off ($framing): the client that fetches has the first part";
            my @slow = map { ask($path) } 1 .. 2;
            ok has($_, 1), "an origin that breaks off ($framing): a slow client has the beginning" for @slow;
            $origin->open_gate("slow$path");
            ok has($leader, length($body) + length $long), "an origin that breaks off ($framing): the client that fetches has all that has come";
            $origin->open_gate("gone$path");
            my ($verdict, $got) = verdict($leader, $body . $long);
            is $verdict, 'broken', "an origin that breaks off ($framing): the client that fetches sees that";
            for my $client (@slow) {
                ($verdict, $got) = verdict($client, "$body$long!");
                is $verdict, 'broken', "an origin that breaks off ($framing): a slow client sees that";
                is length $got, length $body . $long, "an origin that breaks off ($framing): a slow client gets all that has come";
            }
            $_->close for $leader, @slow;
        }
        $proxy->stop(%few);

        # A client that does not read at all is given up, as without another one.
        $proxy = start_proxy("$scratch/deaf", '--write-timeout', 1);
        $origin->play('/deaf', [@{ response(200, undef, %fresh, 'Content-Length' => length $long) }, $body, \'deaf', substr $long, length $body]);
        my $leader = ask('/deaf');
        ok has($leader, length $body), 'a client that does not read: the client that fetches has the first part';
        my $deaf = ask('/deaf');
        ok has($deaf, 1), 'a client that does not read: it has the beginning';
        $origin->open_gate('deaf');
        is +(verdict($leader, $long))[0], 'whole', 'a client that does not read: the client that fetches gets all of it';
        ok scalar until_true(sub { !$proxy->end_of($deaf) }), 'a client that does not read: its connection is given up';
        $_->close for $leader, $deaf;
    }
    $proxy->stop(%few);
});

done_testing;

#!/usr/bin/perl
# --trace: what each process and thread does with each connection, as JSON in the format of Chrome's traces.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use List::Util qw(max min);
use POSIX ();

# Returns the events of one kind: X (activities), i (begin and end of tasks), s and f (arrows), M (names).
sub events ($trace, $kind) { return grep { $_->{ph} eq $kind } @{ $trace->{traceEvents} // [] } }

# Returns the activities for a connection, in the order of their times.
sub activities ($trace, $connection) {
    return sort { $a->{ts} <=> $b->{ts} } grep { ($_->{args}{connection} // 0) == $connection } events($trace, 'X');
}

# Returns the numbers of all connections.
sub connections ($trace) {
    my %seen = map { ($_->{args}{connection} // 0) => 1 } events($trace, 'X');
    delete $seen{0};
    return sort { $a <=> $b } keys %seen;
}

# Returns the first of these words that does not follow those before it; nothing if all are there.
sub out_of_order ($words, @found) {
    for my $word (@$words) {
        shift @found while @found && $found[0] ne $word;
        return $word if !@found;
    }
    return;
}

each_way_to_accept(sub ($model) {
    my $scratch = scratch();
    my $file    = "$scratch/trace.json";
    my $server  = start_server(options => ['--trace', $file]);
    my $slow    = $server->connect;
    my ($first, $rest) = request(GET => '/small.txt', Connection => 'close') =~ /\A(.{10})(.*)\z/s;

    # One client sends a part of its request. Where others need not wait for it, they are served meanwhile.
    $slow->send($first);
    until_true(sub { $server->has_read($slow) });
    my $others = sub { is $server->get('/big.txt')->{status}, 200, 'a client is served' for 1 .. 3 };
    $others->() if !$model->{single};
    is $slow->ask($rest)->{status}, 200, 'the slow client is served';
    $others->() if $model->{single};
    my $missing = $server->get('/none')->{status};
    $server->stop;

    my $trace = json($file);
    my $about = $trace->{otherData} // {};
    is $about->{server}, "$model->{name}_server", 'the trace names the server' or diag(slurp($file) =~ s/(.{2000}).*/$1/sr);
    is $about->{model}, $model->{name}, 'the trace names the model';
    is $about->{lost},  0, 'no event is lost';
    is $about->{command}[-1], '0', 'the trace has the command';
    ok $about->{start_ns} > 0 && $about->{processors} > 0, 'the trace has its begin and the number of processors';

    my @numbers = connections($trace);
    cmp_ok scalar(@numbers), '>=', 5, 'each connection has a number';
    my (@flaws, %status, %ports);
    for my $number (@numbers) {
        my @found = activities($trace, $number);
        my @names = map { $_->{name} } @found;
        my @words = (qw(accept begin read respond write close));
        splice @words, 1, 0, 'hand over' if grep { $_ eq 'hand over' } @names;
        my $missing = out_of_order(\@words, @names);
        # A client of this test that only looks whether the server is ready sends nothing.
        push @flaws, "connection $number: no $missing in (@names)" if defined $missing && grep { $_ eq 'write' } @names;
        $status{ $_->{args}{status} }++ for grep { $_->{name} eq 'write' && $_->{args}{status} } @found;
        my ($accept) = grep { $_->{name} eq 'accept' } @found;
        $ports{ $accept->{args}{port} // 0 }++ if $accept;
    }
    is join("\n", @flaws), '', 'each connection is accepted, read, answered and closed, in this order';
    ok $status{200} >= 4 && $status{404} >= 1, 'the statuses of the responses are there';
    ok !$ports{0}, 'the ports of the clients are there';
    ok $ports{ $slow->{socket}->sockport }, 'the connection of the slow client is found by its port';
    ok scalar(grep { $_->{args}{bytes} && $_->{args}{bytes} > 10000 } map { activities($trace, $_) } @numbers),
        'the bytes of a response are there';

    # No thread does two things at once, and none goes back in time.
    my (%until, @overlaps);
    my $last = 0;
    for my $event (events($trace, 'X')) {
        push @overlaps, "$event->{name} at $event->{ts} begins before " . ($until{ $event->{tid} } // $last)
            if $event->{ts} < $last || $event->{ts} + 0.002 < ($until{ $event->{tid} } // 0);
        $last = $event->{ts};
        $until{ $event->{tid} } = $event->{ts} + $event->{dur};
    }
    is join("\n", @overlaps[0 .. ($#overlaps > 4 ? 4 : $#overlaps)]), '', 'the events are sorted, and no thread does two things at once';

    # A bar that nothing follows lasts until the last event.
    my $end  = max(map { $_->{ts} } map { events($trace, $_) } qw(X i));
    my @late = grep { $_->{ts} + $_->{dur} > $end + 0.002 } events($trace, 'X');
    is scalar(@late), 0, 'no bar lasts longer than the trace' or diag("$late[0]{name} at $late[0]{ts} lasts $late[0]{dur}, of $end");

    # The slow client is waited for, by a thread that has nothing else to do or by an event loop.
    my ($number) = map { $_->{args}{connection} }
        grep { $_->{name} eq 'accept' && ($_->{args}{port} // 0) == $slow->{socket}->sockport } events($trace, 'X');
    my @waits = grep { $_->{name} eq 'wait' } activities($trace, $number);
    my $loop  = !$model->{each} && !$model->{single} && !$model->{limited};
    ok @waits > 0, 'the wait for the slow client is there' if !$loop;

    # Processes and threads are those that the model makes.
    my @starts  = grep { $_->{name} eq 'start' } events($trace, 'i');
    my @workers = grep { $_->{args}{worker} } @starts;
    my $made    = $model->{label} =~ /share=all\z/ ? 'threads' : describe()->{makes} // 'nothing';
    my %tids    = map  { $_->{tid} => 1 } @starts;
    my ($main)  = map  { $_->{pid} } grep { $_->{name} eq 'process_name' && $_->{args}{name} eq "$model->{name}_server" } events($trace, 'M');
    is scalar(keys %tids), scalar(@starts), 'each task has a thread or process of its own';
    is scalar(@workers), $model->{workers} // 0, 'each worker starts' if !$model->{each};
    is scalar(@starts), scalar(@numbers), 'each connection has a process or thread of its own' if $model->{each};
    ok !grep({ ($_->{pid} == $main) != ($made eq 'threads') } @starts), 'processes are processes, and threads are threads';
    is scalar(grep { $_->{name} eq 'end' } events($trace, 'i')), scalar(@starts), 'each task ends';

    # A connection that is handed over has an arrow from one thread to another.
    my %from   = map { $_->{id} => $_->{tid} } events($trace, 's');
    my %to     = map { $_->{id} => $_->{tid} } events($trace, 'f');
    my $passes = $model->{each} || $model->{label} =~ /queue|pass/;
    is scalar(keys %from), $passes ? scalar(@numbers) : 0, 'connections are handed over where another thread serves them';
    ok !grep({ !defined $to{$_} || $to{$_} == $from{$_} } keys %from), 'an arrow leads from one thread to another';
});

# Returns how many KiB of the trace are touched by a child that serves a kept connection.
sub touched_by_child ($server) {
    my $connection = $server->connect;
    $connection->ask(request(GET => '/small.txt'));
    my ($child) = grep { $_ != $server->pid } map { $_->[0] } serving_processes($server->pid);
    my ($touched, $largest) = (-1, 0);    # the trace is the largest memory that the processes share
    for (split /^(?=[0-9a-f]+-)/m, slurp("/proc/$child/smaps")) {
        my ($size, $rss) = m{\A\S+ ..\Ss .*/dev/zero.*^Size: +(\d+) kB.*^Rss: +(\d+) kB}ms or next;
        ($touched, $largest) = ($rss, $size) if $size > $largest;
    }
    $connection->close;
    until_true(sub { !kill 0 => $child }) or die "a child does not end\n";
    return $touched;
}

each_server(sub ($model) {
    my $scratch = scratch();

    # A full buffer: what does not fit is counted and told.
    my $file   = "$scratch/trace.json";
    my $server = start_server(options => ['--trace', $file, '--trace-events', 20]);
    is $server->get('/small.txt')->{status}, 200, 'full: a client is served' for 1 .. 10;
    $server->stop(warnings => qr/the trace is not whole: \d+ events did not fit; see --trace-events/);
    my $trace = json($file);
    cmp_ok $trace->{otherData}{lost} // 0, '>', 0, 'full: the lost events are counted in the file';
    my @events = grep { $_->{ph} =~ /[Xi]/ } @{ $trace->{traceEvents} // [] };
    cmp_ok scalar(@events), '<=', 20, 'full: no more events than asked for';
    like $server->errors, qr/the trace is not whole: $trace->{otherData}{lost} events did not fit/, 'full: and they are told';

    # The file is made new, whole, and by a server in its sandbox.
    spit($file, 'x' x 100_000);
    $server = start_server(options => ['--trace', $file, '--sandbox-kills']);
    is $server->get('/small.txt')->{status}, 200, 'sandbox: a client is served';
    $server->stop;
    is json($file)->{otherData}{lost}, 0, 'the file of an earlier trace is replaced';

    $server = start_server(options => ['--trace', '-']);
    is $server->get('/small.txt')->{status}, 200, 'standard output: a client is served';
    $server->stop;
    like $server->{printed}, qr/\A[^\n]+ serves [^\n]+\n\{"displayTimeUnit".*\]\}\n\z/s, 'standard output: the trace follows the first line';

    # A process that is killed ends in the trace, with what it did.
    if ((describe()->{makes} // '') eq 'processes') {
        $server = start_server(options => ['--trace', $file]);
        my $client = $server->connect;
        $client->send("GET /small.txt HTTP/1.1\r\n");
        until_true(sub { $server->has_read($client) });
        my @children = grep { $_ != $server->pid } map { $_->[0] } serving_processes($server->pid);
        kill KILL => @children;
        $client->drain;
        is $server->get('/small.txt')->{status}, 200, 'killed: the next client is served';
        $server->stop(warnings => qr/was ended by signal 9/);
        my $trace = json($file);
        my %died = map { $_->{tid} => $_->{ts} } grep { $_->{name} eq 'end' && $_->{args}{died} } events($trace, 'i');
        is join(' ', sort keys %died), join(' ', sort @children), 'killed: each process that was killed ends in the trace';
        my @ghosts = grep { defined $died{ $_->{tid} } && $_->{ts} + $_->{dur} > $died{ $_->{tid} } + 0.002 } events($trace, 'X');
        is scalar(@ghosts), 0, 'killed: it does nothing after that';
    }

    # A child of fork() finds its connection in memory of its own, and writes its events to the page of the counters,
    # which it touches anyway.
    if (!sanitized() && $model->{each} && (describe()->{makes} // '') eq 'processes' && !@{ describe()->{share} }) {
        my $server = start_server(options => ['--trace', $file]);
        my @touched = map { touched_by_child($server) } 1 .. 10;
        is min(@touched), POSIX::sysconf(POSIX::_SC_PAGESIZE()) / 1024, 'memory: a child touches one page of what it shares' or diag("@touched");
        $server->stop;
    }

    my $refused = run_server('--trace', "$scratch/none/trace", '0');
    is $refused->{status}, 1, 'a trace that cannot be opened: exit status 1';
    like $refused->{err}, qr{\A[^\n]*\Q$scratch\E/none/trace[^\n]*\n\z}, 'a trace that cannot be opened: one line that names it';
});
done_testing;

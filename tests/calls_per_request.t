#!/usr/bin/perl
# The system calls, page faults and context switches of a request, of each model, on a connection for each request
# and on a kept one.
#
# tests/run without --all looks at one way to accept of each model. `perl tests/calls_per_request.t --record` writes the table
# tests/lib/calls_per_request.tsv again, after a change that is meant to change it.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use List::Util qw(max);

my $TABLE = "$FindBin::Bin/lib/calls_per_request.tsv";
# The cost of a request: the difference between two runs, divided by that of their requests. So the start drops out.
my ($FEW, $MANY, $MANY_USED) = (30, 130, 530);
# A call that fewer than half of the requests make is left out. The number of most others may differ by this margin.
my ($LEAST, $MARGIN) = (0.5, 0.25);
# How often a server waits, wakes a thread or looks for events depends on what comes first: fewer of these calls are no
# flaw, but one more for each request is.
my $WAIT_MARGIN = 0.75;
# A ring that sends more than this share of its responses by calls of their own sends none together with others.
my $ALL_LATE = 0.97;
my %WAITS       = map { $_ => 1 } qw(accept4 io_uring_enter epoll_wait epoll_pwait epoll_ctl poll ppoll wait4 read write
    futex);
# A call that fails for each request has a row of its own, unless it is one of %WAITS: these fail where nothing is there
# yet.
my $FAILS = ' (fails)';
# Most machines read the clock without a call.
my %CLOCK = map { $_ => 1 } qw(clock_gettime gettimeofday time);
my $SOURCE = eval { slurp('/sys/devices/system/clocksource/clocksource0/current_clocksource') } // '';
my $CLOCK_IS_CALLED = $SOURCE !~ /\A(?:tsc|kvm-clock|hyperv_clocksource_tsc_page|arch_sys_counter)$/;
# Up to half a page fault a request, and a tenth of those in the table, are chance.
my ($FAULTS, $FAULTS_MARGIN, $FAULTS_SHARE) = ('(page faults)', 0.5, 0.1);
# A server that waits for its next request gives its processor up. A server that is late does not wait: fewer switches
# are chance.
my $SWITCHES = '(context switches)';
# On a busy machine other programs come between the calls of a request, and a kernel that is short of memory adds
# faults: only a difference that all of these measurements have is a flaw.
my $MEASUREMENTS = 5;

my $TRACES = 3;
# A user has few queues of inotify (fs.inotify.max_user_instances), and other servers may have them all. A worker that gets
# none asks for each document, as without watches.
my $queue_refused = 0;
my $folder = scratch();

# Returns how often a server makes each system call in so many requests. A trace with fewer sends than responses has
# lost calls: another one is made. A ring sends by io_uring_enter.
sub calls ($kept, $requests) {
    for (1 .. $TRACES) {
        my $calls = traced_calls($kept, $requests);
        return $calls if ($calls->{sendto} // 0) + ($calls->{io_uring_enter} // 0) >= $requests;
    }
    die "strace loses calls\n";
}

# Waits until these processes have nothing to do. A server that rests before each request waits for each request,
# whatever else the machine does.
sub await_rest (@processes) {
    my $end = time + $PATIENCE;
    while (time < $end) {
        my @states = map { (eval { slurp($_) } // '') =~ /\) (\S)/ } map { glob "/proc/$_/task/*/stat" } @processes;
        return if !grep { /[^SZ]/ } @states;
    }
    die "the server does not rest\n";
}

# Puts the program at the same addresses each time, where that is allowed: a page fault maps what lies in the same 64 KiB of
# addresses.
my @FIXED = run_command(qw(setarch -R true))->{status} ? () : qw(setarch -R);

# Lets a server answer so many requests, and stops it. Where much memory is free, the kernel holds a new file in larger
# pieces, which a process maps with fewer page faults (fork: 12 and not 13): so all programs are copies in small pieces.
sub serve ($kept, $requests, $through) {
    # One worker: of several more than one may wake for a connection, by chance.
    my @workers = model()->{workers} ? ('--workers', 1) : ();
    my $server  = start_server(root => "$FindBin::Bin/../data", path => program_copy(), options => \@workers, through => [@FIXED, @$through]);
    my $client  = $kept ? $server->connect : undef;
    my @processes = map { $_->[0] } group_processes($server->pid);
    for (1 .. $requests) {
        await_rest(@processes);
        my $response = $kept ? $client->ask(request(GET => '/small.txt')) : $server->get('/small.txt', Connection => 'close');
        die "no response\n" if !$response || $response->{status} != 200;
    }
    $client->close if $kept;
    $server->stop(name => 'the server that is watched stops');
}

sub traced_calls ($kept, $requests) {
    serve($kept, $requests, ['strace', '-D', '-f', '-qq', '-c', '-o', "$folder/calls"]);
    until_true(sub { slurp("$folder/calls") =~ /total$/m }) or die "strace writes no table\n";
    my (%calls, $early_reads);
    for (split /\n/, slurp("$folder/calls")) {
        my @words = split;
        next if $words[0] !~ /\A[\d.]+\z/ || $words[-1] eq 'total';
        # A clone that a signal interrupts begins again.
        my ($name, $number, $failed) = ($words[-1], $words[3], @words == 6 ? $words[4] : 0);
        my $is_early_read = !$kept && $name eq 'recvfrom';
        my $begins_again  = $name eq 'clone' || $is_early_read;
        $queue_refused = 1 if $name eq 'inotify_init1' && $failed;
        $calls{$name} = $number - ($begins_again ? $failed : 0);
        $calls{"$name$FAILS"} = $failed if !$begins_again && !$WAITS{$name};
        $early_reads = $failed if $is_early_read;
    }
    unlink "$folder/calls";
    # An event loop reads at once from a new connection. Whether the request is there by then is chance; if not, the loop
    # watches the connection, and waits once more.
    for my $call (grep { $calls{$_} } qw(epoll_ctl epoll_wait io_uring_enter)) { $calls{$call} -= $early_reads // 0 }
    return \%calls;
}

# Returns true for a call whose number depends on the time. An event loop asks for the CPU time of loops, and a server
# of one connection after another asks whether clients wait, at most a hundred times a second: on a slow machine that is
# for each request. A thread that waits for the start of another one yields until it runs.
sub is_by_time ($call, $kept) {
    return 1 if $call eq 'sched_yield';
    return 1 if $call eq 'poll' && $kept && (model()->{single} || model()->{limited});
    return 1 if $call =~ /\A(?:getrusage|clock_gettime)\z/ && model()->{label} =~ /\A(?:epoll|uring)/;
    return $CLOCK{$call} && $CLOCK_IS_CALLED;
}

# Returns the calls of one request.
sub of_request ($kept) {
    $queue_refused = 0;
    my ($few, $many) = map { calls($kept, $_) } $FEW, $MANY;
    delete $many->{newfstatat} if $queue_refused && model()->{label} =~ /\A(?:epoll|uring|iterative|prefork)/;
    my %each = map { $_ => ($many->{$_} - ($few->{$_} // 0)) / ($MANY - $FEW) } keys %$many;
    return { map { $_ => $each{$_} } grep { my $call = s/\Q$FAILS\E\z//r; $each{$_} >= $LEAST && !is_by_time($call, $kept) } keys %each };
}

# Returns the page faults and the context switches of one request, in a server that is not traced.
sub used_of_request ($kept) {
    my @used;
    for my $requests ($FEW, $MANY_USED) {
        serve($kept, $requests, ["$FindBin::Bin/lib/resource_usage.py", "$folder/used"]);
        push @used, [split ' ', slurp("$folder/used")];
    }
    my ($faults, $switches) = map { max(0, $used[1][$_] - $used[0][$_]) / ($MANY_USED - $FEW) } 0, 1;
    return { $FAULTS => $faults, $SWITCHES => $switches };
}

# The table: {model}{closed or kept}{call} => number.
sub read_table () {
    my %table;
    for (grep { !/^#/ } split /\n/, slurp($TABLE)) {
        my ($model, $connection, $call, $number) = split /\t/;
        $table{$model}{$connection}{$call} = $number if $model ne 'model';
    }
    return \%table;
}

# Returns how far a measured number may lie above and below the number in the table.
sub margins ($call, $should) {
    $call =~ s/\Q$FAILS\E\z//;
    # A ring may receive a request with its connection, or by one call.
    return (1 + $MARGIN, $should) if $call eq 'recvfrom' && model()->{needs};
    # A ring sends a response with others, or by a call of its own if it took long to make: beside other work most take
    # long, but not all responses of all measurements.
    return ($ALL_LATE - $should, $MARGIN) if $call eq 'sendto' && model()->{needs} && !$should;
    # fork_server --template waits for its template's answer by recvfrom.
    my $waits = $WAITS{$call} || $call eq 'recvfrom' && model()->{label} =~ /template/;
    # The end of a child wakes its parent, which looks and rests again; or the parent finds it together with the next
    # client.
    my $by_child = $call =~ /\A(?:accept4|epoll_wait|wait4|\Q$SWITCHES\E)\z/ && model()->{each} && describe()->{makes} eq 'processes';
    return ($WAIT_MARGIN + ($by_child ? 0.5 : 0), $should) if $waits || $call eq $SWITCHES;
    # A parent copies the pages that it shares with a child that has not ended yet: fewer faults are chance, too.
    return ($FAULTS_MARGIN + $FAULTS_SHARE * $should, $should) if $call eq $FAULTS;
    return ($MARGIN) x 2;
}

# Returns how all measurements of a request differ from the table.
sub flaws ($expected, @seen) {
    my %calls = map { %$_ } $expected, @seen;
    my @flaws;
    for my $call (sort keys %calls) {
        my $should = $expected->{$call} // 0;
        my @each   = sort { $a <=> $b } map { $_->{$call} // 0 } @seen;
        my ($above, $below) = margins($call, $should);
        push @flaws, sprintf '%s: %.2f to %.2f a request, and %.2f in %s', $call, @each[0, -1], $should, 'tests/lib/calls_per_request.tsv'
            if $each[0] - $should > $above || $should - $each[-1] > $below;
    }
    return @flaws;
}

# Measures a request of the model once.
sub seen_of_request ($kept) { return { %{ of_request($kept) }, %{ used_of_request($kept) } } }

sub is_tracked ($name) {
    return !run_command('git', '-C', "$FindBin::Bin/..", qw(ls-files --error-unmatch), "${name}_server.c")->{status};
}

# Measures every model, and compares it with the table. Returns the lines of a new table, with medians.
sub measure ($check) {
    my $table = $check ? read_table() : {};
    my @lines;
    my $each = all_cases() ? \&each_way_to_accept : \&each_server;
    $each->(sub ($model) {
        # A model of your own, which git does not know, passes without a row; --record gives it some.
        if ($check && !$table->{ $model->{label} } && !is_tracked($model->{label} =~ /\A(\w+)/)) {
            pass('the table does not have this model');
            return;
        }
        for my $kept (0, 1) {
            my $connection = $kept ? 'kept' : 'closed';
            my (@seen, @flaws);
            for (1 .. $MEASUREMENTS) {
                push @seen, seen_of_request($kept);
                @flaws = $check ? flaws($table->{ $model->{label} }{$connection} // {}, @seen) : ();
                last if $check && !@flaws;
            }
            for my $call (sort keys %{ { map { %$_ } @seen } }) {
                my $middle = (sort { $a <=> $b } map { $_->{$call} // 0 } @seen)[$#seen / 2];
                push @lines, join("\t", $model->{label}, $connection, $call, sprintf '%.2f', $middle) . "\n" if $middle || $call =~ /\A\(/;
            }
            next if !$check;
            ok !@flaws, "$connection: what a request calls and uses is what stands in the table" or diag(join "\n", @flaws);
        }
    });
    return @lines;
}

if (@ARGV && $ARGV[0] eq '--record') {
    spit($TABLE, join '', "# System calls, page faults and context switches of a request for small.txt: see tests/calls_per_request.t.\n", "model\tconnection\tcall\tnumber\n", measure(0));
} elsif (run_command(qw(strace -c -o /dev/null true))->{status}) {
    skip_case('strace cannot be used here');
} else {
    measure(1);
}

# One page fault of a new process maps the 64 KiB of code around the address that it comes to. OFTEN in the Makefile
# says which files are linked first.
my @OF_REQUEST = qw(main server_child sandbox_enter_child connection_open connection_step exchange_start request_read path_resolve
    conditional_judge open_beneath response_write_head date_write plain_write scoreboard_add
    clone_child listener_drop_streams);
each_server(sub ($model) {
    my %address = map { /\A([0-9a-f]+) \S (\S+)\z/ ? ($2 => hex $1) : () } split /\n/, run_command('nm', $model->{path})->{out};
    is join(' ', grep { ($address{$_} // 2**40) >= 2**16 } @OF_REQUEST), '', 'the code that each request runs lies within 64 KiB';
});
done_testing;

#!/usr/bin/perl
# The ledger: the system calls, page faults and context switches of a request, of each model, on a connection for each request
# and on a kept one.
#
# `perl tests/ledger.t --record` writes the table tests/lib/ledger.tsv again, after a change that is meant to change it.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use List::Util qw(min);

my $TABLE = "$FindBin::Bin/lib/ledger.tsv";
# What a request costs is the difference of two runs by the difference of their requests: the start is left out.
my ($FEW, $MANY) = (30, 130);
# A call that is made for less than half of the requests is not of the request. How often the others are made is settled.
my ($LEAST, $MARGIN) = (0.5, 0.25);
# How often one waits or looks for something depends on who comes first: such calls have a wide margin, or are left out.
my $WAIT_MARGIN = 1.5;
my %WAITS = map { $_ => 1 } qw(accept4 io_uring_enter epoll_wait epoll_pwait epoll_ctl poll ppoll wait4 read write), '(context switches)';
my %CHANCE = map { $_ => 1 } qw(futex sched_yield);
# Most machines read the clock without a call. An event loop asks for what it used a hundred times a second at most.
my %CLOCK = map { $_ => 1 } qw(clock_gettime gettimeofday time getrusage);
# Pages that are there by chance make up to a tenth of the faults, and one. A kernel that is short of memory only adds faults:
# so the least of some measurements counts.
my $MEASUREMENTS = 3;
my ($FAULTS, $FAULTS_SHARE) = ('(page faults)', 0.1);
# A server that waits for its next request gives its processor up. One that is late does not wait, so that fewer are chance;
# of workers that wait for the same connection more than one may wake.
my ($SWITCHES, $SWITCHES_MARGIN) = ('(context switches)', 0.5);

my $TRACES = 3;
# A user has few queues of inotify (fs.inotify.max_user_instances), and other servers may have them all. A worker that gets
# none asks for each document, as without watches.
my $queue_refused = 0;
my $folder = scratch();

# Returns the page faults of a server and of its children that it has reaped.
sub faults ($server) {
    my @fields = split ' ', slurp('/proc/' . $server->pid . '/stat') =~ s/.*\) //sr;
    return $fields[7] + $fields[8];
}

# Returns how often a server calls the kernel, by the names of the calls, in so many requests. A trace in which fewer responses
# are sent than came has lost calls, and says nothing: there is another one. A ring sends without a call of its own.
sub calls ($kept, $requests) {
    for (1 .. $TRACES) {
        my $calls = traced_calls($kept, $requests);
        return $calls if ($calls->{sendto} // 0) + ($calls->{io_uring_enter} // 0) >= $requests;
    }
    die "strace loses calls\n";
}

sub traced_calls ($kept, $requests) {
    my @workers = model()->{workers} ? ('--workers', 2) : ();    # each takes a file into its cache at its first request
    my @trace = ('strace', '-D', '-f', '-qq', '-c', '-o', "$folder/calls");
    my $server = start_server(root => "$FindBin::Bin/../data", options => \@workers, through => \@trace);
    my $client = $kept ? $server->connect : undef;
    for (1 .. $requests) {
        my $response = $kept ? $client->ask(request(GET => '/small.txt')) : $server->get('/small.txt', Connection => 'close');
        die "no response\n" if !$response || $response->{status} != 200;
    }
    $client->close if $kept;
    $server->stop(name => 'the traced server stops');
    until_true(sub { slurp("$folder/calls") =~ /total$/m }) or die "strace writes no table\n";
    my %calls;
    for (split /\n/, slurp("$folder/calls")) {
        my @words = split;
        next if $words[0] !~ /\A[\d.]+\z/ || $words[-1] eq 'total';
        # A clone that a signal interrupts begins again. An event loop reads at once from a new connection, and whether the
        # request is there by then is chance.
        my $begins_again = $words[-1] eq 'clone' || !$kept && $words[-1] eq 'recvfrom';
        $queue_refused = 1 if $words[-1] eq 'inotify_init1' && @words == 6;
        $calls{ $words[-1] } = $words[3] - ($begins_again && @words == 6 ? $words[4] : 0);
    }
    unlink "$folder/calls";
    return \%calls;
}

# Returns the calls of one request.
sub of_request ($kept) {
    $queue_refused = 0;
    my ($few, $many) = map { calls($kept, $_) } $FEW, $MANY;
    delete $many->{newfstatat} if $queue_refused && model()->{label} =~ /\A(?:epoll|uring|iterative|prefork)/;
    my %each = map { $_ => ($many->{$_} - ($few->{$_} // 0)) / ($MANY - $FEW) } keys %$many;
    return { map { $_ => $each{$_} } grep { $each{$_} >= $LEAST && !$CHANCE{$_} && !$CLOCK{$_} } keys %each };
}

# Returns the page faults of one request, where each has a process, in a server that is not traced; undef for other models.
sub faults_of_request () {
    return undef if !model()->{each} || describe()->{makes} ne 'processes';
    my $server = start_server(root => "$FindBin::Bin/../data");
    my @helpers = map { $_->[0] } group_processes($server->pid);
    my @seen;
    for my $requests ($FEW, ($MANY) x $MEASUREMENTS) {
        $server->get('/small.txt', Connection => 'close') for 1 .. $requests;
        # The faults of a child count once it has been reaped.
        until_true(sub { @helpers == (() = group_processes($server->pid)) }) or die "children do not end\n";
        push @seen, faults($server);
    }
    $server->stop(name => 'the server stops');
    return min(map { $seen[$_] - $seen[ $_ - 1 ] } 1 .. $#seen) / $MANY;
}

# Returns how often the processes and threads of a server have given their processor up.
sub switches ($server) {
    my $sum = 0;
    for my $task (map { glob "/proc/$_->[0]/task/*/status" } serving_processes($server->pid)) {
        $sum += $1 if (eval { slurp($task) } // '') =~ /^voluntary_ctxt_switches:\s+(\d+)/m;
    }
    return $sum;
}

# Returns the context switches of one request, in a server that is not traced; undef where those that serve come and go.
sub switches_of_request ($kept) {
    return undef if model()->{each} && !$kept;
    my @workers = model()->{workers} ? ('--workers', 2) : ();
    my $server  = start_server(root => "$FindBin::Bin/../data", options => \@workers);
    my $client  = $kept ? $server->connect : undef;
    my @seen;
    for my $requests ($FEW, ($MANY) x $MEASUREMENTS) {
        for (1 .. $requests) {
            $kept ? $client->ask(request(GET => '/small.txt')) : $server->get('/small.txt', Connection => 'close');
        }
        push @seen, switches($server);
    }
    $client->close if $kept;
    $server->stop(name => 'the server stops');
    return min(map { $seen[$_] - $seen[ $_ - 1 ] } 1 .. $#seen) / $MANY;
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

# Returns how the calls of a request differ from those of the table.
sub flaws ($connection, $expected, $seen) {
    my @flaws;
    for my $call (sort keys %{ { %$expected, %$seen } }) {
        my ($should, $is) = map { $_->{$call} // 0 } $expected, $seen;
        # A template's answer is received; and a ring receives what does not come with its connection.
        my $waits  = $WAITS{$call} || $call eq 'recvfrom' && (model()->{label} =~ /template/ || model()->{needs});
        my $margin = $call eq $FAULTS ? 1 + $FAULTS_SHARE * $should
            : $call eq $SWITCHES && $connection eq 'kept' ? $SWITCHES_MARGIN
            : $waits ? $WAIT_MARGIN : $MARGIN;
        my $less = $call eq $SWITCHES ? 0 : $should - $is;
        push @flaws, sprintf '%s: %.2f a request, and %.2f in %s', $call, $is, $should, 'tests/lib/ledger.tsv'
            if $is - $should > $margin || $less > $margin;
    }
    return @flaws;
}

# Measures every model. Returns the lines of a new table.
sub seen_of_request ($kept) {
    my $seen   = of_request($kept);
    my $faults = $kept ? undef : faults_of_request();
    $seen->{$FAULTS} = $faults if $faults;
    my $switches = switches_of_request($kept);
    $seen->{$SWITCHES} = $switches if defined $switches;
    return $seen;
}

sub is_tracked ($name) {
    return !run_command('git', '-C', "$FindBin::Bin/..", qw(ls-files --error-unmatch), "${name}_server.c")->{status};
}

# Measures every model. Returns the lines of a new table. On a busy machine others come between the calls of a request: a
# difference is one when each of some measurements has some.
sub measure ($check) {
    my $table = $check ? read_table() : {};
    my @lines;
    each_way_to_accept(sub ($model) {
        # A model of your own, which git does not know, passes without a row; --record gives it some.
        if ($check && !$table->{ $model->{label} } && !is_tracked($model->{label} =~ /\A(\w+)/)) {
            pass('the table does not have this model');
            return;
        }
        for my $kept (0, 1) {
            my $connection = $kept ? 'kept' : 'closed';
            my ($seen, @flaws);
            for (1 .. $check ? $MEASUREMENTS : 1) {
                $seen  = seen_of_request($kept);
                @flaws = $check ? flaws($connection, $table->{ $model->{label} }{$connection} // {}, $seen) : ();
                last if !@flaws;
            }
            push @lines, map { join("\t", $model->{label}, $connection, $_, sprintf '%.2f', $seen->{$_}) . "\n" } sort keys %$seen;
            next if !$check;
            ok !@flaws, "$connection: the system calls of a request are those of the table" or diag(join "\n", @flaws);
        }
    });
    return @lines;
}

if (@ARGV && $ARGV[0] eq '--record') {
    spit($TABLE, join '', "# System calls, page faults and context switches of a request for small.txt: see tests/ledger.t.\n", "model\tconnection\tcall\tnumber\n", measure(0));
} elsif (run_command(qw(strace -c -o /dev/null true))->{status}) {
    skip_case('strace cannot be used here');
} else {
    measure(1);
}
done_testing;

#!/usr/bin/perl
# run_passes.pl: builds the servers for each pass, runs the test files of all passes, and reports what failed.
#
# usage:    tests/lib/run_passes.pl --pass NAME... --server NAME... [--jobs N] --ways WAYS [--share] [--verbose] [--record]
#           [FILE]...
# example:  tests/lib/run_passes.pl --pass normal --server fork --server epoll --jobs 2 --ways marked tests/stop.t
#
# tests/run installs what is missing and starts this; its --help explains the options.
use v5.36;
use FindBin;
use Getopt::Long qw(GetOptions);
use JSON::PP     qw(decode_json);
use List::Util   qw(any max min uniq);
use TAP::Harness;
use TAP::Parser::Aggregator;

chdir "$FindBin::Bin/../.." or die "$FindBin::Bin/../..: $!\n";
$| = 1;

my $schedule = 'tests/lib/pass_schedule.tsv';
my @pytest   = qw(/usr/bin/python3 -m pytest -p no:terminal -p no:cacheprovider --tap);
my %options  = (ways => 'marked');
GetOptions(\%options, 'pass=s@', 'server=s@', 'jobs=i', 'ways=s', 'share', 'verbose', 'record') or exit 2;
my @given  = uniq @ARGV;
my @passes = uniq @{ $options{pass} };

# The build of each pass: its settings of make and its folder.
my %builds = (
    normal   => {},
    asan     => { with => 'SANITIZE=address,undefined', folder => 'build/asan' },
    tsan     => { with => 'SANITIZE=thread', folder => 'build/tsan' },
    valgrind => { with => 'DEBUG=1', folder => 'build/debug' },
);
for my $pass (grep { !$builds{$_} } @passes) {
    print STDERR "run: there is no pass $pass (see --help)\n";
    exit 2;
}

$options{jobs} //= jobs_for(memory());
my $start = time;
my ($files, $cases) = (0, 0);
my (@failed, @complaints, %seconds);    # what the last lines name, what failed in it, file => its seconds in the normal pass
my $interrupted = 0;
for my $signal (qw(INT TERM HUP)) {
    $SIG{$signal} = sub { die "interrupted by SIG$signal\n" };
}
eval { run_jobs(map { prepared($_) } @passes); 1 } or do {
    die $@ if $@ !~ /^interrupted/;
    push @failed, $@ =~ s/\n//r;
    $interrupted = 1;
    end_children();
};
record() if $options{record} && !$interrupted;
exit(close_report() ? 0 : $interrupted ? 130 : 1);

# --- The memory ----------------------------------------------------------------------------------------------------

sub content ($path) {
    open my $file, '<', $path or return '';
    local $/;
    return <$file> // '';
}

# Returns how much memory the tests may take, in MiB: what is free, or the limit of a control group of either version.
sub memory () {
    my @kib = content('/proc/meminfo') =~ /^MemAvailable: +(\d+) kB/m;
    for my $line (split /\n/, content('/proc/self/cgroup')) {
        my (undef, $controllers, $path) = split /:/, $line, 3;
        next if $controllers ne '' && $controllers !~ /\bmemory\b/;
        my $mount = $controllers eq '' ? '/sys/fs/cgroup' : '/sys/fs/cgroup/memory';
        # In a container, the path may be one of the host; the group is then the mount itself.
        do {
            push @kib, map { /^(\d+)/ ? $1 / 1024 : () } map { content("$mount$path/$_") } qw(memory.max memory.limit_in_bytes);
        } while ($path =~ s{/[^/]*\z}{});
    }
    return min(@kib, 2**40) / 1024;
}

# A test of the study takes 190 MiB.
sub jobs_for ($mib) { return max(1, min(12, int($mib / 200))) }

# --- The schedule --------------------------------------------------------------------------------------------------

# Returns the rows of the schedule: file => its passes as they stand there, and the seconds that it took when it was recorded.
sub scheduled () {
    open my $table, '<', $schedule or die "$schedule: $!\n";
    chomp(my ($head, @lines) = grep { !/^#/ } <$table>);
    return map { my ($file, $passes, $took) = split /\t/; ($file => { passes => [split /,/, $passes], seconds => $took }) } @lines;
}

# Writes the seconds of this run into the schedule, so that the longest files start first.
sub record () {
    my %row = scheduled();
    $row{$_} //= { passes => usual_passes($_) } for keys %seconds;
    open my $old, '<', $schedule or die "$schedule: $!\n";
    my @head = grep { /^#|^file\t/ } <$old>;
    open my $new, '>', $schedule or die "$schedule: $!\n";
    print {$new} @head;
    for my $file (grep { -e } sort keys %row) {
        printf {$new} "%s\t%s\t%s\n", $file, join(',', @{ $row{$file}{passes} }), $seconds{$file} // $row{$file}{seconds} // 0;
    }
    close $new or die "$schedule: $!\n";
}

# Returns the passes of a file that has no row: the normal one for tests of the study, all passes with servers for others.
sub usual_passes ($file) { return $file =~ /\.py\z/ ? ['normal'] : [qw(normal asan tsan)] }

# Returns the test files of a pass, each as a hash: file, seconds, share. share is undef where the file runs with all
# servers, else [number, count]: it gets this one of so many shares of the servers, in turns.
sub files_of ($pass) {
    my %row   = scheduled();
    my $whole = $pass eq 'normal' && ($ENV{TEST_EXTENT} // 'all') eq 'all';
    my $named = $whole ? qr{\A(?:normal(?:/\d)?|long)\z} : qr{\A$pass(?:/\d)?\z};
    my ($turn, @files) = (0);
    for my $file (@given ? @given : glob 'tests/*.t tests/study/test_*.py') {
        my ($how) = grep { $_ =~ $named } @{ $row{$file} ? $row{$file}{passes} : usual_passes($file) } or next;
        my $share = $options{share} && !$whole && $how =~ m{/(\d)\z} ? [$turn++ % $1, $1] : undef;
        push @files, { file => $file, seconds => $row{$file}{seconds} // 0, share => $share };
    }
    return @files;
}

# --- A pass --------------------------------------------------------------------------------------------------------

sub make (@arguments) {
    system 'make', '--no-print-directory', '--silent', '-j2', @arguments;
    die "interrupted by SIGINT\n" if ($? & 127) == 2;    # while make runs, it alone gets the signal
    return $? == 0;
}

# A wrong include can be why nothing builds. Returns what the test of the layers, which needs no build, says then.
sub wrong_includes () {
    open my $test, '-|', 'sh', '-c', 'exec "$@" 2>&1', 'sh', $^X, 'tests/layers.t' or return "tests/layers.t: $!\n";
    return map { "tests/layers.t: $_" } grep { /^(?:not ok|#)/ } <$test>;
}

# Returns the command that starts a sanitized server: without address randomization, where that is allowed.
sub wrapper ($pass) {
    state @setarch = system('setarch --addr-no-randomize true 2>/dev/null') == 0 ? qw(setarch --addr-no-randomize) : ();
    return $pass =~ /san\z/ ? @setarch : ();
}

# Returns what --describe says of a server.
sub described ($pass, $server) {
    open my $output, '-|', wrapper($pass), $server, '--describe' or die "$server: $!\n";
    local $/;
    return decode_json(<$output>);
}

# Returns the servers sorted by kind: what they make for connections, if anything, and whether that lasts.
sub by_kind ($pass, @servers) {
    my %kind = map { my $own = described($pass, $_); ($_ => join ' ', $own->{makes} // '', $own->{lasting} ? 1 : 0) } @servers;
    return sort { $kind{$a} cmp $kind{$b} || $a cmp $b } @servers;
}

# Returns a share of servers that are sorted by kind, with as many kinds as possible in it. No share is empty.
sub share ($number, $of, @sorted) {
    $of = min($of, scalar @sorted);
    return @sorted[grep { $_ % $of == $number % $of } 0 .. $#sorted];
}

# Builds a pass. Returns its jobs as hashes: name, pass, file, seconds, environment.
sub prepared ($pass) {
    my $build = $builds{$pass};
    my @files = files_of($pass) or return;
    print "== $pass: @{ $options{server} }\n";
    # Only a sanitizer sees much of what the seeds of the fuzzers could do wrong.
    my %units = (normal => 'tests/unit_*.c', asan => 'tests/unit_*.c tests/fuzz_*.c');
    my @units = @given ? () : map { s{^tests/(.*)\.c\z}{$1}r } glob($units{$pass} // '');
    @units = map { join '/', $build->{folder} // 'build', $_ } @units;
    my @how = $build->{folder} ? ($build->{with}, "BUILD=$build->{folder}") : ();
    # Otherwise tests that need the servers of `make crash` would wait for their build.
    my @crash = @given || $pass ne 'normal' ? () : 'crash';
    if (!make(@how, 'all', @crash, @units)) {
        push @failed, "$pass (it does not build)";
        push @complaints, wrong_includes();
        return;
    }
    my @servers = map { join '/', $build->{folder} // '.', "${_}_server" } @{ $options{server} };
    my @by_kind;
    my $described = eval {
        @servers = grep { (described($pass, $_)->{makes} // '') eq 'threads' } @servers if $pass eq 'tsan';
        @by_kind = by_kind($pass, @servers) if any { $_->{share} } @files;
        1;
    };
    if (!$described) {
        die $@ if $@ =~ /^interrupted/;
        push @failed, "$pass (a server does not describe itself)";
        return;
    }
    return if !@servers;
    my %environment = (
        TEST_PASS    => $pass,
        TEST_WAYS    => $pass eq 'normal' ? $options{ways} : 'first',
        TEST_SERVERS => "@servers",
        TEST_WRAPPER => join(' ', wrapper($pass)),
        CMOCKA_MESSAGE_OUTPUT => 'TAP',
        ASAN_OPTIONS  => 'detect_leaks=1:detect_stack_use_after_return=1:exitcode=97',
        UBSAN_OPTIONS => 'print_stacktrace=1',
        TSAN_OPTIONS  => 'exitcode=66',
    );
    # It is not known how long the units take: they come first.
    return map { {
        pass => $pass,
        name => @passes > 1 ? "$pass: $_->{file}" : $_->{file},
        file => $_->{file},
        seconds     => $_->{seconds},
        environment => { %environment, $_->{share} ? (TEST_SERVERS => join ' ', share(@{ $_->{share} }, @by_kind)) : () },
    } } @files, map { { file => $_, seconds => 'inf' } } @units;
}

# --- The jobs ------------------------------------------------------------------------------------------------------

# Returns the command of a job.
sub command ($job) {
    my ($file, $environment) = @$job{qw(file environment)};
    return 'env', (map { "$_=$environment->{$_}" } sort keys %$environment),
        $file =~ /\.t\z/ ? $^X : $file =~ /\.py\z/ ? @pytest : (), $file;
}

# Runs the jobs of all passes, several at the same time, in one queue, so that no processor rests before the end. Those come first
# that take longest in the normal pass.
sub run_jobs (@jobs) {
    print "\n";
    @jobs = sort { $b->{seconds} <=> $a->{seconds} || $a->{name} cmp $b->{name} } @jobs;
    my %job        = map { $_->{name} => $_ } @jobs;
    my $aggregator = TAP::Parser::Aggregator->new;
    my $harness = TAP::Harness->new({
        verbosity => $options{verbose} ? 1 : 0,
        timer     => $options{verbose} || $options{record},
        merge     => 1,
        jobs      => $options{jobs},
        # This formatter does not mix the cases of different files.
        $options{verbose} ? (formatter_class => 'TAP::Formatter::File') : (),
    });
    # TAP::Harness knows a job as its file and its name.
    $harness->callback(parser_args => sub ($arguments, $known) {
        delete $arguments->{source};
        $arguments->{exec} = [command($job{ $known->[1] })];
    });
    $harness->callback(made_parser => sub ($parser, $known) { listen_to($job{ $known->[1] }, $parser) });
    my (%failed, %cases);
    $harness->callback(after_test => sub ($known, $parser) {
        my ($pass, $file) = @{ $job{ $known->[1] } }{qw(pass file)};
        $failed{$pass} = 1 if $parser->has_problems;
        $cases{$pass} += $parser->tests_run;
        $seconds{$file} = sprintf '%.0f', $parser->end_time - $parser->start_time if $pass eq 'normal' && $file =~ /^tests/;
    });
    $aggregator->start;
    my $complete = eval { $harness->aggregate_tests($aggregator, map { [@$_{qw(file name)}] } @jobs); 1 };
    my $why = $@;
    $aggregator->stop;
    $files = $aggregator->descriptions;
    $cases = $aggregator->total;
    push @failed, sort keys %failed;
    push @failed, map { "$_ (no case ran)" } grep { !$cases{$_} && !$failed{$_} } uniq map { $_->{pass} } @jobs if $complete;
    return if $complete;
    die $why if $why =~ /^interrupted/;
    push @failed, 'a file gave up';
    push @complaints, $why;
    end_children();
}

# Records each case of a file that fails, with the lines that follow it, and a file that ends abnormally.
sub listen_to ($job, $parser) {
    my ($pass, $file) = @$job{qw(pass file)};
    my @said;             # the last lines that are not cases
    my $failures = 0;
    my $complaint;        # the complaint to which the next lines belong
    my $note = sub ($line) {
        push @said, $line;
        shift @said if @said > 20;
        $$complaint .= "    $line\n" if $complaint && ($$complaint =~ tr/\n//) < 40;
    };
    $parser->callback(comment => sub ($result) { $note->($result->raw) });
    $parser->callback(unknown => sub ($result) { $note->($result->raw) if $result->raw =~ /\S/ });
    $parser->callback(test => sub ($result) {
        ($complaint, @said) = ();
        return if $result->is_ok;
        $failures++;
        push @complaints, "$pass, $file: " . $result->raw . "\n";
        $complaint = \$complaints[-1];
    });
    $parser->callback(bailout => sub ($result) { push @complaints, "$pass, $file: " . $result->raw . "\n" });
    $parser->callback(EOF => sub ($) {
        my @flaws = $parser->parse_errors;
        push @flaws, sprintf 'it ended with status %d', $parser->exit if $parser->exit && !$failures;
        push @flaws, sprintf 'it was ended by signal %d', $parser->wait & 127 if ($parser->wait // 0) & 127;
        push @complaints, join '', "$pass, $file: ", join('; ', @flaws), "\n", map { "    $_\n" } @said if @flaws;
    });
}

# --- The end -------------------------------------------------------------------------------------------------------

# Ends the test files that still run. Each of them ends the servers that it has started.
sub end_children () {
    local $SIG{$_} = 'IGNORE' for qw(INT TERM HUP);
    open my $list, '<', "/proc/$$/task/$$/children" or return;
    kill TERM => split ' ', <$list> // '';
    1 while wait > 0;
}

# Prints the result, which continuous integration reads. Returns true if all passed.
sub close_report () {
    my $good = !@failed && $cases > 0;
    print "\n== what failed\n", @complaints if @complaints;
    print "\n== all passes: @passes\n";
    print @failed ? "Failed: @failed\n" : "All tests successful.\n";
    printf "Files=%d, Tests=%d, %d wallclock secs\n", $files, $cases, time - $start;
    print 'Result: ', $good ? 'PASS' : 'FAIL', "\n";
    return $good;
}

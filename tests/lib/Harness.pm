package Harness;

# The base of the end-to-end tests: starts servers on free ports, exchanges raw HTTP with them, stops them, and checks what they
# leave behind. It uses core modules, and TcpState.pm, only.
#
#   use FindBin;
#   use lib "$FindBin::Bin/lib";
#   use Harness;
#
#   each_server(sub ($model) {
#       my $server = start_server(options => ['--list']);
#       is $server->get('/small.txt')->{status}, 200, 'a file is served';
#       $server->stop;
#   });
#   done_testing;
#
# Environment: TEST_SERVERS    paths of the servers, separated by spaces (default: every *_server beside the Makefile)
#              TEST_PASS       normal, asan or tsan: how the servers were built
#              TEST_WAYS       which ways to accept connections a server is tested with: first (the default way of the server);
#                              marked (the first in each_server, all in each_way_to_accept), which is the default; or all
#              TEST_WRAPPER    a command that the servers are started through (setarch -R)
#
# A test waits by asking until a condition holds. $PATIENCE only ends a test that would hang.

use v5.36;
use Cwd              ();
use Errno            qw(EAGAIN EINTR EWOULDBLOCK);
use Exporter         qw(import);
use Fcntl            qw(F_SETFD FD_CLOEXEC);
use File::Basename   qw(basename dirname);
use File::Path       qw(make_path);
use File::Temp       ();
use IO::Select       ();
use IO::Socket::IP   ();
use IO::Socket::UNIX ();
use JSON::PP         ();
use List::Util       ();
use POSIX            qw(:sys_wait_h);
use Socket           qw(SOL_SOCKET SO_RCVBUF SHUT_WR);
use TcpState           ();
use Test::More       ();
use Time::HiRes      ();

our $PATIENCE = 240;
our $LINGER   = 2;

our @EXPORT = qw(
    each_server each_way_to_accept start_server patient_server program_copy within make run_command run_server
    describe build sanitized no_leak_search all_cases has_browser browse scratch tree slurp spit table_rows json http_date
    request parse_responses until_true now model group_processes anonymous_memory serving_processes helper_workers
    server_processes model_programs cpu_seconds parse_parts command_exists skip_case done_testing ok is isnt like unlike cmp_ok
    is_deeply pass fail diag $PATIENCE
);

my $top     = dirname(dirname(Cwd::abs_path(dirname(__FILE__))));
my $owner   = $$;
my $model;
my %running;    # process => its standard error
my $command;    # the process that run_command waits for

$SIG{PIPE} = 'IGNORE';
$SIG{$_} = \&interrupted for qw(INT TERM HUP);
$ENV{LC_ALL} = 'C';

# The name of each case begins with the name of the model.

my %name_position = (ok => 1, is => 2, isnt => 2, like => 2, unlike => 2, cmp_ok => 3, is_deeply => 2, pass => 0, fail => 0);
for my $function (keys %name_position) {
    no strict 'refs';
    my $real = \&{"Test::More::$function"};
    *{$function} = sub {
        my @arguments = @_;
        my $place     = $name_position{$function};
        $arguments[$place] = ($model ? "$model->{label}: " : '') . ($arguments[$place] // '');
        local $Test::Builder::Level = $Test::Builder::Level + 1;
        &$real(@arguments);
    };
}

sub diag         { Test::More::diag(@_) }
sub done_testing { Test::More::done_testing() }
sub model        { return $model }

# Reports a case that cannot run on this machine or with this model, and why.
sub skip_case ($why) {
    Test::More->builder->skip(($model ? "$model->{label}: " : '') . $why);
}

sub build     { return $ENV{TEST_PASS} // 'normal' }
sub sanitized { return build() ne 'normal' }
# Returns true if cases may take long or need a browser. tests/run without --all leaves these out.
sub all_cases { return ($ENV{TEST_EXTENT} // 'all') eq 'all' }
sub now       { return Time::HiRes::clock_gettime(Time::HiRes::CLOCK_MONOTONIC()) }

# Returns the environment for a server in which the sanitizer cannot search for leaks: in the sandbox or in a container.
sub no_leak_search { return { ASAN_OPTIONS => join ':', grep { defined } $ENV{ASAN_OPTIONS}, 'detect_leaks=0' } }

# Programs do not get what the caller of the tests has left open: their descriptors would have other numbers.
my @inherited;
for my $number (grep { $_ > 2 } map { basename($_) } glob '/proc/self/fd/*') {
    open(my $file, '<&=', $number) or next;
    fcntl $file, F_SETFD, FD_CLOEXEC;
    push @inherited, $file;    # its end would close the descriptor
}

# The browsers that may be used. The first one has no windows, and starts with a third of the other's CPU time.
my ($browser) = grep { command_exists($_) } qw(chromium-headless-shell chromium);

# Returns true if cases may use a browser.
sub has_browser { return all_cases() && !sanitized() && $browser }

# Returns the document that a browser makes of a page.
sub browse ($url, @options) {
    return run_command($browser, qw(--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking),
        '--user-data-dir=' . scratch(), @options, '--dump-dom', $url)->{out};
}

# Polls until the condition is true, and leaves most of the time to what it waits for. Returns the condition's value, or undef
# after $patience seconds.
sub until_true ($condition, $patience = $PATIENCE) {
    my $end = now() + $patience;
    while (1) {
        my $start = now();
        my $value = $condition->();
        return $value if $value;
        my $after = now();
        return undef if $after > $end;    # not (): in a list of arguments that would shift those that follow
        select undef, undef, undef, List::Util::max(0.01, 4 * ($after - $start));
    }
}

sub command_exists ($command) {
    return grep { -x "$_/$command" } split /:/, $ENV{PATH} . ':/usr/sbin:/sbin';
}

# --- Files ---------------------------------------------------------------------------------------------------------

# Makes a directory that everybody may enter, and that is removed when the test ends.
sub scratch () {
    my $directory = File::Temp->newdir('server-test-XXXXXXXX', TMPDIR => 1);
    chmod 0755, "$directory";
    return $directory;
}

sub spit ($path, $content) {
    open my $file, '>:raw', $path or die "$path: $!\n";
    print {$file} $content;
    close $file or die "$path: $!\n";
}

sub slurp ($path) {
    open my $file, '<:raw', $path or die "$path: $!\n";
    local $/;
    return scalar(<$file>) // '';
}

# Returns the rows of a table with a line of names, each as a hash; none if there is no file.
sub table_rows ($path) {
    my ($names, @rows) = map { [split /\t/] } split /\n/, -e $path ? slurp($path) : '';
    return map { my %row; @row{@$names} = @$_; \%row } @rows;
}

# Returns the JSON object in a file; an empty one if there is none.
sub json ($path) { return eval { JSON::PP::decode_json(slurp($path)) } // {} }

# Makes a scratch directory with these files: path => content. A path that ends in a slash is a directory; a reference as content
# makes a symbolic link.
sub tree (%content) {
    my $root = scratch();
    for my $path (sort keys %content) {
        my $full = "$root/$path";
        make_path($path =~ m{/\z} ? $full : dirname($full));
        next if $path =~ m{/\z};
        if   (ref $content{$path}) { symlink ${ $content{$path} }, $full or die "$full: $!\n" }
        else                       { spit($full, $content{$path}) }
    }
    return $root;
}

my @days   = qw(Sun Mon Tue Wed Thu Fri Sat);
my @months = qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec);

# Returns a time as an HTTP date, in one of the three formats.
sub http_date ($time, $format = 'fixed') {
    my ($second, $minute, $hour, $day, $month, $year, $weekday) = gmtime $time;
    my $clock = sprintf '%02d:%02d:%02d', $hour, $minute, $second;
    return sprintf '%s, %02d %s %d %s GMT', $days[$weekday], $day, $months[$month], $year + 1900, $clock
        if $format eq 'fixed';
    return sprintf '%s, %02d-%s-%02d %s GMT',
        (qw(Sunday Monday Tuesday Wednesday Thursday Friday Saturday))[$weekday], $day, $months[$month], $year % 100,
        $clock
        if $format eq 'rfc850';
    return sprintf '%s %s %2d %s %d', $days[$weekday], $months[$month], $day, $clock, $year + 1900;
}

# --- Processes -----------------------------------------------------------------------------------------------------

# Returns the processes of a process group as [pid, state, name]. The group outlives a server that leaves processes behind.
sub group_processes ($group) {
    my @found;
    opendir my $all, '/proc' or die "/proc: $!";
    for my $pid (grep { /\A[0-9]+\z/ && (getpgrp($_) // -1) == $group } readdir $all) {
        open my $file, '<', "/proc/$pid/stat" or next;
        my ($name, $state, $its_group) = (<$file> // next) =~ /\((.*)\) (\S) \d+ (\d+)/s or next;
        push @found, [$pid, $state, $name] if $its_group == $group;
    }
    return @found;
}

# Returns the memory of the server that no file backs, in KiB.
sub anonymous_memory ($server) {
    my $sum = 0;
    for my $process (group_processes($server->pid)) {
        my $rollup = eval { slurp("/proc/$process->[0]/smaps_rollup") } // next;
        my %memory = $rollup =~ /^(\w+): +(\d+) kB/mg;
        $sum += $memory{Pss_Anon} // 0;
    }
    return $sum;
}

# Returns the processes of a process group that serve: all but the helper processes, which have rights that the server gave up.
sub serving_processes ($group) {
    return grep { $_->[1] ne 'Z' && $_->[2] !~ /\A(?:cache_keeper|handover|key_process|key_reader|log_opener|names|oom_guard|template)\z/ } group_processes($group);
}

# Returns the processes of all servers that run now.
sub server_processes () { return map { $_->[0] } map { group_processes($_) } keys %running }

# Returns the helper processes of a name that do its work: those whose parent, which replaces them, has the same name.
sub helper_workers ($group, $name) {
    my %is_one = map { $_->[0] => 1 } grep { $_->[1] ne 'Z' && $_->[2] eq $name } group_processes($group);
    return grep { my ($parent) = (eval { slurp("/proc/$_/stat") } // '') =~ /\) \S (\d+)/; $parent && $is_one{$parent} } sort keys %is_one;
}

# Returns the CPU seconds of all living processes and threads of a process group.
sub cpu_seconds ($group) {
    my $sum = 0;
    for my $process (group_processes($group)) {
        for my $task (glob "/proc/$process->[0]/task/*") {
            if (open my $file, '<', "$task/schedstat") {
                $sum += ((split ' ', <$file> // '0')[0] // 0) / 1e9;
            }
        }
    }
    return $sum;
}

# Runs a command to its end. Returns its exit status, signal, standard output and standard error.
sub run_command (@command) {
    my ($out, $err) = (File::Temp->new, File::Temp->new);
    my $pid = $command = spawn(\@command, $out, $err);
    my $ended = until_true(sub { waitpid($pid, WNOHANG) == $pid });
    my $status = $?;
    undef $command;
    if (!$ended) {
        kill KILL => -$pid;
        waitpid $pid, 0;
        $status = $?;
    }
    delete $running{$pid};
    return {
        hung   => !$ended,
        status => $status & 127 ? 128 + ($status & 127) : $status >> 8,    # as in a shell, so that a signal is not 0
        signal => $status & 127,
        out    => slurp($out->filename),
        err    => slurp($err->filename),
    };
}

# Runs make in a folder. A build takes as long as the machine needs, and one that is killed leaves half an object file behind.
sub make ($folder, @arguments) {
    local $PATIENCE = 3600;
    return run_command('make', '--silent', '-C', $folder, @arguments);
}

# Runs the current model's server with a command line with which it ends by itself.
sub run_server (@arguments) {
    my $run = run_command(wrapper(), $model->{path}, @arguments);
    $run->{err} = without_notice($run->{err});
    return $run;
}

# A machine with little memory has room for fewer connections than the default, and a server says so: that is no flaw of a run.
sub without_notice ($text) { return $text =~ s/^\w+: the memory limit of the control group is enough for .*\n//mgr }

sub wrapper () { return split ' ', $ENV{TEST_WRAPPER} // '' }

sub spawn ($command, $out, $err, $directory = undef, $environment = {}) {
    my $pid = fork // die "fork: $!\n";
    if ($pid == 0) {
        setpgrp 0, 0;
        chdir($directory // $top);
        @ENV{ keys %$environment } = values %$environment;
        open STDIN,  '<',  '/dev/null' or POSIX::_exit(126);
        open STDOUT, '>&', $out        or POSIX::_exit(126);
        open STDERR, '>&', $err        or POSIX::_exit(126);
        { no warnings 'exec'; exec { $command->[0] } @$command }
        print STDERR "$command->[0]: $!\n";
        POSIX::_exit(127);
    }
    setpgrp $pid, $pid;    # in parent and child, because either may run first
    $running{$pid} = $err;
    return $pid;
}

# Ends this test at a signal. A command that runs gets some seconds to end what it has started.
sub interrupted ($signal) {
    $SIG{$_} = 'IGNORE' for qw(INT TERM HUP);
    if ($$ == $owner && $command) {
        kill TERM => $command;
        until_true(sub { waitpid($command, WNOHANG) == $command }, 10);
    }
    exit 130;
}

END {
    if ($$ == $owner) {
        my $status = $?;
        for my $pid (keys %running) {
            kill KILL => -$pid;
            waitpid $pid, 0;
        }
        $? = $status;
    }
}

# --- Models --------------------------------------------------------------------------------------------------------

# The number of workers where each serves one connection: enough for all connections that a test has at once.
my $WORKERS = 56;

# Returns the variants of a server, from what --describe prints. A variant has
#   name, path   of the server
#   label        the name, and the way to accept or to make a child unless it is the default
#   options      that choose the variant; none for the default
#   single       true if it can serve only one connection at a time
#   workers      the number of workers, which are made at the start; undef if it has none
#   limited      true if each worker serves one connection at a time
#   each         true if it makes a process or thread for each connection
#   needs        what the model needs of the kernel; undef if all kernels have it
#   available    true if this kernel lets it have that
sub variants ($path, $all_ways) {
    my ($name) = basename($path) =~ /^(.*)_server\z/ or die "$path is not a server\n";
    $model = { name => $name, label => $name, path => $path, options => [] };
    my $own = describe();
    my ($limit, $workers) = @{ $own->{defaults} }{qw(max_connections workers)};
    $model->{$_}      = $own->{$_} for qw(needs available);
    $model->{single}  = ($limit // 0) == 1;
    $model->{limited} = !defined $limit;
    $model->{workers}    = !$workers ? undef : $model->{limited} ? $WORKERS : 2;
    $model->{each}    = !$model->{single} && !$workers;
    return $model, $all_ways ? map { {
        %$model,
        options => ["--$_->[0]", $_->[1] // ()],
        label   => "$name+" . join('=', @$_),
        # The kernel may choose a busy worker, so only one connection at a time is sure to be served.
        single => $model->{single} || ($_->[1] // '') eq 'reuseport' && $model->{limited},
    } } other_ways($own) : ();
}

# Returns the ways to accept, or to make a child, that a server has besides its default: options with their values.
sub other_ways ($own) {
    my @ways;
    for my $option (qw(accept share)) {
        my ($default, @others) = @{ $own->{$option} };
        push @ways, map { [$option, $_] } @others;
    }
    return @ways, $own->{template} ? ['template'] : ();
}

# Returns what --describe prints for the current model.
sub describe () { return JSON::PP::decode_json(run_server('--describe')->{out}) }

# Runs the cases against every server, with its default way to accept connections.
sub each_server ($cases) { each_variant($cases, ways() eq 'all') }

# Runs the cases against every server, with each way to accept connections that it has.
sub each_way_to_accept ($cases) { each_variant($cases, ways() ne 'first') }

sub ways () { return $ENV{TEST_WAYS} // 'marked' }

# The programs of the models in a folder: those beside their source. Others may have such a name, too, such as a server
# of the reader's own that docs/your-own-server.md builds.
sub model_programs ($folder) { return grep { -e "$_.c" } glob "$folder/*_server" }

# Runs the cases for each variant. If they die, that is a failed case, and the next variant is tested.
sub each_variant ($cases, $all_ways) {
    my @paths = split ' ', $ENV{TEST_SERVERS} // join ' ', model_programs($top);
    Test::More::BAIL_OUT('there is no server: run make first') if !@paths;
    for my $variant (map { variants(m{^/} ? $_ : "$top/$_", $all_ways) } @paths) {
        if (!$variant->{available}) {
            skip_case("$variant->{label} cannot run on this machine: it needs $variant->{needs}");
            next;
        }
        $model = $variant;
        eval { $cases->($model); 1 } or do {
            fail("all cases run: $@");
            diag("standard error of the server:\n" . slurp($_->filename)) for values %running;
        };
        for my $pid (keys %running) {
            kill KILL => -$pid;
            waitpid $pid, 0;
            delete $running{$pid};
        }
        $model = undef;
    }
}

sub copy_by_pages ($from, $to) {
    open my $in,  '<:raw', $from or die "$from: $!\n";
    open my $out, '>:raw', $to   or die "$to: $!\n";
    while (sysread $in, my $page, 4096) {
        defined syswrite $out, $page or die "$to: $!\n";
    }
    close $out or die "$to: $!\n";
}

# Returns a copy of the current model's program. Every user may start it: the folder of the project may be one that
# others cannot enter. It is written page by page, so that the kernel holds it in single pages: the page faults of a
# process depend on that.
sub program_copy () {
    state ($folder, %copies);
    $folder //= scratch();
    return $copies{ $model->{path} } //= do {
        my $copy = "$folder/" . basename($model->{path});
        copy_by_pages($model->{path}, $copy);
        chmod 0755, $copy;
        $copy;
    };
}

# Starts the current model's server and waits for its ready line. Its timeouts are longer than any test unless `options` sets
# them, so that a slow machine does not end connections.
#   root => DIRECTORY, options => [...], through => [COMMAND...] (prlimit and such), environment => {...},
#   path => another copy of the server, sandbox => 1 to keep the sandbox in sanitized builds,
#   forgiving => 1 to have forbidden system calls fail, as users have it, instead of ending the process, failure => 1 to get
#   nothing instead of a failed test
sub start_server (%how) {
    my @options = (@{ $model->{options} }, @{ $how{options} // [] });
    push @options, '--workers', $model->{workers} if $model->{workers} && !grep { $_ eq '--workers' } @options;
    my $is_proxy = grep { $_ eq 'proxy' } @options;
    for my $timeout (qw(--request-timeout --idle-timeout --write-timeout), $is_proxy ? '--origin-timeout' : ()) {
        push @options, $timeout, 600 if !grep { $_ eq $timeout } @options;
    }
    push @options, '--root', "$how{root}" if defined $how{root};
    my $is_root = $> == 0 && !grep { /^setpriv$/ } @{ $how{through} // [] };
    push @options, qw(--user root) if sanitized() && $is_root && !grep { $_ eq '--user' } @options;    # to look for leaks
    push @options, '--no-sandbox' if sanitized() && !$how{sandbox} && !grep { $_ eq '--no-sandbox' } @options;
    push @options, '--sandbox-kills' if !$how{forgiving} && !grep { $_ eq '--no-sandbox' } @options;
    my @command = (@{ $how{through} // [] }, wrapper(), $how{path} // $model->{path}, @options, $how{port} // 0);
    pipe my $out, my $out_end or die "pipe: $!\n";
    my $err = File::Temp->new;
    my $pid = spawn(\@command, $out_end, $err, $how{directory}, $how{environment} // {});
    close $out_end;
    my $self = bless { pid => $pid, out => $out, err => $err, command => "@command", printed => '' }, 'Harness::Server';
    my $end = now() + $PATIENCE;

    while ($self->{printed} !~ /\n/) {
        my $left = $end - now();
        my $got  = $left > 0 && IO::Select->new($out)->can_read($left) && sysread $out, $self->{printed}, 4096,
            length $self->{printed};
        next if $got;
        kill KILL => -$pid;
        waitpid $pid, 0;
        delete $running{$pid};
        return if $how{failure};
        die "@command does not get ready: " . slurp($err->filename) . "\n";
    }
    ($self->{ready}) = $self->{printed} =~ /^(.*)\n/;
    ($self->{url}, my $host, $self->{port}) = $self->{ready} =~ m{(https?://(\[[0-9a-fA-F:]+\]|[0-9.]+):(\d+)/)}
        or die "no URL in the ready line '$self->{ready}'\n";
    $self->{host} = $host =~ s/[\[\]]//gr;
    return $self;
}

# Starts a server that waits for its clients, when it stops, longer than any test takes, so that a slow machine loses no request.
sub patient_server ($root, %how) {
    return start_server(root => $root, %how, options => ['--stop-timeout', 3600, @{ $how{options} // [] }]);
}

# A case about what happens before a deadline of the server. A try returns the seconds that it took, and what is wrong. A try
# that took longer than the deadline does not count, because the machine was too slow; there are up to five.
sub within ($limit, $name, $try) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    for my $number (1 .. 5) {
        my ($seconds, @flaws) = $try->($number);
        next if @flaws && $seconds >= $limit && $number < 5;
        ok(!@flaws, $name) or diag(join "\n", "after $seconds seconds:", @flaws);
        return;
    }
}

# --- HTTP ----------------------------------------------------------------------------------------------------------

# Returns a request. Host is added unless it is given; undef leaves it out.
sub request ($method, $target, @fields) {
    my $version = 'HTTP/1.1';
    my $body    = '';
    my $text    = '';
    my $host    = 'localhost';
    while (my ($name, $value) = splice @fields, 0, 2) {
        if    ($name eq 'version') { $version = $value }
        elsif ($name eq 'body')    { $body    = $value }
        elsif ($name eq 'Host')    { $host    = $value }
        else                       { $text .= "$name: $value\r\n" }
    }
    $text = "Host: $host\r\n$text" if defined $host;
    return "$method $target $version\r\n$text\r\n$body";
}

my $token = qr/[!#\$%&'*+\-.^_`|~0-9A-Za-z]+/;

# Parses the response at the start of the text, a reference, since it may be long. Returns nothing if the response is not
# complete; if the connection has $ended, an incomplete one has a flaw instead. A response has version, status, reason, fields
# (lower-case name => list), body, size, and flaws (violations of the syntax).
sub parse_response ($text, $method = 'GET', $ended = 0) {
    my $head_end = index $$text, "\r\n\r\n";
    return if $head_end < 0;
    my @flaws;
    my ($status_line, @lines) = split /\r\n/, substr($$text, 0, $head_end), -1;
    my %response = (method => $method, fields => {}, flaws => \@flaws, body => '');
    if ($status_line =~ m{^(HTTP/1\.[01]) ([1-5]\d\d) ([\t\x20-\x7e]*)\z}) {
        @response{qw(version status reason)} = ($1, $2, $3);
    } else {
        push @flaws, "status line '$status_line'";
        $response{status} = 0;
    }
    for my $line (@lines) {
        if ($line =~ /^($token):[ \t]*([\t\x20-\x7e\x80-\xff]*)\z/) { push @{ $response{fields}{ lc $1 } }, $2 =~ s/[ \t]+\z//r }
        else                                                              { push @flaws, "field line '$line'" }
    }
    my $fields = $response{fields};
    for my $single (qw(content-length content-type date server etag last-modified location content-range)) {
        push @flaws, "more than one $single" if @{ $fields->{$single} // [] } > 1;
    }
    if ($response{status} >= 200) {
        push @flaws, 'no or wrong Date'
            if ($fields->{date} ? $fields->{date}[0] : '') !~ /^[A-Z][a-z]{2}, \d\d [A-Z][a-z]{2} \d{4} \d\d:\d\d:\d\d GMT\z/;
        push @flaws, 'no Server' if !$fields->{server};
    }
    push @flaws, 'both Content-Length and Transfer-Encoding'
        if $fields->{'content-length'} && $fields->{'transfer-encoding'};
    my $length = $fields->{'content-length'} ? $fields->{'content-length'}[0] : undef;
    push @flaws, "Content-Length '$length'" if defined $length && $length !~ /^\d+\z/;

    my $coding = $fields->{'transfer-encoding'} ? $fields->{'transfer-encoding'}[0] : '';
    my $from = $head_end + 4;
    if ($method eq 'HEAD' || $response{status} < 200 || $response{status} == 204 || $response{status} == 304) {
        push @flaws, "Content-Length in a $response{status}" if defined $length && $response{status} =~ /^(?:1\d\d|204)\z/;
        $response{size} = $from;
    } elsif (lc($coding) eq 'chunked') {
        my $position = $from;
        while (1) {
            pos($$text) = $position;
            $$text =~ /\G([0-9A-Fa-f]+)(?:;[^\r\n]*)?\r\n/gc or return;
            my $size = hex $1;
            $position = pos $$text;
            if ($size == 0) {
                $$text =~ /\G(?:[^\r\n]+\r\n)*\r\n/gc or return;
                $response{size} = pos $$text;
                last;
            }
            return if length $$text < $position + $size + 2;
            $response{body} .= substr $$text, $position, $size;
            $position += $size + 2;
        }
    } elsif (defined $length) {
        if (length($$text) < $from + $length) {
            return if !$ended;
            push @flaws, sprintf 'body ends after %d of %d bytes', length($$text) - $from, $length;
            $length = length($$text) - $from;
        }
        $response{body} = substr $$text, $from, $length;
        $response{size} = $from + $length;
    } else {
        return if !$ended;
        $response{body} = substr $$text, $from;
        $response{size} = length $$text;
    }
    return bless \%response, 'Harness::Response';
}

# Parses all responses of a connection that has ended. Bytes that are no response are a flaw of the last response.
sub parse_responses ($text, @methods) {
    my @responses;
    while (length $text) {
        my $method = $methods[0] // 'GET';
        my $response = parse_response(\$text, $method, 1);
        if (!$response) {
            my $start = substr $text, 0, 60;
            push @responses, bless { status => 0, fields => {}, flaws => [], body => $text, size => length $text },
                'Harness::Response'
                if !@responses;
            push @{ $responses[-1]{flaws} }, "bytes that are no response: '$start'";
            last;
        }
        shift @methods if $response->{status} >= 200;
        push @responses, $response;
        substr $text, 0, $response->{size}, '';
    }
    return @responses;
}

# Returns the parts of a multipart/byteranges body as [fields, content]. Dies if the body is malformed.
sub parse_parts ($response) {
    my ($boundary) = $response->field('Content-Type') =~ m{^multipart/byteranges; ?boundary="?([^"; ]{1,70})"?\z}
        or die 'Content-Type ' . $response->field('Content-Type') . "\n";
    my $text = "\r\n" . $response->{body} =~ s/^\r\n//r;
    my @parts;
    while ($text =~ s/^\r\n--\Q$boundary\E\r\n//) {
        $text =~ s/^((?:[^\r\n]+\r\n)+)\r\n// or die "a part has no head\n";
        my %fields;
        for my $line (split /\r\n/, $1) {
            $line =~ /^($token):[ \t]*(.*?)[ \t]*\z/ or die "part field '$line'\n";
            $fields{ lc $1 } = $2;
        }
        my ($first, $last) = ($fields{'content-range'} // '') =~ m{^bytes (\d+)-(\d+)/\d+\z}
            or die "a part has no Content-Range\n";
        my $size = $last - $first + 1;
        push @parts, [\%fields, substr $text, 0, $size, ''];
    }
    $text =~ /^\r\n--\Q$boundary\E--(?:\r\n)?\z/ or die "the multipart body does not end well: '" . substr($text, 0, 60) . "'\n";
    return @parts;
}

# --- A response -------------------------------------------------------------------------------------------------------

package Harness::Response;

sub field ($self, $name) { return ($self->{fields}{ lc $name } // [''])->[0] }
sub has   ($self, $name) { return exists $self->{fields}{ lc $name } }

# Returns true if the response says that the connection remains open.
sub persistent ($self) {
    my @options = map { split /[ \t]*,[ \t]*/ } @{ $self->{fields}{connection} // [] };
    return 0 if grep { lc eq 'close' } @options;
    return 1 if $self->{version} eq 'HTTP/1.1';
    return scalar grep { lc eq 'keep-alive' } @options;
}

# --- A server ------------------------------------------------------------------------------------------------------

package Harness::Server;

use POSIX qw(:sys_wait_h);

sub pid  ($self) { return $self->{pid} }
sub port ($self) { return $self->{port} }
sub url  ($self) { return $self->{url} }

# Returns what it has printed on standard error so far.
sub errors ($self) { return Harness::slurp($self->{err}->filename) }

sub alive ($self) {
    return 0 if exists $self->{status};
    return 1 if waitpid($self->{pid}, WNOHANG) == 0;
    $self->{status} = $?;
    return 0;
}

sub signal ($self, $name) { kill $name => $self->{pid} if $self->alive }

# Sends a signal and waits until the server has received it.
sub deliver ($self, $name) {
    $self->signal($name);
    return Harness::until_true(sub { !$self->pending_signals });
}

# Stops all processes of the server while the code runs. They see at once all that clients have done in that time.
sub paused ($self, $code) {
    kill STOP => -$self->{pid};
    Harness::until_true(sub { !grep { $_->[1] !~ /[TZ]/ } Harness::group_processes($self->{pid}) });
    $code->();
    kill CONT => -$self->{pid};
}

# Returns true while a signal that was sent is pending.
sub pending_signals ($self) {
    my $status = eval { Harness::slurp("/proc/$self->{pid}/status") } // '';
    return scalar grep { hex } $status =~ /^(?:SigPnd|ShdPnd):\s*([0-9a-f]+)$/mg;
}

# Returns what the kernel knows of the server's end of a connection, as TcpState tells it.
sub end_of ($self, $connection) { return TcpState::of($self->{port}, $connection->{socket}->sockport) }

# Returns true if the server has read all bytes of a connection that has sent some.
sub has_read ($self, $connection) {
    my $end = $self->end_of($connection);
    return $end && $end->{unread} == 0;
}

# Connects to the server, with options of IO::Socket::IP. Dies if the connection is refused.
sub connect ($self, %options) {
    return Harness::Connection->new(PeerHost => $self->{host}, PeerPort => $self->{port}, %options);
}

# Sends the bytes on a new connection, reads until the server ends it, and returns the responses.
sub exchange ($self, $bytes, @methods) {
    my $connection = $self->connect;
    my $answer     = $connection->converse($bytes);
    my @responses    = Harness::parse_responses($answer, @methods);
    for my $response (@responses) {
        Harness::fail('the response is well-formed: ' . join '; ', @{ $response->{flaws} }) if @{ $response->{flaws} };
    }
    # After its last response a server reads for $LINGER seconds. A client that still sends then gets a reset.
    Harness::fail("the server ends the connection cleanly: $connection->{failure}")
        if $connection->{failure} && $connection->{since_silence} < $Harness::LINGER;
    return wantarray ? @responses : $responses[0] // $Harness::nothing;
}

# Sends a datagram to the server from a new port, with options of IO::Socket::IP.
sub datagram ($self, $bytes, %options) {
    return Harness::Datagram->new($bytes, PeerHost => $self->{host}, PeerPort => $self->{port}, %options);
}

# Sends a request in a datagram and returns the response.
sub ask_udp ($self, $bytes, $method = 'GET', %options) { return $self->datagram($bytes, %options)->response($method) }

sub get ($self, $target, @fields) {
    return scalar $self->exchange(Harness::request('GET', $target, @fields, Connection => 'close'));
}

sub head ($self, $target, @fields) {
    return scalar $self->exchange(Harness::request('HEAD', $target, @fields, Connection => 'close'), 'HEAD');
}

# Waits until the process has ended. Returns its wait status; nothing if it does not end.
sub wait_exit ($self) {
    Harness::until_true(sub { !$self->alive }) or return;
    delete $running{ $self->{pid} };
    $self->{left} = !Harness::until_true(sub { !grep { $_->[1] ne 'Z' } Harness::group_processes($self->{pid}) });
    kill KILL => -$self->{pid} if $self->{left};
    my $more;
    $self->{out}->blocking(0);
    $self->{printed} .= $more while sysread $self->{out}, $more, 65536;
    return $self->{status};
}

# Stops the server by a signal. One case tests that it ends with status 0, prints the summary and nothing else on standard error
# (except lines that match `warnings`), and leaves no process behind.
sub stop ($self, %how) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    $self->signal($how{signal} // 'TERM');
    return $self->ended(%how);
}

sub ended ($self, %how) {
    local $Test::Builder::Level = $Test::Builder::Level + 1;
    my $status = $self->wait_exit;
    my @flaws;
    if (!defined $status) {
        push @flaws, 'it does not stop';
        kill KILL => -$self->{pid};
        waitpid $self->{pid}, 0;
        delete $running{ $self->{pid} };
    } else {
        push @flaws, 'it ends with status ' . ($status >> 8) . ' and signal ' . ($status & 127) if $status != 0;
    }
    my @lines = split /\n/, Harness::without_notice($self->errors);
    $self->{summary} = pop @lines // '';
    @lines = grep { $_ !~ $how{warnings} } @lines if $how{warnings};
    push @flaws, "no summary but '$self->{summary}'" if $self->{summary} !~ /connections?.*requests?.*CPU/;
    push @flaws, 'standard error holds more than the summary:', @lines if @lines;
    push @flaws, 'it leaves processes behind'                              if $self->{left};
    Harness::ok(!@flaws, $how{name} // 'stops: status 0, a summary, nothing left behind') or Harness::diag(join "\n", @flaws);
    return $self->{summary};
}

# Kills a server that is not expected to stop without errors.
sub discard ($self) {
    kill KILL => -$self->{pid};
    waitpid $self->{pid}, 0 if !exists $self->{status};
    delete $running{ $self->{pid} };
}

# --- A connection --------------------------------------------------------------------------------------------------

package Harness::Connection;

use Errno  qw(EAGAIN EINTR EWOULDBLOCK);
use Socket qw(SHUT_WR);

sub new ($class, %options) {
    my $socket = IO::Socket::IP->new(Timeout => $Harness::PATIENCE, %options)
        or die "connect to $options{PeerHost} port $options{PeerPort}: $@\n";
    $socket->blocking(0);
    $socket->setsockopt(Socket::IPPROTO_TCP(), Socket::TCP_NODELAY(), 1);
    return bless { socket => $socket, buffer => '', ended => 0 }, $class;
}

sub close   ($self) { CORE::close $self->{socket} }
sub finish  ($self) { shutdown $self->{socket}, SHUT_WR }
sub pending ($self) { return $self->{buffer} }

# Sends all bytes. Returns false if the server has closed the connection or stops reading.
sub send ($self, $bytes) {
    my $sent = 0;
    my $end  = Harness::now() + $Harness::PATIENCE;
    while ($sent < length $bytes) {
        my $count = syswrite $self->{socket}, $bytes, length($bytes) - $sent, $sent;
        if (defined $count)                        { $sent += $count }
        elsif ($! == EINTR)                        { next }
        elsif ($! != EAGAIN && $! != EWOULDBLOCK)  { return 0 }
        else {
            my $left = $end - Harness::now();
            return 0 if $left <= 0;
            IO::Select->new($self->{socket})->can_write($left);
        }
    }
    return 1;
}

# Reads what comes within so many seconds. Returns false if nothing came. The end of the connection sets `ended`.
sub fill ($self, $seconds) {
    return 0 if $self->{ended};
    IO::Select->new($self->{socket})->can_read($seconds) or return 0;
    my $count = sysread $self->{socket}, $self->{buffer}, 262144, length $self->{buffer};
    return $count if $count;
    return 1      if !defined $count && ($! == EAGAIN || $! == EINTR);
    $self->{ended}   = 1;
    $self->{failure} = "$!" if !defined $count;
    return 1;
}

# Returns the next response; an empty one with status 0 if the connection ends before it.
sub response ($self, $method = 'GET') {
    my $end    = Harness::now() + $Harness::PATIENCE;
    my $needed = 0;
    while (1) {
        my $enough = length $self->{buffer} >= $needed || $self->{ended};
        my $response = $enough ? Harness::parse_response(\$self->{buffer}, $method, $self->{ended}) : undef;
        if ($response) {
            substr $self->{buffer}, 0, $response->{size}, '';
            Harness::fail('the response is well-formed: ' . join '; ', @{ $response->{flaws} }) if @{ $response->{flaws} };
            return $response;
        }
        my $left = $end - Harness::now();
        last if $self->{ended} || $left <= 0;
        # Do not parse a long body again before it can be whole.
        $needed = $+[0] + $1 if !$needed && $self->{buffer} =~ /\A(?s:.*?)\r\nContent-Length: (\d+)\r\n(?s:.*?)\r\n\r\n/;
        $self->fill($left);
    }
    return $Harness::nothing;
}

# Reads until what has come matches the pattern, or the connection ends. Returns all of it.
sub read_until ($self, $pattern) {
    1 while $self->{buffer} !~ $pattern && !$self->{ended} && $self->fill($Harness::PATIENCE);
    return substr $self->{buffer}, 0, length $self->{buffer}, '';
}

# Sends a request and returns its response.
sub ask ($self, $bytes, $method = 'GET') {
    $self->send($bytes);
    return $self->response($method);
}

# Waits for the end of the connection. Returns true if it comes without another byte, and not by a reset.
sub ends ($self) {
    $self->drain;
    return $self->{ended} && !$self->{failure} && $self->{buffer} eq '';
}

# Returns true if the server has not ended the connection yet.
sub open ($self) {
    $self->fill(0);
    return !$self->{ended};
}

# Reads until the end of the connection. Returns all unread bytes.
sub drain ($self) {
    my $end = Harness::now() + $Harness::PATIENCE;
    while (!$self->{ended}) {
        my $left = $end - Harness::now();
        last if $left <= 0;
        $self->fill($left);
    }
    return $self->{buffer};
}

# Sends and reads at the same time, until the server ends the connection.
sub converse ($self, $bytes) {
    my $end      = Harness::now() + $Harness::PATIENCE;
    my $selector = IO::Select->new($self->{socket});
    my $silent   = Harness::now();    # the last time when no byte had come
    while (!$self->{ended}) {
        $silent = Harness::now() if $self->{buffer} eq '';
        my $left = $end - Harness::now();
        if ($left <= 0) {
            $self->{failure} = 'it does not end';
            last;
        }
        my ($readable, $writable) =
            IO::Select->select($selector, length $bytes ? $selector : undef, undef, $left);
        if (@{ $writable // [] }) {
            my $count = syswrite $self->{socket}, $bytes, 262144;
            if    (defined $count)                    { substr $bytes, 0, $count, '' }
            elsif ($! != EAGAIN && $! != EINTR)       { $bytes = '' }
        }
        $self->fill(0) if @{ $readable // [] };
    }
    $self->{since_silence} = Harness::now() - $silent;
    return $self->{buffer};
}

# --- A datagram ----------------------------------------------------------------------------------------------------

package Harness::Datagram;

sub new ($class, $bytes, %options) {
    my $socket = IO::Socket::IP->new(Proto => 'udp', Type => Socket::SOCK_DGRAM(), %options)
        or die "UDP to $options{PeerHost} port $options{PeerPort}: $@\n";
    defined send $socket, $bytes, 0 or die "send to $options{PeerHost}: $!\n";
    return bless { socket => $socket }, $class;
}

# Returns the bytes of the next datagram; undef if none comes within so many seconds.
sub receive ($self, $seconds = $Harness::PATIENCE) {
    IO::Select->new($self->{socket})->can_read($seconds) or return undef;
    my $bytes = '';
    defined recv $self->{socket}, $bytes, 70_000, 0 or return undef;
    return $bytes;
}

# Returns the response in the next datagram, which must contain nothing else; an empty one with status 0 if none comes.
sub response ($self, $method = 'GET') {
    my $bytes = $self->receive // return $Harness::nothing;
    my ($response, @more) = Harness::parse_responses($bytes, $method);
    Harness::fail('a datagram has one response, and not ' . (1 + @more)) if @more;
    # The shortest responses are a status line and a length.
    my @flaws = $bytes =~ /\A[^\r]*\r\n(?:Accept-Ranges: bytes\r\n)?Content-Length: 0\r\n\r\n\z/ ? () : @{ $response->{flaws} };
    Harness::fail('the response is well-formed: ' . join '; ', @flaws) if @flaws;
    $response->{whole} = length $bytes;
    return $response;
}

$Harness::nothing = bless { status => 0, version => '', reason => '', fields => {}, flaws => [], body => '', size => 0 },
    'Harness::Response';

1;

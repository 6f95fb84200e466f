#!/usr/bin/perl
# The order of changes and requests: a client that changes a document and asks for it at once gets no document that was replaced,
# from no model, however the document changed; and where the kernel does not tell of changes, or tells too many.
#
# TEST_CHANGES=100000 makes so many changes for each model.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $CHANGES = $ENV{TEST_CHANGES} // (sanitized() ? 240 : 720);
# inotify keeps so many events for a process that does not read them.
my $QUEUE = eval { 0 + slurp('/proc/sys/fs/inotify/max_queued_events') } // 16_384;
# A user whom the rights of a file concern. Root may read all.
my @user = $> == 0 && getpwnam('nobody') ? (qw(--user nobody)) : ();
my $has_rights = $> != 0 || @user;

# Writes to a file without making it shorter or longer first.
sub overwrite ($path, $content) {
    open my $file, '+<', $path or die "$path: $!";
    syswrite $file, $content;
}

sub replace ($from, $to) { rename $from, $to or die "rename $from: $!" }

# Exchanges a directory and the one whose name ends in .other. No file in them changes.
sub swap ($path) {
    replace($path, "$path.spare");
    replace("$path.other", $path);
    replace("$path.spare", "$path.other");
}

# Puts what is in a directory into a new one of the same name.
sub wrap_anew ($path) {
    replace($path, "$path.spare");
    mkdir $path;
    replace("$path.spare/in", "$path/in");
    rmdir "$path.spare";
}

# The kinds of change: name, target, function. The function gets the root and a new number, makes the change, and
# returns the response that the target must get from then on: a body, or a status. All numbers have equally many digits.
my @kinds = (
    ['write', '/write.txt', sub ($root, $new) { overwrite("$root/write.txt", $new); $new }],
    ['truncate and write', '/truncate.txt', sub ($root, $new) { spit("$root/truncate.txt", $new); $new }],
    ['truncate', '/short.txt', sub ($root, $new) {
        my $length = $new % 7;
        overwrite("$root/short.txt", 'x' x 7);
        truncate "$root/short.txt", $length or die "truncate: $!";
        'x' x $length;
    }],
    ['rename over', '/deep/er/renamed.txt', sub ($root, $new) {
        spit("$root/.next", $new);
        replace("$root/.next", "$root/deep/er/renamed.txt");
        $new;
    }],
    ['another directory above', '/above/in/file.txt', sub ($root, $new) { swap("$root/above"); slurp("$root/above/in/file.txt") }],
    # In turns, the directory above the file is a new one with the same file, and that directory is exchanged for
    # another.
    ['a new directory above', '/moves/in/file.txt', sub ($root, $new) {
        $new % 2 ? wrap_anew("$root/moves") : swap("$root/moves");
        slurp("$root/moves/in/file.txt");
    }],
    ['a symbolic link instead of the file', '/link.txt', sub ($root, $new) {
        spit("$root/" . ($new % 2 ? 'odd' : 'even'), $new);
        symlink $new % 2 ? 'odd' : 'even', "$root/.link";
        replace("$root/.link", "$root/link.txt");
        $new;
    }],
    ['a symbolic link instead of a directory', '/current/file.txt', sub ($root, $new) {
        my $target = $new % 2 ? 'one' : 'two';
        spit("$root/$target/file.txt", $new);
        symlink $target, "$root/.current";
        replace("$root/.current", "$root/current");
        $new;
    }],
    $has_rights ? (
        ['chmod', '/rights.txt', sub ($root, $new) {
            chmod $new % 2 ? 0 : 0644, "$root/rights.txt";
            $new % 2 ? 403 : 'rights';
        }],
        ['chmod of a directory', '/locked/in/file.txt', sub ($root, $new) {
            chmod $new % 2 ? 0 : 0755, "$root/locked";
            $new % 2 ? 403 : 'locked';
        }],
    ) : (),
    ['delete', '/comes.txt', sub ($root, $new) {
        if ($new % 2) { unlink "$root/comes.txt"; return 404 }
        spit("$root/comes.txt", $new);
        $new;
    }],
    ['a second name', '/linked.txt', sub ($root, $new) {
        overwrite("$root/elsewhere/linked.txt", $new);
        $new;
    }],
);

sub documents () {
    my $root = tree(
        (map { ("$_.txt" => 'first') } qw(write truncate short link rights comes linked)),
        (map { ("$_/file.txt" => $_) } qw(above/in above.other/in moves/in moves.other/in one two locked/in)),
        'deep/er/renamed.txt' => 'first', 'elsewhere/.keep' => '', current => \'one',
    );
    spit("$root/rights.txt", 'rights');
    spit("$root/locked/in/file.txt", 'locked');
    link "$root/linked.txt", "$root/elsewhere/linked.txt" or die "link: $!";
    return $root;
}

# Makes changes of all kinds in turn, and asks after each. Returns those that were not seen.
sub flaws ($server, $root, $changes, @kinds) {
    my $connection = $server->connect;
    my @flaws;
    for my $change (1 .. $changes) {
        my ($name, $target, $make) = @{ $kinds[ $change % @kinds ] };
        # The old file is asked for as well, so that the server may hold it.
        $connection->ask(request(GET => $target));
        my $expected = $make->($root, 1_000_000 + int($change / @kinds));
        my $response = $connection->ask(request(GET => $target));
        my $got      = $response->{status} == 200 ? $response->{body} : $response->{status};
        push @flaws, "$name (change $change): $got instead of $expected" if $got ne $expected;
        $connection = $server->connect if !$response->persistent;
    }
    $connection->close;
    return @flaws;
}

sub check ($server, $root, $changes, $name, @kinds) {
    my @flaws = flaws($server, $root, $changes, @kinds);
    ok !@flaws, "$name: each request after a change sees it" or diag(join "\n", @flaws > 10 ? (@flaws[0 .. 9], scalar @flaws) : @flaws);
}

# While a server is stopped, more changes come than the kernel keeps. They alternate between two files: equal ones would
# count once.
sub test_overflow () {
    my $root    = documents();
    my $server  = start_server(root => $root, options => [qw(--workers 1), @user]);
    my $clients = $server->connect;
    for my $file (qw(write.txt truncate.txt moves/in/file.txt)) { $clients->ask(request(GET => "/$file")) for 1 .. 2 }
    $server->paused(sub {
        open my $one, '+<', "$root/write.txt"    or die "write.txt: $!";
        open my $two, '+<', "$root/truncate.txt" or die "truncate.txt: $!";
        for (1 .. $QUEUE) { sysseek $_, 0, 0 and syswrite $_, '12345' for $one, $two }
        replace("$root/write.txt", "$root/.gone");
        spit("$root/write.txt", 'new');
        wrap_anew("$root/moves");
    });
    is $clients->ask(request(GET => '/truncate.txt'))->{body}, '12345', 'more changes than the kernel keeps: a file is served as it is';
    is $clients->ask(request(GET => '/write.txt'))->{body},    'new',   'more changes than the kernel keeps: its successor is served';
    is $clients->ask(request(GET => '/moves/in/file.txt'))->{body}, 'moves/in', 'more changes than the kernel keeps: a file in a new directory is served';
    swap("$root/moves");
    is $clients->ask(request(GET => '/moves/in/file.txt'))->{body}, 'moves.other/in', 'more changes than the kernel keeps: that directory is watched';
    check($server, $root, 100, 'after more changes than the kernel keeps', @kinds);
    $clients->close;
    $server->stop;
}

# More directories than are watched at the same time.
sub test_many () {
    my $root = tree(map { ("many/$_/file.txt" => "first\n") } 1 .. 1100);
    my $server = start_server(root => $root);
    my $connection = $server->connect;
    my @wrong;
    for my $round (1 .. 2) {
        for my $number (1 .. 1100) {
            push @wrong, $number if $connection->ask(request(GET => "/many/$number/file.txt"))->{body} !~ /first/;
            next if $number % 10;
            spit("$root/many/$number/file.txt", "round $round\n");
            push @wrong, $number if $connection->ask(request(GET => "/many/$number/file.txt"))->{body} ne "round $round\n";
            spit("$root/many/$number/file.txt", "first\n");
        }
    }
    is "@wrong", '', 'more directories than a process watches: each request after a change sees it';
    my $watches = 0;
    for my $process (serving_processes($server->pid)) {
        for my $file (glob "/proc/$process->[0]/fdinfo/*") { $watches += () = (eval { slurp($file) } // '') =~ /^inotify wd:/mg }
    }
    cmp_ok $watches, '<=', 1025 * (model()->{workers} ? 8 : 1), 'more directories than a process watches: the watches are bounded';
    $connection->close;
    $server->stop;
}

each_server(sub ($model) {
    my $root   = documents();
    my $server = start_server(root => $root, options => \@user);
    check($server, $root, $CHANGES, "$CHANGES changes", @kinds);
    $server->stop;
    test_many() if !$model->{each};    # others hold documents for one client only
    test_overflow() if $model->{workers} && !$model->{limited};

    # The upper layer of an overlay does not tell what changes in the lower one.
    my ($lower, $upper, $merged) = (documents(), scratch(), scratch());
    mkdir "$upper/$_" for qw(upper work);
    my $mount = "mount -t overlay overlay -o lowerdir=$lower,upperdir=$upper/upper,workdir=$upper/work $merged";
    if ($> != 0 || sanitized() || run_command('unshare', '-m', 'sh', '-c', $mount)->{status}) {
        skip_case('there is no overlay to be had');
    } else {
        $server = start_server(root => $merged, options => [qw(--no-sandbox)], through => ['unshare', '-m', 'sh', '-c', "$mount && exec \"\$@\"", 'sh']);
        check($server, $lower, 50, 'a directory below an overlay', grep { $_->[0] eq 'write' } @kinds);
        $server->stop(warnings => qr/./);
    }
});

done_testing;

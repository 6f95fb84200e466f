#!/usr/bin/perl
# The file cache: files that have not changed for some seconds may be held in memory, and each later change shows at once.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Waits until the last change of each file is more than some seconds ago, by the clock of any file system.
sub settle ($root, @names) {
    until_true(sub {
        my @young = grep { my @status = stat "$root/$_"; $status[10] + 4 > time } @names;
        return !@young;
    });
}

# Each way to change a file: what it does, and the status and body afterwards.
my @changes = (
    ['rewritten in place, the same length and date' => sub ($root, $name) {
        my @before = stat "$root/$name";
        spit("$root/$name", 'B' x 1000);
        utime $before[8], $before[9], "$root/$name" or die "utime: $!";
    }, 200, 'B' x 1000],
    ['replaced by rename' => sub ($root, $name) {
        spit("$root/.next", 'C' x 700);
        rename "$root/.next", "$root/$name" or die "rename: $!";
    }, 200, 'C' x 700],
    ['replaced by an older file of the same length' => sub ($root, $name) {
        spit("$root/.next", 'D' x 1000);
        utime 1, 1_000_000_000, "$root/.next" or die "utime: $!";
        rename "$root/.next", "$root/$name" or die "rename: $!";
    }, 200, 'D' x 1000],
    ['emptied' => sub ($root, $name) { truncate "$root/$name", 0 or die "truncate: $!" }, 200, ''],
    ['grown' => sub ($root, $name) { spit("$root/$name", 'E' x 40_000) }, 200, 'E' x 40_000],
    ['removed' => sub ($root, $name) { unlink "$root/$name" or die "unlink: $!" }, 404],
    ['turned into a directory' => sub ($root, $name) {
        unlink "$root/$name" or die "unlink: $!";
        mkdir "$root/$name" or die "mkdir: $!";
    }, 301],
    ['turned into a FIFO' => sub ($root, $name) {
        unlink "$root/$name" or die "unlink: $!";
        POSIX::mkfifo("$root/$name", 0644) or die "mkfifo: $!";
    }, 403],
    ['turned into a link within the root' => sub ($root, $name) {
        unlink "$root/$name" or die "unlink: $!";
        symlink 'other.txt', "$root/$name" or die "symlink: $!";
    }, 200, 'other'],
    ['turned into a link that leaves the root' => sub ($root, $name) {
        unlink "$root/$name" or die "unlink: $!";
        symlink '/etc/hostname', "$root/$name" or die "symlink: $!";
    }, '403 or 404'],
    ['moved out of the root, a link left behind' => sub ($root, $name) {
        my $outside = scratch();
        rename "$root/$name", "$outside/$name" or die "rename: $!";
        symlink "$outside/$name", "$root/$name" or die "symlink: $!";
    }, '403 or 404'],
);

# Writes to a file by io_submit. Returns false where that is impossible.
sub submit_write ($path, $content) {
    my ($setup, $destroy, $events, $submit) = (206, 207, 208, 209);
    my ($context, $event) = (pack('Q', 0), "\0" x 32);
    open my $file, '+<', $path or die "$path: $!";
    return 0 if (POSIX::uname())[4] ne 'x86_64' || syscall($setup, 1, $context) != 0;
    my $number = unpack 'Q', $context;
    my $operation = pack 'QLLSsLPQqQLL', 0, 0, 0, 1, 0, fileno $file, $content, length $content, 0, 0, 0, 0;
    my $written = syscall($submit, $number, 1, pack('P', $operation)) == 1 && syscall($events, $number, 1, 1, $event, 0) == 1;
    syscall $destroy, $number;
    return $written;
}

each_server(sub ($model) {
    my @names = map { "file$_.txt" } 0 .. $#changes;
    my $root = tree('other.txt' => 'other', 'folder/index.html' => 'index', map { $_ => 'A' x 1000 } @names);
    settle($root, 'other.txt', 'folder/index.html', @names);
    my $server = start_server(root => $root);

    for my $index (0 .. $#changes) {
        my ($what, $change, $status, $body) = $changes[$index]->@*;
        my $name = $names[$index];
        my @etags = map { my $response = $server->get("/$name"); is $response->{body}, 'A' x 1000, "$name is served before it changes"; $response->field('ETag') } 1 .. 3;
        is $etags[2], $etags[0], "$name has the same ETag each time";
        $change->($root, $name);
        for my $time (1 .. 2) {
            my $response = $server->get("/$name");
            like $response->{status}, qr/^(?:@{[ $status =~ s{ or }{|}r ]})$/, "a file that is $what gets $status";
            next unless defined $body;
            ok $response->{body} eq $body, "a file that is $what is served with its new content";
            is $response->field('Content-Length'), length $body, "a file that is $what is served with its new length";
            isnt $response->field('ETag'), $etags[0], "a file that is $what gets another ETag";
        }
    }

    # Ranges, conditions and HEAD for a file in the cache
    is $server->get('/other.txt', Range => 'bytes=1-2')->{body}, 'th', 'a range of a file in the cache' for 1 .. 2;
    my $response = $server->get('/other.txt');
    is $server->get('/other.txt', 'If-None-Match' => $response->field('ETag'))->{status}, 304, 'If-None-Match for a file in the cache gets 304';
    is $server->head('/other.txt')->field('Content-Length'), 5, 'HEAD of a file in the cache gives its length';
    is $server->get('/folder/')->{body}, 'index', 'index.html in the cache is served for its directory' for 1 .. 2;
    is $server->get('/folder/index.html')->{body}, 'index', 'index.html in the cache is served by its name';

    # inotify tells neither of a submitted write (libaio) nor of one through a mapping: in each second in which a client
    # asks for a document, the server reads it again.
    $server->get('/other.txt') for 1 .. 3;
    if (submit_write("$root/other.txt", 'OTHER')) {
        ok scalar until_true(sub { $server->get('/other.txt')->{body} eq 'OTHER' }), 'a submitted write, of which the kernel does not tell, is seen';
    } else {
        skip_case('no write can be submitted here');
    }

    if ($> != 0) {
        chmod 0, "$root/other.txt" or die "chmod: $!";
        is $server->get('/other.txt')->{status}, 403, 'a file in the cache that the server may no longer read is refused with 403';
        chmod 0755, "$root/other.txt";
    }
    $server->stop;
});
done_testing();

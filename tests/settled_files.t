#!/usr/bin/perl
# Files that have not changed for a while may be kept in memory; each later change must show at once.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Until no clock of a file system takes the files' last change for now.
sub settle ($root, @names) {
    until_true(sub {
        my @young = grep { my @status = stat "$root/$_"; $status[10] + 4 > time } @names;
        return !@young;
    });
}

# What a way of changing a file does, and what is to be seen then.
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

each_server(sub ($model) {
    my @names = map { "file$_.txt" } 0 .. $#changes;
    my $root = tree('other.txt' => 'other', 'folder/index.html' => 'index', map { $_ => 'A' x 1000 } @names);
    settle($root, 'other.txt', 'folder/index.html', @names);
    my $server = start_server(root => $root);

    for my $index (0 .. $#changes) {
        my ($what, $change, $status, $body) = $changes[$index]->@*;
        my $name = $names[$index];
        my @etags = map { my $response = $server->get("/$name"); is $response->{body}, 'A' x 1000, "$name as it was"; $response->field('ETag') } 1 .. 3;
        is $etags[2], $etags[0], 'with the same ETag each time';
        $change->($root, $name);
        for my $time (1 .. 2) {
            my $response = $server->get("/$name");
            like $response->{status}, qr/^(?:@{[ $status =~ s{ or }{|}r ]})$/, "$what: $status";
            next unless defined $body;
            ok $response->{body} eq $body, "$what: its content";
            is $response->field('Content-Length'), length $body, "$what: its length";
            isnt $response->field('ETag'), $etags[0], "$what: another ETag";
        }
    }

    # Ranges, conditions and HEAD of what is in memory
    is $server->get('/other.txt', Range => 'bytes=1-2')->{body}, 'th', 'a range' for 1 .. 2;
    my $response = $server->get('/other.txt');
    is $server->get('/other.txt', 'If-None-Match' => $response->field('ETag'))->{status}, 304, 'a condition';
    is $server->head('/other.txt')->field('Content-Length'), 5, 'HEAD';
    is $server->get('/folder/')->{body}, 'index', 'an index' for 1 .. 2;
    is $server->get('/folder/index.html')->{body}, 'index', 'and by its own name';

    if ($> != 0) {
        chmod 0, "$root/other.txt" or die "chmod: $!";
        is $server->get('/other.txt')->{status}, 403, 'one that may not be read any more';
        chmod 0755, "$root/other.txt";
    }
    $server->stop;
});
done_testing();

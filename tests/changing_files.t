#!/usr/bin/perl
# Files that change while they are served: a replaced file is served whole, old or new; a file that shrinks ends the connection.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $big = 16 * 1024 * 1024;    # more than the kernel takes of a response that nobody reads

# The file cache takes only files that have not changed for some seconds. These become old enough while the first cases run.
my $above = tree(
    'secret.txt' => "secret\n",
    map {
        my $root = "root$_";
        map({ ("$root/$_.txt" => "first\n") } qw(same-size same-time replaced link-out gone locked folder)),
            ("$root/dir/file.txt" => "first\n", "$root/other/file.txt" => "second\n", "$root/dots/file.txt" => "first\n",
            "$root/current" => \'dir', "$root/site/index.html" => "first\n")
    } 0 .. 19
);
my $made = now();
my $next_root = 0;

# Changes files that the server has served before, so that its file cache may hold them.
sub change_cached_files () {
    my $root = "$above/root" . $next_root++;
    my $server = start_server(root => $root, options => ['--list', $> == 0 && getpwnam('nobody') ? (qw(--user nobody)) : ()]);
    until_true(sub { now() - $made > 5 });
    my @targets = map { "/$_" } qw(same-size.txt same-time.txt replaced.txt link-out.txt gone.txt locked.txt folder.txt dir/file.txt
        dots/file.txt current/file.txt site/);
    for my $round (1 .. 3) {
        is join('', map { $server->get($_)->{body} } @targets), "first\n" x @targets, "round $round: each file is served before it changes";
    }
    my %etag = map { $_ => $server->get($_)->field('ETag') } @targets;

    my @times = (stat "$root/same-time.txt")[8, 9];
    spit("$root/same-size.txt", "other\n");
    spit("$root/same-time.txt", "other\n");
    utime @times, "$root/same-time.txt";
    spit("$root/.new", "a longer one\n");
    rename "$root/.new", "$root/replaced.txt";
    unlink "$root/link-out.txt", "$root/gone.txt", "$root/folder.txt", "$root/current";
    symlink '../secret.txt', "$root/link-out.txt";
    symlink 'other', "$root/current";
    mkdir "$root/folder.txt";
    chmod 0, "$root/locked.txt";
    rename "$root/dots", "$root/.dots";
    rename "$root/dir", "$above/moved-out-" . $next_root;
    symlink '../moved-out-' . $next_root, "$root/dir";
    spit("$root/site/index.html", "other\n");

    is $server->get('/same-size.txt')->{body}, "other\n", 'file cache: new content of the same size is served';
    is $server->get('/same-time.txt')->{body}, "other\n", 'file cache: new content of the same size and modification time is served';
    isnt $server->get('/same-size.txt')->field('ETag'), $etag{'/same-size.txt'}, 'file cache: new content has a new ETag';
    is $server->get('/replaced.txt')->{body}, "a longer one\n", 'file cache: a file that replaced another by rename is served';
    like $server->get('/link-out.txt')->{status}, qr/^40[34]$/, 'file cache: a link out of the root that replaced a file is refused';
    is $server->get('/gone.txt')->{status}, 404, 'file cache: a removed file is not found';
    is $server->get('/folder.txt')->{status}, 301, 'file cache: a directory that replaced a file gets a redirect';
    is $server->get('/locked.txt')->{status}, 403, 'file cache: a file that the server may no longer read is refused'
        if $> != 0 || getpwnam 'nobody';
    is $server->get('/dots/file.txt')->{status}, 404, 'file cache: a file whose directory was hidden is not found';
    is $server->get('/current/file.txt')->{body}, "second\n", 'file cache: a link to another directory now leads there';
    like $server->get('/dir/file.txt')->{status}, qr/^40[34]$/, 'file cache: a file whose directory became a link out of the root is refused';
    is $server->get('/site/')->{body}, "other\n", 'file cache: a new index.html is served';
    $server->stop;
}

each_server(sub ($model) {
    my $root = tree('file.txt' => 'a' x 20_000, 'sparse.bin' => '', 'grows.bin' => 'g' x 1000);
    truncate "$root/sparse.bin", $big or die "truncate: $!";
    my $server = start_server(root => $root, options => [qw(--write-timeout 20)]);

    # A replacement by rename, under load
    my $version = 0;
    my @letters = ('a' .. 'z');
    my (%seen, @torn);
    for my $round (1 .. 400) {
        $version = $round % 26;
        my $length = 20_000 + 137 * $version;
        spit("$root/.next", $letters[$version] x $length);
        my $connection = $server->connect;
        $connection->send(request(GET => '/file.txt', Connection => 'close'));
        rename "$root/.next", "$root/file.txt" or die "rename: $!";
        my $response = $connection->response;
        my $letter = substr $response->{body}, 0, 1;
        $seen{ $letter eq $letters[$version] ? 'new' : 'old' }++;
        my ($index) = grep { $letters[$_] eq $letter } 0 .. 25;
        my $right = $response->{body} eq $letter x (20_000 + 137 * $index) || ($round <= 2 && $response->{body} eq 'a' x 20_000);
        push @torn, $round if $response->{status} != 200 || !$right;
    }
    is "@torn", '', '400 replacements by rename: each response is the whole old file or the whole new one';
    is $server->get('/file.txt')->{body}, $letters[$version] x (20_000 + 137 * $version), '400 replacements by rename: the last file is served afterwards';

    # A file that shrinks while it is sent
    my $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin') . request(GET => '/file.txt'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    my ($announced) = $connection->pending =~ /^Content-Length: (\d+)/m;
    is $announced, $big, 'a file that shrinks: Content-Length is its size at the start';
    truncate "$root/sparse.bin", 1000 or die "truncate: $!";
    $connection->drain;
    ok $connection->{ended}, 'a file that shrinks: the connection ends';
    cmp_ok length($connection->pending), '<', $big, 'a file that shrinks: fewer bytes come than Content-Length says';
    my $came = $connection->pending =~ s/\A.*?\r\n\r\n//sr;
    unlike $came, qr{HTTP/1\.1}, 'a file that shrinks: the next response does not take the place of the missing bytes';
    is $server->get('/sparse.bin')->field('Content-Length'), 1000, 'a file that has shrunk is served with its new size';
    is $server->get('/file.txt')->{status}, 200, 'after a file has shrunk, the server serves other files';

    # A file that grows while it is sent
    truncate "$root/sparse.bin", $big or die "truncate: $!";
    $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin') . request(GET => '/grows.bin', Connection => 'close'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    truncate "$root/sparse.bin", 2 * $big or die "truncate: $!";
    my $response = $connection->response;
    is length $response->{body}, $big, 'a file that grows: as many bytes come as Content-Length says';
    is $connection->response->{body}, 'g' x 1000, 'a file that grows: the next response follows';
    $connection->close;

    # A file that is removed while it is sent
    $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin', Connection => 'close'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    unlink "$root/sparse.bin" or die "unlink: $!";
    is length $connection->response->{body}, 2 * $big, 'a file that is removed while it is sent arrives whole';
    is $server->get('/sparse.bin')->{status}, 404, 'a file that was removed is not found';
    $connection->close;

    # A new file, a directory that becomes a file, a file that becomes a directory
    spit("$root/thing", 'file');
    is $server->get('/thing')->{body}, 'file', 'a new file is served at once';
    unlink "$root/thing";
    mkdir "$root/thing";
    is $server->get('/thing')->{status}, 301, 'a directory that takes the place of a file gets a redirect at once';
    rmdir "$root/thing";
    is $server->get('/thing')->{status}, 404, 'a removed directory is not found';
    $server->stop;
    change_cached_files();
});

done_testing;

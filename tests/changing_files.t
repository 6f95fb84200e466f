#!/usr/bin/perl
# Files that change while they are served: replaced ones are served whole, old or new; shrunken ones end the connection.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

my $big = 32 * 1024 * 1024;

# What a server may keep in memory is what has not changed for a while: these grow old while the first cases run.
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

# Changes of files that a server has already served, and may remember.
sub remembered () {
    my $root = "$above/root" . $next_root++;
    my $server = start_server(root => $root, options => ['--list', $> == 0 && getpwnam('nobody') ? (qw(--user nobody)) : ()]);
    until_true(sub { now() - $made > 5 });
    my @targets = map { "/$_" } qw(same-size.txt same-time.txt replaced.txt link-out.txt gone.txt locked.txt folder.txt dir/file.txt
        dots/file.txt current/file.txt site/);
    for my $round (1 .. 3) {
        is join('', map { $server->get($_)->{body} } @targets), "first\n" x @targets, "round $round of what may be remembered";
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

    is $server->get('/same-size.txt')->{body}, "other\n", 'remembered: new content of the same size is served';
    is $server->get('/same-time.txt')->{body}, "other\n", 'remembered: new content of the same size and time is served';
    isnt $server->get('/same-size.txt')->field('ETag'), $etag{'/same-size.txt'}, 'remembered: new content, new ETag';
    is $server->get('/replaced.txt')->{body}, "a longer one\n", 'remembered: a replaced file is served';
    like $server->get('/link-out.txt')->{status}, qr/^40[34]$/, 'remembered: a link out of the root in its place is refused';
    is $server->get('/gone.txt')->{status}, 404, 'remembered: a removed file is gone';
    is $server->get('/folder.txt')->{status}, 301, 'remembered: a directory in its place';
    is $server->get('/locked.txt')->{status}, 403, 'remembered: a file that may not be read any more'
        if $> != 0 || getpwnam 'nobody';
    is $server->get('/dots/file.txt')->{status}, 404, 'remembered: its directory is gone';
    is $server->get('/current/file.txt')->{body}, "second\n", 'remembered: a link that points elsewhere now';
    like $server->get('/dir/file.txt')->{status}, qr/^40[34]$/, 'remembered: its directory became a link out of the root';
    is $server->get('/site/')->{body}, "other\n", 'remembered: a new index';
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
    is "@torn", '', '400 replacements under load: each response is whole, old or new';
    is $server->get('/file.txt')->{body}, $letters[$version] x (20_000 + 137 * $version), 'and then the new one is served';

    # One that shrinks while it is sent
    my $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin') . request(GET => '/file.txt'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    my ($announced) = $connection->pending =~ /^Content-Length: (\d+)/m;
    is $announced, $big, 'a big file is on its way';
    truncate "$root/sparse.bin", 1000 or die "truncate: $!";
    $connection->drain;
    ok $connection->{ended}, 'it shrinks: the connection ends';
    cmp_ok length($connection->pending), '<', $big, 'it shrinks: fewer bytes came than announced';
    unlike substr($connection->pending, -20_000), qr{HTTP/1\.1}, 'it shrinks: no other response hides in the missing rest';
    is $server->get('/sparse.bin')->field('Content-Length'), 1000, 'afterwards it is served as it is now';
    is $server->get('/file.txt')->{status}, 200, 'and the server is well';

    # One that grows while it is sent is sent as announced
    truncate "$root/sparse.bin", $big or die "truncate: $!";
    $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin') . request(GET => '/grows.bin', Connection => 'close'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    truncate "$root/sparse.bin", 2 * $big or die "truncate: $!";
    my $response = $connection->response;
    is length $response->{body}, $big, 'it grows: the length that was announced is sent';
    is $connection->response->{body}, 'g' x 1000, 'it grows: and the next response follows right behind';
    $connection->close;

    # One that goes while it is sent
    $connection = $server->connect(Sockopts => [[Socket::SOL_SOCKET(), Socket::SO_RCVBUF(), 65536]]);
    $connection->send(request(GET => '/sparse.bin', Connection => 'close'));
    until_true(sub { $connection->fill(1); $connection->pending =~ /\r\n\r\n/ });
    unlink "$root/sparse.bin" or die "unlink: $!";
    is length $connection->response->{body}, 2 * $big, 'it is removed: it is still sent whole';
    is $server->get('/sparse.bin')->{status}, 404, 'and missing afterwards';
    $connection->close;

    # A new file, a directory that becomes a file, a file that becomes a directory
    spit("$root/thing", 'file');
    is $server->get('/thing')->{body}, 'file', 'a new file is there at once';
    unlink "$root/thing";
    mkdir "$root/thing";
    is $server->get('/thing')->{status}, 301, 'a directory in its place';
    rmdir "$root/thing";
    is $server->get('/thing')->{status}, 404, 'nothing in its place';
    $server->stop;
    remembered();
});

done_testing;

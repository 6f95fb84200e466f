#!/usr/bin/perl
# Directories: index.html, the redirect that adds the slash, and listings with and without --list.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use Socket qw(SOL_SOCKET SO_RCVBUF);

# Names with characters that must be escaped in HTML, in URLs, or in both.
my @odd = ('plain.txt', 'two words.txt', 'per%41cent.txt', 'amp&ersand.txt', '<script>alert(1)<script>', 'quo"te.txt',
    "apo'strophe.txt", 'question?.txt', 'hash#.txt', 'semi;colon.txt', 'plus+.txt', 'colon:x', 'back\\slash.txt',
    "\xc3\xbcml\xc3\xa4ut.txt", "latin\xfc.txt", "new\nline.txt", 'tab	.txt', '&amp;.txt', '%2e%2e', '..double', '~tilde', '{b}');
my @hidden = ('.hidden', '.htpasswd', '..dots');
@odd = grep { !/^\./ } @odd;

my $root = tree(
    'file.txt'             => 'file',
    'site/index.html'      => "<h1>index</h1>\n",
    'site/page.txt'        => 'page',
    'empty/'               => 1,
    'bare/file.txt'        => 'in bare',
    'bare/below/index.html' => 'below',
    'dir with space/x.txt' => 'x',
    'strange/index.html/'  => 1,
    'a/b/c/d.txt'          => 'deep',
    'links/inside.txt'     => \'../file.txt',
    'links/outside.txt'    => \'/etc/passwd',
    'links/broken.txt'     => \'nothing',
    'links/folder'         => \'../site',
    map({ ("odd/$_" => "content of $_") } @odd, @hidden),
);
mkdir "$root/odd/folder";

each_server(sub ($model) {
    my $server = start_server(root => $root);

    my $index = $server->get('/site/');
    is $index->{status}, 200, 'a directory with index.html: 200';
    is $index->{body}, "<h1>index</h1>\n", 'a directory with index.html: the body is that file';
    like $index->field('Content-Type'), qr{^text/html}, 'a directory with index.html: Content-Type is text/html';
    ok $index->has('ETag'), 'a directory with index.html: the response has an ETag';
    is $server->get('/site/index.html')->{body}, $index->{body}, 'index.html is also served by its name';
    is $server->get('/site/', 'If-None-Match' => $index->field('ETag'))->{status}, 304, 'a directory with index.html: If-None-Match with its ETag gets 304';

    for my $case (
        ['/site',           '/site/'],
        ['/site?a=b&c',     '/site/?a=b&c'],
        ['/site?',          '/site/?'],
        ['/a/b',            '/a/b/'],
        ['/dir%20with%20space', '/dir%20with%20space/'],
        ['//site',          '/site/'],
        ['/links/folder',   '/links/folder/'],
    ) {
        my ($target, $location) = @$case;
        my $response = $server->get($target);
        is $response->{status}, 301, "$target: 301";
        like $response->field('Location'), qr{\A(?:http://localhost)?\Q$location\E\z}, "$target: Location $location";
    }
    # A path that begins with several slashes must not make a Location that names another host.
    for my $target ('//site', '//site/../site', '///site', '/%2fsite', '//evil.example/../site', '/\\evil.example', '//evil.example/%2e%2e/site',
        '//evil.example/..', '/.//site', '//links/folder') {
        my $response = $server->get($target);
        if ($response->{status} == 301) {
            like $response->field('Location'), qr{\A(?:http://localhost)?/(?![/\\])}, "$target: the redirect leads to no other host";
        } else {
            like $response->{status}, qr/^[24]/, "$target: there is no redirect";
        }
    }
    my $split = $server->exchange("GET /site?%0d%0aX-Evil:%20yes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    ok !$split->has('X-Evil'), 'an escaped line end in the query adds no field to the redirect';
    my $named = $server->get('/site', Host => 'example.org:8080');
    like $named->field('Location'), qr{\A(?:http://example\.org:8080)?/site/\z}, 'the redirect leads to the host of the request';

    for my $target ('/', '/bare/', '/empty/', '/odd/') {
        is $server->get($target)->{status}, 403, "$target without --list: 403";
    }
    is $server->get('/none/')->{status}, 404, 'a missing directory is refused with 404';
    is $server->get('/file.txt/')->{status}, 404, 'a file name with a slash at its end is refused with 404';
    is $server->get('/site/page.txt/x')->{status}, 404, 'a path that has a file as a directory is refused with 404';
    like $server->get('/strange/')->{status}, qr/^40[34]$/, 'a directory whose index.html is a directory is refused';
    like $server->head('/bare/')->{status}, qr/^403$/, 'HEAD of a directory without --list gets 403';
    $server->stop;

    $server = start_server(root => $root, options => ['--list']);
    is $server->get('/site/')->{body}, "<h1>index</h1>\n", '--list: index.html is served instead of a listing';
    my $list = $server->get('/odd/');
    is $list->{status}, 200, '--list: a directory gets 200';
    like $list->field('Content-Type'), qr{^text/html; ?charset=utf-8}i, '--list: Content-Type is text/html in UTF-8';
    like $list->{body}, qr/\A<!DOCTYPE html>/i, '--list: the page begins with a document type';
    unlike $list->{body}, qr/<script>alert/, '--list: names are escaped in HTML';
    unlike $list->{body}, qr/\Q$_\E/, "--list: the hidden file $_ is not listed" for @hidden;
    my @links = $list->{body} =~ /href="([^"]*)"/g;
    my %found;
    for my $link (grep { $_ !~ m{^\.\./?\z} } @links) {
        my $target = $link =~ s/&(?:amp|#38|#x26);/&/gr =~ s/&(?:#39|#x27|apos);/'/gr =~ s{^(?:\./)?}{}r;
        next if $target =~ m{/\z};
        my $url = $target =~ m{^/} ? $target : "/odd/$target";
        like $url, qr{\A[A-Za-z0-9\-._~!\$&'()*+,;=:\@%/]+\z}, "--list: the link $link is a valid URL";
        my $response = $server->get($url);
        $found{ $response->{body} } = 1;
    }
    ok $found{"content of $_"}, '--list: the link leads to the file ' . s/\n/\\n/r for @odd;
    is scalar(keys %found), scalar(@odd), '--list: each file is listed, and no other';
    ok scalar(grep { m{^(?:\./|/odd/)?folder/\z} } @links), '--list: the link to a directory ends in a slash';
    ok scalar(grep { m{^(?:\.\./?|/)\z} } @links), '--list: there is a link to the parent directory';
    my $top = $server->get('/');
    unlike $top->{body}, qr{href="\.\./?"}, '--list: the root has no link to a parent directory';
    my $links = $server->get('/links/');
    like $links->{body}, qr/inside\.txt/, '--list: a symbolic link to a file below the root is listed';
    unlike $links->{body}, qr/outside\.txt/, '--list: a symbolic link that leaves the root is not listed';
    my $empty = $server->get('/empty/');
    is $empty->{status}, 200, '--list: an empty directory gets 200';
    my $space = $server->get('/dir%20with%20space/');
    like $space->{body}, qr/dir with space/, '--list: the title has the decoded path';
    my $head = $server->head('/odd/');
    is $head->{status}, 200, '--list: HEAD gets 200';
    is $head->field('Content-Length'), length $list->{body}, '--list: HEAD gives the length of the listing';

    my @responses = $server->exchange(request(GET => '/odd/') . request(GET => '/file.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [200, 200], '--list: a listing leaves the connection open';

    mkdir "$root/many" or $! =~ /exist/ or die "mkdir: $!";
    spit(sprintf("$root/many/%04d-%s", $_, 'n' x 200), '') for 1 .. 2000;
    my $many = $server->get('/many/');
    is scalar(() = $many->{body} =~ /href="[^"]*\d{4}-n{200}"/g), 2000, '--list: a directory with 2,000 long names is listed whole';
    my @order = $many->{body} =~ /(\d{4})-n{200}"/g;
    is_deeply \@order, [sort @order], '--list: 2,000 names are sorted';
    $server->stop;

    # Clients that do not read what they ask for hold no more lists than the server has memory for.
    if ($model->{label} =~ /\A(?:thread|pool|epoll|uring)/) {
        mkdir "$root/most" or $! =~ /exist/ or die "mkdir: $!";
        spit(sprintf("$root/most/%05d-%s", $_, 'n' x 200), '') for 1 .. 10_001;
        $server = start_server(root => $root, options => ['--list', $model->{workers} ? ('--workers', $model->{limited} ? 24 : 1) : ()]);
        my $whole = $server->get('/most/');
        like $whole->{body}, qr/more entries than are listed/, '--list: a list of 10,000 entries says that there are more';
        my $fitting = int(64 * 1024 * 1024 / length $whole->{body});
        my @slow = map { $server->connect(Sockopts => [[SOL_SOCKET, SO_RCVBUF, 4096]]) } 1 .. $fitting + 3;
        my %statuses;
        for my $client (@slow) {
            $client->send(request(GET => '/most/'));
            $client->fill($PATIENCE);
            $statuses{ $client->pending =~ m{^HTTP/1\.1 (\d+)} ? $1 : 'none' }++;
        }
        cmp_ok $statuses{200} // 0, '>=', $fitting - 1, '--list: clients that do not read get lists';
        cmp_ok $statuses{503} // 0, '>=', 2, '--list: when they hold 64 MiB, the next ones get 503';
        is $server->get('/file.txt')->{status}, 200, '--list: a file gets 200 even so';
        $_->close for @slow;
        ok until_true(sub { $server->get('/most/')->{status} == 200 }), '--list: when they are gone, there is a list again';
        $server->stop;
    }
});

done_testing;

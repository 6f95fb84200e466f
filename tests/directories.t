#!/usr/bin/perl
# Directories: index.html, the redirect to the slash, listings and the lack of them.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;

# Names that are trouble in HTML, in URLs, or in both.
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
    is $index->{body}, "<h1>index</h1>\n", 'a directory with index.html: the index';
    like $index->field('Content-Type'), qr{^text/html}, 'a directory with index.html: HTML';
    ok $index->has('ETag'), 'a directory with index.html: an ETag';
    is $server->get('/site/index.html')->{body}, $index->{body}, 'the index by its name';
    is $server->get('/site/', 'If-None-Match' => $index->field('ETag'))->{status}, 304, 'the index is conditional too';

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
    # Nobody is sent to another host by a path of ours.
    for my $target ('//site', '//site/../site', '///site', '/%2fsite', '//evil.example/../site', '/\\evil.example', '//evil.example/%2e%2e/site',
        '//evil.example/..', '/.//site', '//links/folder') {
        my $response = $server->get($target);
        if ($response->{status} == 301) {
            like $response->field('Location'), qr{\A(?:http://localhost)?/(?![/\\])}, "$target: no redirect to another host";
        } else {
            like $response->{status}, qr/^[24]/, "$target: no redirect";
        }
    }
    my $split = $server->exchange("GET /site?%0d%0aX-Evil:%20yes HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n");
    ok !$split->has('X-Evil'), 'an escaped line end in the query does not become a field';
    my $named = $server->get('/site', Host => 'example.org:8080');
    like $named->field('Location'), qr{\A(?:http://example\.org:8080)?/site/\z}, 'the redirect stays at the host that was asked';

    for my $target ('/', '/bare/', '/empty/', '/odd/') {
        is $server->get($target)->{status}, 403, "$target without --list: 403";
    }
    is $server->get('/none/')->{status}, 404, 'a missing directory: 404';
    is $server->get('/file.txt/')->{status}, 404, 'a file with a slash behind it: 404';
    is $server->get('/site/page.txt/x')->{status}, 404, 'a path through a file: 404';
    like $server->get('/strange/')->{status}, qr/^40[34]$/, 'an index.html that is a directory: refused';
    like $server->head('/bare/')->{status}, qr/^403$/, 'HEAD of a directory without --list: 403';
    $server->stop;

    $server = start_server(root => $root, options => ['--list']);
    is $server->get('/site/')->{body}, "<h1>index</h1>\n", '--list: an index goes before the listing';
    my $list = $server->get('/odd/');
    is $list->{status}, 200, '--list: 200';
    like $list->field('Content-Type'), qr{^text/html; ?charset=utf-8}i, '--list: HTML';
    like $list->{body}, qr/\A<!DOCTYPE html>/i, '--list: a document type';
    unlike $list->{body}, qr/<script>alert/, '--list: names are escaped in HTML';
    unlike $list->{body}, qr/\Q$_\E/, "--list: $_ is hidden" for @hidden;
    my @links = $list->{body} =~ /href="([^"]*)"/g;
    my %found;
    for my $link (grep { $_ !~ m{^\.\./?\z} } @links) {
        my $target = $link =~ s/&(?:amp|#38|#x26);/&/gr =~ s/&(?:#39|#x27|apos);/'/gr =~ s{^(?:\./)?}{}r;
        next if $target =~ m{/\z};
        my $url = $target =~ m{^/} ? $target : "/odd/$target";
        like $url, qr{\A[A-Za-z0-9\-._~!\$&'()*+,;=:\@%/]+\z}, "--list: the link $link is a legal URL";
        my $response = $server->get($url);
        $found{ $response->{body} } = 1;
    }
    ok $found{"content of $_"}, '--list: the link works of ' . s/\n/\\n/r for @odd;
    is scalar(keys %found), scalar(@odd), '--list: and there is no other file';
    ok scalar(grep { m{^(?:\./|/odd/)?folder/\z} } @links), '--list: a directory ends in a slash';
    ok scalar(grep { m{^(?:\.\./?|/)\z} } @links), '--list: there is a link to the directory above';
    my $top = $server->get('/');
    unlike $top->{body}, qr{href="\.\./?"}, '--list: none above the root';
    my $links = $server->get('/links/');
    like $links->{body}, qr/inside\.txt/, '--list: a link that stays inside is listed';
    unlike $links->{body}, qr/outside\.txt/, '--list: a link that leaves the root is not listed, and nothing of its target told';
    my $empty = $server->get('/empty/');
    is $empty->{status}, 200, '--list: an empty directory: 200';
    my $space = $server->get('/dir%20with%20space/');
    like $space->{body}, qr/dir with space/, '--list: the title is decoded';
    my $head = $server->head('/odd/');
    is $head->{status}, 200, '--list: HEAD: 200';
    is $head->field('Content-Length'), length $list->{body}, '--list: HEAD: the length of the listing';

    my @responses = $server->exchange(request(GET => '/odd/') . request(GET => '/file.txt', Connection => 'close'));
    is_deeply [map { $_->{status} } @responses], [200, 200], '--list: a listing leaves the connection open';

    mkdir "$root/many" or $! =~ /exist/ or die "mkdir: $!";
    spit(sprintf("$root/many/%04d-%s", $_, 'n' x 200), '') for 1 .. 2000;
    my $many = $server->get('/many/');
    is scalar(() = $many->{body} =~ /href="[^"]*\d{4}-n{200}"/g), 2000, '--list: 2,000 long names';
    my @order = $many->{body} =~ /(\d{4})-n{200}"/g;
    is_deeply \@order, [sort @order], '--list: in order';
    $server->stop;
});

done_testing;

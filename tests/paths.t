#!/usr/bin/perl
# Paths: only regular files below the root that are not hidden are served; percent-escapes are decoded once.
use v5.36;
use FindBin;
use lib "$FindBin::Bin/lib";
use Harness;
use IO::Socket::UNIX;
use POSIX qw(mkfifo);

my $above = tree(
    'secret.txt'             => "secret\n",
    'root-of-another/x.txt'  => "secret\n",
    'root/file.txt'          => "file\n",
    'root/sub/file.txt'      => "sub\n",
    'root/sub/deep/file.txt' => "deep\n",
    'root/with space.txt'    => "space\n",
    'root/per%63ent.txt'     => "percent\n",
    'root/percent.txt'       => "decoded twice\n",
    'root/ques?tion.txt'     => "question\n",
    'root/plus+sign.txt'     => "plus\n",
    "root/\xc3\xbc.txt"      => "umlaut\n",
    'root/...'               => "three dots\n",
    'root/end.'              => "dot at the end\n",
    'root/a..b'              => "dots within\n",
    'root/.hidden'           => "hidden\n",
    'root/.git/config'       => "hidden\n",
    'root/sub/.env'          => "hidden\n",
    'root/inside'            => \'sub/file.txt',
    'root/inside-dir'        => \'sub',
    'root/up-and-in'         => \'../root/file.txt',
    'root/sub/up-within'     => \'../file.txt',
    'root/to-secret'         => \'../secret.txt',
    'root/to-above'          => \'..',
    'root/to-absolute'       => \'/etc/passwd',
    'root/to-root'           => \'/',
    'root/to-proc'           => \'/proc/self/environ',
    'root/to-hidden'         => \'.hidden',
    'root/loop'              => \'loop',
    'root/chain1'            => \'chain2',
    'root/chain2'            => \'../secret.txt',
    'root/broken'            => \'none',
);
my $root = "$above/root";
my $long = 'n' x 255;
spit("$root/$long", "long\n");
mkfifo("$root/fifo", 0644)                                    or die "mkfifo: $!";
IO::Socket::UNIX->new(Local => "$root/socket", Listen => 1)   or die "socket: $!";
my $device = $> == 0 && system('mknod', "$root/null", 'c', 1, 3) == 0;
spit("$root/locked.txt", "locked\n");
chmod 0, "$root/locked.txt";

# target => body of a 200, or a pattern of the allowed statuses
my @cases = (
    ['/file.txt',                     "file\n"],
    ['//file.txt',                    "file\n"],
    ['/./file.txt',                   "file\n"],
    ['/sub/../file.txt',              "file\n"],
    ['/sub/deep/../../file.txt',      "file\n"],
    ['/none/../file.txt',             "file\n"],
    ['/sub//deep///file.txt',         "deep\n"],
    ['/sub/./deep/./file.txt',        "deep\n"],
    ['/sub//' . './' x 3993 . 'file.txt', "sub\n"],    # 8,000 octets
    ['/%66ile.txt',                   "file\n"],
    ['/%66%69%6c%65.%74xt',           "file\n"],
    ['/sub/%2e%2e/file.txt',          "file\n"],
    ['/sub/.%2E/file.txt',            "file\n"],
    ['/with%20space.txt',             "space\n"],
    ['/per%2563ent.txt',              "percent\n"],
    ['/ques%3Ftion.txt',              "question\n"],
    ['/plus+sign.txt',                "plus\n"],
    ['/plus%2bsign.txt',              "plus\n"],
    ['/%c3%bc.txt',                   "umlaut\n"],
    ['/end.',                         "dot at the end\n"],
    ['/a..b',                         "dots within\n"],
    ["/$long",                        "long\n"],
    ['/inside',                       "sub\n"],
    ['/inside-dir/file.txt',          "sub\n"],
    ['/sub/up-within',                "file\n"],
    ['/file.txt?../../secret.txt',    "file\n"],
    ['/file.txt?%00',                 "file\n"],
    ['/file.txt?a=%zz',               qr/^(?:200|400)$/],

    ['/../secret.txt',                qr/^40[04]$/],
    ['/..',                           qr/^40[04]$/],
    ['/../',                          qr/^40[04]$/],
    ['/../root/file.txt',             qr/^40[04]$/],
    ['/../root-of-another/x.txt',     qr/^40[04]$/],
    ['/sub/../../secret.txt',         qr/^40[04]$/],
    ['/%2e%2e/secret.txt',            qr/^40[04]$/],
    ['/%2E%2E/secret.txt',            qr/^40[04]$/],
    ['/.%2e/secret.txt',              qr/^40[04]$/],
    ['/%2e./secret.txt',              qr/^40[04]$/],
    ['/sub/%2e%2e/%2e%2e/secret.txt', qr/^40[04]$/],
    ['//../secret.txt',               qr/^40[04]$/],
    ['/./../secret.txt',              qr/^40[04]$/],
    ['/' . '../' x 50 . 'etc/passwd', qr/^40[04]$/],
    ['/..%2fsecret.txt',              qr/^40[04]$/],
    ['/%2e%2e%2fsecret.txt',          qr/^40[04]$/],
    ['/sub%2ffile.txt',               qr/^404$/],
    ['/sub%2Ffile.txt',               qr/^404$/],
    ['/%2fetc%2fpasswd',              qr/^404$/],
    ['/%252e%252e/secret.txt',        qr/^40[04]$/],
    ['/..%255c..%255csecret.txt',     qr/^40[04]$/],
    ['/..%5csecret.txt',              qr/^40[04]$/],
    ['/%c0%ae%c0%ae/secret.txt',      qr/^40[04]$/],
    ['/%uff0e%uff0e/secret.txt',      qr/^400$/],
    ['/...',                          qr/^404$/],
    ['/.../',                         qr/^404$/],
    ['/%00',                          qr/^400$/],
    ['/file.txt%00',                  qr/^400$/],
    ['/file.txt%00.html',             qr/^400$/],
    ['/%',                            qr/^400$/],
    ['/%2',                           qr/^400$/],
    ['/%g0',                          qr/^400$/],
    ['/%0g',                          qr/^400$/],
    ['/a%',                           qr/^400$/],
    ['/%%41',                         qr/^400$/],
    ['/%-1',                          qr/^400$/],
    ['/%+1',                          qr/^400$/],
    ['/%0x41',                        qr/^40[04]$/],
    ['/%0d%0aX:%20y',                 qr/^404$/],

    ['/.hidden',                      qr/^404$/],
    ['/%2ehidden',                    qr/^404$/],
    ['/.git/config',                  qr/^404$/],
    ['/.git/',                        qr/^404$/],
    ['/.git',                         qr/^404$/],
    ['/sub/.env',                     qr/^404$/],
    ['/none/../.hidden',              qr/^404$/],

    ['/up-and-in',                    qr/^40[34]$/],
    ['/to-secret',                    qr/^40[34]$/],
    ['/to-above',                     qr/^40[34]$/],
    ['/to-above/',                    qr/^40[34]$/],
    ['/to-above/secret.txt',          qr/^40[34]$/],
    ['/to-absolute',                  qr/^40[34]$/],
    ['/to-root/etc/passwd',           qr/^40[34]$/],
    ['/to-proc',                      qr/^40[34]$/],
    ['/loop',                         qr/^40[34]$/],
    ['/chain1',                       qr/^40[34]$/],
    ['/broken',                       qr/^404$/],

    ['/fifo',                         qr/^403$/],
    ['/socket',                       qr/^403$/],
    $device ? ['/null',               qr/^403$/] : (),

    ['/none',                         qr/^404$/],
    ['/FILE.TXT',                     qr/^404$/],
    ['/file.txt/',                    qr/^404$/],
    ['/file.txt/.',                   qr/^404$/],
    ['/file.txt/x',                   qr/^404$/],
    ['/file.txt ' =~ s/ /%20/r,       qr/^404$/],
    ["/n$long",                       qr/^4(?:04|14)$/],
    ['/' . 'd/' x 2040,               qr/^4(?:04|14)$/],
    ['/' . 'd/' x 2048,               qr/^4(?:04|14)$/],
    ['/x' x 4000,                     qr/^404$/],
    ['/xx' x 2600,                    qr/^404$/],
    ['/' . 'x' x 4085,                qr/^404$/],
    ['/' . 'x' x 4094,                qr/^404$/],
    ['/' . 'x' x 4095,                qr/^404$/],
    ['/' . 'x' x 4096,                qr/^404$/],
    ['/' . '%78' x 2500,              qr/^404$/],
    ['/sub/' . './' x 4000 . 'file.txt', qr/^(?:200|414)$/],
    ['/' . '/' x 8000 . 'file.txt',   qr/^(?:200|414)$/],
);

each_server(sub ($model) {
    my $server = start_server(root => $root);
    for my $case (@cases) {
        my ($target, $expected) = @$case;
        my $response = $server->get($target);
        my $name = length $target > 60 ? substr($target, 0, 40) . '... (' . length($target) . ' bytes)' : $target;
        if (ref $expected) {
            like $response->{status}, $expected, "$name is refused with the right status";
            unlike $response->{body}, qr/^(?:secret|hidden|locked|three dots|decoded twice|root:)/m, "$name: the error page has nothing of a protected file";
        } else {
            is $response->{status}, 200, "$name gets 200";
            is $response->{body}, $expected, "$name gets the content of the right file";
        }
    }
    like $server->get('/to-hidden')->{status}, qr/^(?:200|403|404)$/, 'a symbolic link to a hidden file is served or refused, but not an error';

    # Opening a FIFO must not wait for its other end.
    my $refused = 0;
    $refused++ while $refused < 50 && $server->get('/fifo')->{status} == 403;
    is $refused, 50, '50 requests for a FIFO are all refused with 403';
    is $server->get('/file.txt')->{status}, 200, 'after 50 requests for a FIFO the server serves a file';
    $server->stop;

    # Root may read everything, so the server has to run as another user.
    if ($> != 0) {
        $server = start_server(root => $root);
    } elsif (getpwnam 'nobody') {
        $server = start_server(root => $root, options => [qw(--user nobody)]);
    } else {
        skip_case('there is no user nobody that the server could run as');
        return;
    }
    is $server->get('/locked.txt')->{status}, 403, 'a file that the server may not read is refused with 403';
    is $server->get('/file.txt')->{status}, 200, 'the file beside one that the server may not read is served';
    $server->stop;
});

done_testing;

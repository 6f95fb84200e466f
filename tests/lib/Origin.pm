package Origin;

# An origin server that sends the responses that a test gives it, and records the requests. Each of its processes serves
# one connection at a time; when none is free, another one is made.
#
# play() for a path a second time removes its requests and closes its gates.
#
#   my $origin = Origin->new;
#   $origin->play('/a', response(200, "one\n", 'Cache-Control' => 'max-age=60'), response(304, undef, ETag => '"x"'));
#   ... requests for $origin->url('/a') get each response once, and then the last one again and again ...
#   $origin->count('/a');               the number of requests
#   ($origin->requests('/a'))[0];       the bytes of the first request
#
# A response is a list of steps: bytes to send, \'name' to wait until open_gate('name'), or \'' to reset the connection. After
# the last step the origin closes the connection, unless the step is \'+': then it waits for the next request on it. The step
# \'-' waits until the proxy has closed the connection, \'.' sends the end of the connection, and \'!name' says to has_come('name') that
# the proxy's kernel has all bytes that were sent.
#
#   $origin->connections('/a');         the name of each request's connection

use v5.36;
use Exporter qw(import);
use Fcntl    qw(LOCK_EX SEEK_SET);
use IO::Select       ();
use IO::Socket::IP   ();
use POSIX            ();
use Socket           qw(SOL_SOCKET SO_LINGER);
use Storable         qw(nstore retrieve);
use Harness          ();

use constant SIOCOUTQ => 0x5411;    # the bytes in the send queue of a socket

our @EXPORT = qw(response head_of);

my %origins;    # process => 1
my %left;       # port of a stopped origin => a socket that is bound to it and does not listen
my $owner = $$;

# Returns a whole response, as one step. Date and Server are added unless they are given, and Content-Length unless there is no
# body or a Transfer-Encoding. A field whose value is undef is left out.
sub response ($status, $body, @fields) {
    my $text  = "HTTP/1.1 $status Whatever\r\n";
    my %given = map { lc $fields[2 * $_] => 1 } 0 .. @fields / 2 - 1;
    unshift @fields, Date => Harness::http_date(time) if !$given{date};
    unshift @fields, Server => 'script' if !$given{server};
    push @fields, 'Content-Length' => length $body
        if defined $body && !$given{'content-length'} && !$given{'transfer-encoding'};
    while (my ($name, $value) = splice @fields, 0, 2) { $text .= "$name: $value\r\n" if defined $value }
    return [$text . "\r\n" . ($body // '')];
}

# Returns the head of a request as a hash: line, and the fields by their lower-case names, with repeated fields joined by commas.
sub head_of ($request) {
    my ($line, @lines) = split /\r\n/, $request =~ s/\r\n\r\n.*//sr;
    my %head = (line => $line);
    for (@lines) {
        my ($name, $value) = /^([^:]+): ?(.*)\z/ or die "request line '$_'\n";
        $head{ lc $name } = exists $head{ lc $name } ? $head{ lc $name } . ", $value" : $value;
    }
    return \%head;
}

sub new ($class, %how) {
    delete $left{ $how{port} } if $how{port};
    my $listener = IO::Socket::IP->new(LocalHost => $how{host} // '127.0.0.1', LocalPort => $how{port} // 0, Listen => 128, ReuseAddr => 1)
        or die "origin: $@\n";
    my $self = bless { scratch => Harness::scratch(), port => $listener->sockport }, $class;
    $self->{pid} = fork // die "fork: $!\n";
    if ($self->{pid} == 0) {
        setpgrp 0, 0;
        $SIG{CHLD} = 'IGNORE';
        $self->{parent} = $owner;
        $self->serve($listener);
        POSIX::_exit(0);
    }
    setpgrp $self->{pid}, $self->{pid};
    $origins{ $self->{pid} } = 1;
    return $self;
}

sub port ($self) { return $self->{port} }
sub url ($self, $path) { return "http://127.0.0.1:$self->{port}$path" }

sub file ($self, $kind, $name = '') { return "$self->{scratch}/$kind-" . unpack 'H*', $name }

sub play ($self, $path, @responses) {
    unlink $self->file(log => $path), map { $self->file(gate => $$_) } grep { ref } map { @$_ } @responses;
    my $file = $self->file(play => $path);
    nstore([@responses], "$file.new");
    rename "$file.new", $file or die "$file: $!\n";
}

sub open_gate ($self, $name) { Harness::spit($self->file(gate => $name), '') }

sub has_come ($self, $name) { return Harness::until_true(sub { -e $self->file(gate => "!$name") }) }

sub requests ($self, $path) {
    my $file = $self->file(log => $path);
    return if !-e $file;
    return map { pack 'H*', $_ =~ s/ .*//r } split /\n/, Harness::slurp($file);
}

sub connections ($self, $path) {
    my $file = $self->file(log => $path);
    return if !-e $file;
    return map { s/.* //r } split /\n/, Harness::slurp($file);
}

sub count ($self, $path) { return scalar(() = $self->requests($path)) }

sub stop ($self) {
    kill KILL => -$self->{pid};
    waitpid $self->{pid}, 0;
    delete $origins{ $self->{pid} };
    # Holds the port, so that nothing listens there, and no other server gets it. The last process may still be ending.
    my $hold = sub { IO::Socket::IP->new(LocalHost => '127.0.0.1', LocalPort => $self->{port}, ReuseAddr => 1) };
    $left{ $self->{port} } = Harness::until_true($hold) or die "origin: port $self->{port} is taken: $@\n";
}

END {
    if ($$ == $owner) {
        my $status = $?;
        for (keys %origins) { kill KILL => -$_; waitpid $_, 0 }
        $? = $status;
    }
}

# --- In the origin's process ----------------------------------------------------------------------------------------

# A fork of Perl takes some milliseconds, so a process serves one connection after the other. It says when it takes one
# and when it is free again.
sub serve ($self, $listener) {
    pipe my $news, my $say or die "pipe: $!\n";
    my $select = IO::Select->new($news);
    my $free   = 0;
    while (kill 0 => $self->{parent}) {
        while ($free < 1) {
            my $child = fork // die "fork: $!\n";
            $self->serve_connections($listener, $say) if $child == 0;
            $free++;
        }
        $select->can_read(0.5) or next;
        sysread $news, my $changes, 4096;
        $free += ($changes =~ tr/+//) - ($changes =~ tr/-//);
    }
    kill KILL => -$$;
}

sub serve_connections ($self, $listener, $say) {
    while (1) {
        my $client = $listener->accept or next;
        syswrite $say, '-';
        $self->{connection}++;
        eval { 1 while $self->answer($client); 1 } or print STDERR "origin: $@";
        close $client;
        syswrite $say, '+';
    }
}

sub is_whole ($bytes) {
    $bytes =~ /\r\n\r\n/g or return 0;
    my $head = substr $bytes, 0, pos $bytes;
    my $body = substr $bytes, pos $bytes;
    return $body =~ /(?:^|\r\n)0\r\n(?:[^\r\n]+\r\n)*\r\n\z/ if $head =~ /^Transfer-Encoding:/mi;
    return length $body >= ($head =~ /^Content-Length: (\d+)/mi ? $1 : 0);
}

sub answer ($self, $client) {
    my $bytes = '';
    my $early = 0;
    until ($early || is_whole($bytes)) {
        my $count = sysread $client, $bytes, 65536, length $bytes;
        last if !$count;
        # A path that begins with /early gets its response before the body has come.
        $early = $bytes =~ /\r\n\r\n/ && $bytes =~ m{^\S+ /early};
    }
    my ($path) = $bytes =~ /^\S+ (\S+)/ or return 0;
    my @steps = @{ $self->next_response($path, $bytes) };
    for my $step (@steps) {
        if (!ref $step) {
            while (length $step) {
                my $count = syswrite $client, $step;
                return 0 if !defined $count;
                substr $step, 0, $count, '';
            }
        } elsif ($$step eq '') {
            setsockopt $client, SOL_SOCKET, SO_LINGER, pack 'ii', 1, 0;
            close $client;
            return 0;
        } elsif ($$step eq '+') {
            return 1;
        } elsif ($$step eq '.') {
            shutdown $client, 1;
        } elsif ($$step =~ /^!/) {
            Harness::until_true(sub { unacknowledged($client) == 0 });
            Harness::spit($self->file(gate => $$step), '');
        } elsif ($$step eq '-') {
            1 while sysread $client, $bytes, 65536;
        } else {
            Harness::until_true(sub { -e $self->file(gate => $$step) || !kill 0 => $self->{parent} });
        }
    }
    shutdown $client, 1;
    1 while sysread $client, $bytes, 65536;
    return 0;
}

# Returns how many bytes the peer has not acknowledged; an end that was sent counts as one.
sub unacknowledged ($socket) {
    my $count = pack 'i', 0;
    ioctl $socket, SIOCOUTQ, $count or die "SIOCOUTQ: $!\n";
    return unpack 'i', $count;
}

# Records the request, and returns the response to it.
sub next_response ($self, $path, $bytes) {
    open my $log, '+>>', $self->file(log => $path) or die "log: $!\n";
    flock $log, LOCK_EX;
    seek $log, 0, SEEK_SET;
    my $before = () = <$log>;
    $log->autoflush(1);
    print {$log} unpack('H*', $bytes), " $$-$self->{connection}\n";
    close $log;
    my $play = $self->file(play => $path);
    return response(404, "play() has not been called for this path\n", 'Cache-Control' => 'no-store') if !-e $play;
    my $responses = retrieve($play);
    return $responses->[$before < @$responses ? $before : -1];
}

1;

# Runs the two commands of README.md on a bare Debian 12.
#
# usage:    docker build -t fork-vs-thread .
#           docker run --init --rm -it -v "$PWD/results:/fork-vs-thread/results" fork-vs-thread
#           docker run --init --rm -it fork-vs-thread tests/run
#
# --init: a process that waits for the orphans of stopped servers, as init does on a machine.
FROM debian:12
WORKDIR /fork-vs-thread
COPY . .
# A study of one short run installs and builds all that a study needs.
RUN ./dcollect.sh --servers fork --files small.txt --concurrency 1 --requests 10 --repetitions 1 --output /tmp/first \
    && rm -rf /tmp/first /var/lib/apt/lists/*
CMD ["./dcollect.sh", "--quick"]

# shellcheck shell=bash disable=SC2034,SC2154 # the factors of the cell come in, recipe_argv goes out
# recipes.sh: how each server is started: ours, the floors, and the peers. A library: source it.
#
# usage:    recipe_known LABEL; recipe_needs LABEL; recipe_expand LABEL...; recipe_command LABEL FOLDER PORT
# example:  recipe_list
#
# Our servers are found by their name, NAME_server, in the folder SERVER_FOLDER (that of the project).
# A label is RECIPE[+OPTION[=VALUE]]...[~N]: `fork`, `fork~2`, `fork+no-sandbox`, `floor-thread+backlog5`. For our servers an
# option is one of theirs without the dashes; what the floors know is in floor.c. Peers take none.
# Peers get a configuration each that is fair to them: the same documents, no access log, the same backlog, as many
# workers as processors, keep-alive for 5 seconds with any number of requests, a user without privileges when root starts them.
# All listen at 127.0.0.1 alone: ours, too, whose crews then block in accept, as those of the book do.

recipe_peers='nginx lighttpd apache-prefork apache-worker apache-event'
recipe_backlog=4096
recipe_idle=5

recipe_name() { local name=${1%%~*}; echo "${name%%+*}"; }

recipe_list() {
    local file
    for file in "${SERVER_FOLDER:-$project}"/*_server.c; do
        if [[ -e $file ]]; then file=${file##*/}; echo "${file%_server.c}"; fi
    done
    echo 'floor-fork floor-thread floor-one'
    echo "$recipe_peers"
}

# The words of a list of servers, with every server that is not named in place of the word `all`: each of ours with all of its
# ways to accept connections, as it describes them, the floors, and the peers.
recipe_expand() {
    local word name way label kept=() all=()
    for word in "$@"; do
        if [[ $word != all ]]; then
            kept+=("$word")
            continue
        fi
        for name in $(recipe_list); do
            all=("$name")
            for way in $(recipe_ways "$name" | tail -n +2); do all+=("$name+accept=$way"); done
            for label in "${all[@]}"; do
                if [[ " $* ${kept[*]} " != *" $label "* ]]; then kept+=("$label"); fi
            done
        done
    done
    echo "${kept[*]}"
}

# The ways to accept that a model has, its default first; none where it has no workers.
recipe_ways() {
    if [[ ! -x $project/$1_server ]]; then return 0; fi
    "$project/$1_server" --describe | python3 -c 'import json, sys; print(*json.load(sys.stdin)["accept"], sep="\n")'
}

recipe_known() {
    local name
    name=$(recipe_name "$1")
    case " $recipe_peers floor-fork floor-thread floor-one " in *" $name "*) return 0 ;; esac
    [[ $name && $name != */* && (-e ${SERVER_FOLDER:-$project}/${name}_server || -e $project/${name}_server.c) ]]
}

# Prints COMMAND:PACKAGE of what a peer needs.
recipe_needs() {
    case $(recipe_name "$1") in
    nginx) echo nginx:nginx-light ;;
    lighttpd) echo lighttpd:lighttpd ;;
    apache-*) echo apache2:apache2-bin ;;
    esac
}

# Prints the option list of a label, one a line.
recipe_options() {
    local text=${1%%~*} option
    while [[ $text == *+* ]]; do
        text=${text#*+}
        option=${text%%+*}
        case $option in
        backlog[0-9]*) option=backlog=${option#backlog} ;;
        work[0-9]*) option=work=${option#work} ;;
        split) option=split-writes ;;
        esac
        echo "--$option"
    done
}

# Sets recipe_argv, the command that runs LABEL in the foreground, and for a peer writes its configuration into FOLDER.
# Reads the factors of the cell: file scheme certificate protocol service keep bytes workers documents; port is for peers. Where the study sets
# idle_timeout and request_timeout, in seconds, all servers get them; an origin gets max_age, and a server behind a link link_near, its
# address there.
recipe_command() {
    local label=$1 folder=$2 port=$3 name options=()
    name=$(recipe_name "$label")
    mapfile -t options < <(recipe_options "$label")
    case $name in
    floor-*)
        if [[ $keep == yes ]]; then options+=(--keep-alive); fi
        recipe_argv=("$project/collect/floor" "${options[@]}" "${name#floor-}" 0 "$bytes")
        ;;
    nginx | lighttpd | apache-*)
        mkdir -p "$folder"
        recipe_"${name%%-*}" "$folder" "$port" "${name#*-}"
        ;;
    *)
        if [[ $protocol != pipelined ]]; then options+=(--protocol "$protocol"); fi
        case $service in
        files) ;;
        proxy-*) options+=(--service proxy --cache "$folder/cache") ;;
        *) options+=(--service "$service") ;;
        esac
        if [[ ${max_age:-} ]]; then options+=(--max-age "$max_age"); fi
        options+=(--bind 127.0.0.1)
        if [[ ${link_near:-} ]]; then options+=(--bind "$link_near"); fi
        if [[ $scheme == https ]]; then
            options+=(--tls --cert "$work/certificates/$certificate/cert.pem" --key "$work/certificates/$certificate/key.pem")
        fi
        if [[ $scheme == udp ]]; then options+=(--udp); fi
        if [[ ${idle_timeout:-} ]]; then options+=(--idle-timeout "$idle_timeout"); fi
        if [[ ${request_timeout:-} ]]; then options+=(--request-timeout "$request_timeout"); fi
        recipe_argv=("${SERVER_FOLDER:-$project}/${name}_server" --root "$documents" --stats "$folder/stats" "${options[@]}" 0)
        ;;
    esac
}

# The user without privileges that peers run as when root starts them; nothing otherwise.
recipe_user() {
    if ((EUID == 0)); then getent passwd www-data nobody | cut -d: -f1 | head -n 1; fi
}

recipe_nginx() {
    local folder=$1 port=$2 user tls=''
    user=$(recipe_user)
    # As ours: TLS 1.2 and 1.3, tickets and no cache of sessions, P-256 and X25519 before others.
    if [[ $scheme == https ]]; then
        tls=" ssl;
        ssl_certificate $work/certificates/$certificate/cert.pem;
        ssl_certificate_key $work/certificates/$certificate/key.pem;
        ssl_protocols TLSv1.2 TLSv1.3;
        ssl_session_tickets on"
    fi
    cat >"$folder/nginx.conf" <<END
daemon off;
worker_processes $workers;
${user:+user $user;}
pid $folder/nginx.pid;
error_log stderr warn;
events {
    worker_connections 4096;
}
http {
    access_log off;
    sendfile on;
    types { text/plain txt; text/html html; }
    keepalive_timeout ${idle_timeout:-$recipe_idle};
    ${request_timeout:+client_header_timeout $request_timeout;}
    keepalive_requests 1000000000;
    client_body_temp_path $folder/body;
    proxy_temp_path $folder/proxy;
    fastcgi_temp_path $folder/fastcgi;
    uwsgi_temp_path $folder/uwsgi;
    scgi_temp_path $folder/scgi;
    server {
        listen 127.0.0.1:$port backlog=$recipe_backlog$tls;
        root $documents;
    }
}
END
    recipe_argv=(nginx -p "$folder" -e stderr -c "$folder/nginx.conf")
}

recipe_lighttpd() {
    local folder=$1 port=$2 user
    user=$(recipe_user)
    cat >"$folder/lighttpd.conf" <<END
server.document-root = "$documents"
server.bind = "127.0.0.1"
server.port = $port
server.listen-backlog = $recipe_backlog
server.pid-file = "$folder/lighttpd.pid"
server.upload-dirs = ( "$folder" )
server.max-worker = $((workers > 1 ? workers : 0))
server.max-keep-alive-idle = ${idle_timeout:-$recipe_idle}
${request_timeout:+server.max-read-idle = $request_timeout}
server.max-keep-alive-requests = 65535
server.max-connections = 4096
server.max-fds = 8192
mimetype.assign = ( ".txt" => "text/plain", ".html" => "text/html" )
END
    if [[ $user ]]; then
        printf 'server.username = "%s"\nserver.groupname = "%s"\n' "$user" "$(id -gn "$user")" >>"$folder/lighttpd.conf"
    fi
    recipe_argv=(lighttpd -D -f "$folder/lighttpd.conf")
}

recipe_apache() {
    local folder=$1 port=$2 model=$3 user modules
    user=$(recipe_user)
    modules=${APACHE_MODULES:-/usr/lib/apache2/modules}
    {
        cat <<END
ServerRoot "$folder"
ServerName localhost
Listen 127.0.0.1:$port
ListenBacklog $recipe_backlog
PidFile "$folder/apache.pid"
DefaultRuntimeDir "$folder"
ErrorLog /dev/stderr
LogLevel warn
LoadModule mpm_${model}_module $modules/mod_mpm_$model.so
LoadModule authz_core_module $modules/mod_authz_core.so
LoadModule mime_module $modules/mod_mime.so
TypesConfig /dev/null
AddType text/plain .txt
AddType text/html .html
KeepAlive On
KeepAliveTimeout ${idle_timeout:-$recipe_idle}
MaxKeepAliveRequests 0
MaxConnectionsPerChild 0
DocumentRoot "$documents"
<Directory />
    AllowOverride None
    Require all denied
</Directory>
<Directory "$documents">
    Require all granted
</Directory>
END
        if [[ ${request_timeout:-} ]]; then
            printf 'LoadModule reqtimeout_module %s/mod_reqtimeout.so\nRequestReadTimeout header=%s\n' "$modules" "$request_timeout"
        fi
        if [[ $user ]]; then printf 'User %s\nGroup %s\n' "$user" "$(id -gn "$user")"; fi
        # A process or a thread per connection each, enough of both for every concurrency; started as the processors are.
        case $model in
        prefork) printf 'ServerLimit 512\nMaxRequestWorkers 512\n' ;;
        *) printf 'StartServers %s\nServerLimit 16\nThreadsPerChild 32\nMaxRequestWorkers 512\n' "$workers" ;;
        esac
    } >"$folder/apache.conf"
    recipe_argv=(apache2 -DFOREGROUND -f "$folder/apache.conf")
}

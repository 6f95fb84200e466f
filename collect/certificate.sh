#!/bin/bash
# certificate.sh: makes a private key and a certificate that no browser trusts, to try HTTPS with.
#
# usage:    collect/certificate.sh FOLDER [RSA-BITS]        the key is P-256, or RSA of this many bits
# example:  collect/certificate.sh certificate 2048
set -euo pipefail

if (($# < 1 || $# > 2)); then
    echo 'usage: certificate.sh FOLDER [RSA-BITS]' >&2
    exit 2
fi
folder=$1 bits=${2:-}
if [[ -e $folder/key.pem || -e $folder/cert.pem ]]; then
    echo "$folder/ exists: move it away first" >&2
    exit 1
fi
kind=(ec -pkeyopt ec_paramgen_curve:P-256)
if [[ $bits ]]; then kind=("rsa:$bits"); fi
mkdir -p "$folder"
umask 077
openssl req -x509 -sha256 -days 365 -nodes -subj /CN=localhost -newkey "${kind[@]}" \
    -addext subjectAltName=DNS:localhost,IP:127.0.0.1,IP:::1 -keyout "$folder/key.pem" -out "$folder/cert.pem"
chmod 644 "$folder/cert.pem"

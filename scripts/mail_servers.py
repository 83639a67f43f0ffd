"""Starts Dovecot and Postfix on loopback ports from a directory of their own; called by `scripts/mail-servers`.

    scripts/mail-servers install            what is missing, by apt-get (as root)
    scripts/mail-servers start              prints JSON: ports, accounts, files (also in DIR/servers.json)
    scripts/mail-servers stop DIR           ends both and removes the directory

Nothing of an installed mail system is touched or asked: no file under /etc, no fixed port, no init system. Both servers
change to users of their own, so starting them needs root. Only the standard library is used, and the tests' own
authority for certificates.
"""

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from string import Template
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.platforms.certificates import make_authority

PACKAGES = {
    "/usr/sbin/dovecot": "dovecot-core",
    "/usr/lib/dovecot/imap": "dovecot-imapd",
    "/usr/lib/dovecot/lmtp": "dovecot-lmtpd",
    "/usr/sbin/postfix": "postfix",
    "/usr/bin/openssl": "openssl",
}
DOMAIN = "example.test"
# What `copied` sends is copied into its folder of sent mail by the server itself.
NAMES = ("bot", "copied", "ann", "ben", "ops", "mallory", "big")
ACCOUNTS = {f"{name}@{DOMAIN}": f"secret of {name}" for name in NAMES}
START_SECONDS = 30.0

DOVECOT = Template("""
base_dir = $dir/run
state_dir = $dir/state
instance_name = zerobot-tests
log_path = $dir/dovecot.log
protocols = imap lmtp
listen = 127.0.0.1
ssl = yes
ssl_min_protocol = TLSv1.2
ssl_cert = <$certificate
ssl_key = <$certificate
disable_plaintext_auth = no
auth_mechanisms = plain login xoauth2
auth_failure_delay = 0
first_valid_uid = 1
mail_uid = mail
mail_gid = mail
mail_location = maildir:~/Maildir
mail_max_userip_connections = 100
recipient_delimiter = +
postmaster_address = postmaster@$domain
lmtp_save_to_detail_mailbox = yes
passdb {
  driver = oauth2
  mechanisms = xoauth2
  args = $dir/oauth2.conf
}
passdb {
  driver = passwd-file
  args = scheme=PLAIN username_format=%u $dir/accounts
}
userdb {
  driver = static
  args = home=$dir/homes/%n
}
namespace inbox {
  inbox = yes
  mailbox Sent {
    auto = create
    special_use = \\Sent
  }
  mailbox Trash {
    auto = create
    special_use = \\Trash
  }
}
service anvil {
  # It would let an address wait after failed logins.
  unix_listener anvil-auth-penalty {
    mode = 0
  }
}
service imap-login {
  inet_listener imap {
    port = $imap
  }
  inet_listener imaps {
    port = $imaps
    ssl = yes
  }
}
service auth {
  unix_listener smtp-auth {
    mode = 0666
  }
}
service lmtp {
  unix_listener lmtp {
    mode = 0666
  }
}
""")
# Access tokens are checked here, without a server for them: JWT, signed by the secret in the folder of keys.
DOVECOT_OAUTH2 = Template("""
introspection_mode = local
local_validation_key_dict = fs:posix:prefix=$dir/keys/
username_attribute = sub
""")

POSTFIX_MAIN = Template("""
compatibility_level = 3.6
queue_directory = $dir/queue
data_directory = $dir/data
command_directory = /usr/sbin
daemon_directory = /usr/lib/postfix/sbin
mail_owner = postfix
setgid_group = postdrop
maillog_file = $dir/postfix.log
maillog_file_prefixes = $dir
inet_interfaces = loopback-only
inet_protocols = ipv4
myhostname = mail.$domain
mydestination =
mynetworks = 192.0.2.1/32
alias_maps =
virtual_mailbox_domains = $domain
virtual_mailbox_maps = texthash:$dir/postfix/mailboxes
virtual_transport = lmtp:unix:$dir/run/lmtp
recipient_delimiter = +
default_transport = error:5.1.2 there is no world outside
message_size_limit = 40000000
smtpd_sasl_type = dovecot
smtpd_sasl_path = $dir/run/smtp-auth
smtpd_tls_security_level = may
smtpd_tls_cert_file = $certificate
smtpd_tls_key_file = $certificate
smtpd_relay_restrictions = permit_sasl_authenticated, reject_unauth_destination
smtpd_recipient_restrictions = check_policy_service unix:private/policy
smtpd_client_connection_count_limit = 0
sender_bcc_maps = inline:{ {copied@$domain = copied+Sent@$domain} }
queue_run_delay = 5s
minimal_backoff_time = 5s
""")
POSTFIX_MASTER = Template("""
127.0.0.1:$mx inet n - n - - smtpd
  -o smtpd_data_restrictions=check_policy_service,unix:private/results
127.0.0.1:$smtp inet n - n - - smtpd
  -o smtpd_sasl_auth_enable=yes
127.0.0.1:$smtp_starttls inet n - n - - smtpd
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_tls_security_level=encrypt
127.0.0.1:$smtps inet n - n - - smtpd
  -o smtpd_sasl_auth_enable=yes
  -o smtpd_tls_wrappermode=yes
policy unix - n n - 0 spawn user=nobody argv=/bin/sh $dir/policy.sh $dir/refuse
results unix - n n - 0 spawn user=nobody argv=/bin/sh $dir/results.sh mail.$domain
pickup unix n - n 60 1 pickup
cleanup unix n - n - 0 cleanup
qmgr unix n - n 5 1 qmgr
tlsmgr unix - - n 1000? 1 tlsmgr
rewrite unix - - n - - trivial-rewrite
bounce unix - - n - 0 bounce
defer unix - - n - 0 bounce
trace unix - - n - 0 bounce
verify unix - - n - 1 verify
flush unix n - n 1000? 0 flush
proxymap unix - - n - - proxymap
proxywrite unix - - n - 1 proxymap
smtp unix - - n - - smtp
error unix - - n - - error
retry unix - - n - - error
discard unix - - n - - discard
lmtp unix - - n - - lmtp
anvil unix - - n - 1 anvil
scache unix - - n - 1 scache
postlog unix-dgram n - n - 1 postlogd
""")
# While the file is there, what it says is the answer to each recipient: `450 4.7.1 come again`, or `550 5.1.1 never`.
POLICY = """
# https://www.postfix.org/SMTPD_POLICY_README.html: a request is lines, then an empty one.
while IFS= read -r line; do
    if [ -z "$line" ]; then
        action=DUNNO
        [ -f "$1" ] && IFS= read -r action <"$1"
        printf 'action=%s\\n\\n' "$action"
    fi
done
"""
# The results of the server that takes mail from outside. Nothing is looked up, there is no world outside: what the
# envelope's sender says is taken for proved. Postfix puts the field above its own Received, as a filter of DMARC does.
RESULTS = """
while IFS= read -r line; do
    case $line in
    sender=*) sender=${line#sender=} ;;
    '') printf 'action=PREPEND Authentication-Results: %s; dmarc=pass header.from=%s\\n\\n' "$1" "${sender##*@}" ;;
    esac
done
"""


def run(*command: str | Path, cwd: Path | None = None) -> None:
    """Run a program; if it fails, say what it said and end."""
    # Not by a pipe: a server that goes on holds its end open.
    with tempfile.TemporaryFile("w+") as said:
        done = subprocess.run(command, cwd=cwd, stdout=said, stderr=said, check=False)
        if done.returncode:
            said.seek(0)
            sys.exit(f"mail-servers: {command[0]} failed ({done.returncode}):\n{said.read()}")


def missing() -> list[str]:
    """The packages that are not installed."""
    return sorted({package for program, package in PACKAGES.items() if not Path(program).exists()})


def install() -> None:
    """Install what is missing."""
    packages = missing()
    if not packages:
        return
    if os.geteuid() != 0 or shutil.which("apt-get") is None:
        sys.exit(f"mail-servers: these are missing, install them as root: apt-get install {' '.join(packages)}")
    # Otherwise the package would write a configuration and perhaps start a server.
    choice = "postfix postfix/main_mailer_type select No configuration\n"
    debconf = shutil.which("debconf-set-selections")
    if "postfix" in packages and debconf is not None:
        subprocess.run([debconf], input=choice, text=True, check=False)
    os.environ["DEBIAN_FRONTEND"] = "noninteractive"
    run("apt-get", "update", "-qq")
    run("apt-get", "install", "-y", "-qq", "--no-install-recommends", *packages)


def free_ports(count: int) -> list[int]:
    """Ports that nobody listens on."""
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


def write(path: Path, text: str, mode: int = 0o644) -> None:
    """Write a file that others may read."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(mode)


def start() -> dict[str, Any]:
    """Start both servers; what is returned is all that a test must know."""
    if missing():
        install()
    if os.geteuid() != 0:
        sys.exit("mail-servers: start it as root: both servers change to users of their own")
    # The servers' users must be able to walk in, and the paths of sockets are short.
    directory = Path(tempfile.mkdtemp(prefix="zerobot-mail-", dir="/tmp"))
    directory.chmod(0o755)
    names = ("imap", "imaps", "smtp", "smtp_starttls", "smtps", "mx")
    ports = dict(zip(names, free_ports(len(names)), strict=True))
    authority, other = (make_authority(directory / name) for name in ("authority", "other-authority"))
    values = {"dir": directory, "domain": DOMAIN, "certificate": authority.certificate("DNS:localhost"), **ports}
    write(directory / "dovecot.conf", DOVECOT.substitute(values))
    write(directory / "oauth2.conf", DOVECOT_OAUTH2.substitute(values))
    write(directory / "accounts", "".join(f"{user}:{password}\n" for user, password in ACCOUNTS.items()))
    write(directory / "keys/default/HS256/default", "c2VjcmV0IG9mIHRva2Vucw==")
    write(directory / "policy.sh", POLICY)
    write(directory / "results.sh", RESULTS)
    write(directory / "postfix/main.cf", POSTFIX_MAIN.substitute(values))
    write(directory / "postfix/master.cf", POSTFIX_MASTER.substitute(values))
    write(directory / "postfix/mailboxes", "".join(f"{user} x\n" for user in ACCOUNTS))
    for name, owner in (("homes", "mail"), ("queue", "root"), ("data", "postfix")):
        (directory / name).mkdir()
        shutil.chown(directory / name, owner)
    run("dovecot", "-c", directory / "dovecot.conf")
    run("postfix", "-c", directory / "postfix", "start")
    for port in ports.values():
        wait_for(port)
    files = {"ca_file": authority.ca_file, "other_ca_file": other.ca_file, "homes": directory / "homes"}
    confs = {"dovecot_conf": directory / "dovecot.conf", "postfix_conf": directory / "postfix"}
    more = {"refusal_file": directory / "refuse", **confs}
    paths = {name: str(path) for name, path in {"dir": directory, **files, **more}.items()}
    servers = {**paths, "host": "localhost", "ports": ports, "accounts": ACCOUNTS, "jwt_secret": "secret of tokens"}
    write(directory / "servers.json", json.dumps(servers, indent=2) + "\n")
    return servers


def wait_for(port: int) -> None:
    """Wait until somebody listens."""
    end = time.monotonic() + START_SECONDS
    while time.monotonic() < end:
        try:
            socket.create_connection(("127.0.0.1", port), timeout=1).close()
        except OSError:
            time.sleep(0.05)
        else:
            return
    sys.exit(f"mail-servers: nobody listens on port {port}")


def stop(directory: Path) -> None:
    """End both servers, whatever state they are in."""
    if not (directory / "dovecot.conf").exists():
        sys.exit(f"mail-servers: {directory} is no directory of theirs")
    for program, configuration in (("dovecot", "dovecot.conf"), ("postfix", "postfix")):
        command = (program, "-c", str(directory / configuration), "stop")
        subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=False)
    shutil.rmtree(directory, ignore_errors=True)


def main(arguments: list[str]) -> None:
    """Do what the command line says."""
    match arguments:
        case ["install"]:
            install()
        case ["start"]:
            sys.stdout.write(json.dumps(start()) + "\n")
        case ["stop", directory]:
            stop(Path(directory))
        case _:
            sys.exit((__doc__ or "").strip())


if __name__ == "__main__":
    main(sys.argv[1:])

"""Names and options of common programs, as plain tables: what starts others, what writes, what only reads."""

import re
from collections.abc import Mapping

Words = tuple[str, ...]


def names(text: str) -> frozenset[str]:
    """The names in a text, divided by blanks."""
    return frozenset(text.split())


SHELLS = names(
    """
    sh bash dash zsh ksh mksh fish csh tcsh ash rbash busybox toybox pwsh
    """
)
WRAPPERS = names(
    """
    env nice nohup setsid timeout time stdbuf ionice chrt taskset xargs parallel watch script
    scriptreplay expect unbuffer unshare nsenter chroot setpriv capsh strace ltrace gdb lldb valgrind
    perf flock start-stop-daemon systemd-run run-parts entr dtach tmux screen socat nc ncat netcat telnet
    ssh sshpass mosh proot firejail bwrap prlimit uvx npx pipx bunx dlx faketime fakeroot rlwrap
    dbus-run-session xvfb-run torsocks proxychains catchsegv ld.so rename prename file-rename chronic ifne mispipe pee
    exiftool ts taskset numactl cgexec runcon chpst softlimit setuidgid runit sv s6-setuidgid tini dumb-init
    """
)
PRIVILEGE = names(
    """
    sudo su doas pkexec runuser run0 sg newgrp
    """
)
BUILTINS = names(
    """
    . source eval exec command builtin alias unalias hash enable export declare typeset local readonly
    set unset shopt trap read mapfile readarray cd pushd popd dirs bind complete compgen fc history
    ulimit umask getopts let coproc suspend logout exit return break continue caller disown bg fg wait
    jobs kill
    """
)
# They stop or restart daemons (this one too), or plant something that runs later.
MASTERS = names(
    """
    zerobot systemctl service loginctl launchctl initctl pkill killall crontab at batch reboot shutdown
    halt poweroff busctl dbus-send gdbus qdbus mount umount modprobe insmod rmmod sysctl kexec visudo vipw chsh passwd
    chpasswd usermod useradd
    """
)
EDITORS = names(
    """
    vi vim nvim view ex ed emacs nano pico less more most man info gdbserver
    """
)
INTERPRETERS = names(
    """
    python python2 python3 pypy pypy3 ipython node nodejs deno bun perl ruby irb php lua luajit awk gawk
    mawk nawk tclsh wish guile racket osascript Rscript julia erl elixir groovy scala jshell java dotnet
    bc dc m4 psql mysql sqlite3 redis-cli mongosh
    """
)

# Their first argument is the file that they run, if it is no option; and they run no file of HOME before it.
SCRIPT_RUNNERS = names(
    """
    sh bash dash ksh mksh ash rbash python python2 python3 pypy pypy3 node nodejs perl ruby php lua luajit tclsh
    """
)
AWKS = names(
    """
    awk gawk mawk nawk
    """
)
# The word after it may be its value, or already the script.
VALUED = names(
    """
    -o +o -O +O -W -X -I -r --require --rcfile --init-file
    """
)
# They write, wait or tell, and run no file whatever their plain arguments are.
PLAIN = names(
    """
    mkdir rmdir touch cp mv rm ln chmod chown truncate tee sleep seq date uname whoami id hostname uptime free ps
    which gzip gunzip zcat bzip2 bunzip2 xz unxz unzip sync mktemp yes expr nproc curl wget ping dig host nslookup
    """
)
# Builtins that run nothing, and change no name of a program.
QUIET_BUILTINS = names(
    """
    cd pushd popd exit wait jobs umask ulimit kill
    """
)
# What a program runs without being told.
BUILD_FILES: Mapping[str, Words] = {
    "make": ("GNUmakefile", "makefile", "Makefile"),
    "just": ("justfile", "Justfile"),
    "npm": ("package.json",),
    "pnpm": ("package.json",),
    "yarn": ("package.json",),
}

# Here the second word says what happens.
SUBCOMMANDS = names(
    """
    git npm pnpm yarn cargo go docker podman kubectl helm pip pip3 uv poetry apt apt-get brew dnf gh make
    just rustup terraform conda mvn gradle bundle gem composer
    """
)

READERS = names(
    """
    cat head tail wc ls grep egrep fgrep sort cut tr nl stat du df pwd echo basename dirname realpath
    readlink cmp comm md5sum sha1sum sha256sum sha512sum tree rg find diff test true false printf file od
    hexdump strings tac rev fold paste join column
    """
)

LOADERS = re.compile(r"(?:ld-linux|ld-musl|ld64|ld\.so|ld-)[\w.+-]*\Z")
VERSIONED = re.compile(r"(python|pypy|perl|ruby|lua|php|node|pip)[0-9.]*\Z")

# Options that run a program, write a file, or read a list of files. A long one also counts when abbreviated.
OPTIONS: Mapping[str, Words] = {
    "sort": ("-o", "--output", "--compress-program", "-T", "--temporary-directory", "--files0-from"),
    "wc": ("--files0-from",),
    "du": ("--files0-from", "-X", "--exclude-from"),
    "tar": (
        "-I",
        "-F",
        "--use-compress-program",
        "--to-command",
        "--checkpoint-action",
        "--info-script",
        "--new-volume-script",
        "--rsh-command",
        "--rmt-command",
    ),
    "rg": ("--pre", "--hostname-bin", "-z", "--search-zip"),
    "find": (
        "-exec",
        "-execdir",
        "-ok",
        "-okdir",
        "-delete",
        "-fprint",
        "-fprint0",
        "-fprintf",
        "-fls",
        "-files0-from",
    ),
    "zip": ("-T", "-TT", "--test", "--unzip-command"),
    "curl": (
        "-K",
        "--config",
        "-o",
        "-O",
        "--output",
        "--remote-name",
        "--remote-name-all",
        "-T",
        "--upload-file",
        "--engine",
        "-c",
        "--cookie-jar",
        "-D",
        "--dump-header",
        "--trace",
        "--trace-ascii",
        "--stderr",
        "--libcurl",
        "--etag-save",
        "--hsts",
        "--alt-svc",
        "--output-dir",
        "-w",
        "--write-out",
    ),
    "wget": (
        "--use-askpass",
        "-O",
        "--output-document",
        "-o",
        "--output-file",
        "-i",
        "--input-file",
        "--post-file",
        "--body-file",
        "-e",
        "--execute",
        "--config",
        "-a",
        "--append-output",
        "-P",
        "--directory-prefix",
        "--save-cookies",
        "--warc-file",
    ),
    "rsync": ("-e", "--rsh", "--rsync-path", "--log-file", "--write-batch", "--only-write-batch"),
    "scp": ("-S", "-o", "-F", "-D"),
    "sftp": ("-S", "-o", "-F", "-b", "-D"),
    "date": ("-s", "--set", "-f", "--file"),
    "tree": ("-o", "-R"),
    "file": (
        "-m",
        "--magic-file",
        "-C",
        "--compile",
        "-f",
        "--files-from",
        "-z",
        "-Z",
        "--uncompress",
        "--uncompress-noreport",
    ),
    "printf": ("-v",),
    "test": ("-v",),
    "make": ("-f", "--file", "--makefile", "-C", "--directory", "--eval", "-E", "-I", "--include-dir"),
    "npm": ("--script-shell", "--prefix", "--userconfig", "--globalconfig", "--node-options"),
    "cargo": ("--config", "-Z", "--manifest-path"),
    "diff": ("--to-file", "--from-file", "-l", "--paginate"),
    "grep": ("-f", "--file"),
    "split": ("--filter",),
    "openssl": ("-engine", "-provider"),
    "go": ("-exec", "-toolexec", "-vettool", "-modfile", "-overlay", "-C"),
    "pandoc": ("-F", "--filter", "-L", "--lua-filter", "--pdf-engine"),
    "tcpdump": ("-z", "-w"),
    "xmllint": ("--shell", "--output"),
    "yq": ("-i", "--inplace", "--in-place"),
    "shuf": ("-o", "--output"),
    "dd": ("of",),
    **dict.fromkeys(("gcc", "g++", "cc", "c++", "clang", "clang++"), ("-wrapper", "-B", "-specs", "-fplugin")),
    **dict.fromkeys(("tex", "latex", "pdflatex", "xelatex", "lualatex"), ("-shell-escape", "-enable-write18")),
    "helm": ("--post-renderer",),
    "pip": ("--config-settings", "--global-option", "--python"),
}

GIT_GLOBAL = (
    "-c",
    "-C",
    "--exec-path",
    "--git-dir",
    "--work-tree",
    "--config-env",
    "--namespace",
    "--super-prefix",
    "-p",
    "--paginate",
    "--attr-source",
)
GIT_OPTIONS = (
    "--output",
    "--output-directory",
    "--open-files-in-pager",
    "--upload-pack",
    "--receive-pack",
    "--exec",
    "--ext-diff",
    "--textconv",
    "--no-index",
    "--template",
    "--config",
    "--edit-description",
    "--gpg-sign",
    "--strategy-option",
    "--contents",
    "--remote-helper",
    "--recurse-submodules",
    "--separate-git-dir",
)
GIT_SHORT: Mapping[str, str] = {
    "grep": "O",
    "clone": "uc",
    "fetch": "u",
    "archive": "o",
    "format-patch": "o",
    "rebase": "x",
    "bisect": "",
    "ls-remote": "u",
}
# Of git itself; any other word may be an alias, which can be a whole shell line.
GIT_KNOWN = names(
    """
    add am annotate apply archive blame branch bundle cat-file check-attr check-ignore checkout cherry cherry-pick
    clean clone commit commit-graph count-objects describe diff diff-files diff-index diff-tree fast-export fetch
    for-each-ref format-patch fsck gc grep hash-object init log ls-files ls-remote ls-tree maintenance merge
    merge-base merge-tree mv name-rev notes patch-id prune pull push range-diff rebase reflog remote repack reset
    restore rev-list rev-parse revert rm shortlog show show-branch show-ref sparse-checkout stash status switch
    symbolic-ref tag update-index update-ref var verify-commit verify-tag version whatchanged worktree
    """
)
# They run what the repository, or the line itself, says.
GIT_VERBS = names(
    """
    config alias bisect filter-branch submodule difftool mergetool hook daemon shell instaweb send-email
    credential remote-ext remote-fd
    """
)


def _sed_pattern(delimiter: str) -> str:
    # A delimiter inside brackets ends nothing, so brackets are read only where nothing in them could be one.
    inside = rf"\[(?!\^?\])(?:[^\[\]{delimiter}\\\n]|\[:[a-z]+:\])+\]"
    return rf"(?:[^{delimiter}\\\n\[]|\\.|{inside})*"


SED_ADDRESS = rf"(?:\d+|\$|/{_sed_pattern('/')}/)"
SED_SUBSTITUTE = "|".join(rf"s{d}{_sed_pattern(d)}{d}(?:[^{d}\\\n]|\\.)*{d}[gpiI0-9]*" for d in ("/", r"\|", "#", ","))
SED_COMMAND = rf"(?:{SED_ADDRESS}(?:,{SED_ADDRESS})?)?\s*!?\s*(?:[pdqQ=]|{SED_SUBSTITUTE})"
SED_SCRIPT = re.compile(rf"\s*{SED_COMMAND}(?:\s*;\s*{SED_COMMAND})*\s*;?\s*\Z")
SED_OPTIONS = frozenset(
    {"-n", "-E", "-r", "-s", "-u", "-z", "-nE", "-En", "-nr", "-rn", "--quiet", "--silent", "--posix"}
)


NETWORK = names(
    """
    curl wget ssh scp sftp rsync nc ncat netcat telnet socat ftp lftp ping dig host nslookup whois mosh
    """
)

# Verbs that start other programs, or settle which ones will be started.
RUNNING_VERBS: Mapping[str, frozenset[str]] = {
    **dict.fromkeys(("uv", "poetry", "pdm", "hatch", "conda"), names("run exec x tool dlx shell config self")),
    **dict.fromkeys(("npm", "pnpm", "yarn"), names("exec x dlx explore edit init create config set run-script node")),
    **dict.fromkeys(
        ("docker", "podman"), names("run exec create start build buildx compose cp commit plugin context import load")
    ),
    "deno": names("eval run repl task install x jupyter"),
    "bun": names("run x exec repl create"),
    "dotnet": names("run exec script tool fsi"),
    "kubectl": names("exec run debug attach cp config plugin proxy port-forward edit kustomize"),
    "go": names("run generate tool env"),
    "cargo": names("run script"),
    "gh": names("alias extension ext codespace cs config"),
    "helm": names("plugin"),
    "apt": names("edit-sources"),
    "gem": names("exec open"),
    "bundle": names("exec open console config"),
    "composer": names("exec run run-script run-scripts config global"),
    "pip": names("config"),
}

NETWORK_VERBS: Mapping[str, frozenset[str]] = {
    "git": names("fetch pull push clone ls-remote"),
    "gh": names("api auth browse gist issue pr release repo run search status workflow"),
    "npm": names("install i ci add update publish view audit outdated"),
    "pnpm": names("install i add update publish audit outdated fetch"),
    "yarn": names("install add upgrade audit outdated"),
    "pip": names("install download index wheel"),
    "pip3": names("install download index wheel"),
    "cargo": names("fetch install update publish search add"),
    "go": names("get install"),
    "apt": names("update install upgrade download"),
    "apt-get": names("update install upgrade download"),
    "dnf": names("install upgrade makecache download"),
    "brew": names("install update upgrade fetch"),
    "docker": names("pull push login search"),
    "podman": names("pull push login search"),
    "gem": names("install update fetch"),
    "bundle": names("install update"),
    "composer": names("install update require"),
}

# Reserved words of bash; quoted they are programs, but nobody needs a program of that name.
KEYWORDS = names(
    """
    if then else elif fi do done case esac while until for select function time coproc { } ! [[ ]] in
    """
)

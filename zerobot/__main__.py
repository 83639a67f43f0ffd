"""`python -m zerobot` is the command `zerobot`."""

from zerobot.core.loading import loading


def main() -> None:
    """Run the command line; the process ends here."""
    with loading():
        from zerobot.cli.main import main as command  # noqa: PLC0415 - it loads more than this module
    command()


if __name__ == "__main__":
    main()

"""`python -m zerobot` is the command `zerobot`."""

from zerobot.cli.main import main

if __name__ == "__main__":
    main()
